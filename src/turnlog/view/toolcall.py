"""Tool calls: their main argument, all arguments as text, and output without the agent's wrapper."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from turnlog.interop.value import fields
from turnlog.log.startup import NamedTuple

_MAIN_ARGUMENTS = (
    "command", "cmd", "commands", "script", "code", "pattern", "regex",
    "file_path", "filePath", "path", "paths", "files", "notebook_path", "dir_path", "filename", "file",
    "query", "queries", "url", "urls",
    "description", "prompt", "message", "task", "instruction", "intent", "question", "title", "name", "skill", "id",
)  # fmt: skip
"""The argument that says what a call is about, the most telling first."""
_SHELLS = ("bash", "sh", "zsh", "dash", "fish")
_LONGEST = 400


def arguments(value: Any) -> Any:
    """The arguments of a call; some agents keep them as JSON in a text."""
    if isinstance(value, str) and value[:1] == "{" and len(value) < 1 << 20:
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


def main_argument(value: Any) -> str:
    """The argument that tells what a call is about: the command, the file, the pattern. One line, not too long."""
    value = arguments(value)
    if isinstance(value, str):
        return _first_line(value)
    named = fields(value)
    plan = _plan(named)
    if plan:
        return f"{sum(line.startswith('[x]') for line in plan)} of {len(plan)} done"
    for name in _MAIN_ARGUMENTS:
        text = words_in(named.get(name))
        if text:
            return _first_line(text)
    short = {key: item for key, item in named.items() if isinstance(item, (str, int, float, bool))}
    if len(short) == 1:
        return _first_line(str(next(iter(short.values()))))
    return _first_line(" ".join(f"{key}={_quoted(item)}" for key, item in short.items()))


def words_in(value: Any) -> str:
    """An argument as one text: a command of several words, the paths of several edits."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        if all(isinstance(item, str) for item in items):
            texts = cast("list[str]", items)
            is_script = len(texts) == 3 and texts[0].rpartition("/")[2] in _SHELLS and texts[1] in ("-c", "-lc")
            return texts[2] if is_script else " ".join(map(_quoted, texts))
        if all(isinstance(item, dict) for item in items):
            rows = cast("list[dict[str, Any]]", items)
            return " ".join(filter(None, (words_in(row.get("path") or row.get("command")) for row in rows)))
    return ""


def _quoted(value: Any) -> str:
    text = str(value)
    if "/" in text or len(text) > _LONGEST:
        return text
    from shlex import quote

    return quote(text)


def _first_line(text: str) -> str:
    first = first_of(text)
    if len(first) > _LONGEST:
        return first[:_LONGEST] + "…"
    return with_more(first) if len(text.strip().splitlines()) > 1 else first


def first_of(text: str) -> str:
    """The first line of a text."""
    return next(iter(text.strip().splitlines()), "").strip()


def with_more(first: str) -> str:
    """The first of several lines as a main argument."""
    return f"{first} …"


def arguments_text(value: Any) -> str:
    """All arguments of a call, for people: a text as it is, a lone command too, anything else as JSON."""
    value = arguments(value)
    if isinstance(value, str):
        return value
    if value is None or value == {}:
        return ""
    named = fields(value)
    plan = _plan(named)
    if plan:
        return "\n".join(plan)
    if len(named) == 1:
        [(name, item)] = named.items()
        text = words_in(item) if name in _MAIN_ARGUMENTS else ""
        if text:
            return text
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (UnicodeEncodeError, RecursionError):
        return str(value)


def _plan(named: dict[str, Any]) -> list[str]:
    """A list of things to do, as several agents keep one."""
    rows: Any = named.get("todos") or named.get("plan")
    if not isinstance(rows, list):
        return []
    lines: list[str] = []
    for row in cast("list[Any]", rows):
        item = fields(row)
        text = text_in(item, ("content", "step", "title", "text"))
        mark = {"completed": "x", "done": "x", "in_progress": "~"}.get(str(item.get("status")), " ")
        if not text:
            return []
        lines.append(f"[{mark}] {text}")
    return lines


class UnwrappedOutput(NamedTuple):
    """The output of a tool, and whether its exit code says that it failed."""

    text: str
    is_error: bool = False


def unwrapped_output(text: str) -> UnwrappedOutput:
    """The output without the JSON that Codex puts around it."""
    if text[:11] != '{"output":"' or len(text) > 1 << 22:
        return UnwrappedOutput(text)
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return UnwrappedOutput(text)
    frame = fields(value)
    output = frame.get("output")
    if not isinstance(output, str) or not set(frame) <= {"output", "metadata"}:
        return UnwrappedOutput(text)  # any program may print an object that begins like this
    return UnwrappedOutput(output, fields(frame.get("metadata")).get("exit_code") not in (None, 0))


def text_in(named: dict[str, Any], names: tuple[str, ...]) -> str:
    """The first of these arguments that is a text."""
    return next((named[name] for name in names if isinstance(named.get(name), str)), "")
