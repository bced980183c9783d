"""A session repository for Strands Agents, and a session manager that uses it.

    from turnlog.adapters.strands import TurnlogSessionManager

    agent = Agent(session_manager=TurnlogSessionManager("s1"))

The messages of the first agent are the session's; every other agent has a session of its own, spawned from it. A
redaction is an edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.adapters._argument import check_id
from turnlog.adapters._compositeid import join_parts
from turnlog.adapters._framework import import_framework
from turnlog.adapters._recent import Recent
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.entry import Set
from turnlog.log.item import expand, squeeze
from turnlog.session import Session as LoggedSession

import_framework("strands", "strands")

from strands.session.repository_session_manager import RepositorySessionManager  # noqa: E402
from strands.session.session_repository import SessionRepository  # noqa: E402
from strands.types.exceptions import SessionException  # noqa: E402
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType  # noqa: E402

from turnlog.adapters.strands.message import (  # noqa: E402
    FRAMEWORK,
    draft_of,
    edit_of,
    messages_of,
)
from turnlog.adapters.strands.position import messages_from, next_position, positioned_messages, with_position  # noqa: E402

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase
    from strands.types.agent import LocalAgent

__all__ = ["TurnlogSessionManager", "TurnlogSessionRepository"]

_ENDS = 256
_AGENT = "strands.agent"
_MULTI = "strands.multi_agent:"


class _End(NamedTuple):
    """The head of a session, and the position of what is appended next."""

    head: int
    next_position: int


class TurnlogSessionRepository(SessionRepository, ClosableAdapter):
    """Keeps sessions, agents and messages of Strands in a home. Safe to use from many threads and processes.

    What two processes add to one agent is kept, whatever numbers they give to it.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.sessions = AdapterSessions(home, FRAMEWORK)
        self._ends: Recent[str, _End] = Recent(_ENDS)

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def create_session(self, session: Session, **kwargs: Any) -> Session:
        """A new session; `SessionException` if there is one of that id."""
        name = check_id(session.session_id, "session_id")
        labels = {
            "session": name,
            "type": SessionType(session.session_type).value,
            "created_at": session.created_at,
            "updated_at": session.updated_at,
        }
        try:
            self.sessions.create(name, labels=labels, drafts=[Set(key="listed", value={})])
        except AlreadyExists:
            raise SessionException(f"Session {name} already exists") from None
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session; None if there is none. It may be one that another program wrote."""
        session = self._session(session_id)
        if session is None:
            return None
        times = {name: session.labels[name] for name in ("created_at", "updated_at") if name in session.labels}
        return Session(session_id, SessionType(session.labels.get("type", SessionType.AGENT.value)), **times)

    def delete_session(self, session_id: str, **kwargs: Any) -> None:
        """Erase a session, and those of its other agents."""
        session = self._required(session_id)
        for child in session.children():
            if child.labels.get("framework") == FRAMEWORK:
                self.sessions.purge(child.id)
        self.sessions.purge(session_id)

    def _session(self, session_id: str, *, fresh: bool = True) -> LoggedSession | None:
        session = self.sessions.find(check_id(session_id, "session_id"), fresh=fresh)
        if session is None:
            return None
        labels = session.labels
        is_of_another_agent = "agent" in labels and labels.get("framework") == FRAMEWORK
        return None if is_of_another_agent else session

    def _required(self, session_id: str) -> LoggedSession:
        session = self._session(session_id)
        if session is None:
            raise SessionException(f"Session {session_id} does not exist")
        return session

    # ── agents ────────────────────────────────────────────────────────────────────────────────────

    def create_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """A new agent in a session; `SessionException` if there is one of that id."""
        name = check_id(session_agent.agent_id, "agent_id")
        fact = _fact(_AGENT, session_agent.to_dict())
        while True:
            session = self._required(session_id)
            own = self._agent(session_id, name) if _first(session) is not None else session
            if own is not None and own.get(_AGENT) is not None:
                raise SessionException(f"Agent {name} already exists in session {session_id}")
            try:
                if own is session:
                    session.append(Set(key="listed", value={"agent": name}), fact, alone=True)
                    return
                if own is None:
                    labels = {"framework": FRAMEWORK, "session": session_id, "agent": name}
                    own = self.sessions.hold(session.spawn(agent=name, id=join_parts(session_id, name), labels=labels))
                own.append(fact)
                return
            except Conflict:
                continue
            except AlreadyExists:
                if self._agent(session_id, name) is None:
                    taken = f"there is a session of the id {join_parts(session_id, name)} already"
                    raise SessionException(f"Agent {name} in session {session_id}: {taken}") from None

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """An agent of a session; None if there is none."""
        session = self._agent(session_id, agent_id)
        return None if session is None else _stored_agent(session)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """Store the state of an agent, which is beside its messages."""
        while True:
            session = self._required_agent(session_id, session_agent.agent_id)
            previous = _stored_agent(session)
            if previous is None:
                raise _no_agent(session_id, session_agent.agent_id)
            session_agent.created_at = previous.created_at
            try:
                session.append(_fact(_AGENT, session_agent.to_dict()))
            except NotFound:  # purged meanwhile; there may be another one of that id
                continue
            return

    def adopt(self, session_id: str, agent: LocalAgent) -> None:
        """Make this the agent of a session that was written without Strands, or whose agent was lost."""
        session = self._session(session_id)
        if session is None or session.get(_AGENT) is not None or not session.head:
            return
        if _first(session) in (None, agent.agent_id):
            self.create_agent(session_id, SessionAgent.from_agent(agent))

    def _agent(self, session_id: str, agent_id: str, *, fresh: bool = True) -> LoggedSession | None:
        """The session with the messages of an agent."""
        session = self._session(session_id, fresh=fresh)
        if session is None or _first(session) == check_id(agent_id, "agent_id"):
            return session
        spawned = self.sessions.find(join_parts(session_id, agent_id), fresh=fresh)
        return spawned if spawned is not None and "agent" in spawned.labels else None

    def _required_agent(self, session_id: str, agent_id: str, *, fresh: bool = True) -> LoggedSession:
        session = self._agent(session_id, agent_id, fresh=fresh)
        if session is None:
            raise _no_agent(session_id, agent_id)
        return session

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Add a message. Durable when this returns."""
        draft, is_fresh = draft_of(session_message), False
        while True:
            session = self._required_agent(session_id, agent_id, fresh=is_fresh)
            is_fresh, head = True, session.head
            position = self._next_position(session, head)
            try:
                message = session.append(with_position(draft, position), after=head)
            except NotFound:
                self.sessions.forget(session.id)
            except Conflict:
                continue  # somebody else's is at that position
            else:
                self._ends.put(session.id, _End(message.seq, position + 1))
                return

    def _next_position(self, session: LoggedSession, head: int) -> int:
        end = self._ends.get(session.id)
        if end is not None and end.head == head:
            return end.next_position
        return next_position(session)

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """The message at that position of an agent's conversation; None if there is none."""
        if not isinstance(message_id, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"message_id=<{message_id!r:.80}> | message id must be an integer")
        session = self._agent(session_id, agent_id)
        messages = [] if session is None or message_id < 0 else messages_from(session, message_id, 1)
        return messages[0] if messages and messages[0].message_id == message_id else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Replace what a message says. What it said before stays in the log."""
        while True:
            session = self._required_agent(session_id, agent_id)
            positioned = positioned_messages(session).messages
            updated = _find_updated(messages_of(session, positioned, {}), session_message)
            if updated is None:
                raise SessionException(f"Message {session_message.message_id} does not exist")
            session_message.created_at = updated.created_at
            node = dict(positioned)[updated.message_id]
            try:
                session.append(edit_of(node.seq, session_message), after=session.head)
            except (Conflict, NotFound):
                continue
            return

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent, oldest first, from position `offset` on."""
        return messages_from(self._required_agent(session_id, agent_id), offset, limit)

    # ── several agents ────────────────────────────────────────────────────────────────────────────

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Store the state of a graph or a swarm of agents."""
        name = check_id(multi_agent.id, "multi_agent_id")
        self._required(session_id).append(_fact(_MULTI + name, multi_agent.serialize_state()))

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The state of a graph or a swarm; None if there is none."""
        session = self._session(session_id)
        kept = None if session is None else session.get(_MULTI + check_id(multi_agent_id, "multi_agent_id"))
        return None if kept is None else expand(kept, [])

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """Replace the state of a graph or a swarm."""
        if self._required(session_id).get(_MULTI + multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self.create_multi_agent(session_id, multi_agent)


class TurnlogSessionManager(RepositorySessionManager, ClosableAdapter):
    """Keeps what an agent says in a session of a home, and gives it back when an agent begins again."""

    def __init__(self, session_id: str, home: AnyHome = None, **kwargs: Any) -> None:
        repository = TurnlogSessionRepository(home)
        self.sessions = repository.sessions
        self._adopt = repository.adopt
        super().__init__(session_id, repository, **kwargs)

    def initialize(self, agent: LocalAgent, **kwargs: Any) -> None:
        """Begin with an empty session, or go on with the messages that are there, whoever wrote them."""
        self._adopt(self.session_id, agent)
        super().initialize(agent, **kwargs)


def _first(session: LoggedSession) -> str | None:
    """The agent whose messages are the session's; each of two facts names it, so that one may be lost."""
    listing: dict[str, Any] = session.get("listed") or {}
    kept = session.get(_AGENT)
    return listing.get("agent") or (None if kept is None else expand(kept, [])["agent_id"])


def _stored_agent(session: LoggedSession) -> SessionAgent | None:
    """The state of the agent whose messages a session has; None if it was never stored."""
    kept = session.get(_AGENT)
    return None if kept is None else SessionAgent.from_dict(expand(kept, []))


def _find_updated(messages: list[SessionMessage], wanted: SessionMessage) -> SessionMessage | None:
    """The message that an update is for.

    The time comes before the position: with two processes, or after a compaction, the position that an agent counted
    may be another message's by now.
    """
    same_time = [message for message in messages if message.created_at == wanted.created_at]
    same_position = [message for message in messages if message.message_id == wanted.message_id]
    both = [message for message in same_time if message in same_position]
    return next(iter(both or same_time or same_position), None)


def _fact(key: str, state: Any) -> Set:
    """A fact with a state as its value; `Invalid` if that is not JSON."""
    try:
        return Set(key=key, value=squeeze(state, []), exact=True)
    except (TypeError, ValueError) as error:
        raise Invalid(f"a state that is not JSON: {error}", hint="keep texts, numbers, lists and dicts in it") from None


def _no_agent(session_id: str, agent_id: str) -> SessionException:
    return SessionException(f"Agent {agent_id} in session {session_id} does not exist")
