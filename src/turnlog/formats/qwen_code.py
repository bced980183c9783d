"""qwen-code: one JSON line per record under `~/.qwen/projects/<folder>/chats/<session>.jsonl`. Only read.

Records hang on each other by `parentUuid` and hold Gemini's parts. Records with one uuid are one message in pieces. The
live conversation ends at the last record in the file, whatever it is, unless it only lies beside the conversation.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from turnlog.formats import (
    Format,
    Jump,
    Places,
    Problem,
    Reading,
    Record,
    ResumePoint,
    Resuming,
    SessionHeader,
    Source,
    Step,
    Watching,
)
from turnlog.formats._shared import growth
from turnlog.formats._shared.key import NONE, UUIDS
from turnlog.formats._shared.parts import parts_of, said
from turnlog.formats._shared.records import files_under, first_records, heads, record_at, rows, tell
from turnlog.formats._shared.unknown import UnknownRecords
from turnlog.formats._shared.value import count, fields, items, json_text, moment, text
from turnlog.log.block import WRAPPED, AnyBlock, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Compaction, Edit, Message, Note
from turnlog.log.usage import Usage
from turnlog.wire import gemini

_NAME = "qwen-code"
_TYPES = ("user", "assistant", "tool_result", "system")
_QUIET = ("ui_telemetry", "slash_command", "file_history_snapshot", "branch_checkpoint", "at_command", "custom_title")
_BESIDE = (
    "session_artifact_event", "session_artifact_snapshot", "session_sources_snapshot", "managed_session_header_v1",
    "managed_session_event_v1", "managed_session_commit_v1",
)  # fmt: skip
"""Records that the conversation never ends at."""
_PROVIDER = "qwen"


def homes(places: Places) -> list[str]:
    """See `turnlog.formats`."""
    environ = places.environ
    base = environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or os.path.join(places.home, ".qwen")
    return [os.path.join(base, "projects"), os.path.join(base, "tmp")]


def find(path: str) -> Iterator[Source]:
    """See `turnlog.formats`."""
    yield from (Source(_NAME, place) for place in files_under(path) if _is_ours(place))


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


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    first: dict[str, Any] = {}
    for row in rows(source.path, []):
        first = row.data
        break
    header = SessionHeader(
        id=text(first.get("sessionId")) or os.path.basename(source.path).removesuffix(".jsonl"),
        workspace=text(first.get("cwd")),
        created=moment(first.get("timestamp")),
        origin={"version": first["version"]} if text(first.get("version")) else None,
    )
    reading = Reading(header=header, steps=iter(()))
    reading.steps = _Reader(source, reading).steps()
    return reading


def grown(source: Source, mark: ResumePoint) -> Reading | None:
    """See `turnlog.formats`."""
    state = growth.state_of(source, mark, _State)
    if state is None:
        return None
    reading = read(source)
    reading.steps = _Reader(source, reading, mark, state).steps()
    return growth.settled(reading)


class _State(Struct, omit_defaults=True):
    """What is known at a mark."""

    before: str
    """The record before it, and its node."""
    last: str
    title: str | None = None


class _Open(Struct):
    """A message that is still arriving in pieces."""

    uuid: str
    parent: str
    record: dict[str, Any]
    parts: list[dict[str, Any]]
    pieces: int = 1


class _Reader:
    def __init__(
        self, source: Source, reading: Reading, start: ResumePoint | None = None, state: _State | None = None
    ) -> None:
        self._source = source
        self._reading = reading
        self._mark = self._start = start
        state = state or _State("", "")
        self._before, self._last, self._title = state.before, state.last, state.title
        self._places = {self._before: self._last} if start is not None else {}
        self._live = ""
        self._again = 0
        self._open: _Open | None = None
        self._out: list[Step] = []
        """Steps that are not taken yet."""
        self._offsets: dict[str, int] = {}
        """Where each record is, to tell one that is there twice from another of the same id."""
        self._unknown = UnknownRecords()
        self._given = start.steps if start is not None else 0
        self._next = 0  # from where on the next mark may be

    def steps(self) -> Iterator[Step]:
        """All of it."""
        out = self._out
        start = self._start.offset if self._start is not None else 0
        for offset, record in heads(self._source.path, self._reading.problems, start=start):
            self._take(record, offset)
            while out:
                self._given += 1
                yield out.pop(0)
        if self._mark is not None:
            self._reading.mark = replace(self._mark, state={**self._mark.state, "title": self._title})
        self._close()
        yield from out
        if self._live and self._places.get(self._live) != self._last:
            place = self._places[self._live]
            yield Jump(to=place, key=f"live {place} {self._last}")
        for told in self._unknown.told():
            tell(self._reading.problems, Problem(told, is_news=True))
        if self._title:
            self._reading.header = replace(self._reading.header, title=self._title)

    def _take(self, record: dict[str, Any], offset: int) -> None:
        uuid, kind = text(record.get("uuid")), record.get("type")
        if uuid is None or kind not in _TYPES:
            note = self._unknown.note(str(kind), record)
            self._out.append(Record(entry=note, key=f"at {offset}"))
            return
        is_known = uuid in self._places
        # Where the record before a mark is, nobody knows; the first of the file is that one, or has another id.
        if is_known and record_at(self._source.path, self._offsets.get(uuid, 0)) == record:
            return
        self._offsets.setdefault(uuid, offset)
        found = self._open
        if found is not None and found.uuid == uuid and kind == "assistant":
            found.parts += parts_of(fields(record.get("message")).get("parts"))
            found.pieces += 1
            known = {key: value for key, value in record.items() if value is not None}
            found.record = {**found.record, **known}
            return
        if found is not None:
            self._close()
        if is_known:
            if self._start is not None:
                raise growth.Back  # how many there were before is not known
            told = f"another record with the id {uuid!r:.60}: it follows what stands before it"
            tell(self._reading.problems, Problem(told, offset=offset))
            self._again += 1
            record = {**record, "parentUuid": self._before}
            uuid = f"{uuid} again {self._again}"
        self._chained(uuid, record, offset)

    def _chained(self, uuid: str, record: dict[str, Any], offset: int) -> None:
        parent = record.get("parentUuid")
        parent = parent if isinstance(parent, str) else ""
        kind = record["type"]
        if self._start is not None and parent not in self._places:
            raise growth.Back
        if offset >= self._next:
            self._may_mark(record, parent, offset)
        if parent and parent not in self._places:
            if record.get("subtype") == "rewind":
                self._before = ""  # to before what is left of the file
            elif self._before:
                told = f"hangs on record {parent!r:.40}, which is missing: it follows what stands before it"
                tell(self._reading.problems, Problem(told, offset=offset))
            parent = self._before
        self._before = uuid
        place = self._places.get(parent, "")
        self._places[uuid] = place
        if record.get("subtype") not in _BESIDE:
            self._live = uuid
        message, at = fields(record.get("message")), moment(record.get("timestamp"))
        if kind == "assistant":
            self._open = _Open(uuid, place, record, parts_of(message.get("parts")))
        elif kind == "system":
            self._system(uuid, record, place, offset)
        else:
            blocks, results = said(message.get("parts"))
            results = _told(results, message, fields(record.get("toolCallResult")))
            if results:
                made = Message(id="-", role="tool", blocks=results, at=at)
                self._node(f"{uuid}#results" if blocks else uuid, place, made)
                place = self._last
            if blocks or not results:
                display = text(fields(record.get("systemPayload")).get("displayText"))
                shown = getattr(blocks[0], "text", None) if len(blocks) == 1 else None
                made = Message(id="-", role="user", blocks=blocks, at=at, display=display if display != shown else None)
                self._node(uuid, place, made)
            self._hidden(record)
            self._places[uuid] = self._last

    def _may_mark(self, record: dict[str, Any], parent: str, offset: int) -> None:
        """A prompt or an answer that goes on behind the record before it; nothing is open there."""
        if not parent or parent != self._before or self._places[parent] != self._last or not self._last:
            return
        if record["type"] in ("user", "assistant") and record.get("subtype") not in _BESIDE:
            self._next = offset + growth.APART
            self._mark = ResumePoint(offset, self._given + len(self._out), to_builtins(_State(parent, self._last)))

    def _hidden(self, record: dict[str, Any]) -> None:
        """What was spoken is shown to people, and never goes to the model again."""
        if record.get("subtype") == "realtime_message":
            key = self._last
            self._node(f"{key}#hidden", key, Edit(entry=0), {"entry": key})

    def _node(self, key: str, place: str, entry: Any, names: dict[str, str] | None = None) -> None:
        if place != self._last:
            self._out.append(Jump(to=place))
        self._out.append(Record(entry=entry, key=key, names=names or NONE))
        self._last = key

    def _close(self) -> None:
        found, self._open = self._open, None
        if found is None:
            return
        about = found.record
        spent, at, model = about.get("usageMetadata"), moment(about.get("timestamp")), text(about.get("model"))
        entry = _plain(found.parts, spent, model, at)
        if entry is None:
            raw = {
                "candidates": [{"content": {"role": "model", "parts": _sound(found.parts)}, "finishReason": "STOP"}],
                "responseId": found.uuid,
                "usageMetadata": spent,
            }
            made = gemini.draft(raw)
            entry = replace(made, id="-", model=model, request=None, blocks=_own(made.blocks), at=at)
        # The first piece may have been all there was when the file was last read.
        key = found.uuid if found.pieces == 1 else f"{found.uuid}+{found.pieces}"
        self._node(key, found.parent, entry)
        self._hidden(about)
        self._places[found.uuid] = self._last

    def _system(self, uuid: str, record: dict[str, Any], place: str, offset: int) -> None:
        kind, about = str(record.get("subtype")), fields(record.get("systemPayload"))
        at = moment(record.get("timestamp"))
        if kind == "custom_title" and text(about.get("customTitle")):
            self._title = about["customTitle"]
        elif kind == "chat_compression" and isinstance(about.get("compressedHistory"), list):
            history, info = items(about.get("compressedHistory")), fields(about.get("info"))
            before, after = info.get("originalTokenCount"), info.get("newTokenCount")
            entry = Compaction(
                replacement=[m for item in history for m in _content(item)],
                trigger=text(about.get("trigger")),
                tokens_before=before if type(before) is int else None,
                tokens_after=after if type(after) is int else None,
                at=at,
            )
            self._node(uuid, place, entry)
            self._places[uuid] = uuid
        elif kind not in _QUIET and kind != "rewind" and about:
            self._out.append(Record(entry=Note(text=kind.replace("_", " "), data=about, at=at), key=f"{uuid} {offset}"))


def _told(results: list[AnyBlock], message: dict[str, Any], about: dict[str, Any]) -> list[AnyBlock]:
    """What tools answered, with what came besides text, and with what people were shown."""
    raws = [part["functionResponse"] for part in parts_of(message.get("parts")) if "functionResponse" in part]
    found: list[AnyBlock] = []
    for result, raw in zip(results, raws, strict=True):
        made = cast("ToolResult", result)
        inner = fields(raw).get("parts")
        media = said(inner)[0] if inner else []
        if media and isinstance(made.content, str):
            made = replace(made, content=[Text(text=made.content), *media])
        if len(results) == 1:
            is_error, shown = made.is_error or about.get("status") in ("error", "cancelled"), about.get("resultDisplay")
            if is_error or shown is not None:
                made = replace(made, is_error=is_error, details=shown)
        found.append(made)
    return found


def _plain(parts: list[dict[str, Any]], spent: Any, model: str | None, at: datetime | None) -> Message | None:
    """An answer of the usual kind, as `turnlog.wire` would read it, in less time; None for any other."""
    blocks: list[AnyBlock] = []
    stop = "end"
    for part in parts:
        words = part.get("text")
        if type(words) is str and words and (len(part) == 1 or (len(part) == 2 and part.get("thought") is True)):
            blocks.append(Text(text=words) if len(part) == 1 else Thinking(text=words, provider=_PROVIDER))
        elif len(part) == 1 and _is_usual(asked := fields(part.get("functionCall"))):
            blocks.append(ToolCall(id=asked["id"], name=asked["name"], input=asked["args"]))
            stop = "tool_use"
        else:
            return None
    usage = _spent(cast("dict[str, Any]", spent)) if isinstance(spent, dict) else None
    if usage is None and isinstance(spent, dict):
        return None
    return Message(id="-", role="assistant", blocks=blocks, model=model, usage=usage, stop=stop, at=at)


def _is_usual(call: dict[str, Any]) -> bool:
    id, name, given = call.get("id"), call.get("name"), call.get("args")
    return type(id) is str and id != "" and type(name) is str and type(given) is dict and WRAPPED not in given


def _spent(raw: dict[str, Any]) -> Usage | None:
    """What a request cost, where it is spelled as usual."""
    for name, value in raw.items():
        if type(value) is float or "_" in name:
            return None
    get = raw.get
    cached, thoughts = count(get("cachedContentTokenCount")), count(get("thoughtsTokenCount"))
    return Usage(
        max(0, count(get("promptTokenCount")) - cached) + count(get("toolUsePromptTokenCount")),
        cached,
        output_tokens=count(get("candidatesTokenCount")) + thoughts,
        reasoning_tokens=thoughts,
    )


def _sound(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts as an API would give them: text is text, and what is said of media, too."""
    found: list[dict[str, Any]] = []
    for part in parts:
        made = dict(part)
        for key, value in part.items():
            if key == "text" and not isinstance(value, str):
                made[key] = json_text(value)
            elif key in ("inlineData", "fileData"):
                made[key] = {name: item for name, item in fields(value).items() if isinstance(item, str)}
        found.append(made)
    return found


def _own(blocks: list[AnyBlock]) -> list[AnyBlock]:
    """Thoughts are not Gemini's, though they are written like those."""
    return [replace(block, provider=_PROVIDER) if isinstance(block, Thinking) else block for block in blocks]


def _content(item: dict[str, Any]) -> list[Message]:
    """What went to the model, or came from it, as messages."""
    if item.get("role") == "model":
        parts = _sound(parts_of(item.get("parts")))
        made = gemini.draft({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
        return [replace(made, request=None, blocks=_own(made.blocks))]
    blocks, results = said(item.get("parts"))
    found: list[Message] = []
    if results:
        found.append(Message(role="tool", blocks=results))
    if blocks:
        found.append(Message(role="user", blocks=blocks))
    return found


FORMAT = Format(
    "qwen-code",
    homes,
    find,
    read,
    # It looks for the id among the sessions of the folder it is started in.
    resume=Resuming(command=lambda id, path, workspace: ["qwen", "--resume", id], ids=UUIDS),
    growth=grown,
    watch=Watching(by_file=True),
)
