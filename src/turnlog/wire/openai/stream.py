"""OpenAI's streams: events of the Responses API, chunks of Chat Completions."""

from __future__ import annotations

from typing import Any

from turnlog.interop.value import fields, items
from turnlog.log.entry import Message
from turnlog.wire import plain
from turnlog.wire._timing import TimedStream, Timing
from turnlog.wire.openai import chat, responses

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_CALLS = ("function_call", "custom_tool_call")


class ResponsesStream(TimedStream):
    """A streamed response of the Responses API."""

    def __init__(self, originals: dict[str, str], account: str | None, timing: Timing) -> None:
        super().__init__(timing)
        self._originals = originals
        self._account = account
        self._response: dict[str, Any] = {}
        self._items: dict[int, dict[str, Any]] = {}
        self._complete: set[int] = set()

    def feed(self, event: Any) -> None:
        """Take the next event."""
        data = plain(event)
        kind = str(data.get("type"))
        self._timing.note_event(is_token=kind.endswith(".delta"))
        index = data.get("output_index", -1)
        if kind in ("response.created", "response.in_progress", "response.queued", *_ENDS):
            self._response = dict(fields(data.get("response")))
            if kind in _ENDS:
                for index_there, item in enumerate(items(self._response.get("output"))):
                    self._items[index_there] = item
                self._complete |= set(self._items)
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = dict(fields(data.get("item")))
            if kind.endswith("done"):
                self._complete.add(index)
        elif kind == "error":
            self._response["error"] = {key: data.get(key) for key in ("code", "message") if data.get(key)}
        elif kind.endswith(".delta") and index in self._items:
            self._grow(self._items[index], kind, data)

    @staticmethod
    def _grow(item: dict[str, Any], kind: str, data: dict[str, Any]) -> None:
        delta = data.get("delta")
        if not isinstance(delta, str):
            return
        targets = {
            "response.output_text.delta": ("content", "content_index", "output_text", "text"),
            "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
            "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
            "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
        }
        if kind in targets:
            name, index_name, part_type, key = targets[kind]
            parts, at = items(item.get(name)), int(data.get(index_name, 0))
            while len(parts) <= at:
                parts.append({"type": part_type, key: ""})
            parts[at] = {**parts[at], key: (parts[at].get(key) or "") + delta}
            item[name] = parts
        elif kind == "response.function_call_arguments.delta":
            item["arguments"] = (item.get("arguments") or "") + delta
        elif kind == "response.custom_tool_call_input.delta":
            item["input"] = (item.get("input") or "") + delta

    def finish(self) -> Message:
        """What arrived."""
        output: list[dict[str, Any]] = []
        partial: list[dict[str, Any]] = []
        for index in sorted(self._items):
            item = self._items[index]
            if index in self._complete:
                output.append(item)
            elif item.get("type") in _CALLS:
                partial.append(item)
            elif item.get("type") == "reasoning":
                output.append({key: value for key, value in item.items() if key != "encrypted_content"})
            elif item.get("type") == "message":
                output.append(item)
        status = self._response.get("status") or "in_progress"
        response = {**self._response, "status": status, "output": output, "partial": partial}
        return self._timing.with_times(responses.draft(response, self._originals, self._account))


class ChatStream(TimedStream):
    """A streamed response of Chat Completions."""

    def __init__(self, originals: dict[str, str], account: str | None, timing: Timing) -> None:
        super().__init__(timing)
        self._originals = originals
        self._account = account
        self._response: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._calls: dict[int, dict[str, Any]] = {}
        self._reason: str | None = None

    def feed(self, event: Any) -> None:
        """Take the next chunk."""
        data = plain(event)
        self._response.update({key: value for key, value in data.items() if key != "choices" and value is not None})
        for choice in items(data.get("choices")):
            if choice.get("index", 0) != 0:
                continue
            delta = fields(choice.get("delta"))
            for key in ("content", "refusal", "reasoning_content", "reasoning"):
                if isinstance(delta.get(key), str):
                    self._message[key] = self._message.get(key, "") + delta[key]
            for part in items(delta.get("tool_calls")):
                self._grow(part)
            self._reason = choice.get("finish_reason") or self._reason
        self._timing.note_event(is_token=any(self._message.values()) or bool(self._calls))

    def _grow(self, part: dict[str, Any]) -> None:
        call = self._calls.setdefault(self._index_of(part), {})
        for key in ("id", "type"):
            call[key] = call.get(key) or part.get(key)
        for key in ("function", "custom"):
            form = fields(part.get(key))
            if form:
                grown: dict[str, Any] = call.setdefault(key, {})
                for name, value in form.items():
                    if isinstance(value, str):
                        grown[name] = grown.get(name, "") + value

    def _index_of(self, part: dict[str, Any]) -> int:
        """Which call a part belongs to. Some servers give no index: then an id of its own begins a call."""
        index, last = part.get("index"), max(self._calls, default=-1)
        if isinstance(index, int):
            return index
        candidates = [at for at, call in self._calls.items() if part.get("id") in (None, "", call.get("id"))]
        return candidates[-1] if candidates else last + 1

    def finish(self) -> Message:
        """What arrived."""
        calls = [self._calls[index] for index in sorted(self._calls)]
        partial = chat.cut_calls(calls) if self._reason is None else []
        calls = [call for call in calls if call not in partial]
        message = {**self._message, "tool_calls": calls} if calls else self._message
        choice = {"message": message, "finish_reason": self._reason}
        response = {**self._response, "choices": [choice], "partial": partial}
        return self._timing.with_times(chat.draft(response, self._originals, self._account))
