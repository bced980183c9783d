"""The terminal that is drawn on: stderr, whatever stdout is."""

from __future__ import annotations

import os

from textual.drivers.linux_driver import LinuxDriver


class StderrTerminal(LinuxDriver):
    """Textual asks stdout for the size, and stdout may be a pipe."""

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            found = os.get_terminal_size(2)
        except OSError:
            return 80, 24
        return found.columns or 80, found.lines or 24
