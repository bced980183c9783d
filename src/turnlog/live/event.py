"""Record one hook event in its session. Errors are raised; `hook.py` writes them down."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from turnlog.errors import Invalid
from turnlog.live.interruption import was_interrupted
from turnlog.live.target import SessionTarget, TooLate, is_at_home
from turnlog.log.entry import Start
from turnlog.machine.environment import default_home, running_in
from turnlog.machine.location import connect, folder_of
from turnlog.machine.process import caller, process_of
from turnlog.machine.space import Space, space
from turnlog.rewind.coverage import Coverage
from turnlog.rewind.relay import TurnRelay, native_of, worker_of
from turnlog.store import Store
from turnlog.thread.appender import Appender
from turnlog.thread.home.settings import Settings

if TYPE_CHECKING:
    from turnlog.hooks import HookedAgent, Meaning
    from turnlog.live.payload import NativeSession, Payload
    from turnlog.thread.history import History

_TOOK_TOO_LONG = "it took too long to look at the files, so it is not known what this turn changed"


class LiveEvent:
    """One event that an agent reported, and what it changes in the open turn of its session."""

    def __init__(self, agent: HookedAgent, payload: Payload, pid: int, target: SessionTarget, room: Space) -> None:
        self._agent = agent
        self._payload = payload
        self._pid = pid
        self._target = target
        self._room = room
        self.context = ""
        """Text to put before the model."""
        self.is_full = False
        """Whether the last checkpoint did not fit into the home's limit."""

    @classmethod
    def open(cls, agent: HookedAgent, payload: Payload, pid: int) -> LiveEvent:
        """Open the default home for an event that the process `pid` reported."""
        location = default_home()
        target = SessionTarget(connect(location), location, agent, payload)
        return cls(agent, payload, payload.pid or caller(pid), target, space(folder_of(location)))

    @property
    def store(self) -> Store:
        """The home's store."""
        return self._target.store

    @property
    def session(self) -> str:
        """The session's id; "" until it is found or created."""
        return self._target.id

    @property
    def native(self) -> NativeSession:
        """The session as its agent knows it."""
        return self._payload.native

    @property
    def problem(self) -> str:
        """The error of a step that failed without stopping the others."""
        return self._target.problem

    @property
    def limit_bytes(self) -> int:
        """How much the home's blobs may take."""
        return self._room.limit_bytes

    def apply(self, meaning: Meaning) -> None:
        """Apply the event to the session's open turn."""
        if not self._payload.native.id:
            raise Invalid("the agent did not say which session it is")
        if meaning == "begin" and not self._payload.begins_turn:
            return
        with self._relay(create=meaning == "begin") as relay:
            if relay is None:
                return  # unknown session: no turn was begun
            match meaning:
                case "begin":
                    self._begin(relay)
                case "tool":
                    self._record_tool(relay)
                case "end":
                    self._end(relay)
                case "leave":
                    relay.abort()

    def take_missed_checkpoint(self) -> None:
        """Take the checkpoint that timed out, without a time limit, so that the next turn has one."""
        with self._relay(create=False) as relay:
            if relay is not None:
                relay.take_late_checkpoint()

    @contextmanager
    def _relay(self, *, create: bool) -> Generator[TurnRelay | None]:
        history = self._target.find(create=create)
        if history is None:
            yield None
            return
        try:
            appender = Appender(self.store, history)
            appender.writes_no_writer_entry = True
            files = Coverage(self.store, history, Settings(quota_bytes=self.limit_bytes))
            yield TurnRelay(self.store, appender, files)
            self.is_full = files.is_full
        finally:
            history.close()

    def _begin(self, relay: TurnRelay) -> None:
        native, worker = self._payload.turn_or_digest(), worker_of(dict(process_of(self._pid)) if self._pid else None)
        try:
            if self._target.is_late:
                raise TooLate
            self._cover_worktree(relay)
            if self._agent.takes_context:
                from turnlog.live.notice import taken_back

                self.context = taken_back(relay.history)
            relay.begin(native, worker, self._no_checkpoint_reason(), running_in())
        except TooLate:
            relay.begin(native, worker, _TOOK_TOO_LONG, running_in())
            raise

    def _record_tool(self, relay: TurnRelay) -> None:
        if self._no_checkpoint_reason() or self._is_interrupted(relay):
            return
        from turnlog.live.editedpath import edited_paths

        self._cover_worktree(relay)
        edited, outside = edited_paths(relay.history.state, self._payload.edited())
        relay.record_tool(self._payload.turn or None, edited, outside)

    def _end(self, relay: TurnRelay) -> None:
        if self._is_interrupted(relay):
            return
        turn, reason = self._payload.turn or None, self._no_checkpoint_reason()
        if self._payload.is_interrupted:
            relay.abort_by_user(turn, reason)
            return
        try:
            relay.end(turn, refused=reason)
        except TooLate:
            relay.end(turn, refused=_TOOK_TOO_LONG)
            raise

    def _cover_worktree(self, relay: TurnRelay) -> None:
        """Cover another worktree of the repository if the agent moved into it."""
        from turnlog.live.editedpath import entered_worktree

        worktree = entered_worktree(relay.history.state, self._payload.cwd)
        if worktree is not None:
            relay.cover_folder(worktree)

    def _is_interrupted(self, relay: TurnRelay) -> bool:
        """End the open turn if the agent's file says that it was interrupted. Returns whether it was."""
        path, turn = self.native.path, native_of(relay.open_turn)
        if self._agent.says_interrupted is None or not path or turn is None or turn != self._payload.turn:
            return False
        if path != _origin_path(relay.history) and not is_at_home(self._agent.name, path):
            return False
        return was_interrupted(self._agent, turn, path) and relay.abort(turn)

    def _no_checkpoint_reason(self) -> str:
        """Return why automatic checkpoints are off; "" if they are on."""
        if not self._room.is_short:
            return ""
        folder = folder_of(self._target.location)
        return f"only {(self._room.free_bytes or 0) // 10**6} MB are free on the disk of {folder}"


def _origin_path(history: History) -> str | None:
    """Return the agent's file that the session was created for. `exchange` has that too, but takes long to load."""
    first = next(iter(history.log.read()), None)
    origin = first.origin if isinstance(first, Start) else None
    return cast("dict[str, Any]", origin).get("path") if isinstance(origin, dict) else None
