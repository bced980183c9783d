"""qwen-code: one JSON line per record under `~/.qwen/projects/<folder>/chats/<session>.jsonl`. Only read.

Records hang on each other by `parentUuid` and hold Gemini's parts. Records with one uuid are one message in pieces. The
live conversation ends at the last record in the file, whatever it is, unless it only lies beside the conversation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Format, Jump, Reading, Record, ResumePoint, SessionHeader, Source, Step, Watching
from turnlog.formats._shared import growth
from turnlog.formats._shared.blocks import stop_of
from turnlog.formats._shared.finding import find_files, homes_under_variable, resume_command
from turnlog.formats._shared.geminiparts import parts_of, split_results
from turnlog.formats._shared.key import NONE
from turnlog.formats._shared.origin import UnknownRecords
from turnlog.interop.problem import report
from turnlog.interop.records import first_records, objects_in, record_at, rows, typed_records
from turnlog.interop.value import as_int, branches_in, fields, json_text, moment, text
from turnlog.log.block import WRAPPED, AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Edit, Message, Note
from turnlog.wire.gemini.answer import PartReader, usage_of

_TYPES = ("user", "assistant", "tool_result", "system")
_QUIET = ("ui_telemetry", "slash_command", "file_history_snapshot", "branch_checkpoint", "at_command", "custom_title")
_BESIDE = (
    "session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot", "managed_session_header_v1",
    "managed_session_event_v1", "managed_session_commit_v1",
)  # fmt: skip
"""Records that the conversation never ends at."""
_PROVIDER = "qwen"


def _is_ours(path: str) -> bool:
    """Claude Code's records look alike, but hold content, not parts."""
    if not path.endswith(".jsonl"):
        return False
    for record in first_records(path, 21):
        if record.get("type") in _TYPES and {"uuid", "sessionId", "parentUuid"} <= record.keys():
            message = fields(record.get("message"))
            if "content" in message:
                return False
            if "parts" in message or "systemPayload" in record:
                return True
    return False


class _State(Struct):
    """What is known at a mark."""

    before: str
    """The record before it, and its node."""
    last: str
    title: str | None = None
    branches: list[str] = []


def _read(source: Source, mark: ResumePoint | None = None, state: _State | None = None) -> Reading:
    """See `turnlog.formats`; with a mark, only what comes behind it."""
    first = next((row.data for row in rows(source.path, [])), dict[str, Any]())
    header = SessionHeader(
        id=text(first.get("sessionId")) or os.path.basename(source.path).removesuffix(".jsonl"),
        workspace=text(first.get("cwd")), created=moment(first.get("timestamp")),
        git_branches=branches_in(first.get("gitBranch")),
        origin={"version": first["version"]} if text(first.get("version")) else None,
    )  # fmt: skip
    return _Reader(source, header, mark, state or _State("", "")).reading


class _Open(Struct):
    """A message that is still arriving in pieces."""

    uuid: str
    parent: str
    record: dict[str, Any]
    parts: list[dict[str, Any]]
    pieces: int = 1


