"""`turnlog hook AGENT EVENT`: what agents call. It never fails, says nothing and does not keep its agent waiting.

The process that the agent started only waits, a few seconds at the most, and ends with 0 whatever happens. The work is
done by a child, which holds none of the agent's descriptors: what does not fit goes on there when the agent has long
gone on. So a checkpoint of a huge folder, a disk that hangs or a fault of ours costs the agent a few seconds, once.
"""

from __future__ import annotations

import gc
import os
import select
import sys
import time
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from turnlog.live.event import LiveEvent

BUDGET_S = 5.0
"""How long an agent waits at the most."""
_WORK_S = 4.5
"""After which work that the agent waits for is given up."""
_MOST_BYTES = 64 << 20


def run(arguments: list[str]) -> NoReturn:
    """Take one event. Does not return."""
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
    """In the child."""
    gc.disable()  # it ends soon
    try:
        os.setsid()
        _let_go(write)
        data = _stdin(began)
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 0)
        _handle(arguments, data, write, parent, began)
    finally:
        os._exit(0)


def _let_go(write: int) -> None:
    """Close all inherited descriptors but stdin."""
    quiet = os.open(os.devnull, os.O_RDWR)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    os.closerange(3, write)
    try:
        highest = max(map(int, os.listdir("/dev/fd")))
    except (OSError, ValueError):
        highest = 255
    os.closerange(write + 1, highest + 1)


def _stdin(began: float) -> bytes:
    """What the agent says, until it ends or is whole: some never close it."""
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
    """Whether that is a whole document."""
    ready, _, _ = select.select([0], [], [], 0)
    if ready:
        return False  # there is more, or its end
    import msgspec

    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _handle(arguments: list[str], data: bytes, write: int, parent: int, began: float) -> None:
    """The event, and what is to be done behind the agent's back; what goes wrong is written down."""
    import signal
    from types import FrameType

    from turnlog.errors import TurnlogError
    from turnlog.hooks.trace import note
    from turnlog.machine.environment import default_home, state_folder
    from turnlog.machine.location import folder_of

    name, event = (*arguments, "", "")[:2]
    error, happened, means, is_late = "", None, "", False
    try:
        folder = folder_of(default_home()) or state_folder()
    except TurnlogError:
        folder = state_folder()
    try:
        from turnlog.live.event import TooLate

        def late(number: int, frame: FrameType | None) -> None:
            raise TooLate

        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, max(0.01, _WORK_S - (time.monotonic() - began)))
        try:
            happened, means = _event(name, event, data, parent)
            if means:
                happened.take(means)
        except TooLate:
            is_late = True
            error = "it took too long"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except TurnlogError as problem:
        error = f"{type(problem).__name__}: {problem}"
    except Exception as problem:  # whatever it is: written down, and the agent's business never
        error = _describe(problem)
    note(folder, name, event, happened.name if happened is not None else "", began, error)
    _tell(write, happened)
    if happened is not None and happened.name:
        try:
            _afterwards(happened, means, is_late=is_late)
        except Exception as problem:
            note(folder, name, f"{event} (afterwards)", happened.name, began, _describe(problem))


def _event(name: str, event: str, data: bytes, parent: int) -> tuple[LiveEvent, str]:
    from turnlog.hooks import agent
    from turnlog.live.event import LiveEvent
    from turnlog.live.payload import Payload
    from turnlog.machine.environment import environment

    one = agent(name)
    meaning = one.event(event)
    payload = Payload(data, environment(), one.folder_variable)
    return LiveEvent(one, payload, parent), meaning.means if meaning is not None else ""


def _tell(write: int, happened: LiveEvent | None) -> None:
    """The agent need not wait any longer."""
    from turnlog.live.event import is_quiet

    text = happened.context if happened is not None and not is_quiet() else ""
    try:
        if text:
            os.write(write, text.encode("utf-8", "replace")[:4000])
    except OSError:
        pass  # nobody waits any more
    os.close(write)


def _afterwards(happened: LiveEvent, means: str, *, is_late: bool) -> None:
    """What nobody waits for, behind other work."""
    os.nice(10)
    gc.enable()
    if is_late:
        happened.look()
    if means != "tool":
        happened.follow(is_over=means == "end")
    if means in ("begin", "end"):
        happened.keep_limit(is_over=means == "end")


def _describe(problem: Exception) -> str:
    import traceback

    last = traceback.extract_tb(problem.__traceback__)[-1:]
    where = "".join(f" at {os.path.basename(frame.filename)}:{frame.lineno}" for frame in last)
    return f"{type(problem).__name__}: {str(problem)[:200]}{where}"


if __name__ == "__main__":
    run(sys.argv[1:])
