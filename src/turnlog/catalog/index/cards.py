"""Rows of an index as cards. What changes by itself, such as whether somebody is still at work, is looked up."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from turnlog.catalog.index.texts import path_of
from turnlog.catalog.values import Card, ListingRow, TokenSums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    _Named = TypeVar("_Named", Card, ListingRow)

LATELY_MS = 600_000
"""How long after its last write a process that cannot be checked from here counts as alive."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
LATEST = (1 << 43) - 1
"""As many milliseconds as fit beside the number that makes the id of a text."""
_AHEAD_MS = 60_000
"""So far another clock may be ahead; what is later than that is no sign of life."""
_NOTHING = TokenSums()
CARD = (
    "name, native, is_ours, agent, path, key, workspace, title, preview, model, created, updated, messages, turns, "
    "tool_calls, branches, fork, parent, copy_of, is_hidden, is_archived, is_deleted, tags, own, inherited, subagents, "
    "unpriced, ending, writer, damage, problem, size, is_conversation, git_branches"
)
OPEN = ("turn", "call", "result", "asked")
"""The endings inside a turn."""
WAITING = "ask"
"""Where a session stopped in which somebody has to say whether a tool may be run: it waits, whoever is there."""
UNREAD = "unread"
"""Where a session stopped of which only the ends were read: unknown."""
_SIMPLE = (
    "fork IS NULL AND parent IS NULL AND NOT is_hidden AND NOT is_archived AND damage = 0 AND problem = '' "
    "AND tags = '' AND writer = ''"
)
_LINE = (
    "name, is_ours, coalesce(agent, ''), coalesce(workspace, ''), coalesce(nullif(title, ''), preview), updated, "
    "turns, cost + CASE subagents WHEN '' THEN 0 "
    "ELSE CAST(substr(subagents, length(rtrim(subagents, '0123456789')) + 1) AS BIGINT) END, unpriced <> ''"
)
"""As a `ListingRow` has them, but for the state."""
_STATE = f"CASE WHEN ending IN {OPEN} THEN 'stopped' WHEN ending = '{WAITING}' THEN 'waiting' ELSE 'idle' END"


def merged(parts: list[list[Card]]) -> list[Card]:
    """Cards of several indexes, the newest first."""
    if len(parts) == 1:
        return parts[0]
    never = datetime.min.replace(tzinfo=UTC)
    return sorted(_once(parts), key=lambda card: card.updated_at or never, reverse=True)


def merged_lines(parts: list[list[ListingRow]]) -> list[ListingRow]:
    """The same of listings."""
    return parts[0] if len(parts) == 1 else sorted(_once(parts), key=_newness, reverse=True)


def _once(parts: list[list[_Named]]) -> Iterator[_Named]:
    """A session that was read during a glance is in two indexes: the first one has read it."""
    seen: set[str] = set()
    for part in parts:
        yield from (one for one in part if one.name not in seen)
        seen.update(one.name for one in part)


class ListingColumns:
    """What is asked for a listing, as of now. Both engines say that alike."""

    def __init__(self) -> None:
        self.look = CardMaker()
        self.special = f"NOT ({_SIMPLE} AND (updated IS NULL OR updated <= {self.look.now_ms - LATELY_MS}))"
        """The sessions of which there is more to say; which row that is, stands where others have their state."""
        self.lines = f"{_LINE}, CASE WHEN {self.special} THEN 'row ' || id ELSE {_STATE} END"
        self.facts = "id, ending, writer, fork, parent, is_hidden, is_archived, damage, problem, tags"

    def listing(
        self, rows: Iterable[tuple[Any, ...]], facts: Callable[[], Iterable[tuple[Any, ...]]]
    ) -> list[ListingRow]:
        """The lines, the newest first. `facts` gives those of special sessions, if there are any."""
        listed: list[ListingRow] = list(map(ListingRow._make, rows))
        listed.sort(key=_newness, reverse=True)  # sooner done than looking up each row where the index says
        special = [index for index, line in enumerate(listed) if line.state[0] == "r"]
        if special:
            facts_by_id = {row[0]: row[1:] for row in facts()}
            for index in special:
                line = listed[index]
                listed[index] = _special(line, self.look, *facts_by_id[int(line.state[4:])])
        odd = [index for index, line in enumerate(listed) if not isinstance(line.workspace, str)]  # pyright: ignore[reportUnnecessaryIsInstance]
        for index in odd:
            listed[index] = listed[index]._replace(workspace=os.fsdecode(listed[index].workspace))
        return listed


