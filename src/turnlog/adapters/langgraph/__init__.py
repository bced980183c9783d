"""A checkpointer for LangGraph, LangChain's agents and Deep Agents.

    from turnlog.adapters.langgraph import TurnlogSaver

    with TurnlogSaver("~/.turnlog") as saver:
        graph = builder.compile(checkpointer=saver)

A thread is a session, and the messages of its state are the conversation. Of the rest only what changed is written.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, cast

from turnlog.adapters._argument import check_id
from turnlog.adapters._framework import import_framework
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter

import_framework("langgraph.checkpoint.base", "langgraph")

from langchain_core.runnables import RunnableConfig  # noqa: E402
from langgraph.checkpoint.base import (  # noqa: E402
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol  # noqa: E402

from turnlog.adapters.langgraph.config import config_of, configurable, place_of  # noqa: E402
from turnlog.adapters.langgraph.index import HIDDEN, Stored  # noqa: E402
from turnlog.adapters.langgraph.message import FRAMEWORK  # noqa: E402
from turnlog.adapters.langgraph.reading import CheckpointReader  # noqa: E402
from turnlog.adapters.langgraph.thread import KnownThread, KnownThreads  # noqa: E402
from turnlog.adapters.langgraph.value import ValueCodec  # noqa: E402
from turnlog.adapters.langgraph.writing import append_position, checkpoint_drafts, write_drafts  # noqa: E402
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound  # noqa: E402
from turnlog.log.entry import AnyEntry, Custom  # noqa: E402

__all__ = ["TurnlogSaver"]

_CONFLICTS = ("branch", "raise")
_STRATEGIES = ("keep_latest", "delete")
_PAGE = 16


class _Candidate(NamedTuple):
    """A checkpoint that may be one of those that a caller listed."""

    thread_id: str
    thread: KnownThread
    stored: Stored


class TurnlogSaver(ClosableAdapter, BaseCheckpointSaver[int]):
    """Keeps checkpoints in sessions of a home. Safe to use from many threads, tasks and processes.

    Where two put a checkpoint on the same one, both are kept, as LangGraph does it; with `conflicts="raise"` the second
    is a `turnlog.Conflict`. With a serializer that is not the plain one nothing readable reaches the home.
    """

    def __init__(
        self, home: AnyHome = None, *, serde: SerializerProtocol | None = None, conflicts: str = "branch"
    ) -> None:
        if conflicts not in _CONFLICTS:
            raise Invalid(f"conflicts={conflicts!r:.40}", hint=f"one of {', '.join(_CONFLICTS)}")
        super().__init__(serde=serde)
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._threads = KnownThreads(self.sessions)
        self._conflicts = conflicts

    # ── reading ───────────────────────────────────────────────────────────────────────────────────

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest one."""
        thread_id, ns = place_of(config)
        codec = ValueCodec(self.serde)
        with self.sessions.locked(thread_id):
            thread = self._threads.find(thread_id)
            if thread is None:
                return None
            reader = CheckpointReader(thread, codec)
            return reader.find(thread_id, codec.stored_ns(ns), get_checkpoint_id(config), config)

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
        names = configurable(config) if config else {}
        only = get_checkpoint_id(config) if config else None
        thread_ids = [check_id(str(names["thread_id"]), "thread_id")] if names.get("thread_id") else self._thread_ids()
        namespace = names.get("checkpoint_ns")
        codec = ValueCodec(self.serde)
        wanted_ns = None if namespace is None else codec.stored_ns(namespace)
        candidates: list[_Candidate] = []
        for thread_id in thread_ids:
            with self.sessions.locked(thread_id):
                thread = self._threads.find(thread_id)
                if thread is None:
                    continue
                outside = None
                if not thread.index.checkpoints and before is None and not wanted:
                    outside = CheckpointReader(thread, codec).outside_tuple(thread_id, wanted_ns or "", only)
                for stored in thread.index.visible():
                    ns, name = stored.key
                    is_asked_for = wanted_ns in (None, ns) and only in (None, name)
                    if is_asked_for and (before is None or name < before):
                        candidates.append(_Candidate(thread_id, thread, stored))
            if outside is not None:  # the caller may do anything before it asks for the next one: no lock is held
                yield outside
        candidates.sort(key=lambda candidate: candidate.stored.key[1], reverse=True)
        for thread_id, thread, stored in candidates:
            with self.sessions.locked(thread_id):
                if not self._threads.is_there(thread):
                    continue
                reader = CheckpointReader(thread, codec)
                metadata = reader.metadata_of(stored)
                if any(metadata.get(key) != value for key, value in wanted.items()):
                    continue
                checkpoint = reader.tuple_of(thread_id, stored)
            yield checkpoint

    def _thread_ids(self) -> list[str]:
        return [info.id for info in self.sessions.infos()]

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What was written to channels that keep only their changes; also where checkpoints were pruned."""
        thread_id, ns = place_of(config)
        codec = ValueCodec(self.serde)
        with self.sessions.locked(thread_id):
            thread = self._threads.find(thread_id)
            if thread is None:
                return {name: {"writes": []} for name in channels}
            name = get_checkpoint_id(config)
            return CheckpointReader(thread, codec).delta_channel_history(codec.stored_ns(ns), name, channels)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint. Durable when this returns."""
        thread_id, ns = place_of(config)
        parent = get_checkpoint_id(config)
        merged_metadata = get_checkpoint_metadata(config, metadata)
        codec = ValueCodec(self.serde)
        key = (codec.stored_ns(ns), checkpoint["id"])
        with self.sessions.locked(thread_id):
            is_first = True
            while True:
                thread = self._threads.find(thread_id, fresh=not is_first)
                is_first = False
                self._refuse_other(thread, key[0], parent)
                drafts, seen = checkpoint_drafts(thread, codec, key, parent, checkpoint, merged_metadata, ns)
                thread = self._append(thread_id, thread, drafts, **append_position(thread, key[0], parent))
                if thread is not None:
                    thread.handed_out.remember(key, seen)
                    return config_of(configurable(config)["thread_id"], ns, checkpoint["id"])

    def _refuse_other(self, thread: KnownThread | None, stored_ns: str, parent: str | None) -> None:
        latest = thread.index.latest(stored_ns) if self._conflicts == "raise" and thread is not None else None
        if latest is not None and latest.key[1] != parent:
            raise Conflict(
                f"the newest checkpoint is {latest.key[1]}, not {parent}",
                hint="get the state again, and go on from there",
            )

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, beside the checkpoint that it ran from. Durable when this returns."""
        thread_id, ns = place_of(config)
        codec = ValueCodec(self.serde)
        key = (codec.stored_ns(ns), str(configurable(config)["checkpoint_id"]))
        with self.sessions.locked(thread_id):
            is_first = True
            while True:
                thread = self._threads.find(thread_id, fresh=not is_first)
                is_first = False
                drafts, new_elements = write_drafts(thread, codec, key, writes, task_id, task_path)
                thread = self._append(thread_id, thread, drafts, **({} if thread is None else {"rebase": True}))
                if thread is not None:
                    written = ((id(element.value), element) for element in new_elements)
                    thread.handed_out.written_elements.update(written)
                    return

    def _append(
        self, thread_id: str, thread: KnownThread | None, drafts: list[AnyEntry], **options: Any
    ) -> KnownThread | None:
        """Append to a thread, or begin it. None if another writer was faster: then the caller tries again."""
        try:
            if thread is None:
                self.sessions.create(thread_id, labels={"thread_id": thread_id}, drafts=drafts)
                return self._threads.find(thread_id, fresh=False)
            entries: Any = thread.session.append(*drafts, **options)
            thread.index.apply(cast("list[AnyEntry]", entries) if isinstance(entries, list) else [entries])
        except (AlreadyExists, Conflict, NotFound):
            if thread is None or not self.sessions.home.exists(thread_id):
                self.sessions.forget(thread_id)
            return None
        return thread

    # ── removing and copying ──────────────────────────────────────────────────────────────────────

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: its session, for good."""
        name = check_id(str(thread_id), "thread_id")
        with self.sessions.locked(name):
            self._threads.forget(name)
            self.sessions.purge(name)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of these runs. What they said stays in the log; `delete_thread` erases."""
        wanted = set(map(str, run_ids))
        for thread_id in self._thread_ids() if wanted else ():
            with self.sessions.locked(thread_id):
                thread = self._threads.find(thread_id)
                if thread is not None:
                    reader = CheckpointReader(thread, ValueCodec(self.serde))
                    checkpoints = thread.index.visible()
                    self._hide(thread, [s for s in checkpoints if reader.metadata_of(s).get("run_id") in wanted])

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide every checkpoint but the newest of each namespace; or, with `delete`, erase the threads."""
        if strategy not in _STRATEGIES:
            raise Invalid(f"strategy={strategy!r:.40}", hint=f"one of {', '.join(_STRATEGIES)}")
        for thread_id in map(str, thread_ids):
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            with self.sessions.locked(thread_id):
                thread = self._threads.find(thread_id)
                if thread is not None:
                    checkpoints = thread.index.visible()
                    self._hide(thread, [s for s in checkpoints if s is not thread.index.latest(s.key[0])])

    def _hide(self, thread: KnownThread, checkpoints: Sequence[Stored]) -> None:
        if checkpoints:
            data = {"checkpoints": [list(stored.key) for stored in checkpoints]}
            thread.index.apply([thread.session.append(Custom(kind=HIDDEN, data=data), rebase=True)])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Another thread that continues this one: a fork, so nothing is copied."""
        source, target = check_id(str(source_thread_id), "thread_id"), check_id(str(target_thread_id), "thread_id")
        with self.sessions.locked(source):
            thread = self._threads.find(source)
            if thread is not None:
                labels = {"framework": FRAMEWORK, "thread_id": target}
                self.sessions.hold(thread.session.fork(id=target, labels=labels))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """The next whole number, as a text if another saver's are texts."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}" if isinstance(current, str) else number

    def with_allowlist(self, extra_allowlist: Any) -> Any:
        """A clone over the same home; see `BaseCheckpointSaver`."""
        clone = cast("TurnlogSaver", super().with_allowlist(extra_allowlist))
        if clone is not self:
            clone._threads = KnownThreads(self.sessions)  # what is known of a thread was made with one serializer
        return clone

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await self.sessions.run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        source = self.list(config, filter=filter, before=before, limit=limit)
        while page := await self.sessions.run(lambda: list(islice(source, _PAGE))):
            for checkpoint in page:
                yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await self.sessions.run(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See `put_writes`."""
        await self.sessions.run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await self.sessions.run(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await self.sessions.run(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await self.sessions.run(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `prune`."""
        await self.sessions.run(self.prune, thread_ids, strategy=strategy)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """See `get_delta_channel_history`."""
        return await self.sessions.run(self.get_delta_channel_history, config=config, channels=channels)
