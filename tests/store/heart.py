"""How late an event loop is, and how much of that is ours.

A heart beats on the loop. Of a beat that is late, the system says for how long the loop stood in the queue for a
processor: that is the machine's. The rest is at most ours: the loop waited for the interpreter, which one of the
threads had, or it was busy itself. So nothing is guessed: what is said to be ours is never less than it was. What the
threads did then is looked at by another thread.
"""

import asyncio
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

import turnlog

OURS = str(Path(turnlog.__file__).parent)
BEAT_S, LATE_S = 0.005, 0.05
_WAITING = frozenset({"_wait", "wait", "_worker", "_bootstrap_inner", "get", "select", "poll"})


class Beats:
    """What was seen of one kind of work."""

    def __init__(self) -> None:
        self.beats = self.late = self.late_ours = 0
        self.worst_ms = self.worst_ours_ms = self.late_ms = self.queued_ms = self.seconds = 0.0

    def count(self, late: float, queued: float) -> None:
        """A beat that was late by so much, while the loop stood in the queue for a processor for so long."""
        ours = max(0.0, late - queued)
        self.beats += 1
        self.seconds += late + BEAT_S
        self.worst_ms = max(self.worst_ms, late * 1000)
        self.worst_ours_ms = max(self.worst_ours_ms, ours * 1000)
        if late > LATE_S:
            self.late += 1
            self.late_ours += ours > LATE_S
            self.late_ms += late * 1000
            self.queued_ms += min(late, queued) * 1000


class Heart:
    """Beats on the loop, for the kind of work that is done just then."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kinds: dict[str, Beats] = {}
        self.places: Counter[str] = Counter()
        """Where threads were that were not waiting, while a beat was late."""
        self._at = time.monotonic()
        self._loop = threading.current_thread()

    async def beat(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()
        while True:
            self._at, queued = time.monotonic(), queued_s()
            await asyncio.sleep(BEAT_S)
            late = time.monotonic() - self._at - BEAT_S
            self.kinds.setdefault(self.kind, Beats()).count(late, queued_s() - queued)

    def _look(self) -> None:
        while True:
            time.sleep(LATE_S / 5)
            if time.monotonic() - self._at > LATE_S / 2:
                names = {one.ident: one.name.split("_")[0] for one in threading.enumerate()}
                for ident, frame in sys._current_frames().items():
                    place = _place(frame)
                    if place is not None and ident != threading.get_ident():
                        self.places[f"{names.get(ident, '?')} {place}"] += 1

    def told(self) -> dict[str, dict[str, float]]:
        return {
            **{kind: vars(beats) for kind, beats in self.kinds.items()},
            "places": dict(self.places.most_common(12)),
        }


def queued_s() -> float:
    """For how long this thread was ready and had no processor, since it began; 0 where the system does not say."""
    try:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except OSError:
        return 0.0


def _place(frame: FrameType | None) -> str | None:
    """Where a thread is, as far as that is our code; None where it waits for something."""
    if frame is None or frame.f_code.co_name in _WAITING:
        return None
    top = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
    while frame is not None and not frame.f_code.co_filename.startswith(OURS):
        frame = frame.f_back
    if frame is None:
        return top
    return f"turnlog{frame.f_code.co_filename[len(OURS) :]}:{frame.f_lineno}"
