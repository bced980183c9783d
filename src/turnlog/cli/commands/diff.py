"""`turnlog diff`."""

from __future__ import annotations

from turnlog.cli.draw.change import changes_in_words, count_changes, diff_lines, stat_table
from turnlog.cli.draw.sessionwarnings import warn_of_interruption
from turnlog.cli.fields.change import CHANGE, json_change
from turnlog.cli.frame.command import SESSION_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import COUNTS, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import NotFound
from turnlog.log.entry import Checkpoint
from turnlog.reader.place import Place, checkpoint_at, place_of
from turnlog.session.readonly import ReadOnlySession

GROUP = "Safety net", 6
CHANGES = shape.NOTHING
FIELDS = {"session": SESSION, "changes": shape.items("a path each", CHANGE), "counts": COUNTS}


@declare(
    Argument("before", "[A]"),
    Argument("after", "[B]"),
    Option("--turn -t N", "What turn N changed.", least=1),
    Option("--stat", "Only which files, and how many lines."),
    SESSION_OPTION,
)
def command(
    before: str | None, after: str | None, turn: int | None, stat: bool, session: str | None, as_json: bool
) -> None:
    """Print what changed in the files: in a turn, or from A to B.

    Without arguments it shows the last turn; with A only, the changes from there until now. A and B are an entry (12),
    "turn:3" for the beginning of turn 3, or the label of a checkpoint. All changes count: edits, shell commands,
    generators. Binary files, modes and links are listed without lines.

    \b
    turnlog diff                      what the last turn changed
    turnlog diff --turn 2 --stat      what turn 2 changed, in short
    turnlog diff before-lunch         what changed since that checkpoint
    """
    if turn is not None and before is not None:
        raise UsageError("either --turn or A and B")
    with session_to_read(session, files=True) as opened:
        reader = opened.session
        first = None if before is None else _checkpoint(reader, before)
        second = None if after is None else _checkpoint(reader, after)
        with progress_line():
            differences = reader.diff(first, second, turn=turn)
        warn_of_interruption(reader)
        if as_json:
            changes = [json_change(item) for item in differences]
            print_json({"session": reader.id, "changes": changes, "counts": count_changes(differences)})
            return
    if not differences:
        tell("nothing changed")
        return
    if stat:
        for line in stat_table(differences, lines=True):
            print(line)
        print(changes_in_words(count_changes(differences)))
        return
    for line in diff_lines(differences):
        print(line)


def _checkpoint(session: ReadOnlySession, text: str) -> Checkpoint:
    target: Place = place_of(session, text)
    checkpoint = checkpoint_at(session, target)
    if checkpoint is None:
        raise NotFound(f"there is no checkpoint at or before {target.words}", hint="see `turnlog checkpoints`")
    return checkpoint
