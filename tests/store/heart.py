"""How late an event loop is, and how much of that is ours.

A heart beats on the loop. Of a beat that is late, ours is at most the processor time that threads of Turnlog had since
the one before, and what the loop itself spent in code of Turnlog: all else is what the machine and the service took.
What those threads did then is looked at by another thread.
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
        self.worst_ms = self.worst_ours_ms = self.late_ms = self.ours_ms = self.seconds = 0.0

    def count(self, late: float, ours: float) -> None:
        """A beat that was late by so much, of which at most so much was ours."""
        self.beats += 1
        self.seconds += late + BEAT_S
        self.worst_ms = max(self.worst_ms, late * 1000)
        if late > LATE_S:
            ours = min(late, ours)
            self.late += 1
            self.late_ours += late - ours <= LATE_S  # without us it had been in time
            self.late_ms += late * 1000
            self.ours_ms += ours * 1000
            self.worst_ours_ms = max(self.worst_ours_ms, ours * 1000)


class Heart:
    """Beats on the loop, for the kind of work that is done just then."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.kinds: dict[str, Beats] = {}
        self.places: Counter[str] = Counter()
        """Where threads were that were not waiting, while a beat was late."""
        self._at = time.monotonic()
        self._loop = threading.current_thread()
        self._before: dict[threading.Thread, float] = {}
        self._is_in_ours = False

    async def beat(self) -> None:
        threading.Thread(target=self._look, daemon=True).start()
        self._ours()
        while True:
            self._at = time.monotonic()
            await asyncio.sleep(BEAT_S)
            late = time.monotonic() - self._at - BEAT_S
            self.kinds.setdefault(self.kind, Beats()).count(late, self._ours())
            self._is_in_ours = False

    def _ours(self) -> float:
        """What we had of the processors since the last time."""
        others = [one for one in threading.enumerate() if one.name.startswith(("turnlog", "bare"))]
        now = {one: _cpu_s(one.native_id) for one in (*others, self._loop)}
        taken = {one: max(0.0, spent - self._before.get(one, spent)) for one, spent in now.items()}
        self._before = now
        return sum(taken.values()) - (0 if self._is_in_ours else taken[self._loop])

    def _look(self) -> None:
        while True:
            time.sleep(LATE_S / 5)
            if time.monotonic() - self._at > LATE_S / 2:
                names = {one.ident: one.name.split("_")[0] for one in threading.enumerate()}
                for ident, frame in sys._current_frames().items():
                    place = _place(frame)
                    if ident == self._loop.ident:
                        self._is_in_ours |= place is not None and place.startswith("turnlog/")
                    if place is not None and ident != threading.get_ident():
                        self.places[f"{names.get(ident, '?')} {place}"] += 1

    def told(self) -> dict[str, dict[str, float]]:
        return {
            **{kind: vars(beats) for kind, beats in self.kinds.items()},
            "places": dict(self.places.most_common(12)),
        }


def _cpu_s(tid: int | None) -> float:
    """What a thread had of a processor until now; nothing where that cannot be asked."""
    try:
        return time.clock_gettime(~(tid or 0) << 3 | 6)  # the number of its clock, on Linux
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
