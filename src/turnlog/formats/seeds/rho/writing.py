"""A session written for rho: what was read from it as it was, and everything since in its own way.

A session that never was in a newer rho is written in the words of the first: one line per message that the model sees,
which every rho loads. A session with newer words goes on in them, and becomes a tree where the conversation branches,
as rho itself would make it one.
"""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.formats import Loss, OutputFile, Rendered, Transcript
from turnlog.formats._shared.json import decode
from turnlog.formats._shared.rest import also_lost
from turnlog.formats._shared.rust import compact
from turnlog.formats._shared.tally import is_import_note, lost_facts
from turnlog.formats._shared.value import fields, in_order
from turnlog.formats.seeds.rho.message import NAME, Json, RhoTally, open_calls, origin_of, still_open
from turnlog.formats.seeds.rho.names import chosen_id, is_cut, is_newer, is_safe, opened_since, unit_name, workspace_key
from turnlog.formats.seeds.rho.path import Growth, RhoLine, Trail, reached_by, settled
from turnlog.formats.seeds.rho.reading import NEWEST
from turnlog.formats.seeds.rho.record import (
    HEADER,
    RhoState,
    after,
    body,
    display,
    line_of,
    node,
    replaced,
    snapshot,
    stamp,
)
from turnlog.formats.seeds.rho.sidecar import sidecars
from turnlog.log.entry import AnyEntry, Checkpoint, Custom, Entry, Head, Message, Note

_ALSO = ("time of a message", "usage of a message", "spending apart from answers")
_NOT_FIRST = (
    "compaction",
    "message before the last compaction",
    "edit",
    "message that was taken out",
    "message on another branch",
)
"""What only a newer rho can say."""
_FIRST = HEADER[:5]


