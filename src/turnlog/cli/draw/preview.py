"""What a rewind is about to do to files."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import path_of
from turnlog.cli.frame.terminal import coloured
from turnlog.reader.takeback import raw_path
from turnlog.view.number import count
from turnlog.workspace.plan import CREATE, DELETE, Plan, Step
from turnlog.workspace.tree import FOLDER

_COLOURS = {
    "create": "green", "modify": "yellow", "delete": "red", "mode": "cyan", "conflict": "purple", "unknown": "dim",
    "skipped": "dim",
}  # fmt: skip
_SHOWN = 30
_FEW = 4


class PreviewRow(Struct, frozen=True):
    """A line of the table: a step, or a whole folder of them."""

    step: Step
    below: int = 0

    def cells(self, workspace: str | None) -> tuple[str, str, str]:
        """Return action, path and reason of the step."""
        more = f" and {self.below:,} more in it" if self.below else ""
        return self.step.action, path_shown(self.step, workspace) + more, self.step.reason


def rows_of(steps: list[Step], *, everything: bool) -> list[PreviewRow]:
    """A row per step; a folder that comes or goes with much in it is one, unless everything is asked for."""
    rows: list[PreviewRow] = []
    index = 0
    while index < len(steps):
        step, end = steps[index], index + 1
        node = step.then or step.now
        if not everything and node is not None and node.kind == FOLDER and step.action in (CREATE, DELETE):
            lead = step.raw + b"/" if step.raw else b""
            while end < len(steps) and steps[end].raw.startswith(lead) and steps[end].root == step.root:
                end += 1
            if end - index <= _FEW or any(other.action != step.action for other in steps[index:end]):
                end = index + 1
        rows.append(PreviewRow(step, end - index - 1))
        index = end
    return rows


def path_shown(step: Step, workspace: str | None) -> str:
    """The path of a step for people, a folder with a slash behind it."""
    node = step.then or step.now
    return path_of(raw_path(step, workspace)) + ("/" if node is not None and node.kind == FOLDER else "")


def preview(plan: Plan, workspace: str | None, *, everything: bool) -> Iterator[str]:
    """The table: what is done, then what stays, and why. Long ones are cut, unless everything is asked for."""
    cells: list[tuple[str, str, str]] = []
    left: list[str] = []
    for steps in (plan.to_do, plan.staying):
        rows = rows_of(steps, everything=everything)
        most = len(rows) if everything or len(rows) <= _SHOWN + 5 else _SHOWN
        cells += [row.cells(workspace) for row in rows[:most]]
        if most < len(rows):
            counted = sum(1 + row.below for row in rows[:most])
            left.append(actions_in_words(_count_actions(steps[counted:])))
    if cells:
        yield from table(("ACTION", "PATH", "WHY"), cells, paths=1, paint=_paint)
    if left:
        yield f"… and more: {'; '.join(left)} (`--dry-run | less` shows all)"


def _paint(action: str) -> str:
    return coloured(action, _COLOURS.get(action.strip()), sys.stdout)


def _count_actions(steps: list[Step]) -> dict[str, int]:
    return dict(Counter(step.action for step in steps))


def actions_in_words(counts: dict[str, int]) -> str:
    """Return the numbers of paths by action in words: `2 create, 1 conflict`."""
    actions = [action for action in _COLOURS if counts.get(action)]
    other = [action for action in counts if action not in _COLOURS]
    return ", ".join(f"{counts[action]:,} {action}" for action in (*actions, *other)) or "nothing"


def totals(plan: Plan) -> str:
    """Return in a line how many files change, and how many stay as they are."""
    doing = len(plan.to_do)
    staying = plan.staying
    does = (
        f"{count(doing, 'change')} to the files: {actions_in_words(_count_actions(plan.to_do))}"
        if doing
        else "no file changes"
    )
    return does + (f"; stays as it is: {actions_in_words(_count_actions(staying))}" if staying else "")
