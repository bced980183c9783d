"""A session as `opencode import` takes it: one JSON document, with results inside the model's messages."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import msgspec

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript, Writing
from turnlog.formats._shared.compactedview import answered, provider_of, short_id, unused, view_of, when
from turnlog.formats._shared.losses import carried_by_compaction, count_losses
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.transcript import put_session
from turnlog.interop.copied import mark_of
from turnlog.interop.value import fields, text
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Message
from turnlog.log.prompt.promptmessage import preview
from turnlog.log.usage import Usage

_VERSION = "1.18.33"
_STOPS = {"end": "stop", "tool_use": "tool-calls", "length": "length", "error": "error", "aborted": "other"}


def write(transcript: Transcript) -> Rendered:
    """See `turnlog.formats`."""
    is_own = transcript.agent == "opencode" and re.fullmatch(r"ses_[0-9A-Za-z]+", transcript.source_id)
    created = int(transcript.created.timestamp() * 1000)
    session = transcript.source_id if is_own else _id("ses", created, transcript.id, is_falling=True)
    writer = _Writer(transcript, session)
    data = msgspec.json.encode(writer.run()) + b"\n"
    files = [OutputFile(f"{session}.json", data, 0o600)]
    return Rendered(id=session, files=files, lost=writer.tally.losses(), note=writer.note())


def _id(kind: str, ms: int, *names: str, number: int = 0, is_falling: bool = False) -> str:
    """An id that sorts by time as the program's own do: 12 hexadecimal digits of it, then letters."""
    count = (ms * 0x1000 + number) & 0xFFFFFFFFFFFF
    count = ~count & 0xFFFFFFFFFFFF if is_falling else count
    return f"{kind}_{count:012x}{short_id(kind, *names, str(number), length=14)}"


