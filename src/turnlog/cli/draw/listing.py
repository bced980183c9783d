"""Sessions in a table, in a listing and on the dashboard."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import clock_times
from turnlog.cli.frame.terminal import coloured, has_colour, screen_width
from turnlog.reader.naming.shortname import short_names
from turnlog.view.number import dollars
from turnlog.view.time import ago

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow

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
    """Format counts; equal numbers are formatted once."""
    words = {number: str(number or "") for number in {*numbers}}
    return [words[number] for number in numbers]


def _cost(micros: int, is_partial: bool) -> str:
    """Return a cost in dollars; empty where no tokens are known."""
    return dollars(micros, is_partial=is_partial) if micros or is_partial else ""


def _paint(column: Column, cell: str) -> str:
    colour = _STATES.get(cell.strip()) if column.head == "STATE" else _PAINTS.get(column.head)
    return coloured(cell, colour, sys.stdout)
