"""What sessions are to each other: forks and copies, who counts what several of them have, and the sums of each.

A fork or a resumed session repeats what the one before it paid for, and an import repeats its source. Of all that have
the same request only one counts it: the one that was there first, and ours before its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.index.rollup import roll_up
from turnlog.catalog.index.schema import COUNTS
from turnlog.catalog.index.texts import lines
from turnlog.catalog.read.totals import book

if TYPE_CHECKING:
    import sqlite3

_KIN = """
SELECT id, native, is_ours, agent, fork, origin, family, depth, copy_of, is_copied, is_deleted FROM sessions
WHERE fork IS NOT NULL OR family <> '' OR copy_of IS NOT NULL OR is_copied OR (is_ours AND origin <> '')
OR origin IN (SELECT origin FROM sessions WHERE origin <> '' GROUP BY origin HAVING count(*) > 1)
OR native IN (SELECT fork FROM sessions WHERE fork IS NOT NULL)
"""
_SUMS = ", ".join(f"sum({name})" for name in COUNTS)
_FEW = 200
_DIRTY = "unsettled"


def is_dirty(db: sqlite3.Connection) -> bool:
    """Whether something was written and never settled."""
    return db.execute("SELECT 1 FROM meta WHERE key = ?", (_DIRTY,)).fetchone() is not None


MARK_DIRTY = f"INSERT OR IGNORE INTO meta (key, value) VALUES ('{_DIRTY}', 1)"


def settle(db: sqlite3.Connection, changed: set[int] | None, loose: Iterable[int] = ()) -> None:
    """Bring everything into step that depends on several sessions. Inside a transaction.

    `changed` are the sessions that were read, None for all; `loose` are tokens that others had and have no longer.
    """
    if changed is not None and len(changed) > _FEW:
        changed = None
    moved = _families(db)
    book(db, None if changed is None else changed | moved)
    touched = _owners(db, None if changed is None else changed | moved, set(loose))
    if changed is None:
        sums = {row[0] for row in db.execute("SELECT id FROM sessions")}
    else:
        sums = changed | moved | touched
    sum_up(db, sums, is_all=changed is None)
    _subagents(db)
    roll_up(db, sums)
    db.execute("DELETE FROM meta WHERE key = ?", (_DIRTY,))


# ── families and copies ───────────────────────────────────────────────────────────────────────────


class _Kin(NamedTuple):
    """A session that has to do with others."""

    id: int
    native: str
    is_ours: int
    agent: str | None
    fork: str | None
    origin: str
    family: str
    depth: int
    copy_of: str | None
    is_copied: int
    is_deleted: int

    @property
    def name(self) -> str:
        return _name(self.is_ours, self.agent, self.native)


def _families(db: sqlite3.Connection) -> set[int]:
    """Forks belong to what they were forked from, copies to what they were copied from. Gives who changed."""
    kin = [_Kin(*row) for row in db.execute(_KIN)]
    above: dict[str, str] = {}
    for one in kin:
        if one.fork is not None:
            above[one.name] = _name(one.is_ours, one.agent, one.fork)
        elif one.origin and one.origin != one.name:
            above[one.name] = one.origin
    whole = _wholes(db, kin)
    moved: set[int] = set()
    for one in kin:
        family, depth = _root(above, one.name)
        copy = one.origin.replace("\n", ":", 1) if one.is_ours and one.origin else None
        other = whole.get(one.id)
        if other is not None:
            copy = other[0].native
        is_copied = other is not None and other[1]
        if (family, depth, copy, is_copied) != (one.family, one.depth, one.copy_of, bool(one.is_copied)):
            db.execute(
                "UPDATE sessions SET family = ?, depth = ?, copy_of = ?, is_copied = ? WHERE id = ?",
                (family, depth, copy, is_copied, one.id),
            )
            moved.add(one.id)
    return moved


def _root(above: dict[str, str], name: str) -> tuple[str, int]:
    """Where a family begins, and how far from there. Those that go round in a circle begin at the first by name."""
    path = [name]
    while (up := above.get(path[-1])) is not None:
        if up in path:
            return min(path[path.index(up) :]), 0
        path.append(up)
    return path[-1], len(path) - 1


def _wholes(db: sqlite3.Connection, kin: list[_Kin]) -> dict[int, tuple[_Kin, bool]]:
    """Of each other agent's session that is here a second time: that one, and whether it has all of it."""
    groups: dict[str, list[_Kin]] = {}
    for one in kin:
        if one.origin and not (one.is_ours and one.is_deleted):
            groups.setdefault(one.origin, []).append(one)
    found: dict[int, tuple[_Kin, bool]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        rows = [db.execute("SELECT entry FROM docs WHERE session = ?", (one.id,)).fetchall() for one in group]
        said = {one.id: {row[0] for row in entries} for one, entries in zip(group, rows, strict=True)}
        first = min(group, key=lambda one: (not one.is_ours, -len(said[one.id]), one.id))
        for one in group:
            if one is not first and not one.is_ours:
                found[one.id] = first, said[one.id] <= said[first.id]
    return found


def _name(is_ours: int, agent: str | None, native: str) -> str:
    return f"\n{native}" if is_ours else f"{agent}\n{native}"


# ── who counts what ───────────────────────────────────────────────────────────────────────────────

_SAME = """
SELECT p.token, p.at, p.session, p.is_inherited, s.family, s.is_deleted, s.depth, s.created, s.is_ours, s.native
FROM spent p JOIN sessions s ON s.id = p.session
WHERE p.token IN ({})
"""


def _owners(db: sqlite3.Connection, changed: set[int] | None, loose: set[int]) -> set[int]:
    """Let one session count what several have. Gives those of which something changed."""
    if changed is None:
        several = "SELECT token FROM spent GROUP BY token HAVING count(*) > 1"
        tokens = {row[0] for row in db.execute(f"{several} UNION SELECT token FROM spent WHERE is_inherited")}
    else:
        tokens = set(loose)
        for session in changed:
            tokens |= {
                row[0]
                for row in db.execute(
                    "SELECT token FROM spent p WHERE session = ? AND (is_inherited OR EXISTS "
                    "(SELECT 1 FROM spent o WHERE o.token = p.token AND o.session <> p.session))",
                    (session,),
                )
            }
    touched: set[int] = set()
    listed = sorted(tokens)
    for begin in range(0, len(listed), 500):
        some = listed[begin : begin + 500]
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in db.execute(_SAME.format(",".join("?" * len(some))), some):
            token, at, session, _, family, *_ = row
            # A request happens once, whoever tells of it. An entry is the same only among those that share entries.
            key = (token, family or session) if token & 1 else (token, at)
            groups.setdefault(key, []).append(row)
        for rows in groups.values():
            rows.sort(key=_rank)
            for number, row in enumerate(rows):
                if bool(row[3]) != (number > 0):
                    db.execute("UPDATE spent SET is_inherited = ? WHERE session = ? AND token = ?",
                               (number > 0, row[2], row[0]))  # fmt: skip
                    touched.add(row[2])
    return touched


def _rank(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, session, _, _, is_deleted, depth, created, is_ours, native = row
    return (is_deleted, depth - bool(is_ours), not is_ours, created is None, created or 0, native, session)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


def sum_up(db: sqlite3.Connection, sessions: set[int], *, is_all: bool) -> None:
    """What each of these spent itself, and what it has from others."""
    if is_all:
        rows = db.execute(_by_model("TRUE")).fetchall()
    else:
        rows = [row for id in sessions for row in db.execute(_by_model("session = ?"), (id,))]
    found: dict[int, dict[bool, list[tuple[Any, ...]]]] = {id: {False: [], True: []} for id in sessions}
    for row in rows:
        found[row[0]][bool(row[1])].append(row)
    for id, parts in found.items():
        own, inherited = _total(parts[False]), _total(parts[True])
        unpriced = lines(row[2] or "?" for row in parts[False] if row[4])
        db.execute(
            "UPDATE sessions SET own = ?, cost = ?, unpriced = ?, "
            "inherited = CASE WHEN before <> '' THEN before ELSE ? END WHERE id = ?",
            (own, int(own.rpartition(" ")[2] or 0), unpriced, inherited, id),
        )


def _by_model(where: str) -> str:
    return (
        "SELECT session, is_inherited, model, sum(cost), count(*) - count(cost), "
        f"sum(CASE WHEN is_reported THEN cost END), {_SUMS} "
        f"FROM spent WHERE {where} GROUP BY session, is_inherited, model"
    )


def _total(rows: list[tuple[Any, ...]]) -> str:
    """Seven numbers; "" for nothing. Each model is rounded on its own, as in a session's own bill."""
    if not rows:
        return ""
    counts = [sum(row[index] for row in rows) for index in range(6, 12)]
    micros = 0
    for row in rows:
        all_of_it, reported = row[3] or 0, row[5] or 0
        micros += reported // 1_000_000 + rounded(all_of_it - reported)
    return " ".join(map(str, [*counts, micros])) if any(counts) or micros else ""


def rounded(picos: int) -> int:
    """Micro-dollars."""
    return int((Decimal(picos) / 1_000_000).to_integral_value(ROUND_HALF_EVEN))


def _subagents(db: sqlite3.Connection) -> None:
    """What the subagents of each session spent, and theirs."""
    rows = db.execute(
        "SELECT id, is_ours, agent, native, parent, own, subagents FROM sessions "
        "WHERE parent IS NOT NULL OR subagents <> '' OR native IN (SELECT parent FROM sessions)"
    ).fetchall()
    children: dict[str, list[str]] = {}
    own: dict[str, list[int]] = {}
    for _, is_ours, agent, native, parent, spent, _ in rows:
        mine = _name(is_ours, agent, native)
        own[mine] = [int(word) for word in spent.split()]
        if parent is not None:
            children.setdefault(_name(is_ours, agent, parent), []).append(mine)
    for id, is_ours, agent, native, _, _, before in rows:
        mine = _name(is_ours, agent, native)
        seen, waiting, total = {mine}, list(children.get(mine, ())), [0] * 7
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            waiting += children.get(name, ())
            if own[name]:
                total = [a + b for a, b in zip(total, own[name], strict=True)]
        text = " ".join(map(str, total)) if any(total) else ""
        if text != before:
            db.execute("UPDATE sessions SET subagents = ? WHERE id = ?", (text, id))
