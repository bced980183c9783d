"""`turnlog usage`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.spending import NamedSessions, csv_lines, spending_table, tell_more, unpriced_notes
from turnlog.cli.fields.spending import BLOCK, SPENDING_GROUP, json_spending
from turnlog.cli.frame.command import WORKSPACE_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import hint, message_lines, tell
from turnlog.cli.frame.terminal import screen_rows
from turnlog.cli.pick.catalog import note_pending, open_catalog
from turnlog.cli.pick.query import filter_hint, in_folder
from turnlog.cli.pick.usagewords import BY, TIMES, grouping_and_query
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.catalog import Catalog
    from turnlog.catalog.answer import Spending

_FLOOR = 5
GROUP = "Find", 6
CHANGES = shape.NOTHING
FIELDS = {
    "by": shape.text("the grouping; several with commas"),
    "groups": shape.items(
        "one each",
        {
            **SPENDING_GROUP,
            "[models]": shape.each("with --breakdown: the same by model", SPENDING_GROUP),
            "[block]": shape.one("with `blocks`: the window", BLOCK),
        },
    ),
    "total": shape.one("the same for everything", SPENDING_GROUP),
    "gone": shape.one("how many counted sessions of each agent were deleted since"),
    "[limits]": shape.each(
        "with `blocks`: what agents said is used of their windows, where they did and the window is not over",
        {
            "agent": shape.text(),
            "window_minutes": shape.number(),
            "used_percent": shape.real(),
            "said_at": shape.time("when the agent reported it"),
            "resets_at": shape.time(null=True),
        },
        role="aside",
    ),
}


@declare(
    Argument("words", "[WORDS]...", takes_dashed_words=True),
    Option(
        "--by -b WHAT",
        f"What to add up by, also several with commas: {', '.join(BY[:-1])} or block. [default: day]",
        repeated_hint="`--by A,B` adds up by both",
    ),
    Option("--breakdown", "List the models below each group."),
    Option("--csv", "Print CSV for a spreadsheet, without the sum.", name="as_csv"),
    Option("--all -a", "Of every folder. [default]", name="everywhere"),
    Option("--here", "Only sessions of this folder."),
    WORKSPACE_OPTION,
    Option(
        "--limit -n N",
        "Only N rows: the newest, or the dearest; 0 for all. [default: what fits the screen]",
        least=0,
    ),
    exclusive=(("--all", "--here", "--workspace"), ("--csv", "--json")),
)
def command(
    *,
    words: tuple[str, ...],
    by: str | None,
    breakdown: bool,
    everywhere: bool,
    here: bool,
    workspace: str | None,
    limit: int | None,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Show usage: tokens and dollars, by day or another group.

    It covers every session of every agent on this machine. Messages that a fork or a resumed session repeats are
    counted once. Prices are those of the API on that day, not those of a subscription; `turnlog prices` lists them.
    WORDS are filters as in `turnlog search`; one of them may be a group: daily, weekly, monthly, sessions, blocks …
    `blocks` are windows of five hours per agent, with the rate of each, and the rest of a limit if the agent itself
    reports it. User and machine come from the sessions: the home folder they worked in, and where they were written;
    `turnlog usage users,machines` shows both.

    \b
    turnlog usage                         by day
    turnlog usage --by model since:30d    which models, in the last 30 days
    turnlog usage sessions --here -n 5    the five dearest of this folder
    turnlog usage monthly agent:codex     one agent's months
    turnlog usage --by month,model --csv  for a spreadsheet
    turnlog usage daily --breakdown       the models of each day below it
    turnlog usage commit:main..HEAD       the sessions behind a branch
    """
    kinds, query = grouping_and_query(by, words)
    query = in_folder(query, here=here, workspace=workspace)
    # A program does not see that a sum is not of everything, so it waits for everything.
    with open_catalog(home_location(), is_whole=as_json or as_csv or not sys.stdout.isatty()) as catalog:
        if kinds == ["block"]:
            from turnlog.cli.usageblocks import print_blocks

            print_blocks(catalog, query, limit=limit, as_csv=as_csv, as_json=as_json)
            return
        groups = _Groups(catalog, query, kinds, breakdown=breakdown)
        sessions = NamedSessions()
        if "session" in kinds and not as_json:
            sessions = NamedSessions(catalog.lines(everything=True), catalog.ids())
        note_pending(catalog, consequence="the sums are of these")
        gone = catalog.gone()
        meant = "" if groups.rows or as_json else filter_hint(catalog, query)
    if as_json:
        groups.print_json(limit, gone)
    elif as_csv:
        groups.print_csv(limit, sessions)
    elif not groups.rows:
        tell(f"no usage{f' for {query}' if query else ''}")
        if meant:
            hint(meant)
    else:
        notes = [*unpriced_notes(groups.total), *_gone_notes(gone)]
        groups.print_table(limit, sessions, below=sum(len(message_lines(note)) for note in notes))
        for note in notes:
            tell(note)


