"""What every screen has: a last line with a message and keys that may be clicked, and a wheel that scrolls."""

from __future__ import annotations

from textual.screen import Screen

from turnlog.reader.viewing.desk import error_line
from turnlog.tui.canvas import Canvas
from turnlog.tui.footline import FootLine, KeyHint, foot_line
from turnlog.tui.style import STYLE
from turnlog.view.visible import one_line

PATIENCE_S = 0.3
"""After this long a screen says what it waits for."""


class FramedScreen(Screen[None]):
    """A screen that draws itself anew with `draw`, in which the last line is drawn with `draw_foot`."""

    def __init__(self) -> None:
        super().__init__()
        self.problem = ""
        """What went wrong last; empty if nothing did."""
        self.is_late = False
        """Whether so much time has gone by that it says what it waits for."""
        self.foot = Canvas("foot")
        self._foot_line = FootLine("", [])

    def draw(self) -> None:
        """Draw everything."""
        raise NotImplementedError

    def foot_message(self) -> str:
        """What the last line says."""
        return self.problem

    def foot_hints(self) -> list[KeyHint]:
        """The keys in the last line, those that matter most first."""
        raise NotImplementedError

    def draw_foot(self) -> None:
        """Draw the last line."""
        self._foot_line = foot_line(one_line(self.foot_message()), self.foot_hints(), self.size.width, STYLE)
        self.foot.show([self._foot_line.text])

    def foot_action_at(self, x: int) -> str:
        """What a click into the last line does; empty for nothing."""
        return self._foot_line.action_at(x)

    def wheel(self, lines: int) -> None:
        """Scroll by this many lines; up is negative."""
        raise NotImplementedError

    def pressed(self, canvas: Canvas, y: int) -> None:
        """Somebody clicked into this line of a canvas that is not the last line."""

    def failed(self, error: Exception) -> None:
        """Say what went wrong."""
        self.problem = error_line(error)
        self.draw()

    def on_mount(self) -> None:
        """Wait before it says that it waits."""
        self.set_timer(PATIENCE_S, self._be_late)

    def _be_late(self) -> None:
        self.is_late = True
        self.draw()

    def on_resize(self) -> None:
        """Draw everything in the new size."""
        self.draw()

    def on_canvas_scrolled(self, event: Canvas.Scrolled) -> None:
        """See `wheel`."""
        self.wheel(event.lines)

    def on_canvas_pressed(self, event: Canvas.Pressed) -> None:
        """A key in the last line does what it says; anything else is for `pressed`."""
        if event.canvas is not self.foot:
            self.pressed(event.canvas, event.y)
        elif action := self.foot_action_at(event.x):
            self.call_later(self.run_action, action)
