"""The command with which an agent resumes a session in its own home, and what a person should know before.

Placing a session there is the task of `handover`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.formats import Resuming, Source, format_of, is_known
from turnlog.formats._shared.transcript import Loss
from turnlog.machine.folder import current_folder
from turnlog.machine.formatplaces import lies_in_home

if TYPE_CHECKING:
    from turnlog.exchange.exporting.readback import ExportCounts

FORK = "`turnlog fork` makes one with another id"


class HandoverReport(Struct, frozen=True, kw_only=True):
    """The report on a session that was handed over to an agent."""

    carried: ExportCounts | None = None
    """None if nothing had to be written."""
    changed: list[Loss] = []
    """What was written in another form: `instead` says which."""
    lost: list[Loss] = []
    notes: list[str] = []
    """What else a person should know."""


class Resumable(Struct, frozen=True):
    """A session that an agent can resume."""

    agent: str
    id: str
    """Its id in that agent."""
    path: str | None
    """The path of its file; None for an agent that reads it here."""
    cwd: str
    command: list[str]
    """The command that resumes it, to be run in `cwd`."""
    report: HandoverReport


def report_of(lost: list[Loss], carried: ExportCounts | None, notes: list[str] | None = None) -> HandoverReport:
    """Make a report. A loss with something instead counts as changed, any other as lost."""
    changed = [loss for loss in lost if loss.instead]
    return HandoverReport(
        carried=carried, changed=changed, lost=[loss for loss in lost if not loss.instead], notes=notes or []
    )


def can_go_on(agent: str) -> bool:
    """Whether an agent has a command that resumes a session."""
    return is_known(agent) and format_of(agent).resume is not None


def at_home(source: Source, workspace: str | None) -> Resumable | None:
    """The way to resume a session that lies in its agent's own home, of which only the header is read.

    `workspace` is its last one, if that is known. None if the session has to be placed there first.
    """
    form = format_of(source.agent)
    if form.resume is None or not lies_in_home(form, source.path):
        return None
    header = form.read(source).header
    if header.spawned is not None:
        return None
    cwd = folder_to_resume_in(workspace or header.workspace)
    command = command_for(form.resume, source.agent, header.id, source.path, cwd)
    report = HandoverReport(notes=cautions(cwd, form.resume))
    return Resumable(source.agent, header.id, source.path, cwd, command, report)


def command_for(resuming: Resuming, agent: str, id: str, path: str, cwd: str) -> list[str]:
    """The command that resumes a session."""
    check_id(resuming, agent, id)
    return checked(resuming.command(id, os.path.abspath(path), cwd))


def check_id(resuming: Resuming, agent: str, id: str) -> None:
    """Raise `Invalid` for an id that the agent would not make: anybody may have written the file that it is from."""
    if resuming.ids is not None and re.fullmatch(resuming.ids, id) is None:
        raise Invalid(f"{id!r:.80} is no id that {agent} gives to a session", hint="`turnlog show` reads it")


def checked(command: list[str]) -> list[str]:
    """Return a command if a system can run it. Raises `Invalid` otherwise."""
    for word in command:
        if "\0" in word:
            raise Invalid(f"{word!r:.80} cannot be a word of a command", hint="--in AGENT hands it over to another")
    if not command[0]:
        raise Invalid("the command that goes on with it has no name", hint="--in AGENT hands it over to another")
    return command


def folder_to_resume_in(workspace: str | None) -> str:
    """The folder in which the command is run."""
    from turnlog.workspace.tree import path_bytes

    return os.fsdecode(path_bytes(workspace)) if workspace else current_folder()


def cautions(cwd: str, resuming: Resuming | None = None) -> list[str]:
    """The warnings for a person before the command is run."""
    warnings = [] if os.path.isdir(cwd) else [f"the folder {cwd} is not there"]
    return [*warnings, resuming.caution] if resuming is not None and resuming.caution else warnings
