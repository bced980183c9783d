"""A session written for rho: what was read from it as it was, and everything since in its own way.

One without newer words is written in those of the first rho, which every rho loads: one line per message that the model
sees. Any other goes on in them, and becomes a tree where it branches, as rho itself would make it one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from turnlog.formats import Loss, LossWord, OutputFile, Rendered, Transcript
from turnlog.formats._shared.losses import with_losses
from turnlog.formats._shared.origin import is_of
from turnlog.formats._shared.tally import is_import_note, lost_facts
from turnlog.formats.seeds.rho import logline
from turnlog.formats.seeds.rho.layout import MAX_NAME, chosen_id, is_safe, sidecars, unit_name, workspace_key
from turnlog.formats.seeds.rho.message import NAME, Json, RhoTally, is_newer, origin_of
from turnlog.formats.seeds.rho.path import NodeMaker, RhoLine, Trail, open_calls, reached_by, settled, still_open
from turnlog.formats.seeds.rho.reading import NEWEST
from turnlog.interop.json import decode
from turnlog.interop.records import record_in
from turnlog.interop.rust import compact
from turnlog.interop.value import as_list, fields, in_order
from turnlog.log.entry import AnyEntry, Checkpoint, Custom, Head, Message, Note

_ALSO: tuple[LossWord, ...] = ("time of a message", "usage of a message", "spending apart from answers")
_NOT_FIRST: tuple[LossWord, ...] = (
    "compaction", "message before the last compaction", "edit", "message that was taken out",
    "message on another branch",
)  # fmt: skip
"""What only a newer rho can say."""
_FIRST = logline.HEADER[:5]


def write(transcript: Transcript) -> Rendered:
    """The files of a session, and what they cannot say."""
    writer = _Writer(transcript)
    return with_losses(transcript, writer.run(), NAME, *_ALSO, always=_NOT_FIRST if writer.is_first else ())


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.is_ours = transcript.agent == NAME
        self.about = fields(transcript.origin) if self.is_ours else {}
        self.is_known = self.is_ours and is_safe(transcript.source_id)
        self.session = transcript.source_id if self.is_known else chosen_id(transcript.id)
        self.header: Json = self._header()
        self.tally = RhoTally(transcript.context.get_blob)
        self.entries = list(transcript.entries())
        has_newer = self.is_ours and (
            self.header["version"] != 1 or len(self.header) > len(_FIRST) or any(map(is_newer, self.entries))
        )
        self.is_first = transcript.version == 1 or (transcript.version is None and not has_newer)
        """Whether it is written in the words of the first rho."""
        self.is_cut = self.is_first and has_newer
        if self.is_cut:
            self.header = {name: self.header[name] for name in _FIRST} | {"version": 1}
            self.about = {name: value for name, value in self.about.items() if name not in ("line", "folder")}
        elif not self.is_first and not self.is_ours:
            self.header["version"] = NEWEST
        self.tally.is_rich = not self.is_first
        self.trail = Trail(self.entries, self.tally)
        version = self.header["version"]
        self.is_tree = type(version) is not int or version >= 4
        self.out = bytearray()
        self.waiting: list[RhoLine] = []
        """Lines before the tree: messages may still change places, so that results stand by their calls."""
        self.open: list[str] = []
        """Calls that the last snapshot before the tree left without a result."""
        self.closed: dict[int, logline.RhoState] = {}
        """The state after each entry that ends a record."""
        self.leaf: logline.RhoState | None = None
        self.tip = 0
        """The entry that the last line stands for."""
        self.chunk: list[AnyEntry] = []
        self.kinds: dict[str, Callable[[Any, Json], None]] = {
            "message": self._message, "replace": self._message, "snapshot": self._snapshot,
            "snapshot_delta": self._snapshot, "node": self._node, "leaf": self._set_leaf, "record": self._record,
        }  # fmt: skip
        self.maker = NodeMaker(self.session, self.trail, self.closed, self.tally)

    def run(self) -> Rendered:
        line = self.about.get("line")
        self._put(line.encode() if isinstance(line, str) and self.is_known else compact(self.header))
        if self.is_first:
            self._write_first_version()
        else:
            for entry in self.entries:
                self._write(entry)
            self._close()
            self._write_head()
        cwd = self.header["cwd"] if isinstance(self.header.get("cwd"), str) else "/"
        base = f"{workspace_key(cwd)}/{unit_name(self.about.get('unit'), str(self.header['timestamp']), self.session)}"
        is_folder = bool(self.about.get("folder"))
        beside = sidecars(self.entries, base, self.tally, is_folder=is_folder) if self.is_ours else []
        if self.is_cut:
            self.tally.add("file beside the session", "", len(beside))
            beside = []
        first = f"{base}/session.jsonl" if is_folder else f"{base}.jsonl"
        files = [OutputFile(first, bytes(self.out), 0o600), *beside]
        opens = "" if self.is_first else opened_since(bytes(self.out))
        return Rendered(id=self.session, files=files, lost=self._lost(cwd), opens=opens)

    def _write_first_version(self) -> None:
        """One line for each message that the model sees; those of the first rho's own as they were."""
        history = self.trail.history(self.transcript.head)
        for item in settled(history, self.tally):
            entry = self.trail.nodes.get(item.seq) if self.is_ours and not self.is_cut else None
            is_same = entry is not None and item in self.trail.lines_of(entry)
            line = logline.kept_line(origin_of(entry) or {}) if entry is not None and is_same else None
            self._put(line or compact(replace(item, display=None).record()))

    def _header(self) -> Json:
        kept = fields(self.about.get("header"))
        cwd = (self.transcript.start.workspace if kept else self.transcript.folder) or "/"
        begun = str(max(0, int(self.transcript.created.timestamp())))
        head = {"type": "session", "id": self.session, "version": 1, "timestamp": begun, "cwd": cwd, **kept}
        if not self.is_known or not is_safe(head["id"]):
            head["id"], self.is_known = self.session, False
        return in_order(head, logline.HEADER)

    def _lost(self, cwd: str) -> list[Loss]:
        tally, transcript = self.tally, self.transcript
        for entry in self.entries:
            is_rho = is_of(entry, NAME)
            if isinstance(entry, Note):
                tally.add("note", "", int(not is_import_note(entry) and not (self.is_ours and is_rho)))
            elif isinstance(entry, Checkpoint):
                tally.add("checkpoint of files")
            elif isinstance(entry, Custom):
                tally.add("custom entry", "", int(not entry.blocks and not is_rho))
        is_titled = bool(transcript.title) and transcript.title != self.about.get("title")
        tally.add("title", "one that rho makes, and keeps in its own index", int(is_titled))
        tally.add("workspace", "the folder /", int(not self.is_ours and not transcript.workspace))
        is_long = len(cwd) > MAX_NAME - len("-0123456789abcdef")
        tally.add("name of a folder, which is too long", "a shorter one: rho finds the session by id", int(is_long))
        tally.add("system prompt", "rho makes its own", int(bool(transcript.facts.get("system"))))
        carried = ("title", "workspace", "source_title", "system", *(("model",) if self.is_ours else ()))
        tally.add("fact", "", lost_facts(transcript, carried))
        return tally.losses()

    def _put(self, line: bytes) -> int:
        """Write a line. Gives where it begins."""
        offset = len(self.out)
        self.out += line + b"\n"
        return offset

    def _write(self, entry: AnyEntry) -> None:
        origin = origin_of(entry) if self.is_ours else None
        if origin is None:
            if entry.parent is not None:
                self._write_entry(entry)
        elif (take := self.kinds.get(origin.get("is") or entry.type)) is not None:
            take(entry, origin)

    def _message(self, entry: AnyEntry, origin: Json) -> None:
        """A message of versions 1 to 3, or another history, as it was read; like one of ours if it is elsewhere now."""
        if self._is_elsewhere(entry):
            self._write_anew(entry)
            return
        if origin.get("is") == "replace":
            again = logline.history_line(logline.stamp(entry, origin), self._history(entry))
            line = logline.kept_line(origin) or compact(again)
            self.waiting.append(RhoLine(entry.seq, {}, line=line, kind="replace"))
        else:
            for item in self.trail.lines_of(entry):
                item.line = logline.kept_line(origin)
                self.waiting.append(item)
        self.tip = entry.seq

    def _snapshot(self, entry: AnyEntry, origin: Json) -> None:
        """A snapshot or a delta of versions 2 and 3."""
        if self._is_elsewhere(entry):
            self._write_anew(entry)
        else:
            self._flush()
            self._reach(entry, self._original(entry, origin), self.leaf, logline.kept_line(origin))
            self.open = open_calls(self._history(entry)) or []

    def _node(self, entry: AnyEntry, origin: Json) -> None:
        """A node of the tree as it was read; like one of ours where rho would refuse it after its parent."""
        self._close()
        if not self.is_tree:
            self._upgrade(entry)
        before = self.trail.nearest(self.trail.record(entry)[0].parent or 0, self.closed)
        record, line = self._original(entry, origin), logline.kept_line(origin)
        if before is not None and before.id != record.get("parent_id"):
            # Old lines have other ids where damage before them is gone.
            record, line = {**record, "parent_id": before.id}, None
            if not before.id.startswith("legacy:") and not logline.may_follow(record, before):
                self._write_anew(entry)
                return
        self._reach(entry, record, before, line)

    def _is_elsewhere(self, entry: AnyEntry) -> bool:
        return self.is_tree or self.trail.record(entry)[0].parent != self.tip or bool(self.chunk)

    def _write_anew(self, entry: AnyEntry) -> None:
        for part in self.trail.record(entry):
            self._write_entry(part)

    def _original(self, entry: AnyEntry, origin: Json) -> Json:
        """The snapshot, the delta or the node that was read."""
        if (line := logline.kept_line(origin)) is not None:
            return decode(line)
        fresh = [item.json for part in self.trail.record(entry) for item in self.trail.lines_of(part)]
        messages = fresh if logline.is_delta(origin["record"]) else self._history(entry)
        return logline.filled(origin["record"], messages, fresh)

    def _reach(self, entry: AnyEntry, record: Json, before: logline.RhoState | None, line: bytes | None) -> None:
        """Write a snapshot, a delta or a node, as this line if there is one: rho goes on from the state it leads to."""
        offset = self._put(line or compact(record))
        id = record["id"] if record["type"] == "node" else f"legacy:{offset:016x}"
        before = before or logline.RhoState()
        state = logline.state_after(record, before, id)
        state.waiting = still_open(before.waiting, [shown["message"] for shown in record.get("display_messages", [])])
        self.closed[entry.seq] = self.leaf = state
        self.tip = entry.seq

    def _history(self, entry: AnyEntry) -> list[Json]:
        return [item.json for item in self.trail.history(entry.seq)]

    def _set_leaf(self, entry: Head, origin: Json) -> None:
        self._close()
        self._flush()
        target = self.trail.nearest(entry.to, self.closed)
        if target is None:
            return
        if not self.is_tree:
            self._upgrade(entry)
        line = logline.kept_line(origin)
        record = {"type": "set_leaf", "timestamp": logline.stamp(entry, origin)} if line is None else decode(line)
        if line is None or record["target_id"] != target.id:
            line = compact({**record, "target_id": target.id})
        self._put(line)
        self.leaf, self.tip = target, entry.to

    def _record(self, entry: Note, origin: Json) -> None:
        """A record that is no part of the conversation."""
        self._close()
        data = fields(entry.data)
        line = logline.kept_line(origin) or compact(data)
        if data.get("type") == "session":
            return  # rho refuses a second header
        if data.get("type") == "upgrade":
            self._flush()
            if self.is_tree:
                return
            self.is_tree = True
            if self.leaf is not None and data.get("active_leaf_id") != self.leaf.id:
                line = compact({**data, "active_leaf_id": self.leaf.id})
        if self.is_tree:
            self._put(line)
        else:
            self.waiting.append(RhoLine(entry.seq, {}, line=line, kind="record"))

    def _flush(self, *, is_mended: bool = False) -> None:
        """Write what waits. Where what was read is followed by more of it, it has to stay as it is."""
        waiting, self.waiting = self.waiting, []
        if is_mended and waiting:
            waiting = settled(waiting, self.tally, self.open)
            self.open = []
        reached: list[logline.RhoState] = []
        for item in waiting:
            id = f"legacy:{self._put(item.line or compact(item.record())):016x}"
            before = self.leaf or logline.RhoState()
            if item.kind == "message":
                unanswered = still_open(before.waiting, [item.json])
                self.leaf = replace(before, id=id, revision=before.revision + 1, waiting=unanswered)
            elif item.kind == "replace":
                self.leaf = logline.state_replaced(before, id)
            else:
                continue
            self.leaf.seq = item.seq
            reached.append(self.leaf)
        self.closed.update(reached_by(reached))

    def _upgrade(self, entry: AnyEntry) -> None:
        """The session becomes a tree, as rho makes it one: what is there stays, and each line of it is a node."""
        self._flush(is_mended=True)
        self.is_tree = True
        if self.leaf is None:
            # Nothing is there that could become one: it has been a tree all along, and lost its header.
            self.out[: self.out.index(b"\n")] = compact({**self.header, "version": 4})
            return
        self._put(compact({"type": "upgrade", "timestamp": logline.stamp(entry), "active_leaf_id": self.leaf.id}))

    def _write_entry(self, entry: AnyEntry) -> None:
        is_speech = isinstance(entry, (Message, Custom))
        if not self.is_tree and entry.parent != self.tip and (self.waiting or self.leaf is not None):
            self._upgrade(entry)
        if not self.is_tree:
            if is_speech:
                self.waiting += self.trail.lines_of(entry)
            else:
                messages = [item.json for item in settled(self.trail.history(entry.seq), self.tally)]
                line = compact(logline.history_line(logline.stamp(entry), messages))
                self.waiting.append(RhoLine(entry.seq, {}, line=line, kind="replace"))
            self.tip = entry.seq
            return
        begins = isinstance(entry, Message) and entry.role == "user"
        if self.chunk and (entry.parent != self.chunk[-1].seq or begins or not is_speech):
            self._close()
        self.chunk.append(entry)
        messages = [item.json for part in self.chunk for item in self.trail.lines_of(part)]
        if not is_speech or (entry.seq in self.trail.forks and not open_calls(messages)):
            self._close()

    def _close(self) -> None:
        """Write the entries since the last node as one node."""
        if not self.chunk:
            return
        last, self.chunk = self.chunk[-1], []
        self.tip = last.seq
        node = self.maker.make(last, self.leaf)
        if node is not None:
            self._put(compact(node.record))
            self.closed[last.seq] = self.leaf = node.state

    def _write_head(self) -> None:
        """rho goes on where the conversation stands."""
        head, last = self.trail.nodes.get(self.transcript.head), self.entries[-1]
        self._flush(is_mended=True)
        if head is None or (not self.is_tree and head.seq == self.tip):
            return
        if not self.is_tree:
            self._upgrade(last)
        self.chunk = [head]
        self._close()
        wanted = self.trail.nearest(head.seq, self.closed)
        if wanted is not None and self.leaf is not None and wanted.id != self.leaf.id:
            self._put(compact({"type": "set_leaf", "timestamp": logline.stamp(last), "target_id": wanted.id}))


_SINCE = {
    "Image": "2026-06-29", "replace_history": "2026-07-08", "display_message": "2026-07-13",
    "EnrichedAssistant": "2026-07-14", "AbortedAssistant": "2026-07-14", "snapshot": "2026-07-15",
    "snapshot_delta": "2026-07-15", "upgrade": "2026-07-21", "set_leaf": "2026-07-21", "node": "2026-07-21",
}  # fmt: skip
"""From which day on rho knows a type of record, a field, a kind of message, a block."""


def opened_since(data: bytes) -> str:
    """Which rho opens a file of these lines; empty if every one does."""
    words = {word for line in data.split(b"\n") if line for word in _words(record_in(line))}
    since = max((_SINCE.get(word, "") for word in words), default="")
    return f"rho of {since} or newer, and in no older one" if since else ""


def _words(record: Json) -> Iterator[str]:
    yield from (str(record.get("type")), *record)
    for message in map(fields, as_list(record.get("messages", [record.get("message")]))):
        blocks = as_list(message.get("User", message.get("Assistant")))
        yield from (*message, *(word for block in blocks for word in fields(block)))
