"""Transferring sessions from one home to another: parents first, blobs before lines, only what is missing.

An interruption leaves a beginning at the target, and the next run continues after it: there is no state besides the
logs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial

from msgspec import Struct

from turnlog.errors import AlreadyExists, Conflict, Corrupt, Invalid, NotFound, TurnlogError, Unavailable
from turnlog.log.digest import sha256
from turnlog.log.entry import Alias
from turnlog.log.written import WrittenLine
from turnlog.store import Listed, Log, Store, derived
from turnlog.thread.appender import appending
from turnlog.thread.history import opened
from turnlog.thread.home.alias import invalidate_aliases
from turnlog.thread.space.checkpointcontent import count_with_private_roots
from turnlog.thread.space.garbage import forget_unneeded
from turnlog.transfer.agreement import Divergence, OtherSessionError, divergence_of, end_alike
from turnlog.transfer.blobs import BlobTransfer, NeededBlobs, keeping_if_writable
from turnlog.transfer.erased import Erasures
from turnlog.transfer.family import families_of, with_subagents
from turnlog.transfer.merge import count_new, merge, merges
from turnlog.transfer.original import existing_fork_id, original_at_target
from turnlog.transfer.outgoing import CHUNK_BYTES, Outgoing, OutgoingLine, SessionKey, chunks_of, outgoing_of
from turnlog.transfer.private import transfer_private
from turnlog.transfer.report import Transferred, add_blobs, add_problems

_BEGINNING_BYTES = 64 << 20
"""The part of a new session that arrives at once, so that nearly all sessions arrive completely or not at all."""
_TRIES = 100
_EVERYTHING = 1 << 62
"""Above the `seq` of any entry: a part that has all entries, later ones too."""

Tell = Callable[[int, int, str], None]
"""Called before each session with the number done, the total, and the id of the session."""


class _Part(Struct, frozen=True):
    """Where the entries of a session up to `upto` are at the target."""

    upto: int
    """The last of these entries, or `_EVERYTHING`."""
    target: SessionKey
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
        self._blobs = BlobTransfer(source, target)
        self._erasures = Erasures(source, target, dry_run=dry_run)
        self._parts: dict[SessionKey, list[_Part]] = {}
        """Where the sessions that were transferred are. An empty list: in the session there that they came from."""
        self._rows: dict[SessionKey, Transferred] = {}
        """The rows that were not reported yet, one for each session."""
        self._errors: dict[SessionKey, TurnlogError] = {}
        """Why sessions could not be transferred: each of their forks fails for that reason, too."""
        self._moving: list[SessionKey] = []
        self._live_keys: set[SessionKey] = set()
        self._chosen: set[SessionKey] = set()
        self._target_listing: dict[SessionKey, Listed] = {}
        self._deleted_there: set[SessionKey] = set()

    def run(self, ids: Iterable[str] | None, tell: Tell | None = None) -> Iterator[Transferred]:
        """Transfer these sessions (all, for None), with the sessions they were forked from and their subagents."""
        source, target = self._source, self._target
        live = {SessionKey(row.id, row.first): row for row in source.listing()}
        self._live_keys = set(live)
        self._target_listing = {SessionKey(row.id, row.first): row for row in target.listing()}
        self._deleted_there = {SessionKey(row.id, row.first) for row in target.listing("deleted")}
        chosen = sorted(live) if ids is None else with_subagents(source, live, ids)
        self._chosen = set(chosen)
        done = 0
        for family in families_of(source, live.values(), chosen):
            for key in family:
                if tell is not None:
                    tell(done, len(chosen), key.id)
                done += 1
                if key not in self._parts:  # a parent may have been transferred with its fork
                    self._transfer_one(key, live.get(key))
            yield from self._reports()

    def _row(self, key: SessionKey) -> Transferred:
        return self._rows.setdefault(key, Transferred(key.id))

    def _reports(self) -> Iterator[Transferred]:
        """Yield the rows of a family, of which nothing more is transferred in this run."""
        while self._rows:
            key = next(iter(self._rows))
            row = self._rows[key]
            if self._include_ignored and key in self._chosen and row.error is None and row.outcome != "deleted":
                try:
                    transfer_private(self._source, self._target, self._blobs, key, row, self._dry_run)
                except Unavailable:
                    raise
                except TurnlogError as error:
                    self._fail(key, error)
            del self._rows[key]
            yield row

    def _transfer_one(self, key: SessionKey, listed: Listed | None) -> None:
        """Transfer one session and record the outcome. One in the trash there grows only if a fork needs that."""
        at_target = self._target_listing.get(key)
        is_same = listed is not None and at_target is not None and end_alike(listed, at_target)
        if is_same and self._erasures.are_there(key.first):
            self._parts[key] = [_Part(_EVERYTHING, key, ())]
            self._row(key)
            return
        try:
            if self._is_in_trash_there(key):
                row = self._row(key)
                row.outcome = "deleted"
                with closing(self._source.open(key.id, read_only=True, first=key.first)) as log:
                    row.erased += self._erasures.apply(outgoing_of(self._source, log))
                return
            self._move(key)
        except Unavailable:
            raise
        except TurnlogError as error:
            self._fail(key, error)

    def _is_in_trash_there(self, key: SessionKey) -> bool:
        return key in self._deleted_there and key in self._live_keys

    def _fail(self, key: SessionKey, error: TurnlogError) -> None:
        row = self._row(key)
        row.outcome, row.error = "failed", error
        self._errors[key] = error

    # ── one session ───────────────────────────────────────────────────────────────────────────────

    def _move(self, key: SessionKey) -> list[_Part]:
        """Transfer a session, after its parents. Returns where its entries are at the target."""
        if key in self._parts:
            return self._parts[key]
        if key in self._errors:
            raise self._errors[key]
        if key in self._moving:
            raise Corrupt(f"session {key.id} is a fork of itself", hint=f"look with `turnlog doctor {key.id}`")
        log = self._source.open(key.id, read_only=True, first=key.first)
        self._moving.append(key)
        try:
            outgoing = outgoing_of(self._source, log)
            original = original_at_target(self._target, self._target_listing.values(), self._source, outgoing)
            if original is None:
                outgoing = self._rebased_on_parent(outgoing)
            row = self._row(key)
            row.outcome = "same"
            if original is None:
                self._parts[key] = self._send(outgoing, row)
            else:
                row.erased += self._erasures.apply_to_original(key.first, original)
                self._parts[key] = []
            if row.outcome == "same" and self._is_in_trash_there(key):
                row.outcome = "deleted"
            elif row.outcome == "same" and row.erased:
                row.outcome = "erased"
            return self._parts[key]
        except Unavailable:
            raise
        except TurnlogError as error:
            self._fail(key, error)
            raise
        finally:
            self._moving.pop()
            log.close()

    def _rebased_on_parent(self, outgoing: Outgoing) -> Outgoing:
        fork = outgoing.start.fork
        if fork is None:
            return outgoing
        parent = SessionKey(fork.session, fork.base)
        try:
            parts = self._move(parent)
        except NotFound as error:
            raise NotFound(f"session {fork.session!r}, which {outgoing.id} builds on: {error.message}") from None
        part = next((part for part in parts if fork.seq <= part.upto), None)
        if part is None:
            # The parent was merged into another session there, or has another id: now it is needed itself.
            part = next(part for part in self._send_without_merge(parent) if fork.seq <= part.upto)
        return outgoing if part.target == parent and not part.cuts else outgoing.moved(*part.target, part.cuts)

    def _send_without_merge(self, key: SessionKey) -> list[_Part]:
        """Transfer a session without merging it, because another one builds on it."""
        with closing(self._source.open(key.id, read_only=True, first=key.first)) as log:
            outgoing = self._rebased_on_parent(outgoing_of(self._source, log))
            self._parts[key] = self._send(outgoing, self._row(key), may_merge=False)
            return self._parts[key]

    @contextmanager
    def _target_log(self, key: SessionKey) -> Generator[Log | None]:
        """Open the log of that session at the target; None if there is none."""
        try:
            log = self._target.open(key.id, read_only=True, first=key.first)
        except NotFound:
            log = None
        with nullcontext() if log is None else closing(log):
            yield log

    def _is_live_there(self, outgoing: Outgoing) -> bool:
        """Whether the target has this session, and not in its trash. Raises `OtherSessionError` if another has its id.

        This only looks at the listing: to open a log for writing may change its file.
        """
        row = next(derived.sessions(self._target, ids=[outgoing.id]), None)
        if row is not None and row.start is not None and row.first != outgoing.first:
            raise OtherSessionError(outgoing.id)
        return row is not None

    def _send(self, outgoing: Outgoing, row: Transferred, *, may_merge: bool = True) -> list[_Part]:
        """Send what is missing; if both sides continued, send it as a fork. Returns where the entries are then."""
        parts: list[_Part] = []
        for _ in range(_TRIES):
            if outgoing.source in self._live_keys:
                self._is_live_there(outgoing)
            row.erased += self._erasures.apply(outgoing)
            try:
                fork = self._send_or_fork(outgoing, row, parts, may_merge=may_merge)
            except OtherSessionError:
                raise
            except (Conflict, AlreadyExists):
                continue  # another process wrote there concurrently: compare again
            if fork is None:
                return parts
            outgoing = fork
        raise Conflict(f"session {outgoing.id} changes faster over there than it can be brought", hint="try it again")

    def _send_or_fork(
        self, outgoing: Outgoing, row: Transferred, parts: list[_Part], *, may_merge: bool
    ) -> Outgoing | None:
        """Send what is missing and add to `parts` where it is. If both sides continued, return the fork to be sent."""
        with self._target_log(outgoing.key) as log:
            divergence = divergence_of(outgoing, log)
            if divergence.mine is not None and divergence.has_theirs:
                if divergence.common is None:
                    raise OtherSessionError(outgoing.id)
                parts.append(_Part(divergence.common.origin, outgoing.key, outgoing.cuts))
                if may_merge and self._try_merge(outgoing, divergence, row):
                    return None
                rows = self._target_listing.values()
                name = existing_fork_id(self._target, rows, outgoing, divergence.common, divergence.mine)
                fork = outgoing.forked(divergence.common, divergence.mine, name=name)
                row.outcome, row.into = "forked", fork.id
                return fork
            if divergence.mine is not None:
                self._send_lines(outgoing, divergence, row, is_new=log is None)
                row.erased += self._erasures.apply(outgoing)
                row.outcome = row.outcome if row.outcome != "same" else "new" if log is None else "grown"
            elif divergence.common is None and divergence.has_theirs:
                raise OtherSessionError(outgoing.id)
        if not row.entries:
            row.outcome = "same"
        parts.append(_Part(_EVERYTHING, outgoing.key, outgoing.cuts))
        return None

    def _dropped(self, outgoing: Outgoing) -> frozenset[str]:
        key = outgoing.source
        with opened(self._source, self._source.open(key.id, read_only=True, first=key.first)) as history:
            return frozenset(history.state.dropped)

    def _try_merge(self, outgoing: Outgoing, divergence: Divergence, row: Transferred) -> bool:
        """Merge facts, notes and usage into the session there. Returns whether that was possible."""
        if not merges(outgoing, divergence.last) or not self._is_live_there(outgoing):
            return False
        try:
            log = self._target.open(outgoing.id, read_only=self._dry_run, first=outgoing.first)
        except NotFound:
            return False
        if self._dry_run:
            with opened(self._target, log) as history:
                added = count_new(history, outgoing, divergence.last)
        else:
            with appending(self._target, log) as appender:
                added = merge(appender, outgoing, divergence.last)
        if added:
            row.outcome, row.entries = "merged", row.entries + added
        return True

    # ── lines and what they need ──────────────────────────────────────────────────────────────────

    def _send_lines(self, outgoing: Outgoing, divergence: Divergence, row: Transferred, *, is_new: bool) -> None:
        """Send the lines after the last common entry, and compare what is there then."""
        after = 0 if is_new else divergence.last
        is_live = outgoing.source in self._live_keys
        deleted = not is_live if is_new else not (is_live and outgoing.source in self._chosen)
        digest, sent, has_alias = sha256(), 0, False
        first_chunk_bytes = _BEGINNING_BYTES if is_new else CHUNK_BYTES
        damage: list[str] = []
        facts = self._erasures.erased_facts(outgoing)
        for portion in chunks_of(outgoing.lines(after=divergence.last), damage, first_chunk_bytes):
            chunk = self._erasures.without_erased(outgoing, portion, facts)
            needs = self._send_chunk(outgoing, chunk, row, after=after, deleted=deleted)
            add_problems(row, [*damage, *needs.problems])
            row.private += 0 if self._include_ignored else count_with_private_roots(line.entry for line in chunk)
            row.entries += len(chunk)
            sent += len(chunk)
            digest.update(b"".join(line.line + b"\n" for line in chunk))
            has_alias = has_alias or any(isinstance(line.entry, Alias) for line in chunk)
            after = chunk[-1].entry.seq
        add_problems(row, damage)
        if self._dry_run or not sent:
            return
        if has_alias:
            invalidate_aliases(self._target)
        self._compare(outgoing.key, divergence.last, after, digest.digest())

    def _send_chunk(
        self, outgoing: Outgoing, chunk: list[OutgoingLine], row: Transferred, *, after: int, deleted: bool
    ) -> NeededBlobs:
        """Send lines with the blobs that they need, or only count these in a dry run."""
        if self._dry_run:
            needs = self._blobs.load(chunk, lambda: self._dropped(outgoing))
            row.blobs += len(needs.lacking) + len(needs.new_blobs)
            return needs
        adopt = partial(
            self._target.adopt,
            outgoing.id,
            [line.line for line in chunk],
            after=after,
            first=outgoing.first,
            parent=outgoing.start.fork,
            deleted=deleted,
        )
        return self._send_with_blobs(adopt, outgoing, chunk, row)

    def _send_with_blobs(
        self, adopt: Callable[[], None], outgoing: Outgoing, chunk: list[OutgoingLine], row: Transferred
    ) -> NeededBlobs:
        """Transfer the blobs that lines need, then the lines."""
        if not any(line.blobs or line.entry.blobs for line in chunk):
            adopt()
            return NeededBlobs()
        source, target = self._source, self._target
        for is_last in (False, True):
            # No collection may run between finding what is there and adopting an entry that refers to it.
            with keeping_if_writable(source), target.keeping():
                needs = self._blobs.load(chunk, lambda: self._dropped(outgoing))
                if needs.lacking or needs.new_blobs or needs.lost:
                    add_blobs(row, self._blobs.transfer(needs))
                if is_last or not needs.incomplete_roots:
                    adopt()
                    self._blobs.record_present(needs)
                    return needs
            # Remains of a checkpoint that was no longer needed there must not make an incomplete one out of it.
            with suppress(Corrupt):
                forget_unneeded(target, needs.incomplete_roots)
        raise AssertionError

    def _compare(self, key: SessionKey, after: int, last: int, digest: bytes) -> None:
        """Read back what was sent, and compare it."""
        whole = sha256()
        with closing(self._target.open(key.id, read_only=True, first=key.first)) as theirs:
            for item in theirs.lines(after=after):
                if isinstance(item, WrittenLine):
                    if item.entry.seq > last:
                        break
                    whole.update(item.line + b"\n")
        if whole.digest() != digest:
            raise Corrupt(
                f"session {key.id} is not over there as it was sent, after entry {after}",
                hint="look at it there with `turnlog doctor`",
            )


def sides(store: Store, other: Store, ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """The sessions of `ids` that one store has, and those that the other has; `NotFound` for one that neither has."""
    wanted = list(ids)
    here, there = set(derived.ids(store)), set(derived.ids(other))
    for name in wanted:
        if name not in here and name not in there:
            raise NotFound(f"no session {name!r:.80} in either home", hint="home.find gives the id for a beginning")
    return [name for name in wanted if name in here], [name for name in wanted if name in there]
