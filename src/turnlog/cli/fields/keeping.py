"""What is kept of other agents' sessions: as values, and in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from turnlog.cli.frame.document import shape
from turnlog.exchange.keeping.run import KeepReport

if TYPE_CHECKING:
    from turnlog.machine.keepstate import KeepState

KEPT = {
    "agents": shape.items(
        "those whose sessions are kept",
        {
            "agent": shape.text(),
            "is_kept": shape.flag("whether keeping is on"),
            "days": shape.real("days after which the agent deletes them; null for never", null=True),
            "settings": shape.text("the file with that setting", null=True),
            "files": shape.number("number of kept files"),
            "bytes": shape.number("their size"),
        },
    ),
    "folder": shape.text("where they are kept"),
    "running": shape.flag("whether keeping is running now"),
    "last": shape.one("the last run: when, how many files had something new, and the problems by file", null=True),
    "settings": shape.each(
        "what was or could be changed so that agents delete nothing",
        {"agent": shape.text(), "path": shape.text(), "diff": shape.text(), "done": shape.flag()},
    ),
}


class KeptAgent(Struct):
    """What is kept of one agent's sessions."""

    agent: str
    is_kept: bool
    """Whether keeping is on."""
    days: float | None
    """The days after which the agent deletes a session; None for never."""
    settings: str | None
    """The file with that setting."""
    files: int
    bytes: int


class KeepStatus(Struct):
    """What is kept of all agents, where, and when that was done last."""

    agents: list[KeptAgent]
    folder: str
    running: bool
    last: KeepReport | None

    @property
    def is_on(self) -> bool:
        """Whether sessions of any agent are kept."""
        return any(row.is_kept for row in self.agents)


class SettingsChange(Struct):
    """A change of an agent's settings after which it deletes no sessions."""

    agent: str
    path: str
    diff: str
    done: bool
    """Whether it was made, not only shown."""


def keep_status(state: KeepState) -> KeepStatus:
    """Return what is kept in a home."""
    from turnlog.exchange.keeping.keptfile import KeptFiles
    from turnlog.exchange.keeping.retention import limit_of
    from turnlog.exchange.keeping.run import last_report
    from turnlog.formats import format_of, is_known
    from turnlog.machine.detached import is_taken

    kept = KeptFiles(state.location)
    on = state.agents()
    rows: list[KeptAgent] = []
    for agent in sorted({*on, *kept.agents()}):
        retention = format_of(agent).retention if is_known(agent) else None
        limit = None if retention is None else limit_of(agent, retention)
        rows.append(
            KeptAgent(
                agent=agent,
                is_kept=agent in on,
                days=None if limit is None else limit.days,
                settings=None if limit is None else limit.settings,
                files=sum(1 for _ in kept.every(agent)),
                bytes=kept.bytes_of(agent),
            )
        )
    return KeepStatus(rows, kept.folder, is_taken(state.lock_path), last_report(state))
