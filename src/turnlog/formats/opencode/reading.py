"""A session of opencode: its messages in order, each with its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Forked, Jump, Problem, Reading, Record, ResumePoint, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared import growth
from turnlog.formats._shared.blocks import unknown, usual, worded
from turnlog.formats._shared.origin import of_unknown_role
from turnlog.formats.opencode.storage import NAME, DatabaseMark, StoredMessage, StoredSession, open_session, unchanged
from turnlog.interop.base64 import from_base64
from turnlog.interop.copied import copied_in
from turnlog.interop.value import fields, items, moment, text, usage_in
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Edit, Message, Stop
from turnlog.log.usage import Usage

_CLEARED = "[Old tool result content cleared]"
_STOPS: dict[str, Stop] = {
    "stop": "end", "tool-calls": "tool_use", "length": "length", "error": "error", "other": "end",
}  # fmt: skip
_PROVIDERS = {"google": "gemini"}
_SILENT = ("step-start", "step-finish", "snapshot", "patch", "retry", "compaction")


class _State(Struct):
    """What is known at a resume point."""

    place: DatabaseMark
    last: str
    """The node before it."""
    latest: float
    """When the newest message before it was made."""
    facts: dict[str, Any]


def grown(source: Source, mark: ResumePoint) -> Reading | None:
    """See `turnlog.formats`. A resume point is a message of a database, because the size of the file does not tell."""
    try:
        state = msgspec.convert(mark.state, _State)
    except msgspec.ValidationError:
        return None
    place = unchanged(source, state.place)
    return growth.settled(read(source, mark, replace(state, place=place))) if place is not None else None


def read(source: Source, mark: ResumePoint | None = None, state: _State | None = None) -> Reading:
    """See `turnlog.formats`; with a resume point, only what comes behind it."""
    problems: list[Problem] = []
    session = open_session(source, problems, state.place if state is not None else None)
    info = session.info
    parent, fork = text(info.get("parentID")), session.fork
    header = SessionHeader(
        id=text(info.get("id")) or source.key or "unknown", workspace=text(info.get("directory")),
        title=text(info.get("title")), created=moment(fields(info.get("time")).get("created")),
        spawned=Spawn(parent) if parent else None, hidden=parent is not None,
        copied=copied_in(fields(info.get("metadata"))),
        fork=Forked(fork, source=Source(NAME, source.path, fork) if fork else None) if fork is not None else None,
        origin={key: info[key] for key in ("version", "projectID", "slug") if text(info.get(key))} or None,
    )  # fmt: skip
    return _Reader(session, header, problems, mark, state).reading


class _Reader:
    def __init__(
        self, session: StoredSession, header: SessionHeader, problems: list[Problem], start: ResumePoint | None,
        state: _State | None,
    ) -> None:  # fmt: skip
        self._session = session
        facts = {**state.facts} if state is not None else {}
        self.reading = Reading(header=header, steps=self._steps(), problems=problems, facts=facts)
        self._points = growth.ResumePoints(start, state)
        self._last = state.last if state is not None else ""
        self._since = self._latest = state.latest if state is not None else 0.0
        self._node_before: dict[str, str] = {}
        """The node before each message."""
        self._first_node: dict[str, str] = {}
        self._compaction_requests: dict[str, dict[str, Any]] = {}
        """The part that asks for a compaction, by the message that it is in."""
        self._key_counts: dict[str, int] = {}
        self._draft_mark = ""
        """The end of the keys of an answer that is still being written, and of the prompts that wait behind it. When it
        is complete, both come again, under keys without this end: the prompts follow all of it."""

    def _steps(self) -> Iterator[Step]:
        for message, is_answered, is_last in _placed(self._session.messages):
            id = str(message.info.get("id"))
            if not is_answered and _is_open(message.info):
                content = msgspec.json.encode([message.info, message.parts], order="deterministic")
                self._draft_mark = f"~{sha256(content).hexdigest()[:12]}"
            if not self._draft_mark:
                self._may_resume(message)
            self._node_before[id] = self._last
            for record in self._message(id, message, is_last=is_last):
                self._points.given += 1
                yield record
                if record.entry.is_node:
                    self._last = record.key or ""
                    self._first_node.setdefault(id, self._last)
        if self._session.is_whole:
            self.reading.mark = self._points.newest(facts=growth.small(self.reading.facts))
        revert = text(fields(self._session.info.get("revert")).get("messageID"))
        self._points.require(revert is None or revert in self._node_before)
        if revert in self._node_before and self._node_before[revert] != self._last:
            yield Jump(to=self._node_before[revert], key=f"revert {revert} {self._last}", why="rewind")

    def _may_resume(self, message: StoredMessage) -> None:
        """Set a resume point before a prompt that is newer than all before it."""
        created = fields(message.info.get("time")).get("created")
        if not isinstance(created, (int, float)):
            return
        if message.place is not None and message.info.get("role") == "user" and self._last and created > self._latest:
            self._points.set(0, 0, _State(message.place, self._last, self._latest, {}))
        self._latest = max(self._latest, created)

    def _key(self, id: str, info: dict[str, Any]) -> str:
        """When it was said, and by whom: a fork copies its messages under other ids, but leaves their times."""
        created = fields(info.get("time")).get("created")
        if not isinstance(created, (int, float)):
            return id
        self._points.require(created > self._since)
        key = f"{info.get('role')} {created}"
        number = self._key_counts[key] = self._key_counts.get(key, 0) + 1
        return key if number == 1 else f"{key} {number}"

    def _message(self, id: str, message: StoredMessage, *, is_last: bool) -> Iterator[Record]:
        info, parts = message.info, message.parts
        key = self._key(id, info) + self._draft_mark
        if info.get("role") == "user":
            request = next((part for part in parts if part.get("type") == "compaction"), None)
            if request is not None:
                self._compaction_requests[id] = request
                return
            if parts or not is_last:  # the parts of a prompt are written after it: they may be on their way
                yield self._prompt(key, id, message)
        elif info.get("role") == "assistant":
            request, prompt = None, str(info.get("parentID"))
            if info.get("summary") is True:
                self._points.require(prompt in self._node_before)
                request = self._compaction_requests.pop(prompt, None)
            if request is not None:
                yield self._compaction(key, message, request)
            else:
                yield from self._assistant(key, message)
        else:
            at = moment(fields(info.get("time")).get("created"))
            data = {**info, "parts": parts} if parts else info
            yield Record(entry=of_unknown_role(info.get("role"), data, at, self.reading.problems), key=key)

    def _prompt(self, key: str, id: str, message: StoredMessage) -> Record:
        info, parts = message.info, message.parts
        if model := text(fields(info.get("model")).get("modelID")):
            self.reading.facts["model"] = model
        blocks = [_user_block(part) for part in parts if part.get("type") not in _SILENT and not part.get("ignored")]
        display = None if [part for part in parts if not part.get("synthetic")] else False
        at = moment(fields(info.get("time")).get("created"))
        return Record(entry=Message(role="user", blocks=blocks, at=at, display=display), key=key, turn=id)

    def _assistant(self, key: str, stored: StoredMessage) -> Iterator[Record]:
        info, parts = stored.info, stored.parts
        times = fields(info.get("time"))
        provider = text(info.get("providerID")) or ""
        blocks = [_answer_block(part, provider) for part in parts if part.get("type") not in _SILENT]
        error = info.get("error")
        message = Message(
            role="assistant", blocks=blocks,
            model=_named(info.get("modelID")) or _named(fields(info.get("model")).get("modelID")),
            agent=text(info.get("agent")) or text(info.get("mode")), usage=_usage(info),
            stop="error" if error else _STOPS.get(str(info.get("finish"))), error=error,
            at=moment(times.get("created")), duration_ms=_between(times.get("created"), times.get("completed")),
            meta={"provider": provider} if provider else None,
        )  # fmt: skip
        yield Record(entry=message, key=key)
        is_aborted = fields(error).get("name") == "MessageAbortedError"
        if error and blocks and not (is_aborted and not all(isinstance(block, Thinking) for block in blocks)):
            # The program leaves answers out that failed; one that was only cut short, and says something, stays.
            yield Record(entry=Edit(entry=0, blocks=None), key=f"{key}#left out", names={"entry": key})
        results = [part for part in parts if part.get("type") == "tool" and _state(part).get("status") in _ANSWERED]
        if results:
            ends = [fields(_state(part).get("time")).get("end") for part in results]
            at = max([ended for end in ends if (ended := moment(end)) is not None], default=message.at)
            result_blocks: list[AnyBlock] = [_tool_result(part) for part in results]
            yield Record(entry=Message(role="tool", blocks=result_blocks, at=at), key=f"{key}#results")
            for number, part in enumerate(results):
                if fields(_state(part).get("time")).get("compacted"):
                    cleared = replace(_tool_result(part), content=_CLEARED)
                    edit = Edit(entry=0, blocks=[*result_blocks[:number], cleared, *result_blocks[number + 1 :]])
                    call = str(part.get("callID") or part.get("id"))
                    yield Record(entry=edit, key=f"cleared {call}", names={"entry": f"{key}#results"})

    def _compaction(self, key: str, message: StoredMessage, request: dict[str, Any]) -> Record:
        info, texts = message.info, [part.get("text") for part in message.parts if part.get("type") == "text"]
        summary = Message(role="user", blocks=[Text(str(words or "")) for words in texts])
        tail = self._first_node.get(str(request.get("tail_start_id")))
        self._points.require(tail is not None or not request.get("tail_start_id"))
        entry = Compaction(
            replacement=[summary], trigger="auto" if request.get("auto") else "manual",
            model=_named(info.get("modelID")), usage=_usage(info), at=moment(fields(info.get("time")).get("created")),
        )  # fmt: skip
        return Record(entry=entry, key=key, names={"keep": tail} if tail else {})


def _placed(messages: Iterator[StoredMessage]) -> Iterator[tuple[StoredMessage, bool, bool]]:
    """Each message, whether an answer follows, and whether it is the last. The last turn comes when all are read."""
    unanswered: list[StoredMessage] = []
    for message in messages:
        if message.info.get("role") != "user":
            yield from ((earlier, True, False) for earlier in unanswered)
            unanswered.clear()
        unanswered.append(message)
    yield from ((message, False, message is unanswered[-1]) for message in unanswered)


def _is_open(info: dict[str, Any]) -> bool:
    """Whether it is an answer that is still being written."""
    if info.get("role") != "assistant" or info.get("error") or info.get("time") is None or "finish" in info:
        return False
    return fields(info["time"]).get("completed") is None


_ANSWERED = ("completed", "error", "success")


def _state(part: dict[str, Any]) -> dict[str, Any]:
    return fields(part.get("state"))


def _user_block(part: dict[str, Any]) -> AnyBlock:
    return _file(part) if part.get("type") == "file" else usual(part) or unknown(NAME, part)


def _file(part: dict[str, Any]) -> AnyBlock:
    url, kind, name = str(part.get("url") or ""), text(part.get("mime")), text(part.get("filename"))
    make = Image if (kind or "").startswith("image/") else File
    head, comma, data = url.partition(",")
    if head.startswith("data:") and comma:
        content = from_base64(data) if head.endswith(";base64") else unquote_to_bytes(data)
        return make(media_type=kind, name=name, data=content) if content is not None else unknown(NAME, part)
    return make(media_type=kind, name=name, url=url or None)


def _answer_block(part: dict[str, Any], provider: str) -> AnyBlock:
    kind = part.get("type")
    if kind == "reasoning":
        about = fields(part.get("metadata"))
        signature = text(fields(about.get("anthropic")).get("signature"))
        data = {"signature": signature} if signature is not None else about or None
        provider = _PROVIDERS.get(provider, provider)
        return Thinking(text=str(part.get("text") or ""), provider=provider or None, data=data)
    if kind == "tool":
        call = str(part.get("callID") or part.get("id") or "")
        return ToolCall(id=call, name=str(part.get("tool") or ""), input=_state(part).get("input"))
    return _user_block(part)


def _tool_result(part: dict[str, Any]) -> ToolResult:
    state = _state(part)
    is_error = state.get("status") == "error"
    output = state.get("error") if is_error else state.get("output")
    attached = [_file(item) for item in items(state.get("attachments"))]
    times = fields(state.get("time"))
    return ToolResult(
        call=str(part.get("callID") or part.get("id") or ""), name=text(part.get("tool")),
        content=[Text(text=worded(output)), *attached] if attached else worded(output), is_error=is_error,
        duration_ms=_between(times.get("start"), times.get("end")), details=state.get("metadata") or None,
    )  # fmt: skip


def _named(model: Any) -> str | None:
    return None if model == "unknown" else text(model)


def _between(start: Any, end: Any) -> int | None:
    if isinstance(start, (int, float)) and isinstance(end, (int, float)) and end >= start:
        return int(end - start)
    return None


def _usage(info: dict[str, Any]) -> Usage | None:
    """What opencode counts as input was not cached, and its output does not include reasoning."""
    tokens, cost = fields(info.get("tokens")), info.get("cost")
    if not tokens and not cost:
        return None
    counts = {**tokens, **fields(tokens.get("cache")), "cost": cost}
    usage = usage_in(counts, "input", "output", "read", "write", "reasoning", "cost")
    return replace(usage, output_tokens=usage.output_tokens + usage.reasoning_tokens)
