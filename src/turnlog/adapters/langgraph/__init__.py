"""A checkpointer for LangGraph, LangChain's agents and Deep Agents.

    from turnlog.adapters.langgraph import TurnlogSaver

    with TurnlogSaver("~/.turnlog") as saver:
        graph = builder.compile(checkpointer=saver)

A thread is a session, and the messages of its state are the conversation. Of the rest only what changed is written.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, cast

from turnlog.adapters._shelf import AnyHome, check_id, framework

framework("langgraph.checkpoint.base", "langgraph")

from langchain_core.messages import BaseMessage  # noqa: E402
from langchain_core.runnables import RunnableConfig  # noqa: E402
from langgraph.checkpoint.base import (  # noqa: E402
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol  # noqa: E402

from turnlog.adapters.langgraph.message import FRAMEWORK  # noqa: E402
from turnlog.adapters.langgraph.reading import ReadingSaver, config_of, configurable, place_of  # noqa: E402
from turnlog.adapters.langgraph.thread import (  # noqa: E402
    CHECKPOINT,
    HIDDEN,
    WRITES,
    Key,
    SeenValue,
    Stored,
    Thread,
    is_again,
    labelled,
)
from turnlog.adapters.langgraph.value import Element, Kept, is_same  # noqa: E402
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound  # noqa: E402
from turnlog.log.entry import AnyEntry, Custom  # noqa: E402

__all__ = ["TurnlogSaver"]

_CONFLICTS = ("branch", "raise")
_STRATEGIES = ("keep_latest", "delete")


class TurnlogSaver(ReadingSaver):
    """Keeps checkpoints in sessions of a home. Safe to use from many threads, tasks and processes.

    Where two put a checkpoint on the same one, both are kept, as LangGraph does it; with `conflicts="raise"` the second
    is a `turnlog.Conflict`. With a serializer that is not the plain one nothing readable reaches the home.
    """

    def __init__(
        self, home: AnyHome = None, *, serde: SerializerProtocol | None = None, conflicts: str = "branch"
    ) -> None:
        if conflicts not in _CONFLICTS:
            raise Invalid(f"conflicts={conflicts!r:.40}", hint=f"one of {', '.join(_CONFLICTS)}")
        super().__init__(home, serde)
        self._conflicts = conflicts

    def _append(self, thread_id: str, thread: Thread | None, drafts: list[AnyEntry], **options: Any) -> Thread | None:
        """Append to a thread, or begin it. None where somebody else was faster: then one looks again."""
        try:
            if thread is None:
                self.shelf.make(thread_id, labels={"thread_id": thread_id}, drafts=drafts)
                return self.thread(thread_id, fresh=False)
            entries: Any = thread.session.append(*drafts, **options)
            thread.take(cast("list[AnyEntry]", entries) if isinstance(entries, list) else [entries])
        except (AlreadyExists, Conflict, NotFound):
            if thread is None or not self.shelf.home.exists(thread_id):
                self.shelf.forget(thread_id)
            return None
        return thread

    # ── writing ───────────────────────────────────────────────────────────────────────────────────

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint. Durable when this returns."""
        thread_id, ns = place_of(config)
        parent = get_checkpoint_id(config)
        about = get_checkpoint_metadata(config, metadata)
        with self.shelf.locked(thread_id):
            is_first = True
            while True:
                thread = self.thread(thread_id, fresh=not is_first)
                is_first = False
                self._refuse_other(thread, ns, parent)
                drafts, seen = self._drafts(thread, ns, parent, checkpoint, about)
                written = self._append(thread_id, thread, drafts, **_goes_on_from(thread, self.ns_kept(ns), parent))
                if written is not None:
                    written.remember((self.ns_kept(ns), checkpoint["id"]), seen)
                    return config_of(configurable(config)["thread_id"], ns, checkpoint["id"])

    def _refuse_other(self, thread: Thread | None, ns: str, parent: str | None) -> None:
        latest = thread.latest(self.ns_kept(ns)) if self._conflicts == "raise" and thread is not None else None
        if latest is not None and latest.key[1] != parent:
            raise Conflict(
                f"the newest checkpoint is {latest.key[1]}, not {parent}",
                hint="get the state again, and go on from there",
            )

    def _drafts(
        self, thread: Thread | None, ns: str, parent: str | None, checkpoint: Checkpoint, metadata: Any
    ) -> tuple[list[AnyEntry], dict[str, SeenValue]]:
        writer = self.writer(nodes=not ns)
        name, seen, values = checkpoint["id"], dict[str, SeenValue](), dict[str, Kept]()
        base, known = dict[str, SeenValue](), _nobody
        if thread is not None:
            key = (self.ns_kept(ns), parent) if parent else None
            base = thread.seen(key, lambda stored: self.checkpoint_of(thread, stored))
            known = thread.known(base)
        for index, (channel, value) in enumerate(checkpoint["channel_values"].items()):
            key = channel if self.is_plain else str(index)
            before = base.get(channel)
            where = None if before is None else before.where
            if type(value) is list:
                kept, elements = writer.list_of(
                    cast("list[Any]", value), before.elements if before else [], where, known
                )
                seen[channel] = SeenValue(kept.get("@") or [name, key], None, elements)
            else:
                kept = writer.kept(value)
                if before is not None and before.kept is not None and is_same(kept, before.kept):
                    seen[channel], kept = before, {"@": where}
                else:
                    seen[channel] = SeenValue([name, key], kept, [])
            values[key] = kept
        fields = dict(checkpoint)
        rest = {**fields, "channel_values": list(fields).index("channel_values")}
        data: dict[str, Any] = {"ns": self.ns_kept(ns), "id": name, "parent": parent}
        if self.is_plain:
            data |= {"c": writer.kept(rest), "m": writer.kept(metadata)}
        else:
            data["x"] = writer.kept((rest, metadata, list(checkpoint["channel_values"]), ns))
        return [*writer.drafts, Custom(kind=CHECKPOINT, data={**data, "values": values})], seen

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote, beside the checkpoint that it ran from. Durable when this returns."""
        thread_id, ns = place_of(config)
        key = (self.ns_kept(ns), str(configurable(config)["checkpoint_id"]))
        with self.shelf.locked(thread_id):
            is_first = True
            while True:
                thread = self.thread(thread_id, fresh=not is_first)
                is_first = False
                drafts, fresh = self._written_drafts(thread, key, writes, task_id, task_path)
                written = self._append(thread_id, thread, drafts, **({} if thread is None else {"rebase": True}))
                if written is not None:
                    written.recent.update((id(one.value), one) for one in fresh)
                    return

    def _written_drafts(
        self, thread: Thread | None, key: Key, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> tuple[list[AnyEntry], list[Element]]:
        writer = self.writer(nodes=thread is not None and thread.here == key)
        known = _nobody if thread is None else thread.known({})
        fresh: list[Element] = []

        def kept(value: Any) -> Kept:
            if isinstance(value, BaseMessage):
                made = writer.element(value, known)
                if "m" in made:
                    fresh.append(Element(value, made))
                return made
            several = cast("list[Any]", value) if type(value) is list else []
            if several and all(isinstance(one, BaseMessage) for one in several):
                return {"w": [kept(one) for one in several]}
            return writer.kept(value)

        made: list[list[Any]] = []
        for index, (channel, value) in enumerate(writes):
            how = [channel, kept(value)] if self.is_plain else writer.kept((channel, value))
            made.append([WRITES_IDX_MAP.get(channel, index), how])
        data: dict[str, Any] = {"ns": key[0], "id": key[1], "task": task_id, "again": is_again(writes), "writes": made}
        data["path"] = task_path if self.is_plain else writer.kept(task_path)
        return [*writer.drafts, Custom(kind=WRITES, data=data)], fresh

    # ── removing and copying ──────────────────────────────────────────────────────────────────────

    def delete_thread(self, thread_id: str) -> None:
        """Erase a thread: its session, for good."""
        name = check_id(str(thread_id), "thread_id")
        with self.shelf.locked(name):
            self._threads.pop(name, None)
            self.shelf.purge(name)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Hide the checkpoints of these runs. What they said stays in the log; `delete_thread` erases."""
        wanted = set(labelled(run_ids))
        for thread_id in self.all_threads() if wanted else ():
            with self.shelf.locked(thread_id):
                thread = self.thread(thread_id)
                if thread is not None:
                    of_runs = [
                        s for s in thread.newest_first() if self.checkpoint_of(thread, s)[1].get("run_id") in wanted
                    ]
                    self._hide(thread, of_runs)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Hide every checkpoint but the newest of each namespace; or, with `delete`, erase the threads."""
        if strategy not in _STRATEGIES:
            raise Invalid(f"strategy={strategy!r:.40}", hint=f"one of {', '.join(_STRATEGIES)}")
        for thread_id in labelled(thread_ids):
            if strategy == "delete":
                self.delete_thread(thread_id)
                continue
            with self.shelf.locked(thread_id):
                thread = self.thread(thread_id)
                if thread is not None:
                    newest = {ns: thread.latest(ns) for ns, _ in thread.all_visible()}
                    self._hide(thread, [s for s in thread.newest_first() if s is not newest[s.key[0]]])

    def _hide(self, thread: Thread, checkpoints: Sequence[Stored]) -> None:
        if checkpoints:
            data = {"checkpoints": [list(stored.key) for stored in checkpoints]}
            thread.take([thread.session.append(Custom(kind=HIDDEN, data=data), rebase=True)])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Another thread that continues this one: a fork, so nothing is copied."""
        source, target = check_id(str(source_thread_id), "thread_id"), check_id(str(target_thread_id), "thread_id")
        with self.shelf.locked(source):
            thread = self.thread(source)
            if thread is not None:
                labels = {"framework": FRAMEWORK, "thread_id": target}
                self.shelf.hold(thread.session.fork(id=target, labels=labels))

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Whole numbers; where another saver's are texts, so is the next one."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}" if isinstance(current, str) else number

    def with_allowlist(self, extra_allowlist: Any) -> Any:
        """A clone over the same home; see `BaseCheckpointSaver`."""
        clone = cast("TurnlogSaver", super().with_allowlist(extra_allowlist))
        if clone is self:
            return clone
        saver = copy.copy(clone)
        # What is known of a thread was made with one serializer.
        saver._threads = {} if saver.serde is not self.serde else self._threads
        return saver


def _goes_on_from(thread: Thread | None, ns: str, parent: str | None) -> dict[str, int]:
    """Where a checkpoint hangs that does not follow the newest: going back in time is a branch."""
    if thread is None or ns or thread.here is None or thread.here[1] == parent:
        return {}
    if not parent:
        return {"to": 0}
    stored = thread.checkpoints.get((ns, parent))
    return {} if stored is None else {"to": stored.seq}


def _nobody(message: BaseMessage) -> Kept | None:
    """Nothing is known of any message."""
    del message
