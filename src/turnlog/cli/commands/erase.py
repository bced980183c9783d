"""`turnlog erase`."""

from __future__ import annotations

import msgspec

from turnlog.cli.draw.entryline import in_one_line
from turnlog.cli.draw.receipt import print_erasure
from turnlog.cli.draw.table import table
from turnlog.cli.frame.agentshell import refuse_agent
from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_OPTION, YES_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.notes import note, tell_table
from turnlog.cli.frame.question import confirm, refuse_without_terminal
from turnlog.cli.pick.session import session_to_change
from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import AnyEntry
from turnlog.session import Session
from turnlog.thread.reader import history_of
from turnlog.thread.removal.erasing import refuse_blank, split_by_erasability
from turnlog.view.number import count
from turnlog.view.visible import one_line, quoted

_ENTRY = {"session": shape.SESSION, "seq": shape.number(), "id": shape.text(), "type": shape.text()}
GROUP = "Care", 13
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "dry_run": DRY_RUN,
    "entries": shape.items("what was erased, or would be", _ENTRY),
    "[at]": shape.time("when"),
    "[by]": shape.text("who erased it"),
    "[reason]": shape.text("why"),
    "[also]": shape.each("other lines that repeated it and were changed", _ENTRY),
    "[blobs]": shape.number("how many long texts and files were removed with it"),
    "[freed_bytes]": shape.number("their size"),
    "[needed]": shape.each(
        "blobs that stay", {"digest": shape.text(), "entries": shape.each("entries that refer to it", _ENTRY)}
    ),
    "[summaries]": shape.each("compactions that came later, which may quote it", _ENTRY),
    "[copies]": shape.texts("other places that still have it: files it was written to or read from"),
    "[left]": shape.texts("what prevents finishing it"),
}


@declare(
    Argument("entries", "[ENTRY]..."),
    SESSION_OPTION,
    Option("--matching TEXT", "Every entry of the session that contains that text."),
    Option("--reason TEXT", "The reason; stored with the entry.", default=""),
    YES_OPTION,
    DRY_RUN_OPTION,
)
def command(
    entries: tuple[str, ...],
    session: str | None,
    matching: str | None,
    reason: str,
    yes: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Erase the content of single entries for good.

    ENTRY is the number of an entry, or its id: `turnlog log` shows them. Its number, place and time stay, with who
    erased it, when and why; forks, contexts and exports show that something was erased. The command shows the entries,
    and asks. Nothing brings them back, not even another home that still has them: push, pull and sync carry the erasure
    there.

    Copies in other agents' own files stay, and are named. To remove a whole session, see `turnlog rm --purge`.

    \b
    turnlog erase 12 --reason "a key"  one entry of this folder's newest session
    turnlog erase -s k3f9 12 13
    turnlog erase --matching hunter2   every entry with that text
    """
    if bool(entries) == (matching is not None):
        raise UsageError("give entries, or --matching TEXT")
    if matching is not None:
        refuse_blank(matching)
    if not dry_run:
        refuse_agent("erase")
    with this_home() as home:
        target = session_to_change(home, session)
        if matching is None:
            chosen, others = _named(target, entries), list[AnyEntry]()
        else:
            chosen, others = split_by_erasability(history_of(target), matching)
        _refuse_nothing(target, chosen, others)
        if dry_run:
            _print_preview(target, chosen, as_json=as_json)
            _note_others(others)
            return
        if not yes:
            refuse_without_terminal("erase asks first", as_json=as_json)
            tell_table(_listed(chosen))
            _note_others(others)
            which = "it" if len(chosen) == 1 else count(len(chosen), "entry", "entries")
            confirm(f"erase {which} for good?", nothing="nothing was erased")
        receipt = target.erase(*chosen, reason=reason)
        if yes:
            _note_others(others)
    if as_json:
        print_json({"session": target.id, "dry_run": False, **msgspec.to_builtins(receipt)})
    else:
        print_erasure(target.handle, receipt)
    from turnlog.cli.pick.catalog import forget_purged

    forget_purged(home_location())  # may fail, so it follows the receipt


def _named(session: Session, names: tuple[str, ...]) -> list[AnyEntry]:
    """Return the entries with these numbers or ids, each once. Raises `NotFound`."""
    entries: dict[int, AnyEntry] = {}
    for name in names:
        entry = history_of(session).at(int(name)) if name.isdecimal() and len(name) < 19 else session.find(name)
        if entry is None:
            raise NotFound(
                f"no entry {name!r:.80} in session {one_line(session.handle)}", hint="`turnlog log` shows them"
            )
        entries[entry.seq] = entry
    return list(entries.values())


def _print_preview(session: Session, entries: list[AnyEntry], *, as_json: bool) -> None:
    """Print the entries that would be erased."""
    if as_json:
        rows = [{"session": session.id, "seq": entry.seq, "id": entry.id, "type": entry.type} for entry in entries]
        print_json({"session": session.id, "dry_run": True, "entries": rows})
    else:
        print("\n".join(_listed(entries)))


def _refuse_nothing(session: Session, chosen: list[AnyEntry], others: list[AnyEntry]) -> None:
    """Raise where there is nothing to erase: `Invalid` if the text is there, and in no entry that can be erased."""
    if chosen:
        return
    if not others:
        raise NotFound(f"no entry of session {session.handle} has that text", hint="`turnlog log` shows them")
    listed = ", ".join(f"{entry.seq} ({entry.type})" for entry in others)
    raise Invalid(
        f"it is in entries that cannot be erased: {listed}",
        hint=f"`turnlog rm --purge {quoted(session.handle)}` removes it",
    )


def _listed(entries: list[AnyEntry]) -> list[str]:
    cells = [(str(entry.seq), one_line(entry.type), in_one_line(entry)) for entry in entries]
    return table(("SEQ", "TYPE", "SAYS"), cells, right=(0,))


def _note_others(entries: list[AnyEntry]) -> None:
    for entry in entries:
        note(f"it is also in entry {entry.seq}, a {entry.type}, which cannot be erased: purge the session to remove it")