def write(transcript: Transcript) -> Rendered:
    """The files of a session, and what they cannot say."""
    writer = _Writer(transcript)
    return also_lost(transcript, writer.run(), NAME, *_ALSO, always=_NOT_FIRST if writer.is_first else ())


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.is_ours = transcript.agent == NAME
        self.about = fields(transcript.origin) if self.is_ours else {}
        self.is_known = self.is_ours and is_safe(transcript.source_id)
        self.session = transcript.source_id if self.is_known else chosen_id(transcript.id)
        self.header: Json = self._header()
        self.ear = RhoTally(transcript.context.get_blob)
        self.entries = list(transcript.entries())
        has_newer = self.is_ours and (
            self.header["version"] != 1 or len(self.header) > len(_FIRST) or any(map(is_newer, self.entries))
        )
        self.is_first = transcript.version == 1 or (transcript.version is None and not has_newer)
        """Whether it is written in the words of the first rho."""
        self.is_cut = self.is_first and has_newer
        if self.is_cut:
            self.header["version"] = 1
            self.header = {name: self.header[name] for name in _FIRST}
            self.about = {name: value for name, value in self.about.items() if name not in ("line", "folder")}
        elif not self.is_first and not self.is_ours:
            self.header["version"] = NEWEST
        self.trail = Trail(self.entries, self.ear, is_first=self.is_first)
        version = self.header["version"]
        self.is_tree = type(version) is not int or version >= 4
        self.ear.is_rich = not self.is_first
        self.out = bytearray()
        self.waiting: list[RhoLine] = []
        """Lines before the tree: messages may still change places, so that results stand by their calls."""
        self.open: list[str] = []
        """Calls that the last snapshot before the tree left without a result."""
        self.legacy: RhoState = RhoState()
        self.closed: dict[int, RhoState] = {}
        """The state after each entry that ends a record."""
        self.leaf: RhoState | None = None
        self.tip = 0
        """The entry that the last line stands for."""
        self.moved: dict[str, str] = {}
        """The ids of old lines as they were read, and as they are here."""
        self.read = 0
        """How far into the file that was read this is."""
        self.chunk: list[AnyEntry] = []
        self.growth = Growth(self.session, self.trail, self.closed, self.ear)

    def run(self) -> Rendered:
        line = self.about.get("line")
        self._put(line.encode() if isinstance(line, str) and self.is_known else compact(self.header))
        self.read = len(self.out)
        if self.is_first:
            self._say_first()
        else:
            for entry in self.entries:
                self._take(entry)
            self._close()
            self._end()
        cwd = self.header["cwd"] if isinstance(self.header.get("cwd"), str) else "/"
        base = f"{workspace_key(cwd)}/{unit_name(self.about.get('unit'), str(self.header['timestamp']), self.session)}"
        is_folder = bool(self.about.get("folder"))
        beside = sidecars(self.entries, base, self.ear, is_folder=is_folder) if self.is_ours else []
        if self.is_cut:
            self.ear.add("file beside the session", "", len(beside))
            beside = []
        first = f"{base}/session.jsonl" if is_folder else f"{base}.jsonl"
        files = [OutputFile(first, bytes(self.out), 0o600), *beside]
        opens = "" if self.is_first else opened_since(bytes(self.out))
        return Rendered(id=self.session, files=files, lost=self._lost(cwd), opens=opens)

    def _say_first(self) -> None:
        """One line for each message that the model sees; those of the first rho's own as they were."""
        history = self.trail.history(self.transcript.head)
        for item in settled(history, self.ear):
            entry = self.trail.at(item.seq)
            origin = (origin_of(entry) or {}) if entry is not None and self.is_ours and not self.is_cut else {}
            is_same = "line" in origin and entry is not None and item in self.trail.told(entry)
            self._put(origin["line"].encode() if is_same else compact(replace(item, display=None).record()))

    def _header(self) -> Json:
        head: Json = {
            "version": 1,
            "timestamp": stamp(self.transcript.created),
            "cwd": self.transcript.folder or "/",
        }
        if isinstance(self.about.get("header"), dict):
            head = {**head, "cwd": self.transcript.start.workspace or "/", **self.about["header"]}
        head = {"type": "session", "id": self.session, **head}
        if not self.is_known or not is_safe(head["id"]):
            head["id"], self.is_known = self.session, False
        return in_order(head, HEADER)

    def _lost(self, cwd: str) -> list[Loss]:
        ear, transcript = self.ear, self.transcript
        for entry in self.entries:
            if isinstance(entry, Note):
                ear.add("note", "", int(not is_import_note(entry) and not (self.is_ours and _is_rho(entry))))
            elif isinstance(entry, Checkpoint):
                ear.add("checkpoint of files")
            elif isinstance(entry, Custom):
                ear.add("custom entry", "", int(not entry.blocks and not _is_rho(entry)))
        is_titled = bool(transcript.title) and transcript.title != self.about.get("title")
        ear.add("title", "one that rho makes, and keeps in its own index", int(is_titled))
        ear.add("workspace", "the folder /", int(not self.is_ours and not transcript.workspace))
        ear.add("name of a folder, which is too long", "a shorter one: rho finds the session by id", int(is_cut(cwd)))
        ear.add("system prompt", "rho makes its own", int(bool(transcript.facts.get("system"))))
        carried = ("title", "workspace", "source_title", "system", *(("model",) if self.is_ours else ()))
        ear.add("fact", "", lost_facts(transcript, carried))
        return ear.losses()

    def _put(self, line: bytes) -> int:
        """Write a line. Gives where it begins."""
        offset = len(self.out)
        self.out += line + b"\n"
        return offset

    def _take(self, entry: AnyEntry) -> None:
        origin = origin_of(entry) if self.is_ours else None
        kind = "new" if origin is None else origin.get("is", "message")
        if isinstance(entry, Head):
            if origin is not None and kind == "leaf":
                self._set_leaf(entry, origin)
        elif isinstance(entry, Note):
            if origin is not None and kind == "record":
                self._record(entry, origin)
        elif entry.parent is None or kind == "part":
            return
        elif origin is None:
            self._new(entry)
        elif kind == "node":
            self._node(entry, origin)
        else:
            self._old(entry, origin, kind)

    def _old(self, entry: AnyEntry, origin: Json, kind: str) -> None:
        """A record of versions 1 to 3 as it was read; where that is no longer possible, like one of ours."""
        record = self.trail.record(entry)
        if self.is_tree or record[0].parent != self.tip or self.chunk:
            for part in record:
                self._new(part)
            return
        line = line_of(origin)
        if kind == "message":
            for item in self.trail.told(entry):
                item.line, item.gap = line, origin.get("gap", 0)
                self.waiting.append(item)
        else:
            if kind != "replace":
                self._flush()
            self._queue(entry, line or compact(self._state(entry, record, origin, kind)), kind, origin.get("gap", 0))
            if kind != "replace":
                self._flush()
                self.open = open_calls(self._history(entry)) or []
        self.tip = entry.seq

    def _state(self, entry: AnyEntry, record: list[AnyEntry], origin: Json, kind: str) -> Json:
        time = stamp(entry.clock or entry.at, origin)
        if kind == "replace":
            return {"type": "replace_history", "timestamp": time, "messages": self._history(entry)}
        spec: Json = origin.get("node") or {}
        fresh = self._fresh(record)
        messages = self._history(entry) if spec.get("full") else fresh
        inner = body(spec, self.legacy, after(spec, self.legacy, ""), self.session, messages)
        return snapshot(spec, time, inner, display(spec.get("display"), fresh, time))

    def _node(self, entry: AnyEntry, origin: Json) -> None:
        """A node of the tree as it was read."""
        self._close()
        if not self.is_tree:
            self._upgrade(entry)
        record = self.trail.record(entry)
        before = self.trail.nearest(record[0].parent or 0, self.closed)
        spec: Json = origin.get("node") or {}
        state = after(spec, before, origin.get("id", entry.id))
        if "line" in origin:
            line = self._relinked(origin["line"].encode())
        else:
            time, fresh = stamp(entry.clock or entry.at, origin), self._fresh(record)
            inner = body(spec, before, state, self.session, self._history(entry) if spec.get("full") else fresh)
            displays = display(spec.get("display"), fresh, time)
            line = compact(node(spec, state, before.id if before is not None else None, time, inner, displays))
        self._put(line)
        fresh = [displays["message"] for displays in display(spec.get("display"), self._fresh(record), "")]
        state.waiting = still_open(before.waiting if before is not None else [], fresh)
        self.closed[entry.seq] = self.leaf = state
        self.tip = entry.seq

    def _history(self, entry: AnyEntry) -> list[Json]:
        return [item.json for item in self.trail.history(entry.seq)]

    def _fresh(self, record: list[AnyEntry]) -> list[Json]:
        return [item.json for part in record for item in self.trail.told(part)]

    def _relinked(self, line: bytes) -> bytes:
        """A line as it was read, but for the ids of lines that are elsewhere now."""
        if all(old == new for old, new in self.moved.items()):
            return line
        record = decode(line)
        for name in ("parent_id", "target_id"):
            if record.get(name) in self.moved:
                record[name] = self.moved[record[name]]
        return compact(record)

    def _set_leaf(self, entry: Head, origin: Json) -> None:
        self._close()
        self._flush()
        target = self.trail.nearest(entry.to, self.closed)
        if target is None:
            return
        if not self.is_tree:
            self._upgrade(entry)
        time = stamp(entry.clock or entry.at, origin)
        record = {"type": "set_leaf", "timestamp": time, "target_id": target.id}
        self._put(self._relinked(origin["line"].encode()) if "line" in origin else compact(record))
        self.leaf, self.tip = target, entry.to

    def _record(self, entry: Note, origin: Json) -> None:
        """A record that is no part of the conversation."""
        self._close()
        data = fields(entry.data)
        line = line_of(origin) or compact(data)
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
            self._queue(entry, line, "record", origin.get("gap", 0))

    def _queue(self, entry: Entry, line: bytes, kind: str, gap: int = 0) -> None:
        self.waiting.append(RhoLine(entry.seq, {}, line=line, gap=gap, kind=kind))

    def _flush(self, *, is_mended: bool = False) -> None:
        """Write what waits. Where what was read is followed by more of it, it has to stay as it is."""
        waiting, self.waiting = self.waiting, []
        if is_mended and waiting:
            waiting = settled(waiting, self.ear, self.open)
            self.open = []
        reached: list[tuple[int, RhoState]] = []
        for item in waiting:
            line = item.line or compact(item.record())
            id = f"legacy:{self._put(line):016x}"
            if item.kind == "record" or origin_of(self.trail.at(item.seq)) is not None:
                self.moved[f"legacy:{self.read + item.gap:016x}"] = id
                self.read += item.gap + len(line) + 1
            if item.kind == "record":
                continue
            before = self.legacy
            if item.kind == "message":
                self.legacy = replace(before, id=id, revision=before.revision + 1)
            elif item.kind == "replace":
                self.legacy = replaced(before, id)
            else:
                origin = origin_of(self.trail.at(item.seq)) or {}
                self.legacy = after(origin.get("node") or {}, before, id)
            displays = [item.json] if item.kind == "message" else self._shown(item)
            self.leaf = self.legacy = replace(self.legacy, waiting=still_open(before.waiting, displays))
            reached.append((item.seq, self.legacy))
        self.closed.update(reached_by(reached))

    def _shown(self, item: RhoLine) -> list[Json]:
        """What people see of a snapshot."""
        entry = self.trail.at(item.seq)
        if entry is None or item.kind == "replace":
            return []
        spec: Json = (origin_of(entry) or {}).get("node") or {}
        return [
            displayed["message"]
            for displayed in display(spec.get("display"), self._fresh(self.trail.record(entry)), "")
        ]

    def _upgrade(self, entry: Entry) -> None:
        """The session becomes a tree, as rho makes it one: what is there stays, and each line of it is a node."""
        self._flush(is_mended=True)
        self.is_tree = self.ear.is_rich = True
        if self.leaf is None:
            # Nothing is there that could become one: it has been a tree all along, and lost its header.
            self.out[: self.out.index(b"\n")] = compact({**self.header, "version": 4})
            return
        time = stamp(entry.clock or entry.at)
        self._put(compact({"type": "upgrade", "timestamp": time, "active_leaf_id": self.leaf.id}))

    def _new(self, entry: AnyEntry) -> None:
        is_speech = isinstance(entry, (Message, Custom))
        if not self.is_tree and entry.parent != self.tip and (self.waiting or self.leaf is not None):
            self._upgrade(entry)
        if not self.is_tree:
            if is_speech:
                self.waiting += self.trail.told(entry)
            else:
                time = stamp(entry.clock or entry.at)
                messages = [item.json for item in settled(self.trail.history(entry.seq), self.ear)]
                record = {"type": "replace_history", "timestamp": time, "messages": messages}
                self._queue(entry, compact(record), "replace")
            self.tip = entry.seq
            return
        begins = isinstance(entry, Message) and entry.role == "user"
        if self.chunk and (entry.parent != self.chunk[-1].seq or begins or not is_speech):
            self._close()
        self.chunk.append(entry)
        if not is_speech or (entry.seq in self.trail.forks and not open_calls(self._fresh(self.chunk))):
            self._close()

    def _close(self) -> None:
        """The entries since the last node are one, too."""
        if self.chunk:
            last, self.chunk = self.chunk[-1], []
            self._grow(last)
            self.tip = last.seq

    def _grow(self, last: AnyEntry) -> None:
        node = self.growth.node(last, self.leaf)
        if node is not None:
            line, self.leaf = node
            self._put(line)
            self.closed[last.seq] = self.leaf

    def _end(self) -> None:
        """rho goes on where the conversation stands."""
        head, last = self.trail.at(self.transcript.head), self.entries[-1]
        self._flush(is_mended=True)
        if head is None or (not self.is_tree and head.seq == self.tip):
            return
        if not self.is_tree:
            self._upgrade(last)
        self._grow(head)
        wanted = self.trail.nearest(head.seq, self.closed)
        if wanted is not None and self.leaf is not None and wanted.id != self.leaf.id:
            time = stamp(last.clock or last.at)
            self._put(compact({"type": "set_leaf", "timestamp": time, "target_id": wanted.id}))


def _is_rho(entry: Entry) -> bool:
    return origin_of(entry) is not None
