"""A session as checkpoints that owlen loads: those it had to the byte, and one more for what was said since."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from turnlog.errors import Invalid
from turnlog.formats import LossWord, OutputFile, Rendered, Transcript
from turnlog.formats._shared.compactedview import short_id
from turnlog.formats._shared.losses import with_losses
from turnlog.formats._shared.origin import is_of
from turnlog.formats._shared.tally import Tally, is_import_note, plain_text, stand_in
from turnlog.formats.seeds.owlen import checkfile
from turnlog.formats.seeds.owlen.checkfile import AGENT, Lists
from turnlog.interop.patch import apply_flat
from turnlog.interop.place import safe_name
from turnlog.interop.rust import compact, pretty
from turnlog.interop.rusttime import RustTime, rust_time_in, rust_time_of
from turnlog.interop.value import fields
from turnlog.log.block import Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.codec import without_surrogates
from turnlog.log.context.toolturn import INTERRUPTED
from turnlog.log.entry import AnyEntry, Checkpoint, Compaction, Custom, Edit, Message, Note

_ALSO: tuple[LossWord, ...] = (
    "workspace", "system prompt", "model of a message", "time of a message", "fact", "spending apart from answers",
)  # fmt: skip


def write(transcript: Transcript) -> Rendered:
    """The checkpoints of a session, the newest first."""
    return with_losses(transcript, _Writer(transcript).written(), "owlen", *_ALSO)


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.tally = Tally()
        self.nodes = {entry.seq: entry for entry in transcript.path}
        self.saved: list[Note] = []
        on_path = set(self.nodes)
        for entry in transcript.entries():
            if entry.parent is not None:
                self.nodes.setdefault(entry.seq, entry)
            if isinstance(entry, Note):
                if is_of(entry, AGENT) and "stats" in fields(entry.data):
                    self.saved.append(entry)
                elif not is_import_note(entry):
                    self.tally.add("note")
            elif isinstance(entry, Checkpoint) and not is_of(entry, AGENT):
                self.tally.add("checkpoint of files")
            elif isinstance(entry, Message) and entry.seq not in on_path and not is_of(entry, AGENT):
                self.tally.add("message on another branch")
        self.seqs = {entry.id: entry.seq for entry in self.nodes.values()}
        if transcript.title:
            self.tally.add("title")

    def written(self) -> Rendered:
        named = {output.path: output for output in map(self.output, self.saved)}
        self.tally.add("checkpoint that was saved over", "", len(self.saved) - len(named))
        files = list(named.values())
        newest, at = self.newest()
        since = [entry for entry in self.transcript.path if entry.seq > at]
        if newest is None or since:
            self.losses(since)
            files.append(self.fresh(newest, at, since, {output.path for output in files}))
        else:
            name = self.name(newest)
            files.sort(key=lambda output: output.path == name)  # it is the one that says how things stand
        files.reverse()
        return Rendered(id=files[0].path.removesuffix(".json"), files=files, lost=self.tally.losses())

    def newest(self) -> tuple[Note | None, int]:
        """The last checkpoint on the way to where the conversation stands, and the message it was made after."""
        seqs = {"": 0, **{entry.id: entry.seq for entry in self.transcript.path}}
        candidates = [(seqs[name], note) for note in self.saved if (name := _after(note)) in seqs]
        at, note = max(candidates, key=lambda pair: (pair[0], pair[1].seq), default=(0, None))
        return note, at

    def output(self, note: Note) -> OutputFile:
        origin, about = fields(note.origin), fields(note.data)
        document = apply_flat(checkfile.document(about, self.lists(self.way_to(_after(note)))), origin.get("patch"))
        return OutputFile(self.name(note), (compact if origin.get("compact") else pretty)(document))

    def name(self, note: Note) -> str:
        """The file it was in; a name that leads elsewhere is not used."""
        name = fields(note.origin).get("file") or fields(note.data).get("id")
        try:
            return safe_name(f"{name}.json")
        except Invalid:
            return f"checkpoint-{short_id(str(name), length=16)}.json"

    def way_to(self, name: str) -> list[AnyEntry]:
        """The conversation up to the entry with that id."""
        way: list[AnyEntry] = []
        at = self.nodes.get(self.seqs.get(name, 0))
        while at is not None:
            way.append(at)
            at = self.nodes.get(at.parent or 0)
        way.reverse()
        return way

    def fresh(self, before: Note | None, after: int, since: list[AnyEntry], taken: set[str]) -> OutputFile:
        """A checkpoint of the whole conversation as it stands; `before` is the last one, made after that entry."""
        transcript, lists = self.transcript, self.lists(self.transcript.path)
        now = rust_time_of(transcript.updated)
        figures = fields(fields(before.data).get("stats")) if before is not None else {}
        size = sum(len("\n".join(_texts(entry))) for entry in since if isinstance(entry, Message))
        stats = {
            "start_time": figures.get("start_time") or rust_time_of(transcript.created),
            "total_messages": len(lists.prompts),
            "total_tool_calls": len(lists.calls),
            "total_duration": _longer(figures.get("total_duration"), since),
            "estimated_tokens": (figures.get("estimated_tokens") or 0) + size // 4,  # as owlen does it
        }
        second = now[0]
        while f"checkpoint-{second}.json" in taken:
            second += 1
        about = {"id": f"checkpoint-{second}", "timestamp": now, "stats": stats, "diffs": self.diffs(after, now)}
        return OutputFile(f"checkpoint-{second}.json", pretty(checkfile.document(about, lists)))

    def diffs(self, after: int, now: RustTime) -> list[dict[str, Any]]:
        """The files that were changed here since, as far as they are texts."""
        diffs: list[dict[str, Any]] = []
        for file in self.transcript.files(after):
            if file.is_private:
                self.tally.add("ignored file")
                continue
            before, then = _as_text(file.before), _as_text(file.after)
            if not file.is_known or before is None or then is None:
                self.tally.add("file that is no text")
                continue
            self.tally.add("file that was not there", "an empty one", (file.before is None) + (file.after is None))
            time = rust_time_of(file.at) if file.at is not None else now
            path = without_surrogates(file.path)
            self.tally.add("bytes that are not Unicode", "the replacement character", int(path != file.path))
            diffs.append({"path": path, "before": before, "after": then, "timestamp": time})
        return diffs

    def losses(self, since: list[AnyEntry]) -> None:
        messages = [entry for entry in since if isinstance(entry, Message)]
        blocks = [block for message in messages for block in message.blocks]
        self.tally.add("separate texts", "one text", sum(len(_texts(message)) > 1 for message in messages))
        for block in blocks:
            if isinstance(block, ToolResult):
                self.tally.result(block.content)
            elif isinstance(block, Thinking):
                self.tally.add("reasoning")
            elif not isinstance(block, (Text, ToolCall)):
                kind = "unknown" if isinstance(block, UnknownBlock) else block.__struct_config__.tag
                self.tally.add(f"{kind} block", "a text")
        turns = [message.role for message in messages if message.role in ("user", "assistant") and _texts(message)]
        out_of_turn = sum(role == before for before, role in pairwise(["assistant", *turns]))
        self.tally.add("place of a message", "prompts and answers in turn", out_of_turn)
        self.tally.add("system message", "", sum(message.role == "system" for message in messages))
        self.tally.add("usage", "an estimate", sum(message.usage is not None for message in messages))
        self.tally.add("place of a tool call", "a list of its own", sum(isinstance(b, ToolCall) for b in blocks))
        self.tally.add("compaction", "the whole conversation", sum(isinstance(entry, Compaction) for entry in since))
        self.tally.add("edit", "what was said", sum(isinstance(entry, Edit) for entry in since))
        self.tally.add("custom entry", "", sum(isinstance(entry, Custom) for entry in since))

    def lists(self, way: Iterable[AnyEntry]) -> Lists:
        lists = Lists()
        waiting: dict[str, dict[str, Any]] = {}
        for entry in way:
            if not isinstance(entry, Message):
                continue
            for block in entry.blocks:
                if isinstance(block, ToolCall):
                    waiting[block.id] = _call(block, entry)
                    lists.calls.append(waiting[block.id])
                elif isinstance(block, ToolResult) and block.call in waiting:
                    waiting.pop(block.call).update(result=plain_text(block.content), success=not block.is_error)
            texts = _texts(entry)
            if texts and entry.role in ("user", "assistant"):
                (lists.prompts if entry.role == "user" else lists.responses).append("\n".join(texts))
        return lists


def _after(note: Note) -> str:
    return str(fields(note.data).get("after") or "")


def _as_text(data: bytes | None) -> str | None:
    """What owlen takes a file for; None if it is no text."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        return None


def _call(block: ToolCall, message: Message) -> dict[str, Any]:
    """A call that has no result yet: owlen only knows those that have one."""
    kept = fields(message.origin).get("arguments") if is_of(message, AGENT) else None
    given = kept if isinstance(kept, str) else compact(block.input).decode()
    return {"tool_name": block.name, "arguments": given, "result": INTERRUPTED, "success": False}


def _texts(message: Message) -> list[str]:
    """What was said, with a word for what cannot be."""
    apart = (Thinking, ToolCall, ToolResult)
    blocks = [block for block in message.blocks if not isinstance(block, apart)]
    return [block.text if isinstance(block, Text) else stand_in(block) for block in blocks]


def _longer(duration: Any, entries: list[AnyEntry]) -> RustTime:
    more = sum(entry.duration_ms or 0 for entry in entries if isinstance(entry, Message))
    time = rust_time_in(duration) or [0, 0]
    nanos = time[0] * 1_000_000_000 + time[1] + more * 1_000_000
    return [nanos // 1_000_000_000, nanos % 1_000_000_000]
