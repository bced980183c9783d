"""Reads a session of another agent in place: all of it, or what was appended since."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import msgspec

from turnlog.catalog.index.batch import Batch, IndexedSession
from turnlog.catalog.index.columns import clean, lines, ms_of, workspace_column
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.index.totals import encode_totals
from turnlog.catalog.read.counts import SessionCounts
from turnlog.catalog.read.intake import Intake, copy_of, row_of, saved_reading, shrank
from turnlog.formats import Format, Jump, Problem, Reading, ResumePoint, SessionHeader, Source, format_of
from turnlog.interop.proof import proof
from turnlog.log.identity import id_of, key_id
from turnlog.log.prompt import is_title
from turnlog.thread.home.handedover import HandedOver

if TYPE_CHECKING:
    from turnlog.catalog.index.rows import SessionRow

_STEPS = 2048
"""The maximum number of steps from the resume point to the end."""


class _SavedReading(msgspec.Struct, array_like=True):
    """The resume point of a session, and the counts up to there."""

    offset: int
    steps: int
    state: Any
    counts: tuple[Any, ...]
    damage: int
    at: int | None
    size: int
    proof: bytes


def read_session(
    batch: Batch, source: Source, session: int, stamp: Stamp, before: IndexedSession | None, handed: HandedOver
) -> SessionRow:
    """Read a session into the batch, and return the columns of its row.

    `handed` lists the copies whose files cannot record that they are copies.
    """
    form = format_of(source.agent)
    saved, reading = _begin(form, source, stamp, before)
    start = 0 if saved is None else saved.steps
    intake = Intake(batch, session, start=start, is_new=before is None)
    damage = _Damage(reading.problems, 0 if saved is None else saved.damage)
    if saved is not None:
        intake.counts, intake.at = SessionCounts.thaw(saved.counts), saved.at
    created = ms_of(reading.header.created)
    intake.copied = reading.header.copied
    if intake.copied is None and form.write is not None:
        intake.copied = handed.copies.get((source.agent, reading.header.id))
    intake.default_at = created if created is not None else stamp.mtime // 1_000_000
    recent = _steps(reading, intake, damage, start, can_grow=form.growth is not None)
    intake.finish()
    mark = _resume_point(source, reading, recent, stamp, damage)
    title = reading.header.title
    if title is None and saved is not None and before is not None:
        title = before.title  # the title may be in the part that was not read again
    return {**_row(source, reading, intake, stamp, before, title), "damage": damage.now(), "mark": mark}


def _begin(
    form: Format, source: Source, stamp: Stamp, before: IndexedSession | None
) -> tuple[_SavedReading | None, Reading]:
    """Begin reading at the resume point if there is one that is valid, or at the beginning."""
    if before is not None and form.growth is not None:
        saved = saved_reading(_SavedReading, before, stamp)
        if saved is not None and stamp.size >= saved.size and proof(source.path, saved.offset) == saved.proof:
            reading = form.growth(source, ResumePoint(saved.offset, saved.steps, saved.state))
            if reading is not None:
                return saved, reading
    return None, form.read(source)


class _Damage:
    """Counts unreadable places. Text that was decoded with replacements does not count."""

    def __init__(self, problems: list[Problem], before: int) -> None:
        self._problems = problems
        self._seen = 0
        self._before = self._count = before

    def now(self) -> int:
        """The number of unreadable places so far."""
        if len(self._problems) > self._seen:
            self._count += sum(problem.offset is not None for problem in self._problems[self._seen :])
            self._seen = len(self._problems)
        return self._count

    def until(self, offset: int) -> int:
        """The number of those before an offset: what follows it, such as a torn last line, is read again."""
        return self._before + sum(one.offset is not None and one.offset < offset for one in self._problems)


def _steps(
    reading: Reading, intake: Intake, damage: _Damage, start: int, *, can_grow: bool
) -> dict[int, tuple[Any, ...]]:
    """Take every step. Returns the state before each of the last steps: reading may be resumed at one of them."""
    recent: deque[tuple[int, tuple[Any, ...]]] = deque(maxlen=_STEPS)
    ids: Counter[str] = Counter()
    counts = intake.counts
    number = start
    for step in reading.steps:
        if can_grow:
            recent.append((number, (counts.freeze(), damage.now(), intake.at)))
        if isinstance(step, Jump):
            counts.move_to(key_id(step.to) if step.to else "")
        else:
            name = id_of(step.key, step.entry, ids)
            intake.add(number, name, step.entry)
            if step.entry.is_node:
                counts.add_node(name)
        number += 1
    recent.append((number, (counts.freeze(), damage.now(), intake.at)))
    return dict(recent)


def _resume_point(
    source: Source, reading: Reading, recent: dict[int, tuple[Any, ...]], stamp: Stamp, damage: _Damage
) -> bytes | None:
    mark = reading.mark
    recent_mark = recent.get(mark.steps) if mark is not None else None
    if mark is None or recent_mark is None:
        return None
    counts, so_far, at = recent_mark
    if mark.offset:  # 0 in a database
        so_far = damage.until(mark.offset)
    prefix = proof(source.path, mark.offset)
    try:
        return msgspec.msgpack.encode(
            _SavedReading(mark.offset, mark.steps, mark.state, counts, so_far, at, stamp.size, prefix)
        )
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None  # it is read whole next time


def _row(
    source: Source,
    reading: Reading,
    intake: Intake,
    stamp: Stamp,
    before: IndexedSession | None,
    title: str | None,
) -> SessionRow:
    header, counts = reading.header, intake.counts
    facts = reading.facts
    model = facts.get("model")
    tags = facts.get("tags")
    last = max(filter(None, (counts.last_ms, ms_of(header.created))), default=stamp.mtime // 1_000_000)
    return {
        **row_of(counts),
        "model": clean(model) if counts.model is None and isinstance(model, str) else counts.model,
        **heading(source, header),
        **copy_of(intake),
        "title": clean(title) if title and is_title(title, header.workspace) else None,
        "is_archived": facts.get("archived") is True,
        "is_conversation": counts.messages > 0,
        "workspace": workspace_column(facts.get("workspace")) or workspace_column(header.workspace),
        "created": ms_of(header.created) if header.created is not None else counts.first_ms or last,
        "updated": last,
        "tags": lines(str(tag) for tag in tags) if isinstance(tags, list) else "",  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
        "models": lines(counts.models),
        "git_branches": lines(header.git_branches),
        "totals": encode_totals(reading.totals, last),
        "size": max(stamp.size, 0),
        "problem": _unreadable_reason(reading, counts)
        # A database of several sessions may be compacted by its program.
        or ("" if before is None or before.resume_point is None or source.key else shrank(stamp, before)),
    }


def heading(source: Source, header: SessionHeader) -> SessionRow:
    """The columns that identify a session."""
    native = clean(header.id)
    return {
        "native": native,
        "name": f"{source.agent}:{native}",
        "fork": clean(header.fork.session) if header.fork is not None and header.fork.session else None,
        "parent": clean(header.spawned.session) if header.spawned is not None else None,
        "origin": clean(f"{source.agent}\n{header.identity or header.id}"),
        "is_hidden": header.hidden,
    }


def _unreadable_reason(reading: Reading, counts: SessionCounts) -> str:
    """Why nothing of a session can be read; "" if something can."""
    reason = reading.problems[0].what if reading.problems and not counts.messages else ""
    return clean(f"it cannot be read: {reason}") if reason else ""
