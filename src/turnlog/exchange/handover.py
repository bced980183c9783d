"""A session handed over to an agent, so that it goes on there: placed in that agent's home, and the command for it.

Nothing of the agent's is ever written over. Where its id is taken by something else than this session, it is placed
beside that under another id; where the agent has it already, or has gone on with it, nothing is placed at all.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, cast

from msgspec.structs import replace

from turnlog.errors import AlreadyExists, Invalid, NotFound, Unsupported
from turnlog.exchange.resumable import (
    FORK,
    HandoverReport,
    Resumable,
    cautions,
    check_id,
    checked,
    command_for,
    folder_for,
    report_of,
)
from turnlog.exchange.source import source_of
from turnlog.exchange.transcript import ExportCounts, notes_on, transcript_of, writing_of, written_for
from turnlog.formats import (
    Format,
    Jump,
    Record,
    Rendered,
    Resuming,
    Source,
    Taken,
    Transcript,
    Writing,
    content_key,
    format_of,
    id_of,
    is_known,
)
from turnlog.log.context import text_of
from turnlog.log.entry import Head, Message
from turnlog.machine.folder import places_of, workspace_path
from turnlog.thread.handed import HandedOver
from turnlog.thread.reader import SessionReader, history_of
from turnlog.thread.report import is_net

_MOST = 100
"""So many states of one session may lie in an agent's home."""


def knows_agent(session: SessionReader) -> bool:
    """Whether anything says with which agent to go on."""
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
    """Place a session in an agent's home, the one it came from if not told, and say how to go on with it.

    With `dry_run` nothing is written: the caller learns whether it would work, or gets the error. `handed` is
    where it is written down for agents whose files have no place for it.
    """
    _refuse_net(session)
    transcript = transcript_of(session)
    cwd = folder_for(workspace_path(workspace) if workspace is not None else transcript.workspace)
    own = list(transcript.start.resume)
    if own and agent in (None, session.agent):
        command = checked([word.replace("{id}", session.id) for word in own])
        if session.id.startswith("-") and any(word.startswith("{id}") for word in own):
            raise Invalid(f"the id {session.id!r:.80} would be an option of {command[0]!r:.80}", hint=FORK)
        return Resumable(
            session.agent or command[0], session.id, None, cwd, command, HandoverReport(notes=cautions(cwd))
        )
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
    if transcript.start.spawned is not None:  # no agent resumes a subagent: there it is a session like others
        transcript = _without_origin(transcript)
    there = _at_home(form, transcript, cwd) if transcript.agent == chosen else None
    is_as_it_is = workspace is None and format_version is None and not _went_on_here(session)
    if there is not None and is_as_it_is:
        notes = [*_went_on_there(form, there, session), *cautions(cwd, form.resume)]
        command = command_for(form.resume, chosen, transcript.source_id, there.path, cwd)
        return Resumable(chosen, transcript.source_id, there.path, cwd, command, HandoverReport(notes=notes))
    if there is not None or history_of(session).state.is_relayed:  # its id is taken, by itself
        transcript = _without_origin(transcript)
    transcript = replace(transcript, workspace=cwd)
    if dry_run:
        return _planned(form, form.resume, chosen, transcript, cwd, format_version)
    return _place(form, form.resume, chosen, transcript, cwd, format_version, handed)


def _refuse_net(session: SessionReader) -> None:
    """Raise `Unsupported` for a session that only keeps files: there is nobody to go on with."""
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


def _home_of(form: Format, agent: str, transcript: Transcript, cwd: str) -> str:
    """Where the session goes; raises what is in the way."""
    if not any(isinstance(entry, Message) for entry in transcript.path):
        raise Unsupported(
            f"nothing was said in session {transcript.id}: there is nothing to go on with",
            hint=f"`turnlog log {transcript.id}` shows what is in it",
        )
    folder = next(iter(form.homes(places_of(cwd))), cwd)
    if not os.path.isdir(cwd) and (folder + "/").startswith(cwd.rstrip("/") + "/"):
        raise NotFound(f"the folder {cwd} is not there", hint=f"{agent} keeps sessions in it; -w names another folder")
    return folder


def _planned(
    form: Format, resuming: Resuming, agent: str, transcript: Transcript, cwd: str, format_version: int | None
) -> Resumable:
    """What `_place` would do, where nothing is there yet."""
    writing_of(form, agent)
    folder = _home_of(form, agent, transcript, cwd)
    written, carried = next(_states(transcript, agent, format_version))
    path = os.path.join(folder, written.files[0].path)
    command = command_for(resuming, agent, written.id, path, cwd)
    return Resumable(agent, written.id, path, cwd, command, report_of(written.lost, carried, notes_on(written)))


