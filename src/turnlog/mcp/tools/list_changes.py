"""The changes of a turn to files; or, for a file, the turns that wrote its lines."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from turnlog.errors import Invalid, NotFound
from turnlog.mcp.page import READING_BYTES, fitted, minute, result
from turnlog.mcp.quote import QUOTED
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.blame.authorship import Blame, BlamedLine
    from turnlog.mcp.library import Library
    from turnlog.workspace.diff import Difference

_LONGEST = 3_000
"""The maximum number of characters shown of one file's diff."""
_WHY = {
    "before": "before the first checkpoint", "between": "between turns", "since": "since the last checkpoint",
    "git": "by git", "several": "by several turns at once",
}  # fmt: skip


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    session, path = arguments.get("session"), arguments.get("path")
    if (session is None) == (path is None):
        raise Invalid(
            "either a session or a path", hint="session (and turn) for a turn, path for the authors of a file"
        )
    if path is not None:
        if {"turn", "lines"} & set(arguments):
            raise Invalid("turn and lines go with a session", hint="a path always shows which turns wrote its lines")
        return _blame(library, path)
    return _turn(library, session, arguments.get("turn"), lines=arguments.get("lines", False))


# ── of a turn ─────────────────────────────────────────────────────────────────────────────────────


def _turn(library: Library, name: Any, turn: int | None, *, lines: bool) -> dict[str, Any]:
    from turnlog.reader.place import turns_of

    with library.covered(name) as (card, session):
        redactor = library.quotes.of(session, session.id)
        number = turns_of(session).covered if turn is None else turn  # the last turn may have no checkpoints
        changes = session.diff(turn=number, lines=lines)
        rows = [_row(library, redactor.text(item.lines) if lines else "", item) for item in changes]

    def make(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        left = len(changes) - len(rows)
        head = f"session {card.id}, turn {number}: {count(len(changes), 'change')}"
        parts = [f"{row['action']} {row['path']}" + (f"\n{row['lines']}" if "lines" in row else "") for row in rows]
        foot = [f"{count(left, 'more change')} left out: without lines there is room for more"] if left else []
        data: dict[str, Any] = {"session": card.id, "turn": number, "changes": list(rows), "left": left, "note": QUOTED}
        return result("\n".join([QUOTED, head, *parts, *foot]), data)

    return fitted(rows, make, READING_BYTES)


def _row(library: Library, lines: str, item: Difference) -> dict[str, Any]:
    row: dict[str, Any] = {"action": item.action, "path": library.quotes.line(item.path)}
    if item.is_private:
        row["lines"] = "(git ignores it: its content is not shown)"
    elif lines:
        row["lines"] = _shortened(library.quotes.text(lines).rstrip("\n"))
    return row


def _shortened(diff: str) -> str:
    """As many whole lines as fit; a line that is longer than half of the room is cut."""
    if len(diff) <= _LONGEST:
        return diff
    included = diff[:_LONGEST]
    lines, _, part = included.rpartition("\n")
    if len(part) <= _LONGEST // 2:
        included = lines
    return f"{included}\n… {len(diff) - len(included):,} more characters"


# ── of a file ─────────────────────────────────────────────────────────────────────────────────────


def _blame(library: Library, path: str) -> dict[str, Any]:
    from turnlog.session import open_home

    file = library.scope.file(path)
    with open_home(library.location) as home:
        blame = home.blame(file)
    sessions = {line.author.session for line in blame.lines if line.author is not None}
    visible = {session for session in sessions if _is_visible(library, session)}
    rows = [_stretch(library, visible, list(lines)) for _, lines in groupby(blame.lines, key=_author)]

    def make(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return _blamed(library, blame, rows)

    return fitted(rows, make, READING_BYTES)


def _blamed(library: Library, blame: Blame, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    name, total = library.quotes.line(blame.path), len(blame.lines)
    last = rows[-1]["last"] if rows else 0
    lines = [_line(row) for row in rows]
    foot = [f"lines {last + 1} to {total} are left out"] if last < total else []
    data: dict[str, Any] = {"path": name, "lines": total, "stretches": list(rows), "left": total - last, "note": QUOTED}
    return result("\n".join([QUOTED, f"{name}, {count(total, 'line')}:", *lines, *foot]), data)


def _author(line: BlamedLine) -> tuple[Any, ...]:
    return line.author, line.why, line.authors, line.commit


def _stretch(library: Library, visible: set[str], lines: list[BlamedLine]) -> dict[str, Any]:
    first = lines[0]
    row: dict[str, Any] = {"first": first.line, "last": lines[-1].line}
    author = first.author
    if author is not None and author.session not in visible:
        return {**row, "why": "by a session of another project"}
    if author is not None:
        row |= {"session": author.session, "turn": author.turn, "entry": author.entry, "agent": author.agent or ""}
        row["at"] = minute(author.at)
        row["prompt"] = library.quotes.title(author.prompt or "")
        return row
    return {
        **row,
        "why": _WHY.get(first.why or "", first.why),
        **({"commit": first.commit[:12]} if first.commit else {}),
    }


def _is_visible(library: Library, session: str) -> bool:
    try:
        library.scope.session(library.catalog, session)
    except NotFound:
        return False
    return True


def _line(row: dict[str, Any]) -> str:
    where = f"{row['first']}-{row['last']}" if row["last"] > row["first"] else f"{row['first']}"
    if "why" in row:
        return f"{where}: {row['why']}{' ' + row['commit'] if 'commit' in row else ''}"
    who = f"{row['session']} turn {row['turn']}, entry {row['entry']}, {row['agent']}, {row['at']}"
    return f"{where}: {who}: {row['prompt']}"
