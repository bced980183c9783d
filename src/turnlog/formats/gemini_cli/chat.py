"""The file of a chat, looked through once: what it says of the session, and in which order what changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from msgspec import Raw, Struct, field

from turnlog.formats import Problem, Source
from turnlog.formats._json import decode, document, lines, salvage
from turnlog.formats._records import fields, heads, items, text, whole_objects

_CHUNK = 1 << 18


class Patch(Struct, gc=False):
    """One change of the list: a message at an offset, a rewind, or a new list."""

    id: str = ""
    offset: int = -1
    raw: Any = None
    rewind: str | None = None
    is_list: bool = False


class _Head(Struct, gc=False):
    """What a line is, without what it says."""

    id: Any = None
    session: Any = field(default=None, name="sessionId")
    set: Raw = field(default=Raw(), name="$set")
    rewind: Any = field(default=None, name="$rewindTo")


class Chat:
    """The file, looked through once: what it says of the session, and in which order what changed."""

    def __init__(self, source: Source, problems: list[Problem]) -> None:
        self.path = source.path
        self._file: BinaryIO | None = None
        self.about: dict[str, Any] = {}
        self.patches: deque[Patch] = deque()
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
            self.patches.extend(Patch(id=id_of(raw, i), raw=raw) for i, raw in enumerate(listed))
            return
        # Of most lines only the id counts here: a later one may replace them.
        for row in heads(source.path, problems, _Head, marks=("type", "$set", "$rewindTo", "sessionId")):
            head = cast("Any", row.data)
            if isinstance(head, dict):
                self._take(cast("dict[str, Any]", head), row.offset)
            elif head.rewind is not None or head.session is not None:
                self._take(fields(self.at(row.offset)), row.offset)
            elif head.set:
                self._take({"$set": _inner(head.set)}, row.offset)
            else:
                self._take({"id": head.id} if isinstance(head.id, str) else {}, row.offset)
        self.close()  # whoever only wants the header reads no further

    def at(self, offset: int) -> Any:
        """The record at an offset; None if it is damaged."""
        if self._file is None:
            # As long as it is being read. Most offsets rise, so the next one mostly lies in what was read last.
            self._file = open(self.path, "rb", buffering=_CHUNK)  # noqa: SIM115
        self._file.seek(offset)
        data = self._file.readline()
        try:
            return decode(data)
        except ValueError:
            found = next(iter(whole_objects(data)), None)
            return found[1] if found is not None else None

    def _take(self, record: dict[str, Any], offset: int) -> None:
        if "$rewindTo" in record:
            self.patches.append(Patch(rewind=str(record["$rewindTo"])))
        elif "$set" in record:
            change = fields(record["$set"])
            if isinstance(change.get("messages"), list):
                self.patches.append(Patch(offset=offset, is_list=True))
            self.about.update({key: value for key, value in change.items() if key != "messages"})
        elif "sessionId" in record and "type" not in record:
            self.about = {**self.about, **{key: value for key, value in record.items() if key != "messages"}}
        else:
            id = id_of(record, offset)
            if id not in self.newest:
                self.patches.append(Patch(id=id, offset=offset))
            self.newest[id] = offset

    def records(self) -> Iterator[tuple[Patch, dict[str, Any]]]:
        """The patches in order, each with the last version of its message. They are forgotten on the way."""
        while self.patches:
            patch = self.patches.popleft()
            if patch.offset < 0:
                yield patch, fields(patch.raw)
            elif patch.is_list:
                yield patch, fields(self.at(patch.offset))
            else:
                yield patch, self.newest_of(patch.id)
        self.close()

    def newest_of(self, id: str) -> dict[str, Any]:
        """The last version of a message."""
        return fields(self.at(self.newest[id]))

    def close(self) -> None:
        """No more is read."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _inner(raw: Raw) -> Any:
    try:
        return decode(bytes(raw))
    except ValueError:
        return None  # nested too deep


def id_of(record: dict[str, Any], number: int) -> str:
    """The id of a message, or where it stands."""
    return text(record.get("id")) or f"at {number}"


def _from_history(value: Any) -> list[dict[str, Any]]:
    """A list of what went to the model and came back, as a saved chat has it."""
    roles = {"user": "user", "model": "gemini", "gemini": "gemini"}
    return [
        {"type": roles.get(str(item.get("role")), "user"), "content": item.get("parts"), "timestamp": item.get("ts")}
        for item in items(value)
    ]


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
