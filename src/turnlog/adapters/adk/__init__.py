"""A session service for Google's Agent Development Kit.

    from turnlog.adapters.adk import TurnlogSessionService

    runner = Runner(app_name="app", agent=agent, session_service=TurnlogSessionService())

One event is one message. State is folded from what events change in it; that of an app or a user, which their sessions
share, lies in a hidden session each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from turnlog.adapters._shelf import AnyHome, Closing, Shelf, check_id, framework, joined, parts_of
from turnlog.errors import AlreadyExists, Conflict, Invalid, NotFound
from turnlog.log.entry import AnyEntry, Custom, Set
from turnlog.log.ids import new_id
from turnlog.log.item import expand, squeeze
from turnlog.session import Session as Kept
from turnlog.thread.report import Info

framework("google.adk", "adk")

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


class TurnlogSessionService(BaseSessionService, Closing):
    """Keeps the sessions of ADK in a home. Safe to use from many threads, tasks and processes.

    An event for a session that somebody else has added one to since it was read is refused with `StaleSessionError`;
    with `stale="append"` it is added behind that.
    """

    def __init__(self, home: AnyHome = None, *, stale: str = "raise") -> None:
        if stale not in _STALE:
            raise Invalid(f"stale={stale!r:.80}", hint=f"one of {', '.join(_STALE)}")
        self.stale = stale
        self.shelf = Shelf(home, FRAMEWORK)

    # ── the service ───────────────────────────────────────────────────────────────────────────────

    async def create_session(
        self, *, app_name: str, user_id: str, state: dict[str, Any] | None = None, session_id: str | None = None
    ) -> Session:
        """A new session; `AlreadyExistsError` if there is one of that id."""
        return await self.shelf.run(self._create, app_name, user_id, state, session_id)

    async def get_session(
        self, *, app_name: str, user_id: str, session_id: str, config: GetSessionConfig | None = None
    ) -> Session | None:
        """A session with its events, or some of the newest; None if there is none."""
        return await self.shelf.run(self._get, app_name, user_id, session_id, config)

    async def list_sessions(self, *, app_name: str, user_id: str | None = None) -> ListSessionsResponse:
        """The sessions of an app, or of one of its users, without events: the one with the newest event last."""
        return await self.shelf.run(self._list, app_name, user_id)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session."""
        await self.shelf.run(self.shelf.purge, _id(app_name, user_id, session_id))

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        """The state that the sessions of a user share, without `user:`."""
        return await self.shelf.run(self._shared, app_name, user_id)

    async def append_event(self, session: Session, event: Event) -> Event:
        """Add an event. Durable when this returns; one that is partial is not kept."""
        if not isinstance(event, Event) or not isinstance(session, Session):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"{event!r:.80} for {session!r:.80}", hint="an Event of ADK's for a Session that was read")
        if event.partial:
            return event
        if await self.shelf.run(self._append, session, item_of(event)):
            await super().append_event(session, event)
        return event

    # ── the same, on a thread ─────────────────────────────────────────────────────────────────────

    def _create(self, app: str, user: str, state: object, given: str | None) -> Session:
        fields = cast("Mapping[object, Any]", {} if state is None else state)
        if not isinstance(fields, Mapping) or not all(isinstance(key, str) for key in fields):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Invalid(f"the state {state!r:.80} is not a mapping", hint="a state is a dict with texts as its keys")
        session_id = _stripped(given or "") or uuid.new_uuid()
        name = _id(app, user, session_id)
        parts = _Parts(to_jsonable_python(dict(fields), serialize_unknown=True))
        now = clock.get_time()
        drafts = [Set(key="listed", value=_listed(now, parts.own), exact=True), *_facts(parts.own)]
        labels = {"app": app, "user": user, "session": session_id}
        try:
            self.shelf.make(name, labels=labels, drafts=drafts)
        except AlreadyExists:
            raise AlreadyExistsError(f"Session with id {session_id} already exists.") from None
        self._share(app, user, parts)
        return self._made(app, user, session_id, parts.own, now)

    def _get(self, app: str, user: str, session_id: str, config: GetSessionConfig | None) -> Session | None:
        stored = self.shelf.find(_id(app, user, session_id))
        if stored is None:
            return None
        last = None if config is None else config.num_recent_events
        since = None if config is None else config.after_timestamp
        events = [] if last == 0 else events_of(stored, None if since else last)
        if since:
            events = [event for event in events if event.timestamp >= since][-(last or 0) :]
        return self._made(app, user, _stripped(session_id), _state(stored), _updated(stored), events)

    def _made(
        self,
        app: str,
        user: str,
        session_id: str,
        state: dict[str, Any],
        time: float,
        events: list[Event] | None = None,
    ) -> Session:
        merged = _merged(state, self._shared(app, None), self._shared(app, user))
        return Session(
            id=session_id, app_name=app, user_id=user, state=merged, events=events or [], last_update_time=time
        )

    def _list(self, app: str, user: str | None) -> ListSessionsResponse:
        check_id(app, "app_name")
        if user is not None:
            check_id(user, "user_id")
        shared, users = self._shared(app, None), dict[str, dict[str, Any]]()
        sessions: list[Session] = []
        for info in self.shelf.home.sessions():
            parts = parts_of(info.id)
            is_ours = info.labels.get("framework", FRAMEWORK) == FRAMEWORK  # a fork has no labels
            if not is_ours or len(parts) != 3 or parts[0] != app or user not in (None, parts[1]):
                continue
            entry = self._told(info)
            if entry is None:
                continue
            if parts[1] not in users:
                users[parts[1]] = self._shared(app, parts[1])
            state = _merged(entry[1], shared, users[parts[1]])
            sessions.append(
                Session(id=parts[2], app_name=app, user_id=parts[1], state=state, last_update_time=entry[0])
            )
        sessions.sort(key=lambda one: (one.last_update_time, one.user_id, one.id))
        return ListSessionsResponse(sessions=sessions)

    def _told(self, info: Info) -> tuple[float, dict[str, Any]] | None:
        """When a session was updated, and its state: as the listing says, or else as it does itself."""
        if info.listed.get("state") is not None:
            return info.listed["time"], expand(info.listed["state"], [])
        session = self.shelf.find(info.id)
        return None if session is None else (_updated(session), _state(session))

    def _append(self, session: Session, item: Item) -> bool:
        """Add it; whether it was not there yet."""
        name = _id(session.app_name, session.user_id, session.id)
        parts = _Parts(item["actions"]["state_delta"])
        with self.shelf.locked(name):
            while True:
                stored = self.shelf.find(name, fresh=False)
                if stored is None:
                    raise SessionNotFoundError(f"Session {session.id} not found.")
                try:
                    is_new = self._added(stored, session, item, parts.own)
                except Conflict:
                    stored.refresh()
                except NotFound:
                    self.shelf.forget(name)
                else:
                    break
            session.last_update_time = item["timestamp"]
        if is_new:
            self._share(session.app_name, session.user_id, parts)
        return is_new

    def _added(self, stored: Kept, session: Session, item: Item, own: dict[str, Any]) -> bool:
        if self.stale == "raise" and _updated(stored) > session.last_update_time:
            raise StaleSessionError(
                f"Session {session.id} was updated at {_updated(stored)}, and read at {session.last_update_time}."
                " Please read it again before an event is appended to it."
            )
        head, listed = stored.head, stored.get("listed")
        if own or not listed:
            listed = _listed(item["timestamp"], {**_state(stored), **own})
        facts = [Set(key="listed", value={**listed, "time": item["timestamp"]}, exact=True), *_facts(own)]
        rewound = item["actions"].get("rewind_before_invocation_id")
        first = first_of(stored, rewound) if rewound else None
        draft = draft_of(item, None if first is None else stored.path(last=1)[0].id)
        if first is not None and isinstance(draft, Custom):
            entries = stored.append(draft, *facts, to=first.parent or 0, after=head)
        else:
            entries = stored.append(draft, *facts, after=head if self.stale == "raise" else None, rebase=True)
        if entries[0].seq > head:
            return True
        if _kept(entries[0]) == _kept(draft):
            return False
        return self._added(stored, session, {**item, "id": new_id()}, own)  # another one that has the same id

    # ── what sessions share ───────────────────────────────────────────────────────────────────────

    def _shared(self, app: str, user: str | None) -> dict[str, Any]:
        """The state of a user, or of an app."""
        session = self.shelf.find(_shared_id(app, user))
        return {} if session is None else _state(session)

    def _share(self, app: str, user: str, parts: _Parts) -> None:
        for whose, state in ((None, parts.app), (user, parts.user)):
            while state:
                labels = {"app": app} if whose is None else {"app": app, "user": whose}
                name = _shared_id(app, whose)
                session = self.shelf.find(name, fresh=False) or self.shelf.make(name, labels=labels, hidden=True)
                try:
                    session.append(*_facts(state))
                except NotFound:
                    self.shelf.forget(name)
                    continue
                break


