"""The checkpoints of one owlen session, read as one conversation that grows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import accumulate, zip_longest
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.finding import workspace_over
from turnlog.formats.seeds.owlen import checkfile
from turnlog.interop.folder import head_of, is_plain_file, names_in
from turnlog.interop.json import json_or_text
from turnlog.interop.jsonline import document
from turnlog.interop.patch import flat_patch
from turnlog.interop.problem import report
from turnlog.interop.records import load_sidecar
from turnlog.interop.rust import compact, pretty
from turnlog.interop.rusttime import RustTime, datetime_of, rust_time_in
from turnlog.interop.salvage import salvage
from turnlog.interop.value import as_list, fields, without_none
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.entry import Message, Note, Role, Track
from turnlog.workspace.tree import path_text

HEAD = 64 << 10
_CALL = {"tool_name": str, "arguments": str, "result": str, "success": bool}
_REQUIRED = {"id": str, "user_prompts": list, "assistant_responses": list, "tool_calls": list, "file_diffs": list}
_DIFF = {"path": str, "before": str, "after": str}
_COUNTS = ("total_messages", "total_tool_calls", "estimated_tokens")


class Opening(Struct, frozen=True):
    """What the beginning of a file says of it. `start` is when its session began, `at` when it was saved."""

    path: str
    id: str
    at: RustTime | None = None
    start: RustTime | None = None
    is_checkpoint: bool = False

    @property
    def key(self) -> str:
        """Which session it belongs to: owlen gives it no id, but says when it began. All that do not are one."""
        return f"{self.start[0]}-{self.start[1]:09d}" if self.start else ""


def opening(path: str) -> Opening:
    """The beginning of a checkpoint, or of what is none; its times come before all that can be long."""
    raw = fields(salvage(head_of(path, HEAD) or b"")[0])
    is_one = isinstance(raw.get("id"), str) and "timestamp" in raw and ("stats" in raw or len(raw) == 2)
    start = rust_time_in(fields(raw.get("stats")).get("start_time"))
    stem = os.path.basename(path).removesuffix(".json")
    return Opening(path, stem, rust_time_in(raw.get("timestamp")), start, is_one)


def checkpoint_files(folder: str) -> list[str]:
    """The paths of what can be checkpoints in a folder."""
    paths = [os.path.join(folder, name) for name in names_in(folder, ".json") if name[0] != "."]
    return [path for path in paths if is_plain_file(path)]


def read(source: Source) -> Reading:
    """One session: every checkpoint of it, oldest first, each with what was new in it."""
    if os.path.isdir(source.path):
        openings = [opening(path) for path in checkpoint_files(source.path)]
        mine = [one for one in openings if one.key == source.key]
    else:
        with open(source.path, "rb"):  # a file that cannot be opened is the caller's to hear of
            mine = [opening(source.path)]
    start = mine[0].start if mine else None
    header = SessionHeader(
        id=(mine[0].key or mine[0].id) if mine else "torn",
        identity="" if start else source.path,
        workspace=workspace_of(source.path),
        created=datetime_of(start) if start else None,
    )
    mine.sort(key=lambda one: (one.at or [1 << 62, 0], len(one.id), one.id))  # `…-9` comes before `…-10`
    conversation = _Conversation(header.workspace)
    return Reading(header=header, steps=conversation.steps(mine), problems=conversation.problems)


def workspace_of(path: str) -> str | None:
    """The folder that `.owlen/checkpoints` lies in."""
    folder = os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path))
    return workspace_over(folder, ".owlen", "checkpoints")


class _State(Struct, frozen=True):
    """A conversation as far as it went: its last message, and a digest of every beginning of each list."""

    key: str
    running: list[list[str]]
    files: checkfile.Texts = {}
    """What the files said then, as far as it is known."""

    @property
    def lengths(self) -> list[int]:
        return [len(run) - 1 for run in self.running]

    def begins(self, running: list[list[str]], *, is_cut: bool) -> bool:
        """Whether each list begins one of these; of a file that was cut off, it may also be the other way round."""
        shared = [min(len(mine), len(other)) - 1 for mine, other in zip(self.running, running, strict=True)]
        is_shared = all(mine[n] == other[n] for mine, other, n in zip(self.running, running, shared, strict=True))
        return is_shared and (is_cut or shared == self.lengths)


class _Conversation:
    def __init__(self, workspace: str | None) -> None:
        self.problems: list[Problem] = []
        self.workspace = workspace
        self.first: dict[str, tuple[int, str]] = {}
        """What each file said before it was first changed, and in which checkpoint that was."""
        self.states = [_State("", [[""], [""], [""]])]
        self.last = ""
        """The last message."""
        self.emitted: set[str] = set()

    def problem(self, what: str, path: str, offset: int | None = None) -> None:
        report(self.problems, what, where=os.path.basename(path), offset=offset)

    def steps(self, openings: list[Opening]) -> Iterator[Step]:
        for number, one in enumerate(openings):
            raw = fields(load_sidecar(one.path, []))  # what is wrong with it is told below
            for path, text in checkfile.texts_of(raw.get("file_diffs"), "before").items():
                self.first.setdefault(path, (number, text))
        for number, one in enumerate(openings):
            try:
                data, problems = document(one.path)
            except OSError as error:
                self.problem(f"cannot be opened: {error.strerror or error}", one.path)
                continue
            value, more = salvage(data)
            for problem in problems + more:
                self.problem(problem.what, one.path, problem.offset)
            yield from self.checkpoint(number, one, fields(value), data)

    def checkpoint(self, number: int, one: Opening, raw: dict[str, Any], data: bytes) -> Iterator[Step]:
        lists, at = self.lists(raw, one.path), datetime_of(one.at) if one.at else None
        about = self.about(raw, one.path)
        if about is None:
            self.problem("a checkpoint that owlen cannot load: what is new in it is read", one.path)
        texts = (lists.prompts, lists.responses, map(_as_text, lists.calls))
        running = [list(accumulate(one_list, checkfile.name_of, initial="")) for one_list in texts]
        before = self.before(running, is_cut=about is None)
        messages: list[tuple[str, str, Message]] = []
        key = before.key
        for message in _new_messages(lists, before.lengths):
            # A key says all that came before, too: the same words on another branch are another record.
            before_it, blocks = key, msgspec.json.encode(message.blocks).decode()
            key = f"{message.role}.{checkfile.name_of(before_it, blocks)}"
            messages.append((before_it, key, message))
        note = _note({"after": key, **about}, raw, lists, one, data) if about is not None else None
        name = checkfile.name_of(key, _as_text([one.id, note.data])) if note is not None else ""
        diffs = as_list(raw.get("file_diffs")) if note is not None else []
        turn = f"{checkfile.AGENT}-{name}" if diffs else None
        # What is changed later for the first time was until then as it was before that.
        unchanged = {path: text for path, (at_first, text) in self.first.items() if at_first >= number}
        files = {**unchanged, **before.files, **checkfile.texts_of(diffs, "before")}
        if turn is not None:
            yield from self.tracks(files, at)
            when = {"label": f"before {one.id}", "when": "begin", "turn": turn}
            yield checkfile.checkpoint_of(files, self.workspace, f"begin.{name}", at=at, **when)
        for before_it, own, message in messages:
            if own in self.emitted:
                continue
            if self.last != before_it:
                yield Jump(to=before_it)
            self.emitted.add(own)
            self.last = own
            yield Record(entry=replace(message, at=at), key=own)
        files.update(checkfile.texts_of(diffs, "after"))
        longer = [max(pair, key=len) for pair in zip(before.running, running, strict=True)]
        self.states.append(_State(key, longer, files))
        if note is not None:
            yield Record(entry=replace(note, at=at), key=f"checkpoint.{name}")
            when = {"label": str(fields(note.data).get("id")), "when": "end" if turn else None, "turn": turn}
            yield checkfile.checkpoint_of(files, self.workspace, f"files.{name}", at=at, **when)

    def tracks(self, files: checkfile.Texts, at: datetime | None) -> Iterator[Record]:
        """Files outside the workspace are covered one by one."""
        for path in sorted(files):
            key = f"track.{checkfile.name_of(path)}"
            if not checkfile.is_inside(path, self.workspace) and key not in self.emitted:
                self.emitted.add(key)
                track = Track(path=path_text(os.fsencode(path)), at=at, origin={"agent": checkfile.AGENT})
                yield Record(entry=track, key=key)

    def before(self, running: list[list[str]], *, is_cut: bool) -> _State:
        """The newest checkpoint that this one goes on from, of those that share most with it."""
        fitting = (state for state in reversed(self.states) if state.begins(running, is_cut=is_cut))
        return max(fitting, key=lambda state: sum(state.lengths))

    def lists(self, raw: dict[str, Any], path: str) -> checkfile.Lists:
        lists = checkfile.Lists()
        for name, texts in (("user_prompts", lists.prompts), ("assistant_responses", lists.responses)):
            for item in as_list(raw.get(name)):
                if isinstance(item, str):
                    texts.append(item)
                else:
                    self.problem(f"one of {name} is no text", path)
        for item in as_list(raw.get("tool_calls")):
            call = fields(item)
            if _has(call, _CALL):
                lists.calls.append({name: call[name] for name in _CALL})
            else:
                self.problem("a tool call that lacks something", path)
        return lists

    def about(self, raw: dict[str, Any], path: str) -> dict[str, Any] | None:
        """What a checkpoint says of itself; None if owlen could not load it."""
        stats = fields(raw.get("stats"))
        times = {name: rust_time_in(stats.get(name)) for name in ("start_time", "total_duration")}
        counts = {name: stats.get(name) for name in _COUNTS}
        at = rust_time_in(raw.get("timestamp"))
        is_counted = all(type(count) is int for count in counts.values())
        if None in (at, *times.values()) or not is_counted or not _has(raw, _REQUIRED):
            return None
        diffs: list[dict[str, Any]] = []
        for item in as_list(raw["file_diffs"]):
            diff, when = fields(item), rust_time_in(fields(item).get("timestamp"))
            if when is None or not _has(diff, _DIFF):
                self.problem("a change of a file that lacks something", path)
                continue
            diffs.append({**{name: diff[name] for name in _DIFF}, "timestamp": when})
        return {"id": raw["id"], "timestamp": at, "stats": times | counts, "diffs": diffs}


def _has(raw: dict[str, Any], types: dict[str, type]) -> bool:
    return all(isinstance(raw.get(name), kind) for name, kind in types.items())


def _note(about: dict[str, Any], raw: dict[str, Any], lists: checkfile.Lists, one: Opening, data: bytes) -> Note:
    """The note that stands for a checkpoint, with what it takes to write its file again."""
    origin = {
        "patch": flat_patch(checkfile.document(about, lists), raw),
        "file": one.id if one.id != about["id"] else None,
        "compact": True if pretty(raw) != data and compact(raw) == data else None,
    }
    return Note(text=f"checkpoint {about['id']}", data=about, origin={"agent": checkfile.AGENT, **without_none(origin)})


def _new_messages(lists: checkfile.Lists, after: list[int]) -> Iterator[Message]:
    """What is new, in an order that can have been: owlen keeps three lists, and not how they were interleaved.

    Prompts and responses take turns. Tool calls come after the first new prompt and before the first new response,
    so that no response comes before a result that it may speak of.
    """
    prompts, responses, calls = lists.prompts[after[0] :], lists.responses[after[1] :], lists.calls[after[2] :]
    for index, (prompt, response) in enumerate(list(zip_longest(prompts, responses)) or [(None, None)]):
        if prompt is not None:
            yield _message("user", Text(text=prompt))
        for number, call in enumerate(calls if index == 0 else [], after[2] + 1):
            yield from _called(number, call)
        if response is not None:
            yield _message("assistant", Text(text=response))


def _called(number: int, call: dict[str, Any]) -> Iterator[Message]:
    """One call and its result. Arguments are kept as they were written where reading them would lose that."""
    arguments, given = call["arguments"], json_or_text(call["arguments"])
    id, name = f"call-{number}", call["tool_name"]
    kept = {} if _as_text(given) == arguments else {"arguments": arguments}
    yield _message("assistant", ToolCall(id=id, name=name, input=given), **kept)
    yield _message("tool", ToolResult(call=id, name=name, content=call["result"], is_error=not call["success"]))


def _message(role: Role, block: AnyBlock, **origin: str) -> Message:
    return Message(role=role, blocks=[block], origin={"agent": checkfile.AGENT, **origin})


def _as_text(value: Any) -> str:
    return compact(value).decode()
