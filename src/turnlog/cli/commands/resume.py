"""`turnlog resume`."""

from __future__ import annotations

from turnlog.cli.frame.command import SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import REPORT
from turnlog.cli.resuming import ResumeRequest, resume

GROUP = "Find", 7
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
    Option("--in AGENT", "In which agent. [default: the one it came from]", name="agent", kind="agent"),
    Option("--workspace -w PATH", "In that folder. [default: the session's]", kind="folder"),
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
    if is_picked:
        from turnlog.cli.pick.browser import choose_session

        session = choose_session(session or "", what="`turnlog resume --pick`")
    resume(ResumeRequest(session, agent, workspace, version), is_run=is_run, as_json=as_json)
