"""A session file of sofos, of any version, read into records."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any, cast

from msgspec import Struct, field
from msgspec.structs import replace

from turnlog.formats import Problem, Reading, Record, SessionHeader, Source
from turnlog.formats._shared.finding import is_plain_file
from turnlog.formats._shared.json import document, salvage
from turnlog.formats._shared.patch import patch_for
from turnlog.formats._shared.rust import pretty
from turnlog.formats._shared.tally import Tally
from turnlog.formats._shared.value import EPOCH, fields
from turnlog.formats.seeds.sofos import shape
from turnlog.formats.seeds.sofos.block import block_of, flaw, json_of
from turnlog.formats.seeds.sofos.index import workspace_of
from turnlog.formats.seeds.sofos.shape import AGENT, Counters
from turnlog.log.block import AnyBlock, Text, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Role
from turnlog.log.usage import Usage

SUMMARIES = ("[Conversation Summary]\n", "[Context trimmed — ")
"""How the message begins that sofos leaves of what it threw away."""
_MAX_INSTRUCTIONS = 1 << 20


def read(source: Source) -> Reading:
    """One session: its messages, and everything else the file says as facts."""
    data, problems = document(source.path)
    value, more = salvage(data)
    problems += more
    if not isinstance(value, dict) and (value is not None or not problems):
        problems.append(Problem("not a session: no object"))
    return _File(source, data, fields(value), problems).reading()


class _Run(Struct):
    """Blocks of one message that are one of ours, and what each says besides."""

    role: Role
    blocks: list[AnyBlock]
    patches: dict[str, Any] = field(default_factory=dict[str, Any])


class _File:
    def __init__(self, source: Source, data: bytes, raw: dict[str, Any], problems: list[Problem]) -> None:
        self.source = source
        self.data = data
        self.raw = raw
        self.problems = problems
        self.created = self.time("created_at") or shape.time_in(self.id())
        self.updated = self.time("updated_at") or self.created
        self.records: list[Record] = []
        self.messages: list[Message] = []

    def reading(self) -> Reading:
        for index, item in enumerate(self.items("messages" if "messages" in self.raw else "api_messages")):
            self.take(index, item)
        header = SessionHeader(
            id=self.id(), identity=self.identity(), workspace=workspace_of(self.source.path),
            created=self.created,
        )  # fmt: skip
        return Reading(
            header=header, steps=iter(self.records), problems=self.problems, facts=self.facts(), totals=self.totals()
        )

    def problem(self, what: str, where: str = "") -> None:
        if len(self.problems) < 1000:
            self.problems.append(Problem(what, where))

    def id(self) -> str:
        """The name of the file is what sofos looks a session up by; a sound id inside it counts, too."""
        inner, stem = self.raw.get("id"), os.path.splitext(os.path.basename(self.source.path))[0]
        return inner if isinstance(inner, str) and shape.is_id(inner) else shape.made_id(stem)

    def identity(self) -> str:
        """An id with its time to the millisecond is like no other; one of another shape is only like no other here."""
        id = self.id()
        return id if shape.time_in(id) is not None else f"{id} {self.raw.get('created_at', '')}"

    def items(self, key: str) -> list[Any]:
        value = self.raw.get(key, [])
        if isinstance(value, list):
            return cast("list[Any]", value)
        self.problem(f"{key} is not a list")
        return []

    def time(self, key: str) -> datetime | None:
        value = self.raw.get(key)
        if isinstance(value, int) and 0 <= value < 253402300800:
            return EPOCH + timedelta(seconds=value)
        if self.raw:
            self.problem(f"no {key}" if value is None else f"{key} is {value!r:.40}")
        return None

    def facts(self) -> dict[str, Any]:
        raw = self.raw
        if not raw:
            return {}
        facts: dict[str, Any] = {}
        inner = raw.get("id")
        if inner != self.id():
            self.problem(f"the id inside is {inner!r:.80}: {self.id()} is used")
        if "system_prompt" in raw:
            system = raw["system_prompt"]
            facts["system"] = shape.system_text(system)
            if isinstance(system, list) and system != shape.system_list(facts["system"]):
                facts["sofos.system"] = system
        for key, kind in {"model": str, "readonly": bool, "safe_mode": bool, "permission_preset": str}.items():
            if isinstance(raw.get(key), kind):
                facts["readonly" if key == "safe_mode" else key] = raw[key]
        instructions = self.instructions()
        if instructions:
            facts["instructions"] = instructions
        if "updated_at" not in raw:
            return facts  # torn: what it does not say any more is no news
        if peak := Counters.of(raw).peak:
            facts["peak_input_tokens"] = peak
        facts["sofos.file"] = self.saved()
        facts["sofos.display"] = shape.shortened(self.items("display_messages"), shape.shown(self.messages))
        return facts

    def saved(self) -> dict[str, Any]:
        """What a file says and entries do not: times and counters as they are in it, unknown keys, an odd order."""
        raw = self.raw
        saved: dict[str, Any] = {
            "messages": len(self.messages),
            "created_at": raw.get("created_at"), "updated_at": raw.get("updated_at"),
            "counters": {name: raw[name] for name in shape.COUNTERS if shape.is_count(name, raw.get(name))},
        }  # fmt: skip
        if more := {key: value for key, value in raw.items() if not shape.is_known(key, value)}:
            saved["more"] = more
        keys = ["api_messages" if key == "messages" else key for key in raw]
        if keys != shape.usual_keys(raw):
            saved["keys"] = keys
        if b"e+" in self.data and pretty(raw) != self.data and pretty(raw, plus=True) == self.data:
            saved["plus"] = True
        return saved

    def totals(self) -> dict[str, Usage]:
        counters = Counters.of(self.raw)
        model = self.raw.get("model")
        name = model if isinstance(model, str) else ""
        includes = shape.counts_cached(name or None, self.messages)
        usage = counters.usage(includes)
        return {name: usage} if usage != Usage() else {}

    def instructions(self) -> str | None:
        """The instructions beside the session: those of the project, an empty line, those of the person."""
        workspace = workspace_of(self.source.path)
        if workspace is None:
            return None
        paths = (os.path.join(workspace, "AGENTS.md"), os.path.join(workspace, ".sofos", "instructions.md"))
        texts = [text for path in paths if (text := self.text_at(path)) is not None]
        return "\n\n".join(texts) or None

    def text_at(self, path: str) -> str | None:
        if not is_plain_file(path):
            return None
        try:
            data, problems = document(path, limit=_MAX_INSTRUCTIONS)
        except OSError as error:
            self.problem(f"cannot be read: {error.strerror}", path)
            return None
        self.problems += [Problem(problem.what, path, problem.offset) for problem in problems]
        return data.decode("utf-8", "replace")

    def take(self, index: int, item: Any) -> None:
        at = self.created if index == 0 else self.updated
        where = f"message {index + 1}"
        raw = fields(item)
        role, content = raw.get("role"), raw.get("content")
        if not isinstance(role, str) or not isinstance(content, (str, list)):
            self.problem("a message without a role or content", where)
            self.records.append(Record(entry=Note(text="a message that sofos could not have read", data=item, at=at)))
            return
        parts = self.parts(raw, role, cast("str | list[Any]", content), where)
        self.messages += parts
        if index == 0 and role == "user" and isinstance(content, str) and content.startswith(SUMMARIES):
            summary = Compaction(replacement=[parts[0]], at=at, origin={"agent": AGENT})
            self.records.append(Record(entry=summary))
            return
        self.records += [Record(entry=replace(part, at=at)) for part in parts]

    def parts(self, raw: dict[str, Any], role: str, content: str | list[Any], where: str) -> list[Message]:
        """One message, or several where it has results and other things: here a result is a message of its own."""
        kind: Role = role if role == "user" or role == "assistant" or role == "system" else "user"
        if kind != role:
            self.problem(f"the role {role!r:.40}, read as {kind}", where)
        runs = [_Run(kind, [Text(text=content)])] if isinstance(content, str) else self.runs(kind, content, where)
        messages: list[Message] = []
        for number, run in enumerate(runs):
            origin: dict[str, Any] = {"agent": AGENT}
            if number:
                origin["joins"] = True
            elif isinstance(content, str) != shape.is_plain(run.role, run.blocks):
                origin["form"] = "text" if isinstance(content, str) else "blocks"
            if run.patches:
                origin["blocks"] = run.patches
            messages.append(Message(role=run.role, blocks=run.blocks, origin=origin))
        rest = patch_for({"role": shape.role_of(runs[0].role), "content": content}, raw)
        if rest:
            messages[0].origin["message"] = rest
        return messages

    def runs(self, role: Role, content: list[Any], where: str) -> list[_Run]:
        runs: list[_Run] = []
        for item in content:
            wrong = flaw(item)
            if wrong:
                self.problem(wrong, where)
            block = block_of(item)
            who: Role = "tool" if role != "assistant" and isinstance(block, ToolResult) else role
            if not runs or runs[-1].role != who:
                runs.append(_Run(who, []))
            raw = None if wrong else json_of(block, Tally(), ours=True)
            patch = patch_for(raw, item) if raw is not None else None
            if patch:
                runs[-1].patches[str(len(runs[-1].blocks))] = patch
            runs[-1].blocks.append(block)
        return runs or [_Run(role, [])]
