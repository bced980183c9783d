"""`turnlog` alone: what there is, what it cost, what needs a look, and the newest sessions of this folder."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from turnlog.cli.draw.listing import listing
from turnlog.cli.draw.text import clip_path, plain
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.terminal import coloured, screen_width
from turnlog.cli.overview.notices import notices
from turnlog.cli.pick.catalog import open_catalog
from turnlog.machine.folder import workspace_path
from turnlog.reader.naming.here import is_in, of_here, project, tilde
from turnlog.reader.naming.shortname import short_names
from turnlog.version import __version__
from turnlog.view.number import count, dollars
from turnlog.view.visible import clip, one_line, width

if TYPE_CHECKING:
    from datetime import datetime

    from turnlog.catalog import ListingRow, Standing
    from turnlog.catalog.answer import Spending

_SHOWN, _ELSEWHERE = 5, 3
_COMMANDS = 56
"""Where the commands beside the lines begin, if those leave room."""


def print_dashboard() -> None:
    """Print the overview for people; `ls` and `usage` have it for programs."""
    home = home_location()
    with open_catalog(home) as catalog:
        lines = catalog.lines()
        if not lines:
            _welcome(len(catalog.lines(everything=True)))
            return
        months = catalog.usage(by="month")
        standing = catalog.standing()
        going = catalog.going()
        ids = catalog.ids()
    here, folder = of_here(lines)
    print(coloured(_headline(lines, standing), "bold", sys.stdout))
    money = _money(months, (screen_width() or 80) - len("  turnlog usage"))
    rows = [(money, "usage")] if money else []
    _print_with_commands([*rows, *((notice.text, notice.command) for notice in notices(standing, home, going))])
    busy = [line for line in lines if line.state in ("running", "waiting") and line not in here]
    if here:
        _section(_title(tilde(folder), here, standing), here[:_SHOWN], ids, is_mixed=False)
    if busy:
        _section("At work elsewhere", busy[:_ELSEWHERE], ids, is_mixed=True)
    elif not here:
        _section(_title(f"No session in {tilde(project())} yet", lines, standing), lines[:_SHOWN], ids, is_mixed=True)
    listed = here or busy or lines
    # What `resume` takes, if it is not told: a conversation, if there is one, and not what `turnlog run` did.
    _print_next(next((line for line in listed if line.agent != "turnlog"), listed[0]), ids, is_here=bool(here))


def _headline(lines: list[ListingRow], standing: Standing) -> str:
    agents = {line.agent or "turnlog" for line in lines}
    of = plain(next(iter(agents))) if len(agents) == 1 else count(len(agents), "agent")
    since = f" since {_day(standing.since)}" if standing.since is not None else ""
    number = max(standing.sessions, len(lines))
    where = ", read where they lie" if number > 1 else ", read where it lies"
    return f"{count(number, 'session')} of {of}{since}{'' if all(line.is_ours for line in lines) else where}"


def _day(at: datetime) -> str:
    """`3 August`, with the year if it is another one."""
    day, now = at.astimezone(), time.localtime()
    month = time.strftime("%B", day.timetuple())
    return f"{day.day} {month}" if day.year == now.tm_year else f"{day.day} {month} {day.year}"


def _money(months: list[Spending], room: int) -> str:
    """What was spent this month, the last, and in all, as far as that is anything and there is room."""
    *groups, total = months
    if total.unpriced and not _micros(total):
        return "no price is known for what was spent"
    by_month = {row.group: row for row in groups}
    now = time.localtime()
    before = (now.tm_year, now.tm_mon - 1) if now.tm_mon > 1 else (now.tm_year - 1, 12)
    spent = [
        ("this month", by_month.get(f"{now.tm_year}-{now.tm_mon:02}")),
        ("last month", by_month.get(f"{before[0]}-{before[1]:02}")),
        ("in all", total),
    ]
    parts = [f"{_whole_cost(row)} {when}" for when, row in spent if row is not None and (_micros(row) or row.unpriced)]
    if len(parts) == 2 and len(groups) == 1:
        del parts[1]  # there is only this month
    while len(text := f"{' · '.join(parts)}, at API prices") > room and len(parts) > 1:
        del parts[-2]
    return text if parts else ""


def _micros(row: Spending) -> int:
    return row.tokens.cost_micros


def _whole_cost(row: Spending) -> str:
    """Return an amount in whole dollars where cents say nothing."""
    is_partial = bool(row.unpriced)
    if is_partial and not _micros(row):
        return "no price known"
    return dollars(_micros(row), is_partial=is_partial, whole=True)


def _title(folder: str, lines: list[ListingRow], standing: Standing) -> str:
    more = " · newest" if standing.unseen else f" · newest of {len(lines):,}" if len(lines) > _SHOWN else ""
    return clip_path(folder, (screen_width() or 10_000) - len(more)) + more


def _print_with_commands(rows: list[tuple[str, str]]) -> None:
    """Print texts, each with its command beside it; the commands are in a column of their own if there is room."""
    room = screen_width() or 80
    start = max([_COMMANDS, *(width(text) + 2 for text, _ in rows)])
    for text, command in rows:
        typed = f"turnlog {command}"
        line = text + " " * (start - width(text)) if start + len(typed) <= room else f"{text}  "
        if width(line) + len(typed) > room:
            print(clip(one_line(text), room))
        else:
            print(line + coloured(typed, "cyan", sys.stdout))


def _section(title: str, lines: list[ListingRow], ids: list[str], *, is_mixed: bool) -> None:
    print()
    print(coloured(one_line(title), "bold", sys.stdout))
    for line in listing(lines, is_mixed=is_mixed, ids=ids, is_short=True):
        print(f" {line}")


def _print_next(newest: ListingRow, ids: list[str], *, is_here: bool) -> None:
    from shlex import quote

    name = plain(short_names([newest], ids)[0] if screen_width() is not None else newest.name)
    # Without a name, a command takes the newest session of this folder or of one above it.
    is_meant = is_here and is_in(workspace_path("."), newest.workspace)
    which = "" if is_meant else f" {quote(name)}"
    rows = [
        (f"turnlog diff{which and f' --session{which}'}", "what it changed")
        if newest.agent == "turnlog"  # of `turnlog run`: there is nobody to go on with it
        else (f"turnlog resume{which}", "go on"),
        ("turnlog search WORDS", "find anything"),
    ]
    texts = [f"{coloured(command, 'cyan', sys.stdout)}   {about}" for command, about in rows]
    print()
    is_one = sum(len(command) + len(about) + 3 for command, about in rows) + 9 <= (screen_width() or 80)
    for text in [(" " * 8).join(texts)] if is_one else texts:
        print(f" {text}")


def _welcome(hidden: int) -> None:
    """For somebody whose machine has no sessions at all, or none that is listed."""
    if hidden:
        print(f"turnlog {__version__}: {count(hidden, 'session')}, hidden or archived: `turnlog ls --all --hidden`.")
    else:
        print(f"turnlog {__version__}: no sessions yet, of its own or of another agent here.")
    print()
    rows = (
        ("turnlog demo", "see what it does, in a minute"),
        ("turnlog run -- COMMAND", "run anything, and take back what it did to files"),
        ("turnlog formats", "which agents are known, and where they are looked for"),
        ("turnlog --help", "everything else"),
    )
    for command, about in rows:
        print(f"  {coloured(f'{command:22}', 'cyan', sys.stdout)}  {about}")
