"""Importing a source whose records have keys: each is compared with the entry of its key."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from turnlog.exchange.importing.entrybatch import EntryBatch
from turnlog.exchange.importing.resumestate import ResumeState
from turnlog.exchange.importing.sourceindex import GROWN_ANSWER, SourceIndex, growth_id
from turnlog.formats import Jump, Problem, Record, ResumePoint, Step
from turnlog.log.entry import Edit, Message, Spent
from turnlog.log.identity import content_key, gist, id_of
from turnlog.log.startup import NamedTuple
from turnlog.log.usage import Usage
from turnlog.thread.history import History
from turnlog.thread.reader import SessionReader

_STEPS = 4096
"""The resume point of a reading lies at most this many steps before its end."""


class _Step(NamedTuple):
    """A step of the source, and the state before it."""

    entry_id: str
    content: str
    """The digest of a record without a key, which was counted."""
    cursor: int | str
    """The node after which this step continued: its number, or its id while it waits to be appended."""
    turn: str | None


class _OwnNode(NamedTuple):
    """A node of this session, with what its content says."""

    gist: str
    seq: int


class KeyedImport:
    """Appends what is new in one such reading to one session."""

    def __init__(
        self,
        history: History,
        index: SourceIndex,
        batch: EntryBatch,
        origin: dict[str, Any],
        resumed: ResumeState | None,
    ) -> None:
        self._history = history
        self._session = SessionReader(history)
        self._index = index
        self._batch = batch
        self._origin = origin
        self._is_resumed = resumed is not None
        state = resumed or ResumeState()
        self._content_counts: Counter[str] = Counter(state.content_counts)
        """How often each content without a key has come, by its digest."""
        self._growths: list[Edit | Spent] = []
        """What known messages grew by, until the next entry is appended: nodes that are here may follow them."""
        self._steps_read = state.steps
        self._last_steps: deque[_Step] = deque(maxlen=_STEPS)

    def run(self, steps: Iterator[Step]) -> None:
        """Append what is new in these steps, in their order."""
        if not self._steps_read:
            self._index.cursor = 0
        self._batch.is_keyed = True
        own_path = self._own_path()
        for step in steps:
            if isinstance(step, Jump):
                self._remember_step("")
                self._follow_jump(step)
                continue
            entry_id = self._entry_id(step)
            self._remember_step(entry_id, "" if step.key is not None else content_key(step.entry))
            if self._index.alias is not None and self._steps_read <= self._index.alias.records:
                self._index.seqs[entry_id] = self._index.cursor = _take_next_node(own_path, step, self._index.cursor)
            else:
                self._import_record(step, entry_id)
        self._append_growths()
        self._batch.flush()
        if self._session.head not in (self._index.cursor, self._batch.own_head) and not self._index.was_moved_here():
            self._batch.jump(self._index.cursor, why="branch")  # what was new is not where the source ends

    def _own_path(self) -> list[_OwnNode]:
        """The nodes of this session at the time when it continued under the id of the source, the newest first."""
        if self._index.alias is None:
            return []
        path = self._history.path(self._index.alias.head)
        return [_OwnNode(gist(self._history.whole(node)), node.seq) for node in path]

    def _entry_id(self, record: Record) -> str:
        if record.key is not None:
            return self._index.key_of(record.key)
        entry_id = id_of(None, record.entry, self._content_counts)
        return entry_id if self._index.alias is None else f"{self._index.alias.native}/{entry_id}"

    def _remember_step(self, entry_id: str, content: str = "") -> None:
        cursor = self._batch.pending or self._index.cursor
        self._last_steps.append(_Step(entry_id, content, cursor, self._index.claims.current))
        self._steps_read += 1

    def _import_record(self, record: Record, entry_id: str) -> None:
        """Append a record if it is new. Both ends of a turn that hooks reported are in the log already."""
        reported_turn = self._index.claims.reported_turn(record.entry)
        if reported_turn is not None:
            self._index.seqs[entry_id] = reported_turn.seq
            return
        seq = self._index.seqs.get(entry_id)
        turn = self._index.claims.turn_of(record, entry_id, is_known=seq is not None)
        if seq is None:
            self._append_growths()
            self._batch.add_record(record, entry_id, turn)
        elif record.entry.is_node:
            self._batch.flush()
            self._index.cursor = self._index.grown(seq)
            if isinstance(record.entry, Message):
                self._note_growth(record.entry, entry_id, seq)

    def _note_growth(self, entry: Message, entry_id: str, seq: int) -> None:
        """Note what a known message grew by since it was first read."""
        edit_id = growth_id(entry_id, len(entry.blocks))
        if len(entry.blocks) <= self._index.sizes.get(seq, len(entry.blocks)) or edit_id in self._index.seqs:
            if seq in self._index.unpaid and entry_id not in self._index.late:
                self._note_spending(entry, entry_id, Usage())
            return
        before = self._history.at(seq)
        booked = self._index.late.get(entry_id, Usage())
        if isinstance(before, Message) and before.usage is not None:
            booked = booked + before.usage
        self._growths.append(Edit(id=edit_id, entry=seq, blocks=entry.blocks, at=entry.at, origin=self._origin))
        self._note_spending(entry, entry_id, booked)

    def _note_spending(self, entry: Message, entry_id: str, booked: Usage) -> None:
        """Note the usage of an answer beyond what is booked of it."""
        more = (entry.usage or Usage()).beyond(booked)
        if more != Usage():
            self._index.late[entry_id] = self._index.late.get(entry_id, Usage()) + more
            request = growth_id(entry_id, len(entry.blocks))  # of a request that comes twice, only the first counts
            spent = Spent(usage=more, model=entry.model, why=GROWN_ANSWER, request=request, origin=self._origin)
            self._growths.append(spent)

    def _append_growths(self) -> None:
        """Append what messages grew by, behind the last node that is here."""
        growths, self._growths = self._growths, []
        for entry in growths:
            self._batch.add(entry)

    def _follow_jump(self, jump: Jump) -> None:
        """Continue after the record that a jump names, and record the jump if it is one of the agent's own."""
        self._append_growths()
        self._batch.flush()
        to = self._index.key_of(jump.to)
        seq = (self._index.seqs.get(to) or self._index.find(to) or None) if jump.to else 0
        if seq is None:
            self._batch.problems.append(Problem(f"goes on after record {jump.to!r:.80}, which is not there"))
            return
        self._index.cursor = seq = self._index.grown(seq)
        entry_id = "" if jump.key is None else self._index.key_of(jump.key)
        is_known = entry_id in self._index.seqs or (self._is_resumed and self._index.find(entry_id))
        if entry_id and not is_known and not self._index.was_moved_here():
            self._batch.jump(seq, entry_id=entry_id, why=jump.why, at=jump.at, origin=jump.origin)
            self._batch.added += 1

    def resume_state(self, point: ResumePoint) -> ResumeState | None:
        """The state at a resume point of this reading; None if it lies too far back."""
        first = self._steps_read - len(self._last_steps)
        if not first <= point.steps <= self._steps_read:
            return None
        index = self._index
        ahead = list(self._last_steps)[point.steps - first :]
        cursor, turn = (ahead[0].cursor, ahead[0].turn) if ahead else (index.cursor, index.claims.current)
        counts = self._content_counts.copy()
        counts.subtract(step.content for step in ahead if step.content)
        ids = {step.entry_id for step in ahead if step.entry_id in index.seqs}
        ids |= {entry_id for entry_id in index.seqs if entry_id.rpartition("~")[0] in ids}
        seqs = {entry_id: index.seqs[entry_id] for entry_id in ids}
        entries = set(seqs.values())
        return ResumeState(
            seq=self._history.state.seq,
            steps=point.steps,
            seqs=seqs,
            booked=index.booked,
            sizes={seq: size for seq, size in index.sizes.items() if seq in entries},
            unpaid=[seq for seq in index.unpaid if seq in entries],
            late={entry_id: usage for entry_id, usage in index.late.items() if entry_id in ids},
            edits=index.edits,
            cursor=index.grown(index.seqs.get(cursor, 0) if isinstance(cursor, str) else cursor),
            latest=index.latest,
            turns=index.claims.recent(),
            turn=turn,
            alias=index.alias,
            moved=index.moved,
            content_counts={content: count for content, count in counts.items() if count},
            has_own=index.has_own,
        )


def _take_next_node(own_path: list[_OwnNode], record: Record, cursor: int) -> int:
    """The node that a record repeats: the next one with the same content. Those before it are taken off the path."""
    wanted = gist(record.entry)
    for index in range(len(own_path) - 1, -1, -1):
        if wanted and own_path[index].gist == wanted:
            seq = own_path[index].seq
            del own_path[index:]
            return seq
    return cursor
