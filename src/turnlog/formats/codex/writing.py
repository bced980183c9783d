"""A session as Codex would have recorded it: response items for the model, events for the screen."""

from __future__ import annotations

import os
from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.compactedview import as_uuid, iso, short_id, spoken_on, text_of, view_of, when
from turnlog.formats._shared.losses import count_losses
from turnlog.formats._shared.tally import Tally, plain_text
from turnlog.formats.codex.rollout import is_aside, is_failed_output
from turnlog.interop.copied import mark_of
from turnlog.interop.place import appending, put_files
from turnlog.interop.records import record_in
from turnlog.interop.value import fields, json_text
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import split_system
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.context.toolturn import INTERRUPTED
from turnlog.log.entry import Compaction, Message, Spent
from turnlog.log.usage import Usage

_VERSION = "0.166.0"


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    is_own = transcript.agent == "codex"
    session = as_uuid(transcript.source_id) if is_own else as_uuid("session", transcript.id)
    writer = _Writer(transcript, session)
    writer.run()
    data = b"".join(msgspec.json.encode(record) + b"\n" for record in writer.records)
    stamp = transcript.created.astimezone()
    name = f"{stamp:%Y/%m/%d}/rollout-{stamp:%Y-%m-%dT%H-%M-%S}-{session}.jsonl"
    return Rendered(
        id=session, files=[OutputFile(name, data, 0o600)], lost=writer.tally.losses(), about=transcript.title
    )


def place(written: Rendered, folder: str, *, force: bool = False) -> str:
    """See `turnlog.formats`. The folder is `~/.codex/sessions` or stands for it."""
    home, base = os.path.split(os.path.abspath(folder))
    if not written.about or base != "sessions":
        return put_files(written.files, folder, force=force)[0]
    # Its title goes into the list of names, which Codex only ever appends to.
    data = written.files[0].data
    last = record_in(data[data.rfind(b"\n", 0, -1) + 1 :])
    row = {"id": written.id, "thread_name": written.about, "updated_at": last.get("timestamp")}
    with appending(os.path.realpath(os.path.join(home, "session_index.jsonl")), mode=0o600) as append:
        path = put_files(written.files, folder, force=force)[0]
        append(msgspec.json.encode(row) + b"\n")
    return path


