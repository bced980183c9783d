"""Entries of every kind: as hypothesis draws them, and one with something in every field."""

from datetime import UTC, datetime
from typing import Any, get_args, get_origin

from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import fields

from turnlog import Custom, File, Image, Message, Note, Set, Spent, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.log.draft import prepare
from turnlog.log.entry import Entry
from turnlog.log.field import field_types

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
json = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False), texts
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
usages = st.builds(
    Usage,
    input_tokens=st.integers(0, 2**40),
    cache_read_tokens=st.integers(0, 9),
    output_tokens=st.integers(0, 9),
    cost_micros=st.one_of(st.none(), st.integers(0, 9)),
)
maybe = st.one_of(st.none(), texts)
plain_blocks = st.one_of(
    st.builds(Text, text=texts, meta=json),
    st.builds(Image, url=texts, media_type=maybe),
    st.builds(File, file=texts, provider=maybe, name=maybe),
)
blocks = st.one_of(
    plain_blocks,
    st.builds(Thinking, text=texts, provider=maybe, data=json),
    st.builds(ToolCall, id=texts, name=texts, input=json, by=st.sampled_from([None, "provider"])),
)
results = st.builds(
    ToolResult,
    call=texts,
    content=st.one_of(texts, st.lists(plain_blocks, max_size=2)),
    is_error=st.booleans(),
    details=json,
    duration_ms=st.one_of(st.none(), st.integers(0, 9)),
)
messages = st.one_of(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "system"]),
        blocks=st.lists(blocks, max_size=4),
        meta=json,
        model=maybe,
        usage=st.one_of(st.none(), usages),
        stop=st.sampled_from([None, "end", "length"]),
        error=json,
        display=json,
    ),
    st.builds(Message, role=st.just("tool"), blocks=st.lists(results, max_size=2)),
)
entries = st.one_of(
    messages,
    st.builds(Custom, kind=texts, data=json, blocks=st.lists(plain_blocks, max_size=2)),
    st.builds(Note, text=texts, data=json),
    st.builds(Set, key=texts, value=json),
    st.builds(Spent, usage=usages, model=maybe, why=maybe),
)


def line_of(entry: Entry, seq: int = 7, extra: str = "") -> bytes:
    """The line of an entry, newline included."""
    draft, blobs = prepare(entry)
    assert not blobs
    return draft.sealed(f'"seq":{seq},"at":"2026-11-15T07:00:12.345Z"{extra}')[0]


def filled(cls: type[Entry]) -> Entry:
    """An entry of that kind with something in every field of its own."""
    return _made(cls, set(cls.__struct_fields__) - set(Entry.__struct_fields__) | {"meta"})


_BY_NAME = {"role": "user", "stop": "end"}
_BY_TYPE = {
    str: "text", int: 3, bool: True, float: 1.5, Any: {"a": [None, 1.5]}, datetime: datetime(2026, 11, 15, tzinfo=UTC)
}  # fmt: skip


def _made(cls: type[Struct], names: set[str]) -> Any:
    types = {name: declared for name, declared in field_types(cls).items() if name in names}
    return cls(**{name: _BY_NAME.get(name) or _value(declared) for name, declared in types.items()})


def _value(declared: Any) -> Any:
    """A value of a type that fields have."""
    if declared in _BY_TYPE:
        return _BY_TYPE[declared]
    if isinstance(declared, type) and issubclass(declared, Struct):
        is_part = declared.__struct_config__.tag is not None  # of a message or block, what it must have is enough
        return _made(declared, {field.name for field in fields(declared) if field.required or not is_part})
    inner = get_args(declared)
    if get_origin(declared) is list:
        return [_value(inner[0])]
    return {_value(inner[0]): _value(inner[1])} if get_origin(declared) is dict else _value(inner[0])
