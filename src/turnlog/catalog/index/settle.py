"""Relations between sessions: forks and copies, which session counts a shared request, and the sums of each.

A fork or a resumed session repeats requests of its parent, and an import repeats those of its source. Of all that have
the same request only one counts it: the first one, and ours before its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.columns import lines
from turnlog.catalog.index.copies import repeated_by_copies
from turnlog.catalog.index.keys import OF_ENTRY
from turnlog.catalog.index.notes import DIRTY, drop_note
from turnlog.catalog.index.origin import HOOKED, is_hooked, origins_of
from turnlog.catalog.index.spending import QUARTER_MS, QUARTERS
from turnlog.catalog.index.totals import book, book_copies, token_totals
from turnlog.catalog.values import COUNTS, rounded
from turnlog.log.startup import NamedTuple

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

_FEW = 200
_AT_ONCE = 500


def settle(db: Engine, changed: set[int] | None, released: Iterable[int] = ()) -> None:
    """Recompute what depends on several sessions: families, copies, who counts a shared request, sums.

    `changed` are the sessions that were read, None for all; `released` are tokens of requests whose session was removed
    or read again.
    """
    if changed is not None and len(changed) > _FEW:
        changed = None
    moved = _families(db)
    book(db, None if changed is None else changed | moved)
    touched = _owners(db, None if changed is None else changed | moved, set(released))
    if changed is None:
        sums = {row[0] for row in db.rows(f"SELECT id FROM {db.table('sessions')}")}
    else:
        sums = changed | moved | touched
    sum_up(db, sums)
    _subagents(db)
    drop_note(db, DIRTY)


# ── families and copies ───────────────────────────────────────────────────────────────────────────


class _Kin(NamedTuple):
    """A session that is related to others."""

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
    repeats: int

    @property
    def origins(self) -> list[str]:
        """The ids of this session in its agent."""
        return origins_of(self.origin)

    @property
    def is_hooked(self) -> bool:
        """Whether hooks report its turns."""
        return is_hooked(self.origin)

    @property
    def name(self) -> str:
        return _name(self.is_ours, self.agent, self.native)


def _families(db: Engine) -> set[int]:
    """Update the family and the original of every fork and copy. Returns the sessions that changed."""
    sessions = db.table("sessions")
    hooked = db.rows(f"SELECT origin FROM {sessions} WHERE is_ours AND substr(origin, length(origin)) = '{HOOKED}'")
    origins = [origin for (several,) in hooked for origin in origins_of(several)]
    rows = db.rows(
        "SELECT id, native, is_ours, agent, fork, origin, family, depth, copy_of, is_copied, is_deleted, "
        f"repeats FROM {sessions} WHERE fork IS NOT NULL OR family <> '' OR copy_of IS NOT NULL OR is_copied "
        f"OR copied <> '' "
        f"OR (is_ours AND origin <> '') OR native IN (SELECT fork FROM {sessions} WHERE fork IS NOT NULL) "
        f"OR origin IN (SELECT origin FROM {sessions} WHERE origin <> '' GROUP BY origin HAVING count(*) > 1) "
        f"OR {db.among_texts('origin')}",
        (origins,),
    )
    kin = [_Kin(*row) for row in rows]
    above: dict[str, str] = {}
    for one in kin:
        if one.fork is not None:
            above[one.name] = _name(one.is_ours, one.agent, one.fork)
        elif one.origins and one.origins[0] != one.name:
            above[one.name] = one.origins[0]
    stand_ins, copies = _stand_ins(db, kin), repeated_by_copies(db)
    roots = _roots(above, [one.name for one in kin])
    moved: dict[int, tuple[Any, ...]] = {}
    for one in kin:
        family, depth = roots[one.name]
        copy = one.origins[0].replace("\n", ":", 1) if one.is_ours and one.origins else None
        other = stand_ins.get(one.id)
        if other is not None:
            copy = other[0].native
        is_copied, repeats = other is not None and other[1], -1
        if (mine := copies.get(one.id)) is not None:
            copy = mine.copy_of if other is None else copy
            is_copied, repeats = is_copied or mine.is_copied, mine.repeats
        now = (family, depth, copy, is_copied, repeats)
        if now != (one.family, one.depth, one.copy_of, bool(one.is_copied), one.repeats):
            moved[one.id] = (*now, one.id)
    related = ", ".join(
        f"{column} = {db.placeholder}" for column in ("family", "depth", "copy_of", "is_copied", "repeats")
    )
    db.run(f"UPDATE {sessions} SET {related} WHERE id = {db.placeholder}", moved.values())
    return set(moved) | book_copies(db, {id: copy.owed for id, copy in copies.items()})


def _roots(above: dict[str, str], names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """The root of each family, and the distance from it. The root of a cycle is the first by name, at no distance."""
    roots: dict[str, tuple[str, int]] = {}
    in_cycles: set[str] = set()
    for name in names:
        path: dict[str, None] = {}  # in order, and searched as a set
        at: str | None = name
        while at is not None and at not in path and at not in roots:
            path[at] = None
            at = above.get(at)
        if at is None:
            root, depth = next(reversed(path)), -1
        elif at in roots:
            root, depth = roots[at]
        else:
            cycle = list(path)[list(path).index(at) :]
            root, depth = min(cycle), 0
            in_cycles.update(cycle)
        for one in reversed(path):
            depth = 0 if root in in_cycles else depth + 1
            roots[one] = root, depth
    return roots


def _stand_ins(db: Engine, kin: list[_Kin]) -> dict[int, tuple[_Kin, bool]]:
    """The stand-in of each session of another agent that has one, and whether it is complete."""
    groups: dict[str, list[_Kin]] = {}
    for one in kin:
        for origin in () if one.is_ours and one.is_deleted else one.origins:
            groups.setdefault(origin, []).append(one)
    stand_ins: dict[int, tuple[_Kin, bool]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        contents = {one.id: entry_ids(db, one.id) for one in group}
        first = min(group, key=lambda one: (not one.is_ours, -len(contents[one.id]), one.id))
        for one in group:
            if one is not first and not one.is_ours:
                stand_ins[one.id] = first, first.is_hooked or contents[one.id] <= contents[first.id]
    return stand_ins


def _name(is_ours: int, agent: str | None, native: str) -> str:
    return f"\n{native}" if is_ours else f"{agent}\n{native}"


# ── who counts what ───────────────────────────────────────────────────────────────────────────────


def _owners(db: Engine, changed: set[int] | None, released: set[int]) -> set[int]:
    """Choose which session counts a shared request. Returns the sessions that changed."""
    if changed is None:
        spent = db.table("spent")
        several = f"SELECT token FROM {spent} GROUP BY token HAVING count(*) > 1"
        rows = db.rows(f"{several} UNION SELECT token FROM {spent} WHERE is_inherited")
        tokens = sorted(token for (token,) in rows)
    else:
        tokens = sorted(shared_by(db, changed) | released)
    holders = (
        "SELECT spent.token, spent.at, spent.session, spent.is_inherited, sessions.family, sessions.is_deleted, "
        "sessions.depth, sessions.created, sessions.is_ours, sessions.native "
        f"FROM {db.table('spent')} JOIN {db.table('sessions')} ON sessions.id = spent.session "
        f"WHERE {db.among_numbers('spent.token')}"
    )
    inherited: list[tuple[bool, int, int]] = []
    for begin in range(0, len(tokens), _AT_ONCE):
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in db.rows(holders, (tokens[begin : begin + _AT_ONCE],)):
            token, at, session, _, family, *_ = row
            # A request happens once, in whatever session it is. An entry id is the same entry only within a family.
            key = (token, family or session) if token & OF_ENTRY else (token, at)
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            group.sort(key=_rank)
            inherited += [
                (number > 0, row[2], row[0]) for number, row in enumerate(group) if bool(row[3]) != (number > 0)
            ]
    inherit(db, inherited)
    return {session for _, session, _ in inherited}


def inherit(db: Engine, rows: list[tuple[bool, int, int]]) -> None:
    """Set whether a session inherits a request. Each row: is inherited, session, token."""
    sql = "UPDATE {0} SET is_inherited = {1} WHERE session = {1} AND token = {1}"
    db.run(sql.format(db.table("spent"), db.placeholder), rows)


def shared_by(db: Engine, sessions: Iterable[int]) -> set[int]:
    """The requests of these sessions that other sessions have too, or that are marked as inherited."""
    rows = db.rows(
        f"SELECT token FROM {db.table('spent')} WHERE {db.among_numbers('session')} AND (is_inherited OR EXISTS "
        f"(SELECT 1 FROM {db.table('spent', 'o')} WHERE o.token = spent.token AND o.session <> spent.session))",
        (sorted(sessions),),
    )
    return {token for (token,) in rows}


def tokens_of(db: Engine, session: int) -> set[int]:
    """The tokens of the requests of a session."""
    rows = db.rows(f"SELECT token FROM {db.table('spent')} WHERE session = {db.placeholder}", (session,))
    return {token for (token,) in rows}


def entry_ids(db: Engine, session: int) -> set[str]:
    """The ids of the entries with text, without notes: what people, models and tools said."""
    rows = db.rows(
        f"SELECT entry FROM {db.table('docs')} WHERE session = {db.placeholder} AND role <> 'note'", (session,)
    )
    return {entry for (entry,) in rows}


def _rank(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, session, _, _, is_deleted, depth, created, is_ours, native = row
    return (is_deleted, depth - bool(is_ours), not is_ours, created is None, created or 0, native, session)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


def sum_up(db: Engine, sessions: set[int]) -> None:
    """Update what each of these sessions spent itself, and what it inherited."""
    by_session: dict[int, dict[bool, list[list[Any]]]] = {id: {False: [], True: []} for id in sessions}
    spent, placeholder = db.table("spent"), db.placeholder
    rows = db.rows(
        f"SELECT session, is_inherited, model, {db.total('cost')}, count(*) - count(cost), "
        f"{db.total('CASE WHEN is_reported THEN cost END')}, {token_totals(db)} FROM {spent} "
        f"WHERE {db.among_numbers('session')} GROUP BY session, is_inherited, model",
        (sorted(sessions),),
    )
    for session, is_inherited, *by_model in rows:
        by_session[session][bool(is_inherited)].append(by_model)
    sums: list[tuple[Any, ...]] = []
    for id, parts in by_session.items():
        own, inherited = _total(parts[False]), _total(parts[True])
        unpriced = lines(model or "?" for model, _, without_price, *_ in parts[False] if without_price)
        sums.append((own, int(own.rpartition(" ")[2] or 0), unpriced, inherited, id))
    db.run(
        f"UPDATE {db.table('sessions')} SET own = {placeholder}, cost = {placeholder}, unpriced = {placeholder}, "
        f"inherited = CASE WHEN before <> '' THEN before ELSE {placeholder} END WHERE id = {placeholder}",
        sums,
    )
    roll_up(db, sessions)


def roll_up(db: Engine, sessions: Iterable[int]) -> None:
    """Update what each session spent in each quarter of an hour with each model: a few rows for many requests."""
    ones = [(id,) for id in sessions]
    db.run(db.drop_quarters, ones)
    db.run(
        f"INSERT INTO {db.table('quarters')} ({QUARTERS}) SELECT session, at / {QUARTER_MS}, model, count(*), "
        f"{db.total('cost')}, count(*) - count(cost), {token_totals(db)} "
        f"FROM {db.table('spent')} WHERE session = {db.placeholder} AND NOT is_inherited GROUP BY 1, 2, 3",
        ones,
    )


def _total(rows: list[list[Any]]) -> str:
    """The seven numbers of a column; "" for nothing. Each model is rounded on its own, as in a session's own bill.

    Each row: model, cost, how many requests have no price, reported cost, counts.
    """
    counts, micros = [0] * len(COUNTS), 0
    for _, cost, _, reported, *counts_of_model in rows:
        counts = [sum(both) for both in zip(counts, counts_of_model, strict=True)]
        micros += reported // 1_000_000 + rounded(cost - reported)
    return " ".join(map(str, [*counts, micros])) if any(counts) or micros else ""


def _subagents(db: Engine) -> None:
    """Update what the subagents of each session spent, nested ones included."""
    sessions = db.table("sessions")
    rows = list(
        db.rows(
            f"SELECT id, is_ours, agent, native, parent, own, subagents FROM {sessions} "
            f"WHERE parent IS NOT NULL OR subagents <> '' OR native IN (SELECT parent FROM {sessions})"
        )
    )
    changed: list[tuple[str, int]] = []
    children: dict[str, list[str]] = {}
    own: dict[str, list[int]] = {}
    for _, is_ours, agent, native, parent, spent, _ in rows:
        mine = _name(is_ours, agent, native)
        numbers = [int(word) for word in spent.split()] or [0] * 7
        own[mine] = [a + b for a, b in zip(own.get(mine, [0] * 7), numbers, strict=True)]  # files may be copied
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
            total = [a + b for a, b in zip(total, own[name], strict=True)]
        text = " ".join(map(str, total)) if any(total) else ""
        if text != before:
            changed.append((text, id))
    db.run(f"UPDATE {sessions} SET subagents = {db.placeholder} WHERE id = {db.placeholder}", changed)
