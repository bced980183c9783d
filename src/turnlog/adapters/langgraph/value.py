"""Values of channels on their way into a log and back: only what changed, and messages once.

A value is kept as `{"j": …}` where JSON says it exactly, else as `{"t": type, "b": …}`, which is what LangGraph's
serializer makes of it. `{"@": [checkpoint, key]}` is the value that another checkpoint has. A list is
`{"l": [checkpoint, key, n], "+": […]}`: the first n elements of another list, and what it adds. An element that is a
message is `{"m": entry}`, and `{"m": entry, "i": …}` where it got its id later.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any, cast

from langchain_core.messages import BaseMessage
from msgspec.json import encode

from turnlog.adapters.langgraph.message import drafted, is_plain
from turnlog.log.entry import Message

_DEPTH = 100
_FIXED = frozenset((str, int, float, bool))
Kept = dict[str, Any]


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

    def __init__(self, value: Any, kept: Kept) -> None:
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
    """Makes what is kept of values. Messages that are new become drafts."""

    def __init__(self, dumps: Callable[[Any], tuple[str, bytes]], *, is_plain: bool, nodes: bool) -> None:
        self._dumps = dumps
        self._is_plain = is_plain
        self._nodes = nodes
        """Whether messages become entries of the conversation."""
        self.drafts: list[Message] = []

    def kept(self, value: Any) -> Kept:
        """A value that is not compared with anything."""
        if self._is_plain and is_json(value):
            return {"j": copied(value)}
        kind, data = self._dumps(value)
        return {"t": kind, "b": b64encode(data).decode()}

    def element(self, value: Any, known: Callable[[BaseMessage], Kept | None]) -> Kept:
        """An element of a list, or what is written to one."""
        if self._is_plain and self._nodes and is_plain(value):
            reference = known(value)
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
        known: Callable[[BaseMessage], Kept | None],
    ) -> tuple[Kept, list[Element]]:
        """A list that extends the one kept at `where` as far as it does, and its elements."""
        same = 0
        for old, new in zip(base, value, strict=False):
            # Nearly always it is the same object, and this is done for each of them at every step.
            is_known = new is old.value and old.fields is not None and new.__dict__ == old.fields
            if not is_known and not self._is_still(old, new):
                break
            same += 1
        if same == len(base) == len(value) and where is not None and base:
            return {"@": where}, base
        elements = base[:same] + [Element(item, self.element(item, known)) for item in value[same:]]
        start = 0 if where is None else same
        kept = {"l": [*where, start] if where is not None and start else None, "+": [e.kept for e in elements[start:]]}
        return kept, elements


def is_same(one: Kept, other: Kept) -> bool:
    """Whether two values that are kept by themselves are one, to the order of their keys."""
    return one.keys() == other.keys() and encode(one) == encode(other)


def loaded(kept: Kept, loads: Callable[[tuple[str, bytes]], Any]) -> Any:
    """A value that is kept by itself, made anew."""
    if "j" in kept:
        return copied(kept["j"])
    return loads((kept["t"], b64decode(kept["b"])))


def copied(value: Any) -> Any:
    """JSON of one's own: whoever gets it may change it."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [copied(inner) for inner in cast("list[Any]", value)]
    return value
