"""What the keys of a screen do, and what can be typed to find something."""

from __future__ import annotations

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding

from turnlog.catalog.ask.query import HELP
from turnlog.tui.canvas import Canvas
from turnlog.tui.footline import KeyHint
from turnlog.tui.framedscreen import FramedScreen
from turnlog.tui.style import STYLE

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
    described = [(", ".join(map(key_name, one.key.split(","))), one.description) for one in bindings if one.description]
    room = max((len(keys) for keys, _ in described), default=0)
    return [f"{STYLE.paint(keys.ljust(room), 'bold')}  {text}" for keys, text in described]


def keys_of(screen: type) -> list[Binding]:
    """The keys that a screen declares itself."""
    return [one for one in vars(screen).get("BINDINGS", []) if isinstance(one, Binding)]


class HelpScreen(FramedScreen):
    """The keys of a screen and the query language. Any key but those that scroll leads back."""

    def __init__(self, keys: list[Binding]) -> None:
        super().__init__()
        self._keys = keys
        self._top = 0
        self._has_more = False
        self._text = Canvas("text")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._text, self.foot)

    def draw(self) -> None:
        """See `FramedScreen`."""
        lines = [*key_lines(self._keys), "", "To find something:", ""]
        lines += HELP.rstrip("\n").split("\n")
        high = max(1, self.size.height - 1)
        self._top = max(0, min(self._top, len(lines) - high))
        self._text.show(lines[self._top : self._top + high])
        self._has_more = self._top + high < len(lines)
        self.draw_foot()

    def foot_message(self) -> str:
        """See `FramedScreen`."""
        return "more below" if self._has_more else ""

    def foot_hints(self) -> list[KeyHint]:
        """See `FramedScreen`."""
        return [KeyHint("Esc", "back", "back"), KeyHint("PgDn", "on", "on")]

    def on_key(self, event: events.Key) -> None:
        """Scroll, or go back."""
        steps = {"down": 1, "up": -1, "j": 1, "k": -1, "pagedown": 20, "space": 20, "pageup": -20, "home": -999}
        event.stop()
        if event.key in steps or event.key == "end":
            self.wheel(steps.get(event.key, 999))
        else:
            self.dismiss()

    def wheel(self, lines: int) -> None:
        """See `FramedScreen`."""
        self._top += lines
        self.draw()

    def foot_action_at(self, x: int) -> str:
        """See `FramedScreen`. A click leads back, but on the key that leads on."""
        return super().foot_action_at(x) or "back"

    def pressed(self, canvas: Canvas, y: int) -> None:
        """See `FramedScreen`."""
        self.dismiss()

    def action_on(self) -> None:
        """Scroll on."""
        self.wheel(20)

    def action_back(self) -> None:
        """Return to the screen that is explained."""
        self.dismiss()
