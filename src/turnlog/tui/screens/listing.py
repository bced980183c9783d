"""The list: one field, a line per session, a preview of the chosen one, and how many fit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from turnlog.errors import Invalid
from turnlog.reader.viewing.desk import error_line
from turnlog.tui.canvas import Canvas
from turnlog.tui.field import TypedLine
from turnlog.tui.footline import KeyHint
from turnlog.tui.framedscreen import PATIENCE_S, FramedScreen
from turnlog.tui.sessionlist import ListAnswer, ask_list, ask_preview, list_lines, preview_lines
from turnlog.tui.style import STYLE
from turnlog.view.number import count
from turnlog.view.visible import clip, one_line

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow
    from turnlog.catalog.answer import Hit
    from turnlog.tui.application import Application

_WITH_PREVIEW = 24
"""The minimum number of screen lines for a preview."""
_REFRESH_S = 2.0
_LIST, _PREVIEW = "list", "preview"


class _Preview(NamedTuple):
    """The last messages of a session, or the places where words are in it."""

    key: str
    hits: list[Hit]
    problem: str = ""


class ListScreen(FramedScreen):
    """The list of sessions. Typing narrows it; Enter opens the chosen one, or returns it in `pick`."""

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

    def __init__(self, application: Application, query: str) -> None:
        super().__init__()
        self.application = application
        self.answer: ListAnswer | None = None
        self.chosen = self._top = 0
        self.is_here_only = False
        self._has_preview = True
        self._query = one_line(query)
        self._opens_when_answered = False
        self._is_asking = False
        self._current_preview = _Preview("", [])
        self._previewing = ""
        """The key of the preview that was asked for last."""
        self._field = TypedLine("search titles and everything that was said", "field")
        self._rows, self._preview = Canvas("list"), Canvas("preview")
        self._asked_at = time.monotonic()

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._field, self._rows, self._preview, self.foot)

    def on_mount(self) -> None:
        """Ask for all sessions at once; and again now and then, for new ones come."""
        self._field.value = self._query
        self.set_focus(self._field)
        self._ask()
        self.set_interval(_REFRESH_S, self._refresh)

    @property
    def rows(self) -> list[ListingRow]:
        """The sessions that fit, as far as is known."""
        return self.answer.rows if self.answer is not None else []

    @property
    def row(self) -> ListingRow | None:
        """The chosen session."""
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
            self._opens_when_answered = False  # an Enter before this letter was about another query
            self._field.open(True)
            self._ask()

    def _ask(self) -> None:
        query, is_here_only = self._query, self.is_here_only
        catalog = self.application.catalog
        self._asked_at, self._is_asking = time.monotonic(), True
        self.application.asking.do(
            lambda: ask_list(catalog, query, is_here_only=is_here_only), self._answered, self.failed, _LIST
        )

    def _refresh(self) -> None:
        if self.is_current and not self._is_asking:
            self._ask()

    def _answered(self, answer: ListAnswer) -> None:
        if answer.query != self._query:
            return
        self._is_asking = False
        before, is_same = self.row, self.answer is not None and self.answer.query == answer.query
        self.answer, self.problem = answer, ""
        names = [row.name for row in answer.rows] if is_same and before is not None else []
        self.chosen = names.index(before.name) if before is not None and before.name in names else 0
        if not is_same:
            self._top = 0
        self.draw()
        self._ask_preview()
        if self._opens_when_answered:
            self._opens_when_answered = False
            self.action_open()

    def failed(self, error: Exception) -> None:
        """See `FramedScreen`."""
        if isinstance(error, Invalid) and self.answer is not None:
            self.answer = self.answer._replace(query=self._query)  # half typed: what was there stays
        self._opens_when_answered = self._is_asking = False
        super().failed(error)

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    def on_screen_resume(self) -> None:
        """Back from a session, ask for what is new."""
        self.draw()
        self._refresh()

    def on_resize(self) -> None:
        """See `FramedScreen`. A larger screen may have a preview."""
        self.draw()
        self._ask_preview()

    def draw(self) -> None:
        """See `FramedScreen`."""
        room, height = self.size
        is_shown = self._shows_preview
        below = max(6, height // 3) if is_shown else 0
        self._preview.styles.height = below
        self._preview.display = is_shown
        high = max(1, height - 2 - below)
        self.chosen = max(0, min(self.chosen, len(self.rows) - 1))
        self._top = max(self.chosen - high + 1, min(self._top, self.chosen, max(0, len(self.rows) - high)))
        visible_rows = self.rows[self._top : self._top + high]
        lines = list_lines(visible_rows, self.chosen - self._top, room, STYLE, time.time())
        self._rows.show(lines or [clip(self._nothing(), room)])
        if is_shown:
            self._draw_preview(room, below)
        self.draw_foot()

    def _nothing(self) -> str:
        if self.problem:
            return STYLE.paint(one_line(self.problem), "red")
        if self._is_waiting:
            late = time.monotonic() - self._asked_at > PATIENCE_S
            return STYLE.paint("looking …", "dim") if late else ""
        if self._query:
            return f"no session fits “{one_line(self._query)}”"
        if self.is_here_only:
            return "no session of this folder: Ctrl-A shows all"
        return "no session on this machine yet: `turnlog formats` says where they are looked for"

    def foot_message(self) -> str:
        """See `FramedScreen`."""
        if self.problem and self.rows:
            return self.problem
        if self.answer is None:
            return ""
        message, here = count(len(self.rows), "session"), self.answer.here
        if self.is_here_only:
            message += " of this folder"
        elif here and here < len(self.rows):
            message += f", {here:,} of this folder"
        pending = self.answer.standing.pending
        return f"{message}, {pending:,} still to be read" if pending else message

    def foot_hints(self) -> list[KeyHint]:
        """See `FramedScreen`."""
        return [
            KeyHint("Enter", "choose" if self.application.is_picking else "open", "open"),
            KeyHint("F1" if self._query else "?", "keys", "explain"),  # a ? goes into the field by then
            KeyHint("^A", "all" if self.is_here_only else "this folder", "here"),
            KeyHint("Esc", "clear" if self._query else "end", "escape"),
        ]

    def _draw_preview(self, room: int, below: int) -> None:
        rule, preview = STYLE.paint("─" * room, "dim"), self._current_preview
        if self.row is None:
            self._preview.show([rule])
        elif preview.key == self._preview_key:  # else what is there stays until the answer comes
            measure = room * 7 // 8  # prose is read with ease, and a step in the list writes less
            problem = [clip(one_line(preview.problem), room)] if preview.problem else []
            self._preview.show([rule, *problem, *preview_lines(preview.hits, measure, below - 2, STYLE)])

    # ── preview ───────────────────────────────────────────────────────────────────────────────────

    @property
    def _shows_preview(self) -> bool:
        return self._has_preview and self.size.height >= _WITH_PREVIEW

    @property
    def _preview_key(self) -> str:
        """What the preview is of: the chosen session in its state, and the words that are looked for."""
        row = self.row
        return "" if row is None or self.answer is None else f"{row.name} {row.updated_ms} {self.answer.asked}"

    def _ask_preview(self) -> None:
        """Ask for the preview of the chosen session, once."""
        key, row = self._preview_key, self.row
        if (
            row is None
            or self.answer is None
            or not self._shows_preview
            or key in (self._current_preview.key, self._previewing)
        ):
            return
        self._previewing = key
        catalog, query = self.application.catalog, self.answer.asked

        def failed(error: Exception) -> None:
            self._previewed(_Preview(key, [], error_line(error)))

        self.application.asking.do(
            lambda: _Preview(key, ask_preview(catalog, row.name, query)), self._previewed, failed, _PREVIEW
        )

    def _previewed(self, preview: _Preview) -> None:
        self._current_preview, self._previewing = preview, ""
        self.draw()
        self._ask_preview()  # another session may be chosen by now

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """In the field, Home and End move in it."""
        return action != "edge" or not self._field.is_open

    def pressed(self, canvas: Canvas, y: int) -> None:
        """See `FramedScreen`. A row is chosen, the chosen one opened."""
        if canvas is self._rows and self._top + y < len(self.rows):
            is_chosen = self._top + y == self.chosen
            self.chosen = self._top + y
            self._field.open(False)
            self._choose(self.chosen)
            if is_chosen:
                self.action_open()

    def wheel(self, lines: int) -> None:
        """See `FramedScreen`: here through the list."""
        self._choose(self.chosen + lines)

    def _choose(self, index: int) -> None:
        self.chosen = max(0, min(index, len(self.rows) - 1))
        self.draw()
        self._ask_preview()

    def action_step(self, by: int) -> None:
        """Choose the next session, or the one before."""
        if by < 0 and self.chosen == 0:
            self._field.open(True)
            return
        if self.rows:
            self._field.open(False)
            self._choose(self.chosen + by)

    def action_page(self, by: int) -> None:
        """Choose the session a page further down, or up."""
        self._choose(self.chosen + by * max(1, self._rows.size.height - 1))

    def action_edge(self, by: int) -> None:
        """Choose the first session, or the last."""
        self._choose(0 if by < 0 else len(self.rows) - 1)

    def action_other(self) -> None:
        """Go from the field to the list, or back."""
        self._field.open(not self._field.is_open)

    def action_leave(self) -> None:
        """End, nothing chosen."""
        self.application.leave()

    def action_explain(self) -> None:
        """Show the keys."""
        self.application.explain(self)

    def action_field(self) -> None:
        """Go to the field."""
        self._field.open(True)

    def action_here(self) -> None:
        """List only the sessions of this folder, or all."""
        self.is_here_only = not self.is_here_only
        self.chosen = self._top = 0
        self._ask()

    def action_preview(self) -> None:
        """Hide the preview, or show it."""
        self._has_preview = not self._has_preview
        self.draw()
        self._ask_preview()

    def action_escape(self) -> None:
        """Clear the field; end if it is empty."""
        if self._query:
            self._field.value = ""
            self._field.open(True)
        else:
            self.application.leave()

    def action_open(self) -> None:
        """Open what was typed, as soon as it is known what that is."""
        if self._is_waiting:
            self._opens_when_answered = True
            return
        row = self.row
        if row is not None:
            assert self.answer is not None
            self.application.chose(row.name, self.answer.asked)
