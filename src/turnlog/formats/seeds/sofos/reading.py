"""A session file of sofos, of any version, read into records."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import Problem, Reading, Record, SessionHeader, Source
from turnlog.formats._shared.finding import workspace_over
from turnlog.formats._shared.tally import Tally
from turnlog.formats.seeds.sofos import sessionfile
from turnlog.formats.seeds.sofos.block import block_of, flaw, record_of
from turnlog.formats.seeds.sofos.sessionfile import AGENT
from turnlog.interop.folder import is_plain_file
from turnlog.interop.jsonline import document
from turnlog.interop.patch import deep_patch
from turnlog.interop.problem import report
from turnlog.interop.rust import pretty
from turnlog.interop.salvage import salvage
from turnlog.interop.value import as_list, fields, from_ms
from turnlog.log.block import AnyBlock, ToolResult
from turnlog.log.entry import Compaction, Message, Note, Role
from turnlog.log.usage import Usage

SUMMARIES = ("[Conversation Summary]\n", "[Context trimmed — ")
"""How the message begins that sofos leaves of what it threw away."""
_MAX_INSTRUCTIONS = 1 << 20


def read(source: Source) -> Reading:
    """One session: its messages, and everything else the file says as facts."""
    return _File(source.path).reading()


def workspace_of(path: str) -> str | None:
    """The folder that the `.sofos/sessions` of a session lies in."""
    return workspace_over(os.path.dirname(os.path.abspath(path)), ".sofos", "sessions")


class _File:
    def __init__(self, path: str) -> None:
        self.data, self.problems = document(path)
        value, more = salvage(self.data)
        self.problems += more
        self.raw = fields(value)
        if not self.raw and (value is not None or not self.problems):
            self.problems.append(Problem("not a session: no object with fields"))
        self.workspace = workspace_of(path)
        inner, stem = self.raw.get("id"), os.path.splitext(os.path.basename(path))[0]
        self.id = inner if isinstance(inner, str) and sessionfile.is_id(inner) else sessionfile.made_id(stem)
        """The name of the file is what sofos looks a session up by; a sound id inside it counts, too."""
        self.created = self.time("created_at") or sessionfile.time_in(self.id)
        self.updated = self.time("updated_at") or self.created
        self.records: list[Record] = []
        self.messages: list[Message] = []

    def reading(self) -> Reading:
        key = "messages" if "messages" in self.raw else "api_messages"
        if self.raw and key not in self.raw:
            self.problem(f"no {key}")
        for index, item in enumerate(self.items(key)):
            self.take(index, item)
        # An id with its time to the millisecond is like no other; one of another shape is only like no other here.
        is_unique = sessionfile.time_in(self.id) is not None
        identity = self.id if is_unique else f"{self.id} {self.raw.get('created_at', '')}"
        header = SessionHeader(id=self.id, identity=identity, workspace=self.workspace, created=self.created)
        facts, totals = self.facts(), self.totals()
        return Reading(header=header, steps=iter(self.records), problems=self.problems, facts=facts, totals=totals)

    def problem(self, what: str, where: str = "") -> None:
        report(self.problems, what, where=where)

    def items(self, key: str) -> list[Any]:
        value = self.raw.get(key, [])
        if not isinstance(value, list):
            self.problem(f"{key} is not a list")
        return as_list(value)

    def time(self, key: str) -> datetime | None:
        value = self.raw.get(key)
        if type(value) is int and (at := from_ms(value * 1000)) is not None:
            return at
        if self.raw:
            self.problem(f"no {key}" if value is None else f"{key} is {value!r:.40}")
        return None

    def facts(self) -> dict[str, Any]:
        raw = self.raw
        if not raw:
            return {}
        facts: dict[str, Any] = {}
        if raw.get("id") != self.id:
            self.problem(f"the id inside is {raw.get('id')!r:.80}: {self.id} is used")
        if "system_prompt" in raw:
            system = raw["system_prompt"] if isinstance(raw["system_prompt"], str) else self.items("system_prompt")
            facts["system"] = sessionfile.system_text(system)
            is_usual = isinstance(system, str) or system == sessionfile.system_list(facts["system"])
            facts["sofos.system"] = None if is_usual else system
        for key, kind in sessionfile.MODES.items():
            if isinstance(raw.get(key), kind):
                facts["readonly" if key == "safe_mode" else key] = raw[key]
        if instructions := self.instructions():
            facts["instructions"] = instructions
        if "updated_at" not in raw:
            return facts  # torn: what it does not say any more is no news
        facts = {**dict.fromkeys(sessionfile.NEWER), **facts}
        if peak := sessionfile.counters_in(raw).get(sessionfile.PEAK):
            facts["peak_input_tokens"] = peak
        facts["sofos.file"] = self.saved()
        display = self.items("display_messages")
        facts["sofos.display"] = sessionfile.shortened(display, sessionfile.shown(self.messages))
        return facts

    def saved(self) -> dict[str, Any]:
        """What a file says and entries do not: times and counters as they are in it, unknown keys, an odd order."""
        raw = self.raw
        saved: dict[str, Any] = {
            "messages": len(self.messages),
            "created_at": raw.get("created_at"), "updated_at": raw.get("updated_at"),
            "counters": sessionfile.counters_in(raw),
        }  # fmt: skip
        if more := {key: value for key, value in raw.items() if not sessionfile.is_known(key, value)}:
            saved["more"] = more
        for key, value in more.items():
            if key in sessionfile.KEYS or key in sessionfile.MODES:
                self.problem(f"{key} is {value!r:.40}")
        keys = ["api_messages" if key == "messages" else key for key in raw]
        if keys != sessionfile.usual_keys(raw):
            saved["keys"] = keys
        if b"e+" in self.data and pretty(raw) != self.data and pretty(raw, plus=True) == self.data:
            saved["plus"] = True
        return saved

    def totals(self) -> dict[str, Usage]:
        model = self.raw.get("model")
        name = model if isinstance(model, str) else ""
        includes = sessionfile.counts_cached(name or None, self.messages)
        usage = sessionfile.usage_of(sessionfile.counters_in(self.raw), includes_cached=includes)
        return {name: usage} if usage != Usage() else {}

    def instructions(self) -> str | None:
        """The instructions beside the session: those of the project, an empty line, those of the person."""
        texts: list[str] = []
        for name in ("AGENTS.md", ".sofos/instructions.md") if self.workspace is not None else ():
            path = f"{self.workspace}/{name}"
            if not is_plain_file(path):
                continue
            try:
                data, problems = document(path, limit=_MAX_INSTRUCTIONS)
            except OSError as error:
                self.problem(f"cannot be read: {error.strerror}", path)
                continue
            self.problems += [Problem(problem.what, path, problem.offset) for problem in problems]
            texts.append(data.decode("utf-8", "replace"))
        return "\n\n".join(texts) or None

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
            entries = [Compaction(replacement=[parts[0]], at=at, origin={"agent": AGENT})]
        else:
            entries = [replace(part, at=at) for part in parts]
        self.records += [Record(entry=entry) for entry in entries]

    def parts(self, raw: dict[str, Any], role: str, content: str | list[Any], where: str) -> list[Message]:
        """One message, or several where it has results and other things: here a result is a message of its own."""
        kind: Role = role if role == "user" or role == "assistant" or role == "system" else "user"
        if kind != role:
            self.problem(f"the role {role!r:.40}, read as {kind}", where)
        runs: list[tuple[Role, list[AnyBlock], list[Any]]] = []
        for item in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            wrong = flaw(item)
            if wrong:
                self.problem(wrong, where)
            block = block_of(item)
            who: Role = "tool" if kind != "assistant" and isinstance(block, ToolResult) else kind
            if not runs or runs[-1][0] != who:
                runs.append((who, [], []))
            _, blocks, items = runs[-1]
            blocks.append(block)
            items.append(None if wrong else item)
        messages: list[Message] = []
        for who, blocks, items in runs or [(kind, [], [])]:
            message = Message(role=who, blocks=blocks)
            origin: dict[str, Any] = {"agent": AGENT}
            if messages:
                origin["joins"] = True
            elif isinstance(content, str) != sessionfile.is_plain(who, blocks):
                origin["form"] = "text" if isinstance(content, str) else "blocks"
            plain = record_of(message, Tally(), ours=True)
            if patch := deep_patch(plain, {**(plain if messages else raw), "content": items}):
                origin["patch"] = patch
            messages.append(replace(message, origin=origin))
        return messages
