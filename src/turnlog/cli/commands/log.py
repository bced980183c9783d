"""`turnlog log`."""

from __future__ import annotations

from itertools import islice

from turnlog.cli.draw.entryline import in_one_line
from turnlog.cli.draw.sessionwarnings import warn_of_damage, warn_of_interruption
from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.entrylist import EntryPage
from turnlog.cli.frame.document.entryshape import entry_fields
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.terminal import screen_width
from turnlog.cli.pick.session import session_to_read
from turnlog.log.entry import AnyEntry
from turnlog.log.erasure.content import Erasure
from turnlog.view.time import local_minute, local_second
from turnlog.view.visible import clip, one_line

GROUP = "Care", 9
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "entries": shape.items("as [the format](format.md) has them, without the checksum", entry_fields),
}


@declare(
    SESSION_ARGUMENT,
    Option("--kind -k K", "Only entries of that type: message, set, head …"),
    Option("--reverse -r", "Newest first."),
    Option("--limit -n N", "Only the first N of them.", least=1),
)
def command(session: str | None, kind: str | None, reverse: bool, limit: int | None, as_json: bool) -> None:
    """Print every entry of a log on a line. It shows seq, time, type, parent and content.

    That includes inherited entries and abandoned branches. With --json, entries are as the log has them, without the
    checksum.

    \b
    turnlog log
    turnlog log k3f9 --kind compaction
    turnlog log codex:0199 --reverse --limit 20
    """
    with session_to_read(session) as opened:
        reader = opened.session
        entries = reader.entries(kind=kind, reverse=reverse)
        if as_json:
            print_json({"session": reader.id, "entries": EntryPage(entries, limit=limit, is_reverse=reverse)})
            return
        digits = max(3, len(str(reader.seq)))
        room = screen_width()
        print(f"{'SEQ':>{digits}}  {'TIME':19}  {'TYPE':10}  {'PARENT':>{max(6, digits)}}  WHAT")
        erased = {one.id: one for one in reader.erasures()}
        entry = None
        for entry in islice(entries, limit):
            parent = "" if entry.parent is None else str(entry.parent)
            columns = (
                f"{entry.seq:>{digits}}  {local_second(entry.at):19}  {_kind(entry):10}  {parent:>{max(6, digits)}}"
            )
            line = f"{columns}  {in_one_line(entry)}{_erased(erased.get(entry.id))}".rstrip()
            print(line if room is None else clip(line, room))
        if entry is None and kind is not None:
            tell(f"no entry of type {kind!r:.80}; `turnlog log` shows the type of each")
        if limit is None:
            warn_of_damage(reader)
        warn_of_interruption(reader)


def _kind(entry: AnyEntry) -> str:
    return one_line(entry.type)


def _erased(one: Erasure | None) -> str:
    """Return who erased an entry, when and why."""
    if one is None:
        return ""
    return one_line(f" · {local_minute(one.at)} by {one.by}{f': {one.why}' if one.why else ''}")
