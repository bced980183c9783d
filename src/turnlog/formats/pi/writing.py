"""A session as pi would have written it: a header, and entries in one chain; the last line is where it stands."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.compactedview import as_uuid, iso, provider_of, short_id, unused, view_of, when
from turnlog.formats._shared.losses import carried_by_compaction, count_losses
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.transcript import put_session
from turnlog.interop.copied import mark_of
from turnlog.interop.value import fields, json_text
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message
from turnlog.log.usage import Usage

_STOPS = {"end": "stop", "length": "length", "tool_use": "toolUse"}
_PROVIDERS = {"google": "gemini", "openai-codex": "openai"}
_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses", "gemini": "google-generative-ai"}


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    session = transcript.source_id if transcript.agent == "pi" else as_uuid("session", transcript.id)
    writer = _Writer(transcript, session)
    writer.run()
    data = b"".join(msgspec.json.encode(record) + b"\n" for record in writer.records)
    stamp = iso(None, transcript.created).replace(":", "-").replace(".", "-")
    name = f"{folder_of(transcript.folder or '/')}/{stamp}_{_file_name(session)}.jsonl"
    return Rendered(id=session, files=[OutputFile(name, data, 0o600)], lost=writer.tally.losses())


def folder_of(workspace: str) -> str:
    """The name of the folder for a project."""
    path = workspace[1:] if workspace[:1] in "/\\" else workspace
    name = "".join("-" if char in "/\\:" else char for char in path)
    if len(name.encode()) > 240:
        name = f"{name[:60]}-{short_id(workspace, length=16)}"
    return f"--{name}--"


def _file_name(session: str) -> str:
    plain = all(char.isascii() and (char.isalnum() or char in "._-") for char in session)
    return session if plain and session.strip(".") and len(session) <= 120 else as_uuid("session", session)


class _Writer:
    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._is_own = transcript.agent == "pi"
        self._parent: str | None = None
        self._taken: set[str] = set()
        self._calls: dict[str, tuple[str, str]] = {}
        """The newest call of each id: which one it has there, and its name."""
        self._called: set[str] = set()
        self._at = transcript.created
        self._end = iso(transcript.updated, transcript.created)
        self.records: list[dict[str, Any]] = []
        self.tally = Tally()

    def run(self) -> None:
        transcript, view = self._transcript, view_of(self._transcript)
        self.records.append({
            "type": "session",
            "version": 3,
            "id": self._session,
            "timestamp": iso(None, transcript.created),
            "cwd": transcript.folder or "/",
            **mark_of(transcript.copied),
        })  # fmt: skip
        if view.compaction is not None:
            # What it kept stands before it and is named, or behind it where more than a text stands between.
            before, behind = ([], [*view.other_replacement, *view.kept]) if view.other_replacement else (view.kept, [])
            self._messages(view.hidden)
            start = len(self.records)
            self._messages(before)
            first = self.records[start]["id"] if len(self.records) > start else ""
            self._compaction(view.summary, first, view.compaction)
            self._messages(behind)
        self._messages(view.messages)
        if transcript.title:
            self._entry("session_info", "title", self._end, {"name": transcript.title})
        own: set[LossWord] = {"details of a tool result"} if self._is_own else set()
        carried = _CARRIED | own | carried_by_compaction(transcript, view)
        count_losses(transcript, view, self.tally, carried=carried, facts=self._facts())

    def _facts(self) -> list[str]:
        """What the program itself once said of the session goes back to it."""
        facts = self._transcript.facts if self._is_own else {}
        provider, model, level = (facts.get(key) for key in ("provider", "model", "thinking_level"))
        carried: list[str] = []
        if isinstance(provider, str) and isinstance(model, str):
            self._entry("model_change", "model", self._end, {"provider": provider, "modelId": model})
            carried.append("provider")
        if isinstance(level, str):
            self._entry("thinking_level_change", "thinking", self._end, {"thinkingLevel": level})
            carried.append("thinking_level")
        return carried

    def _entry(self, kind: str, name: str, at: str, about: dict[str, Any]) -> None:
        id = short_id(self._session, name)
        while id in self._taken:
            id = short_id(id, name, "again")
        self._taken.add(id)
        self.records.append({"type": kind, "id": id, "parentId": self._parent, "timestamp": at, **about})
        self._parent = id

    def _compaction(self, summary: str, first: str, entry: Compaction) -> None:
        at = self.records[-1]["timestamp"]
        about: dict[str, Any] = {"summary": summary or "(none)", "tokensBefore": entry.tokens_before or 0}
        if entry.usage is not None:
            about["usage"] = _usage(entry.usage)
        self._entry("compaction", "compaction", at, about)
        # Where it kept nothing, what stays begins with the compaction itself.
        self.records[-1]["firstKeptEntryId"] = first or self.records[-1]["id"]

    def _messages(self, messages: list[Message]) -> None:
        for message in messages:
            moment = self._at = when(message) or self._at
            at, ms = iso(moment, moment), int(moment.timestamp() * 1000)
            for number, raw in enumerate(self._raw(message, ms)):
                self._entry("message", f"{message.id} {message.seq} {number}", at, {"message": raw})

    def _raw(self, message: Message, ms: int) -> list[dict[str, Any]]:
        if message.role == "assistant":
            return [self._assistant(message, ms)]
        if message.role == "tool":
            return [self._result(block, ms) for block in message.blocks if isinstance(block, ToolResult)]
        self.tally.add("role of a system message", "a message of the user's", int(message.role == "system"))
        parts = [self._said(block) for block in message.blocks] or [{"type": "text", "text": "(no content)"}]
        return [{"role": "user", "content": parts, "timestamp": ms}]

    def _assistant(self, message: Message, ms: int) -> dict[str, Any]:
        named = {key: value for key, value in fields(message.meta).items() if isinstance(value, str)}
        provider = named.get("provider", provider_of(message.model))
        api = named.get("api", _APIS.get(provider, "openai-completions"))
        content = [part for block in message.blocks if (part := self._answer(block, provider)) is not None]
        called = any(part["type"] == "toolCall" for part in content)
        # An answer that it thinks failed would not go to the model.
        self.tally.add("stop reason", "a plain end", int(message.stop in ("error", "aborted")))
        self.tally.add("error of an answer", "", int(bool(message.error)))
        return {
            "role": "assistant",
            "content": content,
            "api": api,
            "provider": provider,
            "model": message.model or "unknown",
            "usage": _usage(message.usage or Usage()),
            "stopReason": _STOPS.get(message.stop or "", "toolUse" if called else "stop"),
            "timestamp": ms,
        }

    def _answer(self, block: AnyBlock, provider: str) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        if isinstance(block, ToolCall) and block.by is None:
            id, name = self._calls[block.id] = unused(block.id or "call", self._called, "call"), block.name or "unknown"
            return {"type": "toolCall", "id": id, "name": name, "arguments": self.tally.input_object(block)}
        if isinstance(block, Thinking):
            return self._thinking(block, provider)
        return {"type": "text", "text": self.tally.stand_in_for(block)}

    def _thinking(self, block: Thinking, provider: str) -> dict[str, Any] | None:
        data = fields(block.data)
        if not self._is_own or block.provider not in (provider, _PROVIDERS.get(provider), None):
            self.tally.add("reasoning")
            return None
        thinking: dict[str, Any] = {"type": "thinking", "thinking": block.text}
        if isinstance(data.get("item"), dict):
            return {**thinking, "thinkingSignature": json_text(data["item"])}
        if isinstance(data.get("redacted"), str):
            return {**thinking, "thinkingSignature": data["redacted"], "redacted": True}
        if isinstance(data.get("signature"), str):
            thinking["thinkingSignature"] = data["signature"]
        return thinking

    def _result(self, block: ToolResult, ms: int) -> dict[str, Any]:
        content = block.content
        parts = [Text(text=content)] if isinstance(content, str) else content
        call, name = self._calls.get(block.call, (block.call, "unknown"))
        result = {
            "role": "toolResult",
            "toolCallId": call,
            "toolName": block.name or name,
            "content": [self._said(part, " in a tool result") for part in parts],
            "isError": block.is_error,
            "timestamp": ms,
        }
        return {**result, "details": block.details} if block.details is not None and self._is_own else result

    def _said(self, block: AnyBlock, where: str = "") -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        if isinstance(block, Image) and block.data is not None:
            kind = block.media_type or "image/png"
            return {"type": "image", "data": b64encode(block.data).decode(), "mimeType": kind}
        return {"type": "text", "text": self.tally.stand_in_for(block, where)}


_CARRIED: frozenset[LossWord] = frozenset((
    "reported cost", "cache write count", "stop reason", "error of an answer", "size before a compaction",
))  # fmt: skip
"""Reported where it is met, or not a loss."""
WRITING = Writing(render=write, place=put_session, carried=_CARRIED)


def _usage(usage: Usage) -> dict[str, Any]:
    total = (usage.cost_micros or 0) / 1_000_000
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cacheRead": usage.cache_read_tokens,
        "cacheWrite": usage.cache_write_tokens + usage.cache_write_1h_tokens,
        "totalTokens": usage.all_input_tokens + usage.output_tokens,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": total},
    }
