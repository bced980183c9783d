"""Sessions in a table, in a listing and on the dashboard; and as `--json` has them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import ago, clock_times, coloured, has_colour, screen_width
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
    names = [line.name for line in lines] if is_free else short_names(lines, ids)
    moments = [line.updated_ms for line in lines]
    times = clock_times(moments) if is_free else [ago(ms, now) for ms in moments]
    columns = [
        Column("SESSION", names, least=0 if is_free else 20),
        Column("LAST ENTRY" if is_free else "LAST", times),
        Column("AGENT", [line.agent for line in lines], drop=2),
    ]
    if is_free or any(line.state != "idle" for line in lines):
        columns.append(Column("STATE", [line.state if is_free or line.state != "idle" else "" for line in lines]))
    columns += [
        Column("TURNS", [str(line.turns or "") for line in lines], right=True, drop=4),
        Column("COST", [_cost(line.cost_micros, line.is_partial) for line in lines], right=True, drop=1),
    ]
    if is_free or is_mixed:
        folders = [line.workspace if is_free else line.workspace.rstrip("/").rpartition("/")[2] for line in lines]
        columns.append(Column("WORKSPACE" if is_free else "FOLDER", folders, least=8, drop=3))
    columns.append(Column("TITLE", [line.title for line in lines], least=24))
    if is_short:
        columns = [column for column in columns if column.head != "TURNS" and any(column.cells)]
    drawn = grid(columns, paint=_paint if has_colour(sys.stdout) else None, margin=int(is_short))
    return drawn[1:] if is_short else drawn


def _cost(micros: int, is_partial: bool) -> str:
    """Nothing where no tokens are known."""
    return dollars(micros, is_partial=is_partial) if micros or is_partial else ""


def _paint(column: Column, cell: str) -> str:
    colour = _STATES.get(cell.strip()) if column.head == "STATE" else _PAINTS.get(column.head)
    return coloured(cell, colour, sys.stdout)


# ── for programs ──────────────────────────────────────────────────────────────────────────────────


def json_card(card: Card) -> dict[str, Any]:
    """A session for programs."""
    row = card._asdict()
    row["handle"] = card.name
    row["is_readable"] = not card.problem
    row["fork"] = None if card.fork is None else {"session": card.fork}
    row["tags"], row["unpriced"] = list(card.tags), list(card.unpriced)
    for part_of in ("own", "inherited", "subagents"):
        row[part_of] = json_tokens(row[part_of])
    return row


def json_tokens(tokens: TokenSums) -> dict[str, int]:
    """Usage for programs; money in micro-dollars."""
    return tokens._asdict()
