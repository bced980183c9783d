"""`turnlog usage`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.listing import TOKENS, json_tokens
from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import clip_path, coloured, has_colour, one_line, screen_width
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.quick import LISTED, Option, QuickCommand
from turnlog.cli.pick.catalog import catalog, query_of, tell_pending
from turnlog.errors import Invalid
from turnlog.reader.folder import project, tilde, within
from turnlog.reader.shortname import short_names
from turnlog.view.number import count, dollars, tokens

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow, Spending

BY = ("day", "week", "month", "session", "model", "workspace", "agent")
_FLOOR = 10
_NAME = 28
GROUP = {
    "group": shape.text(),
    **TOKENS,
    "requests": shape.number(),
    "sessions": shape.number(),
    "unpriced": shape.texts("models without a known price"),
}
CHANGES = shape.NOTHING
FIELDS = {
    "by": shape.text("what the groups are"),
    "groups": shape.items("one each", GROUP),
    "total": shape.one("the same of all", GROUP),
    "gone": shape.one("how many sessions of each agent are gone from this machine, of those that were counted"),
}


def work(
    *,
    words: tuple[str, ...],
    by: str | None,
    everywhere: bool,
    here: bool,
    workspace: str | None,
    limit: int | None,
    as_json: bool,
    home: str | None,
) -> None:
    """See `HELP`."""
    if everywhere and (here or workspace is not None):
        raise Invalid("--all is of every folder, --here and --workspace of one", hint="leave one of them out")
    if by is None and words and words[0] in BY:
        by, words = words[0], words[1:]
    by = by or "day"
    query = query_of(words)
    if here or workspace is not None:
        from turnlog.machine.folder import workspace_path

        query = within(query, project() if workspace is None else workspace_path(workspace))
    # A program does not see that a sum is not of everything, so it waits for everything.
    with catalog(home, is_whole=as_json or not sys.stdout.isatty()) as asked:
        *rows, total = asked.usage(query, by=by)
        titles = {line.name: line for line in asked.lines(everything=True)} if by == "session" and not as_json else {}
        ids = asked.ids() if titles else []
        tell_pending(asked, so="the sums are of these")
        gone = asked.gone()
    is_time = by in BY[:3]
    if as_json:
        from turnlog.cli.frame.itemlist import PrintedList

        groups = [_for_programs(row) for row in (rows[-limit:] if is_time and limit else rows)]
        listed = PrintedList(groups, key=lambda group: group["group"], limit=limit)
        print_json({"by": by, "groups": listed, "total": _for_programs(total), "gone": gone})
        return
    rows = [row for row in rows if any(row.tokens) or row.unpriced]
    if not rows:
        print(one_line(f"nothing was spent{f' for {query}' if query else ''}"), file=sys.stderr)
        return
    if limit is None and sys.stdout.isatty():
        limit = max(_FLOOR, os.get_terminal_size(sys.stdout.fileno()).lines - 5)
    shown = (rows[-limit:] if is_time else rows[:limit]) if limit else rows
    sys.stdout.write("\n".join(_table(by, shown, total, titles, ids, is_cut=len(shown) < len(rows))) + "\n")
    if len(shown) < len(rows) and sys.stdout.isatty():
        told = f"… {len(rows) - len(shown):,} {'earlier' if is_time else 'more'}: --limit 0"
        print(coloured(told, "dim", sys.stderr), file=sys.stderr)
    _tell_unpriced(total)
    _tell_gone(gone)


def _for_programs(row: Spending) -> dict[str, Any]:
    return {
        "group": row.group,
        **json_tokens(row.tokens),
        "requests": row.requests,
        "sessions": row.sessions,
        "unpriced": list(row.unpriced),
    }


def _table(
    by: str, rows: list[Spending], total: Spending, titles: dict[str, ListingRow], ids: list[str], *, is_cut: bool
) -> list[str]:
    is_free = screen_width() is None
    groups = [row.group for row in rows]
    if by == "workspace":
        groups = [tilde(group) if is_free else clip_path(tilde(group), _NAME) for group in groups]
    elif titles and not is_free:
        known = [titles[group] for group in groups if group in titles]
        short = dict(zip((line.name for line in known), short_names(known, ids), strict=True))
        groups = [short.get(group, group) for group in groups]
    groups = [*groups, f"{'all of it' if is_cut else 'total'}, at API prices"]
    everything = [*rows, total]
    number = str if is_free else tokens
    columns = [
        Column(by.upper(), groups, least=0 if is_free else _NAME),
        Column("SESSIONS", [f"{row.sessions:,}" for row in everything], right=True, drop=5),
        Column("REQUESTS", [f"{row.requests:,}" for row in everything], right=True, drop=6),
        Column("INPUT", [number(row.tokens.input_tokens) for row in everything], right=True, drop=2),
        Column("CACHE READ", [number(row.tokens.cache_read_tokens) for row in everything], right=True, drop=3),
        Column("CACHE WRITE", [number(_cache_write(row)) for row in everything], right=True, drop=4),
        Column("OUTPUT", [number(row.tokens.output_tokens) for row in everything], right=True, drop=1),
        Column("COST", [_cost(row) for row in everything], right=True),
    ]
    if by == "session":
        del columns[1]
        told = [titles[row.group].title if row.group in titles else "" for row in rows]
        columns.append(Column("TITLE", [*told, ""], least=16))
    lines = grid(columns)
    if has_colour(sys.stdout):
        lines[-1] = coloured(lines[-1], "bold", sys.stdout)
    return lines


def _cache_write(row: Spending) -> int:
    return row.tokens.cache_write_tokens + row.tokens.cache_write_1h_tokens


def _cost(row: Spending) -> str:
    return dollars(row.tokens.cost_micros, is_partial=bool(row.unpriced))


def _tell_gone(gone: dict[str, int]) -> None:
    """A sum with what nobody can look up any more has to say so."""
    for agent, number in gone.items():
        are, they = ("is", "it") if number == 1 else ("are", "they")
        told = f"{count(number, 'session')} of {agent} {are} gone: what {they} cost is counted"
        print(one_line(told), file=sys.stderr)


def _tell_unpriced(total: Spending) -> None:
    """A sum without the parts that have no price has to say so."""
    if not total.unpriced:
        return
    names = ", ".join(name or "(no model named)" for name in total.unpriced[:5])
    names += f" and {len(total.unpriced) - 5} more" if len(total.unpriced) > 5 else ""
    print(one_line(f"warning: no price is known for {names}: what they cost is not in the sums"), file=sys.stderr)
    print("hint: a newer Turnlog may know them, and you can say it: `turnlog prices --help`", file=sys.stderr)


HELP = """Tell what was spent: tokens and dollars, by day or by something else.

    Over every session of every agent on this machine. What a fork or a resumed session repeats of another is counted
    once. Prices are those of the API on that day, which is not what a subscription costs; `turnlog prices` lists them.
    WORDS are filters as in `turnlog search`; the first may be what to add up by.

    \b
    turnlog usage                          by day
    turnlog usage --by model since:30d     which models, in the last 30 days
    turnlog usage --by session --here -n 5 the five dearest sessions of this folder
    turnlog usage month agent:codex        one agent's months
    """

QUICK = QuickCommand(
    "usage",
    work,
    (
        Option("by", ("--by", "-b"), "What to add up by. [default: day]", "WHAT", choices=BY),
        Option("everywhere", ("--all", "-a"), "Of every folder. [default]"),
        Option("here", ("--here",), "Only sessions of this folder."),
        Option("workspace", ("--workspace", "-w"), "Only sessions of that folder and those below it.", "PATH"),
        Option(
            "limit",
            ("--limit", "-n"),
            "Only N rows: the newest, or the dearest; 0 for all. [default: what fits the screen]",
            "N",
            0,
        ),
        *LISTED,
    ),
    words="[WORDS]...",
    help=HELP,
)
