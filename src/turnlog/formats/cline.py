"""Cline: `~/.cline/data/sessions/<session>/`, and the tasks of its extension for VS Code before. Only read.

Both write their files anew whenever something changes, and give messages other ids when a session is resumed. So what
a message says is what tells it from others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any

import msgspec
from msgspec.structs import replace

from turnlog.formats import Forked, Format, Places, Reading, Record, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared.blocks import results_apart, unknown, usual, worded
from turnlog.formats._shared.finding import folder_of, resume_command
from turnlog.formats._shared.key import Keys
from turnlog.formats._shared.origin import of_unknown_role
from turnlog.interop.base64 import from_base64
from turnlog.interop.folder import files_under, head_of
from turnlog.interop.json import decoded
from turnlog.interop.problem import Problems, report
from turnlog.interop.records import load_document, load_sidecar
from turnlog.interop.value import as_int, as_list, fields, items, moment, text, usage_in
from turnlog.log.block import AnyBlock, File, Image, ToolCall, ToolResult
from turnlog.log.digest import sha256
from turnlog.log.entry import Compaction, Message, Note
from turnlog.log.usage import Usage

_NAME = "cline"
_MESSAGES = ".messages.json"
_HISTORY = "api_conversation_history.json"
_EXTENSION = "saoudrizwan.claude-dev"


def _homes(places: Places) -> list[str]:
    base = places.environ.get("CLINE_DATA_DIR") or os.path.join(folder_of(places, "CLINE_DIR", ".cline"), "data")
    folders = [places.environ.get("CLINE_SESSION_DATA_DIR") or os.path.join(base, "sessions")]
    for folder in (".config", "Library/Application Support", "AppData/Roaming", ".vscode-server/data"):
        inner = ["User"] if "vscode-server" in folder else ["Code", "User"]
        folders.append(os.path.join(places.home, folder, *inner, "globalStorage", _EXTENSION, "tasks"))
    return folders


def _find(path: str) -> Iterator[Source]:
    """A session comes before its subagents, which lie beside it."""
    for folder, files in groupby(files_under(path), os.path.dirname):
        own = os.path.basename(os.path.abspath(folder)) + _MESSAGES
        ours = filter(_is_ours, sorted(files, key=lambda file: os.path.basename(file) != own))
        yield from (Source(_NAME, file) for file in ours)


def _is_ours(path: str) -> bool:
    name = os.path.basename(path)
    if name != _HISTORY and not name.endswith(_MESSAGES):
        return False
    head = head_of(path) or b""
    if name == _HISTORY:
        return head.lstrip()[:1] == b"[" and b'"role"' in head
    return head.lstrip()[:1] == b"{" and b'"messages"' in head and (b'"role"' in head or b'"sessionId"' in head)


def _read(source: Source) -> Reading:
    problems: Problems = []
    value = load_document(source.path, problems)
    if os.path.basename(source.path) == _HISTORY:
        return _Task(source, items(value), problems).reading
    return _Session(source, fields(value), problems).reading


class _Session:
    """A manifest, the messages, and the state that a compaction left, if there was one."""

    def __init__(self, source: Source, value: dict[str, Any], problems: Problems) -> None:
        folder = os.path.dirname(os.path.abspath(source.path))
        stem = os.path.basename(source.path).removesuffix(_MESSAGES)
        self._messages = items(value.get("messages"))
        self._compacted = fields(load_sidecar(os.path.join(folder, f"{stem}.compaction.json"), problems))
        manifest = fields(load_sidecar(os.path.join(folder, f"{stem}.json"), problems))
        about = fields(manifest.get("metadata"))
        session = os.path.basename(folder)
        is_sub = stem != session and os.path.isfile(os.path.join(folder, session + _MESSAGES))
        id = text(manifest.get("session_id")) or text(value.get("sessionId")) or stem
        fork = text(fields(about.get("fork")).get("forkedFromSessionId"))
        older = os.path.join(os.path.dirname(folder), fork or "", f"{fork}{_MESSAGES}")
        first = self._messages[0] if self._messages else fields(None)
        facts = {"system": value.get("system_prompt"), **{name: manifest.get(name) for name in ("model", "provider")}}
        header = SessionHeader(
            id=f"{session}.{stem}" if is_sub else id,
            workspace=text(manifest.get("workspace_root")) or text(manifest.get("cwd")),
            title=text(about.get("title")),
            created=moment(manifest.get("started_at")) or moment(first.get("ts")),
            hidden=is_sub,
            fork=Forked(fork, source=Source(_NAME, older) if os.path.isfile(older) else None) if fork else None,
            spawned=Spawn(session, role=text(value.get("agent"))) if is_sub else None,
            origin={"source": manifest["source"]} if text(manifest.get("source")) else None,
        )
        facts = {name: fact for name, fact in facts.items() if text(fact)}
        self.reading = Reading(header=header, steps=self._steps(), problems=problems, facts=facts)

    def _steps(self) -> Iterator[Step]:
        end, keys = self._boundary(), Keys()
        for number, raw in enumerate(self._messages, 1):
            for entry in _entries(raw, self.reading.problems):
                yield Record(entry=entry, key=keys.of(entry))
            if number == end:
                yield self._compaction()

    def _boundary(self) -> int:
        """Behind how many messages the compaction stands; -1 where there is none that still applies."""
        state, messages = self._compacted, self._messages
        number = as_int(state.get("source_message_count")) or 0
        kind, _, last = str(state.get("source_last_message_key")).partition(":")
        if not state or not items(state.get("messages")):
            return -1
        gone = ""
        if not 0 < number <= len(messages):
            gone = "a compaction of messages that are not there any more"
        elif "source_prefix_hash" not in state and kind == "id" and last != str(text(messages[number - 1].get("id"))):
            gone = "a compaction up to a message that is another one now"
        if gone:
            report(self.reading.problems, f"{gone}: it does not apply", where="compaction")
        return -1 if gone else number

    def _compaction(self) -> Record:
        state = items(self._compacted.get("messages"))
        messages = [entry for raw in state for entry in _entries(raw, []) if isinstance(entry, Message)]
        abouts = (fields(raw.get("metadata")) for raw in state)
        about = next((about for about in abouts if about.get("kind")), fields(None))
        entry = Compaction(
            replacement=[replace(message, at=None, usage=None) for message in messages],
            trigger="manual" if about.get("reason") == "manual_compaction" else None,
            tokens_before=as_int(about.get("tokensBefore")),
            at=moment(self._compacted.get("updated_at")),
        )
        what = sha256(msgspec.json.encode(state, order="deterministic")).hexdigest()[:24]
        return Record(entry=entry, key=f"compaction {what}")


class _Task:
    """What went to the model, what the window showed of it, and a line in the list of tasks."""

    def __init__(self, source: Source, messages: list[dict[str, Any]], problems: Problems) -> None:
        folder = os.path.dirname(os.path.abspath(source.path))
        id = os.path.basename(folder)
        self._messages = messages
        self._shown = items(load_sidecar(os.path.join(folder, "ui_messages.json"), problems))
        metadata = fields(load_sidecar(os.path.join(folder, "task_metadata.json"), problems))
        self._used = items(metadata.get("model_usage"))
        state = os.path.join(os.path.dirname(os.path.dirname(folder)), "state", "taskHistory.json")
        tasks = items(load_sidecar(state, []))
        self._task = next((item for item in tasks if str(item.get("id")) == id), fields(None))
        first = next((text(item.get("text")) for item in self._shown if item.get("say") in ("task", "text")), None)
        title = text(self._task.get("task")) or first
        is_number = id.isascii() and id.isdigit() and len(id) < 16
        started = self._shown[0].get("ts") if self._shown else int(id) if is_number else None
        header = SessionHeader(
            id=id,
            workspace=text(self._task.get("cwdOnTaskInitialization")),
            title=title.strip().splitlines()[0][:200] if title and title.strip() else None,
            created=moment(started),
        )
        self.reading = Reading(header=header, steps=self._steps(), problems=problems)

    def _steps(self) -> Iterator[Step]:
        totals = self.reading.totals
        for item in self._shown:
            spent = _request(item)
            if spent != Usage():
                model = self._model_at(moment(item.get("ts")))
                totals[model] = totals.get(model, Usage()) + spent
        if self._used and text(self._used[-1].get("model_id")):
            self.reading.facts["model"] = self._used[-1]["model_id"]
        pairs = ((item.get("conversationHistoryIndex"), item) for item in self._shown)
        times = {index: moment(item.get("ts")) for index, item in pairs if type(index) is int}
        keys, at, sent = Keys(), self.reading.header.created, list[tuple[str, list[Message]]]()
        for number, raw in enumerate(self._messages):
            # The index is that of the last message when the window showed something.
            stamp = moment(raw.get("ts")) or times.get(number)
            at = stamp if stamp is not None and (at is None or stamp > at) else at
            entries = _entries(raw, self.reading.problems, at)
            named = [(keys.of(entry), entry) for entry in entries]
            yield from (Record(entry=entry, key=key) for key, entry in named)
            sent.append((named[0][0], [entry for entry in entries if isinstance(entry, Message)]))
        yield from self._truncated(sent, at)

    def _truncated(self, sent: list[tuple[str, list[Message]]], at: datetime | None) -> Iterator[Step]:
        """A stretch that no longer goes to the model: what stands before it does, and what follows."""
        deleted = self._task.get("conversationHistoryDeletedRange")
        bounds = [bound for bound in as_list(deleted) if type(bound) is int]
        start, end = bounds if len(bounds) == 2 else (0, -1)
        if not 0 <= start <= end < len(sent):
            return
        before = [replace(message, at=None, usage=None) for _, messages in sent[:start] for message in messages]
        keep = sent[end + 1][0] if end + 1 < len(sent) else ""
        entry = Compaction(replacement=list(before), at=at)
        # What it stands behind is part of its name, so that it stands behind what comes later, too.
        key = f"range {start} {end} {sent[-1][0]}"
        yield Record(entry=entry, key=key, names={"keep": keep} if keep else {})

    def _model_at(self, at: datetime | None) -> str:
        model = ""
        for item in self._used:
            since = moment(item.get("ts"))
            if model and at is not None and since is not None and since > at:
                break
            model = text(item.get("model_id")) or model
        return model


def _request(item: dict[str, Any]) -> Usage:
    """What the window showed of the cost of a request. It is put in when the answer is there."""
    if item.get("say") not in ("api_req_started", "deleted_api_reqs"):
        return Usage()
    about = fields(decoded(str(item.get("text") or "{}").encode("utf-8", "replace")))
    return usage_in(about, "tokensIn", "tokensOut", "cacheReads", "cacheWrites", cost="cost")


def _entries(raw: dict[str, Any], problems: Problems, at: datetime | None = None) -> list[Message | Note]:
    """What tools answered comes apart from what was said."""
    role, content = raw.get("role"), raw.get("content")
    at = moment(raw.get("ts")) or at
    if role not in ("user", "assistant"):
        return [of_unknown_role(role, raw, at, problems)]
    parts = as_list(content) if isinstance(content, list) else [{"type": "text", "text": content}]
    results: list[AnyBlock] = [_result(fields(part)) for part in parts if fields(part).get("type") == "tool_result"]
    blocks = [_block(part) for part in parts if fields(part).get("type") != "tool_result"]
    about: dict[str, Any] = {}
    if role == "assistant":
        model = fields(raw.get("modelInfo"))
        about = {"model": text(model.get("id")) or text(model.get("modelId")), "usage": _usage(raw)}
    messages = results_apart(role, results, blocks, at, **about)
    if messages[-1].role == "user" and fields(raw.get("metadata")).get("displayRole") == "system":
        messages[-1] = replace(messages[-1], display=False)
    return [*messages]


def _usage(raw: dict[str, Any]) -> Usage | None:
    about, cached = fields(raw.get("metrics")), ("cacheReadTokens", "cacheWriteTokens")
    usage = usage_in(about, "inputTokens", "outputTokens", *cached, cost="cost", input_includes_cache=True)
    return usage if usage != Usage() else None


def _block(raw: Any) -> AnyBlock:
    part = fields(raw)
    kind = part.get("type")
    if kind == "tool_use" and isinstance(part.get("id"), str) and isinstance(part.get("name"), str):
        return ToolCall(id=part["id"], name=part["name"], input=part.get("input"))
    if kind == "file" and isinstance(part.get("content"), str):
        data = part["content"].encode("utf-8", "replace")
        return File(media_type="text/plain", name=text(part.get("path")), data=data)
    if kind == "image":
        source = fields(part.get("source")) or part
        media = text(source.get("media_type")) or text(source.get("mediaType")) or text(source.get("mimeType"))
        picture = from_base64(source.get("data"))
        if picture is not None or text(source.get("url")):
            return Image(media_type=media, data=picture, url=source["url"] if picture is None else None)
    return usual(part) or unknown(_NAME, raw)


def _result(part: dict[str, Any]) -> ToolResult:
    """Tools of the SDK answer with objects of their own, which the model sees as JSON."""
    content = part.get("content")
    answer: str | list[AnyBlock] = worded(content)
    if isinstance(content, list) and all(fields(one).get("type") in ("text", "image") for one in as_list(content)):
        answer = [_block(one) for one in as_list(content)]
    return ToolResult(
        call=str(part.get("tool_use_id") or ""),
        name=text(part.get("name")),
        content=answer,
        is_error=part.get("is_error") is True,
    )


FORMAT = Format(
    "Cline: sessions of its SDK, tasks of its extension",
    _homes,
    _find,
    _read,
    # Those of its extension go on in the editor alone: they have a number, and nothing behind it.
    resume=resume_command("cline", "--id", "ID", ids=r"\d{1,20}_[0-9A-Za-z]{1,40}"),
)
