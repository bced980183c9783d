"""Entries as claw's lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript
from turnlog.formats._shared.compactedview import compactions_on, seen_on
from turnlog.formats._shared.losses import count_unseen, with_losses
from turnlog.formats._shared.origin import is_of, origin_of
from turnlog.formats._shared.tally import Tally, lost_facts, stand_in, with_repaired_results
from turnlog.formats.seeds.claw.message import MAX_COUNT, NAME, UPDATED, block_record, message_record, plain_record
from turnlog.formats.seeds.claw.record import file_name
from turnlog.interop.clawjson import with_integers
from turnlog.interop.patch import apply_deep
from turnlog.interop.rust import claw, fnv1a64, trimmed
from turnlog.interop.value import as_list, fields, text
from turnlog.log.block import Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import text_of, visible
from turnlog.log.draft import to_ms
from turnlog.log.entry import Compaction, Custom, Message, Note, Set


def records_of(message: Message, tally: Tally, names: Mapping[str, str], *, is_first: bool) -> Iterable[dict[str, Any]]:
    """A message that is not claw's: each tool result in a message of its own, and no thoughts in the first version."""
    results = [block for block in message.blocks if isinstance(block, ToolResult) and message.role == "tool"]
    rest = [block for block in message.blocks if message.role != "tool" or not isinstance(block, ToolResult)]
    if is_first:
        tally.add("reasoning", "", sum(isinstance(block, Thinking) for block in rest))
        rest = [block for block in rest if not isinstance(block, Thinking)]
    yield from (message_record("tool", [block_record(block, tally, names)], None, tally) for block in results)
    if rest:
        words = [Text(text=stand_in(block)) if isinstance(block, ToolResult) else block for block in rest]
        blocks = [block_record(block, tally, names) for block in words]
        role, usage = ("user" if message.role == "tool" else message.role), message.usage
        yield message_record(role, blocks, usage if role == "assistant" else None, tally)


def write(transcript: Transcript) -> Rendered:
    """The session as a snapshot of claw's: what the model sees, after the record of the last compaction."""
    words: tuple[LossWord, ...] = ("edit", "earlier compaction", "spending apart from answers")
    return with_losses(transcript, _Writer(transcript).written(), NAME, *words)


def _is_prompt(note: Note) -> bool:
    return (origin_of(note, NAME) or {}).get("type") == "prompt_history"


def _needs_newer_claw(message: Message) -> bool:
    """Whether the first claw would refuse it."""
    return any(isinstance(block, (Thinking, UnknownBlock)) for block in message.blocks)


