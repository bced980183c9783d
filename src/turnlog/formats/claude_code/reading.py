"""A transcript of Claude Code, read in one pass.

Records hang on each other by `parentUuid`, in the order in which they were written. Three things are not as the file
has them. One API message is several records, one per block: they are one message here. Results of parallel calls hang
beside each other, and the conversation goes on behind only one of them: here they stand in a row behind their message.
And some links of the chain are no part of the conversation: whoever hangs on one hangs on what that one hangs on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from turnlog.formats import Move, Problem, Reading, Record, Source, Step
from turnlog.formats._records import Row, fields, items, moment, rows, text
from turnlog.formats.claude_code.blocks import block, larger, plain_answer
from turnlog.formats.claude_code.chain import Chain
from turnlog.formats.claude_code.heading import CHAIN, Heading
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import Compaction, Custom, Edit, Message, Note
from turnlog.wire import anthropic

_QUIET = frozenset((
    "progress", "queue-operation", "last-prompt", "bridge-session", "started", "result", "frame-link", "atis-latch",
    "content-replacement", "file-history-delta", "summary", "custom-title", "ai-title", "tag", "agent-name", "mode",
    "permission-mode", "relocated", "worktree-state", "pr-link", "file-history-snapshot",
))  # fmt: skip
"""Records that are bookkeeping of the program, or facts that are taken from them below."""
_CLEARED = "[Old tool result content cleared]"


def read(source: Source) -> Reading:
    """See `turnlog.formats`."""
    heading = Heading(source)
    reading = Reading(header=heading.header, steps=iter(()))
    reading.steps = _Reader(source, reading, heading.is_side).steps()
    return reading


class _Message(Struct):
    """An API message that is still arriving, and the results that came in between."""

    key: str
    id: str
    first: dict[str, Any]
    message: dict[str, Any]
    parent: str
    content: list[Any]
    uuids: list[str]
    usage: dict[str, Any]
    results: list[tuple[str, str, Message]]
    """Each with the record it is from, and its key."""
    stop: dict[str, Any] = {}


class _Reader:
    def __init__(self, source: Source, reading: Reading, is_side: bool) -> None:
        self._source = source
        self._reading = reading
        self._is_side = is_side
        self._chain = Chain()
        self._open: _Message | None = None
        self._last = ""
        """The key of the node before."""
        self._before = ""
        """The record of the chain before."""
        self._missing = 0
        self._calls: dict[int, str] = {}
        """Which node has the result of each call (its hash: there are many), for what is cleared later."""
        self._titles: dict[str, str] = {}
        self._unknown: dict[str, int] = {}
        self._boundary: dict[str, Any] = {}
        self._out: list[Step] = []
        """Steps that are not taken yet."""

    def steps(self) -> Iterator[Step]:
        out = self._out
        for row in rows(self._source.path, self._reading.problems):
            record = row.data
            kind, uuid = record.get("type"), record.get("uuid")
            if kind in CHAIN and type(uuid) is str:
                if uuid in self._chain or self._is_elsewhere(record):
                    continue
                self._chained(record)
            else:
                self._other(row)
            if out:
                yield from out
                out.clear()
        self._close()
        yield from out
        for kind, count in self._unknown.items():
            self._reading.problems.append(Problem(f"{count} records of the unknown type {kind!r:.40}: kept as notes"))
        if self._missing:
            told = f"{self._missing} records hang on others that are missing: they follow what stands before them"
            self._reading.problems.append(Problem(told))
        live = self._chain.live()
        if live and live != self._last:
            yield Move(to=live, key=f"live {live} {self._last}")
        title = self._titles.get("custom") or self._titles.get("ai") or self._titles.get("summary")
        if title:
            self._reading.header = replace(self._reading.header, title=title)

    def _is_elsewhere(self, record: dict[str, Any]) -> bool:
        """Whether it belongs to a subagent that an early version kept in the file of its parent."""
        if self._source.key:
            uuid, parent = record["uuid"], record.get("parentUuid")
            return uuid != self._source.key and parent not in self._chain
        return record.get("isSidechain") is True and not self._is_side

    # ── the chain ─────────────────────────────────────────────────────────────────────────────────

    def _chained(self, record: dict[str, Any]) -> None:
        kind, uuid = record["type"], record["uuid"]
        parent = text(record.get("parentUuid" if "parentUuid" in record else "logicalParentUuid"))
        if parent is None:
            parent = "" if "parentUuid" in record else self._before
        elif parent not in self._chain:
            self._missing += bool(self._before)
            parent = self._before
        self._before = uuid
        message = fields(record.get("message"))
        if kind == "assistant":
            self._assistant(record, uuid, parent, message)
        elif kind == "user" and record.get("isCompactSummary"):
            self._close()
            self._compacted(record, uuid, parent, message)
        elif kind == "user":
            self._user(record, uuid, parent, message)
        elif kind == "system":
            self._close()
            self._system(record, uuid, parent)
        elif kind == "attachment":
            self._close()
            data = record.get("attachment")
            entry = Custom(
                kind=f"claude-code.{fields(data).get('type')}", data=data, at=moment(record.get("timestamp"))
            )
            self._node(self._key(record), parent, Record(entry=entry, key=self._key(record)), uuid)
        else:
            self._alias(uuid, parent)

    def _key(self, record: dict[str, Any]) -> str:
        """The record's own id; in a fork that of what it is a copy of."""
        fork = record.get("forkedFrom")
        copied = cast("dict[str, Any]", fork).get("messageUuid") if isinstance(fork, dict) else None
        return copied if isinstance(copied, str) else record["uuid"]

    def _alias(self, uuid: str, parent: str) -> None:
        self._chain.hang(uuid, parent, self._chain.place(parent))

    def _node(
        self, key: str, parent: str, record: Record, uuid: str = "", *, said: bool = False, live: bool = True
    ) -> None:
        place = self._chain.place(parent)
        if place != self._last and (self._last or place):
            self._out.append(Move(to=place))
        self._out.append(record)
        self._last = key
        if uuid:
            self._chain.hang(uuid, parent, key, said=said, live=live)

    def _assistant(self, record: dict[str, Any], uuid: str, parent: str, message: dict[str, Any]) -> None:
        found = self._open
        id = text(message.get("id")) or uuid
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        if found is None or found.id != id or self._is_apart(found, parent):
            self._close()
            found = self._open = _Message(self._key(record), id, record, message, parent, [], [], {}, [])
        found.content += blocks
        found.uuids.append(uuid)
        usage = message.get("usage")
        if usage != found.usage and isinstance(usage, dict):
            found.usage = larger(found.usage, fields(usage))
        if message.get("stop_reason"):
            found.stop = _ending(message)
        self._chain.hang(uuid, parent, found.key, said=True, live=_is_live(record))

    def _is_apart(self, found: _Message, parent: str) -> bool:
        """Whether this is the same answer on another branch."""
        return parent not in found.uuids and self._chain.place(parent) not in {key for _, key, _ in found.results}

    def _close(self) -> None:
        """The API message is complete: it, and then the results that belong to it."""
        found, self._open = self._open, None
        if found is None:
            return
        error = found.first.get("error") or (True if found.first.get("isApiErrorMessage") else None)
        made = None if error else plain_answer(found.message, found.stop, found.content, found.usage)
        if made is not None:
            force_setattr(made, "at", moment(found.first.get("timestamp")))
            self._answered(found, made)
            return
        raw = {**found.message, **found.stop, "content": found.content, "usage": found.usage or None}
        made = anthropic.draft(raw)
        request = text(found.first.get("requestId"))
        made = replace(
            made,
            at=moment(found.first.get("timestamp")),
            request=found.id if "id" in raw else request,
            model=None if made.model == "<synthetic>" else made.model,
            stop="error" if error else made.stop if raw.get("stop_reason") else None,
            error=({"type": "api_error"} if error is True else error) if error else made.error,
            meta=None,
            usage=made.usage if found.usage else None,
        )
        self._answered(found, made)
        if found.first.get("isApiErrorMessage"):
            # What the program says in the model's place when a request failed is not for the model.
            key = f"{found.key}#error"
            self._out.append(Record(entry=Edit(entry=0, blocks=None), key=key, names={"entry": found.key}))
            self._last = key
            for uuid in found.uuids:
                self._chain.redirect(uuid, key)

    def _answered(self, found: _Message, made: Message) -> None:
        self._node(found.key, found.parent, Record(entry=made, key=found.key))
        for _, key, result in found.results:
            self._out.append(Record(entry=result, key=key))
            self._last = key
        for uuid, _, _ in found.results[:-1]:  # the conversation goes on behind all of them, whichever it hangs on
            self._chain.redirect(uuid, self._last)

    def _user(self, record: dict[str, Any], uuid: str, parent: str, message: dict[str, Any]) -> None:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        results = [part for part in parts if part.get("type") == "tool_result"]
        said = [part for part in parts if part.get("type") != "tool_result"]
        at, key, live = moment(record.get("timestamp")), self._key(record), _is_live(record)
        display = False if record.get("isMeta") or record.get("isVisibleInTranscriptOnly") else None
        if results:
            name = f"{key}#results" if said else key
            made = Message(
                id="-", role="tool", blocks=[self._result(part, record) for part in results], at=at, display=display
            )
            for part in results:
                self._calls[hash(str(part.get("tool_use_id") or ""))] = name
            owner = self._open
            if owner is not None and self._answers(owner, results, parent):
                owner.results.append((uuid, name, made))
                self._chain.hang(uuid, parent, name, said=True, live=live)
                if not said:
                    return
                self._close()
            else:
                self._close()
                self._node(name, parent, Record(entry=made, key=name), uuid, said=True, live=live)
            if said:
                parent = uuid
        else:
            self._close()
        if said or not results:
            blocks = [block(part) for part in said]
            entry = Message(id="-", role="user", blocks=blocks, at=at, display=display)
            self._node(key, parent, Record(entry=entry, key=key), uuid, said=True, live=live)

    def _answers(self, owner: _Message, results: list[dict[str, Any]], parent: str) -> bool:
        calls = {str(block.get("id")) for block in owner.content if block.get("type") == "tool_use"}
        return parent in owner.uuids or any(part.get("tool_use_id") in calls for part in results)

    def _result(self, part: dict[str, Any], record: dict[str, Any]) -> ToolResult:
        content = part.get("content")
        return ToolResult(
            call=str(part.get("tool_use_id") or ""),
            content=content if isinstance(content, str) else [block(inner) for inner in items(content)],
            is_error=part.get("is_error") is True,
            details=record.get("toolUseResult"),
        )

    # ── compactions and what the system says ──────────────────────────────────────────────────────

    def _compacted(self, record: dict[str, Any], uuid: str, parent: str, message: dict[str, Any]) -> None:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        boundary, self._boundary = self._boundary, {}
        about = fields(boundary.get("compactMetadata"))
        before = about.get("preTokens")
        summary = Message(role="user", blocks=[block(part) for part in parts])
        entry = Compaction(
            replacement=[summary],
            trigger=text(about.get("trigger")),
            tokens_before=before if type(before) is int else None,
            at=moment(record.get("timestamp")),
        )
        if boundary and parent == boundary.get("uuid"):
            parent = text(boundary.get("logicalParentUuid")) or parent
        key = self._key(record)
        kept = self._chain.place(str(fields(about.get("preservedSegment")).get("headUuid")))
        made = Record(entry=entry, key=key, names={"keep": kept} if kept else {})
        self._node(key, parent, made, uuid, said=True, live=_is_live(record))

    def _system(self, record: dict[str, Any], uuid: str, parent: str) -> None:
        kind = str(record.get("subtype"))
        if kind == "compact_boundary":
            self._boundary = record
            self._alias(uuid, text(record.get("logicalParentUuid")) or parent)
            return
        self._alias(uuid, parent)
        if kind == "microcompact_boundary":
            self._cleared(record, uuid)
            return
        said = text(record.get("content")) or kind.replace("_", " ")
        about = {key: value for key, value in record.items() if key not in ("parentUuid", "uuid", "timestamp")}
        self._out.append(Record(entry=Note(text=said, data=about, at=moment(record.get("timestamp"))), key=uuid))

    def _cleared(self, record: dict[str, Any], uuid: str) -> None:
        """Old results no longer go to the model."""
        about = fields(record.get("microcompactMetadata"))
        names = about.get("compactedToolIds")
        for call in cast("list[Any]", names) if isinstance(names, list) else []:
            key = self._calls.get(hash(str(call)))
            if key is None:
                continue
            blocks: list[AnyBlock] = [ToolResult(call=str(call), content=_CLEARED)]
            entry = Edit(entry=0, blocks=blocks, at=moment(record.get("timestamp")))
            name = f"{uuid}#{call}"
            self._out.append(Record(entry=entry, key=name, names={"entry": key}))
            self._last = name
            self._chain.hang(uuid, uuid, name)

    # ── everything else ───────────────────────────────────────────────────────────────────────────

    def _other(self, row: Row) -> None:
        record, kind = row.data, str(row.data.get("type"))
        facts = self._reading.facts
        if kind in ("custom-title", "ai-title", "summary"):
            name = kind.removesuffix("-title")
            title = record.get({"custom": "customTitle", "ai": "aiTitle", "summary": "summary"}[name])
            if isinstance(title, str) and title.strip():
                self._titles[name] = title.strip()
        elif kind == "tag" and isinstance(record.get("tag"), str):
            facts["tags"] = [record["tag"]] if record["tag"] else []
        elif kind == "relocated" and isinstance(record.get("relocatedCwd"), str):
            facts["workspace"] = record["relocatedCwd"]
        elif kind in ("permission-mode", "mode"):
            mode = record.get("permissionMode") or record.get("mode")
            if isinstance(mode, str):
                facts[kind.replace("-", "_")] = mode
        elif kind == "pr-link":
            facts["pull_request"] = record.get("prUrl")
        elif kind not in _QUIET:
            self._unknown[kind] = self._unknown.get(kind, 0) + 1
            self._out.append(
                Record(entry=Note(text=f"a record of the type {kind}", data=record), key=f"at {row.offset}")
            )


def _is_live(record: dict[str, Any]) -> bool:
    get = record.get
    return not (get("isSidechain") or get("isMeta") or get("teamName"))


def _ending(message: dict[str, Any]) -> dict[str, Any]:
    return {key: message[key] for key in ("stop_reason", "stop_sequence") if key in message}
