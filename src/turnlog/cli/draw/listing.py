"""Sessions in a table, in a listing and on the dashboard; and as `--json` has them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import ago, clock_times, coloured, has_colour, screen_width
from turnlog.cli.frame import shape
from turnlog.reader.shortname import short_names
from turnlog.view.number import dollars

if TYPE_CHECKING:
    from turnlog.catalog import Card, ListingRow, TokenSums

_STATES = {"running": "green", "waiting": "yellow"}
_PAINTS = {"SESSION": "cyan", "LAST": "dim", "AGENT": "dim", "TURNS": "dim", "FOLDER": "dim"}


def listing(lines: list[ListingRow], *, is_mixed: bool, ids: list[str], is_short: bool = False) -> list[str]:
    """A table of sessions. On a screen it fits; in a pipe it has everything, names and times in full.

    `ids` are those of all sessions there are. With `is_short`, it is a few lines that need no heads.
    """
    is_free = screen_width() is None
    now = time.time()
    if not lines:
        return []
    # Column by column: to ask ten thousand lines for each of their fields would take longer than to print them.
    names, _, agents, workspaces, titles, moments, turns, costs, partial, states = map(list, zip(*lines, strict=True))
    names = names if is_free else short_names(lines, ids)
    times = clock_times(moments) if is_free else [ago(ms, now) for ms in moments]
    columns = [
        Column("SESSION", names, is_loose=not is_free),
        Column("LAST ENTRY" if is_free else "LAST", times),
        Column("AGENT", agents, drop=2),
    ]
    if is_free or any(state != "idle" for state in states):
        columns.append(Column("STATE", states if is_free else [state if state != "idle" else "" for state in states]))
    columns += [
        Column("TURNS", _counts(turns), right=True, drop=4),
        Column("COST", list(map(_cost, costs, partial)), right=True, drop=1),
    ]
    if is_free or is_mixed:
        folders = workspaces if is_free else [path.rstrip("/").rpartition("/")[2] for path in workspaces]
        columns.append(Column("WORKSPACE" if is_free else "FOLDER", folders, least=8, drop=3))
    columns.append(Column("TITLE", titles, least=24))
    if is_short:
        columns = [column for column in columns if column.head != "TURNS" and any(column.cells)]
    drawn = grid(columns, paint=_paint if has_colour(sys.stdout) else None, margin=int(is_short))
    return drawn[1:] if is_short else drawn


def _counts(numbers: list[int]) -> list[str]:
    """Each in words once: most are small, and the same over and over."""
    words = {number: str(number or "") for number in {*numbers}}
    return [words[number] for number in numbers]


def _cost(micros: int, is_partial: bool) -> str:
    """Nothing where no tokens are known."""
    return dollars(micros, is_partial=is_partial) if micros or is_partial else ""


def _paint(column: Column, cell: str) -> str:
    colour = _STATES.get(cell.strip()) if column.head == "STATE" else _PAINTS.get(column.head)
    return coloured(cell, colour, sys.stdout)


# ── for programs ──────────────────────────────────────────────────────────────────────────────────

TOKENS = {
    "input_tokens": shape.number(),
    "cache_read_tokens": shape.number(),
    "cache_write_tokens": shape.number(),
    "cache_write_1h_tokens": shape.number(),
    "output_tokens": shape.number(),
    "reasoning_tokens": shape.number(),
    "cost_micros": shape.number("in micro-dollars"),
}
CARD = {
    "name": shape.text("the name to use on the command line"),
    "id": shape.text(),
    "handle": shape.text(),
    "is_ours": shape.flag("false for another agent's session"),
    "agent": shape.text(null=True),
    "path": shape.text(),
    "key": shape.text("which session, if a file has several"),
    "workspace": shape.text(null=True),
    "title": shape.text(null=True),
    "preview": shape.text(null=True),
    "model": shape.text(null=True),
    "is_conversation": shape.flag(),
    "created_at": shape.time(null=True),
    "updated_at": shape.time(null=True),
    "messages": shape.number(),
    "turns": shape.number(),
    "tool_calls": shape.number(),
    "branches": shape.number(),
    "fork": shape.one("the `session` it was forked from", null=True),
    "parent": shape.text("the session whose subagent it is", null=True),
    "copy_of": shape.text(null=True),
    "hidden": shape.flag(),
    "archived": shape.flag(),
    "deleted": shape.flag(),
    "tags": shape.texts(),
    "state": shape.text("`running`, `waiting`, `idle`, `stopped` or `crashed`"),
    "damage": shape.number("places that cannot be read"),
    "problem": shape.text("why it cannot be read at all"),
    "is_readable": shape.flag(),
    "is_indexed": shape.flag("otherwise only its beginning and end were read"),
    "size_bytes": shape.number(),
    "own": shape.one("its own usage", TOKENS),
    "inherited": shape.one("usage before the fork", TOKENS),
    "subagents": shape.one("usage of its subagents", TOKENS),
    "unpriced": shape.texts("models without a known price"),
    "git_branches": shape.texts("the branches of git it worked on"),
}
"""A session, as `--json` has it."""
HIT = {
    "session": shape.text("the id of the session: see `sessions`"),
    "place": shape.text("the value for `show --at`; empty if the title or name matched"),
    "entry": shape.text("the id of the entry"),
    "seq": shape.number("its number in a session of ours, otherwise 0"),
    "role": shape.text("also `title`"),
    "tool": shape.text(),
    "at": shape.time(null=True),
    "snippet": shape.text(),
    "marks": shape.anything("start and end of each match in the snippet"),
    "resume": shape.texts("the command"),
    "cursor": shape.number("pass it to --cursor to continue after this hit"),
}
"""A place where something was found, as `--json` has it."""


def json_card(card: Card) -> dict[str, Any]:
    """A session for programs."""
    row = card._asdict()
    row["handle"] = card.name
    row["is_readable"] = not card.problem
    row["fork"] = None if card.fork is None else {"session": card.fork}
    row["tags"], row["unpriced"] = list(card.tags), list(card.unpriced)
    row["git_branches"] = list(card.git_branches)
    for part_of in ("own", "inherited", "subagents"):
        row[part_of] = json_tokens(row[part_of])
    return row


def json_tokens(tokens: TokenSums) -> dict[str, int]:
    """Usage for programs; money in micro-dollars."""
    return tokens._asdict()