class _Parts:
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


def _merged(own: dict[str, Any], app: dict[str, Any], user: dict[str, Any]) -> dict[str, Any]:
    apps = {State.APP_PREFIX + key: value for key, value in app.items()}
    return {**own, **apps, **{State.USER_PREFIX + key: value for key, value in user.items()}}


def _stripped(session_id: object) -> str:
    if not isinstance(session_id, str):
        raise Invalid(f"the session_id {session_id!r:.80} is not a text", hint="give a session_id that is a text")
    return session_id.strip()


def _id(app: object, user: object, session_id: object) -> str:
    return joined(check_id(app, "app_name"), check_id(user, "user_id"), _stripped(session_id))


def _shared_id(app: object, user: object = None) -> str:
    """Of more parts than a session's has."""
    named = check_id(app, "app_name")
    if user is None:
        return joined(FRAMEWORK, "state", "app", named)
    return joined(FRAMEWORK, "state", "user", named, check_id(user, "user_id"))


def _facts(state: dict[str, Any]) -> list[Set]:
    return [Set(key=_FACT + key, value=squeeze(value, []), exact=True) for key, value in state.items()]


def _state(session: Kept) -> dict[str, Any]:
    facts = session.facts.items()
    return {key.removeprefix(_FACT): expand(value, []) for key, value in facts if key.startswith(_FACT)}


def _listed(time: float, state: dict[str, Any]) -> dict[str, Any]:
    kept = squeeze(state, [])
    return {"time": time, "state": kept if len(msgspec.json.encode(kept)) <= _LISTED_BYTES else None}


def _updated(session: Kept) -> float:
    listed = session.get("listed")
    if listed:
        return listed["time"]
    last = session.path(last=1)
    return last[0].at.timestamp() if last and last[0].at else 0.0


def _kept(node: AnyEntry) -> Any:
    return node.data if isinstance(node, Custom) else node.meta