def _newness(line: ListingRow) -> int:
    return line.updated_ms or 0


def _special(line: ListingRow, look: CardMaker, ending: str, writer: str, *facts: Any) -> ListingRow:
    marked = ", ".join(_marks(line.is_ours, *facts))
    title = " ".join(filter(None, (line.title, f"({marked})" if marked else "")))
    return line._replace(title=title, state=look.state(line.is_ours, ending, writer, line.updated_ms))


def _marks(
    is_ours: int,
    fork: str | None,
    parent: str | None,
    is_hidden: int,
    is_archived: int,
    damage: int,
    problem: str,
    tags: str,
) -> list[str]:
    """What is special about a session, in words."""
    marks = [
        f"cannot be read: {problem}" if problem else "",
        f"fork of {fork.rpartition('-')[2] if is_ours and fork[:8].isdecimal() else fork[:20]}" if fork else "",
        "subagent" if parent else "",
        "hidden" if is_hidden else "",
        "archived" if is_archived else "",
        f"damaged in {damage:,} place{'' if damage == 1 else 's'}" if damage else "",
        *(f"#{tag}" for tag in words(tags)),
    ]
    return [mark for mark in marks if mark]


class CardMaker:
    """Makes cards of rows, as things are at this moment."""

    def __init__(self, now_ms: int | None = None) -> None:
        self.now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        self._there: dict[str, bool | None] = {}

    def card(self, row: tuple[Any, ...]) -> Card:
        """One row of `CARD`."""
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
        """running, waiting, idle, stopped or crashed: from where it ended, and whether anybody is there to go on."""
        if ending == WAITING:
            return "waiting"
        is_open = ending in OPEN
        is_there = self._is_there(writer) if is_ours else None
        if is_there or (is_there is None and (writer or not is_ours) and self._is_young(updated)):
            return "running" if is_open else "waiting"
        if not is_open:
            return "idle"
        # A prompt alone may be all that was ever to be written: that nobody answered it is no proof of a crash.
        return "crashed" if is_there is False and ending != "asked" else "stopped"

    def _is_young(self, updated: int | None) -> bool:
        return updated is not None and -_AHEAD_MS < self.now_ms - updated < LATELY_MS

    def _is_there(self, writer: str) -> bool | None:
        """Whether one of the processes that wrote it last still runs; None where nobody here can tell."""
        if writer not in self._there:
            from turnlog.machine.process import lives

            states = [lives(_who(line)) for line in writer.split("\n")] if writer else [None]
            self._there[writer] = True if True in states else None if None in states else False
        return self._there[writer]


def _who(line: str) -> dict[str, str | None]:
    names = ("pid", "started", "host", "boot", "namespace")
    return dict(zip(names, (word or None for word in (line + "\t" * 4).split("\t")), strict=False))


def ms_of(at: datetime | None) -> int | None:
    """Milliseconds since 1970, as far as a column can have them."""
    if at is None:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return min(max((at - _EPOCH) // _MS, 0), LATEST)


def time_of(ms: int | None) -> datetime | None:
    """A time of a column."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def words(text: str) -> tuple[str, ...]:
    """The words of a column that has several."""
    return tuple(text[1:-1].split("\n")) if text else ()


def tokens(text: str) -> TokenSums:
    """The numbers of a column that has seven."""
    return TokenSums(*map(int, text.split(" "))) if text else _NOTHING
