"""Asking the catalog: what it is asked with, the folder that is meant, and what to say while it reads.

Whatever imports this waits for little: see `plain`.
"""

from __future__ import annotations

import os
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from turnlog.catalog import Catalog
from turnlog.cli.frame.progress import part, patience
from turnlog.cli.pick.here import levels, project

if TYPE_CHECKING:
    from turnlog.catalog import Card, ListingRow, TokenSums

_T = TypeVar("_T")

VERSION = 1
"""Of everything that `--json` prints. It grows when a field changes its meaning or goes away."""


@contextmanager
def catalog(home: str | None) -> Generator[Catalog]:
    """The catalog of that home, and of other agents on this machine.

    The first question reads what is new, and says how far it is if that takes a while.
    """
    with Catalog(home, agents=True, progress=part) as opened, patience():
        try:
            yield opened
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                print("\r\x1b[Kstopped: what was read so far is kept, and the next command goes on", file=sys.stderr)
            raise


def forget_purged(home: str | None) -> None:
    """What was removed for good leaves every index that this machine has of that home."""
    for agents in (True, False):
        with Catalog(home, agents=agents, progress=part) as opened, patience():
            opened.forget_purged()


_WITH_BLANKS = ("title", "workspace", "file", "tag")
"""In other values there are none: what stands behind `agent:codex ` are words to look for."""


def query_of(words: Iterable[str]) -> str:
    """One query of the words that a shell gave. A value with blanks needs no quotes inside those of the shell."""
    parts: list[str] = []
    for word in words:
        name, _, value = word.partition(":")
        if name.lstrip("-") in _WITH_BLANKS and " " in value and '"' not in value and ":" not in value:
            word = f'{name}:"{value}"'
        parts.append(word)
    return " ".join(parts)


# ── here ──────────────────────────────────────────────────────────────────────────────────────────


def within(query: str, folder: str) -> str:
    """The query, for sessions of that folder and of those below it."""
    escaped = folder.replace("\\", "\\\\").replace('"', '\\"')
    return f'{query} workspace:"{escaped}"'.strip()


def here(ask: Callable[..., list[_T]], query: str, **more: Any) -> tuple[list[_T], str]:
    """Sessions of this project, or of the nearest folder above it that has any; and which folder that is."""
    first = project()
    found = ask(within(query, first), **more)
    if found:
        return found, first
    for folder in _above(first):
        found = ask(query, workspace=folder, **more)
        if found:
            return found, folder
    return [], first


def of_here(lines: list[ListingRow]) -> tuple[list[ListingRow], str]:
    """The same of sessions that are listed already."""
    first = project()
    found = [line for line in lines if line.workspace and is_in(line.workspace, first)]
    if found:
        return found, first
    for folder in _above(first):
        found = [line for line in lines if line.workspace == folder]
        if found:
            return found, folder
    return [], first


def _above(first: str) -> Iterator[str]:
    """The folders above a project whose sessions are of here, too."""
    return (folder for level in levels() for folder in level if not is_in(folder, first))


def is_in(path: str, folder: str) -> bool:
    """Whether a path is that folder, or below it."""
    return (path.rstrip("/") + "/").startswith(folder.rstrip("/") + "/")


def tilde(path: str) -> str:
    """A path as people write it."""
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if home != "/" and is_in(path, home) else path


# ── names ─────────────────────────────────────────────────────────────────────────────────────────

_SHORT = 8


def short_names(cards: Sequence[Card | ListingRow], ids: list[str]) -> list[str]:
    """What to type for each, as short as it may be: handles of ours, beginnings of other ids.

    As long as it takes to tell it from all of these ids: also from subagents and sessions of other folders.
    """
    ids = sorted(ids)
    return [_short(card, ids) for card in cards]


def _short(card: Card | ListingRow, ids: list[str]) -> str:
    name, own, end = card.name, _id_in(card.name), _SHORT
    if card.is_ours:
        lead = f"{card.agent}-"
        if not name.startswith(lead):
            return name
        own, end = name, len(lead) + _SHORT  # imported: its id has that agent's in it
    first, after = bisect_left(ids, own), bisect_right(ids, own)
    if after - first > 1:
        return name  # two agents have it
    if not card.is_ours:
        after = bisect_left(ids, own + "\U0010ffff")  # what is called after it is not meant by a beginning
    for other in ids[max(0, first - 1) : first] + ids[after : after + 1]:
        while end < len(own) and own[:end] == other[:end]:
            end += 1
    return own[:end]


def _id_in(name: str) -> str:
    return name.partition(":")[2]


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


def print_json(data: dict[str, Any]) -> None:
    """Data for programs: exact, in UTF-8 whatever the terminal speaks."""
    import json

    document = {"version": VERSION, **data}
    try:
        text = json.dumps(document, indent=2, ensure_ascii=False, default=_json).encode()
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2, default=_json).encode()
    from turnlog.cli.draw.text import safe_json

    text = safe_json(text)
    sys.stdout.flush()
    output = getattr(sys.stdout, "buffer", None)
    if output is None:
        sys.stdout.write(text.decode() + "\n")
    else:
        output.write(text + b"\n")


def _json(value: Any) -> Any:
    if hasattr(value, "isoformat"):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} in JSON")


def json_card(card: Card) -> dict[str, Any]:
    """A session for programs."""
    row = card._asdict()
    row["handle"] = card.name
    row["is_readable"] = not card.problem
    row["fork"] = None if card.fork is None else {"session": card.fork}
    row["tags"], row["unpriced"] = list(card.tags), list(card.unpriced)
    for part_of in ("own", "inherited", "subagents"):
        row[part_of] = json_tokens(row[part_of])
    return row


def json_tokens(tokens: TokenSums) -> dict[str, int]:
    """Usage for programs; money in micro-dollars."""
    return tokens._asdict()
