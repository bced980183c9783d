"""What only people may do: an agent that runs a command itself is asked to leave it to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.errors import Invalid
from turnlog.hooks import asked_by, whose_shell
from turnlog.machine.environment import allows_agent, environment

if TYPE_CHECKING:
    from turnlog.session import Session


def refuse_agent(what: str) -> None:
    """Raise `Invalid` in an agent's own shell, whatever `--yes` says."""
    one = whose_shell(environment())
    if one is not None and not allows_agent():
        raise Invalid(
            f"{one.title} asked for {what}, which is for people to do",
            hint="type it in a shell of your own, or set TURNLOG_ALLOW_AGENT=1 where the agent runs",
        )


def note_agent(session: Session, what: str) -> None:
    """Where an agent asked for something, its session says so: what was asked, and which session asked."""
    from turnlog.reader.takeback import note_asked

    note_asked(session, what, asked_by(environment()))


def is_agents() -> bool:
    """Whether an agent, or its user from inside of it, runs this command."""
    return whose_shell(environment()) is not None
