"""`turnlog run`."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path

from turnlog.cli.commands.checkpoint import new_session, own_session, tell_skipped
from turnlog.cli.draw.change import CHANGE, as_plain, counts, in_short, in_words, is_uncovered, name_of
from turnlog.cli.draw.text import one_line
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import HERE_OPTION, SESSION_OPTION, Argument, Option, declare
from turnlog.cli.frame.exitcode import Left, Misused
from turnlog.cli.frame.foreground import Foreground, find_program
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import again, patience
from turnlog.cli.frame.shape import COUNTS, SESSION
from turnlog.cli.pick.session import refuse_interrupted, session_to_change, who_is_busy
from turnlog.errors import Invalid, TurnlogError
from turnlog.log.entry import Checkpoint, Note
from turnlog.log.secret import mask_words
from turnlog.machine.environment import RUN
from turnlog.machine.folder import workspace_path
from turnlog.reader.folder import newest_with_files
from turnlog.reader.within import told_within
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.session import Home, Session
from turnlog.session.interior import interior
from turnlog.thread.report import SAFETY_NET_AGENT
from turnlog.view.redact import Redactor
from turnlog.workspace.diff import Difference

_LISTED = 10
_NAMED = 5
CHANGES = shape.WORKSPACE
FIELDS = {
    "session": SESSION,
    "exit_code": shape.number("of the command"),
    "seconds": shape.real("how long it ran"),
    "counts": COUNTS,
    "changes": shape.items("as in `diff`, without lines", CHANGE),
    "problem": shape.text("why the changes are unknown, or that the folder is gone; otherwise empty"),
}


@declare(
    Argument("words", "[--] CMD [ARG]...", rest=True),
    Option("--label -l NAME", "Take a checkpoint of that name first."),
    Option("--new", "In a new session."),
    HERE_OPTION,
    Option("--quiet -q", "Do not print what it changed."),
    SESSION_OPTION,
)
def command(
    words: tuple[str, ...],
    label: str | None,
    new: bool,
    here: bool,
    quiet: bool,
    session: str | None,
    as_json: bool,
) -> None:
    """Run any command so that its changes to files can be taken back.

    It works with any program, also another agent. The run is a turn: a checkpoint before, one after, and a message with
    the command and how it ended. The command has the terminal for itself, gets Ctrl-C and other signals, and its exit
    code is passed on (128 plus the number of the signal if one ended it). Afterwards stderr lists what it changed and
    how to take that back. With --json, that follows on stdout, after the output of the command. Arguments that look
    like secrets are not logged.

    It covers the repository around the current folder, otherwise the folder; with --here, only the folder. Commands of
    one project share a session, which `turnlog run` opens; if the last one still runs, or --new is given, a new one is
    opened. The exit code is 127 if there is no such command, 126 if it cannot be run.

    \b
    turnlog run -- make format               `turnlog rewind` takes it back
    turnlog run --label clean -- my-agent "fix the tests"
    turnlog run -- sh -c 'sed -i s/a/b/ *.py'
    """
    if (new or here) and session is not None:
        raise Misused(f"either {'--new' if new else '--here'} or --session")
    program = find_program(words[0])
    with this_home() as home:
        target = _session(home, session, is_new=new, is_here=here)
        refuse_interrupted(target)
        if label is not None:
            with patience():
                target.checkpoint(label)
        code, turn, seconds = _run(target, program, words)
        changes, problem = _changes(target, turn)
        if as_json:
            data = {"session": target.id, "exit_code": code, "seconds": round(seconds, 3), "counts": counts(changes)}
            print_json({**data, "changes": [as_plain(item) for item in changes], "problem": problem})
        elif not quiet:
            _tell(target, turn, code, changes, is_newest=newest_with_files(home) == target.id)
            for name in told_within(interior(home).store, target.workspace, turn):
                print(f"turnlog: its turns are in session {one_line(name)}, each to be taken back", file=sys.stderr)
        if problem and not as_json:
            print(one_line(f"warning: {problem}"), file=sys.stderr)
    raise Left(code)


def _changes(session: Session, turn: str) -> tuple[list[Difference], str]:
    """What the turn changed, and a note. The command has already run: a failure to compare is only a note."""
    last = next(
        (e for e in session.entries(reverse=True) if e.turn == turn and isinstance(e, (Checkpoint, Note))), None
    )
    if isinstance(last, Note) and last.data:
        return [], f"what it changed is not known: {last.text}"
    try:
        with patience():
            changes = session.diff(turn=turn, lines=False)
    except TurnlogError as error:
        return [], f"what it changed is not known: {error.message}"
    is_gone = isinstance(last, Checkpoint) and any(root.name == WORKSPACE and root.is_gone for root in last.roots)
    return changes, f"the folder {session.workspace} is gone" if is_gone else ""


def _session(home: Home, name: str | None, *, is_new: bool, is_here: bool) -> Session:
    if name is not None:
        session = session_to_change(home, name)
        here = Path(workspace_path("."))
        if session.workspace is None or not here.is_relative_to(session.workspace):
            where = f"works in {session.workspace}" if session.workspace else "has no workspace"
            raise Invalid(f"session {session.handle} {where}, not here", hint="go there, or leave --session out")
        return session
    newest = None if is_new else own_session(home, is_here=is_here, agent=SAFETY_NET_AGENT)
    if newest is None:
        return new_session(home, is_here=is_here)
    with home.read(newest) as session:
        is_busy = who_is_busy(session) > 0
    return new_session(home, is_here=is_here) if is_busy else home.resume(newest)


class CommandEnded(BaseException):
    """By a signal: the turn was aborted."""


class CommandFailed(Exception):
    """With an exit code: the turn failed."""


def _run(session: Session, program: str, words: tuple[str, ...]) -> tuple[int, str, float]:
    """The exit code, the turn and the seconds."""
    turn = ""
    seconds = 0.0
    code = 0
    line = shlex.join(_without_secrets(words)).encode("utf-8", "backslashreplace").decode()
    try:
        with patience(), Foreground() as foreground, session.turn() as turn:
            _require_checkpoint(session, turn)
            session.user(f"$ {line}", agent="turnlog run")
            began = time.monotonic()
            code = foreground.run(program, words, {RUN: turn})
            seconds = time.monotonic() - began
            again()
            session.user(f"{_ending(code)} after {seconds:.1f} s", agent="turnlog run")
            if code < 0:
                raise CommandEnded
            if code > 0:
                raise CommandFailed(_ending(code))
    except (CommandEnded, CommandFailed):
        pass
    return (128 - code if code < 0 else code), turn, seconds


def _without_secrets(words: tuple[str, ...]) -> list[str]:
    """By the names of options, variables and headers, and by what keys look like."""
    redactor = Redactor()
    masked = zip(words, mask_words(words), strict=True)
    return [redactor.text(left) if left == word else left for word, left in masked]


def _require_checkpoint(session: Session, turn: str) -> None:
    """Nothing is run that could not be taken back."""
    newest = next(session.entries(kind="checkpoint", reverse=True), None)
    if not isinstance(newest, Checkpoint) or newest.turn != turn:
        raise Invalid("no checkpoint could be taken, so nothing was run", hint="`turnlog checkpoint` says why")


def _ending(code: int) -> str:
    if code >= 0:
        return f"exited with {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _tell(session: Session, turn: str, code: int, changes: list[Difference], *, is_newest: bool) -> None:
    name = one_line(session.handle)
    for line in in_short(changes, _LISTED, sys.stderr):
        print(f"  {line}", file=sys.stderr)
    end = next((e for e in session.entries(kind="checkpoint", reverse=True) if e.turn == turn), None)
    if isinstance(end, Checkpoint):
        tell_skipped(session, end)
    ending = f"exit code {code}, " if code else ""
    where = "" if session.workspace == workspace_path(".") else f", {one_line(session.workspace or '')}"
    print(f"turnlog: {ending}{in_words(counts(changes))} (session {name}{where})", file=sys.stderr)
    uncovered = [name_of(item) for item in changes if is_uncovered(item)]
    if uncovered:
        more = f" and {len(uncovered) - _NAMED:,} more" if len(uncovered) > _NAMED else ""
        print(f"turnlog: not covered, a rewind leaves it: {', '.join(uncovered[:_NAMED])}{more}", file=sys.stderr)
    if len(uncovered) < len(changes):
        which = "" if is_newest else f" -s {name}"
        print(f"turnlog: `turnlog diff{which}` shows it, `turnlog rewind{which}` takes it back", file=sys.stderr)
