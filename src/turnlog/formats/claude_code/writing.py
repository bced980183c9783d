"""A session as Claude Code would have written it: one chain, each call answered in a record of the user's."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.compactedview import as_uuid, iso, short_id, unused, view_of, when
from turnlog.formats._shared.losses import count_losses
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.transcript import put_session
from turnlog.formats.claude_code.heading import CHAIN
from turnlog.formats.claude_code.mirror import LINE, is_elsewhere, is_mirrored, kept_line
from turnlog.interop.copied import mark_of
from turnlog.interop.place import safe_name
from turnlog.interop.value import as_list, fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import AnyEntry, Custom, Message
from turnlog.log.usage import Usage

_VERSION = "2.1.197"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_STOPS = {"end": "end_turn", "tool_use": "tool_use", "length": "max_tokens"}
_FACTS = {"tags": ("tag", "tag"), "permission_mode": ("permission-mode", "permissionMode")}
_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_CONTINUED = (
    "This session is being continued from a previous conversation that was compacted. What was said before:\n\n"
)


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    is_own = transcript.agent == "claude-code"
    session = as_uuid(transcript.source_id) if is_own else as_uuid("session", transcript.id)
    writer = _Writer(transcript, session)
    if not writer.mirror():
        writer.run()
    data = b"".join(_encoded(record) + b"\n" for record in writer.records)
    name = f"{project_key(transcript.workspace or '')}/{session}.jsonl"
    return Rendered(id=session, files=[OutputFile(name, data, 0o600)], lost=writer.tally.losses())


def _encoded(record: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(record)
    except (OverflowError, UnicodeEncodeError):  # a line that was kept, and says what few can
        return json.dumps(record, separators=(",", ":")).encode()


def project_key(workspace: str) -> str:
    """The name of the folder for a project."""
    path = unicodedata.normalize("NFC", os.path.realpath(workspace) if workspace else "")
    key = "".join(char if char.isascii() and char.isalnum() else "-" for char in path)
    return safe_name(key if len(key) <= 200 else f"{key[:200]}-{short_id(path)}", limit=255) if key else "-"


class _Writer:
    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._folder = transcript.folder or "/"
        self._session = session
        self._parent: str | None = None
        self._asked: str | None = None
        """The last answer, which results belong to."""
        self._is_own = transcript.agent == "claude-code"
        self._number = 0
        self._taken: set[str] = set()
        self._at = ""
        self._answers: set[str] = set()
        self._calls: dict[str, str] = {}
        """The id that each call has there, by the one it has here: the newest of that id."""
        self._called: set[str] = set()
        self.records: list[dict[str, Any]] = []
        self.tally = Tally()

    def mirror(self) -> bool:
        """The lines that the session was made from, whatever branch they are on; False where they do not tell all."""
        entries = list(self._transcript.entries())
        if not any(map(is_mirrored, entries)) or any(map(is_elsewhere, entries)):
            return False
        self.records = [line for entry in entries if (line := self._line(entry)) is not None]
        first = next((record for record in self.records if record.get("type") in CHAIN), None)
        if first is not None and self._transcript.is_free:  # any other is written to the byte
            first |= mark_of(self._transcript.copied)
        return True

    def _line(self, entry: AnyEntry, *, edited: bool = False) -> dict[str, Any] | None:
        """The line that an entry was made from, without what it cost where that counts elsewhere."""
        line = kept_line(entry, edited=edited)
        message = fields(fields(line).get("message"))
        if line is None or not self._transcript.is_free or "usage" not in message:
            return line
        return {**line, "message": {**message, "usage": _usage(Usage())}}

    def run(self) -> None:
        """What it would have written."""
        transcript, view = self._transcript, view_of(self._transcript)
        for message in view.hidden:
            self._message(message)
        if view.compaction is not None:
            self._boundary(view.compaction.trigger, view.compaction.tokens_before, view.summary)
        # What a compaction kept stands behind it, and only there: nothing counts twice.
        for message in [*view.other_replacement, *view.kept, *view.messages]:
            self._message(message)
        if self.records:
            self.records[0] |= mark_of(transcript.copied)
        lines = (kept_line(entry) for entry in transcript.entries() if isinstance(entry, Custom))
        self.records += [line for line in lines if line is not None and "uuid" not in line]
        if transcript.title:
            self.records.append({"type": "custom-title", "customTitle": transcript.title, "sessionId": self._session})
        own: set[LossWord] = {"details of a tool result"} if self._is_own else set()
        count_losses(transcript, view, self.tally, carried=_CARRIED | own, facts=self._facts())

    def _facts(self) -> list[str]:
        """What the program itself once said of the session goes back to it."""
        facts = self._transcript.facts if self._is_own else {}
        tags = as_list(facts.get("tags"))
        values = {"tags": tags[0] if len(tags) == 1 else None, "permission_mode": facts.get("permission_mode")}
        carried = [fact for fact, value in values.items() if isinstance(value, str)]
        for fact in carried:
            kind, name = _FACTS[fact]
            self.records.append({"type": kind, name: values[fact], "sessionId": self._session})
        return carried

    def _record(self, kind: str, uuid: str, at: str, about: dict[str, Any]) -> None:
        self.records.append({
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._folder,
            "sessionId": self._session,
            "version": _VERSION,
            "gitBranch": "",
            "type": kind,
            **about,
            "uuid": uuid,
            "timestamp": at,
        })  # fmt: skip
        self._parent = uuid

    def _uuid(self, message: Message) -> str:
        """The id it had; a message that appears again, and one that never had any, get one of their own."""
        self._number += 1
        wanted = as_uuid(message.id) if len(message.id) == 36 else as_uuid(self._session, message.id)
        if wanted in self._taken:
            wanted = as_uuid(self._session, message.id, str(self._number))
        self._taken.add(wanted)
        return wanted

    def _message(self, message: Message) -> None:
        if is_mirrored(message) and self._as_it_was(message):
            return
        uuid = self._uuid(message)
        if when(message) is not None or not self._at:
            self._at = iso(when(message), self._transcript.created)
        at = self._at
        if message.role == "assistant":
            self._assistant(message, uuid, at)
        elif message.role == "tool":
            results = [block for block in message.blocks if isinstance(block, ToolResult)]
            details = next((block.details for block in results if block.details), None) if self._is_own else None
            about: dict[str, Any] = {"message": {"role": "user", "content": [self._result(one) for one in results]}}
            about |= {"sourceToolAssistantUUID": self._asked} if self._asked is not None else {}
            about |= {"toolUseResult": details} if details else {}
            if results:
                self._record("user", uuid, at, about)
        else:
            self.tally.add("role of a system message", "a message of the user's", int(message.role == "system"))
            parts = [part for block in message.blocks if (part := self._said(block)) is not None]
            content: Any = parts or "(no content)"
            if len(parts) == 1 and parts[0]["type"] == "text":
                content = parts[0]["text"]
            about = {"message": {"role": "user", "content": content}}
            if message.display is False:
                about["isMeta"] = True
            elif message.display is not None and message.role == "user":
                self.tally.add("how a message is shown", "as it was sent")
            self._record("user", uuid, at, about)

    def _as_it_was(self, message: Message) -> bool:
        """The line that a message was made from, hung on what is before it now; False where it says something else."""
        line = self._line(message, edited=message.seq in self._transcript.context.edited)
        if line is None:
            return fields(message.meta)[LINE] is None  # the line behind it has it as well
        self.records.append({**line, "parentUuid": self._parent})
        self._parent = str(line.get("uuid") or self._parent)
        self._taken.add(self._parent)
        if message.role == "assistant":
            self._asked = self._parent
            self._called |= {block.id for block in message.blocks if isinstance(block, ToolCall)}
        return True

    def _assistant(self, message: Message, uuid: str, at: str) -> None:
        parts = [part for block in message.blocks if (part := self._answer(block)) is not None]
        parts = parts or [{"type": "text", "text": "(no content)"}]
        id = message.request if (message.request or "").startswith("msg_") else ""
        if not id or id in self._answers:
            id = f"msg_{short_id(self._session, uuid, length=24)}"
        self._answers.add(id)
        self._asked = uuid
        called = any(part["type"] == "tool_use" for part in parts)
        stop = "tool_use" if called else _STOPS.get(message.stop or "end", "end_turn")
        if message.stop in ("aborted", "error") or (message.stop == "length" and called):
            self.tally.add("stop reason", "a plain end")
        answer: dict[str, Any] = {
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": message.model or "<synthetic>",
            "content": parts,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": _usage(message.usage or Usage()),
        }
        about = {"message": answer, "requestId": f"req_{short_id(message.id, length=24)}"}
        self._record("assistant", uuid, at, about)

    def _boundary(self, trigger: str | None, tokens: int | None, summary: str) -> None:
        times = (record["timestamp"] for record in reversed(self.records) if "timestamp" in record)
        at = next(times, None) or iso(None, self._transcript.created)
        boundary: dict[str, Any] = {
            "subtype": "compact_boundary",
            "logicalParentUuid": self._parent,
            "content": "Conversation compacted",
            "level": "info",
            "compactMetadata": {"trigger": "auto" if trigger == "auto" else "manual", "preTokens": tokens or 0},
        }
        self._parent = None
        self._record("system", as_uuid(self._session, "boundary"), at, boundary)
        content = summary if summary.startswith("This session") else _CONTINUED + summary
        said = {"message": {"role": "user", "content": content}}
        about = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True, **said}
        self._record("user", as_uuid(self._session, "summary"), at, about)

    def _said(self, block: AnyBlock, where: str = "") -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text} if block.text else None
        if isinstance(block, Image) or (isinstance(block, File) and not where):
            return self._media(block, where)
        return {"type": "text", "text": self.tally.stand_in_for(block, where)}

    def _media(self, block: Image | File, where: str) -> dict[str, Any]:
        kind, what = block.media_type or "", "image" if isinstance(block, Image) else "document"
        if block.data is not None and (kind in _PICTURES or (what == "document" and kind == "application/pdf")):
            data = b64encode(block.data).decode()
            return {"type": what, "source": {"type": "base64", "media_type": kind, "data": data}}
        if block.url is not None and block.url.startswith("https://"):
            return {"type": what, "source": {"type": "url", "url": block.url}}
        return {"type": "text", "text": self.tally.stand_in_for(block, where)}

    def _answer(self, block: AnyBlock) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text} if block.text.strip() else None
        if isinstance(block, ToolCall) and block.by is None:
            given = self.tally.input_object(block)
            return {"type": "tool_use", "id": self._call(block.id), "name": block.name or "unknown", "input": given}
        if isinstance(block, Thinking):
            data = fields(block.data) if block.provider == "anthropic" else {}
            if isinstance(data.get("signature"), str):
                return {"type": "thinking", "thinking": block.text, "signature": data["signature"]}
            if isinstance(data.get("redacted"), str):
                return {"type": "redacted_thinking", "data": data["redacted"]}
            self.tally.add("reasoning")
            return None
        return {"type": "text", "text": self.tally.stand_in_for(block)}

    def _call(self, id: str) -> str:
        """The API takes ids of letters, digits, dashes and underscores, and each only once."""
        wanted = id if _ID.fullmatch(id) else f"toolu_{short_id(id, length=24)}"
        self._calls[id] = unused(wanted, self._called, "toolu")
        return self._calls[id]

    def _result(self, block: ToolResult) -> dict[str, Any]:
        content: Any = block.content
        if not isinstance(content, str):
            content = [part for inner in content if (part := self._said(inner, " in a tool result")) is not None]
        record = {"type": "tool_result", "tool_use_id": self._calls.get(block.call, block.call), "content": content}
        return {**record, "is_error": True} if block.is_error else record


_CARRIED: frozenset[LossWord] = frozenset((
    "cache write by duration", "cache write count", "stop reason", "how a message is shown", "trigger of a compaction",
    "size before a compaction",
))  # fmt: skip
"""Reported where it is met, or not a loss."""
WRITING = Writing(render=write, place=put_session, carried=_CARRIED)


def _usage(usage: Usage) -> dict[str, Any]:
    short, hour = usage.cache_write_tokens, usage.cache_write_1h_tokens
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": short + hour,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    by_duration = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": hour}
    return {**counts, "cache_creation": by_duration} if hour else counts
