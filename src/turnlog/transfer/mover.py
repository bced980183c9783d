"""Sessions from one home to another: parents first, blobs before lines, only what is missing.

Whatever is interrupted leaves the beginning of what was to come, and the next run goes on behind it: nothing is
remembered but the logs themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import partial
from typing import NamedTuple

from msgspec import Struct

from turnlog.errors import AlreadyExists, Conflict, Corrupt, Invalid, NotFound, TurnlogError, Unavailable
from turnlog.log.codec import Damage
from turnlog.log.digest import sha256
from turnlog.log.entry import Alias, Start
from turnlog.log.written import WrittenLine
from turnlog.store import Listed, Log, Store, derived
from turnlog.thread.alias import aliases_changed
from turnlog.thread.appender import appending
from turnlog.thread.content import left_out
from turnlog.thread.garbage import forget_unneeded
from turnlog.thread.history import opened
from turnlog.transfer.agreement import Divergence, divergence_of
from turnlog.transfer.blobs import Cargo, Carrier, held
from turnlog.transfer.erased import Erasures
from turnlog.transfer.image import came_from, second_of
from turnlog.transfer.merge import merge, merges
from turnlog.transfer.outgoing import Outgoing, Shipment, outgoing_of
from turnlog.transfer.private import bring_private
from turnlog.transfer.report import Transferred

_BYTES = 1 << 20
_BEGINNING_BYTES = 64 << 20
"""So much of a new session arrives at once: nearly all of them arrive whole, or not at all."""
_TRIES = 100

Tell = Callable[[int, int, str], None]
"""Told before each session: how many are done, how many there are, and which comes now."""


class _Which(NamedTuple):
    """A session: its id, and that of its first entry, which tells it from others that are or were called the same."""

    id: str
    first: str


class _Part(Struct, frozen=True):
    """Where a session's entries up to `upto` are on the other side."""

    upto: int
    there: _Which
    cuts: tuple[int, ...]


