"""Reading what a saver has put: tuples, listings, histories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from turnlog.adapters._shelf import AnyHome, Shelf, check_id
from turnlog.adapters.langgraph.awaited import AwaitedSaver
from turnlog.adapters.langgraph.message import FRAMEWORK
from turnlog.adapters.langgraph.thread import Key, Stored, Thread
from turnlog.adapters.langgraph.value import ValueWriter, loaded

_THREADS = 64
"""Of so many threads it is known what is in them."""


class ReadingSaver(AwaitedSaver):
    """The half of a saver that only reads."""

    def __init__(self, home: AnyHome, serde: SerializerProtocol | None) -> None:
        super().__init__(serde=serde)
        self.shelf = Shelf(home, FRAMEWORK)
        self._threads: dict[str, Thread] = {}

    @property
    def is_plain(self) -> bool:
        """Whether values may be readable."""
        return type(self.serde) is JsonPlusSerializer

    def thread(self, thread_id: str, *, fresh: bool = True) -> Thread | None:
        """What is known of a thread, with what others have written since. Its lock is held."""
        session = self.shelf.find(thread_id, fresh=fresh)
        thread = self._threads.pop(thread_id, None)
        if session is None:
            return None
        if thread is None or thread.session is not session:
            thread = Thread(session)
        self._threads[thread_id] = thread
        while len(self._threads) > _THREADS:
            self._threads.pop(next(iter(self._threads)), None)
        thread.sync()
        return thread

    def ns_kept(self, ns: str) -> str:
        """A namespace as the log has it: the name of a node is readable."""
        return ns if self.is_plain or not ns else sha256(ns.encode()).hexdigest()[:32]

    def writer(self, *, nodes: bool) -> ValueWriter:
        """What makes drafts of values."""
        return ValueWriter(self.serde.dumps_typed, is_plain=self.is_plain, nodes=nodes)

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest one."""
        thread_id, ns = place_of(config)
        with self.shelf.locked(thread_id):
            thread = self.thread(thread_id)
            if thread is None:
                return None
            name = get_checkpoint_id(config)
            kept_as = self.ns_kept(ns)
            stored = thread.get(kept_as, name) if name else thread.latest(kept_as)
            if stored is None:
                return None
            return self._tuple(thread, thread_id, stored, config if name else None, is_latest=not name)

    def _tuple(
        self, thread: Thread, thread_id: str, stored: Stored, config: RunnableConfig | None, *, is_latest: bool = False
    ) -> CheckpointTuple:
        checkpoint, metadata = self.checkpoint_of(thread, stored, is_latest=is_latest)
        ns, name = self._ns_of(stored), stored.key[1]
        parent = None if not stored.parent else config_of(thread_id, ns, stored.parent)
        writes = self._writes(thread, stored.key)
        return CheckpointTuple(config or config_of(thread_id, ns, name), checkpoint, metadata, parent, writes)

    def _ns_of(self, stored: Stored) -> str:
        return loaded(stored.data["x"], self.serde.loads_typed)[3] if "x" in stored.data else stored.key[0]

    def _writes(self, thread: Thread, key: Key) -> list[PendingWrite]:
        """What was written to a checkpoint, in the order in which it counts."""
        loads = self.serde.loads_typed
        ordered: list[tuple[tuple[str, str, int], PendingWrite]] = []
        for write in thread.writes(key):
            path = write.path if isinstance(write.path, str) else loaded(write.path, loads)
            ordered.append(((path, write.task, write.number), self._written(thread, write.task, write.data)))
        return [one for _, one in sorted(ordered, key=lambda pair: pair[0])]

    def checkpoint_of(self, thread: Thread, stored: Stored, *, is_latest: bool = False) -> tuple[Checkpoint, Any]:
        """A checkpoint and its metadata, made anew."""
        loads, data = self.serde.loads_typed, stored.data
        if "x" in data:
            rest, metadata, names, _ = loaded(data["x"], loads)
        else:
            rest, metadata, names = loaded(data["c"], loads), loaded(data["m"], loads), list(data["values"])
        values = thread.values(stored, names, loads)
        if is_latest:
            thread.told(stored, values, self.writer(nodes=False), loads)
        # In the order that it had: the values were one of its fields.
        position = rest.pop("channel_values")
        fields = list(rest.items())
        fields.insert(position, ("channel_values", values))
        return cast("Checkpoint", dict(fields)), metadata

    def _written(self, thread: Thread, task: str, data: Any) -> PendingWrite:
        loads = self.serde.loads_typed
        if isinstance(data, list):
            named, kept = cast("list[Any]", data)
            return task, named, thread.one(kept, loads)
        channel, value = loaded(data, loads)
        return task, channel, value

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first: of a thread, or of all of them."""
        return islice(self._list(config, filter or {}, get_checkpoint_id(before) if before else None), limit)

    def _list(
        self, config: RunnableConfig | None, wanted: dict[str, Any], before: str | None
    ) -> Iterator[CheckpointTuple]:
        places = configurable(config) if config else {}
        only = get_checkpoint_id(config) if config else None
        threads = [check_id(str(places["thread_id"]), "thread_id")] if places.get("thread_id") else self.all_threads()
        namespace = places.get("checkpoint_ns")
        wanted_ns = None if namespace is None else self.ns_kept(namespace)
        candidates: list[tuple[str, str, Stored]] = []
        for thread_id in threads:
            with self.shelf.locked(thread_id):
                thread = self.thread(thread_id)
                for stored in thread.newest_first() if thread is not None else ():
                    ns, name = stored.key
                    is_there = wanted_ns in (None, ns) and only in (None, name)
                    if is_there and (before is None or name < before):
                        candidates.append((name, thread_id, stored))
        for _, thread_id, stored in sorted(candidates, key=lambda one: one[0], reverse=True):
            with self.shelf.locked(thread_id):
                thread = self.thread(thread_id, fresh=False)
                checkpoint = None if thread is None else self._tuple(thread, thread_id, stored, None)
            if checkpoint is not None and all(checkpoint.metadata.get(key) == value for key, value in wanted.items()):
                yield checkpoint

    def all_threads(self) -> list[str]:
        """The ids of every thread."""
        return [row.id for row in self.shelf.home.sessions(labels={"framework": FRAMEWORK})]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to channels that keep only their changes; also where checkpoints were pruned."""
        thread_id, ns = place_of(config)
        histories: dict[str, DeltaChannelHistory] = {name: {"writes": []} for name in channels}
        with self.shelf.locked(thread_id):
            thread = self.thread(thread_id)
            if thread is None or not channels:
                return histories
            name = get_checkpoint_id(config)
            ns = self.ns_kept(ns)
            checkpoint = thread.get(ns, name) if name else thread.latest(ns)
            waiting = set(channels)
            while checkpoint is not None and checkpoint.parent and waiting:
                checkpoint = thread.checkpoints.get((ns, checkpoint.parent))
                if checkpoint is None:
                    break
                for write in reversed(self._writes(thread, checkpoint.key)):
                    if write[1] in waiting:
                        histories[write[1]]["writes"].insert(0, write)
                values = self.checkpoint_of(thread, checkpoint)[0]["channel_values"]
                for channel in waiting & values.keys():
                    histories[channel]["seed"] = values[channel]
                waiting -= values.keys()
        return histories


def configurable(config: RunnableConfig) -> dict[str, Any]:
    """What a config says of threads and checkpoints."""
    return config.get("configurable") or {}


def place_of(config: RunnableConfig) -> tuple[str, str]:
    """The thread and the namespace."""
    places = configurable(config)
    thread_id = places.get("thread_id")  # a number or a UUID will do
    return check_id("" if thread_id is None else str(thread_id), "thread_id"), str(places.get("checkpoint_ns") or "")


def config_of(thread_id: Any, ns: str, name: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, "checkpoint_id": name}}
