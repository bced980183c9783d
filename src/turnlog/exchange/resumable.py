"""How an agent goes on with a session in its own home: the command, and what a person should know of it.

Knows nothing of writing one: see `handover`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.formats import Loss, Resuming, Source, format_of, is_known
from turnlog.machine.folder import current_folder, lies_in_home

if TYPE_CHECKING:
    from turnlog.exchange.transcript import ExportCounts

FORK = "`turnlog fork` makes one with another id"


class HandoverReport(Struct, frozen=True, kw_only=True):
    """What came of a session that was written for another agent."""

    carried: ExportCounts | None = None
    """None where nothing had to be written."""
    changed: list[Loss] = []
    """What is there in another form: `instead` says which."""
    lost: list[Loss] = []
    notes: list[str] = []
    """What a person should know besides."""


class Resumable(Struct, frozen=True):
    """A session that an agent can go on with."""

    agent: str
    id: str
    """Its id in that agent."""
    path: str | None
    """Where it lies; None for an agent that reads it here."""
    cwd: str
    command: list[str]
    """To be run in `cwd`."""
    report: HandoverReport


def report_of(lost: list[Loss], carried: ExportCounts | None, notes: list[str] | None = None) -> HandoverReport:
    """A report: what has something in its place is changed, the rest is lost."""
    changed = [loss for loss in lost if loss.instead]
    return HandoverReport(
        carried=carried, changed=changed, lost=[loss for loss in lost if not loss.instead], notes=notes or []
    )


def can_go_on(agent: str) -> bool:
    """Whether an agent has a command that goes on with a session."""
    return is_known(agent) and format_of(agent).resume is not None


def at_home(source: Source, workspace: str | None) -> Resumable | None:
    """How an agent goes on with a session in its own home, as it lies there: it is not read for that.

    `workspace` is where it was last, if that is known. None for a session that has to be placed there first.
    """
    form = format_of(source.agent)
    if form.resume is None or not lies_in_home(form, source.path):
        return None
    header = form.read(source).header
    if header.spawned is not None:
        return None
    cwd = folder_for(workspace or header.workspace)
    command = command_for(form.resume, source.agent, header.id, source.path, cwd)
    report = HandoverReport(notes=cautions(cwd, form.resume))
    return Resumable(source.agent, header.id, source.path, cwd, command, report)


def command_for(resuming: Resuming, agent: str, id: str, path: str, cwd: str) -> list[str]:
    """The command that goes on with it."""
    check_id(resuming, agent, id)
    return checked(resuming.command(id, os.path.abspath(path), cwd))


def check_id(resuming: Resuming, agent: str, id: str) -> None:
    """An id stands in a log or a file that anybody may have written: it is one that the agent makes, or refused."""
    if resuming.ids is not None and re.fullmatch(resuming.ids, id) is None:
        raise Invalid(f"{id!r:.80} is no id that {agent} gives to a session", hint="`turnlog show` reads it")


def checked(command: list[str]) -> list[str]:
    """A command that a system can run."""
    for word in command:
        if "\0" in word:
            raise Invalid(f"{word!r:.80} cannot be a word of a command", hint="--in AGENT hands it over to another")
    if not command[0]:
        raise Invalid("the command that goes on with it has no name", hint="--in AGENT hands it over to another")
    return command


def folder_for(workspace: str | None) -> str:
    """Where that command is run."""
    from turnlog.workspace.tree import path_bytes

    return os.fsdecode(path_bytes(workspace)) if workspace else current_folder()


def cautions(cwd: str, resuming: Resuming | None = None) -> list[str]:
    """What a person should know before running it."""
    warnings = [] if os.path.isdir(cwd) else [f"the folder {cwd} is not there"]
    return [*warnings, resuming.caution] if resuming is not None and resuming.caution else warnings
