"""aider: `.aider.chat.history.md` in a project, Markdown to which every chat there is appended. Only read.

A heading with the time begins each chat. Lines that begin with `#### ` and end with two blanks were typed, those with
`> ` and two blanks are aider's own, and the rest is the model's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from turnlog.formats import Format, Reading, Record, SessionHeader, Source, Step, Watching
from turnlog.formats._shared.finding import files_under, head_of, inside
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.value import moment
from turnlog.log.block import Text
from turnlog.log.entry import Message, Note, Spent
from turnlog.log.usage import Usage

_NAME = "aider"
_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \r]*$", re.MULTILINE)
_MODEL = re.compile(r"(?:Main model|Models?): (\S+)")
_N = r"(\d{1,6}(?:\.\d)?k?)"
_TOKENS = re.compile(
    rf"Tokens: {_N} sent(?:, {_N} cache write)?(?:, {_N} cache hit)?, {_N} received\."
    r"(?:\s+Cost: \$(\d{1,6}\.\d+) message)?"
)


def _find(path: str) -> Iterator[Source]:
    for place in files_under(path):
        if place.endswith(".md") and b"# aider chat started at " in (head_of(place, 200) or b""):
            yield from (Source(_NAME, place, key) for key in _chats(place))


def _chats(path: str) -> dict[str, list[str]]:
    """The lines of each chat, by the time when it began, with a number if several began then."""
    with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
        _, *pieces = _START.split(file.read())
    chats: dict[str, list[str]] = {}
    for time, body in zip(pieces[::2], pieces[1::2], strict=True):
        key = time.replace(" ", "T")
        again = sum(other.startswith(key) for other in chats)
        chats[f"{key}.{again + 1}" if again else key] = body.splitlines(keepends=True)
    return chats


def _read(source: Source) -> Reading:
    lines, facts = _chats(source.path).get(source.key), dict[str, Any]()
    if lines is None:
        raise FileNotFoundError(f"no chat of {source.key} in {source.path}")
    folder = os.path.dirname(os.path.abspath(source.path))
    began = moment(source.key[:19])
    at = began and began.replace(tzinfo=None).astimezone()  # aider writes the machine's own time
    header = SessionHeader(id=source.key, identity=f"{source.key} {folder}", workspace=folder, created=at)
    return Reading(header=header, steps=_steps(lines, at, facts), facts=facts)


def _steps(lines: list[str], at: datetime | None, facts: dict[str, Any]) -> Iterator[Step]:
    keys, is_asked = Keys(), False
    for mark, text in filter(itemgetter(1), _parts(lines)):
        entries: list[Message | Note | Spent] = [Note(text=text)]
        if mark == ">":
            if named := _MODEL.search(text):
                facts["model"] = named[1]
            entries += [Spent(usage=_usage(report), model=facts.get("model")) for report in _TOKENS.finditer(text)]
        elif mark and text[0] not in "/!":  # what is asked by a command such as /ask stands below it once more
            is_asked = True
            entries = [Message(role="user", blocks=[Text(text)])]
        elif not mark and is_asked:
            entries = [Message(role="assistant", blocks=[Text(text)], model=facts.get("model"))]
        yield from (Record(entry=replace(entry, at=at), key=keys.of(entry)) for entry in entries)


def _parts(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Lines that stand together, as one text, and the mark before them."""
    before, part = "", list[str]()
    for line in lines:
        mark = line.partition(" ")[0] if line.startswith(("#### ", "> ")) and line.endswith("  \n") else ""
        is_end_of_prompt = before == "####" and not line.strip()
        if is_end_of_prompt or (mark != before and (mark or line.strip())):
            yield before, "".join(part).strip()
            before, part = mark, []
        part.append(f"{line[len(mark) + 1 :].rstrip()}\n" if mark else line)
    yield before, "".join(part).strip()


def _usage(report: re.Match[str]) -> Usage:
    """aider rounds numbers from a thousand on, and counts as sent what a cache took or answered."""
    numbers = [float((text or "0").rstrip("k")) * (1000 if "k" in (text or "") else 1) for text in report.groups()]
    sent, written, cached, received = map(round, numbers[:4])
    cost = round(numbers[4] * 1_000_000) if report[5] else None
    new = max(0, sent - written - cached)
    return Usage(new, cache_write_tokens=written, cache_read_tokens=cached, output_tokens=received, cost_micros=cost)


_BY_CHAT = Watching(
    by_file=True,
    stamps=lambda path: {key: str(sum(map(len, lines))) for key, lines in _chats(path).items()},
)
FORMAT = Format("aider: a project's chat history", inside(".aider.chat.history.md"), _find, _read, watch=_BY_CHAT)
