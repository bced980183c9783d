"""A summary made without a model: counts, tools, requests, files, what is left to do. Pure, and bounded in size.

Its data is kept beside the text, in `meta`, so that the next summary merges it instead of quoting it: after a hundred
compactions it is as long as after the first few.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.block import Text, ToolCall
from turnlog.log.context import text_of
from turnlog.log.entry import Message
from turnlog.log.prompt import typed, without_preamble
from turnlog.log.text import cut, one_line

META = "turnlog.summary"
_LINE = 160
_EARLIER = 8_000
_REQUESTS, _PENDING, _TOOLS, _FILES = 3, 5, 24, 8
_LEFT_TO_DO = re.compile(r"\b(?:todo|next|pending|follow[- ]?up|remaining)\b", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"""[\s"'`()\[\]{}<>,;:|=]+""")
_FILE_KEYS = frozenset(["path", "paths", "file", "files", "file_path", "filepath", "filename", "notebook_path"])


class Gist(Struct, omit_defaults=True):
    """The content of a summary, as data."""

    user: int = 0
    assistant: int = 0
    tool: int = 0
    tools: list[str] = []
    requests: list[str] = []
    pending: list[str] = []
    files: list[str] = []
    current: str = ""
    earlier: str = ""
    """A summary that was not made here, unchanged."""


def summarise(messages: Iterable[Message], *, before: int = 0) -> Message:
    """One message in place of those before entry `before`; 0 means all. Summaries among them are merged."""
    gist = Gist()
    is_empty = True
    for message in messages:
        if before and message.seq >= before:
            continue
        is_empty = False
        summary = _summary_in(message)
        if summary is not None:
            _merge(gist, summary)
        elif not message.seq and message.role != "tool":
            _merge(gist, Gist(earlier=text_of(message.blocks)))  # a summary that was not made here: it is in no log
        else:
            _take(gist, message)
    if is_empty:
        raise Invalid("nothing to summarise: every message is kept", hint="keep fewer")
    return Message(role="user", blocks=[Text(_text(gist))], meta={META: msgspec.to_builtins(gist)})


def _summary_in(message: Message) -> Gist | None:
    if not isinstance(message.meta, dict):
        return None
    meta = cast("dict[str, Any]", message.meta)
    try:
        return msgspec.convert(meta[META], Gist)
    except (KeyError, msgspec.ValidationError):
        return None


def _merge(gist: Gist, other: Gist) -> None:
    gist.user += other.user
    gist.assistant += other.assistant
    gist.tool += other.tool
    gist.tools = _newest(gist.tools + other.tools, _TOOLS)
    gist.requests = (gist.requests + other.requests)[-_REQUESTS:]
    gist.pending = _newest(gist.pending + other.pending, _PENDING)
    gist.files = _newest(gist.files + other.files, _FILES)
    gist.current = other.current or gist.current
    gist.earlier = cut(other.earlier.strip(), _EARLIER) or gist.earlier


def _take(gist: Gist, message: Message) -> None:
    # The output of tools is full of words and paths that mean nothing here.
    text = "" if message.role == "tool" else text_of(message.blocks)
    calls = [block for block in message.blocks if isinstance(block, ToolCall)]
    new = Gist(tools=[call.name for call in calls])
    if message.role == "user":
        new.user = 1
        text = typed(without_preamble(text))
        asked = one_line(text, _LINE)
        new.requests = [asked] if asked else []
    elif message.role == "assistant":
        new.assistant = 1
        new.current = one_line(text, _LINE)
    elif message.role == "tool":
        new.tool = 1
    new.pending = [one_line(line, _LINE) for line in text.splitlines() if _LEFT_TO_DO.search(line)]
    new.files = [*_paths(text), *(path for call in calls for path in _files(call.input))]
    _merge(gist, new)


def _files(value: Any, key: str = "") -> Iterator[str]:
    """The files in the input of a tool call."""
    if isinstance(value, str):
        if key in _FILE_KEYS and 0 < len(value) <= _LINE and "\n" not in value:
            yield value
        else:
            yield from _paths(value)
    elif isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            yield from _files(item, str(name))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _files(item, key)


def _paths(text: str) -> Iterator[str]:
    """Words that look like the path of a file: with a slash and a suffix."""
    if "/" not in text:
        return
    for word in _BETWEEN_WORDS.split(text):
        word = word.rstrip(".!?")
        name = word.rpartition("/")[2]
        _, dot, ending = name.rpartition(".")
        is_file = "/" in word and dot and ending.isalnum() and len(ending) <= 8 and len(word) <= _LINE
        if is_file and not word.startswith("//"):
            yield word


def _newest(items: list[str], limit: int) -> list[str]:
    """Each item once, at its last position; only the last `limit` items."""
    return list(reversed(list(dict.fromkeys(reversed(items)))[:limit]))


def _text(gist: Gist) -> str:
    number = gist.user + gist.assistant + gist.tool
    lines = [
        "The earlier part of this conversation is left out here. What it was about, put together without a model:",
        "",
        f"- Scope: {number} messages ({gist.user} user, {gist.assistant} assistant, {gist.tool} tool)",
    ]
    if gist.tools:
        lines.append(f"- Tools used: {', '.join(gist.tools)}")
    for title, items in (("Last requests", gist.requests), ("Pending work", gist.pending)):
        if items:
            lines += [f"- {title}:", *(f"  - {item}" for item in items)]
    if gist.files:
        lines.append(f"- Key files: {', '.join(gist.files)}")
    if gist.current:
        lines.append(f"- Current work: {gist.current}")
    if gist.earlier:
        lines += ["", "A summary of what came before that:", "", gist.earlier]
    return "\n".join(lines)
