"""What sessions are to each other: forks and copies, who counts what several of them have, and the sums of each.

A fork or a resumed session repeats what the one before it paid for, and an import repeats its source. Of all that have
the same request only one counts it: the one that was there first, and ours before its source.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.catalog.index.texts import lines
from turnlog.catalog.index.totals import book
from turnlog.catalog.values import rounded

if TYPE_CHECKING:
    from turnlog.catalog.index.contract import Ledger

_FEW = 200
_AT_ONCE = 500
DIRTY = "unsettled"
"""Noted while something was written and never settled."""


def settle(ledger: Ledger, changed: set[int] | None, loose: Iterable[int] = ()) -> None:
    """Bring everything into step that depends on several sessions.

    `changed` are the sessions that were read, None for all; `loose` are tokens that others had and have no longer.
    """
    if changed is not None and len(changed) > _FEW:
        changed = None
    moved = _families(ledger)
    book(ledger, None if changed is None else changed | moved)
    touched = _owners(ledger, None if changed is None else changed | moved, set(loose))
    if changed is None:
        sums = {row[0] for row in ledger.rows(ledger.sql.sessions)}
    else:
        sums = changed | moved | touched
    sum_up(ledger, sums)
    _subagents(ledger)
    ledger.drop(DIRTY)


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


def _families(ledger: Ledger) -> set[int]:
    """Forks belong to what they were forked from, copies to what they were copied from. Gives who changed."""
    kin = [_Kin(*row) for row in ledger.rows(ledger.sql.kin)]
    above: dict[str, str] = {}
    for one in kin:
        if one.fork is not None:
            above[one.name] = _name(one.is_ours, one.agent, one.fork)
        elif one.origin and one.origin != one.name:
            above[one.name] = one.origin
    whole = _wholes(ledger, kin)
    moved: dict[int, tuple[Any, ...]] = {}
    for one in kin:
        family, depth = _root(above, one.name)
        copy = one.origin.replace("\n", ":", 1) if one.is_ours and one.origin else None
        other = whole.get(one.id)
        if other is not None:
            copy = other[0].native
        is_copied = other is not None and other[1]
        if (family, depth, copy, is_copied) != (one.family, one.depth, one.copy_of, bool(one.is_copied)):
            moved[one.id] = (family, depth, copy, is_copied, one.id)
    ledger.run(ledger.sql.relate, moved.values())
    return set(moved)


def _root(above: dict[str, str], name: str) -> tuple[str, int]:
    """Where a family begins, and how far from there. Those that go round in a circle begin at the first by name."""
    path = [name]
    while (up := above.get(path[-1])) is not None:
        if up in path:
            return min(path[path.index(up) :]), 0
        path.append(up)
    return path[-1], len(path) - 1


def _wholes(ledger: Ledger, kin: list[_Kin]) -> dict[int, tuple[_Kin, bool]]:
    """Of each other agent's session that is here a second time: that one, and whether it has all of it."""
    groups: dict[str, list[_Kin]] = {}
    for one in kin:
        if one.origin and not (one.is_ours and one.is_deleted):
            groups.setdefault(one.origin, []).append(one)
    found: dict[int, tuple[_Kin, bool]] = {}
    for group in groups.values():
        if len(group) < 2:
            continue
        said = {one.id: {row[0] for row in ledger.rows(ledger.sql.said, (one.id,))} for one in group}
        first = min(group, key=lambda one: (not one.is_ours, -len(said[one.id]), one.id))
        for one in group:
            if one is not first and not one.is_ours:
                found[one.id] = first, said[one.id] <= said[first.id]
    return found


def _name(is_ours: int, agent: str | None, native: str) -> str:
    return f"\n{native}" if is_ours else f"{agent}\n{native}"


# ── who counts what ───────────────────────────────────────────────────────────────────────────────


def _owners(ledger: Ledger, changed: set[int] | None, loose: set[int]) -> set[int]:
    """Let one session count what several have. Gives those of which something changed."""
    if changed is None:
        rows = ledger.rows(ledger.sql.shared)
    else:
        rows = ledger.rows(ledger.sql.shared_by, (sorted(changed),))
    tokens = sorted({row[0] for row in rows} | (set() if changed is None else loose))
    inherited: list[tuple[bool, int, int]] = []
    for begin in range(0, len(tokens), _AT_ONCE):
        groups: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        for row in ledger.rows(ledger.sql.holders, (tokens[begin : begin + _AT_ONCE],)):
            token, at, session, _, family, *_ = row
            # A request happens once, whoever tells of it. An entry is the same only among those that share entries.
            key = (token, family or session) if token & 1 else (token, at)
            groups.setdefault(key, []).append(row)
        for group in groups.values():
            group.sort(key=_rank)
            inherited += [
                (number > 0, row[2], row[0]) for number, row in enumerate(group) if bool(row[3]) != (number > 0)
            ]
    ledger.run(ledger.sql.inherit, inherited)
    return {session for _, session, _ in inherited}


def _rank(row: tuple[Any, ...]) -> tuple[Any, ...]:
    _, _, session, _, _, is_deleted, depth, created, is_ours, native = row
    return (is_deleted, depth - bool(is_ours), not is_ours, created is None, created or 0, native, session)


# ── sums ──────────────────────────────────────────────────────────────────────────────────────────


def sum_up(ledger: Ledger, sessions: set[int]) -> None:
    """What each of these spent itself, and what it has from others; by quarters of an hour, only the first."""
    found: dict[int, dict[bool, list[tuple[Any, ...]]]] = {id: {False: [], True: []} for id in sessions}
    for row in ledger.rows(ledger.sql.sums, (sorted(sessions),)):
        found[row[0]][bool(row[1])].append(row)
    sums: list[tuple[Any, ...]] = []
    for id, parts in found.items():
        own, inherited = _total(parts[False]), _total(parts[True])
        unpriced = lines(row[2] or "?" for row in parts[False] if row[4])
        sums.append((own, int(own.rpartition(" ")[2] or 0), unpriced, inherited, id))
    ledger.run(ledger.sql.put_sums, sums)
    ones = [(id,) for id in sessions]
    ledger.run(ledger.sql.drop_quarters, ones)
    ledger.run(ledger.sql.add_quarters, ones)


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


def _subagents(ledger: Ledger) -> None:
    """What the subagents of each session spent, and theirs."""
    rows = ledger.rows(ledger.sql.subagents)
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
    ledger.run(ledger.sql.put_subagents, changed)
