"""Draws spending as a table, and as CSV."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from turnlog.cli.draw.table import Column, grid
from turnlog.cli.draw.text import clip_path, plain
from turnlog.cli.fields.session import TOKENS
from turnlog.cli.frame.notes import tell
from turnlog.cli.frame.terminal import coloured, has_colour, screen_width
from turnlog.reader.naming.here import tilde
from turnlog.reader.naming.shortname import short_names
from turnlog.view.number import dollars, tokens

if TYPE_CHECKING:
    from turnlog.catalog import ListingRow
    from turnlog.catalog.answer import Spending, UsageBlock

_NAME = 28
_SECOND = 20
_INDENT = "  "
_RUNS = tuple("=+-@＝＋－＠")
"""What a spreadsheet takes for the beginning of a formula, also behind blanks; the wide ones are of East Asia."""


class NamedSessions:
    """The names and titles of sessions in a table."""

    def __init__(self, lines: Iterable[ListingRow] = (), ids: Sequence[str] = ()) -> None:
        self._lines = {line.name: line for line in lines}
        self._ids = list(ids)

    def title(self, name: str) -> str:
        """Return the title of a session; empty where it is not known."""
        return self._lines[name].title if name in self._lines else ""

    def short(self, names: list[str]) -> list[str]:
        """Return what to type for each of these sessions."""
        rows = [self._lines[name] for name in dict.fromkeys(names) if name in self._lines]
        short = dict(zip((line.name for line in rows), short_names(rows, self._ids), strict=True))
        return [short.get(name, name) for name in names]


def spending_table(
    kinds: Sequence[str],
    rows: list[Spending],
    total: Spending,
    sessions: NamedSessions,
    parts: dict[tuple[str, ...], list[Spending]],
    *,
    is_cut: bool,
) -> list[str]:
    """Return the lines of a table: groups, below each its `parts` by its names, and the sum."""
    is_free = screen_width() is None
    lines = [line for row in rows for line in (row, *parts.get(tuple(row.names), ()))]
    indented = [bool(parts) and len(line.names) > len(kinds) for line in lines]
    label = f"{'all of it' if is_cut else 'total'}, at API prices"
    columns: list[Column] = []
    for depth, kind in enumerate(kinds):
        cells = _cells(kind, [row.names[depth] for row in lines], sessions, is_free=is_free)
        if not depth:
            cells = [
                _INDENT + line.names[-1] if inner else cell
                for line, inner, cell in zip(lines, indented, cells, strict=True)
            ]
        least = 0 if is_free else _NAME if not depth else _SECOND
        columns.append(Column(kind.upper(), [*cells, "" if depth else label], least=least, is_path=bool(parts)))
    columns += number_columns([*lines, total], is_free=is_free, has_sessions="session" not in kinds)
    if "session" in kinds:
        titles = [sessions.title(row.names[kinds.index("session")]) for row in lines]
        columns.append(Column("TITLE", [*titles, ""], least=16))
    return _with_sum(grid(columns))


def number_columns(
    rows: Sequence[Spending], *, is_free: bool, has_sessions: bool = True, drop: int = 0
) -> list[Column]:
    """Return the columns that every table of spending has. `drop` is added to the order in which they are dropped."""
    number = str if is_free else tokens
    sessions = Column("SESSIONS", [f"{row.sessions:,}" for row in rows], right=True, drop=drop + 5)
    return [
        *([sessions] if has_sessions else []),
        Column("REQUESTS", [f"{row.requests:,}" for row in rows], right=True, drop=drop + 6),
        Column("INPUT", [number(row.tokens.input_tokens) for row in rows], right=True, drop=drop + 2),
        Column("CACHE READ", [number(row.tokens.cache_read_tokens) for row in rows], right=True, drop=drop + 3),
        Column("CACHE WRITE", [number(_cache_write(row)) for row in rows], right=True, drop=drop + 4),
        Column("OUTPUT", [number(row.tokens.output_tokens) for row in rows], right=True, drop=drop + 1),
        Column("COST", [dollars(row.tokens.cost_micros, is_partial=bool(row.unpriced)) for row in rows], right=True),
    ]


def _cells(kind: str, names: list[str], sessions: NamedSessions, *, is_free: bool) -> list[str]:
    if kind == "workspace":
        return [tilde(name) if is_free else clip_path(tilde(name), _NAME) for name in names]
    return sessions.short(names) if kind == "session" and not is_free else names


def _with_sum(lines: list[str]) -> list[str]:
    return [*lines[:-1], coloured(lines[-1], "bold", sys.stdout)] if has_colour(sys.stdout) else lines


def _cache_write(row: Spending) -> int:
    return row.tokens.cache_write_tokens + row.tokens.cache_write_1h_tokens


def block_table(blocks: list[UsageBlock]) -> list[str]:
    """Windows of five hours; the one that goes on is marked."""
    is_free = screen_width() is None
    rows = [block.spending for block in blocks]
    own = [
        Column("BLOCK", [_began(block) for block in blocks]),
        Column("AGENT", [block.agent for block in blocks], drop=3),
        Column("USED", [_minutes(block.minutes) + (" …" if block.is_active else "") for block in blocks], drop=5),
    ]
    rates = [
        Column("TOKENS/MIN", [_tokens_rate(block) for block in blocks], right=True, drop=4),
        Column("$/HOUR", [_cost_rate(block) for block in blocks], right=True),
    ]
    *columns, cost = number_columns(rows, is_free=is_free, drop=6)
    return grid([*own, *columns, *rates, cost])


def _began(block: UsageBlock) -> str:
    start, end = (time.localtime(ms / 1000) for ms in (block.start_ms, block.end_ms))
    return f"{time.strftime('%Y-%m-%d %H:%M', start)}-{time.strftime('%H:%M', end)}"


def _minutes(minutes: float) -> str:
    hours, rest = divmod(round(minutes), 60)
    return f"{hours}h {rest:02}m" if hours else f"{rest}m"


def _tokens_rate(block: UsageBlock) -> str:
    rate = block.tokens_per_minute
    return "" if rate is None else tokens(rate)


def _cost_rate(block: UsageBlock) -> str:
    rate = block.micros_per_hour
    return "" if rate is None else dollars(rate, is_partial=bool(block.spending.unpriced))


def tell_more(number: int, *, is_time: bool) -> None:
    """Tell that there is more than the screen has room for."""
    text = f"… {number:,} {'earlier' if is_time else 'more'}: --limit 0"
    tell(text, colour="dim")


def unpriced_notes(total: Spending) -> Iterator[str]:
    """Yield a warning about models without a known price, and a hint."""
    if not total.unpriced:
        return
    names = ", ".join(name or "(no model named)" for name in total.unpriced[:5])
    names += f" and {len(total.unpriced) - 5} more" if len(total.unpriced) > 5 else ""
    yield f"warning: no price is known for {names}: what they cost is not in the sums"
    yield "hint: a newer Turnlog may know them, and you can say it: `turnlog prices --help`"


def csv_lines(heads: Sequence[str], rows: Iterable[tuple[Sequence[str], Spending]]) -> Iterator[str]:
    """The same as CSV, without the sum: dollars with a decimal point, and micro-dollars beside them."""
    fields = [name for name in TOKENS if name != "cost_micros"]
    yield _csv([*heads, "sessions", "requests", *fields, "cost_usd", "cost_micros", "unpriced"])
    for cells, row in rows:
        micros = row.tokens.cost_micros
        counted = [row.sessions, row.requests, *(getattr(row.tokens, name) for name in fields)]
        yield _csv([*cells, *map(str, counted), f"{micros // 1_000_000}.{micros % 1_000_000:06}", str(micros),
                    " ".join(row.unpriced)])  # fmt: skip


def _csv(cells: Iterable[str]) -> str:
    return ",".join(map(_cell, cells))


def _cell(text: str) -> str:
    """Return a cell that a spreadsheet shows as it is, and never runs."""
    text = plain(text)
    text = "'" + text if text.lstrip().startswith(_RUNS) else text
    return '"' + text.replace('"', '""') + '"' if any(one in text for one in ',"\n\r') else text
