"""`turnlog usage`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.spending import (
    BLOCK,
    GROUP,
    NamedSessions,
    csv_lines,
    json_spending,
    spending_table,
    tell_more,
    unpriced_notes,
)
from turnlog.cli.draw.text import one_line, tell, told_lines
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.exitcode import Misused
from turnlog.cli.frame.home import home_location
from turnlog.cli.pick.catalog import catalog, meant_filter, query_of, tell_pending
from turnlog.errors import Invalid
from turnlog.reader.folder import project, within
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.catalog import Catalog
    from turnlog.catalog.answer import Spending

BY = ("day", "week", "month", "session", "model", "workspace", "agent", "user", "machine", "block")
_TIMES = (*BY[:3], "block")
_WORDS = {
    "daily": "day", "weekly": "week", "monthly": "month", "sessions": "session", "models": "model",
    "project": "workspace", "projects": "workspace", "workspaces": "workspace", "agents": "agent", "users": "user",
    "machines": "machine", "blocks": "block",
}  # fmt: skip
_FLOOR = 5
CHANGES = shape.NOTHING
FIELDS = {
    "by": shape.text("the grouping; several with commas"),
    "groups": shape.items(
        "one each",
        {
            **GROUP,
            "[models]": shape.each("with --breakdown: the same by model", GROUP),
            "[block]": shape.one("with `blocks`: the window", BLOCK),
        },
    ),
    "total": shape.one("the same for everything", GROUP),
    "gone": shape.one("how many counted sessions of each agent were deleted since"),
    "[limits]": shape.each(
        "with `blocks`: what agents said is used of their windows, where they did and the window is not over",
        {
            "agent": shape.text(),
            "window_minutes": shape.number(),
            "used_percent": shape.number(),
            "said_at": shape.time("when the agent reported it"),
            "resets_at": shape.time(null=True),
        },
        role="aside",
    ),
}


@declare(
    Argument("words", "[WORDS]...", dashes=True),
    Option(
        "--by -b WHAT",
        f"What to add up by, also several with commas: {', '.join(BY[:-1])} or block. [default: day]",
    ),
    Option("--breakdown", "List the models below each group."),
    Option("--csv", "Print CSV for a spreadsheet, without the sum.", name="as_csv"),
    Option("--all -a", "Of every folder. [default]", name="everywhere"),
    Option("--here", "Only sessions of this folder."),
    Option("--workspace -w PATH", "Only sessions of that folder and those below it."),
    Option(
        "--limit -n N",
        "Only N rows: the newest, or the dearest; 0 for all. [default: what fits the screen]",
        least=0,
    ),
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
    turnlog usage sessions --here -n 5      the five dearest of this folder
    turnlog usage monthly agent:codex     one agent's months
    turnlog usage --by month,model --csv  for a spreadsheet
    turnlog usage daily --breakdown       the models of each day below it
    turnlog usage commit:main..HEAD       the sessions behind a branch
    """
    if everywhere and (here or workspace is not None):
        raise Invalid("--all is of every folder, --here and --workspace of one", hint="leave one of them out")
    if as_csv and as_json:
        raise Invalid("either --csv or --json", hint="leave one of them out")
    if by is None:
        by = next((word for word in words if all(_kind(part) in BY for part in word.split(","))), None)
        at = len(words) if by is None else words.index(by)
        words = words[:at] + words[at + 1 :]
    kinds = _kinds(by or "day")
    query = query_of(words)
    _refuse_words(query)
    if here or workspace is not None:
        from turnlog.machine.folder import workspace_path

        query = within(query, project() if workspace is None else workspace_path(workspace))
    # A program does not see that a sum is not of everything, so it waits for everything.
    with catalog(home_location(), is_whole=as_json or as_csv or not sys.stdout.isatty()) as asked:
        if kinds == ["block"]:
            from turnlog.cli.draw.blocks import print_blocks

            print_blocks(asked, query, limit=limit, as_csv=as_csv, as_json=as_json)
            return
        groups = _Groups(asked, query, kinds, breakdown=breakdown)
        sessions = NamedSessions()
        if "session" in kinds and not as_json:
            sessions = NamedSessions(asked.lines(everything=True), asked.ids())
        tell_pending(asked, so="the sums are of these")
        gone = asked.gone()
        meant = "" if groups.rows or as_json else meant_filter(asked, query)
    if as_json:
        groups.print_json(limit, gone)
    elif as_csv:
        groups.print_csv(limit, sessions)
    elif not groups.rows:
        print(one_line(f"nothing was spent{f' for {query}' if query else ''}"), file=sys.stderr)
        if meant:
            print(one_line(f"hint: {meant}"), file=sys.stderr)
    else:
        notes = [*unpriced_notes(groups.total), *_gone_notes(gone)]
        groups.print_table(limit, sessions, below=sum(len(told_lines(note)) for note in notes))
        for note in notes:
            tell(note)


def _kind(word: str) -> str:
    return _WORDS.get(word, word)