class _Writer:
    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._is_own = transcript.agent == "codex"
        self._at = iso(None, transcript.created)
        self._turns = 0
        self._turn = ""
        """The turn that is not ended yet."""
        self._spoken: str | None = None
        """What the model said last."""
        self._total = Usage()
        self._model: str | None = None
        self._custom: set[str] = set()
        self.records: list[dict[str, Any]] = []
        self.tally = Tally()

    def run(self) -> None:
        transcript, view = self._transcript, view_of(self._transcript)
        self._meta()
        # What the program itself put before the conversation goes back to it.
        leading = split_system(spoken_on(transcript.path))[0] if self._is_own else []
        for message in [*leading, *view.hidden, *view.kept]:
            self._message(message)
        if view.compaction is not None:
            self._end_turn()
            stays = [*view.summary_messages, *view.other_replacement, *view.kept]
            history = [item for message in stays for item in self._items(message)]
            self._add("compacted", {"message": view.summary, "replacement_history": history})
            self._event("context_compacted")
        for message in view.messages:
            self._message(message)
        self._end_turn()
        for entry in transcript.entries():
            if isinstance(entry, (Spent, Compaction)) and entry.usage is not None:
                self._count(entry.usage)  # what no answer names still counts
        own: set[LossWord] = {"system prompt"} if self._is_own else set()
        count_losses(transcript, view, self.tally, carried=_CARRIED | own, facts=self._facts())

    def _facts(self) -> list[str]:
        """Which settings, as the program itself once said them, it understands today."""
        facts = self._transcript.facts if self._is_own else {}
        fine = {
            "effort": isinstance(facts.get("effort"), str),
            "approval_policy": facts.get("approval_policy") in _APPROVALS,
            "sandbox_policy": fields(facts.get("sandbox_policy")).get("type") in _SANDBOXES,
        }
        return [name for name, is_fine in fine.items() if is_fine and self._model is not None]

    def _count(self, usage: Usage) -> None:
        self._total = self._total + usage
        totals = {"total_token_usage": _tokens(self._total), "last_token_usage": _tokens(usage)}
        self._event("token_count", info={**totals, "model_context_window": None}, rate_limits=None)

    def _add(self, kind: str, payload: dict[str, Any]) -> None:
        self.records.append({"timestamp": self._at, "type": kind, "payload": payload})

    def _event(self, kind: str, **about: Any) -> None:
        self._add("event_msg", {"type": kind, **about})

    def _meta(self) -> None:
        transcript = self._transcript
        origin = fields(transcript.origin) if self._is_own else {}
        system = transcript.facts.get("system") if self._is_own else None
        self._add(
            "session_meta",
            {
                "id": self._session,
                "timestamp": self._at,
                "cwd": transcript.folder or "/",
                "originator": origin.get("originator") or "codex_cli_rs",
                "cli_version": origin.get("cli_version") or _VERSION,
                "source": origin.get("source") if isinstance(origin.get("source"), str) else "cli",
                # One that is named and not the user's own is refused, and not even listed.
                "model_provider": origin.get("model_provider"),
                "base_instructions": {"text": system} if isinstance(system, str) and system else None,
                "history_mode": "legacy",
                **({"git": origin["git"]} if isinstance(origin.get("git"), dict) else {}),
                **mark_of(transcript.copied),
            },
        )

    def _begin_turn(self) -> None:
        self._end_turn()
        self._turns += 1
        self._turn = as_uuid(self._session, "turn", str(self._turns))
        self._event("task_started", turn_id=self._turn, model_context_window=None)

    def _end_turn(self) -> None:
        if self._turn:
            self._event("task_complete", turn_id=self._turn, last_agent_message=self._spoken)
            self._turn = ""

    def _message(self, message: Message) -> None:
        if when(message) is not None:
            self._at = iso(when(message), self._transcript.created)
        first = message.blocks[0] if len(message.blocks) == 1 else None
        if self._is_own and isinstance(first, Thinking) and first.provider == "openai" and compacted(first):
            self._add("compacted", {"message": first.text, "replacement_history": compacted(first)})
            self._event("context_compacted")
        elif message.role == "assistant":
            self._assistant(message)
        else:
            is_shown = message.role == "user" and message.display is not False
            if message.role == "user" and message.display is not None and (is_shown or not is_aside(text_of(message))):
                self.tally.add("how a message is shown", "as it was sent")
            if is_shown:
                self._begin_turn()
                self._event("user_message", message=text_of(message), local_images=[], text_elements=[])
            for item in self._items(message):
                self._add("response_item", item)

    def _assistant(self, message: Message) -> None:
        if message.model and message.model != self._model:
            self._model = message.model
            self._context(message.model)
        items = self._items(message)
        self.tally.add("message without content", "what it cost", int(not items))
        for item in items:
            if item["type"] == "message":
                self._spoken = "".join(part["text"] for part in item["content"])
                self._event("agent_message", message=self._spoken)
            self._add("response_item", item)
        # The count of tokens is what tells one answer from the next.
        self._count(message.usage or Usage())

    def _context(self, model: str) -> None:
        settings = {name: self._transcript.facts[name] for name in self._facts()}
        self._add(
            "turn_context",
            {
                "cwd": self._transcript.folder or "/",
                "approval_policy": settings.get("approval_policy") or "on-request",
                "sandbox_policy": settings.get("sandbox_policy") or {"type": "read-only"},
                "model": model,
                **({"effort": settings["effort"]} if settings.get("effort") is not None else {}),
                "summary": "auto",
            },
        )

    def _items(self, message: Message) -> list[dict[str, Any]]:
        if message.role == "tool":
            return [self._output(block) for block in message.blocks if isinstance(block, ToolResult)]
        if message.role != "assistant":
            role = "user" if message.role == "user" else "developer"
            parts = [self._said(block) for block in message.blocks] or [{"type": "input_text", "text": "(no content)"}]
            return [{"type": "message", "role": role, "content": parts}]
        items: list[dict[str, Any]] = []
        for block in message.blocks:
            if isinstance(block, Text):
                if block.text:
                    items.append(_spoken(block.text))
            elif isinstance(block, ToolCall) and block.by is None:
                items.append(self._call(block))
            elif isinstance(block, Thinking):
                items += self._reasoning(block)
            else:
                items.append(_spoken(self.tally.stand_in_for(block)))
        return items

    def _reasoning(self, block: Thinking) -> list[dict[str, Any]]:
        """Reasoning that Codex itself recorded goes back to it; no other means anything to it."""
        item = fields(fields(block.data).get("item"))
        if self._transcript.agent == "codex" and block.provider == "openai" and (item or compacted(block)):
            return compacted(block) or [{"type": "reasoning", **item}]
        self.tally.add("reasoning")
        return []

    def _call(self, block: ToolCall) -> dict[str, Any]:
        name = block.name or "unknown"
        is_custom = fields(fields(block.meta).get("openai")).get("type") == "custom"
        if is_custom and isinstance(block.input, str):
            self._custom.add(block.id)
            return {"type": "custom_tool_call", "name": name, "input": block.input, "call_id": self._id(block.id)}
        self._custom.discard(block.id)
        given = json_text(block.input if block.input is not None else {})
        item = {"type": "function_call", "name": name, "arguments": given, "call_id": self._id(block.id)}
        space = fields(fields(block.meta).get("openai")).get("namespace")
        return {**item, "namespace": space} if self._is_own and isinstance(space, str) else item

    def _id(self, id: str) -> str:
        return id if 0 < len(id) <= 64 else f"call_{short_id(id, length=24)}"

    def _output(self, block: ToolResult) -> dict[str, Any]:
        content, output = block.content, plain_text(block.content)
        if not isinstance(content, str) and not all(isinstance(part, Text) for part in content):
            output = [self._said(part, " in a tool result") for part in content]
        if block.is_error and output != INTERRUPTED and not (isinstance(output, str) and is_failed_output(output)):
            self.tally.add("error flag of a tool result", "the words of its result")
        kind = "custom_tool_call_output" if block.call in self._custom else "function_call_output"
        return {"type": kind, "call_id": self._id(block.call), "output": output}

    def _said(self, block: AnyBlock, where: str = "") -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "input_text", "text": block.text}
        if isinstance(block, Image) and (block.data is not None or (block.url or "").startswith(("https://", "data:"))):
            kind = block.media_type or "image/png"
            url = block.url if block.data is None else f"data:{kind};base64,{b64encode(block.data).decode()}"
            return {"type": "input_image", "image_url": url}
        return {"type": "input_text", "text": self.tally.stand_in_for(block, where)}


_CARRIED: frozenset[LossWord] = frozenset((
    "cache write count", "reasoning count", "spending apart from answers", "how a message is shown",
    "role of a system message",
))  # fmt: skip
"""Reported where it is met, or not a loss."""
WRITING = Writing(render=write, place=place, carried=_CARRIED)
_APPROVALS = ("untrusted", "on-failure", "on-request", "never")
_SANDBOXES = ("read-only", "workspace-write", "danger-full-access")


def _spoken(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.all_input_tokens,
        "cached_input_tokens": usage.cache_read_tokens,
        "cache_write_input_tokens": usage.cache_write_tokens + usage.cache_write_1h_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_tokens,
        "total_tokens": usage.all_input_tokens + usage.output_tokens,
    }
