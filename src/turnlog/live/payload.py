"""What an agent passes to a hook. Untrusted input: fields of the wrong type or form count as missing.

The agents have different names for the same things; the names of all agents are known here.
"""

# Without `from __future__ import annotations`, as in `log/entry.py`.

import os
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.log.startup import pattern

_ID = pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,199}")
"""The ids of all agents have this form. A path does not."""
_EDIT_TOOLS = frozenset({
    "apply_patch", "create", "edit", "edit_file", "insert", "multiedit", "notebookedit", "patch", "replace",
    "str_replace", "str_replace_editor", "write", "write_file",
})  # fmt: skip
"""Tools that change the files that they name, and no others."""
_PATH_KEYS = ("file_path", "filePath", "absolute_path", "notebook_path", "path")
_PATCHED_FILE = pattern(r"^\*\*\* (?:(?:Update|Add|Delete) File|Move to): (.+)$", re.MULTILINE)
_MOST_PATHS = 500
_FAILED_RESULTS = ("denied", "failure", "rejected")
"""What Copilot CLI calls the result of a tool that did nothing."""


class NativeSession(Struct, frozen=True):
    """A session as its agent knows it."""

    id: str
    path: str = ""
    """The file that the agent keeps it in; "" if the agent did not say."""


class _Raw(Struct):
    """The fields as agents send them. Some agents write the names of fields in camel case."""

    session_id: Any = None
    sessionId: Any = None
    transcript_path: Any = None
    transcriptPath: Any = None
    cwd: Any = None
    prompt_id: Any = None
    turn_id: Any = None
    parent_id: Any = None
    prompt: Any = None
    timestamp: Any = None
    tool_name: Any = None
    toolName: Any = None
    tool_input: Any = None
    toolArgs: Any = None
    tool_response: Any = None
    toolResult: Any = None
    hook_event_name: Any = None
    interrupted: Any = None
    pid: Any = None


_decode = msgspec.json.Decoder(_Raw).decode


class Payload:
    """What an agent says of one event."""

    def __init__(self, data: bytes, environ: Mapping[str, str], folder_variable: str = "") -> None:
        try:
            raw = _decode(data)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise Invalid(f"what the agent said is no JSON object: {str(error)[:100]}") from None
        self.native = NativeSession(
            _id(raw.session_id if raw.session_id is not None else raw.sessionId),
            _text(raw.transcript_path) or _text(raw.transcriptPath),
        )
        """The session; its id is "" if the agent did not say which."""
        self.cwd = _folder(raw.cwd)
        self.folder = _folder(environ.get(folder_variable)) or self.cwd
        """The folder in which the session began."""
        self.pid = raw.pid if type(raw.pid) is int and 1 < raw.pid < 1 << 31 else 0
        self.turn = _id(raw.prompt_id) or _id(raw.turn_id)
        """The agent's own id of the turn."""
        self.begins_turn = self.turn != "" or raw.prompt != ""
        """Whether a turn begins: some agents report the answer of a tool as an empty prompt."""
        self.is_interrupted = raw.interrupted is True
        """Whether the turn ends because a person stopped it."""
        self._identity = (raw.timestamp, raw.prompt, raw.parent_id)
        self._tool = str(raw.tool_name or raw.toolName or "")
        self._input: Any = raw.tool_input if raw.tool_input is not None else raw.toolArgs
        self._failed = raw.hook_event_name == "PostToolUseFailure" or _says_failed(raw.tool_response, raw.toolResult)

    def turn_or_digest(self) -> str:
        """Return the id of a turn that begins; if the agent has none, a digest that a second report repeats."""
        if self.turn:
            return self.turn
        from turnlog.log.digest import sha256

        parts = self._identity if self._identity[0] is not None or self._identity[2] is not None else (os.urandom(8),)
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:24]

    def edited(self) -> list[str]:
        """Return the absolute paths that a tool says it edited; none if it failed, because it edited nothing then."""
        given = cast("dict[str, Any]", self._input) if isinstance(self._input, dict) else {}
        if self._failed or self._tool.lower() not in _EDIT_TOOLS or given.get("command") == "view":
            return []
        named = [_text(given.get(key)) for key in _PATH_KEYS]
        for text in (given.get("command"), given.get("patch"), given.get("patchText"), given.get("input")):
            named += _PATCHED_FILE.findall(text) if isinstance(text, str) else []
        paths = dict.fromkeys(os.path.normpath(os.path.join(self.cwd, path)) for path in named if path)
        return [path for path in paths if os.path.isabs(path)][:_MOST_PATHS]


def _says_failed(*responses: Any) -> bool:
    """Whether one of these answers of a tool says that it failed."""
    answers = [cast("dict[str, Any]", one) for one in responses if isinstance(one, dict)]
    return any(one.get("error") or one.get("isError") or one.get("resultType") in _FAILED_RESULTS for one in answers)


def _text(value: Any) -> str:
    return value if isinstance(value, str) and 0 < len(value) < 4096 and "\0" not in value else ""


def _id(value: Any) -> str:
    return value if isinstance(value, str) and _ID.fullmatch(value) is not None else ""


def _folder(value: Any) -> str:
    """Return the path if it is an existing folder; otherwise ""."""
    path = _text(value)
    return path if os.path.isabs(path) and os.path.isdir(path) else ""
