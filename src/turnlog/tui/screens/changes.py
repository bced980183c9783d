"""What a turn did to files: which, how much, the lines on Enter; and taking it back, plan first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from turnlog.reader.takeback import carry_out, turns_in
from turnlog.tui.canvas import Canvas
from turnlog.tui.changelist import ShownPlan, ask_plan, done_lines, total_line
from turnlog.tui.changeview import FilesView, LinesView, PlanView
from turnlog.tui.errand import Errands
from turnlog.tui.framedscreen import FramedScreen
from turnlog.tui.style import STYLE
from turnlog.view.visible import clip, one_line

if TYPE_CHECKING:
    from turnlog.reader.takeback import DoneRewind, TurnRow
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.tui.application import Application
    from turnlog.tui.footline import KeyHint
    from turnlog.workspace.diff import Difference

_KEEPS_PLAN = ("down", "up", "pagedown", "pageup", "space", "j", "k", "ctrl+c", "ctrl+z")
"""Keys that do not dismiss a plan."""


class _TurnChanges(NamedTuple):
    """The turns that can be shown, and what one of them did to files."""

    turns: list[TurnRow]
    differences: list[Difference]


class ChangesScreen(FramedScreen):
    """The changes of a turn, the plan of taking it back, or what came of that."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "back", "back to the conversation; from a plan, back to the files"),
        Binding("down,j", "step(1)", "the next file, or a line on"),
        Binding("up,k", "step(-1)", "the file before, or a line back"),
        Binding("pagedown,space", "page(1)", "a screen on"),
        Binding("pageup", "page(-1)", "a screen back"),
        Binding("enter,tab", "unfold", "the lines of the file, and again only its name", priority=True),
        Binding("right_square_bracket", "turn(1)", "the next turn"),
        Binding("left_square_bracket", "turn(-1)", "the turn before"),
        Binding("R", "plan", "what taking it back would do; `y` then does it"),
        Binding("question_mark,f1", "explain", "this page"),
    ]

    def __init__(self, application: Application, viewed: ViewedSession, turn: int) -> None:
        super().__init__()
        self.application, self._viewed, self.turn = application, viewed, turn
        self.files: FilesView | None = None
        """None while files are compared."""
        self.taking_back: LinesView | None = None
        """The plan of taking the turn back, or what came of it; None while the files are shown."""
        self._turns: list[TurnRow] = []
        self._is_acting = False
        self._reading = Errands(self.call_later, f"changes of {viewed.card.name}")
        self._head, self._text = Canvas("head"), Canvas("text")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._head, self._text, self.foot)

    def on_mount(self) -> None:
        """Ask what the turn changed."""
        self._text.can_focus = True
        self.set_focus(self._text)
        self._ask()

    def on_unmount(self) -> None:
        """Cancel what is read for this screen."""
        self._reading.close()

    def _ask(self) -> None:
        application, viewed, number = self.application, self._viewed, self.turn

        def work() -> _TurnChanges:
            with viewed.mutex:
                turns = turns_in(viewed)
            with application.home.read(viewed.card.id) as session:  # one of its own: the conversation does not wait
                return _TurnChanges(turns, session.diff(turn=number))

        self._reading.do(work, self._answered, self.failed, "turn")
        self.draw()

    def _answered(self, answer: _TurnChanges) -> None:
        self._turns = answer.turns
        self.files, self.problem = FilesView(answer.differences), ""
        self.draw()

    def failed(self, error: Exception) -> None:
        """See `FramedScreen`."""
        self._is_acting = False
        super().failed(error)

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    @property
    def _view(self) -> LinesView:
        if self.taking_back is not None:
            return self.taking_back
        if self.files is not None:
            return self.files
        return LinesView([STYLE.paint("comparing …", "dim") if self.is_late else ""])

    @property
    def _waits_for_answer(self) -> bool:
        return isinstance(self.taking_back, PlanView)

    @property
    def _space(self) -> tuple[int, int]:
        return self.size.width, max(1, self.size.height - 2)

    def draw(self) -> None:
        """See `FramedScreen`."""
        room, height = self._space
        total = "" if self.files is None else f" · {total_line(self.files.files)}"
        label = next((f" {turn.label}" for turn in self._turns if turn.number == self.turn and turn.label), "")
        self._head.show([STYLE.paint(clip(one_line(f"Turn {self.turn}{total}:{label}"), room), "bold")])
        self._text.show(self._view.shown(room, height))
        self.draw_foot()

    def foot_message(self) -> str:
        """See `FramedScreen`."""
        return self.problem or ("taking it back …" if self._is_acting else self._view.question())

    def foot_hints(self) -> list[KeyHint]:
        """See `FramedScreen`."""
        return [] if self._is_acting else self._view.hints()

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def on_key(self, event: events.Key) -> None:
        """A plan that is shown waits for y; every key but those that scroll leaves everything as it is."""
        if self._is_acting:
            event.stop()
            event.prevent_default()
        elif isinstance(self.taking_back, PlanView) and event.key not in _KEEPS_PLAN:
            event.stop()
            event.prevent_default()
            if event.key == "y" and not self.taking_back.plan.is_empty:
                self._act(self.taking_back.plan)
            else:
                self.action_forget()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Of a plan only scrolling is left to the keys below."""
        return not (self._is_acting or (self._waits_for_answer and action in ("unfold", "back")))

    def action_forget(self) -> None:
        """Leave everything as it is."""
        self.taking_back, self.problem = None, ""
        self.draw()

    def action_plan(self) -> None:
        """Show what taking the turn back would do."""
        application, id, target, room = self.application, self._viewed.card.id, f"turn:{self.turn}", self.size.width
        self._reading.do(lambda: ask_plan(application.home, id, target, room), self._planned, self.failed, "plan")

    def _planned(self, plan: ShownPlan) -> None:
        self.taking_back = PlanView(plan)
        self.draw()

    def _act(self, plan: ShownPlan) -> None:
        self._is_acting = True
        self.draw()
        application, id = self.application, self._viewed.card.id
        application.acting.do(
            lambda: carry_out(application.home, id, plan.target, plan.stamp), self._acted, self.failed
        )

    def _acted(self, done: DoneRewind) -> None:
        self._is_acting, self.problem = False, ""
        self.taking_back = LinesView(done_lines(done, self._viewed.card.name))
        self.draw()

    def foot_action_at(self, x: int) -> str:
        """See `FramedScreen`. From a plan every key leads back."""
        action = super().foot_action_at(x)
        return "forget" if action and self._waits_for_answer else action

    def pressed(self, canvas: Canvas, y: int) -> None:
        """Choose a file; unfold the one that is chosen."""
        if canvas is not self._text or self.taking_back is not None or self.files is None:
            return
        number = self.files.file_at(y, self.size.width)
        if number is None:
            return
        if number == self.files.chosen:
            self.files.toggle()
        else:
            self.files.choose(number, self.size.width)
        self.draw()

    def wheel(self, lines: int) -> None:
        """See `FramedScreen`."""
        self._view.scroll(lines, *self._space)
        self.draw()

    def action_step(self, by: int) -> None:
        """Go to the next file, or the one before; of a plan, to the next line."""
        self._view.step(by, *self._space)
        self.draw()

    def action_page(self, by: int) -> None:
        """Scroll by screens."""
        self.wheel(by * max(1, self.size.height - 3))

    def action_unfold(self) -> None:
        """Show the lines of the chosen file, or hide them."""
        if self.files is not None and self.taking_back is None:
            self.files.toggle()
            self.draw()

    def action_turn(self, by: int) -> None:
        """Show the next turn, or the one before."""
        beyond = [turn.number for turn in self._turns if (turn.number - self.turn) * by > 0]
        if self.taking_back is None and beyond:
            self._reading.give_up("plan")
            self.turn = min(beyond) if by > 0 else max(beyond)
            self.files = None
            self._ask()

    def action_back(self) -> None:
        """Return to the conversation."""
        self.dismiss()

    def action_explain(self) -> None:
        """Show the keys."""
        self.application.explain(self)