class _Groups:
    """What was spent, by the groups that were asked for."""

    def __init__(self, catalog: Catalog, query: str, kinds: list[str], *, breakdown: bool) -> None:
        self._kinds = kinds
        *rows, self.total = catalog.usage(query, by=",".join(kinds))
        self._all = rows
        self.rows = [row for row in rows if any(row.tokens) or row.unpriced]
        self._parts: dict[tuple[str, ...], list[Spending]] = {}
        """The models of each group, by the names of the group."""
        self._is_time = kinds[0] in TIMES
        if breakdown and "model" not in kinds:
            for part in catalog.usage(query, by=",".join((*kinds, "model")))[:-1]:
                self._parts.setdefault(tuple(part.names[:-1]), []).append(part)

    def _limited(self, rows: list[Spending], limit: int | None) -> list[Spending]:
        return (rows[-limit:] if self._is_time else rows[:limit]) if limit else rows

    def print_json(self, limit: int | None, gone: dict[str, int]) -> None:
        """Print the groups as JSON."""
        from turnlog.cli.frame.document.itemlist import ItemPage

        groups = [self._json_group(row) for row in (self._limited(self._all, limit) if self._is_time else self._all)]
        listed = ItemPage(groups, key=lambda group: group["group"], limit=limit)
        print_json({"by": ",".join(self._kinds), "groups": listed, "total": json_spending(self.total), "gone": gone})

    def _json_group(self, row: Spending) -> dict[str, Any]:
        document = json_spending(row)
        parts = self._parts.get(tuple(row.names))
        return document if parts is None else {**document, "models": [json_spending(part) for part in parts]}

    def print_csv(self, limit: int | None, sessions: NamedSessions) -> None:
        """Print the groups as CSV."""
        printed = self._limited(self.rows, limit)
        heads = [*self._kinds, *(["title"] if "session" in self._kinds else []), *(["model"] if self._parts else [])]
        rows = [part for row in printed for part in self._parts.get(tuple(row.names), [row])]
        for line in csv_lines(heads, ((self._cells(row, sessions), row) for row in rows)):
            print(line)

    def _cells(self, row: Spending, sessions: NamedSessions) -> list[str]:
        own, more = list(row.names[: len(self._kinds)]), row.names[len(self._kinds) :]
        titles = [sessions.title(own[self._kinds.index("session")])] if "session" in self._kinds else []
        return [*own, *titles, *more]

    def print_table(self, limit: int | None, sessions: NamedSessions, below: int) -> None:
        """Print a table; `below` lines follow it, and its header stays on the screen."""
        fitting = screen_rows(below=4 + below, least=_FLOOR)
        if limit is None and fitting is not None:
            each = max((1 + len(self._parts.get(tuple(row.names), ())) for row in self.rows), default=1)
            limit = fitting // each or 1
        rows = self._limited(self.rows, limit)
        is_cut = len(rows) < len(self.rows)
        lines = spending_table(self._kinds, rows, self.total, sessions, self._parts, is_cut=is_cut)
        sys.stdout.write("\n".join(lines) + "\n")
        if is_cut and sys.stdout.isatty():
            tell_more(len(self.rows) - len(rows), is_time=self._is_time)


def _gone_notes(gone: dict[str, int]) -> Iterator[str]:
    """Notes on sessions that are counted although their files are gone."""
    for agent, number in gone.items():
        are, they = ("is", "it") if number == 1 else ("are", "they")
        yield f"{count(number, 'session')} of {agent} {are} gone: what {they} cost is counted"