class _Reader:
    def __init__(self, source: Source, header: SessionHeader, start: ResumePoint | None, state: _State) -> None:
        self._source = source
        self.reading = Reading(header=header, steps=self._steps())
        self._points = growth.ResumePoints(start, state)
        self._before, self._last, self._title = state.before, state.last, state.title
        self._places = {self._before: self._last} if start is not None else {}
        self._live = ""
        self._again = 0
        self._open: _Open | None = None
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._offsets: dict[str, int] = {}
        """Where each record is, to tell one that is there twice from another of the same id."""
        self._unknown = UnknownRecords(source.agent)
        self._branches = dict.fromkeys(state.branches or header.git_branches)

    def _steps(self) -> Iterator[Step]:
        out, points = self._out, self._points
        for offset, record in typed_records(self._source.path, self.reading.problems, start=points.start):
            self._take(record, offset)
            while out:
                points.given += 1
                yield out.pop(0)
        self.reading.mark = points.newest(title=self._title, branches=list(self._branches))
        self._close()
        yield from out
        if self._live and self._places.get(self._live) != self._last:
            node = self._places[self._live]
            yield Jump(to=node, key=f"live {node} {self._last}")
        self._unknown.report(self.reading.problems)
        branches = branches_in(*self._branches)
        self.reading.header = replace(self.reading.header, title=self._title, git_branches=branches)

    def _take(self, record: dict[str, Any], offset: int) -> None:
        uuid, kind = text(record.get("uuid")), record.get("type")
        if uuid is None or kind not in _TYPES:
            note = self._unknown.note(str(kind), record)
            self._out.append(Record(entry=note, key=f"at {offset}"))
            return
        if type(record.get("gitBranch")) is str:
            self._branches[record["gitBranch"]] = None
        is_known = uuid in self._places
        # The offset of the record before a mark is not known: then this is another record.
        if uuid in self._offsets and record_at(self._source.path, self._offsets[uuid]) == record:
            return
        self._offsets.setdefault(uuid, offset)
        arriving = self._open
        if arriving is not None and arriving.uuid == uuid and kind == "assistant":
            arriving.parts += parts_of(fields(record.get("message")).get("parts"))
            arriving.pieces += 1
            filled = {key: value for key, value in record.items() if value is not None}
            arriving.record = {**arriving.record, **filled}
            return
        if arriving is not None:
            self._close()
        if is_known:
            self._points.require(is_there=False)  # how many there were before is not known
            problem = f"another record with the id {uuid!r:.60}: it follows what stands before it"
            report(self.reading.problems, problem, offset=offset)
            self._again += 1
            record = {**record, "parentUuid": self._before}
            uuid = f"{uuid} again {self._again}"
        self._chained(uuid, record, offset)

    def _chained(self, uuid: str, record: dict[str, Any], offset: int) -> None:
        parent, kind = record.get("parentUuid"), record["type"]
        if type(parent) is not str:
            parent = ""
        is_there = parent in self._places
        if not is_there:
            self._points.require(is_there)
        # A prompt or an answer that goes on behind the record before it: nothing is open there.
        is_next = parent == self._before and offset >= self._points.next_offset and record.get("subtype") not in _BESIDE
        if is_next and self._places.get(parent) == self._last != "" and kind in ("user", "assistant"):
            self._points.set(offset, len(self._out), _State(before=parent, last=self._last))
        if parent and not is_there:
            if record.get("subtype") == "rewind":
                self._before = ""  # to before what is left of the file
            elif self._before:
                problem = f"hangs on record {parent!r:.40}, which is missing: it follows what stands before it"
                report(self.reading.problems, problem, offset=offset)
            parent = self._before
        self._before = uuid
        node = self._places.get(parent, "")
        self._places[uuid] = node
        if record.get("subtype") not in _BESIDE:
            self._live = uuid
        message, at = fields(record.get("message")), moment(record.get("timestamp"))
        if not message and record.get("message"):
            report(self.reading.problems, "a message that is no object: left out", offset=offset)
        if kind == "assistant":
            self._open = _Open(uuid, node, record, parts_of(message.get("parts")))
        elif kind == "system":
            self._system(uuid, record, node, offset)
        else:
            blocks, results = split_results(message.get("parts"))
            results = _completed(results, message, fields(record.get("toolCallResult")))
            if results:
                entry = Message(id="-", role="tool", blocks=results, at=at)
                self._node(f"{uuid}#results" if blocks else uuid, node, entry)
                node = self._last
            if blocks or not results:
                display = text(fields(record.get("systemPayload")).get("displayText"))
                if len(blocks) == 1 and display == getattr(blocks[0], "text", None):
                    display = None
                entry = Message(id="-", role="user", blocks=blocks, at=at, display=display)
                self._node(uuid, node, entry)
            self._hidden(record)
            self._places[uuid] = self._last

    def _hidden(self, record: dict[str, Any]) -> None:
        """What was spoken is shown to people, and never goes to the model again."""
        if record.get("subtype") == "realtime_message":
            key = self._last
            self._node(f"{key}#hidden", key, Edit(entry=0), {"entry": key})

    def _node(self, key: str, parent: str, entry: Any, names: dict[str, str] | None = None) -> None:
        if parent != self._last:
            self._out.append(Jump(to=parent))
        self._out.append(Record(entry=entry, key=key, names=names or NONE))
        self._last = key

    def _close(self) -> None:
        arriving, self._open = self._open, None
        if arriving is None:
            return
        about = arriving.record
        spent, at, model = about.get("usageMetadata"), moment(about.get("timestamp")), text(about.get("model"))
        blocks = _answer(arriving.parts, {"responseId": arriving.uuid})
        usage = usage_of(fields(spent)) if isinstance(spent, dict) else None
        entry = Message(id="-", role="assistant", blocks=blocks, model=model, usage=usage, stop=stop_of(blocks), at=at)
        # The first piece may have been all there was when the file was last read.
        key = arriving.uuid if arriving.pieces == 1 else f"{arriving.uuid}+{arriving.pieces}"
        self._node(key, arriving.parent, entry)
        self._hidden(about)
        self._places[arriving.uuid] = self._last

    def _system(self, uuid: str, record: dict[str, Any], parent: str, offset: int) -> None:
        kind, payload, at = str(record.get("subtype")), record.get("systemPayload"), moment(record.get("timestamp"))
        about = fields(payload)
        if kind == "custom_title" and text(about.get("customTitle")):
            self._title = about["customTitle"]
        elif kind == "chat_compression" and isinstance(about.get("compressedHistory"), list):
            problems, info = self.reading.problems, fields(about.get("info"))
            history = objects_in(about["compressedHistory"], "messages of a summary", problems, offset=offset)
            entry = Compaction(
                replacement=[m for item in history for m in _content(item)], trigger=text(about.get("trigger")),
                tokens_before=as_int(info.get("originalTokenCount")), tokens_after=as_int(info.get("newTokenCount")),
                at=at,
            )  # fmt: skip
            self._node(uuid, parent, entry)
            self._places[uuid] = uuid
        elif kind not in _QUIET and kind != "rewind" and payload:
            note = Note(text=kind.replace("_", " "), data=payload, at=at)
            self._out.append(Record(entry=note, key=f"{uuid} {offset}"))


