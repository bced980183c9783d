"""`turnlog hook AGENT EVENT`: what agents call. It never fails, and delays its agent by a few seconds at most.

The process that the agent started only waits, a few seconds at most, and exits with 0 whatever happens. A child does
the work. It holds none of the agent's descriptors, and continues in the background after the agent has its answer. So a
checkpoint of a huge folder, a disk that hangs or a fault of ours costs the agent a few seconds, once.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from turnlog.hooks import Meaning
    from turnlog.live.event import LiveEvent

BUDGET_S = 5.0
"""The longest time that an agent waits."""
_WORK_S = 4.5
"""The time after which work is given up that the agent waits for."""
_MOST_BYTES = 64 << 20


def run(arguments: list[str]) -> NoReturn:
    """Handle one event. Does not return."""
    began = time.monotonic()
    answer = b""
    try:
        read, write = os.pipe()
        parent = os.getppid()
        child = os.fork()
        if child == 0:
            _work(arguments, write, parent, began)
        os.close(write)
        ready, _, _ = select.select([read], [], [], max(0.0, BUDGET_S - (time.monotonic() - began)))
        answer = os.read(read, 4096) if ready else b""
        if answer:
            os.write(1, answer)
    finally:
        os._exit(0)


def _work(arguments: list[str], write: int, parent: int, began: float) -> NoReturn:
    """Handle the event in the child process."""
    gc.disable()  # it ends soon
    try:
        os.setsid()
        _close_inherited(write)
        data = _stdin(began)
        devnull = os.open(os.devnull, os.O_RDWR)
        os.dup2(devnull, 0)
        _handle(arguments, data, write, parent, began)
    finally:
        os._exit(0)


def _close_inherited(write: int) -> None:
    """Close all inherited descriptors but stdin."""
    devnull = os.open(os.devnull, os.O_RDWR)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    os.closerange(3, write)
    try:
        highest = max(map(int, os.listdir("/dev/fd")))
    except (OSError, ValueError):
        highest = 255
    os.closerange(write + 1, highest + 1)


def _stdin(began: float) -> bytes:
    """Read what the agent sends, until it is a whole document: some agents never close the pipe."""
    data = bytearray()
    while len(data) < _MOST_BYTES:
        left = _WORK_S / 2 - (time.monotonic() - began)
        ready, _, _ = select.select([0], [], [], max(0.0, left))
        if not ready:
            break
        piece = os.read(0, 1 << 20)
        if not piece:
            break
        data += piece
        if piece.rstrip().endswith(b"}") and len(piece) < 1 << 20 and _is_whole(data):
            break
    return bytes(data)


def _is_whole(data: bytearray) -> bool:
    """Whether this is a whole document."""
    ready, _, _ = select.select([0], [], [], 0)
    if ready:
        return False  # there is more, or its end
    import msgspec

    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class _Outcome:
    """What came of an event. It is filled step by step, so that it also tells how far a failed step came."""

    event: LiveEvent | None = None
    meaning: Meaning | None = None
    error = ""
    is_late = False

    @property
    def session(self) -> str:
        """The id of the event's session; "" if none is known."""
        return self.event.session if self.event is not None else ""


class _Deadline:
    """Raises `TooLate` in its block when the agent has waited long enough."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._is_waiting = True

    def __enter__(self) -> None:
        import signal

        signal.signal(signal.SIGALRM, self._raise)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, _WORK_S - (time.monotonic() - self._began)))

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if self._is_waiting:
            from turnlog.live.target import TooLate

            raise TooLate

    def __exit__(self, *error: object) -> None:
        import signal

        self._is_waiting = False
        signal.setitimer(signal.ITIMER_REAL, 0)


def _handle(arguments: list[str], data: bytes, write: int, parent: int, began: float) -> None:
    """Record the event, answer the agent, and do the rest in the background. Errors are written to the trace."""
    from turnlog.hooks.trace import note

    agent, event = (*arguments, "", "")[:2]
    folder = _trace_folder()
    outcome = _record(agent, event, data, parent, began)
    note(folder, agent, event, outcome.session, began, outcome.error)
    _answer(write, outcome.event)
    if outcome.session:
        try:
            _work_in_background(outcome)
        except Exception as problem:
            note(folder, agent, f"{event} (afterwards)", outcome.session, began, _describe(problem))


def _trace_folder() -> str:
    from turnlog.errors import TurnlogError
    from turnlog.machine.environment import default_home, state_folder
    from turnlog.machine.location import folder_of

    try:
        return folder_of(default_home()) or state_folder()
    except TurnlogError:
        return state_folder()


def _record(agent: str, event: str, data: bytes, parent: int, began: float) -> _Outcome:
    """Record the event within the time limit. Never raises."""
    from turnlog.errors import TurnlogError

    outcome = _Outcome()
    try:
        _apply(outcome, agent, event, data, parent, began)
    except TurnlogError as problem:
        outcome.error = f"{type(problem).__name__}: {problem}"
    except Exception as problem:  # whatever it is, it must not become the agent's problem
        outcome.error = _describe(problem)
    return outcome


def _apply(outcome: _Outcome, agent: str, event: str, data: bytes, parent: int, began: float) -> None:
    from turnlog.live.event import TooLate

    try:
        with _Deadline(began):
            outcome.event, outcome.meaning = _decode_event(agent, event, data, parent)
            if outcome.meaning is not None:
                outcome.event.apply(outcome.meaning)
        outcome.error = outcome.event.problem
    except TooLate:
        outcome.is_late = True
        outcome.error = "it took too long"


def _decode_event(name: str, event: str, data: bytes, parent: int) -> tuple[LiveEvent, Meaning | None]:
    """Return the event and its meaning; None for an event that we do not handle."""
    from turnlog.hooks import hooked_agent
    from turnlog.live.event import LiveEvent
    from turnlog.live.payload import Payload
    from turnlog.machine.environment import environment

    hooked = hooked_agent(name)
    known = hooked.event(event)
    payload = Payload(data, environment(), hooked.folder_variable)
    return LiveEvent.open(hooked, payload, parent), None if known is None else known.means


def _answer(write: int, event: LiveEvent | None) -> None:
    """Let the agent go on, with the text for its model unless `TURNLOG_QUIET` is set."""
    from turnlog.machine.environment import environment

    is_quiet = environment().get("TURNLOG_QUIET", "") not in ("", "0")
    text = event.context if event is not None and not is_quiet else ""
    try:
        if text:
            os.write(write, text.encode("utf-8", "replace")[:4000].decode("utf-8", "ignore").encode())
    except OSError:
        pass  # the agent no longer waits
    os.close(write)


def _work_in_background(outcome: _Outcome) -> None:
    os.nice(10)
    gc.enable()
    from turnlog.live.background import work

    if outcome.event is not None:
        work(outcome.event, outcome.meaning, is_late=outcome.is_late)


def _describe(problem: Exception) -> str:
    import traceback

    last = traceback.extract_tb(problem.__traceback__)[-1:]
    where = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in last)
    return f"{type(problem).__name__}: {str(problem)[:200]}{where}"


if __name__ == "__main__":
    run(sys.argv[1:])
