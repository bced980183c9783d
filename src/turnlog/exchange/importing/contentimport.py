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


class _LastReading(NamedTuple):
    """The nodes that the source had when it was last read, oldest first."""

    nodes: list[_KnownNode]
    summary: int = 0
    """How many of them, at the beginning, are the summary of what came before the others."""
    compaction: int = 0
    """The compaction that the summary became. What it keeps is older than it. 0 if there is none."""


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
        last = self._last_reading()
        before = last.nodes
        same = 0
        while same < len(before) and same < len(now) and before[same].digest == now[same]:
            same += 1
        if same == len(before):
            return same
        now_nodes = [records[index] for index in nodes]
        summary, reach = overlap([node.digest for node in before], now)
        if reach <= same:
            return self._branch_off(last, same, now_nodes)
        kept = before[max(len(before) - reach, last.summary) :]
        self._compact(now_nodes[: summary + reach - len(kept)], kept)
        return summary + reach

    def _branch_off(self, last: _LastReading, same: int, now_nodes: list[Record]) -> int:
        """Move the cursor to the last of the first nodes that are still the same; gives how many these are.

        If a summary is at the beginning, what it keeps comes before it here: it is repeated behind a part of that.
        """
        if same < last.summary:
            same = 0
        self._index.cursor = last.nodes[same - 1].seq if same else 0
        if 0 < same < len(now_nodes) and self._index.cursor <= last.compaction:
            self._compact(now_nodes[: last.summary], last.nodes[last.summary : same])
        return same

    def _new_id(self, digest: str) -> str:
        self._index.counts[digest] += 1
        return f"{digest}.{self._index.counts[digest]}"

    def _last_reading(self) -> _LastReading:
        last = _LastReading([])
        for entry in reversed(list(self._history.path(self._index.cursor))):
            if entry.origin is None:
                continue
            digest = entry.id.rpartition(".")[0]
            if not isinstance(entry, Compaction) or entry.trigger != "import":
                last.nodes.append(_KnownNode(digest, entry.seq))
                continue
            whole: Compaction = self._history.whole(entry)
            replaced = [m.id.rpartition(".")[0] for m in whole.replacement if isinstance(m, Message)]
            summary = [_KnownNode(key, entry.seq) for key in ([digest] if digest else replaced)]
            kept = [node for node in last.nodes[last.summary :] if node.seq >= entry.keep > 0]
            last = _LastReading(summary + kept, len(summary), entry.seq)
        return last

    def _compact(self, dropped: list[Record], kept: list[_KnownNode]) -> None:
        """Append a compaction for a beginning that the source replaced by a summary. Here the beginning stays."""
        keep = kept[0].seq if kept else 0
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
