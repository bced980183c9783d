"""What sessions are to each other: forks and copies, who counts what several of them have, and the sums of each.

A fork or a resumed session repeats what the one before it paid for, and an import repeats its source. Of all that have
the same request only one counts it: the one that was there first, and ours before its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.index.copies import look
from turnlog.catalog.index.notes import DIRTY
from turnlog.catalog.index.spending import QUARTER_MS, QUARTERS
from turnlog.catalog.index.texts import lines
from turnlog.catalog.index.totals import book, book_copies
from turnlog.catalog.values import COUNTS, rounded

if TYPE_CHECKING:
    from turnlog.catalog.index.engine import Engine

TOLD = "\x1e"
"""Follows each origin of a session of ours whose turns hooks report: the original is not listed as a second session."""
_FEW = 200
_AT_ONCE = 500
_SUMS = ", ".join(f"sum({name})" for name in COUNTS)


def settle(db: Engine, changed: set[int] | None, loose: Iterable[int] = ()) -> None:
    """Bring everything into step that depends on several sessions.

    `changed` are the sessions that were read, None for all; `loose` are tokens that others had and have no longer.
    """
    if changed is not None and len(changed) > _FEW:
        changed = None
    moved = _families(db)
    book(db, None if changed is None else changed | moved)
    touched = _owners(db, None if changed is None else changed | moved, set(loose))
    if changed is None:
        sums = {row[0] for row in db.rows(f"SELECT id FROM {db.table('sessions')}")}
    else:
        sums = changed | moved | touched
    sum_up(db, sums)
    _subagents(db)
    db.run(db.drop_note, [(DIRTY,)])


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
    repeats: int

    @property
    def origins(self) -> list[str]:
        """The ids that it has in its agent."""
        return self.origin.split(TOLD)[:-1] if self.is_told else [self.origin] if self.origin else []

    @property
    def is_told(self) -> bool:
        """Whether hooks tell of its turns."""
        return self.origin.endswith(TOLD)

    @property
    def name(self) -> str:
        return _name(self.is_ours, self.agent, self.native)


def _families(db: Engine) -> set[int]:
    """Forks belong to what they were forked from, copies to what they were copied from. Gives who changed."""
    sessions = db.table("sessions")
    hooked = db.rows(f"SELECT origin FROM {sessions} WHERE is_ours AND substr(origin, length(origin)) = '{TOLD}'")
    origins = [origin for (several,) in hooked for origin in several.split(TOLD)[:-1]]
    rows = db.rows(
        "SELECT id, native, is_ours, agent, fork, origin, family, depth, copy_of, is_copied, is_deleted, "
        f"repeats FROM {sessions} WHERE fork IS NOT NULL OR family <> '' OR copy_of IS NOT NULL OR is_copied "
        f"OR copied <> '' "
        f"OR (is_ours AND origin <> '') OR native IN (SELECT fork FROM {sessions} WHERE fork IS NOT NULL) "
        f"OR origin IN (SELECT origin FROM {sessions} WHERE origin <> '' GROUP BY origin HAVING count(*) > 1) "
        + (f"OR origin IN ({', '.join([db.mark] * len(origins))})" if origins else ""),
        origins,
    )
    kin = [_Kin(*row) for row in rows]
    above: dict[str, str] = {}
    for one in kin:
        if one.fork is not None:
            above[one.name] = _name(one.is_ours, one.agent, one.fork)
        elif one.origins and one.origins[0] != one.name:
            above[one.name] = one.origins[0]
    whole, copies = _wholes(db, kin), look(db)
    moved: dict[int, tuple[Any, ...]] = {}
    for one in kin:
        family, depth = _root(above, one.name)
        copy = one.origins[0].replace("\n", ":", 1) if one.is_ours and one.origins else None
        other = whole.get(one.id)
        if other is not None:
            copy = other[0].native
        is_copied, repeats = other is not None and other[1], -1
        if (mine := copies.get(one.id)) is not None:
            copy = mine.copy_of if other is None else copy
            is_copied, repeats = is_copied or mine.is_copied, mine.repeats
        now = (family, depth, copy, is_copied, repeats)
        if now != (one.family, one.depth, one.copy_of, bool(one.is_copied), one.repeats):
            moved[one.id] = (*now, one.id)
    related = ", ".join(f"{column} = {db.mark}" for column in ("family", "depth", "copy_of", "is_copied", "repeats"))
    db.run(f"UPDATE {sessions} SET {related} WHERE id = {db.mark}", moved.values())
    return set(moved) | book_copies(db, {id: copy.owed for id, copy in copies.items()})


def _root(above: dict[str, str], name: str) -> tuple[str, int]:
    """Where a family begins, and how far from there. Those that go round in a circle begin at the first by name."""
    path = [name]
    while (up := above.get(path[-1])) is not None:
        if up in path:
            return min(path[path.index(up) :]), 0
        path.append(up)
    return path[-1], len(path) - 1


def _wholes(db: Engine, kin: list[_Kin]) -> dict[int, tuple[_Kin, bool]]:
    """Of each other agent's session that is here a second time: that one, and whether it has all of it."""
    groups: dict[str, list[_Kin]] = {}
    for one in kin:
        for origin in () if one.is_ours and one.is_deleted else one.origins:
            groups.setdefault(origin, []).append(one)
    wholes: dict[int, tuple[_Kin, bool]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        contents = {one.id: said_in(db, one.id) for one in group}
        first = min(group, key=lambda one: (not one.is_ours, -len(contents[one.id]), one.id))
        for one in group:
            if one is not first and not one.is_ours:
                wholes[one.id] = first, first.is_told or contents[one.id] <= contents[first.id]
    return wholes


def _name(is_ours: int, agent: str | None, native: str) -> str:
    return f"\n{native}" if is_ours else f"{agent}\n{native}"


# ── who counts what ───────────────────────────────────────────────────────────────────────────────


def _owners(db: Engine, changed: set[int] | None, loose: set[int]) -> set[int]:
    """Let one session count what several have. Gives those of which something changed."""
    if changed is None:
        spent = db.table("spent")
        several = f"SELECT token FROM {spent} GROUP BY token HAVING count(*) > 1"
        rows = db.rows(f"{several} UNION SELECT token FROM {spent} WHERE is_inherited")
        tokens = sorted(token for (token,) in rows)
    else:
        tokens = sorted(shared_by(db, changed) | loose)
    holders = (
        "SELECT spent.token, spent.at, spent.session, spent.is_inherited, sessions.family, sessions.is_deleted, "
        "sessions.depth, sessions.created, sessions.is_ours, sessions.native "
        f"FROM {db.table('spent')} JOIN {db.table('sessions')} ON sessions.id = spent.session "
        f"WHERE {db.among('spent.token')}"
    )
    inherited: list[tuple[bool, int, int]] = []
    for begin in range(0, len(tokens), _AT_ONCE):
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in db.rows(holders, (tokens[begin : begin + _AT_ONCE],)):
            token, at, session, _, family, *_ = row
            # A request happens once, whoever tells of it. An entry is the same only among those that share entries.
            key = (token, family or session) if token & 1 else (token, at)
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            group.sort(key=_rank)
            inherited += [
                (number > 0, row[2], row[0]) for number, row in enumerate(group) if bool(row[3]) != (number > 0)
            ]
    inherit(db, inherited)
    return {session for _, session, _ in inherited}


def inherit(db: Engine, rows: list[tuple[bool, int, int]]) -> None:
    """Whether a session has a request from another: that, the session, and the token."""
    sql = "UPDATE {0} SET is_inherited = {1} WHERE session = {1} AND token = {1}"
    db.run(sql.format(db.table("spent"), db.mark), rows)


def shared_by(db: Engine, sessions: Iterable[int]) -> set[int]:
    """The requests of these sessions that others have, too, or one of them had."""
    rows = db.rows(
        f"SELECT token FROM {db.table('spent')} WHERE {db.among('session')} AND (is_inherited OR EXISTS "
        f"(SELECT 1 FROM {db.table('spent', 'o')} WHERE o.token = spent.token AND o.session <> spent.session))",
        (sorted(sessions),),
    )
    return {token for (token,) in rows}


def tokens_of(db: Engine, session: int) -> set[int]:
    """The requests of a session."""
    rows = db.rows(f"SELECT token FROM {db.table('spent')} WHERE session = {db.mark}", (session,))
    return {token for (token,) in rows}


def said_in(db: Engine, session: int) -> set[str]:
    """What people, models and tools said in a session: its entries with text, but for what an agent notes beside."""
    rows = db.rows(f"SELECT entry FROM {db.table('docs')} WHERE session = {db.mark} AND role <> 'note'", (session,))
    return {entry for (entry,) in rows}


def _rank(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, session, _, _, is_deleted, depth, created, is_ours, native = row
    return (is_deleted, depth - bool(is_ours), not is_ours, created is None, created or 0, native, session)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


def sum_up(db: Engine, sessions: set[int]) -> None:
    """What each of these spent itself, and what it has from others."""
    by_session: dict[int, dict[bool, list[tuple[Any, ...]]]] = {id: {False: [], True: []} for id in sessions}
    spent, mark = db.table("spent"), db.mark
    rows = db.rows(
        "SELECT session, is_inherited, model, sum(cost), count(*) - count(cost), "
        f"sum(CASE WHEN is_reported THEN cost END), {_SUMS} FROM {spent} WHERE {db.among('session')} "
        "GROUP BY session, is_inherited, model",
        (sorted(sessions),),
    )
    for row in rows:
        by_session[row[0]][bool(row[1])].append(row)
    sums: list[tuple[Any, ...]] = []
    for id, parts in by_session.items():
        own, inherited = _total(parts[False]), _total(parts[True])
        unpriced = lines(row[2] or "?" for row in parts[False] if row[4])
        sums.append((own, int(own.rpartition(" ")[2] or 0), unpriced, inherited, id))
    db.run(
        f"UPDATE {db.table('sessions')} SET own = {mark}, cost = {mark}, unpriced = {mark}, "
        f"inherited = CASE WHEN before <> '' THEN before ELSE {mark} END WHERE id = {mark}",
        sums,
    )
    roll_up(db, sessions)


def roll_up(db: Engine, sessions: Iterable[int]) -> None:
    """What each of these spent in a quarter of an hour with one model: a few rows in the place of many requests."""
    ones = [(id,) for id in sessions]
    db.run(db.drop_quarters, ones)
    db.run(
        f"INSERT INTO {db.table('quarters')} ({QUARTERS}) SELECT session, at / {QUARTER_MS}, model, count(*), "
        f"coalesce(sum(cost), 0), count(*) - count(cost), {_SUMS} "
        f"FROM {db.table('spent')} WHERE session = {db.mark} AND NOT is_inherited GROUP BY 1, 2, 3",
        ones,
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


def _subagents(db: Engine) -> None:
    """What the subagents of each session spent, and theirs."""
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
            changed.append((text, id))
    db.run(f"UPDATE {sessions} SET subagents = {db.mark} WHERE id = {db.mark}", changed)
