"""What a turn did to files, and what taking it back would do, as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnlog.reader.takeback import BACK, propose, shown_path
from turnlog.tui.style import STYLE
from turnlog.view.number import count, rewind_outcome
from turnlog.view.terminal.typeset import diff_line
from turnlog.view.visible import clip, path_line, readable, safe, width
from turnlog.workspace.plan import Plan, Step

if TYPE_CHECKING:
    from turnlog.reader.takeback import DoneRewind
    from turnlog.session import Home, ReadOnlySession
    from turnlog.workspace.diff import Difference

_LONGEST = 2_000
"""The maximum number of lines shown of one file."""
_ACTIONS = {"created": "green", "create": "green", "deleted": "red", "delete": "red", "conflict": "purple"}


def total_line(differences: Sequence[Difference]) -> str:
    """How many files, and how many lines came and went."""
    plus, minus = (sum(item.counts[index] for item in differences) for index in (0, 1))
    return f"{count(len(differences), 'file')}, +{plus:,} -{minus:,}" if differences else "it changed no file"


def file_line(item: Difference, room: int, *, is_chosen: bool) -> str:
    """One file: what was done to it, and how much."""
    plus, minus = item.counts
    counts = "" if item.is_private or not (plus or minus) else f"+{plus:,} -{minus:,}"
    path = clip(path_line(item.path), max(4, room - 11 - len(counts) - 2))
    space = " " * max(1, room - 10 - width(path) - len(counts))
    if is_chosen:
        return STYLE.paint(f"{item.action:<10}{path}{space}{counts}", "reverse")
    return STYLE.paint(f"{item.action:<10}", _ACTIONS.get(item.action, "yellow")) + path + space + counts


def lines_in(item: Difference, room: int) -> list[str]:
    """What changed in a file, or why that is not shown."""
    if item.is_private:
        return ["  it is ignored by git: what is in it is not shown"]
    if not item.lines:
        sizes = " → ".join(f"{node.size:,} bytes" for node in (item.before, item.after) if node is not None)
        modes = " → ".join(f"{node.mode:o}" for node in (item.before, item.after) if node is not None)
        return [f"  only its mode changed: {modes}" if item.action == "mode" else f"  no text, or too large: {sizes}"]
    lines = item.hunks
    drawn = [
        "  " + diff_line(clip(readable(line).replace("\n", " ").expandtabs(4), max(8, room - 2)), STYLE)
        for line in lines[:_LONGEST]
    ]
    more = len(lines) - _LONGEST
    return [*drawn, f"  … {count(more, 'more line')}: `turnlog diff`"] if more > 0 else drawn


# ── taking back ───────────────────────────────────────────────────────────────────────────────────


class ShownPlan(NamedTuple):
    """A plan as it was shown: the target that was asked for, and the stamp that tells it from any other plan."""

    target: str
    lines: list[str]
    stamp: str
    is_empty: bool


def ask_plan(home: Home, id: str, target: str, room: int) -> ShownPlan:
    """What going back would do. Nothing is touched."""
    with home.read(id) as session:
        if session.interrupted():
            name = safe(session.handle)
            problem = f"a rewind was begun and not finished: `turnlog rewind --continue -s {name}` finishes it"
            return ShownPlan(target, [problem], "", is_empty=True)
        proposed = propose(session, target)
        lines = [
            f"Goes back to {safe(proposed.words)}.",
            *proposed.conversation_notes,
            *([f"Note: {safe(proposed.plan.note)}"] if proposed.plan.note else []),
            "",
            *_steps(session, proposed.plan, room),
        ]
        return ShownPlan(target, lines, proposed.stamp, is_empty=proposed.is_empty)


def _steps(session: ReadOnlySession, plan: Plan, room: int) -> list[str]:
    doing, staying = plan.to_do, plan.staying
    lines = [f"{count(len(doing), 'path')} would change:" if doing else "No file changes."]
    lines += [_step(session, step, room) for step in doing]
    if staying:
        lines += ["", f"{count(len(staying), 'path')} would stay as they are:"]
        lines += [_step(session, step, room) for step in staying]
    return lines


def _step(session: ReadOnlySession, step: Step, room: int) -> str:
    path = shown_path(step, session.workspace)
    action = STYLE.paint(f"  {step.action:<10}", _ACTIONS.get(step.action, "yellow"))
    rest = clip(f"{path_line(path)}  {safe(step.reason)}", max(8, room - 12))
    return action + rest


def done_lines(done: DoneRewind, name: str) -> list[str]:
    """What was done, what stayed and why, and how to take it back."""
    entry = done.entry
    again = BACK.get(entry.why, "undo")
    return [
        f"Done: {entry.why}, entry {entry.seq}: {rewind_outcome(entry.files)}",
        *(f"  {path_line(line)}" for line in done.staying()),
        "",
        f"`turnlog {again} -s {safe(name)}` takes it back.",
    ]
