"""`turnlog checkpoints`."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from turnlog.cli.draw.sessionwarnings import warn_of_interruption
from turnlog.cli.draw.table import table
from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import session_to_read
from turnlog.cli.safetynet.checkpointtrees import Trees
from turnlog.log.entry import Checkpoint
from turnlog.reader.place import turns_of
from turnlog.session.interior import interior
from turnlog.view.number import count, size
from turnlog.view.time import local_minute

_IN_TURN = {"begin": "begins", "end": "ends", "tool": "after a tool"}
_WHEN = {"late": "while a turn goes on", "before": "before a rewind", "after": "after a rewind"}
_SIGNS = {"created": "+", "modified": "~", "deleted": "-", "mode": "m"}
GROUP = "Safety net", 5
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
            tell(f"{count(lost, 'checkpoint')} without files left out: given up, or never brought here")
        if as_json:
            print_json({"session": reader.id, "checkpoints": list(map(asdict, rows))})
            return
        if not rows:
            tell(f"no checkpoints in session {reader.handle}")
            return
    head = ("ENTRY", "WHEN", "FILES", "SIZE", "CHANGED", "WHAT")
    for line in table(head, (row.cells() for row in rows), right=(0, 2, 3)):
        print(line)


class CheckpointRow(Struct):
    """A checkpoint in the listing."""

    entry: int
    at: datetime | None
    label: str | None
    when: str | None
    turn: int | None
    files: int | None
    size_bytes: int | None
    changed: dict[str, int] | None
    skipped: list[dict[str, str]]

    @property
    def words(self) -> str:
        """The label, what it was taken for, and how much is not covered."""
        in_turn = f"turn {self.turn} {_IN_TURN[self.when]}" if self.turn is not None and self.when in _IN_TURN else ""
        when = in_turn or _WHEN.get(self.when or "", self.when or "")
        skipped = f"{count(len(self.skipped), 'path')} not covered" if self.skipped else ""
        return ", ".join(filter(None, (self.label, when, skipped)))

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the row."""
        if self.files is None or self.size_bytes is None:
            return str(self.entry), local_minute(self.at), "?", "?", "?", f"{self.words} (damaged)".strip()
        short = " ".join(f"{_SIGNS[action]}{number}" for action, number in (self.changed or {}).items())
        return (
            str(self.entry), local_minute(self.at), f"{self.files:,}", size(self.size_bytes), short, self.words,
        )  # fmt: skip


def _row(checkpoint: Checkpoint, before: Checkpoint | None, trees: Trees, numbers: dict[str, int]) -> CheckpointRow:
    weight = trees.weight(checkpoint)
    return CheckpointRow(
        entry=checkpoint.seq,
        at=checkpoint.at,
        label=checkpoint.label,
        when=checkpoint.when,
        turn=numbers.get(checkpoint.turn) if checkpoint.turn is not None else None,
        files=weight and weight.files,
        size_bytes=weight and weight.size_bytes,
        changed=None if before is None else trees.changes(before, checkpoint),
        skipped=checkpoint.skipped,
    )
