"""A session as Claude Code would have written it: one chain, each call answered in a record of the user's."""

from __future__ import annotations

import json
import os
import re
import unicodedata
from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.copied import mark_of
from turnlog.formats._shared.place import safe_name
from turnlog.formats._shared.rest import tell_rest
from turnlog.formats._shared.tally import Tally, stand_in
from turnlog.formats._shared.transcript import put_session
from turnlog.formats._shared.value import fields
from turnlog.formats._shared.view import as_uuid, iso, short_id, view_of, when
from turnlog.formats.claude_code.mirror import LINE, is_elsewhere, is_mirrored, kept_line
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Custom, Message
from turnlog.log.usage import Usage

_VERSION = "2.1.197"
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_STOPS = {"end": "end_turn", "tool_use": "tool_use", "length": "max_tokens"}
_BOUND = re.compile(r"[^a-zA-Z0-9_-]")
_CONTINUED = (
    "This session is being continued from a previous conversation that was compacted. What was said before:\n\n"
)


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    mine = transcript.source_id if transcript.agent == "claude-code" else transcript.id
    session = as_uuid(mine) if transcript.agent == "claude-code" else as_uuid("session", mine)
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
        self.records = [line for entry in entries if (line := kept_line(entry)) is not None]
        return True

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
        carried = _CARRIED | ({"details of a tool result"} if self._is_own else set[str]())
        tell_rest(transcript, view, self.tally, carried=carried, facts=self._facts())

    def _facts(self) -> list[str]:
        """What the program itself once said of the session goes back to it."""
        facts = self._transcript.facts if self._is_own else {}
        tags, mode = facts.get("tags"), facts.get("permission_mode")
        carried: list[str] = []
        if isinstance(tags, list) and len(tags) == 1 and isinstance(tags[0], str):  # pyright: ignore[reportUnknownArgumentType]
            self.records.append({"type": "tag", "tag": tags[0], "sessionId": self._session})
            carried.append("tags")
        if isinstance(mode, str):
            self.records.append({"type": "permission-mode", "permissionMode": mode, "sessionId": self._session})
            carried.append("permission_mode")
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
            parts = [self._result(block) for block in message.blocks if isinstance(block, ToolResult)]
            if parts:
                about: dict[str, Any] = {"message": {"role": "user", "content": parts}}
                if self._asked is not None:
                    about["sourceToolAssistantUUID"] = self._asked
                details = [b.details for b in message.blocks if isinstance(b, ToolResult) and b.details]
                if self._is_own and details:
                    about["toolUseResult"] = details[0]
                self._record("user", uuid, at, about)
        else:
            if message.role == "system":
                self.tally.add("role of a system message", "a message of the user's")
            parts = [part for block in message.blocks if (part := self._said(block)) is not None]
            only = parts[0].get("text") if len(parts) == 1 and parts[0]["type"] == "text" else None
            if not parts:
                only = "(no content)"
            about = {"message": {"role": "user", "content": only if only is not None else parts}}
            if message.display is False:
                about["isMeta"] = True
            elif message.display is not None and message.role == "user":
                self.tally.add("how a message is shown", "as it was sent")
            self._record("user", uuid, at, about)

    def _as_it_was(self, message: Message) -> bool:
        """The line that a message was made from, hung on what is before it now; False where it says something else."""
        line = kept_line(message, edited=message.seq in self._transcript.context.edited)
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
        if not parts:
            parts = [{"type": "text", "text": "(no content)"}]
        id = message.request if (message.request or "").startswith("msg_") else ""
        if not id or id in self._answers:
            id = f"msg_{short_id(self._session, uuid, length=24)}"
        self._answers.add(id)
        self._asked = uuid
        called = any(part["type"] == "tool_use" for part in parts)
        stop = "tool_use" if called else _STOPS.get(message.stop or "end", "end_turn")
        if message.stop in ("aborted", "error") or (message.stop == "length" and called):
            self.tally.add("stop reason", "a plain end")
        self._record(
            "assistant",
            uuid,
            at,
            {
                "message": {
                    "id": id,
                    "type": "message",
                    "role": "assistant",
                    "model": message.model or "<synthetic>",
                    "content": parts,
                    "stop_reason": stop,
                    "stop_sequence": None,
                    "usage": _usage(message.usage or Usage()),
                },
                "requestId": f"req_{short_id(message.id, length=24)}",
            },
        )

    def _boundary(self, trigger: str | None, tokens: int | None, summary: str) -> None:
        times = (record["timestamp"] for record in reversed(self.records) if "timestamp" in record)
        at = next(times, None) or iso(None, self._transcript.created)
        before, self._parent = self._parent, None
        kind = trigger if trigger in ("auto", "manual") else "manual"
        self._record(
            "system",
            as_uuid(self._session, "boundary"),
            at,
            {
                "subtype": "compact_boundary",
                "logicalParentUuid": before,
                "content": "Conversation compacted",
                "level": "info",
                "compactMetadata": {"trigger": kind, "preTokens": tokens or 0},
            },
        )
        about = {
            "isCompactSummary": True,
            "isVisibleInTranscriptOnly": True,
            "message": {
                "role": "user",
                "content": summary if summary.startswith("This session") else _CONTINUED + summary,
            },
        }
        self._record("user", as_uuid(self._session, "summary"), at, about)

    def _said(self, block: AnyBlock) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text} if block.text else None
        if isinstance(block, (Image, File)):
            return self._media(block)
        self.tally.add("unknown block", "a text that says so")
        return {"type": "text", "text": stand_in(block) or "[?]"}

    def _in_result(self, block: AnyBlock) -> dict[str, Any] | None:
        if isinstance(block, File):
            self.tally.add("file in a tool result", "a text that says so")
            return {"type": "text", "text": stand_in(block)}
        return self._media(block, in_result=True) if isinstance(block, Image) else self._said(block)

    def _media(self, block: Image | File, *, in_result: bool = False) -> dict[str, Any]:
        kind, what = block.media_type or "", "image" if isinstance(block, Image) else "document"
        if block.data is not None and (kind in _PICTURES or (what == "document" and kind == "application/pdf")):
            data = b64encode(block.data).decode()
            return {"type": what, "source": {"type": "base64", "media_type": kind, "data": data}}
        if block.url is not None and block.url.startswith("https://"):
            return {"type": what, "source": {"type": "url", "url": block.url}}
        where = " in a tool result" if in_result else ""
        self.tally.add(("image" if what == "image" else "file") + where, "a text that says so")
        return {"type": "text", "text": stand_in(block)}

    def _answer(self, block: AnyBlock) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text} if block.text.strip() else None
        if isinstance(block, ToolCall) and block.by is None:
            given = self.tally.given(block)
            return {"type": "tool_use", "id": self._call(block.id), "name": block.name or "unknown", "input": given}
        if isinstance(block, Thinking):
            data = fields(block.data)
            signature = data.get("signature")
            if block.provider == "anthropic" and isinstance(signature, str):
                return {"type": "thinking", "thinking": block.text, "signature": signature}
            if block.provider == "anthropic" and isinstance(data.get("redacted"), str):
                return {"type": "redacted_thinking", "data": data["redacted"]}
            self.tally.add("reasoning")
            return None
        return {"type": "text", "text": self.tally.said_in_words(block)}

    def _call(self, id: str) -> str:
        """The API takes ids of letters, digits, dashes and underscores, and each only once."""
        clean = _BOUND.sub("_", id)
        unique = clean if clean == id and id and len(id) <= 64 else f"toolu_{short_id(id, length=24)}"
        while unique in self._called:
            unique = f"toolu_{short_id(unique, 'again', length=24)}"
        self._called.add(unique)
        self._calls[id] = unique
        return unique

    def _result(self, block: ToolResult) -> dict[str, Any]:
        content: Any = block.content
        if not isinstance(content, str):
            content = [part for inner in content if (part := self._in_result(inner)) is not None]
        record = {"type": "tool_result", "tool_use_id": self._calls.get(block.call, block.call), "content": content}
        return {**record, "is_error": True} if block.is_error else record


_CARRIED = frozenset((
    "cache write by duration", "cache write count", "stop reason", "how a message is shown", "trigger of a compaction",
    "size before a compaction",
))  # fmt: skip
"""Reported where it is met, or not a loss."""
WRITING = Writing(render=write, place=put_session, carried=_CARRIED)


def _usage(usage: Usage) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.cache_write_1h_tokens:
        counts["cache_creation"] = {
            "ephemeral_5m_input_tokens": usage.cache_write_tokens,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_tokens,
        }
    return counts
