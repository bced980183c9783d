"""Values of channels on their way into a log and back: only what changed, and messages once.

How a value is stored:

    {"j": …}                                   where JSON says it exactly
    {"t": type, "b": …}                        else: what LangGraph's serializer makes of it, in base64
    {"@": [checkpoint, key]}                   the value that another checkpoint has under that key
    {"l": [checkpoint, key, n], "+": […]}      a list: the first n elements of another one, and what it adds
    {"m": entry}                               in a list, a message: the entry that has it
    {"m": entry, "i": id}                      the same where the message got its id later
    {"w": […]}                                 in a write, several messages
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Any, TypedDict, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from msgspec.json import encode

from turnlog.adapters.langgraph.message import drafted, is_plain
from turnlog.log.entry import Message

_DEPTH = 100
_FIXED = frozenset((str, int, float, bool))
StoredValue = TypedDict(
    "StoredValue",
    {
        "j": Any,
        "t": str,
        "b": str,
        "@": list[str],
        "l": "list[Any] | None",
        "+": "list[StoredValue]",
        "m": str,
        "i": "str | None",
        "w": "list[StoredValue]",
    },
    total=False,
)
"""A value in the log, in one of the forms above."""
Loads = Callable[[tuple[str, bytes]], Any]
"""How a serializer of LangGraph's makes a value of its type and bytes."""
Find = Callable[[BaseMessage], StoredValue | None]
"""Finds the reference to a message that is in the log already."""


def is_json(value: Any, depth: int = 0) -> bool:
    """Whether JSON says a value exactly: no tuples, no subclasses, no keys that are not text."""
    kind = cast("type[Any]", type(value))
    if kind is str:
        return value.isascii() or _is_unicode(value)
    if value is None or kind is bool or kind is int:
        return True
    if kind is float:
        return value - value == 0.0
    if depth > _DEPTH:
        return False
    if kind is list:
        return all(is_json(inner, depth + 1) for inner in value)
    if kind is dict:
        items = cast("dict[Any, Any]", value).items()
        return all(type(key) is str and is_json(key) and is_json(inner, depth + 1) for key, inner in items)
    return False


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Element:
    """One element of a list that is kept: the object that was handed in or out, and how it is kept."""

    __slots__ = ("fields", "is_fixed", "kept", "value")

    def __init__(self, value: Any, kept: StoredValue) -> None:
        self.value = value
        self.kept = kept
        self.is_fixed = value is None or type(value) in _FIXED
        """Whether nobody can change it in place."""
        self.fields = _fields(value) if isinstance(value, BaseMessage) else None
        """A message's fields as they were: what shows that it was changed in place, without going through all of it."""

    def is_untouched(self, *, but_id: bool = False) -> bool:
        """Whether a message still has the fields that it had; `but_id`: it may have got another id."""
        if self.fields is None:
            return False
        fields: dict[str, Any] = self.value.__dict__
        return {**fields, "id": None} == {**self.fields, "id": None} if but_id else fields == self.fields


def _fields(message: BaseMessage) -> dict[str, Any]:
    return {
        name: value.copy() if (kind := cast("type[Any]", type(value))) is dict or kind is list else value
        for name, value in message.__dict__.items()
    }


class ValueWriter:
    """Makes stored values. Messages that are new become drafts."""

    def __init__(self, dumps: Callable[[Any], tuple[str, bytes]], *, is_plain: bool, nodes: bool) -> None:
        self._dumps = dumps
        self._is_plain = is_plain
        self._nodes = nodes
        """Whether messages become entries of the conversation."""
        self.drafts: list[Message] = []

    def kept(self, value: Any) -> StoredValue:
        """A value by itself."""
        if self._is_plain and is_json(value):
            return {"j": copied(value)}
        kind, data = self._dumps(value)
        return {"t": kind, "b": b64encode(data).decode()}

    def element(self, value: Any, find: Find) -> StoredValue:
        """An element of a list, or what is written to one."""
        if self._is_plain and self._nodes and is_plain(value):
            reference = find(value)
            if reference is not None:
                return reference
            item = value.model_dump()
            if is_json(item):
                draft = drafted(value, item)
                self.drafts.append(draft)
                return {"m": draft.id}
        return self.kept(value)

    def _is_still(self, old: Element, new: Any) -> bool:
        """Whether an object is what was kept, whatever happened to it since."""
        if isinstance(new, BaseMessage):
            is_one = new is old.value
            return old.is_untouched() and (is_one or (type(new) is type(old.value) and new == old.value))
        return (new is old.value and old.is_fixed) or is_same(self.kept(new), old.kept)

    def list_of(
        self,
        value: list[Any],
        base: list[Element],
        where: list[Any] | None,
        find: Find,
    ) -> tuple[StoredValue, list[Element]]:
        """A list that extends the one kept at `where` as far as it does, and its elements."""
        same = 0
        for old, new in zip(base, value, strict=False):
            # Nearly always it is the same object, and this is done for each of them at every step.
            is_unchanged = new is old.value and old.fields is not None and new.__dict__ == old.fields
            if not is_unchanged and not self._is_still(old, new):
                break
            same += 1
        if same == len(base) == len(value) and where is not None and base:
            return {"@": where}, base
        elements = base[:same] + [Element(item, self.element(item, find)) for item in value[same:]]
        start = 0 if where is None else same
        kept: StoredValue = {
            "l": [*where, start] if where is not None and start else None,
            "+": [e.kept for e in elements[start:]],
        }
        return kept, elements


class ValueCodec:
    """How a saver with that serializer stores values."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde
        self.loads: Loads = serde.loads_typed
        self.is_plain = type(serde) is JsonPlusSerializer
        """Whether values may be readable."""

    def stored_ns(self, ns: str) -> str:
        """A namespace as the log has it: its name is readable, and may not be."""
        return ns if self.is_plain or not ns else sha256(ns.encode()).hexdigest()[:32]

    def writer(self, *, nodes: bool) -> ValueWriter:
        """A writer of values; `nodes`: messages become entries of the conversation."""
        return ValueWriter(self._serde.dumps_typed, is_plain=self.is_plain, nodes=nodes)


def is_same(one: StoredValue, other: StoredValue) -> bool:
    """Whether two values that are kept by themselves are one, to the order of their keys."""
    return one.keys() == other.keys() and encode(one) == encode(other)


def loaded(kept: StoredValue, loads: Loads) -> Any:
    """A value that is kept by itself, made anew."""
    if "j" in kept:
        return copied(kept["j"])
    assert "t" in kept and "b" in kept
    return loads((kept["t"], b64decode(kept["b"])))


def copied(value: Any) -> Any:
    """A copy of JSON, which its receiver may change."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [copied(inner) for inner in cast("list[Any]", value)]
    return value
