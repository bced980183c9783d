"""One event that an agent tells of, taken into the session that it is about. Raises what goes wrong."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from turnlog.errors import AlreadyExists, Invalid, NotFound
from turnlog.live.interruption import was_interrupted
from turnlog.log.entry import Start
from turnlog.log.ids import imported_id
from turnlog.log.path import path_bytes
from turnlog.machine.environment import default_home, environment, running_in
from turnlog.machine.folder import place_in, refuses_checkpoints, top_of, workspace_path
from turnlog.machine.location import connect, folder_of
from turnlog.machine.process import caller, process_of
from turnlog.machine.space import space
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, native_of, worker_of
from turnlog.store import Store, derived
from turnlog.thread.alias import session_under
from turnlog.thread.appender import Appender
from turnlog.thread.history import History, loaded
from turnlog.thread.settings import Settings
from turnlog.workspace.git import repository_place, worktree_of

if TYPE_CHECKING:
    from turnlog.hooks import HookedAgent
    from turnlog.live.payload import Payload

LATE = "it took too long to look at the files, so it is not known what this turn changed"


class TooLate(BaseException):
    """The agent has waited long enough. Raised wherever the work is: nothing of it is kept then."""


class LiveEvent:
    """An event of a session, and the session."""

    def __init__(self, agent: HookedAgent, payload: Payload, pid: int) -> None:
        self._agent = agent
        self._payload = payload
        self._pid = payload.pid or caller(pid)
        location = default_home()
        self.store: Store = connect(location)
        self._location = location
        self._folder = folder_of(location)
        self._space = space(self._folder)
        self._is_full = False
        self.name = ""
        """The session, when it is known."""
        self.context = ""
        """What the model is to be told."""

    def take(self, means: str) -> None:
        """A turn begins, a tool ended, a turn ends, the agent ends."""
        if not self._payload.session:
            raise Invalid("the agent did not say which session it is")
        if means == "begin" and not self._payload.is_asked:
            return
        with self._relay(is_new=means == "begin") as relay:
            if relay is None:
                return  # unknown session: no turn was begun
            taking = {"begin": self._begin, "tool": self._tool, "end": self._end, "leave": self._leave}
            taking[means](relay)

    # ── what happens ──────────────────────────────────────────────────────────────────────────────

    def _begin(self, relay: TurnRelay) -> None:
        self._enter(relay)
        native, worker = self._payload.turn_or_digest(), worker_of(process_of(self._pid) if self._pid else None)
        if self._agent.takes_context:
            from turnlog.live.notice import taken_back

            self.context = taken_back(relay.history)
        try:
            relay.begin(native, worker, self._refused(), running_in())
        except TooLate:
            relay.begin(native, worker, LATE, running_in())
            raise

    def _tool(self, relay: TurnRelay) -> None:
        if self._refused() or self._is_interrupted(relay):
            return
        self._enter(relay)
        changed, outside = self._edited(relay)
        relay.tool(self._payload.turn or None, changed, outside)

    def _enter(self, relay: TurnRelay) -> None:
        """Where the agent went into another worktree of its repository, it is covered from now on."""
        state = relay.history.state
        workspace, top = state.wide.get("workspace"), worktree_of(os.path.realpath(self._payload.cwd or "/"))
        if not workspace or top is None or (name := workspace_path(top)) in (workspace, *state.folders):
            return
        main = worktree_of(os.fsdecode(path_bytes(workspace)))
        if main is not None and repository_place(main) == repository_place(top) and not refuses_checkpoints(top):
            relay.enter(name)

    def _edited(self, relay: TurnRelay) -> tuple[list[str], list[str]]:
        """The files that a tool edited, as the log names them; and those that are in no folder of the session."""
        state = relay.history.state
        workspace = str(state.wide.get("workspace") or "")
        folders = sorted(filter(None, (workspace, *state.folders)), key=len, reverse=True)
        changed: list[str] = []
        outside: list[str] = []
        for path in self._payload.edited():
            full = place_in(workspace, path, is_relative=False)
            folder = next((one for one in folders if full.startswith(f"{one}/")), None)
            top = worktree_of(os.path.dirname(path)) if folder is not None else None
            if folder is None or (top is not None and workspace_path(top).startswith(f"{folder}/")):
                outside.append(full)
            changed.append(place_in(workspace, path, is_relative=folder == workspace))
        return changed, outside

    def _end(self, relay: TurnRelay) -> None:
        if self._is_interrupted(relay):
            return
        if self._payload.is_interrupted:
            relay.stop(self._payload.turn or None, self._refused())
            return
        try:
            relay.end(self._payload.turn or None, refused=self._refused())
        except TooLate:
            relay.end(self._payload.turn or None, refused=LATE)
            raise

    def _leave(self, relay: TurnRelay) -> None:
        relay.cut()

    def _is_interrupted(self, relay: TurnRelay) -> bool:
        """Whether the turn was interrupted before this: then it is over, and this is not of it."""
        path, turn = self._payload.path, native_of(relay.open_turn)
        if self._agent.says_interrupted is None or not path or turn is None or turn != self._payload.turn:
            return False
        first = next(iter(relay.history.log.read()), None)
        origin: Any = first.origin if isinstance(first, Start) else None
        is_own: bool = isinstance(origin, dict) and cast("dict[str, Any]", origin).get("path") == path
        return (is_own or self._is_at_home(path)) and was_interrupted(self._agent, turn, path) and relay.cut(turn)

    def look(self) -> None:
        """Take the checkpoint that timed out, unhurried, so that the next turn has one."""
        with self._relay(is_new=False) as relay:
            if relay is not None:
                relay.look()

    def follow(self, *, is_over: bool) -> None:
        """Bring in what was said; where a turn is over, until its last word is there."""
        from turnlog.live.follow import catch_up, follow

        (follow if is_over else catch_up)(self.store, self.name, self._payload.path, self._payload.session)

    def _refused(self) -> str:
        """Why automatic checkpoints are off; empty if they are on."""
        if not self._space.is_short:
            return ""
        return f"only {(self._space.free_bytes or 0) // 10**6} MB are free on the disk of {self._folder}"

    def keep_limit(self, *, is_over: bool) -> None:
        """See to it that the home does not become too large: when a turn is over, or there was no room for it."""
        if not is_over and not self._is_full:
            return
        from turnlog.thread.limit import keep_limit

        keep_limit(self.store, self._space.limit_bytes, is_full=self._is_full)

    # ── which session ─────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def _relay(self, *, is_new: bool) -> Generator[TurnRelay | None]:
        history = self._history(is_new=is_new)
        if history is None:
            yield None
            return
        try:
            appender = Appender(self.store, history)
            appender.is_guest = True
            files = Coverage(self.store, history, Settings(quota_bytes=self._space.limit_bytes))
            yield TurnRelay(self.store, appender, files)
            self._is_full = files.is_full
        finally:
            history.close()

    def _history(self, *, is_new: bool) -> History | None:
        """The session under the agent's id, or the one that goes on under it; made where a turn begins in a new one."""
        native = self._payload.session
        name = imported_id(self._agent.name, native)
        for _ in range(2):
            try:
                return self._opened(name)
            except NotFound:
                other = session_under(self.store, self._agent.name, native)
                if other is None:
                    break
                name = other
        return self._made_new(name, native) if is_new else None

    def _opened(self, name: str) -> History:
        history = loaded(self.store, self.store.open(name))
        self.name = name
        return history

    def _made_new(self, name: str, native: str) -> History:
        folder = self._payload.folder
        if not folder:
            raise NotFound("the folder that the agent works in is not there")
        if name in derived.ids(self.store, like=name, deleted=True):
            raise NotFound(f"session {name} was deleted here", hint=f"`turnlog restore {name}` brings it back")
        origin: dict[str, Any] = {"agent": self._agent.name, "id": native, "identity": native, "path": ""}
        if self._payload.path and self._is_at_home(self._payload.path):
            origin["path"] = self._payload.path
        workspace = workspace_path(top_of(folder)[0])
        # Its first entry is called like it: whoever imports the same has the same session.
        start = Start(id=name, session=name, agent=self._agent.name, workspace=workspace, origin=origin)
        from turnlog.thread.creator import Creator
        from turnlog.thread.made import CreatedHere

        try:
            session = Creator(self.store, CreatedHere(self._location), None).begin([start])
        except AlreadyExists:  # another hook of the same session was faster
            return self._opened(name)
        self.name = name
        if not self._agent.has_turns or not origin["path"]:
            return session
        session.close()
        from turnlog.live.past import bring_past

        bring_past(self.store, self._agent.name, native, origin["path"], self._payload.turn)
        return loaded(self.store, self.store.open(name))

    def _is_at_home(self, path: str) -> bool:
        from turnlog.exchange.source import lies_at_home
        from turnlog.formats import Source

        return lies_at_home(Source(self._agent.name, path))


def is_quiet() -> bool:
    """Whether nothing is to be told to a model."""
    return environment().get("TURNLOG_QUIET", "") not in ("", "0")
