"""Resuming a session in an agent: finding it, placing it where that agent looks, and becoming the agent."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from time import time
from typing import TYPE_CHECKING

from turnlog.cli.draw.foreignproblems import tell_report
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.notes import hint, note, tell
from turnlog.cli.pick.catalog import open_catalog
from turnlog.errors import Invalid, NotFound
from turnlog.exchange.exporting.resumable import Resumable, at_home, can_go_on
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.formats import Source
from turnlog.log.startup import NamedTuple
from turnlog.machine.environment import default_home
from turnlog.machine.location import is_shared
from turnlog.reader.naming.here import newest_cards, tilde
from turnlog.view.time import ago
from turnlog.view.visible import quoted

if TYPE_CHECKING:
    from turnlog.reader.naming.sessionref import SessionRef
    from turnlog.session import Home, ReadOnlySession

_LOOKED_AT = 50


class ResumeRequest(NamedTuple):
    """Which session is to be resumed, and how."""

    word: str | None = None
    """None for the newest of this folder."""
    agent: str | None = None
    """None for the agent it came from."""
    workspace: str | None = None
    version: int | None = None
    """Of the format of the agent's sessions."""


class ResumeMode(NamedTuple):
    """What is done with the command."""

    is_run: bool
    """Whether it is run, not only printed."""
    as_json: bool


class ChosenResumable(NamedTuple):
    """A session that an agent can resume."""

    resumable: Resumable
    is_own: bool
    """Whether this user made it on this machine. If not, its command is run only after a question."""


def resume(request: ResumeRequest, *, is_run: bool, as_json: bool) -> None:
    """Print the command that resumes a session; with `is_run`, run it."""
    mode = ResumeMode(is_run, as_json)
    chosen = _newest_at_home(mode) if request == ResumeRequest() else None
    resumable, is_own = chosen or _find(request, mode)
    if as_json:
        print_json(_json_resumable(resumable))
    else:
        tell_report(resumable.report)
        if not is_run:
            print(_shell_command(resumable))
            if sys.stdout.isatty():
                hint("paste that, or add --exec and it runs")
    if is_run:
        if not is_own:
            _confirm(resumable)
        if not as_json:
            tell(f"running: {_shell_command(resumable)}", exact=True)
        _run(resumable.command, resumable.cwd)


def _json_resumable(resumable: Resumable) -> dict[str, object]:
    return {
        "agent": resumable.agent, "id": resumable.id, "path": resumable.path, "cwd": resumable.cwd,
        "command": resumable.command, "report": resumable.report,
    }  # fmt: skip


def _newest_at_home(mode: ResumeMode) -> ChosenResumable | None:
    """Return the newest session of this folder if it is another agent's, and can be resumed without being placed.

    This is the most frequent case; it opens no home of ours.
    """
    if is_shared(home_location() or default_home()):
        return None  # the catalog may not know what is new in a database
    with open_catalog(home_location()) as catalog:
        newest = newest_cards(catalog, 1, anywhere=False) or newest_cards(catalog, 1, anywhere=True)
    if not newest or newest[0].is_ours or not can_go_on(newest[0].agent or ""):
        return None
    card = newest[0]
    source = Source(card.agent or "", card.path, card.key)
    _restore_kept(source)
    resumable = at_home(source, card.workspace)
    if resumable is not None and sys.stdout.isatty() and card.updated_at is not None:
        tell(f"{ago(card.updated_ms, time())}: {card.title or card.preview or card.name}")
    if resumable is None:
        return None
    _check(resumable, mode, is_own=True)
    return ChosenResumable(resumable, is_own=True)


def _find(request: ResumeRequest, mode: ResumeMode) -> ChosenResumable:
    """Find the session that is meant, and place it where its agent looks."""
    from turnlog.cli.pick.browser import find_or_choose
    from turnlog.cli.pick.session import names

    with this_home() as opened:
        if request.word is None:
            chosen = _newest_resumable(opened, request.agent)
        else:
            chosen = find_or_choose(request.word, names(opened).find, "resume", as_json=mode.as_json)
        if chosen.source is not None and request.agent in (None, chosen.source.agent):
            _restore_kept(chosen.source)
            is_plain = request.workspace is None and request.version is None
            resumable = at_home(chosen.source, chosen.workspace) if is_plain else None
            if resumable is not None:
                _check(resumable, mode, is_own=True)
                return ChosenResumable(resumable, is_own=True)
        return _place(opened, chosen, request, mode)


def _newest_resumable(home: Home, agent: str | None) -> SessionRef:
    """Return the newest session of this folder that can be resumed; for another agent, the newest of all."""
    from turnlog.cli.pick.session import names

    session_names = names(home)
    newest = session_names.newest(_LOOKED_AT)
    if not newest:
        return session_names.find(None)
    chosen = next((ref for ref in newest if agent is not None or _is_resumable(home, ref)), newest[0])
    if chosen is not newest[0]:
        note(f"{newest[0].name} is newer, but no command resumes it; --in AGENT hands it over to another")
    return chosen


def _is_resumable(home: Home, ref: SessionRef) -> bool:
    if ref.source is not None:
        return can_go_on(ref.source.agent)
    from turnlog.exchange.exporting.transcript import transcript_of

    with home.read(ref.id) as session:
        transcript = transcript_of(session)
        return bool(transcript.start.resume) or can_go_on(transcript.agent or session.agent or "")


