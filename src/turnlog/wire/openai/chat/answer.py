"""What Chat Completions answers, as one message."""

from __future__ import annotations

from typing import Any

from turnlog.interop.value import fields, items
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall
from turnlog.log.entry import Message, Stop
from turnlog.wire import Ending, tagged
from turnlog.wire._name import log_name
from turnlog.wire._tool import input_of
from turnlog.wire.openai.part import PROVIDER, REFUSAL, is_whole, usage_of

_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "tool_calls": "tool_use", "function_call": "tool_use"}
_LIMITS = ("length", "content_filter")


def draft(data: dict[str, Any], originals: dict[str, str], account: str | None) -> Message:
    """A response as one message: its first choice."""
    choice = (items(data.get("choices")) or [{}])[0]
    answer = fields(choice.get("message"))
    end = _ending(choice.get("finish_reason"), answer, data.get("error"))
    calls = items(answer.get("tool_calls"))
    cut = cut_calls(calls) if choice.get("finish_reason") in _LIMITS else []
    whole = {**answer, "tool_calls": [call for call in calls if call not in cut]}
    return Message(
        role="assistant",
        blocks=said_blocks(whole, account, originals, fallback_id=str(data.get("id") or "call")),
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=end.stop,
        error=end.error,
        meta=tagged(PROVIDER, {"partial": [*items(data.get("partial")), *cut]}, None),
    )


def _ending(reason: Any, answer: dict[str, Any], error: Any) -> Ending:
    if reason == "content_filter":
        return Ending("error", {"type": REFUSAL, "reason": reason})
    if error or not reason:
        return Ending("error" if error else "aborted", error)
    stop = _STOPS.get(str(reason), "error")
    if stop != "end":
        return Ending(stop)
    if answer.get(REFUSAL) and not answer.get("tool_calls"):
        return Ending("error", {"type": REFUSAL, "reason": reason})
    return Ending("tool_use" if answer.get("tool_calls") else "end")


def cut_calls(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The calls that were still being written when the response broke off. Of text, only the last one can be cut."""
    cut = [call for call in calls if "function" in call and not is_whole(fields(call["function"]).get("arguments"))]
    return cut + [call for call in calls[-1:] if "function" not in call]


def said_blocks(
    answer: dict[str, Any], account: str | None, originals: dict[str, str] | None = None, *, fallback_id: str = "call"
) -> list[AnyBlock]:
    """The blocks of a message of the assistant."""
    blocks: list[AnyBlock] = []
    thought = answer.get("reasoning_content") or answer.get("reasoning")
    if isinstance(thought, str):
        blocks.append(Thinking(text=thought, provider=PROVIDER))
    blocks += _texts(answer, account)
    for index, call in enumerate(items(answer.get("tool_calls"))):
        blocks.append(_call(call, f"{fallback_id}-{index}", originals or {}, account))
    return blocks


def _texts(answer: dict[str, Any], account: str | None) -> list[AnyBlock]:
    """What the model said: text, or parts in a message as it is sent; and what it refused to say."""
    content = answer.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    if isinstance(answer.get(REFUSAL), str):
        parts = [*parts, {"type": REFUSAL, REFUSAL: answer[REFUSAL]}]
    blocks: list[AnyBlock] = []
    for part in parts:
        is_refusal = part.get("type") == REFUSAL
        own_meta = {REFUSAL: True} if is_refusal else {"annotations": answer.get("annotations")}
        text = str(part.get(REFUSAL if is_refusal else "text") or "")
        if text:
            blocks.append(Text(text=text, meta=tagged(PROVIDER, own_meta, account)))
    return blocks


def _call(call: dict[str, Any], fallback_id: str, originals: dict[str, str], account: str | None) -> ToolCall:
    is_custom = isinstance(call.get("custom"), dict)
    form = fields(call.get("custom" if is_custom else "function"))
    return ToolCall(
        id=log_name(str(call.get("id") or fallback_id), originals),
        name=log_name(str(form.get("name") or ""), originals),
        input=form.get("input") if is_custom else input_of(form.get("arguments")),
        meta=tagged(PROVIDER, {"type": "custom"}, account) if is_custom else None,
    )
