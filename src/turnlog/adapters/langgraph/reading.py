"""Reading the checkpoints of a thread: tuples, pending writes, histories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

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
        checkpoint, metadata = self.checkpoint_of(stored, is_latest=is_latest)
        ns, name = self._ns_of(stored), stored.key[1]
        parent = None if not stored.parent else config_of(thread_id, ns, stored.parent)
        writes = self.writes(stored.key)
        return CheckpointTuple(config or config_of(thread_id, ns, name), checkpoint, metadata, parent, writes)

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

    def checkpoint_of(self, stored: Stored, *, is_latest: bool = False) -> tuple[Checkpoint, Any]:
        """A checkpoint and its metadata."""
        loads, data = self._codec.loads, stored.data
        if "x" in data:
            rest, metadata, names, _ = loaded(data["x"], loads)
        else:
            assert "c" in data and "m" in data
            rest, metadata, names = loaded(data["c"], loads), loaded(data["m"], loads), list(data["values"])
        values = self._values.values(stored, names)
        if is_latest:
            writer = self._codec.writer(nodes=False)
            merge_outside_messages(self._thread, stored, values, writer, self._values)
        # In the order that it had: the values were one of its fields.
        position = rest.pop("channel_values")
        fields = list(rest.items())
        fields.insert(position, ("channel_values", values))
        return cast("Checkpoint", dict(fields)), metadata

    def _ns_of(self, stored: Stored) -> str:
        return loaded(stored.data["x"], self._codec.loads)[3] if "x" in stored.data else stored.key[0]

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
            values = self.checkpoint_of(stored)[0]["channel_values"]
            for channel in waiting & values.keys():
                histories[channel]["seed"] = values[channel]
            waiting -= values.keys()
        return histories