def _restore_kept(source: Source) -> None:
    """Restore the files of a session that its agent deleted, from the copy that is kept here."""
    for path in KeptFiles(home_location()).put_back(source):
        tell(f"{source.agent} had deleted {tilde(path)}: it is back, to the byte")


def _place(home: Home, chosen: SessionRef, request: ResumeRequest, mode: ResumeMode) -> ChosenResumable:
    """Place a session where the agent looks for it. Of another agent's session, the imported copy is placed."""
    from turnlog.cli.pick.session import imported_session, reader
    from turnlog.exchange.exporting.handover import hand_over
    from turnlog.exchange.exporting.resumealias import alias_before_resume
    from turnlog.session.interior import interior
    from turnlog.thread.home.handedover import HandedOver

    hand = partial(hand_over, agent=request.agent, workspace=request.workspace, format_version=request.version)
    is_imported = chosen.source is not None and request.agent not in (None, chosen.source.agent)
    with ExitStack() as stack:
        session: ReadOnlySession
        if chosen.source is None:
            session = stack.enter_context(home.read(chosen.id))
        else:
            session = stack.enter_context(reader().read_foreign(chosen)).session
        is_own = not mode.is_run or _is_own(home, session, chosen)  # only a command that is run needs to know
        if is_imported or mode.is_run:  # nothing is imported or written for what cannot work
            _check(hand(session, dry_run=True), mode, is_own=is_own)
        if is_imported:  # from now on it is in two places: ours knows that both are one
            session = stack.enter_context(imported_session(home, chosen.name, chosen))
        resumable = hand(session, handed=HandedOver(interior(home).created_here.location))
        if chosen.source is None:
            alias_before_resume(interior(home).store, session, resumable)
        return ChosenResumable(resumable, is_own=is_own)


def _is_own(home: Home, session: ReadOnlySession, chosen: SessionRef) -> bool:
    """Whether this user made the session here; another agent's if it lies where that agent keeps its sessions."""
    from turnlog.exchange.exporting.transcript import transcript_of
    from turnlog.exchange.source import lies_at_home
    from turnlog.session.interior import interior

    if chosen.source is not None:
        return lies_at_home(chosen.source)
    return interior(home).created_here.knows(session.id, transcript_of(session).start.resume)


def _shell_command(resumable: Resumable) -> str:
    """Return the command for a shell, quoted and without invisible characters: it does what it seems to do."""
    import shlex

    script = resumable.command[2] if resumable.path is not None and resumable.command[:2] == ["sh", "-c"] else ""
    is_plain = script and quoted(script) == shlex.quote(script)
    return f"cd {quoted(resumable.cwd)} && {script if is_plain else ' '.join(map(quoted, resumable.command))}"


def _check(resumable: Resumable, mode: ResumeMode, *, is_own: bool) -> None:
    """Raise what will prevent the command from being run; nothing if it is only printed."""
    if mode.is_run:
        _refuse_unrunnable(resumable)
        if not is_own:
            _refuse_unasked(resumable, as_json=mode.as_json)


def _refuse_unrunnable(planned: Resumable) -> None:
    """Raise `NotFound` for a folder that is not there, `NoCommand` for a program that is not installed."""
    import shutil
    from pathlib import Path

    from turnlog.cli.frame.foreground import NoCommand

    if not Path(planned.cwd).is_dir():
        raise NotFound(f"the folder {planned.cwd} is not there", hint="-w names another one")
    words = planned.command
    name = words[2].split(" ", 1)[0] if planned.path is not None and words[:2] == ["sh", "-c"] else words[0]
    program = os.path.join(planned.cwd, name) if "/" in name else name  # noqa: PTH118 - it is run from that folder
    if shutil.which(program, mode=os.F_OK) is None:
        raise NoCommand(f"no command {name!r}", hint="install it, and run this again")


def _refuse_unasked(resumable: Resumable, *, as_json: bool) -> None:
    from turnlog.cli.frame.question import can_ask

    if not can_ask(as_json=as_json):
        where = "with --json there is no question" if as_json else "there is no terminal to ask on"
        raise Invalid(
            f"session {resumable.id} was not made here: --exec asks before it runs what its log says, and {where}",
            hint=f"if that is what you want: {_shell_command(resumable)}",
        )


def _confirm(resumable: Resumable) -> None:
    from turnlog.cli.frame.question import confirm

    tell("this session was not made here; its command is")
    tell(f"  {_shell_command(resumable)}", exact=True)
    confirm("run it?", nothing="nothing was run")


def _run(words: list[str], cwd: str) -> None:
    """Become that program; only what prevents it returns."""
    from turnlog.cli.frame.background import start_background_work
    from turnlog.cli.frame.foreground import NoCommand, NotRunnable

    start_background_work()
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.chdir(cwd)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise NotFound(f"the folder {cwd}: {reason}", hint="-w names another one") from None
    try:
        os.execvp(words[0], words)
    except FileNotFoundError:
        raise NoCommand(f"no command {words[0]!r}", hint="install it, and run this again") from None
    except OSError as error:
        raise NotRunnable(f"{words[0]}: {error.strerror}") from None
