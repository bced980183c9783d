"""The session that an event is about: found under the agent's id or an alias, or created when a turn begins."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from turnlog.errors import AlreadyExists, NotFound, TurnlogError
from turnlog.log.entry import Start
from turnlog.log.ids import imported_id
from turnlog.machine.folder import workspace_path
from turnlog.machine.workspacetop import top_of
from turnlog.store import Store, derived
from turnlog.thread.history import History, loaded
from turnlog.thread.home.alias import session_of_alias

if TYPE_CHECKING:
    from turnlog.hooks import HookedAgent
    from turnlog.live.payload import NativeSession, Payload


class TooLate(BaseException):
    """The agent has waited long enough. Raised wherever the work is; nothing of that is kept."""


class SessionTarget:
    """The session of one event."""

    def __init__(self, store: Store, location: str, agent: HookedAgent, payload: Payload) -> None:
        self.store = store
        self.location = location
        self._agent = agent
        self._payload = payload
        self.id = ""
        """The session's id; "" until it is found or created."""
        self.problem = ""
        """Why earlier turns were not imported into a new session; "" if they were."""
        self.is_late = False
        """Whether importing them took so long that the agent has waited long enough."""

    def find(self, *, create: bool) -> History | None:
        """Return the session's history; None if there is no session. With `create`, a missing one is created."""
        native = self._payload.native
        own_id = imported_id(self._agent.name, native.id)
        with suppress(NotFound):
            return self._opened(own_id)
        alias = session_of_alias(self.store, self._agent.name, native.id)
        if alias is not None:
            with suppress(NotFound):
                return self._opened(alias)
        if not create:
            return None
        for name in (own_id, alias):
            if name is not None and derived.exists(self.store, name, deleted=True):
                raise NotFound(f"session {name} was deleted here", hint=f"`turnlog restore {name}` brings it back")
        return self._created(own_id, native)

    def _opened(self, name: str) -> History:
        history = loaded(self.store, self.store.open(name))
        self.id = name
        return history

    def _created(self, name: str, native: NativeSession) -> History:
        folder = self._payload.folder
        if not folder:
            raise NotFound("the folder that the agent works in does not exist")
        path = native.path if native.path and is_at_home(self._agent.name, native.path) else ""
        origin: dict[str, Any] = {"agent": self._agent.name, "id": native.id, "identity": native.id, "path": path}
        workspace = workspace_path(top_of(folder).folder)
        # The first entry has the session's id, as in an import: both make the same session.
        start = Start(id=name, session=name, agent=self._agent.name, workspace=workspace, origin=origin)
        from turnlog.thread.home.createdhere import CreatedHere
        from turnlog.thread.home.creator import Creator

        try:
            history = Creator(self.store, CreatedHere(self.location), None).begin([start])
        except AlreadyExists:  # another hook of the same session was faster
            return self._opened(name)
        self.id = name
        if not self._agent.has_turns or not path:
            return history
        history.close()
        self._import_earlier(native)
        return self._opened(name)

    def _import_earlier(self, native: NativeSession) -> None:
        """Import the turns before this one. Only the number of the turn depends on them, so they may be missing."""
        from turnlog.live.earlier import import_earlier

        try:
            import_earlier(self.store, self._agent.name, native, before=self._payload.turn)
        except TooLate:
            self.is_late = True
        except (TurnlogError, OSError) as error:
            self.problem = f"what was said before was not imported: {error}"


def is_at_home(agent: str, path: str) -> bool:
    """Whether a file is where its agent keeps this person's sessions; a workspace may be anybody's clone."""
    from turnlog.exchange.source import lies_at_home
    from turnlog.formats import Source

    return lies_at_home(Source(agent, path))
