"""The checkpoints of one owlen session, read as one conversation that grows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from turnlog.formats import Jump, Problem, Reading, Record, SessionHeader, Source, Step
from turnlog.formats._shared.finding import entries_in, workspace_over
from turnlog.formats._shared.json import decode, document, salvage
from turnlog.formats._shared.patch import patch_for
from turnlog.formats._shared.rust import compact, pretty
from turnlog.formats._shared.value import fields, listed
from turnlog.formats.seeds.owlen import shape
from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.entry import Message, Note, Track
from turnlog.workspace.tree import path_text

HEAD = 64 << 10
MAX_PROBLEMS = 1000
_CALL = {"tool_name": str, "arguments": str, "result": str, "success": bool}
_REQUIRED = {"id": str, "user_prompts": list, "assistant_responses": list, "tool_calls": list, "file_diffs": list}
_DIFF = ("path", "before", "after")


class Opening(Struct, frozen=True):
    """What the beginning of a file says of it. `start` is when its session began, `at` when it was saved."""

    path: str
    id: str
    at: shape.Time | None = None
    start: shape.Time | None = None
    is_checkpoint: bool = False

    @property
    def key(self) -> str:
        """Which session it belongs to; all that do not say so are one."""
        return shape.session_id(self.start) if self.start else ""


def opening(path: str) -> Opening:
    """The beginning of a checkpoint, or of what is none; its times come before all that can be long."""
    stem = os.path.basename(path).removesuffix(".json")
    try:
        data, _ = document(path, limit=HEAD)
    except OSError:
        return Opening(path, stem)
    value, _ = salvage(data)
    raw = fields(value)
    is_one = isinstance(raw.get("id"), str) and "timestamp" in raw and ("stats" in raw or len(raw) == 2)
    start = shape.time_of(fields(raw.get("stats")).get("start_time"))
    return Opening(path, stem, shape.time_of(raw.get("timestamp")), start, is_one)


def in_order(openings: Iterable[Opening]) -> list[Opening]:
    """By time, and not by name: `…-9` comes before `…-10`."""
    return sorted(openings, key=lambda one: (one.at or [1 << 62, 0], len(one.id), one.id))


def checkpoint_files(folder: str) -> list[str]:
    """The paths of what can be checkpoints in a folder."""
    files = [entry for entry in entries_in(folder) if entry.is_file(follow_symlinks=False)]
    return [entry.path for entry in files if entry.name.endswith(".json") and entry.name[0] != "."]


def read(source: Source) -> Reading:
    """One session: every checkpoint of it, oldest first, each with what was new in it."""
    if os.path.isdir(source.path):
        openings = [opening(path) for path in checkpoint_files(source.path)]
        mine = [one for one in openings if one.key == source.key]
    else:
        with open(source.path, "rb"):  # a file that cannot be opened is the caller's to hear of
            mine = [opening(source.path)]
    problems: list[Problem] = []
    start = next((one.start for one in mine if one.start is not None), None)
    header = SessionHeader(
        id=shape.session_id(start) if start else (mine[0].id if mine else "torn"),
        identity="" if start else source.path,
        workspace=workspace_of(source.path),
        created=shape.moment(start) if start else None,
    )
    story = _Conversation(problems, header.workspace)
    return Reading(header=header, steps=story.steps(in_order(mine)), problems=problems)


def workspace_of(path: str) -> str | None:
    """The folder that `.owlen/checkpoints` lies in."""
    folder = os.path.abspath(path if os.path.isdir(path) else os.path.dirname(path))
    return workspace_over(folder, ".owlen", "checkpoints")


class _State(Struct, frozen=True):
    """A conversation as far as it went: its last message, and a digest of every beginning of each list."""

    key: str
    running: list[list[str]]
    files: shape.Texts = {}
    """What the files said then, as far as it is known."""

    @property
    def lengths(self) -> list[int]:
        return [len(run) - 1 for run in self.running]

    def begins(self, running: list[list[str]], *, is_cut: bool) -> bool:
        """Whether each list begins one of these; of a file that was cut off, it may also be the other way round."""
        for mine, other in zip(self.running, running, strict=True):
            shared = min(len(mine), len(other)) - 1
            if mine[shared] != other[shared] or (shared < len(mine) - 1 and not is_cut):
                return False
        return True


class _Conversation:
    def __init__(self, problems: list[Problem], workspace: str | None) -> None:
        self.problems = problems
        self.workspace = workspace
        self.first: dict[str, tuple[int, str]] = {}
        self.states = [_State("", [[""], [""], [""]])]
        self.last = ""
        """The last message."""
        self.emitted: set[str] = set()

    def problem(self, what: str, path: str, offset: int | None = None) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(what, os.path.basename(path), offset))

    def steps(self, openings: list[Opening]) -> Iterator[Step]:
        self.first = shape.first_seen(_value_at(one.path) for one in openings)
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
        lists, at = self.lists(raw, one.path), shape.moment(one.at) if one.at else None
        about = self.about(raw, one.path)
        if about is None:
            self.problem("a checkpoint that owlen cannot load: what is new in it is read", one.path)
        running = [_running(texts) for texts in (lists.prompts, lists.responses, map(_as_text, lists.calls))]
        before = self.before(running, is_cut=about is None)
        messages: list[tuple[str, str, Message]] = []
        key = before.key
        for message in _said(lists, before.lengths):
            # A key says all that came before, too: the same words on another branch are another record.
            before_it, key = key, f"{message.role}.{shape.name_of(key, msgspec.json.encode(message.blocks).decode())}"
            messages.append((before_it, key, message))
        note = _note({"after": key, **about}, raw, lists, one, data) if about is not None else None
        name = shape.name_of(key, _as_text([one.id, note.data])) if note is not None else ""
        diffs = listed(raw.get("file_diffs")) if note is not None else []
        turn = f"{shape.AGENT}-{name}" if diffs else None
        # What is changed later for the first time was until then as it was before that.
        unchanged = {path: text for path, (at_first, text) in self.first.items() if at_first >= number}
        files = {**unchanged, **before.files, **shape.texts_of(diffs, "before")}
        if turn is not None:
            yield from self.tracks(files, at)
            yield self.kept(files, f"begin.{name}", at, label=f"before {one.id}", when="begin", turn=turn)
        for before_it, own, message in messages:
            if own in self.emitted:
                continue
            if self.last != before_it:
                yield Jump(to=before_it)
            self.emitted.add(own)
            self.last = own
            yield Record(entry=replace(message, at=at), key=own)
        files.update(shape.texts_of(diffs, "after"))
        longer = [max(pair, key=len) for pair in zip(before.running, running, strict=True)]
        self.states.append(_State(key, longer, files))
        if note is not None:
            yield Record(entry=replace(note, at=at), key=f"checkpoint.{name}")
            when = "end" if turn is not None else None
            label = str(fields(note.data).get("id"))
            yield self.kept(files, f"files.{name}", at, label=label, when=when, turn=turn)

    def kept(self, files: shape.Texts, key: str, at: datetime | None, **more: Any) -> Record:
        """The files that are known, as a checkpoint of ours."""
        entry, blobs = shape.checkpoint_of(files, self.workspace, at, **more)
        return Record(entry=entry, key=key, blobs=blobs)

    def tracks(self, files: shape.Texts, at: datetime | None) -> Iterator[Record]:
        """Files outside the workspace are covered one by one."""
        for path in sorted(files):
            key = f"track.{shape.name_of(path)}"
            if not shape.is_inside(path, self.workspace) and key not in self.emitted:
                self.emitted.add(key)
                yield Record(
                    entry=Track(path=path_text(os.fsencode(path)), at=at, origin={"agent": shape.AGENT}), key=key
                )

    def before(self, running: list[list[str]], *, is_cut: bool) -> _State:
        """The newest checkpoint that this one goes on from, of those that share most with it."""
        fitting = [state for state in self.states if state.begins(running, is_cut=is_cut)]
        most = max(sum(state.lengths) for state in fitting)
        return next(state for state in reversed(fitting) if sum(state.lengths) == most)

    def lists(self, raw: dict[str, Any], path: str) -> shape.Lists:
        lists = shape.Lists()
        for name, texts in (("user_prompts", lists.prompts), ("assistant_responses", lists.responses)):
            for item in listed(raw.get(name)):
                if isinstance(item, str):
                    texts.append(item)
                else:
                    self.problem(f"one of {name} is no text", path)
        for item in listed(raw.get("tool_calls")):
            call = fields(item)
            if all(isinstance(call.get(name), kind) for name, kind in _CALL.items()):
                lists.calls.append({name: call[name] for name in _CALL})
            else:
                self.problem("a tool call that lacks something", path)
        return lists

    def about(self, raw: dict[str, Any], path: str) -> dict[str, Any] | None:
        """What a checkpoint says of itself; None if owlen could not load it."""
        stats = fields(raw.get("stats"))
        times = [
            shape.time_of(raw.get("timestamp")),
            *(shape.time_of(stats.get(name)) for name in ("start_time", "total_duration")),
        ]
        counts = {name: stats.get(name) for name in shape.COUNTS}
        if None in times or any(type(count) is not int for count in counts.values()):
            return None
        if any(not isinstance(raw.get(name), kind) for name, kind in _REQUIRED.items()):
            return None
        diffs: list[dict[str, Any]] = []
        for item in listed(raw["file_diffs"]):
            diff, when = fields(item), shape.time_of(fields(item).get("timestamp"))
            if when is None or not all(isinstance(diff.get(name), str) for name in _DIFF):
                self.problem("a change of a file that lacks something", path)
                continue
            diffs.append({**{name: diff[name] for name in _DIFF}, "timestamp": when})
        figures = {"start_time": times[1], "total_duration": times[2], **counts}
        return {"id": raw["id"], "timestamp": times[0], "stats": figures, "diffs": diffs}


def _note(about: dict[str, Any], raw: dict[str, Any], lists: shape.Lists, one: Opening, data: bytes) -> Note:
    """The note that stands for a checkpoint, with what it takes to write its file again."""
    origin: dict[str, Any] = {"agent": shape.AGENT}
    patch = patch_for(shape.document(about, lists), raw)
    if patch:
        origin["patch"] = patch
    if one.id != about["id"]:
        origin["file"] = one.id
    if pretty(raw) != data and compact(raw) == data:
        origin["compact"] = True
    return Note(text=f"checkpoint {about['id']}", data=about, origin=origin)


def _said(lists: shape.Lists, after: list[int]) -> Iterator[Message]:
    """What is new, in an order that can have been: owlen keeps three lists, and not how they were interleaved.

    Prompts and responses take turns. Tool calls come after the first new prompt and before the first new response,
    so that no response comes before a result that it may speak of.
    """
    prompts, responses = lists.prompts[after[0] :], lists.responses[after[1] :]
    for index in range(max(len(prompts), len(responses), 1)):
        if index < len(prompts):
            yield Message(role="user", blocks=[Text(text=prompts[index])], origin={"agent": shape.AGENT})
        if index == 0:
            for number, call in enumerate(lists.calls[after[2] :], after[2] + 1):
                yield from _called(number, call)
        if index < len(responses):
            yield Message(role="assistant", blocks=[Text(text=responses[index])], origin={"agent": shape.AGENT})


def _called(number: int, call: dict[str, Any]) -> Iterator[Message]:
    """One call and its result. Arguments are kept as they were written where reading them would lose that."""
    origin: dict[str, Any] = {"agent": shape.AGENT}
    try:
        given = decode(call["arguments"].encode("utf-8", "surrogatepass"))
    except ValueError:
        given = call["arguments"]
    if compact(given).decode() != call["arguments"]:
        origin["arguments"] = call["arguments"]
    id, name = f"call-{number}", call["tool_name"]
    yield Message(role="assistant", blocks=[ToolCall(id=id, name=name, input=given)], origin=origin)
    result = ToolResult(call=id, name=name, content=call["result"], is_error=not call["success"])
    yield Message(role="tool", blocks=[result], origin={"agent": shape.AGENT})


def _value_at(path: str) -> dict[str, Any]:
    try:
        return fields(salvage(document(path)[0])[0])
    except OSError:
        return {}  # the error is reported when the file is read


def _as_text(value: Any) -> str:
    return compact(value).decode()


def _running(texts: Iterable[str]) -> list[str]:
    """A digest of every beginning of a list, the empty one included."""
    running = [""]
    for text in texts:
        running.append(shape.name_of(running[-1], text))
    return running