def _place(
    form: Format,
    resuming: Resuming,
    agent: str,
    transcript: Transcript,
    cwd: str,
    format_version: int | None,
    handed: HandedOver | None,
) -> Resumable:
    writing = writing_of(form, agent)
    folder = _home_of(form, agent, transcript, cwd)
    notes: list[str] = []
    for written, carried in _states(transcript, agent, format_version):
        check_id(resuming, agent, written.id)  # before anything is placed
        if handed is not None and written.copied is not None:
            handed.note(agent, written.id, written.copied)
        try:
            path = writing.place(written, folder)
        except Taken as error:
            path, difference = error.path, _compared(form, writing, error.path, written)
            if difference is None:
                notes = [f"{path} is another state of it, and stays as it is"]
                continue
            notes = [*notes, *difference]
        command = command_for(resuming, agent, written.id, path, cwd)
        notes = [*notes, *notes_on(written), *cautions(cwd, resuming)]
        report = report_of(written.lost, carried, notes)
        return Resumable(agent, written.id, path, cwd, command, report)
    raise AlreadyExists(f"{_MOST} states of session {transcript.id} are in {folder} already", hint="remove some there")


def _states(transcript: Transcript, agent: str, version: int | None) -> Iterator[tuple[Rendered, ExportCounts]]:
    """The session under its own id, then under others, each the same whenever it is asked for."""
    yield written_for(transcript, agent, version, is_free=True)
    fresh = _without_origin(transcript)
    if transcript.agent == agent:
        yield written_for(fresh, agent, version, is_free=True)
    for number in range(2, _MOST):
        yield written_for(replace(fresh, id=f"{transcript.id}.{number}"), agent, version, is_free=True)


def _without_origin(transcript: Transcript) -> Transcript:
    """As if it had been made here: it gets an id of its own."""
    return replace(transcript, agent=None, source_id="", origin=None)


def _compared(form: Format, writing: Writing, path: str, written: Rendered) -> list[str] | None:
    """What to say of a file that is already there; None if it is something else than what was to be written."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            if file.read(len(written.files[0].data) + 1) == written.files[0].data:
                return []
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="turnlog-") as folder:
        ours = _said(form, writing.place(written, os.path.join(folder, "there")), written.id)
    theirs = _said(form, path, written.id)
    if not ours or theirs[: len(ours)] != ours:
        return None
    return [f"{path} has gone on since: nothing was written"] if len(theirs) > len(ours) else []


def _said(form: Format, path: str, id: str) -> list[str]:
    """Every message in a file, by its content."""
    source = source_at(form, path, id)
    if source is None:
        return []
    steps = form.read(source).steps
    return [content_key(s.entry) for s in steps if isinstance(s, Record) and isinstance(s.entry, Message)]


def source_at(form: Format, path: str, id: str) -> Source | None:
    """The session with that id at a path."""
    try:
        return next((source for source in form.find(path) if form.read(source).header.id == id), None)
    except OSError:
        return None


def _went_on_here(session: SessionReader) -> bool:
    """Whether anything was said here, or the conversation moved, that did not come from the other agent."""
    return any(
        entry.origin is None and (entry.parent is not None or isinstance(entry, Head)) for entry in session.entries()
    )


def _at_home(form: Format, transcript: Transcript, cwd: str) -> Source | None:
    """The agent's own session, if it still lies in one of its folders."""
    origin = cast("dict[str, Any]", transcript.start.origin)
    if not origin.get("path") and transcript.agent is not None:  # nobody said where, when it began
        return source_of(transcript.agent, transcript.source_id, "")
    path = os.path.abspath(str(origin.get("path")))
    homes = [os.path.abspath(home) for home in form.homes(places_of(cwd))]
    if not any(path.startswith(home.rstrip("/") + "/") for home in homes) or not os.path.exists(path):
        return None
    return source_at(form, path, transcript.source_id)


def _went_on_there(form: Format, source: Source, session: SessionReader) -> list[str]:
    imported = {entry.id for entry in session.entries() if entry.origin is not None}
    counts: Counter[str] = Counter()
    new = 0
    for step in form.read(source).steps:
        if not isinstance(step, Jump) and id_of(step.key, step.entry, counts) not in imported:
            new += 1
    if not new:
        return []
    more = f"{new} record{'s' * (new != 1)}"
    return [f"it went on there: {more} not here yet; `turnlog import {source.path}` brings them"]
