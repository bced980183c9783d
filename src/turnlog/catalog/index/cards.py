"""Rows of an index as cards. What changes by itself, such as whether a process still runs, is looked up."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.columns import COST, path_of, time_of, tokens, words
from turnlog.catalog.index.ending import OPEN, UNREAD, WAITING
from turnlog.catalog.values import Card, ListingRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    _Named = TypeVar("_Named", Card, ListingRow)

LATELY_MS = 600_000
"""How long after its last write a process that cannot be checked from here counts as alive."""
_AHEAD_MS = 60_000
"""How far another clock may be ahead; a later time is no sign of life."""
CARD = (
    "name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages, turns, "
    "tool_calls, branches, fork, parent, copy_of, is_hidden, is_archived, is_deleted, tags, own, inherited, subagents, "
    "unpriced, ending, writer, damage, problem, size, is_conversation, git_branches"
)
_SIMPLE = (
    "fork IS NULL AND parent IS NULL AND NOT is_hidden AND NOT is_archived AND damage = 0 AND problem = '' "
    "AND tags = '' AND writer = ''"
)
_LINE = (
    "name, is_ours, coalesce(agent, ''), coalesce(workspace, ''), coalesce(nullif(title, ''), preview), updated, "
    f"turns, {COST}, unpriced <> ''"
)
"""The fields of a `ListingRow`, except the state."""
_ROW = "row "
"""What the state of a session with more to show begins with, before its number, while a listing is made."""
_STATE = f"CASE WHEN ending IN {OPEN} THEN 'stopped' WHEN ending = '{WAITING}' THEN 'waiting' ELSE 'idle' END"


def merged(parts: list[list[Card]]) -> list[Card]:
    """The cards of several indexes, newest first."""
    if len(parts) == 1:
        return parts[0]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(_once(parts), key=lambda card: card.updated_at or never, reverse=True)


def merged_lines(parts: list[list[ListingRow]]) -> list[ListingRow]:
    """The rows of several listings, newest first."""
    return parts[0] if len(parts) == 1 else sorted(_once(parts), key=_newness, reverse=True)


def _once(parts: list[list[_Named]]) -> Iterator[_Named]:
    """Each session once: one that was indexed during a glance is in two indexes, and the first one has read it."""
    seen: set[str] = set()
    for part in parts:
        yield from (one for one in part if one.name not in seen)
        seen.update(one.name for one in part)


class ListingColumns:
    """The columns of a listing as of now, in SQL that both engines understand."""

    def __init__(self) -> None:
        self.maker = CardMaker()
        special = f"NOT ({_SIMPLE} AND (updated IS NULL OR updated <= {self.maker.now_ms - LATELY_MS}))"
        # Sessions with more to show have `_ROW` and their number instead of a state.
        self.lines = f"{_LINE}, CASE WHEN {special} THEN '{_ROW}' || id ELSE {_STATE} END"
        self.facts = "id, ending, writer, fork, parent, is_hidden, is_archived, damage, problem, tags"

    def listing(
        self, rows: Iterable[tuple[Any, ...]], facts: Callable[[list[int]], Iterable[tuple[Any, ...]]]
    ) -> list[ListingRow]:
        """The rows of a listing, newest first. `facts` returns the facts of sessions; one that is gone has none."""
        listed: list[ListingRow] = list(map(ListingRow._make, rows))
        listed.sort(key=_newness, reverse=True)  # faster than looking up each row in the order of an index
        special = {
            index: int(line.state.removeprefix(_ROW))
            for index, line in enumerate(listed)
            if line.state.startswith(_ROW)
        }
        if special:
            facts_by_id = {row[0]: row[1:] for row in facts(list(special.values()))}
            for index, id in special.items():
                if id in facts_by_id:
                    listed[index] = _special(listed[index], self.maker, *facts_by_id[id])
            gone = {index for index, id in special.items() if id not in facts_by_id}  # another process removed them
            listed = [line for index, line in enumerate(listed) if index not in gone] if gone else listed
        odd = [index for index, line in enumerate(listed) if not isinstance(line.workspace, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
        for index in odd:
            listed[index] = listed[index]._replace(workspace=os.fsdecode(listed[index].workspace))
        return listed


def _newness(line: ListingRow) -> int:
    return line.updated_ms or 0


def _special(line: ListingRow, maker: CardMaker, ending: str, writer: str, *facts: Any) -> ListingRow:
    remarks = ", ".join(_remarks(line.is_ours, *facts))
    title = " ".join(filter(None, (line.title, f"({remarks})" if remarks else "")))
    return line._replace(title=title, state=maker.state(line.is_ours, ending, writer, line.updated_ms))


def _remarks(
    is_ours: int,
    fork: str | None,
    parent: str | None,
    is_hidden: int,
    is_archived: int,
    damage: int,
    problem: str,
    tags: str,
) -> list[str]:
    """Remarks on what is special about a session."""
    remarks = [
        problem.removeprefix("it "),  # "cannot be read: …" or "was cut: …"
        f"fork of {fork.rpartition('-')[2] if is_ours and fork[:8].isdecimal() else fork[:20]}" if fork else "",
        "subagent" if parent else "",
        "hidden" if is_hidden else "",
        "archived" if is_archived else "",
        f"damaged in {damage:,} place{'' if damage == 1 else 's'}" if damage else "",
        *(f"#{tag}" for tag in words(tags)),
    ]
    return [remark for remark in remarks if remark]


class CardMaker:
    """Makes cards of rows, as of now."""

    def __init__(self, now_ms: int | None = None) -> None:
        self.now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self._there: dict[str, bool | None] = {}

    def card(self, row: tuple[Any, ...]) -> Card:
        """The card of a row of `CARD`."""
        (
            name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages,
            turns, tool_calls, branches, fork, parent, copy_of, hidden, archived, deleted, tags, own, inherited,
            subagents, unpriced, ending, writer, damage, problem, size, is_conversation, git_branches,
        ) = row  # fmt: skip
        return Card(
            name, native, is_ours == 1, agent, path if type(path) is str else path_of(path), key,
            workspace if type(workspace) is not bytes else os.fsdecode(workspace), title, preview, model,
            time_of(created), time_of(updated), messages, turns, tool_calls, branches, fork, parent, copy_of,
            hidden == 1, archived == 1, deleted == 1, words(tags), tokens(own), tokens(inherited), tokens(subagents),
            words(unpriced), self.state(is_ours, ending, writer, updated), damage, problem, size, is_conversation == 1,
            words(git_branches),
            ending != UNREAD,
        )  # fmt: skip

    def state(self, is_ours: int, ending: str, writer: str, updated: int | None) -> str:
        """The state of a session (running, waiting, idle, stopped or crashed), from its ending and its processes."""
        if ending == WAITING:
            return "waiting"
        is_open = ending in OPEN
        is_there = self._is_there(writer) if is_ours else None
        if is_there or (is_there is None and (writer or not is_ours) and self._is_young(updated)):
            return "running" if is_open else "waiting"
        if not is_open:
            return "idle"
        # A prompt without an answer is no proof of a crash: nothing else may have been meant to be written.
        return "crashed" if is_there is False and ending != "asked" else "stopped"

    def _is_young(self, updated: int | None) -> bool:
        return updated is not None and -_AHEAD_MS < self.now_ms - updated < LATELY_MS

    def _is_there(self, writer: str) -> bool | None:
        """Whether one of the last writers still runs; None if that cannot be checked from here."""
        if writer not in self._there:
            from turnlog.machine.process import runs

            states = [runs(_who(line)) for line in writer.split("\n")] if writer else [None]
            self._there[writer] = True if True in states else None if None in states else False
        return self._there[writer]


def _who(line: str) -> dict[str, str | None]:
    names = ("pid", "started", "host", "boot", "namespace")
    return dict(zip(names, (word or None for word in (line + "\t" * 4).split("\t")), strict=False))
