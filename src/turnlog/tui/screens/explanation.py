"""What the keys of a screen do, and what can be typed to find something."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen as Full

from turnlog.catalog.ask.query import HELP
from turnlog.tui.canvas import Canvas
from turnlog.tui.footline import FootLine, KeyHint, foot_line
from turnlog.tui.paper import PAPER

_NAMES = {
    "question_mark": "?", "slash": "/", "left_square_bracket": "[", "right_square_bracket": "]", "pagedown": "PgDn",
    "pageup": "PgUp", "escape": "Esc", "space": "Space",
}  # fmt: skip


def key_name(key: str) -> str:
    """A key as it stands on the keyboard."""
    if key.startswith("ctrl+"):
        return f"Ctrl-{key[5:].upper()}"
    if key.startswith("shift+"):
        return f"Shift-{key[6:].capitalize()}"
    return _NAMES.get(key) or (key if len(key) == 1 else key.capitalize())


def key_lines(bindings: list[Binding]) -> list[str]:
    """A line for each of them that has something to say."""
    told = [(", ".join(map(key_name, one.key.split(","))), one.description) for one in bindings if one.description]
    room = max((len(keys) for keys, _ in told), default=0)
    return [f"{PAPER.paint(keys.ljust(room), 'bold')}  {text}" for keys, text in told]


def keys_of(place: type) -> list[Binding]:
    """The keys that a screen declares itself."""
    return [one for one in vars(place).get("BINDINGS", []) if isinstance(one, Binding)]


class HelpScreen(Full[None]):
    """Any key but those that scroll leads back."""

    def __init__(self, keys: list[Binding]) -> None:
        super().__init__()
        self._keys = keys
        self._top = 0
        self._foot = FootLine("", [])
        self._text, self._last = Canvas("text"), Canvas("foot")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._text, self._last)

    def on_resize(self) -> None:
        """In another size."""
        self._draw()

    def _draw(self) -> None:
        lines = [*key_lines(self._keys), "", "To find something:", ""]
        lines += HELP.rstrip("\n").split("\n")
        room, high = self.size.width, max(1, self.size.height - 1)
        self._top = max(0, min(self._top, len(lines) - high))
        self._text.show(lines[self._top : self._top + high])
        more = "" if self._top + high >= len(lines) else "more below"
        hints = [KeyHint("Esc", "back", "back"), KeyHint("PgDn", "on", "on")]
        self._foot = foot_line(more, hints, room, PAPER)
        self._last.show([self._foot.text])

    def on_key(self, event: events.Key) -> None:
        """Scroll, or go back."""
        steps = {"down": 1, "up": -1, "j": 1, "k": -1, "pagedown": 20, "space": 20, "pageup": -20, "home": -999}
        event.stop()
        if event.key in steps or event.key == "end":
            self._top += steps.get(event.key, 999)
            self._draw()
        else:
            self.dismiss()

    def on_canvas_turned(self, event: Canvas.Turned) -> None:
        """The wheel scrolls."""
        self._top += event.lines
        self._draw()

    def on_canvas_pressed(self, event: Canvas.Pressed) -> None:
        """A click leads back, but on the key that leads on."""
        if event.canvas.id == "foot" and self._foot.action_at(event.x) == "on":
            self._top += 20
            self._draw()
        else:
            self.dismiss()
