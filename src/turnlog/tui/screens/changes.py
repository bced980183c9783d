"""What a turn did to files: which, how much, the lines on Enter; and taking it back, plan first."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen as Full

from turnlog.reader.takeback import carry_out, turns_in
from turnlog.tui.canvas import Canvas
from turnlog.tui.changed import ShownPlan, ask_plan, done_lines, file_line, lines_in, total_line
from turnlog.tui.errand import Errands, words_for
from turnlog.tui.footline import FootLine, KeyHint, foot_line
from turnlog.tui.paper import PAPER
from turnlog.view.visible import clip, one_line

if TYPE_CHECKING:
    from turnlog.log.entry import Head
    from turnlog.reader.desk import LookedAt
    from turnlog.tui.stage import Stage
    from turnlog.workspace.diff import Difference

_PATIENCE_S = 0.3


class ChangesScreen(Full[None]):
    """A turn, or the plan of taking it back, or what came of that."""

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

    def __init__(self, stage: Stage, looked: LookedAt, turn: int) -> None:
        super().__init__()
        self.stage, self._looked, self.turn = stage, looked, turn
        self.found: list[Difference] | None = None
        self.plan: ShownPlan | None = None
        self.done: list[str] = []
        self._label, self._turns = "", 0
        self.chosen = self._top = 0
        self._open: set[str] = set()
        self._problem = ""
        self._is_late = self._is_acting = False
        self._foot = FootLine("", [])
        self._reading = Errands(self.call_later, f"changes of {looked.card.name}")
        self._head, self._text, self._last = Canvas("head"), Canvas("text"), Canvas("foot")

    def compose(self) -> ComposeResult:
        """See `Screen` of Textual."""
        yield from (self._head, self._text, self._last)

    def on_mount(self) -> None:
        """Ask what it changed."""
        self._text.can_focus = True
        self.set_focus(self._text)
        self._ask()
        self.set_timer(_PATIENCE_S, self._wait)

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reading.close()

    def _ask(self) -> None:
        looked, number = self._looked, self.turn

        def work() -> tuple[list[Difference], str, int]:
            with looked.mutex:
                assert looked.session is not None
                turns = turns_in(looked)
                return looked.session.diff(turn=number), turns[number - 1].label, len(turns)

        self._reading.do(work, self._answered, self._failed, "turn")
        self._draw()

    def _answered(self, answer: tuple[list[Difference], str, int]) -> None:
        self.found, self._label, self._turns = answer
        self.chosen = self._top = 0
        self._problem = ""
        self._draw()

    def _failed(self, error: Exception) -> None:
        self._problem, self._is_acting = words_for(error), False
        self._draw()

    def _wait(self) -> None:
        self._is_late = True
        self._draw()

    # ── drawing ───────────────────────────────────────────────────────────────────────────────────

    def on_resize(self) -> None:
        """In another size."""
        self._draw()

    def _lines(self, room: int) -> tuple[list[str], int]:
        """All lines there are, and which one has to be seen."""
        if self.done:
            return self.done, self._top
        if self.plan is not None:
            return self.plan.lines, self._top
        if self.found is None:
            return [PAPER.paint("comparing …", "dim") if self._is_late else ""], 0
        lines: list[str] = []
        at = 0
        for number, item in enumerate(self.found):
            if number == self.chosen:
                at = len(lines)
            lines.append(file_line(item, room, is_chosen=number == self.chosen))
            lines += lines_in(item, room) if item.path in self._open else []
        return lines, at

    def _draw(self) -> None:
        room, height = self.size.width, max(1, self.size.height - 2)
        lines, at = self._lines(room)
        if self.plan is None and not self.done and not self._top <= at < self._top + height:
            self._top = at if at < self._top else at - height + 1
        self._top = max(0, min(self._top, len(lines) - height))
        told = "" if self.found is None else f" · {total_line(self.found)}"
        label = f" {self._label}" if self._label else ""
        self._head.show([PAPER.paint(clip(one_line(f"Turn {self.turn}{told}:{label}"), room), "bold")])
        self._text.show(lines[self._top : self._top + height])
        self._foot = foot_line(one_line(self._problem or self._question()), self._hints(), room, PAPER)
        self._last.show([self._foot.text])

    def _question(self) -> str:
        if self._is_acting:
            return "taking it back …"
        if self.plan is not None and not self.done:
            return "nothing to do" if self.plan.is_empty else "Do exactly this? y, or any other key"
        return ""

    def _hints(self) -> list[KeyHint]:
        if self._is_acting:
            return []
        if self.done or self.plan is not None:
            return [KeyHint("q", "back", "back")]
        return [
            KeyHint("q", "back", "back"),
            KeyHint("?", "keys", "explain"),
            KeyHint("Enter", "lines", "unfold"),
            KeyHint("R", "take back", "plan"),
        ]

    # ── keys ──────────────────────────────────────────────────────────────────────────────────────

    def on_key(self, event: events.Key) -> None:
        """A plan that is shown waits for y; every key but those that scroll leaves everything as it is."""
        if self._is_acting:
            event.stop()
            event.prevent_default()
        elif self.plan is not None and not self.done and event.key not in _SCROLLING:
            event.stop()
            event.prevent_default()
            if event.key == "y" and not self.plan.is_empty:
                self._act(self.plan.stamp)
            else:
                self._forget_plan()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Of a plan only scrolling is left to the keys below."""
        return not (self._is_acting or (self.plan is not None and not self.done and action in ("unfold", "back")))

    def _forget_plan(self) -> None:
        self.plan, self.done, self._problem = None, [], ""
        self._draw()

    def action_plan(self) -> None:
        """What taking it back would do."""
        stage, id, target, room = self.stage, self._looked.card.id, f"turn:{self.turn}", self.size.width
        self._reading.do(lambda: ask_plan(stage.home, id, target, room), self._planned, self._failed, "plan")

    def _planned(self, plan: ShownPlan) -> None:
        self.plan, self.done, self._top = plan, [], 0
        self._draw()

    def _act(self, stamp: str) -> None:
        self._is_acting = True
        self._draw()
        stage, id, target = self.stage, self._looked.card.id, f"turn:{self.turn}"
        stage.acting.do(lambda: carry_out(stage.home, id, target, stamp).entry, self._acted, self._failed)

    def _acted(self, done: Head) -> None:
        self._is_acting, self._top, self._problem = False, 0, ""
        self.done = done_lines(done, self._looked.card.name)
        self._draw()

    def on_canvas_pressed(self, event: Canvas.Pressed) -> None:
        """A file is chosen, the chosen one unfolded; a key does what it says."""
        if event.canvas is self._last and (action := self._foot.action_at(event.x)):
            self.call_later(self.run_action, action if self.plan is None or self.done else "forget")
        elif event.canvas is self._text and self.plan is None and self.found:
            at, number = self._top + event.y, -1
            for index, item in enumerate(self.found):
                size = 1 + (len(lines_in(item, self.size.width)) if item.path in self._open else 0)
                if at < size:
                    number = index
                    break
                at -= size
            if number >= 0 and number == self.chosen:
                self.action_unfold()
            elif number >= 0:
                self.chosen = number
                self._draw()

    def action_forget(self) -> None:
        """Leave everything as it is."""
        self._forget_plan()

    def on_canvas_turned(self, event: Canvas.Turned) -> None:
        """The wheel scrolls."""
        self._scroll(event.lines)

    def _scroll(self, by: int) -> None:
        lines, _ = self._lines(self.size.width)
        self._top = max(0, min(self._top + by, len(lines) - 1))
        if self.plan is None and not self.done and self.found:
            self._choose_seen()
        self._draw()

    def _choose_seen(self) -> None:
        """The chosen one is on the screen."""
        assert self.found is not None
        at = 0
        for number, item in enumerate(self.found):
            if at >= self._top:
                self.chosen = number
                return
            at += 1 + (len(lines_in(item, self.size.width)) if item.path in self._open else 0)

    def action_step(self, by: int) -> None:
        """The next file, or the one before; of a plan, a line."""
        if self.plan is not None or self.done:
            self._scroll(by)
        elif self.found:
            self.chosen = max(0, min(self.chosen + by, len(self.found) - 1))
            self._draw()

    def action_page(self, by: int) -> None:
        """A screen."""
        self._scroll(by * max(1, self.size.height - 3))

    def action_unfold(self) -> None:
        """The lines of the chosen one."""
        if self.found and self.plan is None and not self.done:
            self._open ^= {self.found[self.chosen].path}
            self._draw()

    def action_turn(self, by: int) -> None:
        """Another turn."""
        if self.plan is None and not self.done and 0 < self.turn + by <= self._turns:
            self.turn += by
            self.found = None
            self._open.clear()
            self._ask()

    def action_back(self) -> None:
        """Back."""
        self.dismiss()

    def action_explain(self) -> None:
        """The keys."""
        self.stage.explain(self)


_SCROLLING = ("down", "up", "pagedown", "pageup", "space", "j", "k", "ctrl+c", "ctrl+z")
