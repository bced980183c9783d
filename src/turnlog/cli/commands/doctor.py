"""`turnlog doctor`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from turnlog.cli.draw.agenttable import presence_lines
from turnlog.cli.draw.diagnosis import checkup_lines, loss, meaning, store_lines
from turnlog.cli.draw.hooks import failures
from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.logpath import files_of
from turnlog.cli.overview.diskspace import space_lines
from turnlog.cli.overview.notices import losses
from turnlog.cli.pick.catalog import open_catalog
from turnlog.cli.pick.session import names
from turnlog.errors import Corrupt, Invalid, NotFound, Unavailable, Unsupported
from turnlog.log.ids import MARKS
from turnlog.reader.agents.hookedhome import last_hook_events
from turnlog.reader.checkup import Checkup, Finding, examine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.capability import KeepFiles, ability
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from turnlog.reader.agents.presence import AgentPresence

GROUP = "Care", 15
CHANGES = shape.LOG
FIELDS = {
    "ok": shape.flag("whether nothing is wrong"),
    "store": shape.one("the health of a home that is not a folder", null=True),
    "sessions": shape.items(
        "a log each",
        {
            "id": shape.text(),
            "title": shape.text(null=True),
            "path": shape.text(),
            "size_bytes": shape.number(),
            "entries": shape.number(),
            "regions": shape.each("damaged regions"),
            "findings": shape.each(
                "what else is wrong", {"kind": shape.text(), "text": shape.text(), "seq": shape.number(null=True)}
            ),
            "folds": shape.anything("folds that a repair leaves out"),
            "repaired": shape.one(null=True),
            "unknown": shape.one("the number of records of each unknown type"),
            "left": shape.number("the number of findings after a repair"),
            "ok": shape.flag(),
        },
    ),
    "damaged_blobs": shape.texts("digests, with --blobs"),
    "[agents]": shape.each(
        "other agents that are here, unless a SESSION is meant",
        {
            "agent": shape.text(),
            "homes": shape.texts(),
            "sessions": shape.number(),
            "bytes": shape.number(),
            "unreadable": shape.one("files and folders that cannot be read, and why"),
            "damaged": shape.one("files with unreadable places, and how many"),
            "days": shape.real("days after which the agent deletes a session; null for never", null=True),
            "settings": shape.text("the file with that setting", null=True),
            "settings_problem": shape.text(),
            "going": shape.number("sessions the agent deletes within 7 days"),
            "gone": shape.number(),
            "unknown": shape.one("unknown types of records"),
        },
        role="aside",
    ),
    "[old_index]": shape.text("the index that an earlier version left in the home, if it could not be removed"),
}


@declare(
    SESSION_ARGUMENT,
    Option("--repair", "Leave out damaged bytes; the original file is kept in the trash."),
    Option("--blobs", "Read back every blob as well; this may take a while."),
    is_read_only=lambda options: not options["repair"],
)
def command(session: str | None, repair: bool, blobs: bool, as_json: bool) -> None:
    """Examine logs, and explain what is wrong. With SESSION one log, else all; and list the agents of this machine.

    It checks every byte of a log, its folds against its entries, the blobs it needs, and, for a fork, the session it
    continues. If the home is a database, it reports the state of the server and checks every entry. The exit code is 6
    if anything is wrong, or still wrong after --repair; 7 if the only finding is data of a newer Turnlog: then upgrade
    this one.

    For other agents it lists where they keep sessions and how many, unreadable files, after how many days they delete
    sessions, and records of unknown types. Problems there do not change the exit code.

    \b
    turnlog doctor                           all sessions
    turnlog doctor k3f9 --repair             leave out what cannot be read
    """
    with this_home() as home:
        diagnosis = _examined(home, session, repair=repair, blobs=blobs)
    if session is None and not repair:
        diagnosis.agents = _agents(home_location() if diagnosis.is_up else "memory:")
    if as_json:
        print_json(_json_diagnosis(diagnosis))
    else:
        _print(diagnosis, can_repair=not repair)
    if diagnosis.exit_code:
        raise Exit(diagnosis.exit_code)


class Diagnosis(Struct):
    """What an examination of a home found."""

    store: dict[str, Any]
    """What a store that keeps no files says of itself."""
    checkups: list[Checkup]
    damaged_blobs: frozenset[str]
    old_index: str
    """The index that an earlier version left in the home, if it could not be removed; else empty."""
    agents: list[AgentPresence] | None = None
    """The agents of this machine; None where only a session is examined, or repaired."""

    @property
    def is_up(self) -> bool:
        """Whether the store works."""
        return bool(self.store.get("ok", True))

    @property
    def unwell(self) -> list[Checkup]:
        """The logs with something wrong in them."""
        return [checkup for checkup in self.checkups if not checkup.is_well]

    @property
    def exit_code(self) -> int:
        """0 where nothing is wrong; another one where all that is wrong is that a newer Turnlog wrote it."""
        if self.damaged_blobs or not self.is_up or not all(checkup.is_newer for checkup in self.unwell):
            return Corrupt.exit_code
        return Unsupported.exit_code if self.unwell else 0


def _examined(home: Home, session: str | None, *, repair: bool, blobs: bool) -> Diagnosis:
    if repair or blobs:
        files_of(home)
    files = ability(interior(home).store, KeepFiles)
    store = home.health() if files is None else {}
    old_index = "" if files is None else _remove_old_index(files.folder)
    damaged = frozenset(files.damaged_blobs()) if blobs and files is not None else frozenset[str]()
    try:
        checkups = _examine(home, session, damaged)
    except (Unavailable, Unsupported) as error:
        if files is not None:
            raise
        checkups = []  # the answer is how the database is
        store |= {"ok": False, "reason": error.code, "problem": error.message, "hint": error.hint}
    if repair:
        checkups = [_repair(home, checkup, damaged) for checkup in checkups]
    return Diagnosis(store, checkups, damaged, old_index)


def _agents(location: str | None) -> list[AgentPresence]:
    from turnlog.reader.agents.presence import agents_here

    with open_catalog(location) as catalog:
        return agents_here(catalog)


def _remove_old_index(folder: str) -> str:
    """Remove the index that earlier versions kept in a home. Returns its path where that is not allowed; else empty."""
    from turnlog.catalog.index.sqlite.indexfile import OLD, remove_old

    remove_old(folder)
    path = f"{folder}/{OLD}"
    return path if os.path.lexists(path) else ""


def _examine(home: Home, session: str | None, damaged: frozenset[str]) -> list[Checkup]:
    titles = {row.id: row.title for row in home.sessions()} | {MARKS: "marks of other agents' sessions"}
    ids = sorted(derived.ids(interior(home).store)) if session is None else [names(home).own_id(session)]
    alone = session is not None
    checkups: list[Checkup] = []
    for id in ids:
        try:
            checkups.append(examine(home, id, title=titles.get(id), damaged_blobs=damaged, alone=alone))
        except (NotFound, Unavailable) as error:
            if alone or ability(interior(home).store, KeepFiles) is None:
                raise
            if id in derived.ids(interior(home).store):  # else it was removed meanwhile
                checkups.append(Checkup(id, titles.get(id), [Finding("unreadable", error.message)]))
    return checkups


def _repair(home: Home, checkup: Checkup, damaged: frozenset[str]) -> Checkup:
    if not checkup.is_repairable:
        return checkup
    if checkup.id not in derived.ids(interior(home).store):
        raise Invalid(f"session {checkup.id!r} is deleted", hint="restore it first")
    repaired = files_of(home).repair(checkup.id, without=checkup.folds)
    after = examine(home, checkup.id, title=checkup.title, damaged_blobs=damaged, alone=False)
    checkup.repaired = repaired
    checkup.left = len(after.regions) + len(after.findings)
    return checkup


def _json_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    is_well = not diagnosis.unwell and not diagnosis.damaged_blobs and diagnosis.is_up
    document: dict[str, Any] = {
        "ok": is_well,
        "store": diagnosis.store or None,
        "sessions": [_json_checkup(checkup) for checkup in diagnosis.checkups],
        "damaged_blobs": sorted(diagnosis.damaged_blobs),
    }
    document |= {"old_index": diagnosis.old_index} if diagnosis.old_index else {}
    return document if diagnosis.agents is None else {**document, "agents": diagnosis.agents}


def _json_checkup(checkup: Checkup) -> dict[str, Any]:
    plain = msgspec.to_builtins(checkup)
    for row, region in zip(plain["regions"], checkup.regions, strict=True):
        row.update(meaning=meaning(region), loss=loss(region))
    return {**plain, "ok": checkup.is_well}


def _print(diagnosis: Diagnosis, *, can_repair: bool) -> None:
    for line in store_lines(diagnosis.store):
        print(line)
    if "problem" in diagnosis.store and not diagnosis.checkups:
        print("no session could be examined")
    else:
        for line in checkup_lines(diagnosis.checkups, diagnosis.damaged_blobs, can_repair=can_repair):
            print(line)
    location = home_location()
    if diagnosis.agents:
        going = {agent.agent: agent.going for agent in diagnosis.agents if agent.going}
        print()
        for line in presence_lines(diagnosis.agents, losses(location, going)):
            print(line)
    for line in (*failures(last_hook_events(location)), *space_lines(location)):
        print(line)
    if old := diagnosis.old_index:
        print(one_line(f"{old} is an index of an earlier version, with the text of sessions in it: remove it"))
