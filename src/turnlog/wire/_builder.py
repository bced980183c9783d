"""Reading a context for one provider: what it may see, under which ids and names, and the report of all changes."""

from __future__ import annotations

from typing import Any, Literal, cast

from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.interop.value import fields
from turnlog.log.block import WRAPPED, AnyBlock, Block, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import Context
from turnlog.log.context.nativecompaction import compacted, newest, since
from turnlog.log.context.toolturn import repair
from turnlog.log.entry import Message
from turnlog.wire._name import wire_name
from turnlog.wire._own import is_same_account, own

Change = Literal["left out", "changed", "added"]


def kind_of(block: Block) -> str:
    """The kind of a block in words."""
    if compacted(block):
        return "compaction"
    return str(block.__struct_config__.tag).replace("_", " ") if not isinstance(block, UnknownBlock) else block.kind


class Deviation(Struct, frozen=True, gc=False):
    """One difference between a request and the log."""

    change: Change
    what: str
    """thinking, text, tool call, tool result, image, file, tool, message, …"""
    why: str
    entry: int | None = None
    """The `seq` of the entry it is about, or the position of the item; None for the whole request."""


class RequestMessage(Struct, gc=False):
    """One message on its way into a request: what is left of its blocks."""

    role: str
    blocks: list[AnyBlock]
    message: Message


class RequestBuilder:
    """Reads a context for one provider and keeps the report."""

    def __init__(self, context: Context, provider: str, account: str | None, *, limit: int) -> None:
        self.context = context
        self.provider = provider
        self.account = account
        self.report: list[Deviation] = []
        self.limit = limit
        """The longest id the provider takes."""
        self._uses_of_id: dict[str, int] = {}
        self._unanswered_ids: dict[str, list[str]] = {}
        """Of the calls that wait for a result: each id with those under which they are sent."""
        self._renamed_tools: set[str] = set()
        self._compaction: Message | None = None
        """The provider's own compaction that the request begins with."""

    def note(self, change: Change, what: str, why: str, message: Message | None = None) -> None:
        """Add to the report that something is not as in the log."""
        self.report.append(Deviation(change, what, why, None if message is None else message.seq))

    def left_out(self, block: AnyBlock, why: str, message: Message) -> str:
        """Report that a block is left out; returns the text that stands in its place."""
        self.note("left out", kind_of(block), why, message)
        return f"[{kind_of(block)} left out: {why}]"

    def turns(self, *, with_compaction: bool = False) -> list[RequestMessage]:
        """The messages, every call with its results behind it, less what this provider may not see.

        `with_compaction`: the provider takes its own compactions back, in place of what they stand for.
        """
        if not len(self.context):
            raise Invalid("a context without messages", hint="append a user's message first")
        turns: list[RequestMessage] = []
        messages = repair(list(self.context))
        native = newest(messages, self._stands_for) if with_compaction else None
        if native is not None:
            messages = repair(since(messages, native))
            self._compaction = messages[0]
            self.note("left out", "message", f"{self.provider} compacted what came before", self._compaction)
        for message in messages:
            blocks = self._visible_blocks(message)
            if blocks:
                turns.append(RequestMessage(message.role, blocks, message))
            elif message.blocks:
                self.note("left out", "message", "nothing of it is left", message)
        return turns

    def _stands_for(self, block: Thinking, message: Message) -> int | None:
        """How many messages a compaction of this provider's stands for; None for any other reasoning."""
        return None if self._why_foreign(block) else self.context.stands_for(block, message)

    def _visible_blocks(self, message: Message) -> list[AnyBlock]:
        visible: list[AnyBlock] = []
        for block in message.blocks:
            if why := self._why_hidden(block, message):
                self.note("left out", kind_of(block), why, message)
            else:
                visible.append(block)
        return visible

    def _why_foreign(self, block: Thinking) -> str:
        """Why reasoning may not go to this provider; empty where it may."""
        if block.provider != self.provider:
            return f"it belongs to {block.provider or 'nobody'}"
        is_ours = is_same_account(fields(block.data).get("account"), self.account)
        return "" if is_ours else "it belongs to another account"

    def _why_hidden(self, block: AnyBlock, message: Message) -> str:
        """Why this provider may not see a block; empty where it may."""
        if isinstance(block, Text) and block.text.strip():
            return ""
        is_own = own(block, self.provider, self.account) is not None
        if isinstance(block, Text):
            return "" if is_own else "it is empty"
        if isinstance(block, Thinking):
            is_replaced = bool(compacted(block)) and message is not self._compaction
            return self._why_foreign(block) or ("what it stands for is sent as it reads now" if is_replaced else "")
        if isinstance(block, UnknownBlock):
            return f"no provider takes a block of the kind {block.kind}"
        if isinstance(block, ToolCall) and message.role != "assistant":
            return "only the assistant calls tools"
        is_run_there = isinstance(block, ToolCall) and block.by is not None
        is_run_there = is_run_there or (isinstance(block, ToolResult) and message.role != "tool")
        return "another provider or account ran it" if is_run_there and not is_own else ""

    def call_id(self, call: ToolCall, message: Message) -> str:
        """The id of a call as the provider takes it: in its alphabet, not too long, used once."""
        nth = self._uses_of_id.get(call.id, 0) + 1
        self._uses_of_id[call.id] = nth
        name = wire_name(call.id, limit=self.limit, nth=nth)
        if name != call.id:
            self.note("changed", "tool call", f"the id {call.id!r:.80} is sent as {name}", message)
        self._unanswered_ids.setdefault(call.id, []).append(name)
        return name

    def result_id(self, result: ToolResult) -> str:
        """The id of the call that a result answers."""
        waiting = self._unanswered_ids.get(result.call)
        return waiting.pop(0) if waiting else wire_name(result.call, limit=self.limit)

    def tool_name(self, name: str, *, limit: int) -> str:
        """A tool's name as the provider takes it. Gemini is the one that wants a letter first; all may have it."""
        sent = wire_name(name, limit=limit, lettered=True)
        if sent != name and sent not in self._renamed_tools:
            self._renamed_tools.add(sent)
            self.note("changed", "tool", f"the name {name!r:.80} is sent as {sent}")
        return sent

    def object_of(self, call: ToolCall, message: Message) -> dict[str, Any]:
        """A call's input as an object, for providers that take nothing else."""
        if isinstance(call.input, dict):
            return cast("dict[str, Any]", call.input)
        if call.input is None:
            return {}
        self.note("changed", "tool call", f"its input is no object and is sent as {WRAPPED!r}", message)
        return {WRAPPED: call.input}

    def result_parts(self, result: ToolResult, message: Message) -> list[Text | Image | File]:
        """What a tool answered, less what no provider takes in a result."""
        content = [Text(text=result.content)] if isinstance(result.content, str) else result.content
        parts: list[Text | Image | File] = []
        for block in content:
            if isinstance(block, Text):
                if block.text.strip():
                    parts.append(block)
            elif isinstance(block, (Image, File)):
                parts.append(block)
            else:
                self.note("left out", kind_of(block), "a tool's result holds text, images and files", message)
        return parts
