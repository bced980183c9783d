"""A session of another agent, read where it lies: all of it, or what was appended since."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import msgspec

from turnlog.catalog.index.batch import Batch, Before
from turnlog.catalog.index.cards import ms_of
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.texts import clean, lines, path_column
from turnlog.catalog.index.totals import written
from turnlog.catalog.read.digest import SessionDigest
from turnlog.catalog.read.intake import Intake, carried, copy_of, row_of, shrank
from turnlog.formats import Format, Jump, Problem, Reading, ResumePoint, SessionHeader, Source, format_of, id_of, key_id
from turnlog.log.prompt import is_title
from turnlog.machine.folder import workspace_path
from turnlog.machine.proof import proof
from turnlog.thread.handed import HandedOver

_STEPS = 2048
"""How many steps back the place can lie from which reading goes on."""


class _Carried(msgspec.Struct, array_like=True):
    """Where reading goes on, and what the story was there."""

    offset: int
    steps: int
    state: Any
    story: tuple[Any, ...]
    damage: int
    at: int | None
    size: int
    proof: bytes


def take(
    batch: Batch, source: Source, session: int, stamp: Stamp, before: Before | None, handed: HandedOver
) -> dict[str, Any]:
    """Read it into the batch; gives the columns of its row. `handed` knows copies that cannot say so themselves."""
    form = format_of(source.agent)
    kept, reading = _begin(form, source, stamp, before)
    start = 0 if kept is None else kept.steps
    taking = Intake(batch, session, start=start, is_new=before is None)
    damage = _Damage(reading.problems)
    if kept is not None:
        taking.story = SessionDigest.thaw(kept.story)
        taking.at, damage.count = kept.at, kept.damage
    created = ms_of(reading.header.created)
    taking.copied = reading.header.copied
    if taking.copied is None and form.write is not None:
        taking.copied = handed.known.get((source.agent, reading.header.id))
    taking.default_at = created if created is not None else stamp.mtime // 1_000_000
    recent = _steps(reading, taking, damage, start, can_grow=form.growth is not None)
    taking.finish()
    mark = _mark(source, reading, recent, stamp)
    return _row(source, reading, taking, stamp, before, {"damage": damage.now(), "mark": mark})


def _begin(form: Format, source: Source, stamp: Stamp, before: Before | None) -> tuple[_Carried | None, Reading]:
    """From where it was left, or from the beginning."""
    if before is not None and form.growth is not None:
        kept = carried(_Carried, before, stamp)
        if kept is not None and stamp.size >= kept.size and proof(source.path, kept.offset) == kept.proof:
            reading = form.growth(source, ResumePoint(kept.offset, kept.steps, kept.state))
            if reading is not None:
                return kept, reading
    return None, form.read(source)


class _Damage:
    """Counts unreadable places. Text that was decoded with replacements does not count."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._seen = 0
        self.count = 0

    def now(self) -> int:
        """The number so far."""
        if len(self._problems) > self._seen:
            self.count += sum(problem.offset is not None for problem in self._problems[self._seen :])
            self._seen = len(self._problems)
        return self.count


def _steps(
    reading: Reading, taking: Intake, damage: _Damage, start: int, *, can_grow: bool
) -> dict[int, tuple[Any, ...]]:
    """Every step; gives what was known before each of the last ones, where reading may go on one day."""
    recent: deque[tuple[int, tuple[Any, ...]]] = deque(maxlen=_STEPS)
    counts: Counter[str] = Counter()
    story = taking.story
    number = start
    for step in reading.steps:
        if can_grow:
            recent.append((number, (story.freeze(), damage.now(), taking.at)))
        if isinstance(step, Jump):
            story.go(key_id(step.to) if step.to else "")
        else:
            name = id_of(step.key, step.entry, counts)
            taking.take(number, name, step.entry)
            if step.entry.is_node:
                story.node(name)
        number += 1
    recent.append((number, (story.freeze(), damage.now(), taking.at)))
    return dict(recent)


def _mark(source: Source, reading: Reading, recent: dict[int, tuple[Any, ...]], stamp: Stamp) -> bytes | None:
    mark = reading.mark
    recent_mark = recent.get(mark.steps) if mark is not None else None
    if mark is None or recent_mark is None:
        return None
    story, damage, at = recent_mark
    prefix = proof(source.path, mark.offset)
    try:
        return msgspec.msgpack.encode(
            _Carried(mark.offset, mark.steps, mark.state, story, damage, at, stamp.size, prefix)
        )
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None  # it is read as a whole next time


def _row(
    source: Source,
    reading: Reading,
    taking: Intake,
    stamp: Stamp,
    before: Before | None,
    more: dict[str, Any],
) -> dict[str, Any]:
    header, story = reading.header, taking.story
    facts = reading.facts
    model = facts.get("model")
    tags = facts.get("tags")
    last = max(filter(None, (story.last, ms_of(header.created))), default=stamp.mtime // 1_000_000)
    row = row_of(story)
    if row["model"] is None and isinstance(model, str):
        row["model"] = clean(model)
    title = header.title
    if title is None and more["mark"] is not None and before is not None:
        title = before.title  # it may stand in the part that was not read again
    return {
        **row,
        **more,
        **heading(source, header),
        **copy_of(taking),
        "title": clean(title) if title and is_title(title, header.workspace) else None,
        "is_archived": facts.get("archived") is True,
        "is_conversation": story.messages > 0,
        "workspace": _workspace(facts.get("workspace")) or _workspace(header.workspace),
        "created": ms_of(header.created) if header.created is not None else story.first or last,
        "updated": last,
        "tags": lines(str(tag) for tag in tags) if isinstance(tags, list) else "",  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        "models": lines(story.models),
        "git_branches": lines(header.git_branches),
        "totals": written(reading.totals, last),
        "size": max(stamp.size, 0),
        "problem": _nothing(reading, story)
        # A database that has sessions by key may be packed by its program.
        or ("" if before is None or before.mark is None or source.key else shrank(stamp, before)),
    }


def heading(source: Source, header: SessionHeader) -> dict[str, Any]:
    """The columns that say which session it is."""
    native = clean(header.id)
    return {
        "native": native,
        "name": f"{source.agent}:{native}",
        "fork": clean(header.fork.session) if header.fork is not None and header.fork.session else None,
        "parent": clean(header.spawned.session) if header.spawned is not None else None,
        "origin": clean(f"{source.agent}\n{header.identity or header.id}"),
        "is_hidden": header.hidden,
    }


def _workspace(folder: Any) -> str | bytes | None:
    if not isinstance(folder, str) or not folder:
        return None
    if "\0" in folder or not folder.startswith("/"):
        return path_column(folder)
    return path_column(workspace_path(folder))


def _nothing(reading: Reading, story: SessionDigest) -> str:
    """Why nothing of it can be read, if nothing can."""
    reason = reading.problems[0].what if reading.problems and not story.messages else ""
    return clean(f"it cannot be read: {reason}") if reason else ""
