"""`turnlog run`."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from pathlib import Path

from turnlog.cli.draw.change import changes_in_words, count_changes, is_uncovered, name_of, summary_lines
from turnlog.cli.fields.change import CHANGE, json_change
from turnlog.cli.frame.command import HERE_OPTION, SESSION_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import COUNTS, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.foreground import Foreground, find_program
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import tell, tell_table, warn
from turnlog.cli.frame.progress import progress_line, restart_clock
from turnlog.cli.pick.session import busy_process, refuse_interrupted, session_to_change
from turnlog.cli.safetynet.checkpointing import new_session, own_session, tell_skipped
from turnlog.errors import Invalid, TurnlogError
from turnlog.log.entry import Checkpoint, Note
from turnlog.log.secret import mask_words
from turnlog.machine.environment import RUN
from turnlog.machine.folder import workspace_path
from turnlog.reader.naming.here import newest_with_files
from turnlog.reader.nestedrun import sessions_inside_turn
from turnlog.rewind.snapshot import WORKSPACE
from turnlog.session import Home, Session
from turnlog.session.interior import interior
from turnlog.thread.report import SAFETY_NET_AGENT
from turnlog.view.secret.redactor import Redactor
from turnlog.view.visible import one_line, quoted
from turnlog.workspace.diff import Difference

_LISTED = 10
_NAMED = 5
GROUP = "Safety net", 3
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
    Argument("words", "[--] CMD [ARG]...", takes_rest=True, kind="file"),
    Option("--label -l NAME", "Take a checkpoint of that name first."),
    Option("--new", "In a new session."),
    HERE_OPTION,
    Option("--quiet -q", "Do not print what it changed."),
    SESSION_OPTION,
    exclusive=(("--new", "--session"), ("--here", "--session")),
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
    program = find_program(words[0])
    with this_home() as home:
        target = _session(home, session, is_new=new, is_here=here)
        refuse_interrupted(target)
        if label is not None:
            with progress_line():
                target.checkpoint(label)
        code, turn, seconds = _run(target, program, words)
        changes, problem = _changes(target, turn)
        if as_json:
            data = {
                "session": target.id,
                "exit_code": code,
                "seconds": round(seconds, 3),
                "counts": count_changes(changes),
            }
            print_json({**data, "changes": [json_change(item) for item in changes], "problem": problem})
        elif not quiet:
            _tell(target, turn, code, changes, is_newest=newest_with_files(home) == target.id)
            for name in sessions_inside_turn(interior(home).store, target.workspace, turn):
                tell(f"turnlog: its turns are in session {name}, each to be taken back")
        if problem and not as_json:
            warn(problem)
    raise Exit(code)


def _changes(session: Session, turn: str) -> tuple[list[Difference], str]:
    """Return what the turn changed, and a note. The command has already run: a failure to compare is only a note."""
    last = next(
        (e for e in session.entries(reverse=True) if e.turn == turn and isinstance(e, (Checkpoint, Note))), None
    )
    if isinstance(last, Note) and last.data:
        return [], f"what it changed is not known: {last.text}"
    try:
        with progress_line():
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
        is_busy = busy_process(session) > 0
    return new_session(home, is_here=is_here) if is_busy else home.resume(newest)


class CommandEnded(BaseException):
    """A signal ended the command: the turn was aborted."""


class CommandFailed(Exception):
    """The command ended with an exit code: the turn failed."""


def _run(session: Session, program: str, words: tuple[str, ...]) -> tuple[int, str, float]:
    """Run the command as a turn. Returns the exit code, the turn and the seconds."""
    turn = ""
    seconds = 0.0
    code = 0
    line = shlex.join(_without_secrets(words)).encode("utf-8", "backslashreplace").decode()
    try:
        with progress_line(), Foreground() as foreground, session.turn() as turn:
            _require_checkpoint(session, turn)
            session.user(f"$ {line}", agent="turnlog run")
            began = time.monotonic()
            code = foreground.run(program, words, {RUN: turn})
            seconds = time.monotonic() - began
            restart_clock()
            session.user(f"{_ending(code)} after {seconds:.1f} s", agent="turnlog run")
            if code < 0:
                raise CommandEnded
            if code > 0:
                raise CommandFailed(_ending(code))
    except (CommandEnded, CommandFailed):
        pass
    return (128 - code if code < 0 else code), turn, seconds


def _without_secrets(words: tuple[str, ...]) -> list[str]:
    """Return the words with secrets masked, by the names of options, variables and headers, and by their look."""
    redactor = Redactor()
    masked = zip(words, mask_words(words), strict=True)
    return [redactor.text(left) if left == word else left for word, left in masked]


def _require_checkpoint(session: Session, turn: str) -> None:
    """Raise `Invalid` where no checkpoint was taken: nothing is run that could not be taken back."""
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
    tell_table(f"  {line}" for line in summary_lines(changes, _LISTED, sys.stderr))
    end = next((e for e in session.entries(kind="checkpoint", reverse=True) if e.turn == turn), None)
    if isinstance(end, Checkpoint):
        tell_skipped(session, end)
    ending = f"exit code {code}, " if code else ""
    where = "" if session.workspace == workspace_path(".") else f", {one_line(session.workspace or '')}"
    tell(f"turnlog: {ending}{changes_in_words(count_changes(changes))} (session {name}{where})")
    uncovered = [name_of(item) for item in changes if is_uncovered(item)]
    if uncovered:
        more = f" and {len(uncovered) - _NAMED:,} more" if len(uncovered) > _NAMED else ""
        tell(f"turnlog: not covered, a rewind leaves it: {', '.join(uncovered[:_NAMED])}{more}", exact=True)
    if len(uncovered) < len(changes):
        which = "" if is_newest else f" -s {quoted(session.handle)}"
        tell(f"turnlog: `turnlog diff{which}` shows it, `turnlog rewind{which}` takes it back")
