"""`turnlog checkpoints`."""

from __future__ import annotations

import sys
from typing import Any

from turnlog.cli.draw.change import Trees
from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, moment, one_line, size
from turnlog.cli.draw.warning import warn_of_interruption
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import session_to_read
from turnlog.log.entry import Checkpoint
from turnlog.reader.place import turns_of
from turnlog.session.interior import interior

_IN_TURN = {"begin": "begins", "end": "ends", "tool": "after a tool"}
_WHEN = {"before": "before a rewind", "after": "after a rewind"}
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "checkpoints": shape.items(
        "the oldest first",
        {
            "entry": shape.number(),
            "at": shape.time(),
            "label": shape.text(null=True),
            "when": shape.text("begin or end of a turn", null=True),
            "turn": shape.number(null=True),
            "files": shape.number(null=True),
            "size_bytes": shape.number(null=True),
            "changed": shape.one("against the one before", null=True),
            "skipped": shape.each(),
        },
    ),
}


@declare(SESSION_ARGUMENT, Option("--limit -n N", "Only the N newest.", least=1))
def command(session: str | None, limit: int | None, as_json: bool) -> None:
    """List the checkpoints of a session, the oldest first.

    `turnlog rewind` and `turnlog diff` take ENTRY or the label. CHANGED compares with the checkpoint before: + created,
    ~ modified, - deleted, m another mode.

    \b
    turnlog checkpoints               all of them
    turnlog checkpoints -n 5          the five newest
    """
    with session_to_read(session, files=True) as opened:
        reader = opened.session
        checkpoints = reader.checkpoints()
        trees, numbers = Trees(interior(opened.home).store), turns_of(reader).numbers
        first = len(checkpoints) - min(limit or len(checkpoints), len(checkpoints))
        rows = [
            _row(checkpoint, checkpoints[index - 1] if index else None, trees, numbers)
            for index, checkpoint in enumerate(checkpoints)
            if index >= first
        ]
        warn_of_interruption(reader)
        lost = sum(1 for _ in reader.entries(kind="checkpoint")) - len(checkpoints)
        if lost:
            print(
                f"{count(lost, 'checkpoint')} without files left out: given up, or never brought here", file=sys.stderr
            )
        if as_json:
            print_json({"session": reader.id, "checkpoints": rows})
            return
        if not rows:
            print(f"no checkpoints in session {one_line(reader.handle)}", file=sys.stderr)
            return
    head = ("ENTRY", "WHEN", "FILES", "SIZE", "CHANGED", "WHAT")
    for line in table(head, map(_cells, rows), right=(0, 2, 3)):
        print(line)


def _row(checkpoint: Checkpoint, before: Checkpoint | None, trees: Trees, numbers: dict[str, int]) -> dict[str, Any]:
    weight = trees.weight(checkpoint)
    return {
        "entry": checkpoint.seq,
        "at": checkpoint.at,
        "label": checkpoint.label,
        "when": checkpoint.when,
        "turn": numbers.get(checkpoint.turn) if checkpoint.turn is not None else None,
        "files": None if weight is None else weight[0],
        "size_bytes": None if weight is None else weight[1],
        "changed": None if before is None else trees.changes(before, checkpoint),
        "skipped": checkpoint.skipped,
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    turn = f"turn {row['turn']} {_IN_TURN[row['when']]}" if row["turn"] is not None and row["when"] in _IN_TURN else ""
    what = turn or _WHEN.get(row["when"] or "", row["when"] or "")
    skipped = f"{count(len(row['skipped']), 'path')} not covered" if row["skipped"] else ""
    words = ", ".join(filter(None, (row["label"] or "", what, skipped)))
    if row["files"] is None:
        return str(row["entry"]), moment(row["at"])[:16], "?", "?", "?", f"{words} (damaged)".strip()
    changed: dict[str, int] = row["changed"] or {}
    signs = {"created": "+", "modified": "~", "deleted": "-", "mode": "m"}
    short = " ".join(f"{signs[action]}{number}" for action, number in changed.items())
    return str(row["entry"]), moment(row["at"])[:16], f"{row['files']:,}", size(row["size_bytes"]), short, words