def _completed(results: list[AnyBlock], message: dict[str, Any], about: dict[str, Any]) -> list[AnyBlock]:
    """What tools answered, with what came besides text, and with what people were shown."""
    raws = [part["functionResponse"] for part in parts_of(message.get("parts")) if "functionResponse" in part]
    complete: list[AnyBlock] = []
    for result, raw in zip(results, raws, strict=True):
        answer = cast("ToolResult", result)
        inner = fields(raw).get("parts")
        media = split_results(inner)[0] if inner else []
        if media and isinstance(answer.content, str):
            answer = replace(answer, content=[Text(text=answer.content), *media])
        if len(results) == 1:
            is_error = answer.is_error or about.get("status") in ("error", "cancelled")
            answer = replace(answer, is_error=is_error, details=about.get("resultDisplay"))
        complete.append(answer)
    return complete


def _answer(parts: list[dict[str, Any]], owner: dict[str, Any]) -> list[AnyBlock]:
    """What the model said: the usual parts in the shortest way, all others as `turnlog.wire` reads them."""
    blocks: list[AnyBlock] = []
    reader: PartReader | None = None
    for index, part in enumerate(parts):
        words = part.get("text")
        if type(words) is str and words and (len(part) == 1 or (len(part) == 2 and part.get("thought") is True)):
            blocks.append(Text(text=words) if len(part) == 1 else Thinking(text=words, provider=_PROVIDER))
        elif len(part) == 1 and _is_usual(call := fields(part.get("functionCall"))):
            blocks.append(ToolCall(id=call["id"], name=call["name"], input=call["args"]))
        elif any((sound := _sound(part)).values()):
            reader = reader or PartReader(owner, {}, None)
            block = reader.block(sound, index)
            # Thoughts are not Gemini's, though they are written like those.
            blocks.append(replace(block, provider=_PROVIDER) if isinstance(block, Thinking) else block)
    return blocks


def _is_usual(call: dict[str, Any]) -> bool:
    id, name, given = call.get("id"), call.get("name"), call.get("args")
    return type(id) is str and id != "" and type(name) is str and type(given) is dict and WRAPPED not in given


def _sound(part: dict[str, Any]) -> dict[str, Any]:
    """A part as an API would give it: text is text, and what is said of media, too."""
    sound = dict(part)
    if "text" in part and not isinstance(part["text"], str):
        sound["text"] = json_text(part["text"])
    for key in ("inlineData", "fileData"):
        if key in part:
            sound[key] = {name: item for name, item in fields(part[key]).items() if isinstance(item, str)}
    return sound


def _content(item: dict[str, Any]) -> list[Message]:
    """What went to the model, or came from it, as messages."""
    if item.get("role") == "model":
        blocks = _answer(parts_of(item.get("parts")), item)
        return [Message(role="assistant", blocks=blocks, stop=stop_of(blocks))]
    blocks, results = split_results(item.get("parts"))
    messages = Message(role="tool", blocks=results), Message(role="user", blocks=blocks)
    return [message for message in messages if message.blocks]


FORMAT = Format(
    "qwen-code",
    homes_under_variable("QWEN_RUNTIME_DIR QWEN_HOME", ".qwen", "projects", "tmp"),
    find_files("qwen-code", _is_ours),
    _read,
    # It looks for the id among the sessions of the folder it is started in.
    resume=resume_command("qwen", "--resume", "ID"),
    growth=growth.growing(_State, _read),
    watch=Watching(by_file=True),
)
