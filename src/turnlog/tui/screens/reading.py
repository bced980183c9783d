"""A session: drawn as `turnlog show` draws it, and only what is on the screen."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.widgets import Input

from turnlog.tui.canvas import Canvas
from turnlog.tui.errand import Errands
from turnlog.tui.field import TypedLine
from turnlog.tui.footline import KeyHint
from turnlog.tui.frame import ARRIVED, Frame, MoveResult, frame_of_glance
from turnlog.tui.framedscreen import FramedScreen
from turnlog.tui.pagedsession import Move, PagedSession
from turnlog.tui.sessionlist import words_in
from turnlog.tui.style import STYLE
from turnlog.view.terminal.typeset import LineStyle
from turnlog.view.visible import clip, one_line, quoted, width

if TYPE_CHECKING:
    from turnlog.tui.application import Application

_REFRESH_S = 0.5
_FIND = "find"


class SessionScreen(FramedScreen):
    """One session. At its end it follows what is written; what comes below while somebody reads above is announced."""

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

    def __init__(self, application: Application, name: str, query: str) -> None:
        super().__init__()
        self.application, self.session_name = application, name
        self._query = query
        self.paged: PagedSession | None = None
        self.frame: Frame | None = None
        self._pattern = pattern_of(query)
        self._message = ""
        self._is_finding = self._is_marked = False
        self._is_refreshing = False
        self._cannot_follow = False
        """Whether the last refresh failed."""
        self._reading = Errands(self.call_later, f"session {name}")
        self._head, self._text, self._bar = Canvas("head"), Canvas("text"), Canvas("bar")
        self._field = TypedLine("find in this session", "find")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield self._head
        with Horizontal(id="body"):
            yield from (self._text, self._bar)
        self._field.display = False
        yield from (self.foot, self._field)

    def on_mount(self) -> None:
        """Open it; the first rows as soon as they are there."""
        self._text.can_focus = True
        self.set_focus(self._text)
        self.draw()
        application, name, query, pattern = self.application, self.session_name, self._query, self._pattern
        style, height = self._style(), self._height()

        def work() -> Frame:
            viewed = application.open(name)
            with viewed.mutex:
                viewed.refresh()
                paged = PagedSession(viewed, style, height, application.notes_on(viewed.card))
                paged.finder.pattern = pattern
                entry = "" if pattern is None else application.newest_place(name, query)
                result = self._to_entry(paged, entry, pattern) if entry else ARRIVED
                self.paged = paged
                return paged.frame(result)

        def glanced() -> Frame | None:
            glance = None if pattern is not None else application.glance(name)
            return None if glance is None else frame_of_glance(glance, style, height)

        self._reading.do(glanced, self._framed, self.failed)
        self._reading.do(work, self._opened, self.failed)
        self.set_interval(_REFRESH_S, self._refresh)

    def on_unmount(self) -> None:
        """Cancel what is read for this screen."""
        self._reading.close()

    def _style(self) -> LineStyle:
        return replace(STYLE, room=max(8, self.size.width - 2))

    def _height(self) -> int:
        return max(1, self.size.height - 2)

    # ── asking ────────────────────────────────────────────────────────────────────────────────────

    def _do(self, move: Move, *, kind: str = "", missing: str = "") -> None:
        """Have something done to the transcript, where it is read; the screen follows when it is done."""
        self._reading.do(partial(self._moved, move), partial(self._framed, missing=missing), self.failed, kind)

    def _moved(self, move: Move) -> Frame | None:
        paged = self.paged
        if paged is None:
            return None
        with paged.viewed.mutex:
            result = move(paged)
            return paged.frame(result) if result.is_changed else None

    def _move(self, move: Move) -> None:
        """Go somewhere else: what was said of the place before is said no more."""
        self._message = ""
        self._do(move)

    def _refresh(self) -> None:
        """Take in what is new. One after the other: a frame that is thrown away would lose what it took in."""
        if self.is_current and self.frame is not None and not self._is_refreshing:
            self._is_refreshing = True
            self._reading.do(partial(self._moved, PagedSession.refresh), self._refreshed, self._not_refreshed)

    def _refreshed(self, frame: Frame | None) -> None:
        self._is_refreshing = False
        if self._cannot_follow:
            self._cannot_follow, self.problem = False, ""
            self.draw()
        self._framed(frame)

    def _not_refreshed(self, error: Exception) -> None:
        self._is_refreshing, self._cannot_follow = False, True
        self.failed(error)

    def _to_entry(self, paged: PagedSession, entry: str, pattern: re.Pattern[str] | None) -> MoveResult:
        """Go to the entry that the search found, or else to the same words in another one."""
        if paged.to_entry(entry).is_found or paged.find(pattern, -1).is_found:
            return ARRIVED
        command = f"turnlog show {quoted(self.session_name)} --at {entry}"
        return MoveResult(message=f"said on a branch that was left: `{command}`")

    def _opened(self, frame: Frame) -> None:
        self._message = frame.result.message or self._message
        self._framed(frame)
        self._resize()  # it may have another size by now

    def _framed(self, frame: Frame | None, missing: str = "") -> None:
        if frame is None:
            return
        self.frame, self.problem = frame, ""
        if missing:
            self._message = frame.result.message if frame.result.is_found else missing
        self.draw()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    def on_resize(self) -> None:
        """What is at the top stays there."""
        self._resize()

    def _resize(self) -> None:
        style, height = self._style(), self._height()
        self._do(lambda paged: paged.resize(style, height))

    def draw(self) -> None:
        """See `FramedScreen`."""
        room = self.size.width
        frame = self.frame
        if frame is None or not frame.total:
            self._head.show([STYLE.paint(clip(one_line(frame.title if frame else self.session_name), room), "bold")])
            self._text.show([self._nothing()])
        else:
            self._head.show([self._headline(frame, room)])
            self._text.show(frame.lines, self._pattern)
            self._bar.show(bar_lines(frame, self._height()))
        self.draw_foot()

    def _nothing(self) -> str:
        if self.problem:
            return STYLE.paint(one_line(self.problem), "red")
        if self.frame is not None:
            return "nothing was said in it yet"
        return STYLE.paint("reading it …", "dim") if self.is_late else ""

    def _headline(self, frame: Frame, room: int) -> str:
        where = f"  {frame.piece + 1:,} of {frame.total:,}"
        where = where if room > len(where) + 12 and frame.piece >= 0 else ""
        title = clip(one_line(frame.title), room - len(where))
        marks = (
            clip(f"  {frame.tags_and_notes}", max(0, room - width(title) - len(where))) if frame.tags_and_notes else ""
        )
        space = " " * (room - width(title) - width(marks) - len(where))
        return STYLE.paint(title, "bold") + STYLE.paint(marks + space + where, "dim")

    def foot_message(self) -> str:
        """See `FramedScreen`."""
        frame = self.frame
        if self.problem or self._message or frame is None:
            return self.problem or self._message
        return f"{frame.new:,} new below" if frame.new > 0 else "at the end" if frame.is_end else ""

    def foot_hints(self) -> list[KeyHint]:
        """See `FramedScreen`."""
        return [
            KeyHint("q", "back", "back"),
            KeyHint("?", "keys", "explain"),
            KeyHint("/", "find", "find") if self._pattern is None else KeyHint("n", "next", "again(1)"),
            KeyHint("]", "next prompt", "prompt(1)"),
        ]

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While something is typed to be found, every key but Escape is the field's."""
        return not self._is_finding or action == "escape"

    def pressed(self, canvas: Canvas, y: int) -> None:
        """See `FramedScreen`. A fold is unfolded, the bar leads to where it was clicked."""
        if canvas is self._bar:
            self._move(lambda paged: paged.to_part(y / max(1, self._height() - 1)))
        elif canvas is self._text and self.frame is not None and y < len(self.frame.pieces):
            piece = self.frame.pieces[y]
            self._do(lambda paged: paged.unfold([piece]))

    def wheel(self, lines: int) -> None:
        """See `FramedScreen`."""
        self._move(lambda paged: paged.scroll(lines))

    def action_scroll(self, by: int) -> None:
        """Scroll by lines."""
        self._move(lambda paged: paged.scroll(by))

    def action_page(self, by: int) -> None:
        """Scroll by screens."""
        self._move(lambda paged: paged.page(by))

    def action_beginning(self) -> None:
        """Go to the oldest message."""
        self._move(PagedSession.to_beginning)

    def action_end(self) -> None:
        """Go to the newest message."""
        self._move(PagedSession.to_end)

    def action_prompt(self, by: int) -> None:
        """Go to the next prompt, or to the one before."""
        self._do(lambda paged: paged.to_prompt(by), missing=f"no prompt {'below' if by > 0 else 'above'}")

    def action_unfold(self) -> None:
        """Unfold the first folded output on the screen; if there is none, fold one again."""
        pieces = self.frame.pieces if self.frame is not None else []
        self._do(lambda paged: paged.unfold(pieces), missing="nothing is folded here")

    def action_find(self) -> None:
        """Type what to find, in the place of the last line."""
        self._is_finding = True
        self.foot.display, self._field.display = False, True
        self._field.value = ""
        self.set_focus(self._field)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Find it, from here on."""
        text = event.value.strip()
        self._close_find()
        if text:
            self._pattern = re.compile(re.escape(text), re.IGNORECASE)
            self._message, self._is_marked = f"looking for “{text}” …", True
            self._again(1)
        self.draw()

    def action_again(self, by: int) -> None:
        """Go to the next match, or to the one before."""
        if self._pattern is None:
            self.action_find()
        else:
            self._again(by)

    def _again(self, by: int) -> None:
        pattern = self._pattern
        self._do(lambda paged: paged.find(pattern, by), kind=_FIND, missing="it is nowhere in this session")

    def _close_find(self) -> None:
        self._is_finding = False
        self.foot.display, self._field.display = True, False
        self.set_focus(self._text)

    def action_escape(self) -> None:
        """Close the find, then forget what was found, then go back."""
        if self._is_finding:
            self._close_find()
        elif self._is_marked:
            self._pattern, self._is_marked, self._message = None, False, ""
            self._reading.give_up(_FIND)
            self._do(lambda paged: ARRIVED)  # it may have found something by now: the screen follows
        else:
            self.action_back()
            return
        self.draw()

    def action_back(self) -> None:
        """Return to the list."""
        self.dismiss()

    def action_copy(self) -> None:
        """Copy the command that resumes the session."""
        command = f"turnlog resume {quoted(self.session_name)} --exec"
        self.app.copy_to_clipboard(command)  # pyright: ignore[reportUnknownMemberType]
        self._message = f"copied: {command}"
        self.draw()

    def action_resume(self) -> None:
        """Leave the screen, and become the agent."""
        self.application.resume(self.session_name)

    def action_web(self) -> None:
        """Open it in the browser."""
        self._message = "opening the browser …"
        self.draw()
        name, application = self.session_name, self.application
        self._reading.do(lambda: application.open_page(name), self._browsed, self.failed)

    def _browsed(self, address: str) -> None:
        self._message = address
        self.draw()

    def action_changes(self) -> None:
        """Show what this turn did to files."""
        paged = self.paged
        if paged is None:
            return

        def turn() -> int:
            with paged.viewed.mutex:
                return paged.turn_at_top()

        self._reading.do(turn, self._to_changes, self.failed)

    def _to_changes(self, turn: int) -> None:
        paged = self.paged
        if paged is None or paged.viewed.session is None or not turn:
            self._message = "no checkpoint was taken in it: `turnlog hooks install` takes them around every turn"
            self.draw()
            return
        self.application.show_changes(paged.viewed, turn)

    def action_explain(self) -> None:
        """Show the keys."""
        self.application.explain(self)


def pattern_of(query: str) -> re.Pattern[str] | None:
    """What is marked of a query: its words. Those of a phrase may have signs between them, as in the search."""
    terms = [term for term in words_in(query).every_term if not term.negated]
    words = [(r"[\W_]+" if term.kind == "phrase" else r"\s+").join(map(re.escape, term.text.split())) for term in terms]
    return re.compile("|".join(words), re.IGNORECASE) if words else None


def bar_lines(frame: Frame, height: int) -> list[str]:
    """The bar at the right: the part that is on the screen."""
    if frame.begin <= 0 and frame.is_end:
        return []
    size = max(1, round((frame.end - frame.begin) * height))
    top = height - size if frame.is_end else min(round(frame.begin * height), height - size)
    return [STYLE.paint("┃", "cyan") if top <= y < top + size else STYLE.paint("│", "dim") for y in range(height)]