class _Writer:
    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._folder = transcript.folder or "/"
        self._number = 0
        self._called: set[str] = set()
        self._prompt = ""
        """The id of the last prompt there."""
        self._messages: list[dict[str, Any]] = []
        self._is_own = transcript.agent == "opencode"
        self._created = int(transcript.created.timestamp() * 1000)
        self._latest = 0
        last = next((m for m in reversed(transcript.context.messages) if m.model), None)
        provider, model = (_provider_of(last), last.model) if last is not None else ("unknown", "unknown")
        if transcript.model is not None:
            provider, _, model = transcript.model.partition("/")
        self._model = {"providerID": provider, "modelID": model}
        """It goes on with the model of the last prompt."""
        self._results: dict[str, tuple[ToolResult, int | None]] = {}
        """What answers the calls of the message that is being written, and when."""
        self.tally = Tally()

    def note(self) -> str:
        """With which model it goes on; nobody asks that of a session of its own."""
        if self._is_own:
            return ""
        name = f"{self._model['providerID']}/{self._model['modelID']}"
        if self._transcript.model is not None:
            return f"it goes on with {name}, the model that opencode is set to"
        return f"it goes on with {name}, and fails where opencode does not know that: -m PROVIDER/MODEL names another"

    def run(self) -> dict[str, Any]:
        transcript, view = self._transcript, view_of(self._transcript)
        if view.compaction is not None:
            # What it kept stands before it and is named, or behind it where more than a text stands between.
            before, behind = ([], [*view.other_replacement, *view.kept]) if view.other_replacement else (view.kept, [])
            self._all(view.hidden)
            start = len(self._messages)
            self._all(before)
            tail = self._messages[start]["info"]["id"] if len(self._messages) > start else None
            self._compaction(view.summary, tail, view.compaction)
            self._all(behind)
        self._all(view.messages)
        own: set[LossWord] = {"details of a tool result", "agent of a message"} if self._is_own else set()
        count_losses(transcript, view, self.tally, carried=_CARRIED | own | carried_by_compaction(transcript, view))
        provider, model = self._model["providerID"], self._model["modelID"]
        times = {"created": self._created, "updated": int(transcript.updated.timestamp() * 1000)}
        info = {
            "id": self._session, "slug": f"turnlog-{short_id(self._session)}", "projectID": "global",
            "directory": self._folder, "title": transcript.title or preview(transcript.context.messages) or "session",
            "version": _VERSION, "time": times,
            **({} if self._is_own else {"model": {"id": model, "providerID": provider}}),
            **({"metadata": mark_of(transcript.copied)} if transcript.copied is not None else {}),
        }  # fmt: skip
        return {"info": info, "messages": self._messages}

    def _all(self, messages: list[Message]) -> None:
        for message, results in answered(messages):
            self._results = {
                block.call: (block, None if at is None else int(at.timestamp() * 1000)) for block, at in results
            }
            times = [ms for _, ms in self._results.values() if ms is not None]
            self.tally.add("time of a tool result", "the last of them", len(set(times)) - bool(times))
            self._message(message)

    def _ms(self, message: Message) -> int:
        """Messages are loaded in the order of their times: none is before the one before it."""
        moment = when(message)
        if moment is None and self._latest:
            return self._latest
        ms = int(moment.timestamp() * 1000) if moment is not None else self._created
        self.tally.add("time of a message", "that of the one before it", int(ms < self._latest))
        self._latest = max(ms, self._latest)
        return self._latest

    def _add(self, info: dict[str, Any], parts: list[dict[str, Any]], ms: int) -> str:
        self._number += 1
        id = _id("msg", ms, self._session, number=self._number)
        owner = {"sessionID": self._session, "messageID": id}
        owned: list[dict[str, Any]] = []
        for part in parts:
            owned.append({"id": _id("prt", ms, id, number=len(owned)), **owner, **part})
            for number, file in enumerate(fields(part.get("state")).get("attachments") or []):
                file |= {"id": _id("prt", ms, id, "attached", str(len(owned)), number=number), **owner}
        self._messages.append({"info": {"id": id, "sessionID": self._session, **info}, "parts": owned})
        return id

    def _message(self, message: Message) -> None:
        ms = self._ms(message)
        if message.role == "assistant":
            self._assistant(message, ms)
            return
        self.tally.add("role of a system message", "a message of the user's", int(message.role == "system"))
        parts = [self._user_part(block) for block in message.blocks] or [{"type": "text", "text": "(no content)"}]
        if message.role == "user" and message.display is False and all(part["type"] == "text" for part in parts):
            parts = [{**part, "synthetic": True} for part in parts]
        elif message.role == "user" and message.display is not None:
            self.tally.add("how a message is shown", "as it was sent")
        self._user(parts, ms)

    def _user(self, parts: list[dict[str, Any]], ms: int) -> None:
        about = {"role": "user", "time": {"created": ms}, "agent": "build", "model": self._model}
        self._prompt = self._add(about, parts, ms)

    def _assistant(self, message: Message, ms: int) -> None:
        if not self._prompt:
            self._user([{"type": "text", "text": "(no prompt)", "synthetic": True}], ms)
        parts = [part for block in message.blocks if (part := self._answer_part(block, ms)) is not None]
        has_called = any(part["type"] == "tool" for part in parts)
        finish = _STOPS.get(message.stop or "", "tool-calls" if has_called else "stop")
        self.tally.add("stop reason", "a plain end", int(message.stop == "aborted"))
        agent, end = (message.agent if self._is_own else None) or "build", ms + (message.duration_ms or 0)
        info = self._answer_info(message, agent, provider=_provider_of(message), ms=ms, end_ms=end, finish=finish)
        self._add(info, parts, ms)

    def _answer_info(
        self, entry: Message | Compaction, agent: str, *, provider: str, ms: int, end_ms: int, finish: str
    ) -> dict[str, Any]:
        """What is known of an answer to the last prompt."""
        spent = entry.usage or Usage()
        return {
            "role": "assistant", "parentID": self._prompt, "modelID": entry.model or "unknown", "providerID": provider,
            "mode": agent, "agent": agent, "path": {"cwd": self._folder, "root": self._folder},
            "cost": (spent.cost_micros or 0) / 1_000_000, "tokens": _tokens(spent),
            "time": {"created": ms, "completed": end_ms}, "finish": finish,
        }  # fmt: skip

    def _compaction(self, summary: str, tail: str | None, entry: Compaction) -> None:
        ms = self._messages[-1]["info"]["time"]["created"] if self._messages else self._created
        part: dict[str, Any] = {"type": "compaction", "auto": entry.trigger == "auto"}
        if tail:
            part["tail_start_id"] = tail
        self._user([part], ms)
        provider = provider_of(entry.model)
        info = self._answer_info(entry, "compaction", provider=provider, ms=ms, end_ms=ms, finish="stop")
        self._add({**info, "summary": True}, [{"type": "text", "text": summary}], ms)

    def _user_part(self, block: AnyBlock) -> dict[str, Any]:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text}
        if isinstance(block, (Image, File)):
            return self._file(block)
        return {"type": "text", "text": self.tally.stand_in_for(block)}

    def _file(self, block: Image | File, where: str = "") -> dict[str, Any]:
        kind = block.media_type or ("image/png" if isinstance(block, Image) else "application/octet-stream")
        if block.data is not None:
            url = f"data:{kind};base64,{b64encode(block.data).decode()}"
        elif block.url:
            url = block.url
        else:
            return {"type": "text", "text": self.tally.stand_in_for(block, where)}
        return {"type": "file", "mime": kind, "url": url, **({"filename": block.name} if block.name else {})}

    def _answer_part(self, block: AnyBlock, ms: int) -> dict[str, Any] | None:
        if isinstance(block, Text):
            return {"type": "text", "text": block.text} if block.text else None
        if isinstance(block, ToolCall) and block.by is None:
            return self._tool(block, ms)
        if isinstance(block, Thinking):
            return self._thinking(block, ms)
        return self._user_part(block)

    def _tool(self, call: ToolCall, ms: int) -> dict[str, Any]:
        tool_input = self.tally.input_object(call)
        result, at = self._results.pop(call.id, (None, None))
        end = ms if at is None else at
        content = result.content if result is not None else "[no result]"
        blocks = [] if isinstance(content, str) else content
        output = content if isinstance(content, str) else "\n".join(b.text for b in blocks if isinstance(b, Text))
        media = [block for block in blocks if isinstance(block, (Image, File))]
        self.tally.add("unknown block", "", sum(not isinstance(block, (Text, Image, File)) for block in blocks))
        self.tally.add("time of a tool result", "that of the call", int(end < ms))
        end = max(end, ms)
        start = max(ms, end - result.duration_ms) if result is not None and result.duration_ms else end
        state: dict[str, Any] = {"input": tool_input, "time": {"start": start, "end": end}}
        details = result.details if self._is_own and result is not None else None
        if result is None or result.is_error:
            state |= {"status": "error", "error": output, "metadata": fields(details)}
            for block in media:
                self.tally.add(f"{'image' if isinstance(block, Image) else 'file'} in a tool result", "")
        else:
            state |= {"status": "completed", "output": output, "title": "", "metadata": fields(details)}
            if media:
                state["attachments"] = [self._file(block, " in a tool result") for block in media]
        id = unused(call.id or "call", self._called, "call")
        return {"type": "tool", "callID": id, "tool": call.name or "unknown", "state": state}

    def _thinking(self, block: Thinking, ms: int) -> dict[str, Any] | None:
        """Only what opencode itself recorded: it sends reasoning back to the provider that made it."""
        if not self._is_own:
            self.tally.add("reasoning")
            return None
        part: dict[str, Any] = {"type": "reasoning", "text": block.text, "time": {"start": ms, "end": ms}}
        data = fields(block.data)
        if isinstance(data.get("signature"), str):
            data = {"anthropic": {"signature": data["signature"]}}
        return {**part, "metadata": data} if data else part


_CARRIED: frozenset[LossWord] = frozenset((
    "reported cost", "cache write count", "reasoning count", "duration", "stop reason", "how a message is shown",
    "trigger of a compaction",
))  # fmt: skip
"""What is told where it is met, or is no loss."""
WRITING = Writing(render=write, place=put_session, carried=_CARRIED)


def _provider_of(message: Message) -> str:
    return text(fields(message.meta).get("provider")) or provider_of(message.model)


def _tokens(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input_tokens,
        "output": max(0, usage.output_tokens - usage.reasoning_tokens),
        "reasoning": usage.reasoning_tokens,
        "cache": {"read": usage.cache_read_tokens, "write": usage.cache_write_tokens + usage.cache_write_1h_tokens},
    }
