"""What providers accept: a context as their request, their response as one message. Pure functions, no network, no SDK.

Every other module here is one dialect, and its name is its registration: `request`, `draft` and `Stream`, as
`Dialect` says. This one has what they share.

What a provider alone can read, and wants back, is tagged with its name and never reaches another: reasoning in
`Thinking.provider` and `.data`, anything else (signatures, citations, the raw form of what it ran itself) in the
block's `meta` under the provider's name. With an `account` it is tagged with that, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Invalid, Unsupported
from turnlog.interop.value import fields
from turnlog.log.block import UnknownBlock
from turnlog.log.context import Context
from turnlog.log.entry import Message, Stop
from turnlog.log.secret import is_secret_name
from turnlog.wire._builder import Deviation as Deviation
from turnlog.wire._builder import RequestBuilder as RequestBuilder
from turnlog.wire._builder import RequestMessage as RequestMessage
from turnlog.wire._builder import kind_of as kind_of
from turnlog.wire._own import own as own
from turnlog.wire._own import tagged as tagged

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
    except (TypeError, ValueError, RecursionError):
        return None


class Request(dict[str, Any]):
    """A request: a plain dict for the SDK's `create(**request)` or for JSON, and what had to be changed for it."""

    def __init__(self, fields: Mapping[str, Any], report: list[Deviation], context: Context | None = None) -> None:
        super().__init__(fields)
        self.report, self.context = report, context

    @property
    def options(self) -> dict[str, Any]:
        """What it says beside the conversation: the model, limits, temperature. No headers, nothing secret."""
        given = {**self, **fields(self.get("config"))}
        kept = ((name, _json(value)) for name, value in given.items() if name not in _CONTENT)
        return {name: value for name, value in kept if value is not None and not is_secret_name(name)}


class Received(list[Message]):
    """Messages made of a provider's own items. In `report`, `entry` is the position of an item, not of a message."""

    def __init__(self) -> None:
        super().__init__()
        self.report: list[Deviation] = []
        self._items = 0

    def take(self, messages: Sequence[Message], what: str, *, goes_on: bool = False) -> None:
        """Add the messages of the next item, which `what` names; `goes_on`: its only message continues the last one."""
        if goes_on:
            self[-1] = replace(self[-1], blocks=[*self[-1].blocks, *messages[0].blocks])
        else:
            self.extend(messages)
        blocks = [block for message in messages for block in message.blocks]
        for block in blocks:
            if isinstance(block, UnknownBlock):
                self.report.append(Deviation("changed", kind_of(block), "it is kept, and not understood", self._items))
        if not blocks:
            self.report.append(Deviation("left out", what, "it says nothing", self._items))
        self._items += 1


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
        """What arrived, as one message; `stop="aborted"` where the end is missing.

        A call that was still being written when the answer broke off or reached a limit is in `meta` only.
        """
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


class Ending(Struct, frozen=True):
    """How a response ended: `stop` and `error` of its message."""

    stop: Stop
    error: Any = None


def plain(value: Any) -> dict[str, Any]:
    """A response or event as plain data, whether it is a dict already or an object of the provider's SDK."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    dump = getattr(value, "model_dump", None)
    if not callable(dump):
        raise Invalid(f"{value!r:.80} is not a response", hint="a dict, or an object of the provider's SDK")
    return cast("dict[str, Any]", dump(mode="json", exclude_unset=True, warnings=False))
