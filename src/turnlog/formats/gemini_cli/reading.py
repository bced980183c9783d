"""A chat of Gemini CLI: a log of patches, or one document of an earlier version.

A message that is written again under the same id is replaced, `$rewindTo` drops a message and all behind it, and
`$set.messages` replaces the whole list. What was replaced is not worth keeping, because it only ever grows; what was
dropped stays as a branch, and a list that begins otherwise is a compaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Header, Move, Problem, Reading, Record, Source, Spawn, Step
from turnlog.formats._json import decode, document, lines, salvage
from turnlog.formats._key import overlap
from turnlog.formats._parts import said
from turnlog.formats._records import fields, items, moment, rows, tell, text
from turnlog.formats.gemini_cli.content import answered, is_aside
from turnlog.log.block import Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Edit, Message, Note


class _Patch(Struct, gc=False):
    """One change of the list: a message at an offset, a rewind, or a new list."""

    id: str = ""
    offset: int = -1
    raw: Any = None
    rewind: str | None = None
    messages: list[Any] | None = None


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    problems: list[Problem] = []
    chat = _Chat(source, problems)
    about = chat.about
    folder = os.path.dirname(os.path.abspath(source.path))
    parent = os.path.basename(folder)
    header = Header(
        id=text(about.get("sessionId")) or os.path.basename(source.path).rpartition(".")[0],
        workspace=_root(folder),
        title=text(about.get("summary")),
        created=moment(about.get("startTime") or about.get("start_time")),
        spawned=Spawn(parent) if about.get("kind") == "subagent" and parent != "chats" else None,
        hidden=about.get("kind") == "subagent",
        origin={"project_hash": about["projectHash"]} if text(about.get("projectHash")) else None,
    )
    reading = Reading(header=header, steps=iter(()), problems=problems)
    model = fields(about.get("meta")).get("model")
    if text(model):
        reading.facts["model"] = model
    if isinstance(about.get("directories"), list):
        reading.facts["directories"] = about["directories"]
    reading.steps = _Reader(chat, reading).steps()
    return reading


def _root(folder: str) -> str | None:
    """The project's folder, which the program notes two levels up."""
    for _ in range(3):
        try:
            with open(os.path.join(folder, ".project_root"), encoding="utf-8") as file:
                return text(file.read(4096).strip())
        except (OSError, UnicodeDecodeError):
            folder = os.path.dirname(folder)
    return None


