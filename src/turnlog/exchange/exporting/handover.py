"""Handing a session over to an agent: it is placed in that agent's home, and the command that resumes it is given.

No file of the agent is overwritten. If another session has its id there, it is placed beside that one under another
id. If the agent has it already, or has continued it, nothing is placed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, count, islice
from typing import NamedTuple

from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Invalid, NotFound, Unsupported
from turnlog.exchange.exporting.readback import ExportCounts
from turnlog.exchange.exporting.resumable import (
    FORK,
    HandoverReport,
    Resumable,
    cautions,
    check_id,
    checked,
    command_for,
    folder_to_resume_in,
    report_of,
)
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import notes_on, writing_of, written_for
from turnlog.exchange.origin import decode_origin
from turnlog.exchange.source import mapped_read_errors, source_of
from turnlog.formats import Format, Jump, Record, Resuming, Source, Writing, format_of, is_known
from turnlog.formats._shared.transcript import Rendered, Transcript
from turnlog.interop.place import Taken
from turnlog.log.context import text_of
from turnlog.log.entry import Head, Message
from turnlog.log.identity import content_key, id_of
from turnlog.machine.folder import workspace_path
from turnlog.machine.formatplaces import places_of
from turnlog.thread.home.handedover import HandedOver
from turnlog.thread.reader import SessionReader, history_of
from turnlog.thread.report import is_net

_MAX_STATES = 100
"""The maximum number of states of one session in an agent's home."""


class _Target(NamedTuple):
    """What is handed over, to whom, and to which folder."""

    agent: str
    form: Format
    resuming: Resuming
    transcript: Transcript
    cwd: str
    """The folder in which the session goes on."""
    format_version: int | None

    def resumable(self, written: Rendered, path: str, carried: ExportCounts, notes: list[str]) -> Resumable:
        """The session as the agent finds it at a path."""
        command = command_for(self.resuming, self.agent, written.id, path, self.cwd)
        return Resumable(self.agent, written.id, path, self.cwd, command, report_of(written.lost, carried, notes))


def knows_agent(session: SessionReader) -> bool:
    """Whether it is known which agent resumes a session."""
    transcript = transcript_of(session)
    return bool(transcript.start.resume or transcript.agent or (session.agent and is_known(session.agent)))


def hand_over(
    session: SessionReader,
    agent: str | None = None,
    *,
    workspace: str | os.PathLike[str] | None = None,
    format_version: int | None = None,
    dry_run: bool = False,
    handed: HandedOver | None = None,
) -> Resumable:
    """Place a session in the home of an agent, by default the one it came from, and return how to resume it there.

    With `dry_run` nothing is written, but an error is raised if it would not work. `handed` records the copy for
    agents whose files have no place for that.
    """
    _refuse_net(session)
    transcript = transcript_of(session)
    cwd = folder_to_resume_in(workspace_path(workspace) if workspace is not None else transcript.workspace)
    own_command = list(transcript.start.resume)
    if own_command and agent in (None, session.agent):
        return _resumable_by_command(session, own_command, cwd)
    chosen, form, resuming = _choose_agent(session, agent, transcript)
    if transcript.start.spawned is not None:  # no agent resumes a subagent: there it is a session like others
        transcript = _without_origin(transcript)
    source_there = _source_at_home(form, transcript, cwd) if transcript.agent == chosen else None
    is_unchanged_here = workspace is None and format_version is None and not _continued_here(session)
    if source_there is not None and is_unchanged_here:
        notes = [*_notes_on_growth(form, source_there, session), *cautions(cwd, resuming)]
        command = command_for(resuming, chosen, transcript.source_id, source_there.path, cwd)
        return Resumable(chosen, transcript.source_id, source_there.path, cwd, command, HandoverReport(notes=notes))
    if source_there is not None or history_of(session).state.is_relayed:  # its id is taken, by itself
        transcript = _without_origin(transcript)
    target = _Target(chosen, form, resuming, replace(transcript, workspace=cwd), cwd, format_version)
    return _planned(target) if dry_run else _place(target, handed)


def _resumable_by_command(session: SessionReader, own_command: list[str], cwd: str) -> Resumable:
    """The way to resume a session that has a command of its own."""
    command = checked([word.replace("{id}", session.id) for word in own_command])
    if session.id.startswith("-") and any(word.startswith("{id}") for word in own_command):
        raise Invalid(f"the id {session.id!r:.80} would be an option of {command[0]!r:.80}", hint=FORK)
    return Resumable(session.agent or command[0], session.id, None, cwd, command, HandoverReport(notes=cautions(cwd)))


def _choose_agent(session: SessionReader, agent: str | None, transcript: Transcript) -> tuple[str, Format, Resuming]:
    """The agent that resumes the session, by default the one it came from, with its format."""
    chosen = agent or transcript.agent or (session.agent if session.agent and is_known(session.agent) else None)
    if chosen is None:
        raise Unsupported(
            f"nothing says which command goes on with session {session.handle}",
            hint="--in AGENT hands it over to another; home.create(resume=[…]) says it for your own",
        )
    form = format_of(chosen)
    if form.resume is None:
        raise Unsupported(
            f"{chosen} has no command that goes on with a session", hint="`turnlog formats` says which have one"
        )
    return chosen, form, form.resume


def _refuse_net(session: SessionReader) -> None:
    """Raise `Unsupported` for a session that is only a safety net: it has no conversation."""
    if not is_net(history_of(session).state):
        return
    messages = (entry for entry in session.entries(reverse=True) if isinstance(entry, Message))
    command = next((text for entry in messages if (text := text_of(entry.blocks)).startswith("$ ")), "")
    what = f"`turnlog run` of `{command[2:]:.80}`" if command else "a `turnlog checkpoint`"
    name = session.handle
    raise Unsupported(
        f"session {name} is {what}, not a conversation: there is nothing to go on with",
        hint=f"`turnlog diff -s {name}` shows what changed, `turnlog rewind -s {name}` takes it back",
    )


