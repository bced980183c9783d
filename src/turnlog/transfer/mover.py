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
from turnlog.log.entry import Alias, Start
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
from turnlog.transfer.merge import merge, merges
from turnlog.transfer.original import original_at_target, second_of
from turnlog.transfer.outgoing import CHUNK_BYTES, Outgoing, OutgoingLine, SessionKey, chunks_of, outgoing_of
from turnlog.transfer.private import transfer_private
from turnlog.transfer.report import Transferred

_BEGINNING_BYTES = 64 << 20
"""The part of a new session that arrives at once, so that nearly all sessions arrive completely or not at all."""
_TRIES = 100

Tell = Callable[[int, int, str], None]
"""Called before each session with the number done, the total, and the id of the session."""


class _Part(Struct, frozen=True):
    """Where the entries of a session up to `upto` are at the target."""

    upto: int
    there: SessionKey
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
        self._rows: dict[SessionKey, Transferred] = {}
        """What is to be reported."""
        self._reported: set[SessionKey] = set()
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
        live = {SessionKey(listed.id, listed.first): listed for listed in source.listing()}
        self._live_keys = set(live)
        self._target_listing = {SessionKey(listed.id, listed.first): listed for listed in target.listing()}
        self._deleted_there = {SessionKey(listed.id, listed.first) for listed in target.listing("deleted")}
        chosen = sorted(live) if ids is None else self._with_subagents(ids)
        self._chosen = set(chosen)
        for index, key in enumerate(chosen):
            if tell is not None:
                tell(index, len(chosen), key.id)
            # Parents may have been transferred with it, and were then reported before their turn.
            if key not in self._parts and key not in self._reported:
                self._settle(key, live.get(key))
            yield from self._reports()
        yield from self._reports()

    def _row(self, key: SessionKey) -> Transferred:
        return self._rows.setdefault(key, Transferred(key.id))

    def _reports(self) -> Iterator[Transferred]:
        while self._rows:
            key = next(iter(self._rows))
            row = self._rows.pop(key)
            self._reported.add(key)
            if self._include_ignored and key in self._chosen:
                transfer_private(self._source, self._target, self._blobs, row, self._dry_run)
            yield row

    def _with_subagents(self, ids: Iterable[str]) -> list[SessionKey]:
        chosen: dict[SessionKey, None] = {}
        live = {key.id: key for key in self._live_keys}
        waiting = [live.get(session_id, SessionKey(session_id, session_id)) for session_id in ids]
        while waiting:
            key = waiting.pop(0)
            if key in chosen:
                continue
            chosen[key] = None
            try:
                with opened(self._source, self._source.open(key.id, read_only=True, first=key.first)) as history:
                    waiting += [live[child] for child in history.state.children if child in live]
            except Unavailable:
                raise
            except TurnlogError:
                continue  # the same error is reported when its turn comes
        return list(chosen)

    def _settle(self, key: SessionKey, listed: Listed | None) -> None:
        """Transfer one session and record the outcome."""
        at_target = self._target_listing.get(key)
        is_same = listed is not None and at_target is not None and end_alike(listed, at_target)
        if is_same and self._erasures.are_there(key.first):
            self._parts[key] = [_Part(_END, key, ())]
            self._rows[key] = Transferred(key.id)
            return
        try:
            if key in self._deleted_there and key in self._live_keys:
                self._rows[key] = Transferred(key.id, "deleted")
                with closing(self._source.open(key.id, read_only=True, first=key.first)) as log:
                    self._rows[key].erased = self._erasures.apply(outgoing_of(self._source, log))
                return
            self._move(key)
        except Unavailable:
            raise
        except TurnlogError as error:
            self._fail(key, error)

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
            outgoing = self._beside_its_parent(outgoing) if original is None else outgoing
            row = self._rows[key] = Transferred(key.id)
            if original is not None:
                row.erased = self._erasures.apply_to_original(key.first, original)
            self._parts[key] = self._send(outgoing, row) if original is None else []
            row.outcome = "erased" if row.erased and row.outcome == "same" else row.outcome
            return self._parts[key]
        except Unavailable:
            raise
        except TurnlogError as error:
            self._fail(key, error)
            raise
        finally:
            self._moving.pop()
            log.close()

    def _beside_its_parent(self, outgoing: Outgoing) -> Outgoing:
        fork = outgoing.start.fork
        if fork is None:
            return outgoing
        try:
            parts = self._move(SessionKey(fork.session, fork.base))
        except NotFound as error:
            raise NotFound(f"session {fork.session!r}, which {outgoing.id} builds on: {error.message}") from None
        part = next((part for part in parts if fork.seq <= part.upto), None)
        if part is None:
            # The parent was merged into another session there, or has another id: now it is needed itself.
            part = next(part for part in self._bring(SessionKey(fork.session, fork.base)) if fork.seq <= part.upto)
        is_itself = part.there == SessionKey(fork.session, fork.base) and not part.cuts
        return outgoing if is_itself else outgoing.moved(*part.there, part.cuts)

    def _bring(self, key: SessionKey) -> list[_Part]:
        """Transfer a session without merging it, because another one builds on it."""
        with closing(self._source.open(key.id, read_only=True, first=key.first)) as log:
            outgoing = self._beside_its_parent(outgoing_of(self._source, log))
            self._parts[key] = self._send(outgoing, self._row(key), may_merge=False)
            return self._parts[key]

    @contextmanager
    def _log_there(self, key: SessionKey) -> Generator[Log | None]:
        """The log of that session at the target; None if there is none."""
        try:
            log = self._target.open(key.id, read_only=True, first=key.first)
        except NotFound:
            log = None
        with nullcontext() if log is None else closing(log):
            yield log

    def _is_another(self, outgoing: Outgoing) -> bool:
        """Whether the session with this id at the target is a different one."""
        try:
            log = self._target.open(outgoing.id)
        except NotFound:
            return False
        with closing(log):
            return next((item.id for item in log.read() if isinstance(item, Start)), outgoing.first) != outgoing.first

    def _send(self, outgoing: Outgoing, row: Transferred, *, may_merge: bool = True) -> list[_Part]:
        """Send what is missing; if both sides continued, send it as a fork. Returns where the entries are then."""
        parts: list[_Part] = []
        for _ in range(_TRIES):
            if outgoing.source in self._live_keys and self._is_another(outgoing):
                raise OtherSessionError(outgoing.id)
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
        with self._log_there(outgoing.key) as log:
            meeting = divergence_of(outgoing, log)
            if meeting.mine is not None and meeting.has_theirs:
                if meeting.common is None:
                    raise OtherSessionError(outgoing.id)
                parts.append(_Part(meeting.common.origin, outgoing.key, outgoing.cuts))
                if may_merge and self._merged(outgoing, meeting, row):
                    return None
                name = self._named(outgoing, meeting.common, meeting.mine)
                fork = outgoing.forked(meeting.common, meeting.mine, name=name)
                row.outcome, row.into = "forked", fork.id
                return fork
            if meeting.mine is not None:
                self._send_lines(outgoing, meeting, row, is_new=log is None)
                row.erased += self._erasures.apply(outgoing)
                row.outcome = row.outcome if row.outcome != "same" else "new" if log is None else "grown"
            elif meeting.common is None and meeting.has_theirs:
                raise OtherSessionError(outgoing.id)
        if not row.entries:
            row.outcome = "same"
        parts.append(_Part(_END, outgoing.key, outgoing.cuts))
        return None

    def _named(self, outgoing: Outgoing, common: OutgoingLine, first: OutgoingLine) -> str | None:
        """The id of the existing fork whose first entry was erased since; None if there is none."""
        for key, row in self._target_listing.items() if first.entry.void else ():
            fork = row.start.fork if row.start is not None else None
            if fork is None or (fork.base, fork.seq, fork.id) != (outgoing.first, common.entry.seq, common.entry.id):
                continue
            with closing(self._target.open(key.id, read_only=True, first=key.first)) as log:
                if second_of(outgoing_of(self._target, log)) == first.entry.id:
                    return key.first
        return None

    def _dropped(self, outgoing: Outgoing) -> frozenset[str]:
        key = outgoing.source
        with opened(self._source, self._source.open(key.id, read_only=True, first=key.first)) as history:
            return frozenset(history.state.dropped)

    def _merged(self, outgoing: Outgoing, meeting: Divergence, row: Transferred) -> bool:
        """Merge facts, notes and usage into the session there. Returns whether that was possible."""
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

    def _send_lines(self, outgoing: Outgoing, meeting: Divergence, row: Transferred, *, is_new: bool) -> None:
        """Send the lines after the last common entry, and compare what is there then."""
        after = 0 if is_new else meeting.last
        is_live = outgoing.source in self._live_keys
        deleted = not is_live if is_new else not (is_live and outgoing.source in self._chosen)
        digest, sent, has_alias = sha256(), 0, False
        first_chunk_bytes = _BEGINNING_BYTES if is_new else CHUNK_BYTES
        lines = outgoing.lines(after=meeting.last)
        for portion in chunks_of(lines, row.problems, first_chunk_bytes):
            chunk = self._erasures.without_erased(outgoing, portion)
            needs = self._send_chunk(outgoing, chunk, row, after=after, deleted=deleted)
            row.problems += [problem for problem in needs.problems if problem not in row.problems]
            row.private += 0 if self._include_ignored else count_with_private_roots(line.entry for line in chunk)
            row.entries += len(chunk)
            sent += len(chunk)
            digest.update(b"".join(line.line + b"\n" for line in chunk))
            has_alias = has_alias or any(isinstance(line.entry, Alias) for line in chunk)
            after = chunk[-1].entry.seq
        if self._dry_run or not sent:
            return
        if has_alias:
            invalidate_aliases(self._target)
        self._compare(outgoing.key, meeting.last, after, digest.digest())

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
                    count, size = self._blobs.transfer(needs)
                    row.blobs += count
                    row.blob_bytes += size
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


_END = 1 << 62


def sides(store: Store, other: Store, ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """The sessions of `ids` that one store has, and those that the other has; `NotFound` for one that neither has."""
    wanted = list(ids)
    here, there = set(derived.ids(store)), set(derived.ids(other))
    for name in wanted:
        if name not in here and name not in there:
            raise NotFound(f"no session {name!r:.80} in either home", hint="home.find gives the id for a beginning")
    return [name for name in wanted if name in here], [name for name in wanted if name in there]
