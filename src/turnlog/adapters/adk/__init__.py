"""A session service for Google's Agent Development Kit.

    from turnlog.adapters.adk import TurnlogSessionService

    runner = Runner(app_name="app", agent=agent, session_service=TurnlogSessionService())

One event is one message. State is folded from what events change in it; that of an app or a user, which their sessions
share, lies in a hidden session each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from turnlog.adapters._argument import check_id
from turnlog.adapters._compositeid import join_parts, split_parts
from turnlog.adapters._framework import import_framework
from turnlog.adapters._sessions import AdapterSessions, AnyHome, ClosableAdapter
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.entry import AnyEntry, Custom, Set
from turnlog.log.ids import new_id
from turnlog.log.item import expand, squeeze
from turnlog.session import Session as LoggedSession
from turnlog.thread.report import Info

import_framework("google.adk", "adk")

from google.adk.errors import StaleSessionError  # noqa: E402
from google.adk.errors.already_exists_error import AlreadyExistsError  # noqa: E402
from google.adk.errors.session_not_found_error import SessionNotFoundError  # noqa: E402
from google.adk.events import Event  # noqa: E402
from google.adk.platform import time as clock  # noqa: E402
from google.adk.platform import uuid  # noqa: E402
from google.adk.sessions import BaseSessionService, Session, State  # noqa: E402
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse  # noqa: E402
from pydantic_core import to_jsonable_python  # noqa: E402

from turnlog.adapters.adk.event import FRAMEWORK, Item, draft_of, events_of, first_of, item_of  # noqa: E402

__all__ = ["TurnlogSessionService"]

_FACT = "adk:"
_STALE = ("raise", "append")
_LISTED_BYTES = 1 << 10
"""A state that is longer is not in listings: it would be written with every event."""


class TurnlogSessionService(BaseSessionService, ClosableAdapter):
    """Keeps the sessions of ADK in a home. Safe to use from many threads, tasks and processes.

    An event for a session that somebody else has added one to since it was read is refused with `StaleSessionError`;
    with `stale="append"` it is added behind that.
    """

    def __init__(self, home: AnyHome = None, *, stale: str = "raise") -> None:
        if stale not in _STALE:
            raise Invalid(f"stale={stale!r:.80}", hint=f"one of {', '.join(_STALE)}")
        self.stale = stale
        self.sessions = AdapterSessions(home, FRAMEWORK)

    # ── the service ───────────────────────────────────────────────────────────────────────────────

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """A new session; `AlreadyExistsError` if there is one of that id."""
        return await self.sessions.run(self._create, app_name, user_id, state, session_id)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session with its events, or some of the newest; None if there is none."""
        return await self.sessions.run(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of an app, or of one of its users, without events: the one with the newest event last."""
        return await self.sessions.run(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session."""
        await self.sessions.run(self.sessions.purge, _session_id(app_name, user_id, session_id))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that the sessions of a user share, without `user:`."""
        return await self.sessions.run(self._shared_state, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event. Durable when this returns; one that is partial is not kept."""
        if not isinstance(event, Event) or not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{event!r:.80} for {session!r:.80}", hint="an Event of ADK's for a Session that was read")
        if event.partial:
            return event
        if await self.sessions.run(self._append, session, item_of(event)):
            await super().append_event(session, event)
        return event

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _create(self, app: str, user: str, state: object, given_id: str | None) -> Session:
        fields = cast("Mapping[object, Any]", {} if state is None else state)
        if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the state {state!r:.80} is not a mapping", hint="a state is a dict with texts as its keys")
        session_id = _stripped_id(given_id or "") or uuid.new_uuid()
        name = _session_id(app, user, session_id)
        parts = _ScopedState(to_jsonable_python(dict(fields), serialize_unknown=True))
        now = clock.get_time()
        drafts = [Set(key="listed", value=_listed_value(now, parts.own), exact=True), *_state_facts(parts.own)]
        labels = {"app": app, "user": user, "session": session_id}
        try:
            self.sessions.create(name, labels=labels, drafts=drafts)
        except AlreadyExists:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        self._append_shared_state(app, user, parts)
        return self._as_adk_session(app, user, session_id, parts.own, now)

    def _get(self, app: str, user: str, session_id: str, config: GetSessionConfig | None) -> Session | None:
        stored = self.sessions.find(_session_id(app, user, session_id))
        if stored is None:
            return None
        last = None if config is None else config.num_recent_events
        since = None if config is None else config.after_timestamp
        events = [] if last == 0 else events_of(stored, None if since else last)
        if since:
            events = [event for event in events if event.timestamp >= since][-(last or 0) :]
        return self._as_adk_session(
            app, user, _stripped_id(session_id), _state_of(stored), _updated_at_s(stored), events
        )

    def _as_adk_session(
        self,
        app: str,
        user: str,
        session_id: str,
        state: dict[str, Any],
        time: float,
        events: list[Event] | None = None,
    ) -> Session:
        merged = _scoped(state, self._shared_state(app, None), self._shared_state(app, user))
        return Session(
            id=session_id, app_name=app, user_id=user, state=merged, events=events or [], last_update_time=time
        )

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        check_id(app, "app_name")
        if user is not None:
            check_id(user, "user_id")
        shared, users = self._shared_state(app, None), dict[str, dict[str, Any]]()
        sessions: list[Session] = []
        for info in self.sessions.home.sessions():
            parts = split_parts(info.id)
            # A fork has no labels, nor has a session that a program began under such an id; `get_session` finds both.
            is_ours = info.labels.get("framework", FRAMEWORK) == FRAMEWORK
            if not is_ours or len(parts) != 3 or parts[0] != app or user not in (None, parts[1]):
                continue
            listed = self._listed_session(info)
            if listed is None:
                continue
            _, owner, session_id = parts
            if owner not in users:
                users[owner] = self._shared_state(app, owner)
            state = _scoped(listed.state, shared, users[owner])
            updated_at_s = listed.updated_at_s
            sessions.append(
                Session(id=session_id, app_name=app, user_id=owner, state=state, last_update_time=updated_at_s)
            )
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    def _listed_session(self, info: Info) -> _ListedSession | None:
        """A session as the listing has it, or as it says itself if its state is too long for listings."""
        if info.listed.get("state") is not None:
            return _ListedSession(info.listed["time"], expand(info.listed["state"], []))
        session = self.sessions.find(info.id)
        return None if session is None else _ListedSession(_updated_at_s(session), _state_of(session))

    def _append(self, session: Session, item: Item) -> bool:
        """Add an event; False if it was there already."""
        name = _session_id(session.app_name, session.user_id, session.id)
        parts = _ScopedState(item["actions"]["state_delta"])
        with self.sessions.locked(name):
            while True:
                stored = self.sessions.find(name, fresh=self.stale == "append")
                if stored is None:
                    raise SessionNotFoundError(f"Session {session.id} not found.")
                try:
                    is_new = self._append_checked(stored, session, item, parts.own)
                except Conflict:
                    stored.refresh()
                except NotFound:
                    self.sessions.forget(name)
                else:
                    break
            session.last_update_time = item["timestamp"]
        if is_new:
            self._append_shared_state(session.app_name, session.user_id, parts)
        return is_new

    def _append_checked(self, stored: LoggedSession, session: Session, item: Item, own: dict[str, Any]) -> bool:
        # Not only later: the clock of another machine may be behind.
        if self.stale == "raise" and _updated_at_s(stored) != session.last_update_time:
            raise StaleSessionError(
                f"Session {session.id} was updated at {_updated_at_s(stored)}, and read at {session.last_update_time}."
                " Please read it again before an event is appended to it."
            )
        head, listed = stored.head, stored.get("listed")
        if own or not listed:
            listed = _listed_value(item["timestamp"], {**_state_of(stored), **own})
        facts = [Set(key="listed", value={**listed, "time": item["timestamp"]}, exact=True), *_state_facts(own)]
        rewound_invocation = item["actions"].get("rewind_before_invocation_id")
        first_node = first_of(stored, rewound_invocation) if rewound_invocation else None
        draft = draft_of(item, None if first_node is None else stored.path(last=1)[0].id)
        to = first_node.parent or 0 if first_node is not None and isinstance(draft, Custom) else None
        try:  # facts of an event that is there already must not be set again
            stored.append(draft, *facts, to=to, after=head, once=True)
        except AlreadyExists:
            namesake = stored.find(draft.id)
            if namesake is not None and _stored_item(namesake) == _stored_item(draft):
                return False
            # Another event has that id: this one gets a new one.
            return self._append_checked(stored, session, {**item, "id": new_id()}, own)
        return True

    # ── what sessions share ───────────────────────────────────────────────────────────────────────

    def _shared_state(self, app: str, user: str | None) -> dict[str, Any]:
        """The state of a user, or of an app."""
        session = self.sessions.find(_shared_id(app, user))
        return {} if session is None else _state_of(session)

    def _append_shared_state(self, app: str, user: str, parts: _ScopedState) -> None:
        if parts.app:
            self._share_with(_shared_id(app, None), {"app": app}, parts.app)
        if parts.user:
            self._share_with(_shared_id(app, user), {"app": app, "user": user}, parts.user)

    def _share_with(self, name: str, labels: dict[str, str], state: dict[str, Any]) -> None:
        while True:
            session = self.sessions.find(name, fresh=False) or self.sessions.create(name, labels=labels, hidden=True)
            try:
                session.append(*_state_facts(state))
            except NotFound:
                self.sessions.forget(name)
                continue
            return


class _ListedSession(NamedTuple):
    updated_at_s: float
    state: dict[str, Any]


class _ScopedState:
    """A state, or a change of one: the session's own part, the app's and the user's."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.own: dict[str, Any] = {}
        self.app: dict[str, Any] = {}
        self.user: dict[str, Any] = {}
        for key, value in state.items():
            if key.startswith(State.APP_PREFIX):
                self.app[key.removeprefix(State.APP_PREFIX)] = value
            elif key.startswith(State.USER_PREFIX):
                self.user[key.removeprefix(State.USER_PREFIX)] = value
            elif not key.startswith(State.TEMP_PREFIX):
                self.own[key] = value


def _scoped(own: dict[str, Any], app: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    """The state that an agent sees: the session's own, and with their prefixes the app's and the user's."""
    apps = {State.APP_PREFIX + key: value for key, value in app.items()}
    return {**own, **apps, **{State.USER_PREFIX + key: value for key, value in user.items()}}


def _stripped_id(session_id: object) -> str:
    if not isinstance(session_id, str):
        raise Invalid(f"the session_id {session_id!r:.80} is not a text", hint="give a session_id that is a text")
    return session_id.strip()


def _session_id(app: object, user: object, session_id: object) -> str:
    return join_parts(check_id(app, "app_name"), check_id(user, "user_id"), _stripped_id(session_id))


def _shared_id(app: object, user: object = None) -> str:
    """The id of the session with the state of an app, or of a user. It has more parts than that of a conversation."""
    app_name = check_id(app, "app_name")
    if user is None:
        return join_parts(FRAMEWORK, "state", "app", app_name)
    return join_parts(FRAMEWORK, "state", "user", app_name, check_id(user, "user_id"))


def _state_facts(state: dict[str, Any]) -> list[Set]:
    return [Set(key=_FACT + key, value=squeeze(value, []), exact=True) for key, value in state.items()]


def _state_of(session: LoggedSession) -> dict[str, Any]:
    facts = session.facts.items()
    return {key.removeprefix(_FACT): expand(value, []) for key, value in facts if key.startswith(_FACT)}


def _listed_value(time: float, state: dict[str, Any]) -> dict[str, Any]:
    """What listings have of a session; its state only if that is short."""
    kept = squeeze(state, [])
    return {"time": time, "state": kept if len(msgspec.json.encode(kept)) <= _LISTED_BYTES else None}


def _updated_at_s(session: LoggedSession) -> float:
    listed = session.get("listed")
    if listed:
        return listed["time"]
    last = session.path(last=1)
    return last[0].at.timestamp() if last and last[0].at else 0.0


def _stored_item(node: AnyEntry) -> Any:
    return node.data if isinstance(node, Custom) else node.meta
