"""Importing a source whose records have no keys: they are told apart by their content.

If the source kept its beginning, only the rest is new. If it replaced its beginning by a summary, that becomes a
compaction here. Any other change in it becomes a branch.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from msgspec.structs import replace

from turnlog.exchange.importing.entrybatch import EntryBatch
from turnlog.exchange.importing.sourceindex import SourceIndex
from turnlog.formats import Record
from turnlog.interop.overlap import overlap
from turnlog.log.entry import Compaction, Message
from turnlog.log.identity import content_key
from turnlog.thread.history import History


class _KnownNode(NamedTuple):
    """A node that is here already."""

    digest: str
    seq: int


class ContentImport:
    """Appends what is new in one such reading to one session."""

    def __init__(self, history: History, index: SourceIndex, batch: EntryBatch, origin: dict[str, Any]) -> None:
        self._history = history
        self._index = index
        self._batch = batch
        self._origin = origin

    def run(self, records: list[Record]) -> None:
        """Append what is new in these records, which are all that the source has now."""
        digests = [content_key(record.entry) for record in records]
        nodes = [index for index, record in enumerate(records) if record.entry.is_node]
        known_count = self._skip_known(records, nodes, [digests[index] for index in nodes])
        skipped = set(nodes[:known_count])
        counts: Counter[str] = Counter()
        for index, record in enumerate(records):
            digest = digests[index]
            if index in skipped:
                continue
            if record.entry.is_node:
                self._batch.add_record(record, self._new_id(digest))
                continue
            counts[digest] += 1
            entry_id = f"{digest}.{counts[digest]}"
            if entry_id not in self._index.seqs:
                self._batch.add_record(record, entry_id)

    def _skip_known(self, records: list[Record], nodes: list[int], now: list[str]) -> int:
        """Move the cursor to the last node that is here already; gives how many nodes of the source are not new.

        `nodes` are the places of the nodes among the records, `now` their digests.
        """
        before = self._last_reading()
        same = 0
        while same < len(before) and same < len(now) and before[same].digest == now[same]:
            same += 1
        self._index.cursor = before[same - 1].seq if same else 0
        if same == len(before):
            return same
        summary, reach = overlap([node.digest for node in before], now)
        if reach <= same:
            return same
        self._index.cursor = before[-1].seq
        self._compact([records[index] for index in nodes[:summary]], before[-reach].seq)
        return summary + reach

    def _new_id(self, digest: str) -> str:
        self._index.counts[digest] += 1
        return f"{digest}.{self._index.counts[digest]}"

    def _last_reading(self) -> list[_KnownNode]:
        """The nodes that the source had when it was last read, oldest first."""
        path = [entry for entry in self._history.path(self._index.cursor) if entry.origin is not None]
        known: list[_KnownNode] = []
        for entry in reversed(path):
            digest = entry.id.rpartition(".")[0]
            if not isinstance(entry, Compaction) or entry.trigger != "import":
                known.append(_KnownNode(digest, entry.seq))
                continue
            whole: Compaction = self._history.whole(entry)
            replaced = [m.id.rpartition(".")[0] for m in whole.replacement if isinstance(m, Message)]
            summary = [digest] if digest else replaced
            kept = [node for node in known if node.seq >= entry.keep > 0]
            known = [_KnownNode(key, entry.seq) for key in summary] + kept
        return known

    def _compact(self, dropped: list[Record], keep: int) -> None:
        """Append a compaction for a beginning that the source replaced by a summary. Here the beginning stays."""
        only = dropped[0].entry if len(dropped) == 1 else None
        if isinstance(only, Compaction):
            compaction = replace(only, id=self._new_id(content_key(only)), keep=keep, trigger="import")
        else:
            replacement: list[Any] = []
            for record in dropped:
                entry = record.entry
                if isinstance(entry, Compaction):
                    replacement += entry.replacement
                elif isinstance(entry, Message):
                    replacement.append(replace(entry, id=self._new_id(content_key(entry))))
            compaction = Compaction(replacement=replacement, keep=keep, trigger="import")
        origin, at = compaction.origin or self._origin, compaction.at or self._index.latest
        self._batch.add(replace(compaction, origin=origin, at=at))
        self._batch.flush()