class Mover:
    """One run from `source` to `target`."""

    def __init__(self, source: Store, target: Store, *, dry_run: bool = False, include_ignored: bool = False) -> None:
        if source is target or derived.own_folders(source) & derived.own_folders(target):
            raise Invalid("a home cannot be moved to itself", hint="give the location of another one")
        self._source = source
        self._target = target
        self._dry_run = dry_run
        self._include_ignored = include_ignored
        self._carrier = Carrier(source, target)
        self._erasures = Erasures(source, target, dry_run=dry_run)
        self._placed: dict[_Which, list[_Part]] = {}
        self._rows: dict[_Which, Transferred] = {}
        self._moving: list[_Which] = []
        self._live: set[_Which] = set()
        self._wanted: set[_Which] = set()
        self._there: dict[_Which, Listed] = {}
        self._deleted: set[_Which] = set()

    def run(self, ids: Iterable[str] | None, tell: Tell | None = None) -> Iterator[Transferred]:
        """Move these sessions (all, for None), with what they build on and the subagents they started."""
        source, target = self._source, self._target
        here = {_Which(listed.id, listed.first): listed for listed in source.listing()}
        self._live = set(here)
        self._there = {_Which(listed.id, listed.first): listed for listed in target.listing()}
        self._deleted = {_Which(listed.id, listed.first) for listed in target.listing("deleted")}
        chosen = sorted(here) if ids is None else self._with_subagents(ids)
        self._wanted = set(chosen)
        for index, name in enumerate(chosen):
            if tell is not None:
                tell(index, len(chosen), name.id)
            if name not in self._placed:
                self._settle(name, here.get(name))
            if self._include_ignored:
                bring_private(self._source, self._target, self._carrier, self._row(name), self._dry_run)
            # What it builds on may have come with it, and so be told before its turn.
            yield from self._news()
        yield from self._news()

    def _row(self, name: _Which) -> Transferred:
        return self._rows.setdefault(name, Transferred(name.id))

    def _news(self) -> Iterator[Transferred]:
        while self._rows:
            yield self._rows.pop(next(iter(self._rows)))

    def _with_subagents(self, ids: Iterable[str]) -> list[_Which]:
        chosen: dict[_Which, None] = {}
        live = {which.id: which for which in self._live}
        waiting = [live.get(name, _Which(name, name)) for name in ids]
        while waiting:
            name = waiting.pop(0)
            if name in chosen:
                continue
            chosen[name] = None
            with opened(self._source, self._source.open(name.id, read_only=True, first=name.first)) as history:
                waiting += [live[child] for child in history.state.children if child in live]
        return list(chosen)

    def _settle(self, name: _Which, listed: Listed | None) -> None:
        """Move one session, and say what became of it."""
        there = self._there.get(name)
        is_same = listed is not None and there is not None and _is_same(listed, there)
        if is_same and self._erasures.are_there(name.first):
            self._placed[name] = [_Part(_END, name, ())]
            self._rows[name] = Transferred(name.id)
            return
        try:
            if name in self._deleted and name in self._live:
                self._rows[name] = Transferred(name.id, "deleted")
                with closing(self._source.open(name.id, read_only=True, first=name.first)) as log:
                    self._rows[name].erased = self._erasures.apply(outgoing_of(self._source, log))
                return
            self._move(name)
        except Unavailable:
            raise
        except TurnlogError as error:
            row = self._row(name)
            row.outcome, row.error = "failed", error

    # ── one session ───────────────────────────────────────────────────────────────────────────────

    def _move(self, name: _Which) -> list[_Part]:
        """Move a session, after what it builds on. Returns where its entries are there."""
        if name in self._placed:
            return self._placed[name]
        if name in self._moving:
            raise Corrupt(f"session {name.id} is a fork of itself", hint=f"look with `turnlog doctor {name.id}`")
        self._moving.append(name)
        log = self._source.open(name.id, read_only=True, first=name.first)
        try:
            outgoing = outgoing_of(self._source, log)
            image = came_from(self._target, self._there.values(), self._source, outgoing)
            outgoing = self._beside_its_parent(outgoing) if image is None else outgoing
            row = self._rows[name] = Transferred(name.id)
            if image is not None:
                row.erased = self._erasures.apply_to_original(name.first, image)
            self._placed[name] = self._send(outgoing, row) if image is None else []
            row.outcome = "erased" if row.erased and row.outcome == "same" else row.outcome
            return self._placed[name]
        finally:
            self._moving.pop()
            log.close()

    def _beside_its_parent(self, outgoing: Outgoing) -> Outgoing:
        fork = outgoing.start.fork
        if fork is None:
            return outgoing
        try:
            parts = self._move(_Which(fork.session, fork.base))
        except NotFound as error:
            raise NotFound(f"session {fork.session!r}, which {outgoing.id} builds on: {error.message}") from None
        part = next((part for part in parts if fork.seq <= part.upto), None)
        if part is None:
            # That was merged into something there, or is there under another name: now it is needed itself.
            part = next(part for part in self._bring(_Which(fork.session, fork.base)) if fork.seq <= part.upto)
        is_itself = part.there == (fork.session, fork.base) and not part.cuts
        return outgoing if is_itself else outgoing.moved(*part.there, part.cuts)

    def _bring(self, name: _Which) -> list[_Part]:
        """Have a session there as such."""
        with closing(self._source.open(name.id, read_only=True, first=name.first)) as log:
            outgoing = self._beside_its_parent(outgoing_of(self._source, log))
            self._placed[name] = self._send(outgoing, self._row(name), may_merge=False)
            return self._placed[name]

    def _log_there(self, name: str, first: str | None) -> Log | None:
        try:
            return self._target.open(name, read_only=True, first=first)
        except NotFound:
            return None

    def _is_another(self, outgoing: Outgoing) -> bool:
        """Whether the session there that is called so is not this one."""
        try:
            log = self._target.open(outgoing.id)
        except NotFound:
            return False
        with closing(log):
            return next((item.id for item in log.read() if isinstance(item, Start)), outgoing.first) != outgoing.first

    def _send(self, outgoing: Outgoing, row: Transferred, *, may_merge: bool = True) -> list[_Part]:
        """Bring over what is missing; where both sides went on, as a fork."""
        parts: list[_Part] = []
        for _ in range(_TRIES):
            if outgoing.source in self._live and self._is_another(outgoing):
                raise _another(outgoing.id)
            row.erased += self._erasures.apply(outgoing)
            theirs = self._log_there(outgoing.id, outgoing.first)
            try:
                meeting = divergence_of(outgoing, theirs)
                if meeting.mine is None:
                    break
                if not meeting.has_theirs:
                    self._carry(outgoing, meeting, row, is_new=theirs is None)
                    row.erased += self._erasures.apply(outgoing)
                    row.outcome = row.outcome if row.outcome != "same" else "new" if theirs is None else "grown"
                    break
                if meeting.common is None:
                    break
                parts.append(_Part(meeting.common.origin, _Which(outgoing.id, outgoing.first), outgoing.cuts))
                if may_merge and self._merged(outgoing, meeting, row):
                    return parts
                outgoing = outgoing.forked(
                    meeting.common, meeting.mine, name=self._named(outgoing, meeting.common, meeting.mine)
                )
                row.outcome, row.into = "forked", outgoing.id
            except (Conflict, AlreadyExists):
                continue  # somebody wrote there meanwhile: look again
            finally:
                if theirs is not None:
                    theirs.close()
        else:
            raise Conflict(
                f"session {outgoing.id} changes faster over there than it can be brought", hint="try it again"
            )
        if meeting.common is None and meeting.has_theirs:
            raise _another(outgoing.id)
        if not row.entries:
            row.outcome = "same"
        return [*parts, _Part(_END, _Which(outgoing.id, outgoing.first), outgoing.cuts)]

    def _named(self, outgoing: Outgoing, common: Shipment, first: Shipment) -> str | None:
        """What the fork is called there that begins with an entry which was erased since; None if there is none."""
        for which, row in self._there.items() if first.entry.void else ():
            fork = row.start.fork if row.start is not None else None
            if fork is None or (fork.base, fork.seq, fork.id) != (outgoing.first, common.entry.seq, common.entry.id):
                continue
            with closing(self._target.open(which.id, read_only=True, first=which.first)) as log:
                if second_of(outgoing_of(self._target, log)) == first.entry.id:
                    return which.first
        return None

    def _dropped(self, outgoing: Outgoing) -> frozenset[str]:
        with opened(
            self._source, self._source.open(outgoing.source[0], read_only=True, first=outgoing.source[1])
        ) as history:
            return frozenset(history.state.dropped)

    def _merged(self, outgoing: Outgoing, meeting: Divergence, row: Transferred) -> bool:
        """Facts, notes and spending need no fork: they are appended there, as those of two processes would be."""
        if meeting.common is None or not merges(outgoing, meeting.last):
            return False
        if self._is_another(outgoing):
            return False
        try:
            log = self._target.open(outgoing.id)
        except NotFound:
            return False
        with appending(self._target, log) as appender:
            added = merge(appender, outgoing, meeting.last, dry_run=self._dry_run)
        if added:
            row.outcome, row.entries = "merged", row.entries + added
        return True

    # ── lines and what they need ──────────────────────────────────────────────────────────────────

    def _carry(self, outgoing: Outgoing, meeting: Divergence, row: Transferred, *, is_new: bool) -> None:
        after = 0 if is_new else meeting.last
        is_live = outgoing.source in self._live
        deleted = not is_live if is_new else not (is_live and outgoing.source in self._wanted)
        digest, sent, has_alias = sha256(), 0, False
        first = _BEGINNING_BYTES if is_new else _BYTES
        for portion in _chunks(outgoing.lines(after=meeting.last), row.problems, first):
            chunk = self._erasures.in_flight(outgoing, portion)
            if self._dry_run:
                cargo = self._carrier.load(chunk, lambda: self._dropped(outgoing))
                row.blobs += len(cargo.lacking) + len(cargo.new_blobs)
            else:
                lines = [carried.line for carried in chunk]
                adopt = partial(
                    self._target.adopt,
                    outgoing.id,
                    lines,
                    after=after,
                    first=outgoing.first,
                    parent=outgoing.start.fork,
                    deleted=deleted,
                )
                cargo = self._bring_before(adopt, outgoing, chunk, row)
                digest.update(b"".join(line + b"\n" for line in lines))
            row.problems += [problem for problem in cargo.problems if problem not in row.problems]
            after = chunk[-1].entry.seq
            sent += len(chunk)
            has_alias = has_alias or any(isinstance(carried.entry, Alias) for carried in chunk)
            row.private += 0 if self._include_ignored else left_out(carried.entry for carried in chunk)
            row.entries += len(chunk)
        if has_alias and not self._dry_run:
            aliases_changed(self._target)
        if sent and not self._dry_run:
            self._compare(_Which(outgoing.id, outgoing.first), meeting.last, after, digest.digest())

    def _bring_before(
        self, adopt: Callable[[], None], outgoing: Outgoing, chunk: list[Shipment], row: Transferred
    ) -> Cargo:
        """Bring what lines need, then the lines."""
        if not any(carried.blobs or carried.entry.blobs for carried in chunk):
            adopt()
            return Cargo()
        source, target = self._source, self._target
        for is_last in (False, True):
            # From finding out what is there until an entry refers to it, nobody collects any of it.
            with held(source), target.keeping():
                cargo = self._carrier.load(chunk, lambda: self._dropped(outgoing))
                if cargo.lacking or cargo.new_blobs or cargo.lost:
                    blobs, size = self._carrier.bring(cargo)
                    row.blobs += blobs
                    row.blob_bytes += size
                if is_last or not cargo.halves:
                    adopt()
                    self._carrier.arrived(cargo)
                    return cargo
            # What lies there of a checkpoint that nobody needed any more must not make one of it that has holes.
            with suppress(Corrupt):
                forget_unneeded(target, cargo.halves)
        raise AssertionError

    def _compare(self, name: _Which, after: int, last: int, digest: bytes) -> None:
        """Read back what was sent: it has to be what was sent."""
        whole = sha256()
        with closing(self._target.open(name.id, read_only=True, first=name.first)) as theirs:
            for item in theirs.lines(after=after):
                if isinstance(item, WrittenLine):
                    if item.entry.seq > last:
                        break
                    whole.update(item.line + b"\n")
        if whole.digest() != digest:
            raise Corrupt(
                f"session {name.id} is not over there as it was sent, after entry {after}",
                hint="look at it there with `turnlog doctor`",
            )


