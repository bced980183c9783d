"""`turnlog resume`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from time import time
from typing import TYPE_CHECKING

from turnlog.cli.draw.problem import tell_report
from turnlog.cli.draw.text import ago, one_line, tell
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.exitcode import Left
from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.shape import REPORT
from turnlog.cli.pick.catalog import catalog
from turnlog.errors import Invalid, NotFound
from turnlog.exchange.kept import put_back
from turnlog.exchange.resumable import Resumable, at_home, can_go_on
from turnlog.formats import Source
from turnlog.machine.environment import default_home
from turnlog.machine.location import is_shared
from turnlog.reader.folder import newest_cards, tilde
from turnlog.view.visible import quoted

if TYPE_CHECKING:
    from turnlog.reader.name import SessionRef
    from turnlog.session import Home
    from turnlog.session.readonly import ReadOnlySession

_LOOKED_AT = 50
CHANGES = shape.OTHERS
FIELDS = {
    "agent": shape.text("the agent that continues it"),
    "id": shape.text("its id there"),
    "path": shape.text("its file there; null for an agent that reads it here", null=True),
    "cwd": shape.text("the folder for the command", null=True),
    "command": shape.texts("the command as a list of words"),
    "report": REPORT,
}


@declare(
    SESSION_ARGUMENT,
    Option("--in AGENT", "In which agent. [default: the one it came from]", name="agent"),
    Option("--workspace -w PATH", "In that folder. [default: the session's]"),
    Option(
        "--format-version N", "A newer version of the agent's format. [default: its first]", name="version", least=1
    ),
    Option("--exec", "Run the command at once, in the session's folder.", name="is_run"),
    Option("--pick", "Choose the session from a list: see `turnlog pick`.", name="is_picked"),
)
def command(
    session: str | None,
    agent: str | None,
    workspace: str | None,
    version: int | None,
    is_run: bool,
    is_picked: bool,
    as_json: bool,
) -> None:
    """Continue a session, in the agent it came from or in another one.

    Puts the session where that agent looks for it and prints the command that continues it there; with --exec, prints
    it on stderr and runs it. Nothing of the agent's is overwritten: if it has the session already, that is used, and if
    it has continued it, a note reports that. The report on stderr lists what was carried over, changed and lost.

    A session of another agent continues in that agent, in place; for --in it is imported first. If that agent cannot
    continue it, nothing is imported or written.

    Usage counts where it was spent: in the copy, only what the agent adds counts.

    A session of your own agent is resumed with the command given to home.create(resume=[…]).

    A session that was not made here, by you and on this machine, may contain any command: --exec shows the command and
    asks before it runs it; without a terminal it refuses. An id of a shape that the agent never uses is refused as
    well.

    \b
    turnlog resume                  this folder's newest that can be resumed
    turnlog resume --pick --exec    one from a list, at once
    turnlog resume k3f9 --in codex  what another agent began, in Codex
    turnlog resume codex:0199 --in claude-code --exec
    """
    is_own = True
    if is_picked:
        from turnlog.cli.pick.browser import picked

        session = picked(session or "", what="`turnlog resume --pick`")
    resumable = _newest_at_home() if session is agent is workspace is version is None else None
    if resumable is None:
        resumable, is_own = _found(session, agent, workspace, version, is_run=is_run, as_json=as_json)
    elif is_run:
        _refuse_unrunnable(resumable)
    if as_json:
        print_json({
            "agent": resumable.agent, "id": resumable.id, "path": resumable.path, "cwd": resumable.cwd,
            "command": resumable.command, "report": resumable.report,
        })  # fmt: skip
    else:
        tell_report(resumable.report)
        if not is_run:
            print(_pasted(resumable))
            if sys.stdout.isatty():
                print("hint: paste that, or add --exec and it runs", file=sys.stderr)
    if is_run:
        if not is_own and not _is_wanted(resumable):
            from turnlog.cli.draw.question import NO

            print("nothing was run", file=sys.stderr)
            raise Left(NO)
        if not as_json:
            print(f"running: {_pasted(resumable)}", file=sys.stderr)
        _run(resumable.command, resumable.cwd)


def go_on(name: str) -> None:
    """Become the agent of a session, as `--exec` does."""
    command.run(name, None, None, None, is_run=True, is_picked=False, as_json=False)


def _newest_at_home() -> Resumable | None:
    """How another agent goes on with the newest session of here, where it lies: asked most, and needs no home of ours.

    None where that is not the newest, or has to be placed there.
    """
    if is_shared(home_location() or default_home()):
        return None  # the catalog may not know what is new in a database
    with catalog(home_location()) as asked:
        newest = newest_cards(asked, 1, anywhere=False) or newest_cards(asked, 1, anywhere=True)
    if not newest or newest[0].is_ours or not can_go_on(newest[0].agent or ""):
        return None
    [card] = newest[:1]
    source = Source(card.agent or "", card.path, card.key)
    _put_back(source)
    resumable = at_home(source, card.workspace)
    if resumable is not None and sys.stdout.isatty() and card.updated_at is not None:
        tell(f"{ago(int(card.updated_at.timestamp() * 1000), time())}: {card.title or card.preview or card.name}")
    return resumable


def _found(
    word: str | None, agent: str | None, workspace: str | None, version: int | None, *, is_run: bool, as_json: bool
) -> tuple[Resumable, bool]:
    """Any session, ready to go on with in an agent; and whether it was made here."""
    from turnlog.cli.pick.browser import chosen_by
    from turnlog.cli.pick.session import names

    with this_home() as opened:
        if word is None:
            chosen = _newest(opened, agent)
        else:
            chosen = chosen_by(word, names(opened).find, "resume", as_json=as_json)
        if chosen.source is not None and agent in (None, chosen.source.agent):
            _put_back(chosen.source)
            resumable = at_home(chosen.source, chosen.workspace) if workspace is None and version is None else None
            if resumable is not None:
                if is_run:
                    _refuse_unrunnable(resumable)
                return resumable, True
        from turnlog.exchange.handover import hand_over

        hand = partial(hand_over, agent=agent, workspace=workspace, format_version=version)
        return _placed(opened, chosen, agent, hand, is_run=is_run, as_json=as_json)


def _newest(home: Home, agent: str | None) -> SessionRef:
    """The newest session here that can be gone on with; for another agent, the newest of all."""
    from turnlog.cli.pick.session import names

    here = names(home)
    newest = here.newest(_LOOKED_AT)
    if not newest:
        return here.find(None)
    chosen = next((ref for ref in newest if agent is not None or _can_go_on(home, ref)), newest[0])
    if chosen is not newest[0]:
        note = f"{newest[0].name} is newer, but no command resumes it"
        print(one_line(f"note: {note}; --in AGENT hands it over to another"), file=sys.stderr)
    return chosen


def _can_go_on(home: Home, ref: SessionRef) -> bool:
    if ref.source is not None:
        return can_go_on(ref.source.agent)
    from turnlog.exchange.transcript import transcript_of

    with home.read(ref.id) as session:
        transcript = transcript_of(session)
        return bool(transcript.start.resume) or can_go_on(transcript.agent or session.agent or "")


def _put_back(source: Source) -> None:
    """What the agent deleted and was kept here lies there again."""
    for path in put_back(home_location(), source):
        print(one_line(f"{source.agent} had deleted {tilde(path)}: it is back, to the byte"), file=sys.stderr)


def _placed(
    home: Home, chosen: SessionRef, agent: str | None, hand: Callable[..., Resumable], *, is_run: bool, as_json: bool
) -> tuple[Resumable, bool]:
    """Any session, placed where that agent looks for it; and whether it was made here."""
    from turnlog.cli.pick.session import reader, session_brought
    from turnlog.exchange.alias import alias_before_resume
    from turnlog.session.interior import interior
    from turnlog.thread.handed import HandedOver

    is_brought = chosen.source is not None and agent not in (None, chosen.source.agent)
    with ExitStack() as stack:
        session: ReadOnlySession
        if chosen.source is None:
            session = stack.enter_context(home.read(chosen.id))
        else:
            session = stack.enter_context(reader().read_foreign(chosen)).session
        is_own = is_run and _is_own(home, session, chosen)
        if is_brought or is_run:  # nothing is imported or written for what cannot work
            planned = hand(session, dry_run=True)
            if is_run:
                _refuse_unrunnable(planned)
                if not is_own:
                    _refuse_unasked(planned, as_json=as_json)
        if is_brought:  # from now on it is in two places: ours knows that both are one
            session = stack.enter_context(session_brought(home, chosen.name, chosen))
        resumable = hand(session, handed=HandedOver(interior(home).made.location))
        if chosen.source is None:
            alias_before_resume(interior(home).store, session, resumable)
        return resumable, is_own


def _is_own(home: Home, session: ReadOnlySession, chosen: SessionRef) -> bool:
    """Whether this person made it, here; another agent's if it lies where that agent keeps this person's."""
    from turnlog.exchange.source import lies_at_home
    from turnlog.exchange.transcript import transcript_of
    from turnlog.session.interior import interior

    if chosen.source is not None:
        return lies_at_home(chosen.source)
    return interior(home).made.knows(session.id, transcript_of(session).start.resume)


def _pasted(resumable: Resumable) -> str:
    """The command for a shell. Nothing in it can do anything before it is run, or look like something else."""
    import shlex

    script = resumable.command[2] if resumable.path is not None and resumable.command[:2] == ["sh", "-c"] else ""
    is_plain = script and quoted(script) == shlex.quote(script)
    return f"cd {quoted(resumable.cwd)} && {script if is_plain else ' '.join(map(quoted, resumable.command))}"


def _refuse_unrunnable(planned: Resumable) -> None:
    """Raise what would keep the command from being run."""
    import shutil
    from pathlib import Path

    from turnlog.cli.frame.foreground import NoCommand

    if not Path(planned.cwd).is_dir():
        raise NotFound(f"the folder {planned.cwd} is not there", hint="-w names another one")
    words = planned.command
    name = words[2].split(" ", 1)[0] if planned.path is not None and words[:2] == ["sh", "-c"] else words[0]
    if shutil.which(name, mode=os.F_OK) is None:
        raise NoCommand(f"no command {name!r}", hint="install it, and run this again")


def _refuse_unasked(resumable: Resumable, *, as_json: bool) -> None:
    from turnlog.cli.draw.question import can_ask

    if not can_ask(as_json=as_json):
        where = "with --json there is no question" if as_json else "there is no terminal to ask on"
        raise Invalid(
            f"session {resumable.id} was not made here: --exec asks before it runs what its log says, and {where}",
            hint=f"if that is what you want: {_pasted(resumable)}",
        )


def _is_wanted(resumable: Resumable) -> bool:
    from turnlog.cli.draw.question import ask

    print(f"this session was not made here; its command is\n  {_pasted(resumable)}", file=sys.stderr)
    return ask("run it?")


def _run(words: list[str], cwd: str) -> None:
    """Become that program; only what prevents it returns."""
    from turnlog.cli import leave_the_rest
    from turnlog.cli.frame.foreground import NoCommand, NotRunnable

    leave_the_rest()
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
