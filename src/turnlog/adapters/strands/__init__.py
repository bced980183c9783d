"""A session repository for Strands Agents, and a session manager that uses it.

    from turnlog.adapters.strands import TurnlogSessionManager

    agent = Agent(session_manager=TurnlogSessionManager("s1"))

The messages of the first agent are the session's; every other agent has a session of its own, spawned from it. A
redaction is an edit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.adapters._shelf import AnyHome, Closing, Shelf, check_id, framework, joined
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.entry import Set
from turnlog.log.item import expand, squeeze
from turnlog.session import Session as Kept

framework("strands", "strands")

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
from turnlog.adapters.strands.place import listed, next_place, placed, places_of  # noqa: E402

if TYPE_CHECKING:
    from strands.multiagent import MultiAgentBase
    from strands.types.agent import LocalAgent

__all__ = ["TurnlogSessionManager", "TurnlogSessionRepository"]

_ENDS = 256
_AGENT = "strands.agent"
_MULTI = "strands.multi_agent:"


class TurnlogSessionRepository(SessionRepository, Closing):
    """Keeps sessions, agents and messages of Strands in a home. Safe to use from many threads and processes.

    What two processes add to one agent is kept, whatever numbers they give to it.
    """

    def __init__(self, home: AnyHome = None) -> None:
        self.shelf = Shelf(home, FRAMEWORK)
        self._ends: dict[str, tuple[int, int]] = {}
        """The head of each session, and the place of what comes next."""

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
            self.shelf.make(name, labels=labels, drafts=[Set(key="listed", value={})])
        except AlreadyExists:
            raise SessionException(f"Session {name} already exists") from None
        return session

    def read_session(self, session_id: str, **kwargs: Any) -> Session | None:
        """A session; None if there is none. One of another agent's will do."""
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
                self.shelf.purge(child.id)
        self.shelf.purge(session_id)

    def _session(self, session_id: str, *, fresh: bool = True) -> Kept | None:
        session = self.shelf.find(check_id(session_id, "session_id"), fresh=fresh)
        is_agents = session is not None and session.labels.get("framework") == FRAMEWORK and "agent" in session.labels
        return None if is_agents else session

    def _required(self, session_id: str) -> Kept:
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
                    own = self.shelf.hold(session.spawn(agent=name, id=joined(session_id, name), labels=labels))
                own.append(fact)
                return
            except Conflict:
                continue
            except AlreadyExists:
                if self._agent(session_id, name) is None:
                    taken = f"there is a session of the id {joined(session_id, name)} already"
                    raise SessionException(f"Agent {name} in session {session_id}: {taken}") from None

    def read_agent(self, session_id: str, agent_id: str, **kwargs: Any) -> SessionAgent | None:
        """An agent of a session; None if there is none."""
        session = self._agent(session_id, agent_id)
        kept = None if session is None else session.get(_AGENT)
        return None if kept is None else SessionAgent.from_dict(expand(kept, []))

    def update_agent(self, session_id: str, session_agent: SessionAgent, **kwargs: Any) -> None:
        """What an agent knows beside its messages."""
        previous = self.read_agent(session_id, session_agent.agent_id)
        if previous is None:
            raise _no_agent(session_id, session_agent.agent_id)
        session_agent.created_at = previous.created_at
        fact = _fact(_AGENT, session_agent.to_dict())
        session = self._agent(session_id, session_agent.agent_id, fresh=False)
        assert session is not None
        session.append(fact)

    def adopt(self, session_id: str, agent: LocalAgent) -> None:
        """A session that was written without Strands is this agent's from now on; so is one whose agent was lost."""
        session = self._session(session_id)
        if session is None or session.get(_AGENT) is not None or not session.head:
            return
        if _first(session) in (None, agent.agent_id):
            self.create_agent(session_id, SessionAgent.from_agent(agent))

    def _agent(self, session_id: str, agent_id: str, *, fresh: bool = True) -> Kept | None:
        """The session with the messages of an agent."""
        session = self._session(session_id, fresh=fresh)
        if session is None or _first(session) == check_id(agent_id, "agent_id"):
            return session
        spawned = self.shelf.find(joined(session_id, agent_id), fresh=fresh)
        return spawned if spawned is not None and "agent" in spawned.labels else None

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def create_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """Add a message. Durable when this returns."""
        draft, is_fresh = draft_of(session_message), False
        while True:
            session = self._agent(session_id, agent_id, fresh=is_fresh)
            if session is None:
                raise _no_agent(session_id, agent_id)
            is_fresh, head = True, session.head
            number = self._next_place(session, head)
            try:
                message = session.append(placed(draft, number), after=head)
            except NotFound:
                self.shelf.forget(session.id)
            except Conflict:
                continue  # somebody else's is at that place
            else:
                if len(self._ends) > _ENDS:
                    self._ends.clear()
                self._ends[session.id] = message.seq, number + 1
                return

    def _next_place(self, session: Kept, head: int) -> int:
        end = self._ends.get(session.id)
        if end is not None and end[0] == head:
            return end[1]
        return next_place(session)

    def read_message(self, session_id: str, agent_id: str, message_id: int, **kwargs: Any) -> SessionMessage | None:
        """The message at that place of an agent's conversation; None if there is none."""
        if not isinstance(message_id, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"message_id=<{message_id!r:.80}> | message id must be an integer")
        session = self._agent(session_id, agent_id)
        messages = [] if session is None or message_id < 0 else listed(session, message_id, 1)
        return messages[0] if messages and messages[0].message_id == message_id else None

    def update_message(self, session_id: str, agent_id: str, session_message: SessionMessage, **kwargs: Any) -> None:
        """From now on a message reads so. What it said stays in the log."""
        while True:
            session = self._agent(session_id, agent_id)
            if session is None:
                raise _no_agent(session_id, agent_id)
            places, _ = places_of(session)
            messages = messages_of(session, places, {})
            same = [one for one in messages if one.created_at == session_message.created_at]
            numbered = [one for one in messages if one.message_id == session_message.message_id]
            which = next(iter([one for one in same if one in numbered] or same or numbered), None)
            if which is None:
                raise SessionException(f"Message {session_message.message_id} does not exist")
            session_message.created_at = which.created_at
            node = dict(places)[which.message_id]
            try:
                session.append(edit_of(node.seq, session_message), after=session.head)
            except Conflict:
                continue
            return

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **kwargs: Any
    ) -> list[SessionMessage]:
        """The messages of an agent, oldest first, from place `offset` on."""
        session = self._agent(session_id, agent_id)
        if session is None:
            raise _no_agent(session_id, agent_id)
        return listed(session, offset, limit)

    # ── several agents ────────────────────────────────────────────────────────────────────────────

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """What a graph or a swarm of agents knows."""
        name = check_id(multi_agent.id, "multi_agent_id")
        self._required(session_id).append(_fact(_MULTI + name, multi_agent.serialize_state()))

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **kwargs: Any) -> dict[str, Any] | None:
        """The same again; None if there is none."""
        session = self._session(session_id)
        kept = None if session is None else session.get(_MULTI + check_id(multi_agent_id, "multi_agent_id"))
        return None if kept is None else expand(kept, [])

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **kwargs: Any) -> None:
        """What it knows now."""
        if self._required(session_id).get(_MULTI + multi_agent.id) is None:
            raise SessionException(f"MultiAgent state {multi_agent.id} in session {session_id} does not exist")
        self.create_multi_agent(session_id, multi_agent)