_END = 1 << 62


def _another(name: str) -> AlreadyExists:
    return AlreadyExists(
        f"session {name!r} over there is another one: only its id is the same",
        hint=f"give one of them another id: `turnlog rm {name}`, then `turnlog restore {name} --as NEW-ID`",
    )


def _is_same(here: Listed, there: Listed) -> bool:
    """Whether two logs end with the same entry: a log only grows, so they are the same then.

    Where it can be merged, that says nothing: a third home may have brought it to both.
    """
    mine, theirs = here.last, there.last
    if mine is None or theirs is None or here.start is None or there.start is None or mine.merges:
        return False
    return (mine.seq, mine.id, mine.at, mine.type) == (theirs.seq, theirs.id, theirs.at, theirs.type)


def _chunks(items: Iterable[Shipment | Damage], problems: list[str], first: int) -> Iterator[list[Shipment]]:
    """Lines in portions that hold every batch whole, the first one up to so many bytes; damage is told."""
    chunk: list[Shipment] = []
    size, most = 0, first
    for item in items:
        if isinstance(item, Damage):
            what = "" if item.seq is None else f", entry {item.seq}"
            problems.append(f"{item.kind} at byte {item.offset} of the log{what}")
            continue
        chunk.append(item)
        size += len(item.line)
        if size >= most and not item.entry.more:
            yield chunk
            chunk, size, most = [], 0, _BYTES
    if chunk:
        yield chunk


def sides(store: Store, other: Store, ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Which of these sessions the one has, and which the other; raises `NotFound` for one that nobody has."""
    wanted = list(ids)
    here, there = set(derived.ids(store)), set(derived.ids(other))
    for name in wanted:
        if name not in here and name not in there:
            raise NotFound(f"no session {name!r:.80} in either home", hint="home.find gives the id for a beginning")
    return [name for name in wanted if name in here], [name for name in wanted if name in there]
