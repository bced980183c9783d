"""A session as another home is to have it: just as it is, or as a fork of what that home has.

Where both sides have gone on with a session, the last entry that both have is where the fork begins. Its first line
takes the number after that, so everything behind it is counted one higher than it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.log.codec import Damage
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Entry, Fork, Start, Writer
from turnlog.log.ids import handle_of, letters, new_id
from turnlog.log.payload import Blobs
from turnlog.log.written import WrittenLine
from turnlog.store import Log, Store
from turnlog.thread.history import History
from turnlog.transfer.renumber import line_of, renumbered

_WORD = 8
"""The letters that tell a derived id from the one that it was made of."""


class Shipment(Struct, frozen=True, gc=False):
    """One line on its way."""

    entry: AnyEntry
    line: bytes
    origin: int
    """The number of the entry where it comes from; 0 for a first line that was made for a fork."""
    blobs: Blobs
    """What it needs and the home that it comes from has not."""


class Outgoing:
    """What a session sends to another home. `id` is its id there."""

    def __init__(
        self,
        store: Store,
        log: Log,
        *,
        start: Start,
        made: Start | None = None,
        since: int = 0,
        cuts: tuple[int, ...] = (),
    ) -> None:
        self._store = store
        self._log = log
        self.start = made or start
        """Its first line there."""
        self.id = self.start.session_id
        self.first = self.start.id
        self._original = start
        self._made = made
        """That line, if it is not the one here."""
        self.since = since
        """Only what comes after this entry."""
        self.cuts = cuts
        """Where it was cut, the first time first: whatever comes after is counted one higher."""

    @property
    def source(self) -> tuple[str, str]:
        """The session that it is here, and the id of its first entry."""
        return self._log.id, self._original.id

    def number(self, seq: int) -> int:
        """The number that an entry has there."""
        for cut in self.cuts:
            seq += seq > cut
        return seq

    def lines(self, *, after: int = 0) -> Iterator[Shipment | Damage]:
        """What there is after entry `after` (of the other side), oldest first."""
        start = self._made
        if start is not None and start.seq > after:
            yield Shipment(start, line_of(start), 0, {})
        for item in self._log.lines(after=max(self.since, after - len(self.cuts))):
            if isinstance(item, Damage):
                yield item
                continue
            carried = self._carried(item)
            if carried.entry.seq > after:
                yield carried

    def _carried(self, item: WrittenLine) -> Shipment:
        entry = item.entry
        if self._made is None:
            return Shipment(entry, item.line, entry.seq, {})
        is_alone = bool(entry.batch) and entry.seq + entry.more - entry.batch < self.since
        changed, line, blobs = renumbered(entry, self.number, self._store.get, is_alone=is_alone)
        return Shipment(changed, line, entry.seq, blobs)

    def last(self) -> int:
        """The number of its last entry there."""
        for item in self._log.read(reverse=True):
            if isinstance(item, Entry):
                return self.number(item.seq) if item.seq > self.since else self.start.seq
        return self.start.seq

    # ── what it becomes where it cannot stay what it is ────────────────────────────────────────────

    def forked(self, common: Shipment | None, first: Shipment, *, name: str | None = None) -> Outgoing:
        """The part behind the last entry that both sides have, as a fork of theirs; `first` is where it begins.

        Without any such entry they are two sessions that only have the same id: this one gets another. `name` is what
        it is called there already, where `first` does not say it any more, because it was erased.
        """
        if common is None:
            since = self.since if self._made is not None else self._original.seq
            return self._as(self._called(first.line), since, self.cuts)
        cut = common.entry.seq
        history = History(self._store, self._log)
        facts = history.state_at(common.origin or self.since).wide
        host = first.entry.host if isinstance(first.entry, Writer) else None
        start = replace(
            self._called(b"%d" % cut, first.line) if name is None else replace(self.start, id=name, session=None),
            seq=cut + 1,
            at=first.entry.at,
            clock=None,
            workspace=facts.get("workspace"),
            title=facts.get("title"),
            fork=Fork(self.id, cut, common.entry.id, host, first=self.first if self.first != self.id else None),
        )
        history.close()
        return self._as(start, common.origin or self.since, (*self.cuts, cut))

    def as_called(self, name: str, cut: int, second: str) -> Outgoing | None:
        """What becomes of it behind that entry, where both sides went on, if that is what is called by this name.

        Where the line that gave it the name was erased, the id of that entry tells, `second`.
        """
        lines = (item for item in self.lines(after=max(0, cut - 1)) if isinstance(item, Shipment))
        common = next(lines, None) if cut else None
        first = next(lines, None)
        if first is None or (cut and (common is None or common.entry.seq != cut)):
            return None
        parts = (b"%d" % cut, first.line) if cut else (first.line,)
        if self._called(*parts).id == name:
            return self.forked(common, first)
        return self.forked(common, first, name=name) if cut and first.entry.void and first.entry.id == second else None

    def _called(self, *what: bytes) -> Start:
        """Its first line under a deterministic id derived from `what`."""
        parts = what if self.first == self.id else (*what, self.first.encode("utf-8", "surrogatepass"))
        return replace(self.start, id=derived_id(self.id, *parts), session=None)

    def renamed(self, name: str) -> Outgoing:
        """All of it as another session."""
        return self._as(replace(self._original, id=new_id(), session=name), self._original.seq, ())

    def moved(self, parent: str, first: str, cuts: tuple[int, ...]) -> Outgoing:
        """A fork of something that became another fork there, `parent`, with its entries counted like this."""
        fork = self.start.fork
        assert fork is not None
        there = Outgoing(self._store, self._log, start=self._original, cuts=cuts)
        parts = [parent] if first == parent else [parent, first]
        start = replace(
            self._called(*(name.encode("utf-8", "surrogatepass") for name in parts)),
            seq=there.number(self._original.seq),
            fork=replace(
                fork,
                session=parent,
                first=first if first != parent else None,
                seq=there.number(fork.seq),
                offset=None,
            ),
        )
        return self._as(start, self._original.seq, cuts)

    def _as(self, start: Start, since: int, cuts: tuple[int, ...]) -> Outgoing:
        if start.unverified:
            raise Corrupt(
                f"the first line of session {self._log.id} was edited, and nobody can make a fork of it",
                hint=f"look with `turnlog doctor {self._log.id}`",
            )
        start = replace(start, more=0, batch=0, sealed=0, again=0, wide=0)
        return Outgoing(self._store, self._log, start=self._original, made=start, since=since, cuts=cuts)


def outgoing_of(store: Store, log: Log) -> Outgoing:
    """A session just as it is."""
    first = next((item for item in log.lines() if isinstance(item, WrittenLine)), None)
    if first is None or not isinstance(first.entry, Start):
        raise Corrupt(f"the first line of session {log.id} cannot be read", hint=f"look with `turnlog doctor {log.id}`")
    if first.entry.session_id != log.id:
        raise Corrupt(
            f"the log of session {log.id!r} holds session {first.entry.session_id!r}",
            hint="somebody renamed or copied it",
        )
    return Outgoing(store, log, start=first.entry)


def derived_id(session_id: str, *what: bytes) -> str:
    """The id of a session that comes of another one: for the same reason always the same."""
    parts = [session_id.encode("utf-8", "surrogatepass"), *what]
    digest = sha256(b"\0".join(sha256(part).digest() for part in parts)).digest()
    word = letters(digest[:_WORD])
    handle = handle_of(session_id)
    stem = session_id.removesuffix(f"-{handle}") if handle != session_id else session_id
    return f"{stem[:1000]}-{word}"


def origin_id(derived: str) -> str:
    """The id that `derived_id` made another one of, if it did and that one had no handle at its end."""
    return derived[: -1 - _WORD]