class TurnlogSessionManager(RepositorySessionManager, Closing):
    """Keeps what an agent says in a session of a home, and gives it back when an agent begins again."""

    def __init__(self, session_id: str, home: AnyHome = None, **kwargs: Any) -> None:
        repository = TurnlogSessionRepository(home)
        self.shelf = repository.shelf
        self._adopt = repository.adopt
        super().__init__(session_id, repository, **kwargs)

    def initialize(self, agent: LocalAgent, **kwargs: Any) -> None:
        """The agent begins, or goes on with what is there: whoever wrote it."""
        self._adopt(self.session_id, agent)
        super().initialize(agent, **kwargs)


def _first(session: Kept) -> str | None:
    """The agent whose messages are the session's; each of two facts names it, so that one may be lost."""
    listed: dict[str, Any] = session.get("listed") or {}
    kept = session.get(_AGENT)
    return listed.get("agent") or (None if kept is None else expand(kept, [])["agent_id"])


def _fact(key: str, state: Any) -> Set:
    try:
        return Set(key=key, value=squeeze(state, []), exact=True)
    except (TypeError, ValueError) as error:
        raise Invalid(f"a state that is not JSON: {error}", hint="keep texts, numbers, lists and dicts in it") from None


def _no_agent(session_id: str, agent_id: str) -> SessionException:
    return SessionException(f"Agent {agent_id} in session {session_id} does not exist")
