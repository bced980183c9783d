"""Tool calls: what tells one from another, and the change to files that some of them are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec import Struct

_TELLING = (
    "command", "cmd", "commands", "script", "code", "pattern", "regex",
    "file_path", "filePath", "path", "paths", "files", "notebook_path", "dir_path", "filename", "file",
    "query", "queries", "url", "urls",
    "description", "prompt", "message", "task", "instruction", "intent", "question", "title", "name", "skill", "id",
)  # fmt: skip
"""The argument that says what a call is about, the most telling first."""
_OLD = ("old_string", "oldString", "oldText", "old_text", "old_str")
_NEW = ("new_string", "newString", "newText", "new_text", "new_str")
_PATHS = ("file_path", "filePath", "path", "notebook_path", "filename", "file")
_CONTENT = ("content", "contents", "file_text", "fileText", "text")
_WRITERS = ("write", "create", "save")
_SHELLS = ("bash", "sh", "zsh", "dash", "fish")
_MOST_LINES = 2000
"""Comparing larger texts takes too long for what it tells."""
_LONGEST = 400


class FileChange(Struct, frozen=True):
    """What a call changes in one file, as lines of a unified diff without the names above them."""

    path: str
    lines: list[str]

    @property
    def plus(self) -> int:
        """How many lines come."""
        return sum(line.startswith("+") for line in self.lines)

    @property
    def minus(self) -> int:
        """How many lines go."""
        return sum(line.startswith("-") for line in self.lines)


def arguments(value: Any) -> Any:
    """The arguments of a call; some agents keep them as JSON in a text."""
    if isinstance(value, str) and value[:1] == "{" and len(value) < 1 << 20:
        try:
            return msgspec.json.decode(value)
        except (msgspec.DecodeError, RecursionError):
            return value
    return value


# ── what it is about ──────────────────────────────────────────────────────────────────────────────


def telling(value: Any) -> str:
    """The argument that tells what a call is about: the command, the file, the pattern. One line, not too long."""
    value = arguments(value)
    if isinstance(value, str):
        return _first_line(value)
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    plan = _plan(fields)
    if plan:
        return f"{sum(line.startswith('[x]') for line in plan)} of {len(plan)} done"
    for name in _TELLING:
        found = _words(fields.get(name))
        if found:
            return _first_line(found)
    short = {key: item for key, item in fields.items() if isinstance(item, (str, int, float, bool))}
    if len(short) == 1:
        return _first_line(str(next(iter(short.values()))))
    return _first_line(" ".join(f"{key}={_quoted(item)}" for key, item in short.items()))


def _words(value: Any) -> str:
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
            return " ".join(filter(None, (_words(row.get("path") or row.get("command")) for row in rows)))
    return ""


def _quoted(value: Any) -> str:
    text = str(value)
    if "/" in text or len(text) > _LONGEST:
        return text
    from shlex import quote

    return quote(text)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    first = lines[0].strip()
    if len(first) > _LONGEST:
        return first[:_LONGEST] + "…"
    return f"{first} …" if len(lines) > 1 else first


def in_full(value: Any) -> str:
    """All arguments of a call, for people: a text as it is, a lone command too, anything else as JSON."""
    value = arguments(value)
    if isinstance(value, str):
        return value
    if value is None or value == {}:
        return ""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    plan = _plan(fields)
    if plan:
        return "\n".join(plan)
    if len(fields) == 1:
        found = _words(next(iter(fields.values())))
        if found and next(iter(fields)) in _TELLING:
            return found
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (UnicodeEncodeError, RecursionError):
        return str(fields)


def _plan(fields: dict[str, Any]) -> list[str]:
    """A list of things to do, as several agents keep one."""
    rows: Any = fields.get("todos") or fields.get("plan")
    if not isinstance(rows, list):
        return []
    lines: list[str] = []
    for row in cast("list[Any]", rows):
        item = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        text = _text(item, ("content", "step", "title", "text"))
        mark = {"completed": "x", "done": "x", "in_progress": "~"}.get(str(item.get("status")), " ")
        if not text:
            return []
        lines.append(f"[{mark}] {text}")
    return lines


def printed(text: str) -> tuple[str, bool]:
    """What a tool printed, without the JSON that some agents put around it; and whether that says that it failed."""
    if text[:11] != '{"output":"' or len(text) > 1 << 22:
        return text, False
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text, False
    fields = cast("dict[str, Any]", value)
    about: Any = fields.get("metadata")
    code = cast("dict[str, Any]", about).get("exit_code") if isinstance(about, dict) else None
    return (fields["output"], code not in (None, 0)) if set(fields) <= {"output", "metadata"} else (text, False)


# ── what it changes ───────────────────────────────────────────────────────────────────────────────


def changes(name: str, value: Any) -> list[FileChange]:
    """What a call changes in files, where that can be seen from its arguments."""
    value = arguments(value)
    patch = value if isinstance(value, str) else ""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    for key in ("input", "patch", "patchText", "diff"):
        if not patch and isinstance(fields.get(key), str):
            patch = fields[key]
    patch = patch or _words(fields.get("command") or fields.get("cmd"))
    if "*** Begin Patch" in patch:
        return list(_patched(patch))
    path = _text(fields, _PATHS)
    edits: Any = fields.get("edits")
    rows = cast("list[Any]", edits) if isinstance(edits, list) else [fields]
    lines: list[str] = []
    for row in rows:
        pair = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
        old, new = _text(pair, _OLD), _text(pair, _NEW)
        if old != new:
            lines += compared(old, new)
    if not lines and path and name.lower().rpartition("__")[2].startswith(_WRITERS):
        content = _text(fields, _CONTENT)
        lines = [f"+{line}" for line in content.removesuffix("\n").split("\n")] if content else []
    return [FileChange(path, lines)] if lines and path else []


def _text(fields: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((fields[name] for name in names if isinstance(fields.get(name), str)), "")


def compared(old: str, new: str) -> list[str]:
    """How one text becomes the other: lines of a unified diff, three of context."""
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in (old, new))
    if len(before) + len(after) > _MOST_LINES:
        return [*(f"-{line}" for line in before), *(f"+{line}" for line in after)]
    from difflib import unified_diff

    return [line for line in unified_diff(before, after, lineterm="", n=3)][2:]


def _patched(text: str) -> Iterator[FileChange]:
    """The files of a patch as Codex writes it."""
    path = ""
    lines: list[str] = []
    for line in text.splitlines():
        verb, _, rest = line.removeprefix("*** ").partition(" File: ") if line.startswith("*** ") else ("", "", "")
        if verb in ("Add", "Update", "Delete") and rest:
            if path:
                yield FileChange(path, lines)
            path, lines = rest, []
        elif line.startswith("*** Move to: "):
            path = f"{path} → {line[13:]}"
        elif path and line[:1] in ("+", "-", " ", "@"):
            lines.append(line)
    if path:
        yield FileChange(path, lines)


def is_diff(text: str) -> bool:
    """Whether what a tool printed is a unified diff."""
    head = text[:2000]
    return head.startswith(("diff --git ", "--- ", "Index: ")) or "\ndiff --git " in head
