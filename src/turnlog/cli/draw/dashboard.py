"""`turnlog` alone: what is going on here, what it cost today, and what to type next."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from turnlog.cli.draw.listing import listing
from turnlog.cli.draw.text import coloured, one_line, plain, screen_width
from turnlog.cli.frame.quick import QuickCommand
from turnlog.cli.pick.catalog import catalog
from turnlog.machine.folder import workspace_path
from turnlog.reader.folder import is_in, of_here, project, tilde
from turnlog.reader.shortname import short_names
from turnlog.version import __version__
from turnlog.view.number import count, dollars

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow, Spending

_SHOWN = 5
_NAMED = 5


def work(*, as_json: bool = False, home: str | None = None) -> None:
    """Print it."""
    del as_json  # `ls` and `usage` have it for programs
    with catalog(home) as asked:
        lines = asked.lines()
        if not lines:
            _welcome()
            return
        today = asked.usage("since:today", by="day")[-1]
        week = asked.usage("since:7d", by="day")[-1]
        ids = asked.ids()
    here, folder = of_here(lines)
    _headline(lines, today, week)
    if not any(line.is_ours for line in lines):
        print("They are read where they lie; nothing was copied or changed.")
    running = [line for line in lines if line.state == "running" and line not in here]
    if here:
        _section(f"Here, in {tilde(folder)}", here, ids, is_mixed=False)
    if running:
        _section("Running elsewhere", running, ids, is_mixed=True)
    elif not here:
        _section(f"No session in {tilde(project())} yet; the newest elsewhere", lines, ids, is_mixed=True)
    shown = here or lines
    # What `show` takes, if it is not told: a conversation, if there is one, and not what `turnlog run` did.
    _next(next((line for line in shown if line.agent != "turnlog"), shown[0]), ids, is_here=bool(here))


def _headline(lines: list[ListingRow], today: Spending, week: Spending) -> None:
    agents = Counter(line.agent or "turnlog" for line in lines)
    most = agents.most_common(len(agents) if len(agents) <= _NAMED else _NAMED - 1)
    parts = [f"{number:,} of {plain(agent)}" for agent, number in most]
    if len(most) < len(agents):
        others = f"{len(agents) - len(most)} others"
        parts.append(f"{len(lines) - sum(number for _, number in most):,} of {others}")
    print(coloured(f"{count(len(lines), 'session')} on this machine", "bold", sys.stdout) + f": {', '.join(parts)}")
    spent = [f"today {_cost(today)}", f"the last 7 days {_cost(week)}"]
    print(", ".join(spent))
    if today.unpriced or week.unpriced:
        print(coloured("+ and ? : some models have no known price; `turnlog usage` says which", "dim", sys.stdout))


def _cost(spent: Spending) -> str:
    return dollars(spent.tokens.cost_micros, is_partial=bool(spent.unpriced))


def _section(title: str, lines: list[ListingRow], ids: list[str], *, is_mixed: bool) -> None:
    print()
    print(coloured(one_line(title), "bold", sys.stdout))
    for line in listing(lines[:_SHOWN], is_mixed=is_mixed, ids=ids):
        print(line)
    if len(lines) > _SHOWN:
        print(coloured(f"… {len(lines) - _SHOWN:,} more", "dim", sys.stdout))


def _next(newest: ListingRow, ids: list[str], *, is_here: bool) -> None:
    name = plain(short_names([newest], ids)[0] if screen_width() is not None else newest.name)
    # Without a name, a command takes the newest session of this folder or of one above it.
    is_meant = is_here and is_in(workspace_path("."), newest.workspace)
    which = "" if is_meant else f" {name}"
    all_of_it = ("turnlog ls", "all of this folder") if is_here else ("turnlog ls --all", "all of them")
    rows = [
        (f"turnlog show{which}", "read the newest one" + (" of this folder" if is_here else "")),
        (f"turnlog diff{which and f' --session{which}'}", "what it changed in the files")
        if newest.agent == "turnlog"  # of `turnlog run`: there is nobody to go on with it
        else (f"turnlog resume{which}", "go on with it"),
        all_of_it,
        ("turnlog search WORDS", "find what was said or done anywhere"),
        ("turnlog usage", "tokens and dollars, day by day"),
        ("turnlog --help", "everything else"),
    ]
    wide = max(len(command) for command, _ in rows)
    print()
    print(coloured("Next", "bold", sys.stdout))
    for command, about in rows:
        print(f"  {coloured(f'{command:{wide}}', 'cyan', sys.stdout)}  {about}")


def _welcome() -> None:
    """For somebody whose machine has no sessions at all."""
    print(f"turnlog {__version__}: no sessions yet, neither of its own nor of another agent on this machine.")
    print()
    rows = (
        ("turnlog demo", "see what it does, in a minute"),
        ("turnlog run -- COMMAND", "run anything so that what it does to files can be taken back"),
        ("turnlog formats", "the agents whose sessions are found, and where they are looked for"),
        ("turnlog --help", "everything else"),
    )
    for command, about in rows:
        print(f"  {coloured(f'{command:22}', 'cyan', sys.stdout)}  {about}")


QUICK = QuickCommand("turnlog", work, ())
