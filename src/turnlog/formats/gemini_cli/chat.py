"""The file of a chat, looked through once: what it says of the session, and in which order what changed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, BinaryIO

from msgspec import UNSET, DecodeError, Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from turnlog.formats import Problem, Source
from turnlog.formats.gemini_cli.content import GeminiAnswerLine, decode_line
from turnlog.interop.folder import head_of
from turnlog.interop.json import decode, is_deep
from turnlog.interop.problem import report, tell
from turnlog.interop.records import first_records, load_document, objects_in, typed_records, whole_objects
from turnlog.interop.salvage import salvage
from turnlog.interop.value import fields, text

_CHUNK = 1 << 18


class Patch(Struct, gc=False):
    """One change of the list: a message, a rewind, or a new list."""

    id: str = ""
    record: Any = None
    """What was said; None for what is damaged."""
    offset: int = -1
    """Where it begins; of a message only if nothing before it was changed behind that place."""
    rewind: str | None = None
    is_list: bool = False


class _Head(Struct, gc=False):
    """What a line is, without what it says."""

    id: Any = None
    session: Any = field(default=None, name="sessionId")
    set: Any = field(default=UNSET, name="$set")
    rewind: Any = field(default=None, name="$rewindTo")


_MARKS = ("type", "$set", "$rewindTo", "sessionId")
_head = Decoder(_Head).decode


def _decode_head(data: bytes) -> _Head:
    if not data.isascii():
        data.decode()  # what is damaged may not replace what is whole, wherever the damage is
    return _head(data)


class Chat:
    """The file, looked through once: what it says of the session, and in which order what changed."""

    def __init__(
        self, source: Source, problems: list[Problem], *, start: int = 0, about: dict[str, Any] | None = None
    ) -> None:
        self.path, self._problems = source.path, problems
        self._file: BinaryIO | None = None
        self.about: dict[str, Any] = about or {}
        self.newest: dict[str, int] = {}
        """Where the last version of each message is, in the order of the first."""
        self._firsts = array("q")
        """Where the first version of each is."""
        self._between: dict[int, list[Patch]] = {}
        """What came before the message of that number: rewinds, and new lists without their record."""
        self._listed: list[dict[str, Any]] = []
        """The messages of a document."""
        if source.path.endswith(".json"):
            whole = fields(load_document(source.path, problems))
            self.about = {key: item for key, item in whole.items() if key not in ("messages", "history")}
            listed = objects_in(whole.get("messages"), "messages", problems)
            self._listed = listed or _from_history(objects_in(whole.get("history"), "messages", problems))
            return
        newest, firsts = self.newest, self._firsts
        # Of most lines only the id counts here: a later one may replace them.
        for offset, head in typed_records(source.path, problems, _decode_head, marks=_MARKS, start=start):
            if type(head) is not _Head:
                self._take(head, offset)
            elif head.rewind is not None or head.session is not None:
                self._take(fields(self.at(offset)), offset)
            elif (change := head.set) is UNSET:
                id = head.id
                if type(id) is not str or not id:
                    id = id_of({}, offset)
                if id not in newest:
                    firsts.append(offset)
                newest[id] = offset
            else:
                self._set(fields(self.at(offset)).get("$set") if is_deep(change) else change, offset)
        self.close()  # a caller that only wants the header reads no further

    def at(self, offset: int) -> Any:
        """The record at an offset, as far as it can be held."""
        return self._decoded(self._line(offset), offset)

    def _line(self, offset: int) -> bytes:
        if self._file is None:
            # As long as it is being read. Most offsets rise, so the next one mostly lies in what was read last.
            self._file = open(self.path, "rb", buffering=_CHUNK)  # noqa: SIM115
        self._file.seek(offset)
        return self._file.readline()

    def _decoded(self, data: bytes, offset: int) -> Any:
        try:
            return decode(data)
        except ValueError:
            start, record = next(whole_objects(data), (-1, None))
        if start == 0:
            return record  # the rest of the line is damaged, as was reported
        value, damage = salvage(data)
        for problem in damage:
            problem = replace(problem, offset=offset + (problem.offset or 0))
            if problem not in self._problems:
                tell(self._problems, problem)
        return value

    def _take(self, record: dict[str, Any], offset: int) -> None:
        if "$rewindTo" in record:
            patch = Patch(rewind=str(record["$rewindTo"]), offset=offset)
            self._between.setdefault(len(self.newest), []).append(patch)
        elif "$set" in record:
            self._set(record["$set"], offset)
        elif "sessionId" in record and "type" not in record:
            self.about = {**self.about, **{key: value for key, value in record.items() if key != "messages"}}
        else:
            id = id_of(record, offset)
            if id not in self.newest:
                self._firsts.append(-1)  # it may stand in the middle of a damaged line
            self.newest[id] = offset

    def _set(self, change: Any, offset: int) -> None:
        about = {**fields(change)}
        listed = about.pop("messages", None)
        if isinstance(listed, list):
            self._between.setdefault(len(self.newest), []).append(Patch(is_list=True, offset=offset))
        elif listed is not None or not isinstance(change, dict):
            report(self._problems, "a change of the wrong type: left out", offset=offset)
        self.about.update(about)

    def patches(self) -> Iterator[Patch]:
        """What changed, in order; each message in its last version."""
        try:
            ids: set[str] = set()
            for number, raw in enumerate(self._listed):
                id = id_of(raw, number)
                yield Patch(id if id not in ids else id_of({}, number), raw)
                ids.add(id)
            message, between, firsts, reach = self._message, self._between, self._firsts, -1
            for number, (id, offset) in enumerate(self.newest.items()):
                if number in between:
                    yield from self._others(number)
                first = firsts[number]
                yield Patch(id, message(offset), first if first > reach else -1)
                if offset > reach:
                    reach = offset
            yield from self._others(len(self.newest))
        finally:
            self.close()

    def _others(self, number: int) -> Iterator[Patch]:
        for patch in self._between.get(number, ()):
            yield replace(patch, record=fields(self.at(patch.offset))) if patch.is_list else patch

    def _message(self, offset: int) -> Any:
        """A message: of a usual kind, or as it is."""
        data = self._line(offset)
        try:
            record = decode_line(data)
        except (DecodeError, UnicodeDecodeError, RecursionError):
            return fields(self._decoded(data, offset))
        if type(record) is GeminiAnswerLine and record.calls:
            for call in record.calls:
                if (call.args and is_deep(call.args)) or (call.shown and is_deep(call.shown)):
                    return fields(self._decoded(data, offset))
        return record

    def close(self) -> None:
        """No more is read."""
        if self._file is not None:
            self._file.close()
            self._file = None


def id_of(record: dict[str, Any], number: int) -> str:
    """The id of a message, or where it stands."""
    return text(record.get("id")) or f"at {number}"


def _from_history(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A list of what went to the model and came back, as a saved chat has it."""
    pairs = ((item, "gemini" if item.get("role") in ("model", "gemini") else "user") for item in history)
    return [{"type": kind, "content": item.get("parts"), "timestamp": item.get("ts")} for item, kind in pairs]


def is_ours(path: str) -> bool:
    """Whether a file is a chat, by its beginning."""
    if path.endswith(".jsonl"):
        header = next(first_records(path, 1), dict[str, Any]())
        return "sessionId" in header and "projectHash" in header and "type" not in header
    head = (head_of(path) or b"") if path.endswith(".json") else b""
    marks = ((b'"projectHash"', b'"sessionId"'), (b'"history"', b'"parts"', b'"role"'))
    return any(all(mark in head for mark in some) for some in marks)
