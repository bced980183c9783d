"""A session of kimi-code: operations on a conversation, one JSON line each, in `agents/<agent>/wire.jsonl`.

An answer arrives in pieces between `step.begin` and `step.end`, with the results of its calls among them. An undo takes
back so many prompts, a clear everything; both leave a branch here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import islice
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Forked, Jump, Problem, Reading, Record, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared.origin import UnknownRecords, of_unknown_role
from turnlog.formats.kimi import parts
from turnlog.formats.kimi.parts import NAME, RecordNames, blocks_of, digest, parent_of, usage_of
from turnlog.interop.json import is_deep
from turnlog.interop.problem import report
from turnlog.interop.records import RawRecord, load_sidecar, objects_in, record_at, rows
from turnlog.interop.value import as_counter, as_int, fields, items, moment, text, without_none
from turnlog.log.block import AnyBlock, Text, ToolCall
from turnlog.log.entry import Compaction, Edit, Message, Spent, Stop
from turnlog.log.usage import Usage

_STOPS: dict[str, Stop] = {"end_turn": "end", "tool_use": "tool_use", "max_tokens": "length", "error": "error"}
_QUIET = (
    "metadata", "forked", "turn.", "config.", "tools.", "permission.", "llm.", "profile.", "plan_mode.", "swarm_mode.",
    "goal.", "mcp.", "plugin.", "runtime.", "token_counting.", "full_compaction.", "task.", "background.", "todo.",
    "skill.", "reminder.", "interaction.", "cron.", "context_size.", "usage.", "agent.", "prompt.",
)  # fmt: skip
_HEAD = 60


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    about = _head(source.path)
    folder = parent_of(source.path)
    problems: list[Problem] = []
    header = _placed(source, folder, about, problems) if state_files(source.path) else _alone(source, about)
    return _Reader(source, header, problems).reading


def state_files(path: str) -> list[str]:
    """Where the state of a session lies, above the wire of one of its agents; empty for any other file."""
    session, is_wire = parent_of(path, 3), os.path.basename(path) == "wire.jsonl"
    is_placed = is_wire and os.path.basename(parent_of(path, 2)) == "agents"
    return [os.path.join(session, *folder, "state.json") for folder in ((), ("session-meta",))] if is_placed else []


def _head(path: str) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for row in islice(rows(path, []), _HEAD):
        cwd = text(row.data.get("cwd")) or text(fields(row.data.get("environmentDisclosure")).get("cwd"))
        version, role = text(row.data.get("protocol_version")), text(row.data.get("profileName"))
        fresh = {"created": row.data.get("created_at"), "version": version, "cwd": cwd, "role": role}
        about = {**without_none(fresh), **about}
    return about


def _alone(source: Source, about: dict[str, Any]) -> SessionHeader:
    id = os.path.basename(source.path).removesuffix(".jsonl")
    return SessionHeader(
        id=id, identity=f"{id} {about.get('created')}", workspace=about.get("cwd"),
        created=moment(about.get("created")), origin={"protocol": about["version"]} if "version" in about else None,
    )  # fmt: skip


def _placed(source: Source, folder: str, about: dict[str, Any], problems: list[Problem]) -> SessionHeader:
    agent, session = os.path.basename(folder), parent_of(source.path, 3)
    id, paths = os.path.basename(session), state_files(source.path)
    state = next((state for path in paths if (state := fields(load_sidecar(path, problems)))), fields(None))
    agent_state = fields(fields(state.get("agents")).get(agent))
    is_main = agent == "main" or agent_state.get("type") == "main"
    fork = text(state.get("forkedFrom")) if is_main else None
    original = os.path.join(os.path.dirname(session), os.path.basename(fork or ""), "agents", agent, "wire.jsonl")
    parent = text(agent_state.get("parentAgentId")) or "main"
    workspace = text(state.get("cwd")) or text(state.get("workDir")) or text(fields(state.get("custom")).get("cwd"))
    return SessionHeader(
        id=id if is_main else f"{id}.{agent}", workspace=workspace or about.get("cwd"), hidden=not is_main,
        title=text(state.get("title")) if is_main else None,
        created=moment(about.get("created")) or moment(state.get("createdAt")),
        fork=Forked(fork, source=Source(NAME, original) if os.path.isfile(original) else None) if fork else None,
        spawned=None if is_main else Spawn(id if parent == "main" else f"{id}.{parent}", role=about.get("role")),
        origin={"protocol": about["version"]} if "version" in about else None,
    )  # fmt: skip


class _Step(Struct):
    """An answer that is still arriving, and the results that came in between."""

    uuid: str
    at: datetime | None
    blocks: list[AnyBlock]
    waiting: set[str]
    results: list[tuple[str, Message]]
    end: dict[str, Any] | None = None


class _Item(Struct):
    """One message of the conversation as it stands."""

    key: str
    prompt: tuple[int, int] | None = None
    """Of what a person typed: the offset of its record, and its place among the messages of that."""
    is_summary: bool = False


class _Reader:
    def __init__(self, source: Source, header: SessionHeader, problems: list[Problem]) -> None:
        self._source = source
        self.reading = Reading(header=header, steps=self._steps(), problems=problems)
        self._names = RecordNames()
        self._step: _Step | None = None
        self._later: list[tuple[RawRecord, dict[str, Any], datetime | None]] = []
        """Messages that came while a call had no result yet: they follow that result."""
        self._history: list[_Item] = []
        self._calls: dict[str, str] = {}
        self._model: str | None = None
        self._carried_usage: list[Usage] = []
        """The usage of answers that no record of usage has repeated yet."""
        self._unclaimed_usage: list[tuple[Usage, dict[str, Any], datetime | None]] = []
        """Records of usage that came while an answer was still arriving, which may carry the same."""
        self._compacting = False
        self._unknown = UnknownRecords(NAME)
        self._operations = {
            "context.apply_compaction": self._compacted, "context.undo": self._undone, "context.clear": self._cleared,
            "context.splice": self._spliced,
        }  # fmt: skip
        """What is done to the conversation as a whole, when no answer is arriving."""

    def _steps(self) -> Iterator[Step]:
        for row in rows(self._source.path, self.reading.problems):
            yield from self._record(row, str(row.data.get("type")), moment(row.data.get("time")))
        yield from self._close(is_tail=True)
        self._unknown.report(self.reading.problems)

    def _record(self, row: RawRecord, kind: str, at: datetime | None) -> Iterator[Step]:
        record = row.data
        if kind == "context.append_message":
            message = fields(record.get("message"))
            if self._step is not None and self._step.waiting:
                self._later.append((row, message, at))
            else:
                yield from self._close()
                yield from self._message(row, message, at)
        elif kind == "context.append_loop_event":
            yield from self._event(fields(record.get("event")), at)
        elif kind == "usage.record":
            yield from self._spent(record, at)
        elif kind in self._operations:
            yield from self._close()
            yield from self._operations[kind](row, at)
        elif kind.startswith(_QUIET):
            self._note_facts(kind, record)
        else:
            entry = replace(self._unknown.note(kind, record), at=at)
            yield Record(entry=entry, key=self._names.of(f"note {digest(record)}"))

    def _note_facts(self, kind: str, record: dict[str, Any]) -> None:
        facts = self.reading.facts
        if kind in ("config.update", "profile.bind"):
            self._model = text(record.get("modelAlias")) or self._model
            names = {"system": "systemPrompt", "model": "modelAlias", "thinking_level": "thinkingEffort"}
            facts |= {fact: record[name] for fact, name in names.items() if text(record.get(name))}
        elif kind == "permission.set_mode" and text(record.get("mode")):
            facts["permission_mode"] = record["mode"]
        elif kind == "llm.tools_snapshot" and isinstance(record.get("tools"), list) and not is_deep(record):
            facts["tools"] = record["tools"]
        elif kind == "llm.request":
            self._model = text(record.get("modelAlias")) or text(record.get("model")) or self._model
        elif kind.startswith("full_compaction."):
            self._compacting = kind == "full_compaction.begin"

    def _message(
        self, row: RawRecord, raw: dict[str, Any], at: datetime | None, before: str = "", index: int = 0
    ) -> Iterator[Step]:
        role, origin = raw.get("role"), fields(raw.get("origin"))
        key = before + self._names.of(text(raw.get("id")) or digest(raw))
        entry = parts.message_of(raw, self._calls, at, is_error=raw.get("isError") is True)
        if entry is None:
            yield Record(entry=of_unknown_role(role, raw, at, self.reading.problems), key=key)
            return
        if role == "assistant":
            entry = replace(entry, model=self._model)
        yield Record(entry=entry, key=key)
        prompt = (row.offset, index) if role == "user" and _is_typed(origin) else None
        self._history.append(_Item(key, prompt, origin.get("kind") == "compaction_summary"))

    def _event(self, event: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        kind = event.get("type")
        if kind == "step.begin":
            yield from self._close()
            self._step = _Step(text(event.get("uuid")) or digest(event), at, [], set(), [])
        elif kind in ("content.part", "tool.call"):
            if self._step is None:
                self._step = _Step(text(event.get("stepUuid")) or digest(event), at, [], set(), [])
            step = self._step
            if kind == "content.part":
                step.blocks += blocks_of([event.get("part")])
            else:
                id, name = str(event.get("toolCallId") or event.get("uuid") or ""), str(event.get("name") or "")
                self._calls[id] = name
                step.blocks.append(ToolCall(id=id, name=name, input=event.get("args")))
                step.waiting.add(id)
        elif kind == "tool.result":
            yield from self._result(event, at)
        elif kind == "step.end":
            if self._step is not None:
                self._step.end = event
            yield from self._close()
        elif not str(kind).startswith(("llm.", "step.", "tool.")):
            entry = replace(self._unknown.note(str(kind), event, "an event"), at=at)
            yield Record(entry=entry, key=self._names.of(f"note {digest(event)}"))

    def _result(self, event: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        call, about = str(event.get("toolCallId") or event.get("parentUuid") or ""), fields(event.get("result"))
        content = parts.output(about.get("output", event.get("output")), text(about.get("note")))
        is_error = (about.get("isError") or event.get("isError")) is True
        entry, step = parts.result_of(call, self._calls, content, at, is_error=is_error), self._step
        if step is not None and call in step.waiting:
            step.waiting.discard(call)
            step.results.append((call, entry))
        else:
            yield from self._close()
            yield self._node(self._names.of(f"result {call} {digest(event)}"), entry)

    def _node(self, key: str, entry: Message) -> Record:
        self._history.append(_Item(key))
        return Record(entry=entry, key=key)

    def _close(self, *, is_tail: bool = False) -> Iterator[Step]:
        """The answer is complete: it, the results that belong to it, and what waited for them."""
        step, self._step = self._step, None
        later, self._later, before = self._later, [], ""
        end = fields(step and step.end)
        usage = usage_of(end.get("usage"))
        if step is not None and (step.blocks or usage is not None):
            if usage is not None:
                unclaimed = [other for other, _, _ in self._unclaimed_usage]
                if usage in unclaimed:
                    self._unclaimed_usage.pop(unclaimed.index(usage))
                else:
                    self._carried_usage.append(usage)
            is_open = is_tail and step.end is None
            key = self._names.of(f"{step.uuid}~{len(step.blocks) + len(step.results)}" if is_open else step.uuid)
            entry = Message(
                role="assistant", blocks=step.blocks, model=self._model, usage=usage, at=step.at,
                request=text(end.get("messageId")), stop=_STOPS.get(str(end.get("finishReason"))),
                first_token_ms=as_counter(end.get("llmFirstTokenLatencyMs")),
            )  # fmt: skip
            yield self._node(key, entry)
            for call, result in step.results:
                yield self._node(self._names.of(f"{key}#{call}"), result)
            if is_open:
                before = f"{key}>"  # what waits behind it will stand behind another
        if step is None or not is_tail:
            yield from self._uncarried()
        for row, message, at in later:
            yield from self._message(row, message, at, before)

    def _spent(self, record: dict[str, Any], at: datetime | None) -> Iterator[Step]:
        """Every request is told once more by itself; what no answer carries is spent all the same."""
        usage = usage_of(record.get("usage"))
        if usage is None:
            return
        if usage in self._carried_usage:
            self._carried_usage.remove(usage)
            return
        self._unclaimed_usage.append((usage, record, at))
        if self._step is None:
            yield from self._uncarried()

    def _uncarried(self) -> Iterator[Step]:
        unclaimed, self._unclaimed_usage = self._unclaimed_usage, []
        for usage, record, at in unclaimed:
            why = "compaction" if self._compacting else text(record.get("usageScope"))
            entry = Spent(usage=usage, model=text(record.get("model")) or self._model, why=why, at=at)
            yield Record(entry=entry, key=self._names.of(f"usage {digest(record)}"))

    def _cleared(self, row: RawRecord, at: datetime | None) -> Iterator[Step]:
        self._history = []
        yield Jump(to="", key=self._names.of("clear"), why="rewind", at=at)

    def _undone(self, row: RawRecord, at: datetime | None) -> Iterator[Step]:
        count, index = row.data.get("count"), len(self._history)
        left = count if type(count) is int else -1
        while left > 0 and index > 0 and not self._history[index - 1].is_summary:
            index -= 1
            left -= self._history[index].prompt is not None
        if left:
            report(self.reading.problems, "an undo of more than was said, or of no number: left out", offset=row.offset)
        elif count:
            yield self._back(index, "undo", at)

    def _back(self, size: int, why: str, at: datetime | None) -> Jump:
        """Jump back so that `size` messages remain."""
        last = self._history[-1].key
        del self._history[size:]
        to = self._history[-1].key if self._history else ""
        return Jump(to=to, key=self._names.of(f"{why} {last}"), why="rewind", at=at)

    def _compacted(self, row: RawRecord, at: datetime | None) -> Iterator[Step]:
        record = row.data
        summary = text(record.get("contextSummary")) or text(record.get("summary")) or ""
        summary_blocks = blocks_of(fields(record.get("summary")).get("content")) or [Text(text=summary)]
        count = record.get("compactedCount", record.get("count"))
        kept: list[Message] = []
        tail: list[_Item] = []
        if type(record.get("keptUserMessageCount")) is int:
            kept = [prompt for place in self._kept_prompts(record) if (prompt := self._prompt_at(place)) is not None]
        elif type(count) is int and 0 <= count < len(self._history):
            tail = self._history[count:]
        entry = Compaction(
            replacement=[*kept, Message(role="user", blocks=summary_blocks)],
            tokens_before=as_int(record.get("tokensBefore")), tokens_after=as_int(record.get("tokensAfter")), at=at,
        )  # fmt: skip
        key = self._names.of(f"compaction {digest(record)}")
        yield Record(entry=entry, key=key, names={"keep": tail[0].key} if tail else {})
        self._history = [_Item(key, is_summary=True), *tail]

    def _kept_prompts(self, record: dict[str, Any]) -> list[tuple[int, int]]:
        """The places of the prompts that a compaction keeps: some of the first, and the last."""
        prompts = [item.prompt for item in self._history if item.prompt is not None]
        head = record.get("keptHeadUserMessageCount")
        first = prompts[: head if type(head) is int else 0]
        rest = prompts[len(first) :]
        return first + rest[max(0, len(rest) - max(0, record["keptUserMessageCount"] - len(first))) :]

    def _prompt_at(self, place: tuple[int, int]) -> Message | None:
        offset, index = place
        record = record_at(self._source.path, offset)
        raws = [*items([record.get("message")]), *items(record.get("messages"))][index : index + 1]
        if not raws:
            report(self.reading.problems, "a prompt that a compaction keeps cannot be read again", offset=offset)
        return Message(role="user", blocks=blocks_of(raws[0].get("content"))) if raws else None

    def _spliced(self, row: RawRecord, at: datetime | None) -> Iterator[Step]:
        """The one operation of an earlier protocol: messages in the place of others."""
        start, delete_count = row.data.get("start"), row.data.get("deleteCount")
        size = len(self._history)
        start = min(start, size) if type(start) is int and start >= 0 else size
        delete_count = min(delete_count, size - start) if type(delete_count) is int and delete_count > 0 else 0
        fresh = objects_in(row.data.get("messages"), "messages", self.reading.problems, offset=row.offset)
        if start + delete_count < size and fresh:
            problem = "messages put in the middle: they stand at the end"
            report(self.reading.problems, problem, offset=row.offset)
        if delete_count and start + delete_count == size:
            yield self._back(start, "splice", at)
        elif delete_count:
            for item in self._history[start : start + delete_count]:
                key = self._names.of(f"cut {item.key}")
                yield Record(entry=Edit(entry=0, at=at), key=key, names={"entry": item.key})
            del self._history[start : start + delete_count]
        for index, raw in enumerate(fresh):
            yield from self._message(row, raw, at, index=index)


def _is_typed(origin: dict[str, Any]) -> bool:
    """Whether a person wrote it: an undo counts these, and a compaction keeps them."""
    kind = origin.get("kind")
    if kind in ("skill_activation", "plugin_command"):
        return origin.get("trigger") == "user-slash"
    return kind is None or kind == "user"
