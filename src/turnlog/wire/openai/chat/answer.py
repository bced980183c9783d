"""What Chat Completions answers, as one message."""

from __future__ import annotations

from typing import Any

from turnlog.interop.value import fields, items
from turnlog.log.block import AnyBlock, Text, Thinking, ToolCall
from turnlog.log.entry import Message, Stop
from turnlog.wire import tagged
from turnlog.wire._name import log_name
from turnlog.wire._tool import input_of
from turnlog.wire.openai.part import PROVIDER, REFUSAL, usage_of

_STOPS: dict[str, Stop] = {"stop": "end", "length": "length", "tool_calls": "tool_use", "function_call": "tool_use"}


def draft(data: dict[str, Any], originals: dict[str, str], account: str | None) -> Message:
    """A response as one message: its first choice."""
    choice = (items(data.get("choices")) or [{}])[0]
    answer = fields(choice.get("message"))
    blocks = said_blocks(answer, account, originals, spare=str(data.get("id") or "call"))
    reason, error = choice.get("finish_reason"), data.get("error")
    stop: Stop = _STOPS.get(str(reason), "error") if reason else "aborted"
    if error:
        stop = "error"
    if stop == "end" and answer.get("tool_calls"):
        stop = "tool_use"
    if reason == "content_filter" or (answer.get(REFUSAL) and stop == "end"):
        stop, error = "error", {"type": REFUSAL, "reason": reason}
    return Message(
        role="assistant",
        blocks=blocks,
        model=data.get("model"),
        request=data.get("id"),
        usage=usage_of(data["usage"]) if isinstance(data.get("usage"), dict) else None,
        stop=stop,
        error=error,
        meta=tagged(PROVIDER, {"partial": data.get("partial")}, None),
    )


def said_blocks(
    answer: dict[str, Any], account: str | None, originals: dict[str, str] | None = None, *, spare: str = "call"
) -> list[AnyBlock]:
    """What a message of the assistant is made of."""
    blocks: list[AnyBlock] = []
    thought = answer.get("reasoning_content") or answer.get("reasoning")
    if isinstance(thought, str):
        blocks.append(Thinking(text=thought, provider=PROVIDER))
    blocks += _texts(answer, account)
    for index, call in enumerate(items(answer.get("tool_calls"))):
        blocks.append(_call(call, f"{spare}-{index}", originals or {}, account))
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
        mine = {REFUSAL: True} if is_refusal else {"annotations": answer.get("annotations")}
        text = str(part.get(REFUSAL if is_refusal else "text") or "")
        if text:
            blocks.append(Text(text=text, meta=tagged(PROVIDER, mine, account)))
    return blocks


def _call(call: dict[str, Any], spare: str, originals: dict[str, str], account: str | None) -> ToolCall:
    is_custom = isinstance(call.get("custom"), dict)
    form = fields(call.get("custom" if is_custom else "function"))
    return ToolCall(
        id=log_name(str(call.get("id") or spare), originals),
        name=log_name(str(form.get("name") or ""), originals),
        input=form.get("input") if is_custom else input_of(form.get("arguments")),
        meta=tagged(PROVIDER, {"type": "custom"}, account) if is_custom else None,
    )
