"""One line to type in. Nothing gets into it that a terminal would obey."""

from __future__ import annotations

from textual.widgets import Input

from turnlog.view.visible import UNSEEN

_TYPED = f"[^\\x00-\\x1f{UNSEEN}]*"


class TypedLine(Input):
    """A line to type in, without a frame, and without a cursor that blinks: each blink would be drawn."""

    def __init__(self, placeholder: str, id: str) -> None:
        super().__init__(placeholder=placeholder, restrict=_TYPED, compact=True, id=id, select_on_focus=False)
        self.cursor_blink = False
        self.is_open = True

    def check_consume_key(self, key: str, character: str | None) -> bool:
        """Leaves keys to the screen while the line is closed, and `?` while it is empty."""
        is_typed = self.is_open and super().check_consume_key(key, character)
        return is_typed and (key != "question_mark" or bool(self.value))

    def open(self, is_open: bool) -> None:
        """Take letters, or leave them to whoever has them as keys. To move the focus would draw everything again."""
        self.is_open = self._cursor_visible = is_open