def _kinds(by: str) -> list[str]:
    kinds = [_kind(word) for word in by.split(",")]
    unknown = next((word for word in kinds if word not in BY), None)
    if unknown is not None:
        raise Misused(f"invalid value for '--by': {unknown!r:.40} is not one of {', '.join(BY)}, project")
    if "block" in kinds and len(kinds) > 1:
        raise Misused(f"--by {by:.80}: a block is of one agent already, and goes with nothing else")
    return kinds


def _refuse_words(query: str) -> None:
    """Refuse a bare word: a sum over sessions that contain it is hardly ever meant. The error names the filter."""
    from turnlog.catalog.ask.query import parse

    term = next(iter(parse(query).every_term), None)
    if term is None:
        return
    from difflib import get_close_matches

    word = term.text
    if word == "by":
        raise Invalid("usage takes filters, and 'by' is none", hint="`turnlog usage --by WHAT`?")
    near = () if _is_time(word) else get_close_matches(word, (*_WORDS, *BY), n=1, cutoff=0.75)
    form = f"turnlog usage {near[0]}" if near else f"turnlog usage {_filter_for(word)}"
    hint = f"`{form}`? `turnlog search {word}` finds what was said"
    raise Invalid(f"usage takes filters, and {word!r:.60} is none", hint=hint)


def _filter_for(word: str) -> str:
    """The filter that is probably meant by a bare word."""
    from turnlog.formats import is_known, names

    if is_known(word) or any(name.startswith(word.lower()) for name in names()):
        return f"agent:{word.lower()}"
    if _is_time(word):
        return f"since:{word}"
    models = ("claude", "opus", "sonnet", "haiku", "gpt", "gemini", "o3", "o4", "qwen", "kimi", "glm", "deepseek")
    if word.lower().startswith(models):
        return f"model:{word}"
    name = "workspace" if "/" in word else "session" if _is_session(word) else "title"
    return f"{name}:{word}"


def _is_time(word: str) -> bool:
    from datetime import UTC, datetime

    from turnlog.catalog.ask.moment import moment

    try:
        moment(word, now=datetime.now(UTC))
    except Invalid:
        return False
    return True


def _is_session(word: str) -> bool:
    if not word.replace("-", "").isalnum():
        return False
    with catalog(home_location()) as asked:
        return bool(asked.lines(f"session:{word}", everything=True))


class _Groups:
    """What was spent, by what was asked for."""

    def __init__(self, asked: Catalog, query: str, kinds: list[str], *, breakdown: bool) -> None:
        self._kinds = kinds
        *rows, self.total = asked.usage(query, by=",".join(kinds))
        self._all = rows
        self.rows = [row for row in rows if any(row.tokens) or row.unpriced]
        self._parts: dict[str, list[Spending]] = {}
        self._is_time = kinds[0] in _TIMES
        if breakdown and "model" not in kinds:
            for part in asked.usage(query, by=",".join((*kinds, "model")))[:-1]:
                self._parts.setdefault(", ".join(part.names[:-1]), []).append(part)

    def _some(self, rows: list[Spending], limit: int | None) -> list[Spending]:
        return (rows[-limit:] if self._is_time else rows[:limit]) if limit else rows

    def print_json(self, limit: int | None, gone: dict[str, int]) -> None:
        """For programs."""
        from turnlog.cli.frame.itemlist import PrintedList

        groups = [self._for_programs(row) for row in (self._some(self._all, limit) if self._is_time else self._all)]
        listed = PrintedList(groups, key=lambda group: group["group"], limit=limit)
        print_json({"by": ",".join(self._kinds), "groups": listed, "total": json_spending(self.total), "gone": gone})

    def _for_programs(self, row: Spending) -> dict[str, Any]:
        document = json_spending(row)
        parts = self._parts.get(row.group)
        return document if parts is None else {**document, "models": [json_spending(part) for part in parts]}

    def print_csv(self, limit: int | None, sessions: NamedSessions) -> None:
        """For spreadsheets."""
        printed = self._some(self.rows, limit)
        heads = [*self._kinds, *["title"] * ("session" in self._kinds), *["model"] * bool(self._parts)]
        rows = [part for row in printed for part in self._parts.get(row.group, [row])]
        for line in csv_lines(heads, ((self._cells(row, sessions), row) for row in rows)):
            print(line)

    def _cells(self, row: Spending, sessions: NamedSessions) -> list[str]:
        own, more = list(row.names[: len(self._kinds)]), row.names[len(self._kinds) :]
        titles = [sessions.title(own[self._kinds.index("session")])] if "session" in self._kinds else []
        return [*own, *titles, *more]

    def print_table(self, limit: int | None, sessions: NamedSessions, below: int) -> None:
        """For people; this many lines follow it, and its header stays on the screen."""
        if limit is None and sys.stdout.isatty():
            each = max((1 + len(self._parts.get(row.group, ())) for row in self.rows), default=1)
            limit = max(_FLOOR, os.get_terminal_size(sys.stdout.fileno()).lines - 4 - below) // each or 1
        rows = self._some(self.rows, limit)
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
