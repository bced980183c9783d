"""Checkpoints and writes of a thread as drafts of entries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import WRITES_IDX_MAP, Checkpoint

from turnlog.adapters.langgraph.handedout import SeenValue
from turnlog.adapters.langgraph.index import CHECKPOINT, WRITES, Key
from turnlog.adapters.langgraph.outside import outside_seq
from turnlog.adapters.langgraph.reading import CheckpointReader
from turnlog.adapters.langgraph.thread import KnownThread
from turnlog.adapters.langgraph.value import Element, Find, StoredValue, ValueCodec, ValueWriter, is_same
from turnlog.log.entry import AnyEntry, Custom


class CheckpointDrafts(NamedTuple):
    """The entries of a checkpoint, and its values to remember."""

    drafts: list[AnyEntry]
    seen: dict[str, SeenValue]


class WriteDrafts(NamedTuple):
    """The entries of what a task wrote, and the messages that are new in it."""

    drafts: list[AnyEntry]
    new_elements: list[Element]


def checkpoint_drafts(
    thread: KnownThread | None,
    codec: ValueCodec,
    key: Key,
    parent: str | None,
    checkpoint: Checkpoint,
    metadata: Any,
    ns: str,
) -> CheckpointDrafts:
    """Make the entries of a checkpoint. Only what differs from the one before is in them."""
    writer = codec.writer(nodes=not ns)
    before, find = _values_before(thread, codec, key[0], parent)
    seen, values = dict[str, SeenValue](), dict[str, StoredValue]()
    for index, (channel, value) in enumerate(checkpoint["channel_values"].items()):
        place = [key[1], channel if codec.is_plain else str(index)]
        values[place[1]], seen[channel] = _stored_value(writer, value, place, before.get(channel), find)
    fields = dict(checkpoint)
    rest = {**fields, "channel_values": list(fields).index("channel_values")}
    data: dict[str, Any] = {"ns": key[0], "id": key[1], "parent": parent}
    if codec.is_plain:
        data |= {"c": writer.kept(rest), "m": writer.kept(metadata)}
    else:
        data["x"] = writer.kept((rest, metadata, list(checkpoint["channel_values"]), ns))
    return CheckpointDrafts([*writer.drafts, Custom(kind=CHECKPOINT, data={**data, "values": values})], seen)


def _values_before(
    thread: KnownThread | None, codec: ValueCodec, stored_ns: str, parent: str | None
) -> tuple[dict[str, SeenValue], Find]:
    """The values of the checkpoint before, and what finds messages in them."""
    if thread is None:
        return {}, _find_none
    key = (stored_ns, parent) if parent else None
    before = thread.handed_out.values_before(key, CheckpointReader(thread, codec).load_values)
    return before, thread.handed_out.finder(before)


def _stored_value(
    writer: ValueWriter, value: Any, place: list[Any], before: SeenValue | None, find: Find
) -> tuple[StoredValue, SeenValue]:
    """How a channel's value is stored at `place`, given the one of the checkpoint before."""
    where = None if before is None else before.where
    if type(value) is list:
        elements_before = before.elements if before is not None else []
        stored, elements = writer.list_of(cast("list[Any]", value), elements_before, where, find)
        return stored, SeenValue(stored.get("@") or place, None, elements)
    stored = writer.kept(value)
    if before is not None and before.kept is not None and where is not None and is_same(stored, before.kept):
        return {"@": where}, before
    return stored, SeenValue(place, stored, [])


def write_drafts(
    thread: KnownThread | None,
    codec: ValueCodec,
    key: Key,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
) -> WriteDrafts:
    """Make the entries of what a task wrote to a checkpoint."""
    writer = codec.writer(nodes=thread is not None and thread.index.current == key)
    find = _find_none if thread is None else thread.handed_out.finder({})
    new_elements: list[Element] = []

    def stored(value: Any) -> StoredValue:
        if isinstance(value, BaseMessage):
            element = writer.element(value, find)
            if "m" in element:
                new_elements.append(Element(value, element))
            return element
        messages = cast("list[Any]", value) if type(value) is list else []
        if messages and all(isinstance(message, BaseMessage) for message in messages):
            return {"w": [stored(message) for message in messages]}
        return writer.kept(value)

    numbered: list[list[Any]] = []
    for index, (channel, value) in enumerate(writes):
        write = [channel, stored(value)] if codec.is_plain else writer.kept((channel, value))
        numbered.append([WRITES_IDX_MAP.get(channel, index), write])
    data: dict[str, Any] = {
        "ns": key[0],
        "id": key[1],
        "task": task_id,
        "again": _replaces_earlier(writes),
        "writes": numbered,
    }
    data["path"] = task_path if codec.is_plain else writer.kept(task_path)
    return WriteDrafts([*writer.drafts, Custom(kind=WRITES, data=data)], new_elements)


def append_position(thread: KnownThread | None, ns: str, parent: str | None) -> dict[str, int]:
    """The `to=` of a checkpoint that does not follow the newest: going back in time is a branch."""
    if thread is None or ns or thread.index.current is None or thread.index.current[1] == parent:
        return {}
    if not parent:
        return {"to": 0}
    stored = thread.index.checkpoints.get((ns, parent))
    seq = outside_seq(parent) if stored is None else stored.seq
    return {"to": seq} if seq else {}


def _replaces_earlier(writes: Iterable[tuple[str, Any]]) -> bool:
    """Whether writes replace those that are there: errors, interrupts and the like."""
    return all(channel in WRITES_IDX_MAP for channel, _ in writes)


def _find_none(message: BaseMessage) -> StoredValue | None:
    """The `find` of a thread that has no messages yet."""
    del message
