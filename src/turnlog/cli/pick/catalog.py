"""Asking the catalog: with which words, and what is said while it reads. Whatever imports this waits for little."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager

from turnlog.catalog import Catalog
from turnlog.cli.draw.text import tell
from turnlog.cli.frame.progress import part, patience


@contextmanager
def catalog(home: str | None, *, is_whole: bool = False) -> Generator[Catalog]:
    """The catalog of that home, and of other agents on this machine.

    The first question reads what is new, and says how far it is if that takes a while; where it is much, a process of
    its own goes on with that, unless all of it is wanted.
    """
    with Catalog(home, agents=True, progress=part, deferred=not is_whole, at_end=True) as opened, patience():
        try:
            yield opened
            if opened.path == ":memory:":
                warning = "no disk has room for the index: it is read into memory each time; free some space"
                tell(f"warning: {warning}")
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                print("\r\x1b[Kstopped: what was read so far is kept, and the next command goes on", file=sys.stderr)
            raise


def tell_pending(asked: Catalog, *, so: str) -> bool:
    """Say on stderr that an answer is not of everything yet, and what follows from that; whether it is so."""
    standing = asked.standing() if asked.is_partial else None
    if standing is not None and standing.pending:
        note = f"{standing.indexed:,} of {standing.sessions:,} sessions are indexed so far, the newest first: {so}"
        tell(f"note: {note}; `turnlog index` waits for the rest")
    return standing is not None and standing.pending > 0


def forget_purged(home: str | None) -> None:
    """What was removed for good leaves every index that this machine has of that home."""
    for agents in (True, False):
        with Catalog(home, agents=agents, progress=part) as opened, patience():
            opened.forget_purged()


def meant_filter(asked: Catalog, query: str) -> str:
    """Where a filter has a value that no session has: what may have been meant, as a hint; else ""."""
    if ":" not in query:
        return ""  # what knows the values takes longer to load than the whole answer
    from difflib import get_close_matches

    from turnlog.catalog.ask.detail import known_values
    from turnlog.catalog.ask.query import parse

    for condition in parse(query).every_filter:
        if condition.name in ("agent", "model", "tag", "workspace", "branch") and not condition.negated:
            values = asked.ask(known_values, condition.name)
            for value in condition.values:
                if not any(value.lower() in one for one in values):
                    parts = [part for one in values for part in one.split("-") if condition.name != "branch"]
                    near = get_close_matches(value.lower(), [*values, *parts], n=1)
                    return f"did you mean {condition.name}:{near[0]}?" if near else ""
    return ""


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
