"""What providers accept: a context as their request, their response as one message. Pure functions, no network, no SDK.

Every other module here is one dialect, and its name is its registration: `request`, `draft` and `Stream`, as
`Dialect` says. This one has what they share.

What a provider alone can read, and wants back, is tagged with its name and never reaches another: reasoning in
`Thinking.provider` and `.data`, anything else (signatures, citations, the raw form of what it ran itself) in the
block's `meta` under the provider's name. With an `account` it is tagged with that, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid, Unsupported
from turnlog.log.block import (
    WRAPPED,
    AnyBlock,
    Block,
    File,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownBlock,
)
from turnlog.log.context import Context, repair
from turnlog.log.entry import Message
from turnlog.log.secret import is_secret_name
from turnlog.log.shown.nativecompaction import compacted, newest, since
from turnlog.wire._name import wire_name

NOTHING_BEFORE = "(the conversation continues)"
"""Said by the user where a provider wants the user to speak first."""
GO_ON = "Continue."
"""Said by the user where a provider wants the user to speak last."""
NO_OUTPUT = "(no output)"

_CONTENT = frozenset((
    "config", "contents", "extra_body", "extra_headers", "extra_query", "http_options", "input", "instructions",
    "messages", "system", "system_instruction", "tools",
))  # fmt: skip


def _json(value: Any) -> Any:
    """A value as JSON has it; None for what it cannot say."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError):
        return None


class Deviation(Struct, frozen=True, gc=False):
    """One thing that a request says otherwise than the log."""

    did: str
    """left out · changed · added"""
    what: str
    """thinking, text, tool call, tool result, image, file, tool, message, …"""
    why: str
    entry: int = 0
    """The `seq` of the entry it is about; 0 for none."""


class Request(dict[str, Any]):
    """A request: a plain dict for the SDK's `create(**request)` or for JSON, and what had to be changed for it."""

    def __init__(self, fields: Mapping[str, Any], report: list[Deviation], context: Context | None = None) -> None:
        super().__init__(fields)
        self.report, self.context = report, context

    @property
    def options(self) -> dict[str, Any]:
        """What it says beside the conversation: the model, limits, temperature. No headers, nothing secret."""
        said = {**self, **fields(self.get("config"))}
        kept = ((name, _json(value)) for name, value in said.items() if name not in _CONTENT)
        return {name: value for name, value in kept if value is not None and not is_secret_name(name)}


class Received(list[Message]):
    """Messages made of a provider's own items, and what of those they do not say: `entry` is the item's position."""

    def __init__(self) -> None:
        super().__init__()
        self.report: list[Deviation] = []


class Feed(Protocol):
    """A response that arrives in pieces."""

    @property
    def is_begun(self) -> bool:
        """Whether any event came: before that there is nothing to append."""
        ...

    def feed(self, event: Any) -> None:
        """Take the next event, as a dict or as the SDK's object."""
        ...

    def finish(self) -> Message:
        """What arrived, as one message; `stop="aborted"` where the end is missing."""
        ...


class Dialect(Protocol):
    """What a module of this room provides."""

    @property
    def PROVIDER(self) -> str:
        """The name its blocks are tagged with."""
        ...

    def request(self, context: Context, *, model: str) -> Request:
        """The context as this provider takes it. Each dialect has more options."""
        ...

    def draft(self, response: Any) -> Message:
        """A response, a dict or the SDK's object, as one message to append."""
        ...

    def Stream(self) -> Feed:
        """The same for a streamed response."""
        ...


def dialect(name: str) -> Dialect:
    """The dialect with that name."""
    if name not in names():
        raise Unsupported(f"no dialect {name!r}", hint=", ".join(names()))
    return cast("Dialect", import_module(f"{__name__}.{name}"))


def names() -> list[str]:
    """The names of all dialects. What they share has a name with an underscore."""
    from pkgutil import iter_modules  # takes longer than a dialect

    return sorted(module.name for module in iter_modules(__path__) if not module.name.startswith("_"))


# ── responses ─────────────────────────────────────────────────────────────────────────────────────


def plain(value: Any) -> dict[str, Any]:
    """A response or event as plain data, whether it is a dict already or an object of the provider's SDK."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        raise Invalid(f"{value!r:.80} is not a response", hint="a dict, or an object of the provider's SDK")
    return cast("dict[str, Any]", dump(mode="json", exclude_unset=True, warnings=False))


def fields(value: Any) -> dict[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def items(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; none for anything else."""
    if not isinstance(value, list):
        return []
    if len(value) == 1 and type(value[0]) is dict:  # pyright: ignore[reportUnknownArgumentType]
        return [value[0]]  # pyright: ignore[reportUnknownVariableType]
    return [item for item in value if isinstance(item, dict)]  # pyright: ignore[reportUnknownVariableType]


def count(data: Any, *path: str) -> int:
    """A number of tokens, or one somewhere in a usage; 0 for anything that is none."""
    for name in path:
        data = fields(data).get(name)
    if type(data) is int:
        return data if 0 < data < 1 << 53 else 0
    return int(data) if isinstance(data, float) and 0 < data < 1 << 53 else 0


def tagged(provider: str, mine: Mapping[str, Any], account: str | None) -> dict[str, Any] | None:
    """The `meta` of a block that holds what only this provider can read; None for nothing."""
    kept = {key: value for key, value in mine.items() if value not in (None, [], {})}
    if not kept:
        return None
    return {provider: kept if account is None else {**kept, "account": account}}


