"""Which agents' sessions are kept for a home, and when that was last seen to. Loads nothing: every command asks."""

from __future__ import annotations

import os
import time

from turnlog.machine.environment import state_folder

_PAUSE_S = 60
"""The pause between two looks for sessions to keep."""


class KeepState:
    """The state of keeping for one home on this machine."""

    def __init__(self, location: str) -> None:
        self.location = location
        base = _base()
        self._stem = ""
        if base:
            from turnlog.machine.location import key_of

            self._stem = os.path.join(base, key_of(location))

    @property
    def is_possible(self) -> bool:
        """Whether there is a folder for this state."""
        return bool(self._stem)

    @property
    def lock_path(self) -> str:
        """The path of the lock that is held while sessions are kept."""
        return f"{self._stem}.lock"

    @property
    def seen_path(self) -> str:
        """The path of the file with how the kept files looked."""
        return f"{self._stem}.seen"

    @property
    def report_path(self) -> str:
        """The path of the report of the last time."""
        return f"{self._stem}.told"

    def agents(self) -> list[str]:
        """The agents whose sessions are kept."""
        try:
            with open(f"{self._stem}.agents", encoding="utf-8", errors="replace") as file:
                return file.read().split()
        except OSError:
            return []

    def choose(self, agents: list[str]) -> None:
        """Set the agents whose sessions are kept."""
        from turnlog.interop.place import put_file

        put_file(f"{self._stem}.agents", "".join(f"{name}\n" for name in agents).encode(), mode=0o600, force=True)

    def is_due(self) -> bool:
        """Whether it is time to look for new sessions."""
        if not self.agents():
            return False
        try:
            return abs(time.time() - os.stat(self.report_path).st_mtime) > _PAUSE_S
        except OSError:
            return True


def keep_going(location: str) -> int:
    """Start keeping new sessions in the background if that is wanted and due. Returns the pid, or 0."""
    base = _base()
    if not base or not os.path.isdir(base):
        return 0
    state = KeepState(location)
    if not state.is_due():
        return 0
    from turnlog.machine.detached import begin, is_allowed

    return is_allowed() and begin(state.lock_path, ["keep", "--now"], TURNLOG_HOME=location)


def _base() -> str:
    folder = state_folder()
    return folder and os.path.join(folder, "keep")
