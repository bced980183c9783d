"""What was erased on one side is erased on the other: the newer form of the same line, and never an older one again."""

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
from turnlog.transfer.outgoing import Outgoing, Shipment


class Erasures:
    """What was erased on both sides, as of the beginning of a run."""

    def __init__(self, source: Store, target: Store, *, dry_run: bool) -> None:
        self._source = source
        self._target = target
        self._dry_run = dry_run
        self._here = _whole(source)
        self._there = _whole(target)

    def are_there(self, first: str) -> bool:
        """Whether all that was erased in a session here was erased there."""
        return self._here.get(first, {}).keys() <= self._there.get(first, {}).keys()

    def apply(self, outgoing: Outgoing) -> int:
        """Erase there what was erased here, in a session as it is to be there; how many entries that were."""
        here = self._here.get(outgoing.source[1], {})
        if not here:
            return 0
        wanted = (one for one in here.values() if one.seq > outgoing.since)
        return self._erase(outgoing.id, outgoing.first, [(outgoing.number(one.seq), one) for one in wanted])

    def apply_to_original(self, first: str, image: Outgoing) -> int:
        """The same in what this session was once made of: its numbers are others, its ids are the same."""
        return self._erase(*image.source, [(None, one) for one in self._here.get(first, {}).values()])

    def _erase(self, session: str, first: str, wanted: list[tuple[int | None, Erasure]]) -> int:
        """`wanted` with the number that each entry probably has there, if that is known."""
        erased_there = self._there.setdefault(first, {})
        if all(one.id in erased_there for _, one in wanted):
            return 0
        try:
            log = self._target.open(session, read_only=True, first=first)
        except NotFound:
            return 0
        with closing(log):
            targets = [
                target for seq, one in wanted if one.id not in erased_there and (target := _place(log, seq, one))
            ]
        if targets and not self._dry_run:
            erase_there(self._target, session, first, targets)
        erased_there.update((one.id, one) for one in targets)
        return len(targets)

    def in_flight(self, outgoing: Outgoing, chunk: list[Shipment]) -> list[Shipment]:
        """Lines on their way, without what was erased over there: it does not come back."""
        gone, facts = self._there.get(outgoing.first, {}), self._facts(outgoing)
        shipments: list[Shipment] = []
        for item in chunk:
            if item.entry.id in gone and not item.entry.void:
                item = _erased(item)
            for name, value in facts:
                if part := repeated_part(restore(item.entry, self._get), name, value):
                    item = _erased(item, part)
            shipments.append(item)
        return shipments

    def _get(self, digest: str) -> bytes | None:
        try:
            return self._source.get(digest)
        except (NotFound, Corrupt):
            return None  # what is lost says nothing

    def _facts(self, outgoing: Outgoing) -> list[tuple[str, Any]]:
        """Facts erased there that our log still has; later lines may repeat them."""
        facts: list[tuple[str, Any]] = []
        name = outgoing.source
        while self._there:
            with closing(self._source.open(name[0], read_only=True, first=name[1])) as log:
                history = History(self._source, log)
                for one in self._there.get(history.first, {}).values():
                    entry = derived.find(log, one.id)
                    if isinstance(entry, (Set, Start)) and not entry.void:
                        facts.append(fact_of(history.whole(entry)))
                if history.fork is None:
                    break
                name = history.fork.session, history.fork.base
        return facts


def _whole(store: Store) -> dict[str, dict[str, Erasure]]:
    erasures = derived.erasures(store)
    return {first: {one.id: one for one in some if not one.part} for first, some in erasures.items()}


def _place(log: Log, seq: int | None, one: Erasure) -> Erasure | None:
    """The same with the number that the entry has there; None if it is not there."""
    near = () if seq is None else log.read(after=seq - 1, before=seq + 1)
    entry = next((item for item in near if isinstance(item, Entry)), None)
    if entry is None or entry.id != one.id:
        entry = derived.find(log, one.id)  # it was merged, and has another number
    return None if entry is None else replace(one, seq=entry.seq)


def _erased(item: Shipment, part: str = "") -> Shipment:
    line = bare(erased_line(item.line, part))
    return Shipment(entry_of(decode(line)), line, item.origin, {})
