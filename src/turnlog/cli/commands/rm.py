"""`turnlog rm`."""

from __future__ import annotations

from collections.abc import Iterable

from turnlog.cli.draw.receipt import print_receipt, show_sessions
from turnlog.cli.fields.receipt import LEFT, REMOVED, json_receipt
from turnlog.cli.frame.agentshell import is_agents, note_agent, refuse_agent
from turnlog.cli.frame.command import SESSIONS_ARGUMENT, YES_OPTION, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.each import act_on_each
from turnlog.cli.frame.exitcode import UsageError
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.question import confirm, refuse_without_terminal
from turnlog.cli.pick.session import names
from turnlog.session import Home
from turnlog.thread.removal.purging import Purged
from turnlog.thread.report import Info
from turnlog.view.number import count
from turnlog.view.visible import one_line, quoted

GROUP = "Care", 11
CHANGES = shape.LOG
FIELDS = {
    "purged": shape.flag("whether it was removed for good"),
    "sessions": shape.items("one each", {"id": shape.text(), "handle": shape.text()}),
    "removed": shape.each("with --purge, everything that was removed", REMOVED),
    "left": shape.each("what stays, and why", LEFT),
    "blobs": shape.number("how many files and long texts were removed with it"),
    "freed_bytes": shape.number("their size"),
}


@declare(
    SESSIONS_ARGUMENT,
    Option("--purge", "For good: nothing brings it back. Asks first."),
    Option("--deleted", "With --purge: the one in the trash, if a session has the same id."),
    Option("--forks", "With --purge: its forks as well, which contain its messages before the fork."),
    Option("--subagents", "With --purge: the sessions of its subagents as well."),
    YES_OPTION,
)
def command(
    sessions: tuple[str, ...],
    purge: bool,
    deleted: bool,
    forks: bool,
    subagents: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Move sessions into the trash, or remove them for good.

    `turnlog restore` brings back what is in the trash. Forks of a session keep working either way. Files of other
    agents are never touched. --purge also removes them from the index, and names what forks and subagents still have of
    them. `turnlog erase` removes single messages, `turnlog gc --older-than` old sessions.

    \b
    turnlog rm k3f9                   into the trash
    turnlog rm --purge k3f9           for good, also out of the trash
    turnlog rm --purge --forks --subagents k3f9
    turnlog ls --deleted              what is in the trash
    """
    for name, is_set in (("--deleted", deleted), ("--forks", forks), ("--subagents", subagents)):
        if is_set and not purge:
            raise UsageError(f"{name} goes with --purge")
    if purge:
        refuse_agent("rm --purge")
    with this_home() as home:
        session_names = names(home)
        chosen = (
            session_names.deleted_id(name) if deleted else session_names.own_id(name, deleted=purge)
            for name in sessions
        )
        ids = list(dict.fromkeys(chosen))
        rows = _rows(home, deleted_first=deleted)
        if purge and not yes:
            _ask(ids, rows, forks=forks, subagents=subagents, as_json=as_json)
        purged: list[Purged] = []

        def remove(session_id: str) -> None:
            if not purge:
                _trash(home, session_id)
            elif all(removed.id != session_id for receipt in purged for removed in receipt.removed):
                purged.append(home.purge(session_id, deleted=deleted or None, subagents=subagents, forks=forks))

        outcome = act_on_each(ids, remove)
    handles = {id: rows[id].handle if id in rows else id for id in outcome.done}
    if as_json:
        documents = [{"id": id, "handle": handle} for id, handle in handles.items()]
        print_json({"purged": purge, "sessions": documents, **json_receipt(purged)})
    else:
        _print(handles.values(), purged, is_purged=purge)
    try:
        if purged:
            from turnlog.cli.pick.catalog import forget_purged

            forget_purged(home_location())  # may fail, so it follows the receipt
    finally:
        outcome.raise_error()


def _rows(home: Home, *, deleted_first: bool) -> dict[str, Info]:
    """Return every session by its id. An id may be in the trash as well: then one of the two comes first."""
    trash, live = ({row.id: row for row in home.sessions(deleted=in_trash)} for in_trash in (True, False))
    return {**live, **trash} if deleted_first else {**trash, **live}


def _ask(ids: list[str], rows: dict[str, Info], *, forks: bool, subagents: bool, as_json: bool) -> None:
    refuse_without_terminal("rm --purge asks first", as_json=as_json)
    show_sessions([rows[id] for id in ids if id in rows])
    below = [name for name, is_meant in (("forks", forks), ("subagents", subagents)) if is_meant]
    more = f" with its {' and '.join(below)}" if below else ""
    which = "it" if len(ids) == 1 else count(len(ids), "session")
    confirm(f"remove {which}{more} for good?", nothing="nothing was removed")


def _print(handles: Iterable[str], purged: list[Purged], *, is_purged: bool) -> None:
    for handle in handles:
        trashed = f"is in the trash; `turnlog restore {quoted(handle)}` brings it back"
        print(f"session {one_line(handle)} {'was removed for good' if is_purged else trashed}")
    print_receipt(purged)


def _trash(home: Home, session_id: str) -> None:
    if is_agents():
        with home.resume(session_id) as session:
            note_agent(session, "rm")
    home.delete(session_id)
