"""A session as another home gets it: unchanged, or as a fork of what that home has.

If both sides have continued a session, the fork begins after the last common entry. Its first line takes the next
`seq`, so every later entry is one higher than before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt
from turnlog.log.codec import Damage
from turnlog.log.digest import sha256
from turnlog.log.entry import AnyEntry, Entry, Start, Writer
from turnlog.log.ids import handle_of, letters, new_id
from turnlog.log.part import Fork
from turnlog.log.payload import Blobs
from turnlog.log.written import WrittenLine
from turnlog.store import Log, Store
from turnlog.thread.history import History
from turnlog.transfer.renumber import line_of, renumbered

CHUNK_BYTES = 1 << 20
"""So much of a session is sent at once."""

_WORD = 8
"""The length of the word that is added to an id to derive another one."""


class SessionKey(NamedTuple):
    """A session: its id and that of its first entry, because ids of sessions can be used again."""

    id: str
    first: str


class OutgoingLine(Struct, frozen=True, gc=False):
    """One line to be sent."""

    entry: AnyEntry
    line: bytes
    origin: int
    """The `seq` at the source; 0, which no entry has, for a first line that was made for a fork."""
    blobs: Blobs
    """Blobs that the line needs and that are not in the source store."""


class Outgoing:
    """A session as it is sent to another home. `id` is its id there."""

    def __init__(
        self,
        store: Store,
        log: Log,
        *,
        start: Start,
        other_start: Start | None = None,
        since: int = 0,
        cuts: tuple[int, ...] = (),
    ) -> None:
        self._store = store
        self._log = log
        self.start = other_start or start
        """The first line at the target."""
        self.id = self.start.session_id
        self.first = self.start.id
        self._original = start
        self._other_start = other_start
        """The new first line, if it has one."""
        self.since = since
        """Only entries after this `seq` are sent."""
        self.cuts = cuts
        """The entries after which it was forked, in order: later entries are one higher after each."""

    @property
    def source(self) -> SessionKey:
        """The session at the source."""
        return SessionKey(self._log.id, self._original.id)

    @property
    def key(self) -> SessionKey:
        """The session at the target."""
        return SessionKey(self.id, self.first)

    def number(self, seq: int) -> int:
        """Return the `seq` at the target of an entry of the source."""
        for cut in self.cuts:
            seq += seq > cut
        return seq

    def lines(self, *, after: int = 0) -> Iterator[OutgoingLine | Damage]:
        """Yield the lines after entry `after` (a `seq` of the target), oldest first."""
        start = self._other_start
        if start is not None and start.seq > after:
            yield OutgoingLine(start, line_of(start), 0, {})
        for item in self._log.lines(after=max(self.since, after - len(self.cuts))):
            if isinstance(item, Damage):
                yield item
                continue
            line = self._outgoing_line(item)
            if line.entry.seq > after:
                yield line

    def _outgoing_line(self, item: WrittenLine) -> OutgoingLine:
        entry = item.entry
        if self._other_start is None:
            return OutgoingLine(entry, item.line, entry.seq, {})
        is_alone = bool(entry.batch) and entry.seq + entry.more - entry.batch < self.since
        changed, line, blobs = renumbered(entry, self.number, self._store.get, is_alone=is_alone)
        return OutgoingLine(changed, line, entry.seq, blobs)

    def last(self) -> int:
        """Return the `seq` that the last entry has at the target."""
        for item in self._log.read(reverse=True):
            if isinstance(item, Entry):
                return self.number(item.seq) if item.seq > self.since else self.start.seq
        return self.start.seq

    # ── what it becomes where it cannot stay what it is ────────────────────────────────────────────

    def forked(self, common: OutgoingLine, first: OutgoingLine, *, name: str | None = None) -> Outgoing:
        """Return the part after the last common entry as a fork of the target's session. It begins with entry `first`.

        `name` is its existing id at the target, if it cannot be derived any more because `first` was erased.
        """
        cut = common.entry.seq
        with closing(History(self._store, self._log)) as history:
            facts = history.state_at(common.origin or self.since).wide
        host = first.entry.host if isinstance(first.entry, Writer) else None
        start = replace(
            replace(self.start, id=name, session=None) if name else self._start_with_id(b"%d" % cut, first.line),
            seq=cut + 1,
            at=first.entry.at,
            clock=None,
            workspace=facts.get("workspace"),
            title=facts.get("title"),
            fork=Fork(self.id, cut, common.entry.id, host, first=self.first if self.first != self.id else None),
        )
        return self._with_start(start, common.origin or self.since, (*self.cuts, cut))

    def fork_with_id(self, name: str, cut: int, second: str) -> Outgoing | None:
        """Return the fork after entry `cut` if its derived id is `name`; None otherwise.

        If the line that the id was derived from was erased, the id of that entry, `second`, decides.
        """
        lines = (item for item in self.lines(after=cut - 1) if isinstance(item, OutgoingLine))
        common, first = next(lines, None), next(lines, None)
        if common is None or first is None or common.entry.seq != cut:
            return None
        if self._start_with_id(b"%d" % cut, first.line).id == name:
            return self.forked(common, first)
        return self.forked(common, first, name=name) if first.entry.void and first.entry.id == second else None

    def _start_with_id(self, *what: bytes) -> Start:
        """Return the first line with an id that is derived from `what`."""
        parts = what if self.first == self.id else (*what, self.first.encode("utf-8", "surrogatepass"))
        return replace(self.start, id=derived_id(self.id, *parts), session=None)

    def renamed(self, name: str) -> Outgoing:
        """Return the whole session under another id."""
        return self._with_start(replace(self._original, id=new_id(), session=name), self._original.seq, ())

    def moved(self, parent: str, first: str, cuts: tuple[int, ...]) -> Outgoing:
        """Return the session as a fork of another parent: its own became a fork there, and the seqs change with it."""
        fork = self.start.fork
        assert fork is not None
        there = Outgoing(self._store, self._log, start=self._original, cuts=cuts)
        parts = [parent] if first == parent else [parent, first]
        start = replace(
            self._start_with_id(*(name.encode("utf-8", "surrogatepass") for name in parts)),
            seq=there.number(self._original.seq),
            fork=replace(
                fork,
                session=parent,
                first=first if first != parent else None,
                seq=there.number(fork.seq),
                offset=None,
            ),
        )
        return self._with_start(start, self._original.seq, cuts)

    def _with_start(self, start: Start, since: int, cuts: tuple[int, ...]) -> Outgoing:
        if start.unverified:
            raise Corrupt(
                f"the first line of session {self._log.id} was edited, and nobody can make a fork of it",
                hint=f"look with `turnlog doctor {self._log.id}`",
            )
        start = replace(start, more=0, batch=0, sealed=0, again=0, wide=0)
        return Outgoing(self._store, self._log, start=self._original, other_start=start, since=since, cuts=cuts)


def outgoing_of(store: Store, log: Log) -> Outgoing:
    """Return a session as it is sent without changes. Raises `Corrupt` if the first line is not that of the session."""
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
    """Return the id of a session that is made from another one: the same input always gives the same id."""
    parts = [session_id.encode("utf-8", "surrogatepass"), *what]
    digest = sha256(b"\0".join(sha256(part).digest() for part in parts)).digest()
    word = letters(digest[:_WORD])
    handle = handle_of(session_id)
    stem = session_id.removesuffix(f"-{handle}") if handle != session_id else session_id
    return f"{stem[:1000]}-{word}"


def chunks_of(items: Iterable[OutgoingLine | Damage], problems: list[str], first: int) -> Iterator[list[OutgoingLine]]:
    """Yield lines in chunks of whole batches, the first one of up to `first` bytes. Damage is added to `problems`."""
    chunk: list[OutgoingLine] = []
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
            chunk, size, most = [], 0, CHUNK_BYTES
    if chunk:
        yield chunk
