"""A session: drawn as `turnlog show` draws it, and only what is on the screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen as Full
from textual.widgets import Input

from turnlog.tui.canvas import Canvas
from turnlog.tui.errand import Errands, words_for
from turnlog.tui.field import TypedLine
from turnlog.tui.footline import FootLine, KeyHint, foot_line
from turnlog.tui.listed import words_in
from turnlog.tui.pagedsession import Frame, Move, PagedSession, glanced
from turnlog.tui.paper import PAPER
from turnlog.view.typeset import Screen
from turnlog.view.visible import clip, one_line, quoted, width

if TYPE_CHECKING:
    from turnlog.tui.stage import Stage

_LOOK_S = 0.5
_PATIENCE_S = 0.3


class SessionScreen(Full[None]):
    """Follows by itself at the end; what comes below while somebody reads above is announced."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "back", "back to the list", priority=True),
        Binding("escape", "escape", "close the find, or go back", priority=True),
        Binding("down,j", "scroll(1)", "a line on", priority=True),
        Binding("up,k", "scroll(-1)", "a line back", priority=True),
        Binding("pagedown,space", "page(1)", "a screen on", priority=True),
        Binding("pageup,b", "page(-1)", "a screen back", priority=True),
        Binding("home,g", "beginning", "the beginning", priority=True),
        Binding("end,G", "end", "the end: what is new comes by itself", priority=True),
        Binding("right_square_bracket", "prompt(1)", "the next prompt", priority=True),
        Binding("left_square_bracket", "prompt(-1)", "the prompt before", priority=True),
        Binding("slash", "find", "find: type, Enter", priority=True),
        Binding("n", "again(1)", "the next place with it", priority=True),
        Binding("N", "again(-1)", "the place before", priority=True),
        Binding("enter,tab", "unfold", "unfold output, and fold it again", priority=True),
        Binding("d", "changes", "what this turn changed", priority=True),
        Binding("y", "copy", "copy the resume command", priority=True),
        Binding("r", "resume", "resume it in this terminal", priority=True),
        Binding("w", "web", "open it in the browser", priority=True),
        Binding("question_mark,f1", "explain", "this page", priority=True),
    ]

    def __init__(self, stage: Stage, name: str, query: str) -> None:
        super().__init__()
        self.stage, self.name_shown = stage, name
        self._query = query
        self.transcript: PagedSession | None = None
        self.frame: Frame | None = None
        self._pattern = pattern_of(query)
        self._problem = self._said = ""
        self._is_late = self._is_finding = self._is_marked = False
        self._foot = FootLine("", [])
        self._reading = Errands(self._tell, f"session {name}")
        self._head, self._text, self._bar = Canvas("head"), Canvas("text"), Canvas("bar")
        self._last, self._field = Canvas("foot"), TypedLine("find in this session", "find")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield self._head
        with Horizontal(id="body"):
            yield from (self._text, self._bar)
        self._field.display = False
        yield from (self._last, self._field)

    def _tell(self, told: Callable[[], None]) -> None:
        self.call_later(told)

    def on_mount(self) -> None:
        """Open it; the first rows as soon as they are there."""
        self._text.can_focus = True
        self.set_focus(self._text)
        self._draw()
        stage, name, query, pattern = self.stage, self.name_shown, self._query, self._pattern
        room, height = self._screen(), self._height()

        def work() -> Frame:
            looked = stage.open(name)
            with looked.mutex:
                looked.look()
                made = PagedSession(looked, room, height, stage.notes_on(looked.card))
                made.pattern = pattern
                if pattern is not None and (entry := stage.newest_place(name, query)) and not made.to_entry(entry):
                    made.find(pattern, -1)
                self.transcript = made
                return made.frame()

        def glance() -> Frame | None:
            found = None if pattern is not None else stage.glance(name)
            return None if found is None else glanced(*found, room, height)

        self._reading.do(glance, self._framed, self._failed)
        self._reading.do(work, self._opened, self._failed)
        self.set_interval(_LOOK_S, self._look)
        self.set_timer(_PATIENCE_S, self._wait)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reading.close()

    def _screen(self) -> Screen:
        return replace(PAPER, room=max(8, self.size.width - 2))

    def _height(self) -> int:
        return max(1, self.size.height - 2)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def _do(self, move: Move, *, kind: str = "", missing: str = "") -> None:
        """Have something done to the transcript, where it is read; the screen follows when it is done."""

        def work() -> Frame | None:
            made = self.transcript
            if made is None:
                return None
            with made.looked.mutex:
                answer = move(made)
                if kind == "look" and not answer:
                    return None
                return made.frame(answer)

        self._reading.do(work, partial(self._framed, missing=missing), self._failed, kind)

    def _move(self, move: Move) -> None:
        """Go somewhere else: what was said of the place before is said no more."""
        self._said = ""
        self._do(move)

    def _look(self) -> None:
        if self.is_current and self.frame is not None:
            self._do(lambda made: made.look(), kind="look")

    def _wait(self) -> None:
        self._is_late = True
        self._draw()

    def _opened(self, frame: Frame) -> None:
        self._framed(frame)
        self.on_resize()  # it may have another size by now

    def _framed(self, frame: Frame | None, missing: str = "") -> None:
        if frame is None:
            return
        self.frame, self._problem = frame, ""
        if missing:
            self._said = frame.said if frame.is_found else missing
        self._draw()

    def _failed(self, error: Exception) -> None:
        self._problem = words_for(error)
        self._draw()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    def on_resize(self) -> None:
        """What is at the top stays there."""
        screen, height = self._screen(), self._height()
        self._do(lambda made: made.resize(screen, height))
        self._draw()

    def _draw(self) -> None:
        room = self.size.width
        frame = self.frame
        if frame is None or not frame.total:
            self._head.show([PAPER.paint(clip(one_line(frame.title if frame else self.name_shown), room), "bold")])
            self._text.show([self._nothing()])
        else:
            self._head.show([self._headline(frame, room)])
            self._text.show(frame.lines, self._pattern)
            self._bar.show(bar_lines(frame, self._height()))
        self._draw_foot(room)

    def _nothing(self) -> str:
        if self._problem:
            return PAPER.paint(one_line(self._problem), "red")
        if self.frame is not None:
            return "nothing was said in it yet"
        return PAPER.paint("reading it …", "dim") if self._is_late else ""

    def _headline(self, frame: Frame, room: int) -> str:
        where = f"  {frame.piece + 1:,} of {frame.total:,}"
        where = where if room > len(where) + 12 and frame.piece >= 0 else ""
        title = clip(one_line(frame.title), room - len(where))
        marks = clip(f"  {frame.marks}", max(0, room - width(title) - len(where))) if frame.marks else ""
        space = " " * (room - width(title) - width(marks) - len(where))
        return PAPER.paint(title, "bold") + PAPER.paint(marks + space + where, "dim")

    def _draw_foot(self, room: int) -> None:
        frame = self.frame
        told = one_line(self._problem or self._said)
        if not told and frame is not None:
            told = f"{frame.new:,} new below" if frame.new > 0 else "at the end" if frame.is_end else ""
        hints = [
            KeyHint("q", "back", "back"),
            KeyHint("?", "keys", "explain"),
            KeyHint("/", "find", "find") if self._pattern is None else KeyHint("n", "next", "again(1)"),
            KeyHint("]", "next prompt", "prompt(1)"),
        ]
        self._foot = foot_line(told, hints, room, PAPER)
        self._last.show([self._foot.text])

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed to be found, every key but Escape is the field's."""
        return not self._is_finding or action == "escape"

    def on_canvas_pressed(self, event: Canvas.Pressed) -> None:
        """A fold is unfolded, the bar leads to where it was clicked, a key does what it says."""
        if event.canvas is self._last and (action := self._foot.action_at(event.x)):
            self.call_later(self.run_action, action)
        elif event.canvas is self._bar:
            self._move(lambda made: made.to_part(event.y / max(1, self._height() - 1)))
        elif event.canvas is self._text and self.frame is not None and event.y < len(self.frame.pieces):
            piece = self.frame.pieces[event.y]
            self._do(lambda made: made.unfold([piece]) or None)

    def on_canvas_turned(self, event: Canvas.Turned) -> None:
        """The wheel scrolls."""
        self._move(lambda made: made.scroll(event.lines))

    def action_scroll(self, by: int) -> None:
        """Lines."""
        self._move(lambda made: made.scroll(by))

    def action_page(self, by: int) -> None:
        """Screens."""
        self._move(lambda made: made.page(by))

    def action_beginning(self) -> None:
        """The oldest."""
        self._move(lambda made: made.to_beginning())

    def action_end(self) -> None:
        """The newest."""
        self._move(lambda made: made.to_end())

    def action_prompt(self, by: int) -> None:
        """From prompt to prompt."""
        self._do(lambda made: made.to_prompt(by), missing=f"no prompt {'below' if by > 0 else 'above'}")

    def action_unfold(self) -> None:
        """The first folded output on the screen."""
        pieces = self.frame.pieces if self.frame is not None else []
        self._do(lambda made: made.unfold(pieces), missing="nothing is folded here")

    def action_find(self) -> None:
        """Type what to find, in the place of the last line."""
        self._is_finding = True
        self._last.display, self._field.display = False, True
        self._field.value = ""
        self.set_focus(self._field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find it, from here on."""
        text = event.value.strip()
        self._close_find()
        if text:
            self._pattern = re.compile(re.escape(text), re.IGNORECASE)
            self._said, self._is_marked = f"looking for “{text}” …", True
            self._again(1)
        self._draw()

    def action_again(self, by: int) -> None:
        """The next place, or the one before."""
        if self._pattern is None:
            self.action_find()
        else:
            self._again(by)

    def _again(self, by: int) -> None:
        pattern = self._pattern
        self._do(lambda made: made.find(pattern, by), kind="find", missing="it is nowhere in this session")

    def _close_find(self) -> None:
        self._is_finding = False
        self._last.display, self._field.display = True, False
        self.set_focus(self._text)

    def action_escape(self) -> None:
        """Close the find, then forget what was found, then go back."""
        if self._is_finding:
            self._close_find()
        elif self._is_marked:
            self._pattern, self._is_marked, self._said = None, False, ""
            self._reading.give_up("find")
        else:
            self.action_back()
            return
        self._draw()

    def action_back(self) -> None:
        """Back to the list."""
        self.dismiss()

    def action_copy(self) -> None:
        """The command that goes on."""
        command = f"turnlog resume {quoted(self.name_shown)} --exec"
        self.app.copy_to_clipboard(command)  # pyright: ignore[reportUnknownMemberType]
        self._said = f"copied: {command}"
        self._draw()

    def action_resume(self) -> None:
        """Leave the screen, and become the agent."""
        self.stage.resume(self.name_shown)

    def action_web(self) -> None:
        """Open it in the browser."""
        self._said = "opening the browser …"
        self._draw()
        name, stage = self.name_shown, self.stage
        self._reading.do(lambda: stage.open_page(name), self._browsed, self._failed)

    def _browsed(self, address: str) -> None:
        self._said = address
        self._draw()

    def action_changes(self) -> None:
        """What this turn did to files."""
        made = self.transcript
        if made is None:
            return

        def turn() -> int:
            with made.looked.mutex:
                return made.turn

        self._reading.do(turn, self._to_changes, self._failed)

    def _to_changes(self, turn: int) -> None:
        made = self.transcript
        if made is None or made.looked.session is None or not turn:
            self._said = "no checkpoint was taken in it: `turnlog hooks install` takes them around every turn"
            self._draw()
            return
        self.stage.show_changes(made.looked, turn)

    def action_explain(self) -> None:
        """The keys."""
        self.stage.explain(self)


def pattern_of(query: str) -> re.Pattern[str] | None:
    """What is marked of a query: its words."""
    words = [term.text for term in words_in(query).every_term if not term.negated]
    return re.compile("|".join(map(re.escape, words)), re.IGNORECASE) if words else None


def bar_lines(frame: Frame, height: int) -> list[str]:
    """The bar at the right: the part that is on the screen."""
    if frame.begin <= 0 and frame.is_end:
        return []
    size = max(1, round((frame.end - frame.begin) * height))
    top = height - size if frame.is_end else min(round(frame.begin * height), height - size)
    return [PAPER.paint("┃", "cyan") if top <= y < top + size else PAPER.paint("│", "dim") for y in range(height)]