class _Chat:
    """The file, looked through once: what it says of the session, and in which order what changed."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.path = source.path
        self.about: dict[str, Any] = {}
        self.patches: list[_Patch] = []
        self.newest: dict[str, int] = {}
        """Where the last version of each message is."""
        if source.path.endswith(".json"):
            data, told = document(source.path)
            problems += told
            value, told = salvage(data)
            problems += told
            whole = fields(value)
            self.about = {key: item for key, item in whole.items() if key not in ("messages", "history")}
            listed = items(whole.get("messages")) or _from_history(whole.get("history"))
            self.patches = [_Patch(id=_id(raw, i), raw=raw) for i, raw in enumerate(listed)]
            return
        for row in rows(source.path, problems, marks=("type", "$set", "$rewindTo", "sessionId")):
            self._take(row.data, row.offset)

    def _take(self, record: dict[str, Any], offset: int) -> None:
        if "$rewindTo" in record:
            self.patches.append(_Patch(rewind=str(record["$rewindTo"])))
        elif "$set" in record:
            change = fields(record["$set"])
            if isinstance(change.get("messages"), list):
                self.patches.append(_Patch(messages=items(change["messages"])))
            self.about.update({key: value for key, value in change.items() if key != "messages"})
        elif "sessionId" in record and "type" not in record:
            self.about = {**self.about, **{key: value for key, value in record.items() if key != "messages"}}
        else:
            id = _id(record, offset)
            if id not in self.newest:
                self.patches.append(_Patch(id=id, offset=offset))
            self.newest[id] = offset

    def records(self) -> Iterator[tuple[_Patch, dict[str, Any]]]:
        """The patches in order, each with the last version of its message."""
        with open(self.path, "rb") as file:
            for patch in self.patches:
                if patch.offset < 0:
                    yield patch, fields(patch.raw)
                    continue
                file.seek(self.newest[patch.id])
                try:
                    yield patch, fields(decode(file.readline()))
                except ValueError:
                    yield patch, {}  # told when it was looked through


def _id(record: dict[str, Any], number: int) -> str:
    return text(record.get("id")) or f"at {number}"


def _from_history(value: Any) -> list[dict[str, Any]]:
    """A list of what went to the model and came back, as a saved chat has it."""
    roles = {"user": "user", "model": "gemini", "gemini": "gemini"}
    return [
        {"type": roles.get(str(item.get("role")), "user"), "content": item.get("parts"), "timestamp": item.get("ts")}
        for item in items(value)
    ]


class _Reader:
    def __init__(self, chat: _Chat, reading: Reading) -> None:
        self._chat = chat
        self._reading = reading
        self._last = ""
        """The key of the node before."""
        self._ids: list[tuple[str, str, str]] = []
        """The list as it is: each id, its first node ("" for none), and the last node at or before it."""
        self._meanings: dict[str, bytes] = {}
        self._answered: set[str] = set()
        """Calls whose results are there: the program writes each into the model's message and behind it."""

    def steps(self) -> Iterator[Step]:
        """All of it."""
        for patch, record in self._chat.records():
            if patch.rewind is not None:
                yield from self._rewound(patch.rewind)
            elif patch.messages is not None:
                yield from self._replaced(patch.messages)
            elif record:
                yield from self._message(patch.id, record)

    def _message(self, id: str, record: dict[str, Any]) -> Iterator[Step]:
        first = ""
        if not self._is_repeat(record):
            made = list(self._entries(id, record))
            self._meanings[id] = _meaning(made)
            for key, entry in made:
                yield Record(entry=entry, key=key)
                if entry.is_node:
                    self._last = key
                    first = first or key
            self._note_results(made)
        self._ids.append((id, first, self._last))

    def _is_repeat(self, record: dict[str, Any]) -> bool:
        """Whether it only says again what the tools answered."""
        if record.get("type") != "user":
            return False
        blocks, results = said(record.get("content"))
        calls = {block.call for block in results if isinstance(block, ToolResult)}
        return not blocks and bool(calls) and calls <= self._answered

    def _note_results(self, made: list[tuple[str, Message | Note]]) -> None:
        for _, entry in made:
            if isinstance(entry, Message) and entry.role == "tool":
                self._answered.update(block.call for block in entry.blocks if isinstance(block, ToolResult))

    def _entries(self, id: str, record: dict[str, Any]) -> Iterator[tuple[str, Message | Note]]:
        kind, at = record.get("type"), moment(record.get("timestamp"))
        if kind == "user":
            blocks, results = said(record.get("content"))
            if results:
                yield f"{id}#results", Message(role="tool", blocks=results, at=at)
            if blocks or not results:
                shown, _ = said(record.get("displayContent"))
                display: Any = None
                if is_aside(Message(role="user", blocks=blocks)):
                    display = False
                elif shown and shown != blocks:
                    display = "\n".join(getattr(block, "text", "") for block in shown)
                yield id, Message(role="user", blocks=blocks, at=at, display=display)
        elif kind in ("gemini", "model"):
            message, results = answered(record)
            key = id
            if not record.get("tokens") and "id" in record:
                key = f"{id}~{_digest(record).hex()[:12]}"  # more of it may come, under the same id
            yield key, replace(message, at=at)
            if results is not None:
                made = f"{id}#results" if key == id else f"{key}#results"
                yield made, results if results.at is not None else replace(results, at=at)
        else:
            told, _ = said(record.get("content"))
            words = "\n".join(getattr(block, "text", "") for block in told)
            if kind not in ("info", "warning", "error"):
                tell(self._reading.problems, Problem(f"a message of the unknown type {kind!r:.60}: kept as a note"))
            yield id, Note(text=words or str(kind), data=record, at=at)

    # ── rewinds and new lists ─────────────────────────────────────────────────────────────────────

    def _rewound(self, id: str) -> Iterator[Step]:
        """That message and all behind it are dropped; one that is not there drops everything."""
        index = next((i for i, (name, _, _) in enumerate(self._ids) if name == id), 0)
        dropped = self._ids[index:]
        del self._ids[index:]
        self._last = self._ids[-1][2] if self._ids else ""
        if dropped:
            yield Move(to=self._last, key=f"rewind {id} {dropped[-1][2]}", why="rewind")

    def _replaced(self, messages: list[dict[str, Any]]) -> Iterator[Step]:
        listed = [(_id(raw, index), raw) for index, raw in enumerate(messages)]
        fresh = [(name, raw) for name, raw in listed if not self._is_repeat(raw)]
        old = [item for item in self._ids if item[1]]
        at, length = overlap([name for name, _, _ in old], [name for name, _ in fresh])
        if old and not length:
            yield from self._anew(fresh)
            return
        known: dict[str, tuple[str, str, str]] = {}
        if old:
            start = len(old) - length
            if start or at:
                yield from self._compacted(fresh[:at], old[start][1])
            for (name, first, last), (_, raw) in zip(old[start:], fresh[at : at + length], strict=True):
                yield from self._edited(name, first, raw)
                known[name] = (name, first, last)
            fresh = fresh[at + length :]
        self._ids = []
        later = {name for name, _ in fresh}
        for name, raw in listed:
            if name in known:
                self._ids.append(known[name])
            elif name in later:
                yield from self._message(name, raw)
            elif self._ids:  # a repeat, which is to be found when the list is rewound to it
                self._ids.append((name, "", self._ids[-1][2]))

    def _anew(self, fresh: list[tuple[str, dict[str, Any]]]) -> Iterator[Step]:
        """Nothing of the old list is in the new one: that is all a model sees from here."""
        yield from self._compacted(fresh, "")
        self._ids = []

    def _compacted(self, before: list[tuple[str, dict[str, Any]]], keep: str) -> Iterator[Step]:
        replacement = [
            entry for name, raw in before for _, entry in self._entries(name, raw) if isinstance(entry, Message)
        ]
        digest = sha256(b"".join(_digest(raw) for _, raw in before)).hexdigest()[:24]
        key = f"compaction {digest} {self._last}"
        at = moment(before[0][1].get("timestamp")) if before else None
        made = Compaction(replacement=[replace(m, at=None) for m in replacement], at=at)
        yield Record(entry=made, key=key, names={"keep": keep} if keep else {})
        self._last = key

    def _edited(self, name: str, first: str, raw: dict[str, Any]) -> Iterator[Step]:
        """The same message with other content: what the model sees of it changed."""
        made = list(self._entries(name, raw))
        if self._meanings.get(name) == _meaning(made):
            return
        self._meanings[name] = _meaning(made)
        for key, entry in made:
            if isinstance(entry, Message):
                target = first if entry.role != "tool" else f"{first}#results" if "~" in first else f"{name}#results"
                made = f"edit {key} {_digest(raw).hex()[:12]}"
                yield Record(entry=Edit(entry=0, blocks=entry.blocks), key=made, names={"entry": target})
                self._last = made