def _home_of(target: _Target) -> str:
    """The folder that the session is placed in. Raises an error if nothing can be placed there."""
    transcript, cwd = target.transcript, target.cwd
    if not any(isinstance(entry, Message) for entry in transcript.path):
        raise Unsupported(
            f"nothing was said in session {transcript.id}: there is nothing to go on with",
            hint=f"`turnlog log {transcript.id}` shows what is in it",
        )
    folder = next(iter(target.form.homes(places_of(cwd))), cwd)
    if not os.path.isdir(cwd) and (folder + "/").startswith(cwd.rstrip("/") + "/"):
        raise NotFound(
            f"the folder {cwd} is not there", hint=f"{target.agent} keeps sessions in it; -w names another folder"
        )
    return folder


def _planned(target: _Target) -> Resumable:
    """What `_place` would do if nothing were there yet."""
    writing_of(target.form, target.agent)
    folder = _home_of(target)
    written, carried = next(_candidates(target))
    return target.resumable(written, os.path.join(folder, written.files[0].path), carried, notes_on(written))


def _place(target: _Target, handed: HandedOver | None) -> Resumable:
    """Place the session under the first id that is free, or find the place where it already is."""
    writing = writing_of(target.form, target.agent)
    folder = _home_of(target)
    notes: list[str] = []
    for written, carried in islice(_candidates(target), _MAX_STATES):
        check_id(target.resuming, target.agent, written.id)  # before anything is placed
        copied = written.copied
        try:
            with nullcontext() if handed is None or copied is None else handed.noting(target.agent, written.id, copied):
                path = writing.place(written, folder)
        except Taken as error:
            path, difference = error.path, _notes_on_existing(target.form, writing, error.path, written)
            if difference is None:
                notes = [f"{path} is another state of it, and stays as it is"]
                continue
            notes = [*notes, *difference]
        return target.resumable(
            written, path, carried, [*notes, *notes_on(written), *cautions(target.cwd, target.resuming)]
        )
    raise AlreadyExists(
        f"{_MAX_STATES} states of session {target.transcript.id} are in {folder} already", hint="remove some there"
    )


def _candidates(target: _Target) -> Iterator[tuple[Rendered, ExportCounts]]:
    """The session under its own id, then under others, which are the same every time."""
    transcript, agent, version = target.transcript, target.agent, target.format_version
    fresh = _without_origin(transcript)
    numbered = (replace(fresh, id=f"{transcript.id}.{number}") for number in count(2))
    for state in chain([transcript], [fresh] if transcript.agent == agent else [], numbered):
        yield written_for(state, agent, version, is_free=True)


def _without_origin(transcript: Transcript) -> Transcript:
    """A transcript as if the session had been made here, so that it gets an id of its own."""
    return replace(transcript, agent=None, source_id="", origin=None)


def _notes_on_existing(form: Format, writing: Writing, path: str, written: Rendered) -> list[str] | None:
    """Notes on a file that is in the place of a session; None if it is not that session."""
    with mapped_read_errors(path):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                if file.read(len(written.files[0].data) + 1) == written.files[0].data:
                    return []
        theirs = _message_digests(form, path, written.id)
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="turnlog-") as folder:
        ours = _message_digests(form, writing.place(written, os.path.join(folder, "copy")), written.id)
    if not ours or theirs[: len(ours)] != ours:
        return None
    return [f"{path} has gone on since: nothing was written"] if len(theirs) > len(ours) else []


def _message_digests(form: Format, path: str, id: str) -> list[str]:
    """The digests of all messages of a session in a file."""
    source = source_at(form, path, id)
    if source is None:
        return []
    steps = form.read(source).steps
    return [content_key(s.entry) for s in steps if isinstance(s, Record) and isinstance(s.entry, Message)]


def source_at(form: Format, path: str, id: str) -> Source | None:
    """The session with an id at a path."""
    try:
        return next((source for source in form.find(path) if form.read(source).header.id == id), None)
    except OSError:
        return None


def _continued_here(session: SessionReader) -> bool:
    """Whether nodes were appended or the head was moved here since the import."""
    return any(
        entry.origin is None and (entry.parent is not None or isinstance(entry, Head)) for entry in session.entries()
    )


def _source_at_home(form: Format, transcript: Transcript, cwd: str) -> Source | None:
    """The session that a transcript was imported from, if it still lies in a folder of its agent."""
    first_path = decode_origin(transcript.start).path
    if not first_path:  # a hook created the session, and did not know the file
        return None if transcript.agent is None else source_of(transcript.agent, transcript.source_id, "")
    path = os.path.abspath(first_path)
    homes = [os.path.abspath(home) for home in form.homes(places_of(cwd))]
    if not any(path.startswith(home.rstrip("/") + "/") for home in homes) or not os.path.exists(path):
        return None
    return source_at(form, path, transcript.source_id)


def _notes_on_growth(form: Format, source: Source, session: SessionReader) -> list[str]:
    imported = {entry.id for entry in session.entries() if entry.origin is not None}
    counts: Counter[str] = Counter()
    new = 0
    with mapped_read_errors(source.path):
        for step in form.read(source).steps:
            if not isinstance(step, Jump) and id_of(step.key, step.entry, counts) not in imported:
                new += 1
    if not new:
        return []
    more = f"{new} record{'s' * (new != 1)}"
    return [f"it went on there: {more} not here yet; `turnlog import {source.path}` brings them"]
