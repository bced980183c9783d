"""A session for the OpenAI Agents SDK.

    from turnlog.adapters.openai_agents import TurnlogSession

    result = await Runner.run(agent, "hi", session=TurnlogSession("chat-1"))

One item is one message. `pop_item` and `clear_session` are rewinds: nothing is erased by them.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, cast

from turnlog.adapters._argument import check_id, check_list
from turnlog.adapters._framework import import_framework
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.adapters.openai_agents.item import FRAMEWORK, Item, drafted, items_of
from turnlog.adapters.openai_agents.popping import pop_item
from turnlog.adapters.openai_agents.runusage import RecordedUsage
from turnlog.errors import AlreadyExists, Conflict, NotFound
from turnlog.log.entry import AnyEntry, Message, Spent
from turnlog.log.item import kept_of
from turnlog.session import Session
from turnlog.store.forked import renew_after_fork

import_framework("agents", "openai-agents")

from agents.memory.session_settings import (  # noqa: E402
    SessionSettings,
    coerce_session_settings,
    resolve_session_limit,
)

if TYPE_CHECKING:
    from agents import RunContextWrapper, TResponseInputItem

__all__ = ["TurnlogSession"]


class TurnlogSession(ClosableAdapter):
    """Keeps the items of one conversation in a session of a home. Safe to use from many threads, tasks and processes.

    The tokens of each run are recorded with its items. `session` is the `turnlog.Session` behind it.
    """

    def __init__(
        self,
        session_id: str,
        home: AnyHome = None,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        workspace: str | os.PathLike[str] | None = None,
    ) -> None:
        self.session_id = check_id(session_id, "session_id")
        self.session_settings: SessionSettings | None = coerce_session_settings(session_settings or SessionSettings())
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._workspace = workspace
        self.after_fork()
        renew_after_fork(self)
        self._recorded_usage = RecordedUsage()

    def after_fork(self) -> None:
        """See `renew_after_fork`: a thread of the parent may hold the old one."""
        self._adding = threading.Lock()

    @property
    def session(self) -> Session:
        """The session, made if there is none yet."""
        return self.sessions.find(self.session_id) or self._make([])

    def _make(self, drafts: list[AnyEntry]) -> Session:
        labels = {"session_id": self.session_id}
        return self.sessions.create(self.session_id, labels=labels, workspace=self._workspace, drafts=drafts)

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    async def get_items(
        self, limit: int | None = None, *, wrapper: RunContextWrapper[Any] | None = None
    ) -> list[TResponseInputItem]:
        """The conversation, oldest first; the newest `limit` items of it."""
        del wrapper
        return cast("list[TResponseInputItem]", await self.sessions.run(self._get, limit))

    async def add_items(
        self, items: list[TResponseInputItem], *, wrapper: RunContextWrapper[Any] | None = None
    ) -> None:
        """Append items as one batch. Durable when this returns."""
        await self.sessions.run(self._add, cast("list[Item]", items), wrapper)

    async def pop_item(self, *, wrapper: RunContextWrapper[Any] | None = None) -> TResponseInputItem | None:
        """Take back the newest item and return it. Of several callers at once, each gets another one."""
        del wrapper
        return cast("TResponseInputItem | None", await self.sessions.run(self._pop))

    async def clear_session(self, *, wrapper: RunContextWrapper[Any] | None = None) -> None:
        """Begin anew. What was there stays as a branch; `home.purge` erases."""
        del wrapper
        await self.sessions.run(self._clear)

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _get(self, limit: int | None) -> list[Item]:
        limit = resolve_session_limit(limit, self.session_settings)
        session = self.sessions.find(self.session_id)
        if session is None or (limit is not None and limit <= 0):
            return []
        if limit is not None:
            nodes = session.path(last=limit)
            newest = [node for node in nodes if isinstance(node, Message) and kept_of(node, FRAMEWORK) is not None]
            if len(newest) == len(nodes):  # one item each
                return [item for message in newest for item in items_of(message, session)]
        context = session.context(repair=False)
        items = [
            item for message in context for item in items_of(message, session, edited=message.seq in context.edited)
        ]
        return items if limit is None else items[-limit:]

    def _add(self, items: list[Item], wrapper: Any) -> None:
        drafts: list[AnyEntry] = [drafted(item) for item in check_list(items, "items")]
        if not drafts:
            self.sessions.check_open()
            return
        with self._adding:
            usage = self._recorded_usage.unrecorded(wrapper)
            if usage is not None:
                drafts.append(Spent(usage=usage.unrecorded, why="run"))
            self._append(drafts)
            if usage is not None:
                self._recorded_usage.record(usage)

    def _append(self, drafts: list[AnyEntry]) -> None:
        while True:
            session = self.sessions.find(self.session_id, fresh=False)
            try:
                if session is None:
                    self._make(drafts)
                else:
                    session.append(*drafts, rebase=True)
            except AlreadyExists:
                continue
            except NotFound:
                self.sessions.forget(self.session_id)
                continue
            return

    def _pop(self) -> Item | None:
        while True:
            session = self.sessions.find(self.session_id)
            try:
                return None if session is None else pop_item(session)
            except (Conflict, NotFound):
                continue

    def _clear(self) -> None:
        while (session := self.sessions.find(self.session_id)) is not None and session.head:
            try:
                session.rewind(to=0, files=False)
            except (Conflict, NotFound):
                continue
