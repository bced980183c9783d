"""Reading the checkpoints of a thread: tuples, pending writes, histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    empty_checkpoint,
)

from turnlog.adapters.langgraph.config import config_of
from turnlog.adapters.langgraph.index import Key, Stored
from turnlog.adapters.langgraph.loading import ValueReader
from turnlog.adapters.langgraph.outside import MESSAGES, conversation_before, merge_outside_messages, outside_name
from turnlog.adapters.langgraph.thread import KnownThread
from turnlog.adapters.langgraph.value import ValueCodec, loaded


class _Decoded(NamedTuple):
    """A checkpoint without the values of its channels."""

    fields: dict[str, Any]
    """With the position of the values in the place of the values."""
    metadata: CheckpointMetadata
    channels: list[str]
    ns: str


class CheckpointReader:
    """Makes checkpoints of a thread anew."""

    def __init__(self, thread: KnownThread, codec: ValueCodec) -> None:
        self._thread = thread
        self._index = thread.index
        self._codec = codec
        self._values = ValueReader(thread, codec.loads)

    def find(self, thread_id: str, ns: str, name: str | None, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of that name, or the newest one of a namespace. The config that asked for it names it."""
        stored = self._index.get(ns, name) if name else self._index.latest(ns)
        if stored is None:
            return self.outside_tuple(thread_id, ns, name)
        return self.tuple_of(thread_id, stored, config if name else None, is_latest=not name)

    def tuple_of(
        self, thread_id: str, stored: Stored, config: RunnableConfig | None = None, *, is_latest: bool = False
    ) -> CheckpointTuple:
        """A checkpoint with its writes. `is_latest`: with what others have said since."""
        decoded = self._decoded(stored)
        checkpoint = self._with_values(stored, decoded, is_latest=is_latest)
        ns, name = decoded.ns, stored.key[1]
        parent = None if not stored.parent else config_of(thread_id, ns, stored.parent)
        writes = self.writes(stored.key)
        return CheckpointTuple(config or config_of(thread_id, ns, name), checkpoint, decoded.metadata, parent, writes)

    def outside_tuple(self, thread_id: str, ns: str, name: str | None) -> CheckpointTuple | None:
        """The state of a session that other programs or people wrote, for the graph that goes on with it."""
        if not self._codec.is_plain:
            return None
        outside = conversation_before(self._thread, ns, name, self._codec.writer(nodes=False))
        if outside is None:
            return None
        checkpoint = empty_checkpoint()
        checkpoint["id"] = outside_name(outside.seq)
        checkpoint["channel_values"] = {MESSAGES: outside.messages}
        checkpoint["channel_versions"] = {MESSAGES: 1}
        metadata: CheckpointMetadata = {"source": "update", "step": -1, "parents": {}}
        config, key = config_of(thread_id, ns, checkpoint["id"]), (ns, checkpoint["id"])
        return CheckpointTuple(config, checkpoint, metadata, None, self.writes(key))

    def load_values(self, stored: Stored) -> None:
        """Make the values of a checkpoint anew, so that they are remembered."""
        self._values.values(stored, self._decoded(stored).channels)

    def metadata_of(self, stored: Stored) -> CheckpointMetadata:
        """The metadata of a checkpoint. To ask many for it is cheap: no values are made."""
        if "x" in stored.data:
            return self._decoded(stored).metadata
        return loaded(stored.data["m"], self._codec.loads)

    def _decoded(self, stored: Stored) -> _Decoded:
        loads, data = self._codec.loads, stored.data
        if "x" in data:
            return _Decoded(*loaded(data["x"], loads))
        return _Decoded(loaded(data["c"], loads), loaded(data["m"], loads), list(data["values"]), stored.key[0])

    def _with_values(self, stored: Stored, decoded: _Decoded, *, is_latest: bool) -> Checkpoint:
        values = self._values.values(stored, decoded.channels)
        if is_latest:
            writer = self._codec.writer(nodes=False)
            merge_outside_messages(self._thread, stored, values, writer, self._values)
        # In the order that it had: the values were one of its fields.
        position = decoded.fields.pop("channel_values")
        fields = list(decoded.fields.items())
        fields.insert(position, ("channel_values", values))
        return cast("Checkpoint", dict(fields))

    def writes(self, key: Key) -> list[PendingWrite]:
        """What was written to a checkpoint, in the order in which it counts."""
        ordered: list[tuple[tuple[str, str, int], PendingWrite]] = []
        for write in self._index.writes_of(key):
            path = write.path if isinstance(write.path, str) else loaded(write.path, self._codec.loads)
            ordered.append(((path, write.task, write.number), self._pending_write(write.task, write.data)))
        return [pending for _, pending in sorted(ordered, key=lambda pair: pair[0])]

    def _pending_write(self, task: str, data: Any) -> PendingWrite:
        if isinstance(data, list):
            channel, stored = cast("list[Any]", data)
            return task, channel, self._values.load(stored)
        channel, value = loaded(data, self._codec.loads)
        return task, channel, value

    def delta_channel_history(
        self, ns: str, name: str | None, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        """What was written to channels that keep only their changes, up to a checkpoint or to the newest one."""
        histories: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
        stored = self._index.get(ns, name) if name else self._index.latest(ns)
        waiting = set(channels)
        while stored is not None and stored.parent and waiting:
            stored = self._index.checkpoints.get((ns, stored.parent))
            if stored is None:
                break
            for write in reversed(self.writes(stored.key)):
                if write[1] in waiting:
                    histories[write[1]]["writes"].insert(0, write)
            for key, channel in zip(stored.data["values"], self._decoded(stored).channels, strict=True):
                value = self._values.value(stored, key) if channel in waiting else None
                if value is not None:
                    histories[channel]["seed"] = value.value
                    waiting.remove(channel)
        return histories
