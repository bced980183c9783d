"""Annotations on the types of fields: a field takes any JSON, names another entry, or refers to a blob.

Code that checks, renumbers, offloads or collects reads these, so a new field needs nothing but its declaration.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from turnlog.log.usage import Usage


class Meaning(Struct, frozen=True):
    """An annotation that gives the values of a type a meaning."""


class AnyJson(Meaning, frozen=True):
    """Any JSON; values that JSON cannot represent are refused."""

    deeper: int = 0
    """Levels of nesting that this field adds around values whose depth was already checked."""


class Lengthy(Meaning, frozen=True):
    """A value that may be long: if the whole entry is in a blob, the line shows a shortened value."""


class NamesEntry(Meaning, frozen=True):
    """The `seq` of an entry of the same session, 0 for none. It changes when the session is renumbered."""


class NamesNone(Meaning, frozen=True):
    """A number that does not change when the session is renumbered."""


class RefersToBlob(Meaning, frozen=True):
    """The digest of a blob that is kept as long as the entry."""


class Recomputed(Meaning, frozen=True):
    """A value folded from other entries: it is left out rather than renumbered or shortened."""


class HoldsHead(Meaning, frozen=True):
    """A head entry as plain JSON."""


Json = Annotated[Any, AnyJson(), Lengthy()]
JsonInLine = Annotated[Any, AnyJson()]
"""Any JSON that a line always holds in full."""
Facts = Annotated[dict[str, Any], AnyJson(deeper=2), Lengthy()]
StateJson = Annotated[Any, AnyJson(deeper=4), Recomputed()]
HeadJson = Annotated[Any, AnyJson(), HoldsHead()]
LongText = Annotated[str, Lengthy()]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a time zone."""
EntryRef = Annotated[int, NamesEntry()]
Number = Annotated[int, NamesNone()]
BlobRef = Annotated[str, RefersToBlob()]


_CHECKED = ("blobs", "unknown", "labels")
"""Fields that are checked in other ways."""


class Shape(Struct, frozen=True):
    """The fields of a class, by the meaning of their types."""

    json: tuple[tuple[str, int], ...]
    """Fields that must be JSON, and the depth at which each begins."""
    numbers: tuple[str, ...]
    """Fields that must be whole numbers."""
    texts: Callable[[Any], tuple[Any, ...]]
    """Returns the values of the fields that hold text."""
    text_names: tuple[str, ...]
    """The names of these fields, and of those that hold lists or dicts of text."""
    has_lists: bool
    """Whether any field holds a list or dict of text."""
    has_unknown: bool
    """Whether values of the class keep fields of later versions."""
    parts: tuple[str, ...]
    """Fields with lists of blocks, or of messages and references."""
    inner: tuple[str, ...]
    """Fields that hold other structs."""
    refers: bool
    """Whether the class has fields of its own that refer to blobs."""
    usages: tuple[str, ...]
    lengthy: tuple[str, ...]
    recomputed: tuple[str, ...]


def in_utc(at: datetime | None) -> datetime | None:
    """Return a time with a time zone: UTC, if it has none."""
    return at.replace(tzinfo=UTC) if at is not None and at.tzinfo is None else at


@cache
def shape(cls: type[Struct]) -> Shape:
    """Return the shape of a class; it is computed once."""
    types = field_types(cls)
    held = {name: [part for part in _within(declared) if _is_struct(part)] for name, declared in types.items()}
    parts = tuple(name for name, structs in held.items() if any(part.__struct_config__.tag for part in structs))
    referring = {name for name, _ in places(cls, RefersToBlob)} - {"blob", "raw", *parts}
    text_names = tuple(name for name, declared in types.items() if str in _within(declared) and name not in _CHECKED)
    return Shape(
        json=tuple((name, -_deeper(declared)) for name, declared in types.items() if _is_checked(declared)),
        numbers=tuple(name for name, declared in types.items() if int in _within(declared)),
        texts=_getter(*(name for name in text_names if not _is_collection(types[name]))),
        text_names=text_names,
        has_lists=any(_is_collection(types[name]) for name in text_names),
        has_unknown="unknown" in types,
        parts=parts,
        inner=tuple(name for name, structs in held.items() if structs and name not in parts and Usage not in structs),
        refers=bool(referring),
        usages=tuple(name for name, structs in held.items() if Usage in structs),
        lengthy=tuple(name for name, declared in types.items() if _says(declared, Lengthy)),
        recomputed=tuple(name for name, declared in types.items() if _says(declared, Recomputed)),
    )