# ── what a provider may see again ─────────────────────────────────────────────────────────────────


def _fits(theirs: Any, ours: str | None) -> bool:
    return theirs is None or ours is None or theirs == ours


def own(value: Block | Message, provider: str, account: str | None) -> dict[str, Any] | None:
    """What this provider tagged a block or message with; None if nothing, or if it belongs to another account."""
    meta = fields(value.meta).get(provider)
    if not isinstance(meta, dict):
        return None
    mine = cast("dict[str, Any]", meta)
    return mine if _fits(mine.get("account"), account) else None


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
        self._seen: dict[str, int] = {}
        self._open: dict[str, list[str]] = {}
        self._renamed: set[str] = set()
        self._compaction: Message | None = None

    def note(self, did: str, what: str, why: str, message: Message | None = None) -> None:
        """Something is not as the log has it."""
        self.report.append(Deviation(did, what, why, 0 if message is None else message.seq))

    def turns(self, *, compacts: bool = False) -> list[RequestMessage]:
        """The messages, every call with its results behind it, less what this provider may not see.

        `compacts`: the provider takes its own compactions back, in place of what they stand for.
        """
        if not len(self.context):
            raise Invalid("a context without messages", hint="append a user's message first")
        turns: list[RequestMessage] = []
        messages = repair(list(self.context))
        native = newest(messages, self._stands) if compacts else None
        if native is not None:
            messages = repair(since(messages, native))
            self._compaction = messages[0]
            self.note("left out", "message", f"{self.provider} compacted what came before", self._compaction)
        for message in messages:
            blocks = [block for block in message.blocks if self._may_see(block, message)]
            if blocks:
                turns.append(RequestMessage(message.role, blocks, message))
            elif message.blocks:
                self.note("left out", "message", "nothing of it is left", message)
        return turns

    def _stands(self, block: Thinking, message: Message) -> int | None:
        return None if self._foreign(block) else self.context.stands_for(block, message)

    def _foreign(self, block: Thinking) -> str:
        """Why reasoning may not go to this provider; empty where it may."""
        if block.provider != self.provider:
            return f"it belongs to {block.provider or 'nobody'}"
        return "" if _fits(fields(block.data).get("account"), self.account) else "it belongs to another account"

    def _own(self, block: AnyBlock) -> dict[str, Any] | None:
        return own(block, self.provider, self.account)

    def _may_see(self, block: AnyBlock, message: Message) -> bool:
        what, why = kind_of(block), ""
        if isinstance(block, Text):
            if not block.text.strip() and self._own(block) is None:
                why = "it is empty"
        elif isinstance(block, Thinking):
            why = self._foreign(block)
            if not why and compacted(block) and message is not self._compaction:
                why = "what it stands for is sent as it reads now"
        elif isinstance(block, UnknownBlock):
            why = f"no provider takes a block of the kind {block.kind}"
        elif isinstance(block, ToolCall):
            if message.role != "assistant":
                why = "only the assistant calls tools"
            elif block.by is not None and self._own(block) is None:
                why = "another provider or account ran it"
        elif isinstance(block, ToolResult) and message.role != "tool" and self._own(block) is None:
            why = "another provider or account ran it"
        if why:
            self.note("left out", what, why, message)
        return not why

    def call_id(self, call: ToolCall, message: Message) -> str:
        """The id of a call as the provider takes it: in its alphabet, not too long, used once."""
        nth = self._seen.get(call.id, 0) + 1
        self._seen[call.id] = nth
        name = wire_name(call.id, limit=self.limit, nth=nth)
        if name != call.id:
            self.note("changed", "tool call", f"the id {call.id!r:.80} is sent as {name}", message)
        self._open.setdefault(call.id, []).append(name)
        return name

    def result_id(self, result: ToolResult) -> str:
        """The id of the call that a result answers."""
        waiting = self._open.get(result.call)
        return waiting.pop(0) if waiting else wire_name(result.call, limit=self.limit)

    def tool_name(self, name: str, *, limit: int) -> str:
        """A tool's name as the provider takes it. Gemini is the one that wants a letter first; all may have it."""
        sent = wire_name(name, limit=limit, lettered=True)
        if sent != name and sent not in self._renamed:
            self._renamed.add(sent)
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


def kind_of(block: Block) -> str:
    """What a block is, in words."""
    if compacted(block):
        return "compaction"
    return str(block.__struct_config__.tag).replace("_", " ") if not isinstance(block, UnknownBlock) else block.kind


def unwrapped(value: Any) -> Any:
    """A call's input as the log has it."""
    data = fields(value)
    return data[WRAPPED] if len(data) == 1 and WRAPPED in data else value


def known_names(context: Context | None, *, limits: Iterable[int]) -> dict[str, str]:
    """For every id and tool name in a context, how it was sent: so that a response that repeats it is understood."""
    known: dict[str, str] = {}
    if context is None:
        return known
    seen: dict[str, int] = {}
    calls = [block for message in context for block in message.blocks if isinstance(block, ToolCall)]
    for limit in limits:
        for call in calls:
            seen[call.id] = seen.get(call.id, 0) + 1
            known[wire_name(call.id, limit=limit, nth=seen[call.id])] = call.id
        for name in [call.name for call in calls] + [str(fields(tool).get("name", "")) for tool in context.tools]:
            known[wire_name(name, limit=limit, lettered=True)] = name
        seen.clear()
    return known
