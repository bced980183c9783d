"""A chat of Gemini CLI: a log of patches, or one document of an earlier version.

A message that is written again under the same id is replaced, `$rewindTo` drops a message and all behind it, and
`$set.messages` replaces the whole list. What was replaced is not worth keeping, because it only ever grows; what was
dropped stays as a branch. A list that was there before is where the conversation goes on: resuming writes an empty one
and then the whole one again. A list that begins otherwise is a compaction.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, ResumePoint, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.geminiparts import split_results
from turnlog.formats._shared.key import NONE
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.formats.gemini_cli import content
from turnlog.formats.gemini_cli.chat import Chat, Patch, id_of
from turnlog.formats.gemini_cli.content import GeminiAnswerLine, GeminiUserLine, digest, meaning, prompt
from turnlog.formats.gemini_cli.lists import ListedMessage, ListItem, ListTrie
from turnlog.interop.copied import MARK, copied_in
from turnlog.interop.folder import at_once
from turnlog.interop.overlap import overlap
from turnlog.interop.records import objects_in
from turnlog.interop.value import EPOCH, fields, moment, text
from turnlog.log.block import AnyBlock, Text, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Edit, Message, Note


class GeminiState(Struct):
    """What is known at a resume point."""

    last: str
    at: datetime
    """When its message was begun: those before it were begun earlier, however often they are written again."""
    about: dict[str, Any]


def read(source: Source, mark: ResumePoint | None = None, state: GeminiState | None = None) -> Reading:
    """See `turnlog.formats`; with a resume point, only what comes behind it."""
    problems: list[Problem] = []
    chat = Chat(source, problems, start=mark.offset if mark else 0, about=state.about if state else None)
    about = chat.about
    parent = os.path.basename(folder := os.path.dirname(os.path.abspath(source.path)))
    header = SessionHeader(
        id=text(about.get("sessionId")) or os.path.basename(source.path).rpartition(".")[0], workspace=_root(folder),
        title=text(about.get("summary")), created=moment(about.get("startTime") or about.get("start_time")),
        spawned=Spawn(parent) if about.get("kind") == "subagent" and parent != "chats" else None,
        hidden=about.get("kind") == "subagent", copied=copied_in(about),
        origin={"project_hash": about["projectHash"]} if text(about.get("projectHash")) else None,
    )  # fmt: skip
    reading = _Reader(chat, header, problems, mark, state).reading
    if model := text(fields(about.get("meta")).get("model")):
        reading.facts["model"] = model
    if isinstance(about.get("directories"), list):
        reading.facts["directories"] = about["directories"]
    return reading


def _root(folder: str) -> str | None:
    """The project's folder, which the program notes two levels up."""
    for _ in range(3):
        try:
            with open(os.path.join(folder, ".project_root"), encoding="utf-8", opener=at_once) as file:
                return text(file.read(4096).strip())
        except (OSError, UnicodeDecodeError):
            folder = os.path.dirname(folder)
    return None


