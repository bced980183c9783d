"""The terminal that is drawn on: stderr, whatever stdout is."""

from __future__ import annotations

import os
import re

from textual.drivers.linux_driver import LinuxDriver

_MOVE = re.compile(r"(\n?)\x1b\[(\d+);(\d+)H")


def short_moves(data: str) -> str:
    """The same drawing with fewer bytes: Textual ends each line, and then says where the next one begins as well."""
    row = 0

    def shorter(move: re.Match[str]) -> str:
        nonlocal row
        before, row = row, int(move[2])
        is_next = move[1] and move[3] == "1" and before and row == before + 1
        return "\r\n" if is_next else move[0].removeprefix("\n")

    return _MOVE.sub(shorter, data)


class StderrTerminal(LinuxDriver):
    """The terminal on stderr. Textual asks stdout for its size, and stdout may be a pipe."""

    def write(self, data: str) -> None:
        """See `Driver`."""
        super().write(short_moves(data))

    def _get_terminal_size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(2)
        except OSError:
            return 80, 24
        return size.columns or 80, size.lines or 24