def _getter(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns the values of these fields: at every append, a loop would take twice as long."""
    return attrgetter(*names) if len(names) > 1 else lambda value: tuple(getattr(value, name) for name in names)


def _is_collection(declared: Any) -> bool:
    return any(get_origin(part) in (list, dict) for part in _within(declared))


@cache
def field_types(cls: type[Struct]) -> dict[str, Any]:
    """Return the types of the fields of a class, with their annotations."""
    return {field.name: field.type for field in msgspec.structs.fields(cls)}


# Most classes have the same few types: each is analysed once, or the first entry would be slow.


@cache
def _within(declared: Any) -> tuple[Any, ...]:
    """Return a type and the types that it is made of; fields of structs are not included."""
    arguments = get_args(declared)[:1] if get_origin(declared) is Annotated else get_args(declared)
    return declared, *(part for argument in arguments for part in _within(argument))


def _is_struct(declared: Any) -> bool:
    return isinstance(declared, type) and issubclass(declared, Struct)


@cache
def _annotations(declared: Any) -> tuple[Any, ...]:
    return tuple(annotation for part in _within(declared) for annotation in _metadata(part))


def _says(declared: Any, meaning: type[Meaning]) -> bool:
    return any(isinstance(annotation, meaning) for annotation in _annotations(declared))


def _metadata(declared: Any) -> tuple[Any, ...]:
    return declared.__metadata__ if get_origin(declared) is Annotated else ()


def _deeper(declared: Any) -> int:
    return max((item.deeper for item in _annotations(declared) if isinstance(item, AnyJson)), default=0)


@cache
def _is_checked(declared: Any) -> bool:
    """Whether a value of that type may hold a key or a number that JSON lacks, and would change."""
    parts = _within(declared)
    if Raw in parts or any(_is_struct(part) for part in parts):
        return False
    return any(
        part is Any or part is float or (get_origin(part) is dict and get_args(part)[0] is str) for part in parts
    )


# ── every part of one meaning ─────────────────────────────────────────────────────────────────────


def change(value: Any, meaning: type[Meaning], act: Callable[[Any], Any]) -> Any:
    """Return a struct in which `act` replaced every value with this meaning, at any depth."""
    touched = places(cast("type[Struct]", type(value)), meaning)
    if not touched:
        return value
    return replace(value, **{name: change_value(getattr(value, name), types, meaning, act) for name, types in touched})


def every(value: Any, meaning: type[Meaning]) -> list[Any]:
    """Return every value with that meaning in a struct, at any depth."""
    values: list[Any] = []

    def keep(item: Any) -> Any:
        values.append(item)
        return item

    change(value, meaning, keep)
    return values


@cache
def places(cls: type[Struct], meaning: type[Meaning]) -> tuple[tuple[str, Any], ...]:
    """Return the fields that can hold a value with that meaning, and their types."""
    return tuple((name, declared) for name, declared in field_types(cls).items() if _reaches(declared, meaning, ()))


@cache
def _reaches(declared: Any, meaning: type[Meaning], passed: tuple[Any, ...]) -> bool:
    """Whether a value of that type can contain a value with that meaning."""
    return _says(declared, meaning) or any(
        _reaches(inner, meaning, (*passed, part))
        for part in _within(declared)
        if _is_struct(part) and part not in passed
        for inner in field_types(part).values()
    )


def change_value(value: Any, declared: Any, meaning: type[Meaning], act: Callable[[Any], Any]) -> Any:
    """Do as `change` does, for a value of a declared type."""
    if value is None:
        return None
    if any(isinstance(annotation, meaning) for annotation in _metadata(declared)):
        return act(value)
    if isinstance(value, Struct):
        return change(value, meaning, act)
    arguments = get_args(declared)
    kind = get_origin(declared)
    if kind is Annotated:
        return change_value(value, arguments[0], meaning, act)
    if kind is list:
        return [change_value(item, arguments[0], meaning, act) for item in value]
    if kind is dict:
        return {
            change_value(key, arguments[0], meaning, act): change_value(item, arguments[1], meaning, act)
            for key, item in value.items()
        }
    fitting = (argument for argument in arguments if isinstance(value, _plain(argument)))
    return next((change_value(value, argument, meaning, act) for argument in fitting), value)


def _plain(declared: Any) -> type:
    """Return the class of the values of that type."""
    if get_origin(declared) is Annotated:
        return _plain(declared.__origin__)
    return object if declared is Any else get_origin(declared) or declared