class _Reader:
    def __init__(
        self, chat: Chat, header: SessionHeader, problems: list[Problem], start: ResumePoint | None,
        state: GeminiState | None,
    ) -> None:  # fmt: skip
        self._chat = chat
        self.reading = Reading(header=header, steps=self._steps(), problems=problems)
        self._last = self._newest_node = state.last if state is not None else ""
        """The key of the node before, and the newest node that was given."""
        self._ids: list[ListItem] = [ListItem("", "", state.last, 0)] if state is not None else []
        """The list as it is."""
        self._lists = ListTrie()
        """Every list seen, with what stands at each index where the conversation can go on from there."""
        self._meanings: dict[str, bytes] = {}
        self._results: set[int] = set()
        """Hashes of calls whose results are there: the program writes each into the model's message and behind it."""
        self._unknown = UnknownRecords("gemini-cli")
        self._since = state.at if state is not None else None
        self._points = growth.ResumePoints[GeminiState](start)

    def _steps(self) -> Iterator[Step]:
        since, points = self._since, self._points
        for patch in self._chat.patches():
            record: Any = patch.record
            if type(record) is GeminiAnswerLine or type(record) is GeminiUserLine:
                if since is not None and record.timestamp < since:
                    raise growth.NeedsFullRead
                if patch.offset >= points.next_offset and self._last == self._newest_node:
                    points.set(patch.offset, 0, GeminiState(self._last, record.timestamp, {}))
                steps = self._typed_message(patch.id, record)
            elif since is not None and (
                patch.is_list or (record and (moment(record.get("timestamp")) or EPOCH) < since)
            ):
                raise growth.NeedsFullRead
            else:
                steps = self._changed(patch)
            for step in steps:
                points.given += 1
                yield step
        about = self._chat.about
        always = {name: about[name] for name in ("summary", MARK) if name in about}
        self.reading.mark = points.newest(about=growth.small(about) | always)
        self._unknown.report(self.reading.problems)
        if self._last != self._newest_node:
            yield Jump(to=self._last, key=f"live {self._last} {self._newest_node}", why="rewind")

    def _changed(self, patch: Patch) -> Iterator[Step]:
        """A change that is none of the usual."""
        before = self._ids
        if patch.rewind is not None:
            yield from self._rewound(patch.rewind)
        elif patch.is_list:
            messages = fields(patch.record.get("$set")).get("messages")
            yield from self._replaced(objects_in(messages, "messages", self.reading.problems, offset=patch.offset))
        elif patch.record:
            objects_in(patch.record.get("toolCalls"), "tool calls", self.reading.problems)
            yield from self._message(patch.id, patch.record)
        if patch.is_list or patch.rewind is not None:
            yield from self._written_again(before, patch.offset)

    def _written_again(self, before: list[ListItem], offset: int) -> Iterator[Step]:
        """Messages that a rewind or a new list dropped, and that come once more behind it, under the same ids."""
        ids, newest = {item.id for item in self._ids}, self._chat.newest
        for item in before:
            if item.id not in ids and newest.get(item.id, -1) > offset:
                yield from self._message(item.id, fields(self._chat.at(newest[item.id])), f"{item.id} behind {offset}")

    def _message(self, id: str, record: dict[str, Any], again: str = "") -> Iterator[Step]:
        first, is_repeat = "", self._is_repeat(record)
        if not is_repeat:
            entries = list(self._entries(again or id, record))
            if id not in self._chat.newest:
                self._meanings[id] = meaning(entries)
            for key, entry in entries:
                if again and isinstance(entry, Message):
                    entry = replace(entry, usage=None)  # the first time counts
                yield Record(entry=entry, key=key)
                if entry.is_node:
                    self._last = self._newest_node = key
                    first = first or key
            self._note_results(entries)
        self._append_item(id, first, is_repeat=is_repeat)

    def _typed_message(self, id: str, record: GeminiUserLine | GeminiAnswerLine) -> tuple[Step, ...]:
        """A prompt or a complete answer of the usual kind."""
        if isinstance(record, GeminiAnswerLine):
            message, results = content.messages_of_line(record)
            for call in record.calls if results is not None else ():
                self._results.add(hash(call.id))
        else:
            blocks: list[AnyBlock] = [Text(text=part.text) for part in record.content]
            message, results = prompt(blocks, record.shown, record.timestamp), None
        step = Record(entry=message, key=id, names=NONE)
        self._last = self._newest_node = id if results is None else f"{id}#results"
        self._append_item(id, id)
        return (step,) if results is None else (step, Record(entry=results, key=self._last, names=NONE))

    def _append_item(self, id: str, first: str, *, is_repeat: bool = False) -> None:
        """A message is in the list."""
        ids = self._ids
        index = ids[-1].index if ids else 0
        if not is_repeat:
            index = self._lists.index_of_next(index, id)
        item = self._lists.items[index] = ListItem(id, first, self._last, index)
        ids.append(item)

    def _last_index(self) -> int:
        return self._ids[-1].index if self._ids else 0

    def _is_repeat(self, record: dict[str, Any]) -> bool:
        """Whether it only says again what the tools answered."""
        if record.get("type") != "user":
            return False
        blocks, results = split_results(record.get("content"))
        calls = {hash(block.call) for block in results if isinstance(block, ToolResult)}
        self._points.require(bool(blocks) or calls <= self._results)
        return not blocks and bool(calls) and calls <= self._results

    def _note_results(self, entries: list[tuple[str, Message | Note]]) -> None:
        for _, entry in entries:
            if isinstance(entry, Message) and entry.role == "tool":
                self._results.update(hash(block.call) for block in entry.blocks if isinstance(block, ToolResult))

    def _entries(self, id: str, record: dict[str, Any]) -> Iterator[tuple[str, Message | Note]]:
        kind, at = record.get("type"), moment(record.get("timestamp"))
        if kind == "user":
            blocks, results = split_results(record.get("content"))
            if results:
                yield f"{id}#results", Message(role="tool", blocks=results, at=at)
            if blocks or not results:
                yield id, prompt(blocks, record.get("displayContent"), at)
        elif kind in ("gemini", "model"):
            message, results = content.messages_of_record(record)
            key = id
            if not record.get("tokens") and "id" in record:
                key = f"{id}~{digest(record).hex()[:12]}"  # more of it may come, under the same id
            yield key, message
            if results is not None:
                yield f"{key}#results", results
        else:
            note = Note(text=str(kind), data=record)
            if kind not in ("info", "warning", "error"):
                note = self._unknown.note(str(kind), record)
            elif words := "\n".join(getattr(block, "text", "") for block in split_results(record.get("content"))[0]):
                note = replace(note, text=words)
            yield id, replace(note, at=at)

    def _rewound(self, id: str) -> Iterator[Step]:
        """That message and all behind it are dropped; one that is not there drops everything."""
        index = next((i for i, item in enumerate(self._ids) if item.id == id), 0)
        self._points.require(index > 0)
        dropped = self._ids[index:]
        self._ids = self._ids[:index]
        self._last = self._ids[-1].last if self._ids else ""
        if dropped:
            self._newest_node = self._last
            yield Jump(to=self._last, key=f"rewind {id} {dropped[-1].last}", why="rewind")

    def _replaced(self, messages: list[dict[str, Any]]) -> Iterator[Step]:
        by_id = {id_of(raw, index): raw for index, raw in enumerate(messages)}  # the program does so, too
        listed = [ListedMessage(id, raw, self._is_repeat(raw)) for id, raw in by_id.items()]
        kept = self._lists.common_prefix(listed)
        index = kept[-1].index if kept else 0
        is_longer = bool(self._ids) and index == self._last_index()
        if not (is_longer or (len(kept) == len(listed) and (not index or self._lists.items[index] is not None))):
            if self._ids:
                yield from self._replace_list(listed)
                return
            kept = []
        last = kept[-1].last if kept else ""
        self._ids = kept
        if last != self._last:
            yield Jump(to=last)
            self._last = last
        for item, message in zip(kept, listed, strict=False):
            if item.first:
                yield from self._edited(message, item.first)
        self._extend_last_item()
        for message in listed[len(kept) :]:
            yield from self._message(message.id, message.record)

    def _extend_last_item(self) -> None:
        """The conversation goes on behind whatever was last done to the list."""
        if self._ids and self._ids[-1].last != self._last:
            item = self._ids[-1] = replace(self._ids[-1], last=self._last)
            self._lists.items[item.index] = item

    def _replace_list(self, listed: list[ListedMessage]) -> Iterator[Step]:
        """Another list than before: what is not in the old one stands for what is no longer in the new one."""
        said = [message for message in listed if not message.is_repeat]
        old = [item for item in self._ids if item.first]
        start_of_kept, length = overlap([item.id for item in old], [message.id for message in said])
        kept = {item.id: item for item in old[len(old) - length :]} if length else {}
        start = next((i for i, message in enumerate(listed) if message.id in kept), len(listed))
        yield from self._compacted(listed[:start], next(iter(kept.values()), None))
        for message in said[start_of_kept : start_of_kept + length]:
            yield from self._edited(message, kept[message.id].first)
        new = {message.id for message in said[start_of_kept + length :]} if length else set[str]()
        self._ids = []
        for message in listed:
            if message.id in new:
                self._extend_last_item()
                yield from self._message(message.id, message.record)
                continue
            index = self._last_index()
            last = self._ids[-1].last if self._ids else self._last
            item = kept.get(message.id) or ListItem(message.id, "", last, 0)
            index = index if message.is_repeat else self._lists.index_of_next(index, message.id)
            self._ids.append(replace(item, index=index))
        self._extend_last_item()
        if self._ids:
            index = self._last_index()
            self._lists.items[index] = self._lists.items[index] or self._ids[-1]

    def _compacted(self, before: list[ListedMessage], kept: ListItem | None) -> Iterator[Step]:
        replacement: list[Message] = []
        results_before, self._results = self._results, set[int]()
        for message in before:
            if not self._is_repeat(message.record):
                entries = list(self._entries(message.id, message.record))
                self._note_results(entries)
                replacement += [entry for _, entry in entries if isinstance(entry, Message)]
        self._results |= results_before
        digest_before = sha256(b"".join(digest(message.record) for message in before)).hexdigest()[:24]
        key = f"compaction {digest_before} {self._last}"
        at = moment(before[0].record.get("timestamp")) if before else None
        entry = Compaction(replacement=[replace(message, at=None) for message in replacement], at=at)
        yield Record(entry=entry, key=key, names={"keep": kept.first} if kept is not None else {})
        self._last = self._newest_node = key

    def _edited(self, message: ListedMessage, first: str) -> Iterator[Step]:
        """The same message with other content: what the model sees of it changed."""
        id, entries = message.id, list(self._entries(message.id, message.record))
        before = self._meanings.get(id)
        if before is None and id in self._chat.newest:
            before = meaning(list(self._entries(id, fields(self._chat.at(self._chat.newest[id])))))
        if before == meaning(entries):
            return
        self._meanings[id] = meaning(entries)
        for key, entry in entries:
            if isinstance(entry, Message):
                # The results hang on the key of an answer that was not complete, or on the id of the message.
                target = first if entry.role != "tool" else f"{first if '~' in first else id}#results"
                edit = f"edit {key} {digest(message.record).hex()[:12]}"
                yield Record(entry=Edit(entry=0, blocks=entry.blocks), key=edit, names={"entry": target})
                self._last = self._newest_node = edit