def _is_of_newer_claw(record: dict[str, Any]) -> bool:
    """Whether the first claw refuses it."""
    kinds = [fields(block).get("type") for block in as_list(fields(record.get("message")).get("blocks"))]
    return record.get("type") not in ("session_meta", "compaction", "message") or "thinking" in kinds


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.is_own = transcript.agent == NAME
        self.origin = fields(transcript.origin) if self.is_own else {}
        self.tally = Tally(transcript.context.get_blob)
        self.by_seq = {entry.seq: entry for entry in transcript.path}
        has_newer = self.is_own and self.has_newer()
        self.is_first = transcript.version == 1 or (transcript.version is None and not has_newer)
        """Whether it is written in the words of the first claw."""

    def integers(self, value: Any) -> Any:
        """The same value without the numbers that claw does not have."""
        return with_integers(value, lambda: self.tally.add("number that is no 64-bit integer", "its digits as text"))

    def has_newer(self) -> bool:
        """Whether claw itself said more than its first version can."""
        meta = fields(self.origin.get("meta"))
        if self.origin.get("root") or "model" in meta:
            return True
        return any(
            isinstance(entry, (Note, Custom))
            or (isinstance(entry, Set) and entry.key == "model" and "metadata" not in meta)
            or (isinstance(entry, Message) and _needs_newer_claw(entry))
            for entry in self.transcript.entries()
            if is_of(entry, NAME)
        )

    def written(self) -> Rendered:
        meta = self.meta()
        head = [meta, *self.compaction()]
        marks = list(self.marks())
        # Both are in the order of the log; what a compaction put in has no place there, and comes first.
        body = sorted([*self.messages(), *marks], key=lambda pair: pair[0])
        self.count_losses()
        records = [*head, *(record for _, record in body)]
        data = b"".join(claw(record) + b"\n" for record in records)
        id = str(meta["session_id"])
        name = str(self.origin.get("file") or file_name(id))
        root = text(meta.get("workspace_root"))
        about = {"partition": root if root and not self.origin.get("flat") else None}
        is_newer = not self.is_first and any(map(_is_of_newer_claw, records))
        opens = "claw-code of 2026-08 or newer, and in no older one" if is_newer else ""
        return Rendered(id=id, files=[OutputFile(name, data)], lost=self.tally.losses(), opens=opens, about=about)

    def meta(self) -> dict[str, Any]:
        transcript, facts = self.transcript, self.transcript.facts
        created = to_ms(transcript.created)
        if self.is_own:
            id = str(self.origin.get("id") or transcript.source_id)
            created = self.origin.get("created_at_ms", created)
            updated = facts.get(UPDATED)
            times = [to_ms(at) for e in transcript.path if not is_of(e, NAME) and (at := e.clock or e.at)]
            updated = max([updated if isinstance(updated, int) else created, *times])
        else:
            # The number after the time only has to be another for two sessions of one millisecond.
            id = f"session-{created}-{fnv1a64(transcript.id.encode('utf-8', 'surrogatepass')) % 10**9}"
            updated = max(created, to_ms(transcript.updated))
        record: dict[str, Any] = {
            **self.integers(fields(self.origin.get("meta"))),
            "type": "session_meta", "version": self.origin.get("version", 1), "session_id": id,
            "created_at_ms": created, "updated_at_ms": updated,
        }  # fmt: skip
        model = facts.get("model")
        root = transcript.folder if self.origin.get("root") or not self.is_own else None
        if self.is_first:
            # An early branch of claw put it elsewhere.
            old = fields(fields(self.origin.get("meta")).get("metadata")).get("model")
            self.tally.add("model", "the one that claw is set to", int(bool(model) and old != model))
            self.tally.add("workspace", "the folder that it is put in", int(bool(root)))
            record.pop("model", None)
        else:
            if isinstance(model, str) and model:
                record["model"] = model
            if root:
                record["workspace_root"] = root
        if fork := self.fork():
            record["fork"] = fork
        return record

    def fork(self) -> dict[str, Any] | None:
        if self.is_own:
            return self.origin.get("fork")
        fork = self.transcript.start.fork
        if fork is None:
            return None
        parent, name = fork.session.removeprefix(f"{NAME}-"), trimmed(fork.name or "")
        return {"parent_session_id": parent, **({"branch_name": name} if name else {})}

    def compaction(self) -> Iterable[dict[str, Any]]:
        """The record of the newest compaction that still applies; claw keeps no other."""
        last, meta, count = None, {}, 0
        for last in compactions_on(self.transcript.path):
            meta = fields(last.meta) if is_of(last, NAME) else {}
            count = int(meta.get("count", count + 1))
        if last is None:
            return
        summary = meta.get("summary")
        if not isinstance(summary, str):
            summary = "\n\n".join(text_of(item.blocks) for item in last.replacement if isinstance(item, Message))
        yield {
            **self.integers(fields((origin_of(last, NAME) or {}).get("record"))),
            "type": "compaction", "count": min(count, MAX_COUNT), "summary": summary,
            "removed_message_count": meta.get("removed", self.removed(last)),
        }  # fmt: skip

    def removed(self, compaction: Compaction) -> int:
        before = [entry for entry in self.transcript.path if entry.seq < compaction.seq]
        seen, kept = visible(reversed(before), self.by_seq.get)
        return len(seen) + sum(message.seq < (compaction.keep or compaction.seq) for message in kept)

    def messages(self) -> Iterable[tuple[int, dict[str, Any]]]:
        seen = seen_on(self.transcript.path)
        whole = with_repaired_results(seen, NAME, self.tally)
        names = {b.id: b.name for message in whole for b in message.blocks if isinstance(b, ToolCall)}
        self.seen = {message.seq for message in seen}
        seq = 0
        for message in whole:
            # A result that we had to add stands where its call is.
            seq = max(seq, message.seq)
            if is_of(message, NAME) and not (self.is_first and _needs_newer_claw(message)):
                patch = fields(message.origin).get("patch")
                yield seq, self.integers(apply_deep(plain_record(message, self.tally), patch))
            elif message.blocks:
                self.tally.add("time of a message", "the session's own times")
                self.tally.add("model of a message", "the session's", int(message.model is not None))
                yield from ((seq, record) for record in records_of(message, self.tally, names, is_first=self.is_first))

    def marks(self) -> Iterable[tuple[int, dict[str, Any]]]:
        """What else claw wrote: prompts that were typed, and records of kinds we do not know."""
        for entry in self.transcript.entries():
            origin = origin_of(entry, NAME)
            if origin is None or not isinstance(entry, (Note, Custom)):
                continue
            if self.is_first:
                self.tally.add("prompt that was typed" if isinstance(entry, Note) else "custom entry")
            elif isinstance(entry, Custom):
                if entry.seq in self.by_seq:
                    yield entry.seq, self.integers(entry.data)
            elif _is_prompt(entry):
                at, more = entry.clock or entry.at, self.integers(fields(origin.get("record")))
                stamp = to_ms(at) if at is not None else 0
                record = {"type": "prompt_history", "text": entry.text, "timestamp_ms": stamp, **more}
                yield -1 if origin.get("first") else entry.seq, record

    def count_losses(self) -> None:
        transcript, tally = self.transcript, self.tally
        count_unseen(transcript, tally, self.seen, lambda note: not _is_prompt(note))
        tally.add("title", "", int(bool(transcript.title) and not self.is_own))
        tally.add("system prompt", "claw makes its own", int(bool(transcript.facts.get("system"))))
        carried = ("model", "workspace", "title", "system", "source_title", UPDATED)
        tally.add("fact", "", lost_facts(transcript, carried))