def _meaning(made: list[tuple[str, Message | Note]]) -> bytes:
    """What tells a message from another version of it, however it is written down: reasoning is no part of it."""
    told: list[Any] = []
    for _, entry in made:
        for block in entry.blocks if isinstance(entry, Message) else ():
            if isinstance(block, ToolCall):
                told.append([block.id, block.name, block.input])
            elif isinstance(block, Text):
                told += [block.text] if block.text else []
            elif not isinstance(block, Thinking):
                told.append(block if not isinstance(block, ToolResult) else [block.call, block.content])
    return sha256(msgspec.json.encode(told, order="deterministic")).digest()


def _digest(raw: dict[str, Any]) -> bytes:
    return sha256(msgspec.json.encode(raw, order="deterministic")).digest()


def is_ours(path: str) -> bool:
    """Whether a file is a chat, by its beginning."""
    try:
        if path.endswith(".jsonl"):
            first = next(iter(lines(path, limit=64 << 20)), None)
            found = fields(decode(first.data)) if first is not None else {}
            return "sessionId" in found and "projectHash" in found and "type" not in found
        if path.endswith(".json"):
            with open(path, "rb") as file:
                head = file.read(1 << 16)
            if b'"projectHash"' in head and b'"sessionId"' in head:
                return True
            return b'"history"' in head and b'"parts"' in head and b'"role"' in head
    except (OSError, ValueError):
        return False
    return False
