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

from turnlog.formats import Header, Move, Places, Problem, Reading, Record, Source, Step
from turnlog.formats._json import decode, lines
from turnlog.formats._parts import parts_of, said
from turnlog.formats._records import Row, fields, files_under, items, json_text, moment, record_at, rows, tell, text
from turnlog.log.block import AnyBlock, Text, Thinking, ToolResult
from turnlog.log.entry import Compaction, Edit, Message, Note
from turnlog.wire import gemini

TITLE = "qwen-code"
BY_FILE = True
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
    try:
        for number, line in enumerate(lines(path, limit=64 << 20)):
            if number > 20:
                break
            try:
                record = fields(decode(line.data))
            except ValueError:
                continue
            if record.get("type") in _TYPES and {"uuid", "sessionId", "parentUuid"} <= record.keys():
                message = fields(record.get("message"))
                if "content" in message:
                    return False
                if "parts" in message or "systemPayload" in record:
                    return True
    except OSError:
        return False
    return False


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    first: dict[str, Any] = {}
    for row in rows(source.path, []):
        first = row.data
        break
    header = Header(
        id=text(first.get("sessionId")) or os.path.basename(source.path).removesuffix(".jsonl"),
        workspace=text(first.get("cwd")),
        created=moment(first.get("timestamp")),
        origin={"version": first["version"]} if text(first.get("version")) else None,
    )
    reading = Reading(header=header, steps=iter(()))
    reading.steps = _Reader(source, reading).steps()
    return reading


class _Open(Struct):
    """A message that is still arriving in pieces."""

    uuid: str
    parent: str
    record: dict[str, Any]
    parts: list[dict[str, Any]]
    pieces: int = 1


class _Reader:
    def __init__(self, source: Source, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        self._places: dict[str, str] = {}
        self._last = ""
        self._before = ""
        self._live = ""
        self._again = 0
        self._open: _Open | None = None
        self._title: str | None = None
        self._offsets: dict[str, int] = {}
        """Where each record is, to tell one that is there twice from another of the same id."""

    def steps(self) -> Iterator[Step]:
        """All of it."""
        for row in rows(self._source.path, self._reading.problems):
            record = row.data
            uuid, kind = text(record.get("uuid")), record.get("type")
            if uuid is None or kind not in _TYPES:
                yield from self._unknown(record, row)
                continue
            if uuid in self._places and record_at(self._source.path, self._offsets[uuid]) == record:
                continue
            self._offsets.setdefault(uuid, row.offset)
            if self._open is not None and self._open.uuid == uuid and kind == "assistant":
                self._open.parts += parts_of(fields(record.get("message")).get("parts"))
                self._open.pieces += 1
                known = {key: value for key, value in record.items() if value is not None}
                self._open.record = {**self._open.record, **known}
                continue
            yield from self._close()
            if uuid in self._places:
                told = f"another record with the id {uuid!r:.60}: it follows what stands before it"
                tell(self._reading.problems, Problem(told, offset=row.offset))
                self._again += 1
                record = {**record, "parentUuid": self._before}
                uuid = f"{uuid} again {self._again}"
            yield from self._chained(uuid, record, row)
        yield from self._close()
        if self._live and self._places.get(self._live) != self._last:
            place = self._places[self._live]
            yield Move(to=place, key=f"live {place} {self._last}")
        if self._title:
            self._reading.header = replace(self._reading.header, title=self._title)

    def _chained(self, uuid: str, record: dict[str, Any], row: Row) -> Iterator[Step]:
        parent = record.get("parentUuid")
        parent = parent if isinstance(parent, str) else ""
        kind = record["type"]
        if parent and parent not in self._places:
            if record.get("subtype") == "rewind":
                self._before = ""  # to before what is left of the file
            elif self._before:
                told = f"hangs on record {parent!r:.40}, which is missing: it follows what stands before it"
                tell(self._reading.problems, Problem(told, offset=row.offset))
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
            yield from self._system(uuid, record, place, row)
        else:
            blocks, results = said(message.get("parts"))
            results = _told(results, message, fields(record.get("toolCallResult")))
            if results:
                made = Message(role="tool", blocks=results, at=at)
                yield from self._node(f"{uuid}#results" if blocks else uuid, place, made)
                place = self._last
            if blocks or not results:
                display = text(fields(record.get("systemPayload")).get("displayText"))
                shown = getattr(blocks[0], "text", None) if len(blocks) == 1 else None
                made = Message(role="user", blocks=blocks, at=at, display=display if display != shown else None)
                yield from self._node(uuid, place, made)
            yield from self._hidden(record)
            self._places[uuid] = self._last

    def _hidden(self, record: dict[str, Any]) -> Iterator[Step]:
        """What was spoken is shown to people, and never goes to the model again."""
        if record.get("subtype") == "realtime_message":
            key = self._last
            yield from self._node(f"{key}#hidden", key, Edit(entry=0), {"entry": key})

    def _node(self, key: str, place: str, entry: Any, names: dict[str, str] | None = None) -> Iterator[Step]:
        if place != self._last:
            yield Move(to=place)
        yield Record(entry=entry, key=key, names=names or {})
        self._last = key

    def _close(self) -> Iterator[Step]:
        found, self._open = self._open, None
        if found is None:
            return
        raw = {
            "candidates": [{"content": {"role": "model", "parts": _sound(found.parts)}, "finishReason": "STOP"}],
            "responseId": found.uuid,
            "usageMetadata": found.record.get("usageMetadata"),
        }
        made = gemini.draft(raw)
        model = text(found.record.get("model"))
        entry = replace(
            made, model=model, request=None, blocks=_own(made.blocks), at=moment(found.record.get("timestamp"))
        )
        # The first piece may have been all there was when the file was last read.
        key = found.uuid if found.pieces == 1 else f"{found.uuid}+{found.pieces}"
        yield from self._node(key, found.parent, entry)
        yield from self._hidden(found.record)
        self._places[found.uuid] = self._last

    def _system(self, uuid: str, record: dict[str, Any], place: str, row: Row) -> Iterator[Step]:
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
            yield from self._node(uuid, place, entry)
            self._places[uuid] = uuid
        elif kind not in _QUIET and kind != "rewind" and about:
            yield Record(entry=Note(text=kind.replace("_", " "), data=about, at=at), key=f"{uuid} {row.offset}")

    def _unknown(self, record: dict[str, Any], row: Row) -> Iterator[Step]:
        told = f"a record of the unknown type {record.get('type')!r:.60}: kept as a note"
        tell(self._reading.problems, Problem(told, offset=row.offset))
        yield Record(entry=Note(text="a record of an unknown type", data=record), key=f"at {row.offset}")


def _told(results: list[AnyBlock], message: dict[str, Any], about: dict[str, Any]) -> list[AnyBlock]:
    """What tools answered, with what came besides text, and with what people were shown."""
    raws = [part["functionResponse"] for part in parts_of(message.get("parts")) if "functionResponse" in part]
    found: list[AnyBlock] = []
    for result, raw in zip(results, raws, strict=True):
        made = cast("ToolResult", result)
        media, _ = said(fields(raw).get("parts"))
        if media and isinstance(made.content, str):
            made = replace(made, content=[Text(text=made.content), *media])
        if len(results) == 1:
            is_error = made.is_error or about.get("status") in ("error", "cancelled")
            made = replace(made, is_error=is_error, details=about.get("resultDisplay"))
        found.append(made)
    return found


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
