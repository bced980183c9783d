"""What was erased on one side is erased on the other, and a transfer never restores an erased line."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from msgspec.structs import replace

from turnlog.errors import Corrupt, NotFound
from turnlog.log.codec import decode
from turnlog.log.entry import Entry, Set, Start
from turnlog.log.erasure.content import Erasure
from turnlog.log.erasure.line import erased_line
from turnlog.log.payload import restore
from turnlog.log.written import bare, entry_of
from turnlog.store import Log, Store, derived
from turnlog.thread.history import History
from turnlog.thread.removal.erasing import erase_there, fact_of, repeated_part
from turnlog.transfer.outgoing import Outgoing, OutgoingLine, SessionKey


class Erasures:
    """The erasures of both sides, as of the beginning of a run."""

    def __init__(self, source: Store, target: Store, *, dry_run: bool) -> None:
        self._source = source
        self._target = target
        self._dry_run = dry_run
        self._here = _whole(source)
        self._there = _whole(target)

    def are_there(self, first: str) -> bool:
        """Whether everything that was erased here in a session was also erased there."""
        return self._here.get(first, {}).keys() <= self._there.get(first, {}).keys()

    def apply(self, outgoing: Outgoing) -> int:
        """Erase in the target's copy of a session what was erased here; returns the number of entries."""
        here = self._here.get(outgoing.source.first, {})
        if not here:
            return 0
        wanted = (erasure for erasure in here.values() if erasure.seq > outgoing.since)
        return self._erase(outgoing.id, outgoing.first, [(outgoing.number(erasure.seq), erasure) for erasure in wanted])

    def apply_to_original(self, first: str, original: SessionKey) -> int:
        """Erase the same entries in the session that this one was made from: the ids are the same, the seqs are not."""
        return self._erase(*original, [(None, erasure) for erasure in self._here.get(first, {}).values()])

    def _erase(self, session: str, first: str, wanted: list[tuple[int | None, Erasure]]) -> int:
        """Erase entries at the target; `wanted` has the `seq` that each probably has there, if known."""
        erased_there = self._there.setdefault(first, {})
        if all(erasure.id in erased_there for _, erasure in wanted):
            return 0
        try:
            log = self._target.open(session, read_only=True, first=first)
        except NotFound:
            return 0
        with closing(log):
            targets = _at_target(log, [(seq, erasure) for seq, erasure in wanted if erasure.id not in erased_there])
        if targets and not self._dry_run:
            erase_there(self._target, session, first, targets)
        erased_there.update((erasure.id, erasure) for erasure in targets)
        return len(targets)

    def without_erased(
        self, outgoing: Outgoing, chunk: list[OutgoingLine], facts: list[tuple[str, Any]]
    ) -> list[OutgoingLine]:
        """Return lines to be sent, without what was erased at the target and without `facts` that were erased there."""
        erased_ids = self._there.get(outgoing.first, {})
        lines: list[OutgoingLine] = []
        for item in chunk:
            if item.entry.id in erased_ids and not item.entry.void:
                item = _erased(item)
            whole = restore(item.entry, self._get) if facts else item.entry
            for name, value in facts:
                if part := repeated_part(whole, name, value):
                    item = _erased(item, part)
                    whole = restore(item.entry, self._get)
            lines.append(item)
        return lines

    def _get(self, digest: str) -> bytes | None:
        try:
            return self._source.get(digest)
        except (NotFound, Corrupt):
            return None  # missing content cannot repeat a fact

    def erased_facts(self, outgoing: Outgoing) -> list[tuple[str, Any]]:
        """Return the name and value of each fact that was erased there and is still in our logs.

        Later lines of the session may repeat these facts. The logs are that of the session and those it builds on.
        """
        facts: list[tuple[str, Any]] = []
        key = outgoing.source
        while self._there:
            with closing(self._source.open(key.id, read_only=True, first=key.first)) as log:
                history = History(self._source, log)
                erased_there = self._there.get(history.first, {})
                for entry in log.read() if erased_there else ():
                    if isinstance(entry, (Set, Start)) and entry.id in erased_there and not entry.void:
                        facts.append(fact_of(history.whole(entry)))
                if history.fork is None:
                    break
                key = SessionKey(history.fork.session, history.fork.base)
        return facts


def _whole(store: Store) -> dict[str, dict[str, Erasure]]:
    erasures = derived.erasures(store)
    return {first: {erasure.id: erasure for erasure in some if not erasure.part} for first, some in erasures.items()}


def _at_target(log: Log, wanted: list[tuple[int | None, Erasure]]) -> list[Erasure]:
    """Return the erasures with the `seq` that each entry has at the target, without those of which it has no entry."""
    seqs: dict[str, int] = {}
    for seq, erasure in wanted:
        near = () if seq is None else log.read(after=seq - 1, before=seq + 1)
        seqs |= {item.id: item.seq for item in near if isinstance(item, Entry) and item.id == erasure.id}
    others = {erasure.id for _, erasure in wanted} - seqs.keys()
    if others:  # they were merged, and have another `seq`
        seqs |= {item.id: item.seq for item in log.read() if isinstance(item, Entry) and item.id in others}
    return [replace(erasure, seq=seqs[erasure.id]) for _, erasure in wanted if erasure.id in seqs]


def _erased(item: OutgoingLine, part: str = "") -> OutgoingLine:
    line = bare(erased_line(item.line, part))
    return OutgoingLine(entry_of(decode(line)), line, item.origin, {})
