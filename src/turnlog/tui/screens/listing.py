"""The list: one field, a line per session, a preview of the chosen one, and how many fit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen as Full
from textual.widgets import Input

from turnlog.errors import Invalid
from turnlog.tui.canvas import Canvas
from turnlog.tui.errand import words_for
from turnlog.tui.field import TypedLine
from turnlog.tui.footline import FootLine, KeyHint, foot_line
from turnlog.tui.listed import ListAnswer, ask_list, ask_preview, list_lines, preview_lines
from turnlog.tui.paper import PAPER
from turnlog.view.number import count
from turnlog.view.visible import clip, one_line

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow
    from turnlog.catalog.answer import Hit
    from turnlog.tui.stage import Stage

_WITH_PREVIEW = 24
"""The minimum number of screen lines for a preview."""
_LOOK_S = 2.0
_PATIENCE_S = 0.3


class ListScreen(Full[None]):
    """Typing narrows, Enter opens; in `pick` Enter is the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open the session"),  # the field tells of it, behind the letters typed before
        Binding("down,ctrl+n", "step(1)", "the next session", priority=True),
        Binding("up", "step(-1)", "the one before; from the first back to the field", priority=True),
        Binding("pagedown", "page(1)", "a page on", priority=True),
        Binding("pageup", "page(-1)", "a page back", priority=True),
        Binding("tab,shift+tab", "other", "from the field to the list, and back", priority=True),
        Binding("ctrl+a", "here", "only sessions of this folder, and again all", priority=True),
        Binding("ctrl+p", "preview", "hide the preview, and again show it", priority=True),
        Binding("escape", "escape", "clear the field; in an empty one, end", priority=True),
        Binding("q", "leave", "end, when in the list", priority=True),
        Binding("j", "step(1)", "the next session, when in the list", priority=True),
        Binding("k", "step(-1)", "the one before, when in the list", priority=True),
        Binding("home", "edge(-1)", "the first session, when in the list", priority=True),
        Binding("end", "edge(1)", "the last session, when in the list", priority=True),
        Binding("slash", "field", "to the field, when in the list", priority=True),
        Binding("question_mark,f1", "explain", "this page; in the field, as long as it is empty", priority=True),
    ]

    def __init__(self, stage: Stage, query: str) -> None:
        super().__init__()
        self.stage = stage
        self.answer: ListAnswer | None = None
        self.chosen = self._top = 0
        self.is_here_only = False
        self._has_preview = True
        self._query = one_line(query)
        self._opens = False
        self._problem = ""
        self._hits: tuple[str, list[Hit]] = ("", [])
        self._foot = FootLine("", [])
        self._field = TypedLine("search titles and everything that was said", "field")
        self._rows, self._preview, self._last = Canvas("list"), Canvas("preview"), Canvas("foot")
        self._asked_at = time.monotonic()

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._field, self._rows, self._preview, self._last)

    def on_mount(self) -> None:
        """Ask for everything at once; and again now and then, for new sessions come."""
        self._field.value = self._query
        self.set_focus(self._field)
        self._ask()
        self.set_interval(_LOOK_S, self._look)
        self.set_timer(_PATIENCE_S, self._draw)

    @property
    def rows(self) -> list[ListingRow]:
        """What fits, as far as is known."""
        return self.answer.rows if self.answer is not None else []

    @property
    def row(self) -> ListingRow | None:
        """The chosen one."""
        return self.rows[self.chosen] if self.chosen < len(self.rows) else None

    @property
    def _is_waiting(self) -> bool:
        return self.answer is None or self.answer.query != self._query

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter narrows."""
        self._typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter, in the field or in the list."""
        self._typed(event.value)
        self.action_open()

    def _typed(self, value: str) -> None:
        if value != self._query:
            self._query = value
            self._field.open(True)
            self._ask()

    def _ask(self) -> None:
        query, is_here_only = self._query, self.is_here_only
        catalog = self.stage.catalog
        self._asked_at = time.monotonic()
        self.stage.asking.do(
            lambda: ask_list(catalog, query, is_here_only=is_here_only), self._answered, self._failed, "list"
        )

    def _look(self) -> None:
        if self.is_current and not self._is_waiting:
            self._ask()

    def _answered(self, answer: ListAnswer) -> None:
        if answer.query != self._query:
            return
        before, is_same = self.row, self.answer is not None and self.answer.query == answer.query
        self.answer, self._problem = answer, ""
        names = [row.name for row in answer.rows] if is_same and before is not None else []
        self.chosen = names.index(before.name) if before is not None and before.name in names else 0
        if not is_same:
            self._top = 0
        self._draw()
        if self._opens:
            self._opens = False
            self.action_open()

    def _failed(self, error: Exception) -> None:
        if isinstance(error, Invalid) and self.answer is not None:
            self.answer = self.answer._replace(query=self._query)  # half typed: what was there stays
        self._problem = words_for(error)
        self._opens = False
        self._draw()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    def on_resize(self) -> None:
        """The same in another size."""
        self._draw()

    def on_screen_resume(self) -> None:
        """Back from a session: what is new is asked for."""
        self._draw()
        self._look()

    def _draw(self) -> None:
        room, height = self.size
        is_shown = self._has_preview and height >= _WITH_PREVIEW
        below = max(6, height // 3) if is_shown else 0
        self._preview.styles.height = below
        self._preview.display = is_shown
        high = max(1, height - 2 - below)
        self.chosen = max(0, min(self.chosen, len(self.rows) - 1))
        self._top = max(self.chosen - high + 1, min(self._top, self.chosen, max(0, len(self.rows) - high)))
        shown = self.rows[self._top : self._top + high]
        lines = list_lines(shown, self.chosen - self._top, room, PAPER, time.time())
        self._rows.show(lines or [clip(self._nothing(), room)])
        if is_shown:
            self._draw_preview(room, below)
        self._draw_foot(room)

    def _nothing(self) -> str:
        if self._problem:
            return PAPER.paint(one_line(self._problem), "red")
        if self._is_waiting:
            late = time.monotonic() - self._asked_at > _PATIENCE_S
            return PAPER.paint("looking …", "dim") if late else ""
        if self._query:
            return f"no session fits “{one_line(self._query)}”"
        if self.is_here_only:
            return "no session of this folder: Ctrl-A shows all"
        return "no session on this machine yet: `turnlog formats` says where they are looked for"

    def _draw_foot(self, room: int) -> None:
        told = count(len(self.rows), "session") if self.answer is not None else ""
        if self.answer is not None:
            here = self.answer.here
            if self.is_here_only:
                told += " of this folder"
            elif here and here < len(self.rows):
                told += f", {here:,} of this folder"
            if self.answer.standing.pending:
                told += f", {self.answer.standing.pending:,} still to be read"
        if self._problem and self.rows:
            told = one_line(self._problem)
        what = "choose" if self.stage.is_picking else "open"
        hints = [
            KeyHint("Enter", what, "open"),
            KeyHint("F1" if self._query else "?", "keys", "explain"),  # a ? goes into the field by then
            KeyHint("^A", "all" if self.is_here_only else "this folder", "here"),
            KeyHint("Esc", "clear" if self._query else "end", "escape"),
        ]
        self._foot = foot_line(told, hints, room, PAPER)
        self._last.show([self._foot.text])

    def _draw_preview(self, room: int, below: int) -> None:
        row, rule = self.row, PAPER.paint("─" * room, "dim")
        if row is None or self.answer is None:
            self._preview.show([rule])
            return
        key = f"{row.name} {row.updated_ms} {self.answer.asked}"
        if self._hits[0] == key:
            measure = room * 7 // 8  # prose is read with ease, and a step in the list writes less
            self._preview.show([rule, *preview_lines(self._hits[1], measure, below - 2, PAPER)])
            return
        catalog, query = self.stage.catalog, self.answer.asked
        self.stage.asking.do(
            lambda: (key, ask_preview(catalog, row.name, query)), self._previewed, lambda error: None, "preview"
        )

    def _previewed(self, found: tuple[str, list[Hit]]) -> None:
        self._hits = found
        self._draw()

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the field, Home and End move in it."""
        return action != "edge" or not self._field.is_open

    def on_canvas_pressed(self, event: Canvas.Pressed) -> None:
        """A row is chosen, the chosen one opened; a key in the last line does what it says."""
        if event.canvas.id == "foot" and (action := self._foot.action_at(event.x)):
            self.call_later(self.run_action, action)
        if event.canvas.id == "list" and self._top + event.y < len(self.rows):
            is_chosen = self._top + event.y == self.chosen
            self.chosen = self._top + event.y
            self._field.open(False)
            self._draw()
            if is_chosen:
                self.action_open()

    def on_canvas_turned(self, event: Canvas.Turned) -> None:
        """The wheel goes through the list."""
        self._choose(self.chosen + event.lines)

    def _choose(self, index: int) -> None:
        self.chosen = max(0, min(index, len(self.rows) - 1))
        self._draw()

    def action_step(self, by: int) -> None:
        """The next one, or the one before."""
        if by < 0 and self.chosen == 0:
            self._field.open(True)
            return
        if self.rows:
            self._field.open(False)
            self._choose(self.chosen + by)

    def action_page(self, by: int) -> None:
        """A page of them."""
        self._choose(self.chosen + by * max(1, self._rows.size.height - 1))

    def action_edge(self, by: int) -> None:
        """The first or the last."""
        self._choose(0 if by < 0 else len(self.rows) - 1)

    def action_other(self) -> None:
        """From the field to the list, and back."""
        self._field.open(not self._field.is_open)

    def action_leave(self) -> None:
        """End, nothing chosen."""
        self.stage.leave()

    def action_explain(self) -> None:
        """The keys."""
        self.stage.explain(self)

    def action_field(self) -> None:
        """To the field."""
        self._field.open(True)

    def action_here(self) -> None:
        """Only this folder's, or all."""
        self.is_here_only = not self.is_here_only
        self.chosen = self._top = 0
        self._ask()

    def action_preview(self) -> None:
        """Hide or show it."""
        self._has_preview = not self._has_preview
        self._draw()

    def action_escape(self) -> None:
        """Clear, and then end."""
        if self._query:
            self._field.value = ""
            self._field.open(True)
        else:
            self.stage.leave()

    def action_open(self) -> None:
        """Open what was typed, as soon as it is known what that is."""
        if self._is_waiting:
            self._opens = True
            return
        row = self.row
        if row is not None:
            assert self.answer is not None
            self.stage.chose(row.name, self.answer.asked)
