"""What a turn did to files, the plan of taking it back, or what came of that: each as lines that scroll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from turnlog.tui.changelist import ShownPlan, file_line, lines_in
from turnlog.tui.footline import KeyHint

if TYPE_CHECKING:
    from turnlog.workspace.diff import Difference

BACK = KeyHint("q", "back", "back")


class LinesView:
    """Lines of which some are on the screen, in a room of this width and height."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = list(lines)
        self.top = 0

    def lines(self, room: int) -> list[str]:
        """Return all lines there are."""
        return self._lines

    def shown(self, room: int, height: int) -> list[str]:
        """Return the lines on the screen."""
        lines = self.lines(room)
        self.top = max(0, min(self.top, len(lines) - height))
        return lines[self.top : self.top + height]

    def scroll(self, by: int, room: int, height: int) -> None:
        """Scroll by this many lines."""
        self.top = max(0, min(self.top + by, len(self.lines(room)) - height))

    def step(self, by: int, room: int, height: int) -> None:
        """Go to the next thing, or the one before: here a line."""
        self.scroll(by, room, height)

    def question(self) -> str:
        """Return what the user is asked."""
        return ""

    def hints(self) -> list[KeyHint]:
        """Return the keys that matter most."""
        return [BACK]


class FilesView(LinesView):
    """The files that a turn changed, one of them chosen, each with its lines if it is unfolded."""

    def __init__(self, files: list[Difference]) -> None:
        super().__init__()
        self.files = files
        self.chosen = 0
        self._unfolded: set[str] = set()

    def lines(self, room: int) -> list[str]:
        """See `LinesView`."""
        lines: list[str] = []
        for number, file in enumerate(self.files):
            lines.append(file_line(file, room, is_chosen=number == self.chosen))
            lines += self._lines_in(file, room)
        return lines

    def _lines_in(self, file: Difference, room: int) -> list[str]:
        return lines_in(file, room) if file.path in self._unfolded else []

    def _headers(self, room: int) -> list[int]:
        """The line of each file."""
        headers: list[int] = []
        line = 0
        for file in self.files:
            headers.append(line)
            line += 1 + len(self._lines_in(file, room))
        return headers

    def shown(self, room: int, height: int) -> list[str]:
        """See `LinesView`. The chosen file is never below the screen; above it, if its lines are on it."""
        if self.files:
            self.top = max(self.top, self._headers(room)[self.chosen] - height + 1)
        return super().shown(room, height)

    def choose(self, number: int, room: int) -> None:
        """Choose a file, and bring it onto the screen."""
        self.chosen = max(0, min(number, len(self.files) - 1))
        self.top = min(self.top, self._headers(room)[self.chosen])

    def step(self, by: int, room: int, height: int) -> None:
        """See `LinesView`: here a file."""
        if self.files:
            self.choose(self.chosen + by, room)

    def scroll(self, by: int, room: int, height: int) -> None:
        """See `LinesView`. The first file from there on is chosen; if none is on the screen, the one above."""
        if not self.files:
            return
        total = len(self.lines(room))
        wanted = max(0, min(self.top + by, total - 1))
        self.top = max(0, min(wanted, total - height))
        headers = self._headers(room)
        below = [number for number, line in enumerate(headers) if wanted <= line < self.top + height]
        above = [number for number, line in enumerate(headers) if line <= wanted]
        self.chosen = below[0] if below else above[-1]

    def toggle(self) -> None:
        """Unfold the chosen file, or fold it again."""
        if self.files:
            self._unfolded ^= {self.files[self.chosen].path}

    def file_at(self, line: int, room: int) -> int | None:
        """Return the number of the file that a line on the screen belongs to."""
        at = self.top + line
        if at >= len(self.lines(room)):
            return None
        return sum(header <= at for header in self._headers(room)) - 1

    def hints(self) -> list[KeyHint]:
        """See `LinesView`."""
        return [
            BACK,
            KeyHint("?", "keys", "explain"),
            KeyHint("Enter", "lines", "unfold"),
            KeyHint("R", "take back", "plan"),
        ]


class PlanView(LinesView):
    """What taking a turn back would do. It waits for y."""

    def __init__(self, plan: ShownPlan) -> None:
        super().__init__(plan.lines)
        self.plan = plan

    def question(self) -> str:
        """See `LinesView`."""
        return "nothing to do" if self.plan.is_empty else "Do exactly this? y, or any other key"
