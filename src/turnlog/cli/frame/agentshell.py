"""What agents may not do: such a command is refused in an agent's own shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.errors import Invalid
from turnlog.hooks import agent_running_command, caller_of
from turnlog.machine.environment import allows_agent, environment

if TYPE_CHECKING:
    from turnlog.session import Session


FOR_PEOPLE = (
    "erase", "rm --purge", "gc --quota", "gc --limit", "gc --older-than", "gc --trash", "rewind --force",
    "undo --force", "redo --force", "hooks uninstall", "mcp uninstall", "setup --undo",
)  # fmt: skip
"""What is refused in an agent's own shell."""


def refuse_agent(what: str) -> None:
    """Raise `Invalid` in an agent's own shell, whatever `--yes` says. `what` is one of `FOR_PEOPLE`."""
    assert what in FOR_PEOPLE
    agent = agent_running_command(environment())
    if agent is not None and not allows_agent():
        raise Invalid(
            f"`{what}` is not allowed in a shell of {agent.title}",
            hint="run it in a shell of your own, or set TURNLOG_ALLOW_AGENT=1 where the agent runs",
        )


def note_agent(session: Session, what: str) -> None:
    """Add a note to the session if an agent runs the command: which command, and in which session the agent is."""
    from turnlog.reader.takeback import note_asked

    note_asked(session, what, caller_of(environment()))


def is_agents() -> bool:
    """Whether an agent, or its user from inside of it, runs this command."""
    return agent_running_command(environment()) is not None
