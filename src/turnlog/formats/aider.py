"""aider: `.aider.chat.history.md` in a project, Markdown to which every chat there is appended. Only read.

A heading with the time begins each chat. Lines that begin with `#### ` and end with two blanks were typed, those with
`> ` and two blanks are aider's own, and the rest is the model's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from turnlog.formats import Format, Reading, Record, SessionHeader, Source, Step, Watching
from turnlog.formats._shared.finding import homes_in_workspace
from turnlog.formats._shared.key import Keys
from turnlog.interop.folder import at_once, files_under, head_of
from turnlog.interop.value import local_moment
from turnlog.log.block import Text
from turnlog.log.entry import Message, Note, Spent
from turnlog.log.usage import Usage

_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \r]*$", re.MULTILINE)
_MARKED = re.compile(r"((?:^####(?= ).*  \n)+|(?:^>(?= ).*  \n(?:[^\S\n]*\n)*)+)", re.MULTILINE)
_MODEL = re.compile(r"(?:Main model|Models?): (\S+)")
_N = r"(\d{1,6}(?:\.\d)?k?)"
_TOKENS = re.compile(
    rf"Tokens: {_N} sent(?:, {_N} cache write)?(?:, {_N} cache hit)?, {_N} received\."
    r"(?:\s+Cost: \$(\d{1,6}\.\d+) message)?"
)


def _find(path: str) -> Iterator[Source]:
    for file in files_under(path):
        if file.endswith(".md") and b"# aider chat started at " in (head_of(file, 200) or b""):
            yield from (Source("aider", file, key) for key in _chats(file))


def _chats(path: str) -> dict[str, str]:
    """Each chat by the time when it began, with a number if several began then."""
    with open(path, encoding="utf-8", errors="replace", newline="\n", opener=at_once) as file:
        _, *pieces = _START.split(file.read())
    chats: dict[str, str] = {}
    for time, chat in zip(pieces[::2], pieces[1::2], strict=True):
        key = time.replace(" ", "T")
        again = sum(other.startswith(key) for other in chats)
        chats[f"{key}.{again + 1}" if again else key] = chat
    return chats


def _read(source: Source) -> Reading:
    chat = _chats(source.path).get(source.key)
    if chat is None:
        raise FileNotFoundError(f"no chat of {source.key} in {source.path}")
    folder = os.path.dirname(os.path.abspath(source.path))
    at = local_moment(source.key[:19])
    header = SessionHeader(id=source.key, identity=f"{source.key} {folder}", workspace=folder, created=at)
    facts: dict[str, Any] = {}
    return Reading(header=header, steps=_steps(chat, at, facts), facts=facts)


def _steps(chat: str, at: datetime | None, facts: dict[str, Any]) -> Iterator[Step]:
    keys, is_asked = Keys(), False
    for mark, text in _parts(chat):
        entries: list[Message | Note | Spent] = [Note(text=text, at=at)]
        if mark == ">":
            if named := _MODEL.search(text):
                facts["model"] = named[1]
            entries += [Spent(usage=_usage(match), model=facts.get("model"), at=at) for match in _TOKENS.finditer(text)]
        elif mark and text[0] not in "/!":  # what is asked by a command such as /ask stands below it once more
            is_asked = True
            entries = [Message(role="user", blocks=[Text(text)], at=at)]
        elif not mark and is_asked:
            entries = [Message(role="assistant", blocks=[Text(text)], model=facts.get("model"), at=at)]
        yield from (Record(entry=entry, key=keys.of(entry)) for entry in entries)


def _parts(chat: str) -> Iterator[tuple[str, str]]:
    """Lines that stand together, as one text, and the mark before them; blank ones end only what was typed."""
    for number, part in enumerate(_MARKED.split(chat)):
        mark = part.partition(" ")[0] if number % 2 else ""
        lines = (line.partition(" ")[2].rstrip() if mark else line for line in part.split("\n"))
        if text := "\n".join(lines).strip():
            yield mark, text


def _usage(report: re.Match[str]) -> Usage:
    """aider rounds numbers from a thousand on, and counts as sent what a cache took or answered."""
    *tokens, dollars = (float((number or "0").replace("k", "e3")) for number in report.groups())
    sent, written, cached, received = map(round, tokens)
    cost = round(dollars * 1_000_000) if report[5] else None
    new = max(0, sent - written - cached)
    return Usage(new, cache_write_tokens=written, cache_read_tokens=cached, output_tokens=received, cost_micros=cost)


_WATCH = Watching(by_file=True, stamps=lambda path: {key: str(len(chat)) for key, chat in _chats(path).items()})
_HOMES = homes_in_workspace(".aider.chat.history.md")
FORMAT = Format("aider: a project's chat history", _HOMES, _find, _read, watch=_WATCH)
