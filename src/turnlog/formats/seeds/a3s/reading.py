"""Documents of a3s, flat or in the newer tree, as entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import Problem, Reading, Record, SessionHeader, Source, Spawn, Step
from turnlog.formats._shared.finding import is_plain_file, names_in
from turnlog.formats._shared.json import decoded, document, salvage
from turnlog.formats._shared.problem import tell
from turnlog.formats._shared.value import EPOCH, fields, listed
from turnlog.formats.seeds.a3s import layout, shape
from turnlog.formats.seeds.a3s.message import read_message
from turnlog.log.secret import mask
from turnlog.log.usage import Usage

_LATEST = 253_402_300_799
_GLANCE = 16 << 10
_SMALL = 4 << 20
_FLAT = re.compile(rb'^\s*\{\s*"id"\s*:\s*"(?:[^"\\]|\\.)*"\s*,\s*"(?:config"|[a-z_]*$)', re.DOTALL)
_TREE = re.compile(rb'^\s*\{\s*"schema_version"\s*:\s*[0-9]+\s*,\s*"session"\s*:')
_ID = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)
_PLUS = re.compile(rb"[:\[,\s]-?[0-9]+(?:\.[0-9]+)?e\+[0-9]")
_LOGIN = re.compile(r"://[^/@\s]*@")
_REQUIRED = (
    "id", "config", "state", "messages", "context_usage", "total_usage", "tool_names", "thinking_enabled", "created_at",
    "updated_at",
)  # fmt: skip
_KNOWN = (
    *_REQUIRED, "total_cost", "model_name", "cost_records", "thinking_budget", "llm_config", "tasks", "todos",
    "parent_id",
)  # fmt: skip


def is_session(path: str) -> bool:
    """Whether a file looks like a session of a3s: whole or cut off, sealed or not."""
    try:
        with open(path, "rb") as file:
            head = file.read(_GLANCE)
            if head.startswith(layout.SEALED) or _FLAT.match(head) or _TREE.match(head):
                return True
            if not head.lstrip().startswith(b"{") or b'"config"' not in (data := head + file.read(_SMALL)):
                return False
    except OSError:
        return False
    record = fields(decoded(data))
    record = fields(record.get("session")) or record
    return isinstance(record.get("config"), dict) and {"id", "messages", "context_usage"} <= set(record)


def id_at(path: str) -> str | None:
    """The id of the session in a file, from its first bytes."""
    with open(path, "rb") as file:
        match = _ID.search(file.read(_GLANCE))
    value = decoded(match[1]) if match else None
    return value if isinstance(value, str) else None


def read(source: Source) -> Reading:
    """One session, with the checkpoints of runs that did not end, and what lies beside it in the tree."""
    return _Reader(source).reading()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.path = source.path
        self.problems: list[Problem] = []
        self.facts: dict[str, Any] = {}
        folder, self.name = os.path.split(os.path.abspath(source.path))
        parent, kind = os.path.split(folder)
        self.root = os.path.dirname(parent) if (os.path.basename(parent), kind) == (layout.TREE, "sessions") else None
        """The folder of the tree, if it is in one."""

    def tell(self, what: str, where: str = "") -> None:
        tell(self.problems, Problem(what, where), 200, "and more of the same")

    def reading(self) -> Reading:
        data, problems = document(self.path)
        self.problems += problems
        origin: dict[str, Any] = {"layout": "tree"} if self.root is not None else {}
        if data.startswith(layout.SEALED):
            self.tell("sealed: it is encrypted, and only its key opens it")
            return self.result(SessionHeader(id=self.name_id(), hidden=True, origin=origin or None), iter(()), {})
        value, problems = salvage(data)
        self.problems += problems
        whole = fields(value)
        if not isinstance(value, dict):
            self.tell("no session: not an object")
        session = fields(whole.get("session"))
        if "schema_version" in whole or "session" in whole:
            self.keep(shape.WHOLE, {key: item for key, item in whole.items() if key != "session"})
            if whole.get("schema_version") != 1:
                self.tell(f"snapshot version {whole.get('schema_version')!r:.40}, read as version 1")
            if not session:
                self.tell("a snapshot without its session")
        else:
            session = whole
        if _PLUS.search(data):
            origin["plus"] = True
        header = self.header(session, origin)
        self.check_runs(whole.get("run_records"), header.id)
        if self.root is not None:
            layout.check_wal(os.path.join(self.root, layout.WAL), header.id, data, self.problems)
            self.read_beside(header.id)
        self.session_facts(session)
        cost = shape.as_float(session.get("total_cost")) or 0.0
        model = self.facts.get("model")
        total = shape.to_usage(session.get("total_usage"), is_apart=shape.is_apart(self.facts))
        spent = replace(total, cost_micros=round(cost * 1e6) or None if 0 < cost < 1e12 else None)
        totals = {model if isinstance(model, str) else "": spent} if spent != Usage() else {}
        return self.result(header, self.steps(session, header), totals)

    def result(self, header: SessionHeader, steps: Iterator[Step], totals: dict[str, Usage]) -> Reading:
        return Reading(header=header, steps=steps, problems=self.problems, facts=self.facts, totals=totals)

    def name_id(self) -> str:
        stem = self.name.removesuffix(".json")
        return (layout.id_in(self.name) if self.root is not None else None) or stem or "unnamed"

    def header(self, session: dict[str, Any], origin: dict[str, Any]) -> SessionHeader:
        missing = [name for name in _REQUIRED if name not in session]
        if missing:
            self.tell(f"without {', '.join(missing)}, which a3s requires")
        id, config, parent = session.get("id"), fields(session.get("config")), session.get("parent_id")
        if not isinstance(id, str):
            self.tell("without an id: it has the one that its file is called by")
            id = self.name_id()
        created, stamp = session.get("created_at"), None
        if type(created) is int and 0 <= created <= _LATEST:
            stamp = EPOCH + timedelta(seconds=created)
        elif type(created) is int and abs(created) < 1 << 63:
            origin["created_at"] = created
        workspace, name = config.get("workspace"), config.get("name")
        if self.root is not None and layout.tree_name(id) != self.name:
            self.tell(f"the id is {id!r:.80}, the file is called {self.name!r:.80}")
        return SessionHeader(
            id=id,
            # Ids are chosen by people: only with when it began do they tell sessions of two machines apart.
            identity=f"{id}@{created}",
            workspace=workspace if isinstance(workspace, str) and workspace else None,
            title=name if isinstance(name, str) and name else None,
            created=stamp,
            spawned=Spawn(parent) if isinstance(parent, str) and parent else None,
            origin=origin or None,
        )

    def check_runs(self, records: Any, id: str) -> None:
        """Tell where a3s would refuse a snapshot for its runs."""
        seen: set[str] = set()
        for record in listed(records):
            run = fields(fields(record).get("snapshot"))
            name = f"run {run.get('id')!r:.80}"
            if str(run.get("id")) in seen:
                self.tell("twice, which a3s refuses", name)
            seen.add(str(run.get("id")))
            if run.get("session_id") != id:
                self.tell("of another session, which a3s refuses", name)
            events = listed(fields(record).get("events"))
            numbers = [shape.count(fields(event).get("sequence")) for event in events]
            if any(later <= earlier for earlier, later in pairwise(numbers)):
                self.tell("with events out of order, which a3s refuses", name)
            if shape.count(run.get("event_count")) < max(numbers, default=0):
                self.tell("with more events than it counts, which a3s refuses", name)

    def keep(self, key: str, value: Any) -> None:
        """A fact, without what is secret in it."""
        masked, secrets = mask(key, value)
        if secrets:
            self.tell(f"secrets were left out: {', '.join(secrets)[:200]}")
        self.facts[key] = masked

    def session_facts(self, session: dict[str, Any]) -> None:
        config = fields(session.get("config"))
        apart = ("name", "workspace", "system_prompt", *shape.POLICIES)
        self.keep("config", shape.settled({key: item for key, item in config.items() if key not in apart}))
        for name in shape.POLICIES:
            self.keep(name, shape.settled(config.get(name), name))
        # Set absent values to None explicitly: facts that are not set keep their old value.
        prompt, model = config.get("system_prompt"), session.get("model_name")
        self.facts["system"] = prompt if isinstance(prompt, str) else None
        self.facts["model"] = self.facts[shape.NAMED] = model if isinstance(model, str) else None
        for name in ("state", "tool_names", "thinking_enabled", "thinking_budget", "parent_id"):
            self.keep(name, session.get(name))
        tasks = session.get("tasks", session.get("todos"))
        if isinstance(tasks, list):
            self.keep("tasks", [shape.task(item) for item in listed(tasks)])
        if isinstance(session.get("cost_records"), list):
            self.keep("cost_records", session["cost_records"])
        self.service(session)
        for key, name in (
            (shape.TOTAL, "total_usage"),
            (shape.FILLED, "context_usage"),
            (shape.COST, "total_cost"),
            (shape.UPDATED, "updated_at"),
        ):
            if session.get(name) is not None:
                self.keep(key, session[name])
        more = {key: item for key, item in session.items() if key not in _KNOWN}
        if more:
            self.keep(shape.MORE, more)

    def service(self, session: dict[str, Any]) -> None:
        service = fields(session.get("llm_config"))
        if not service:
            return
        plain = {key: item for key, item in service.items() if key != "api_key"}
        address = plain.get("base_url")
        if isinstance(address, str) and _LOGIN.search(address):
            plain["base_url"] = _LOGIN.sub("://", address)
            self.tell("a login in the address of the provider: left out")
        if service.get("api_key"):
            self.tell("an API key: left out")
        self.keep("llm_config", plain)
        if self.facts["model"] is None and isinstance(plain.get("model"), str):
            self.facts["model"] = plain["model"]

    def steps(self, session: dict[str, Any], header: SessionHeader) -> Iterator[Step]:
        raws = listed(session.get("messages"))
        for index, raw in enumerate(raws):
            yield from self.records(raw, header, f"message {index}")
        for run, more in self.unfinished(header.id, raws):
            for index, raw in enumerate(more):
                yield from self.records(raw, header, f"run {run}, message {len(raws) + index}", run)
            raws = [*raws, *more]

    def records(self, raw: Any, header: SessionHeader, where: str, run: str | None = None) -> Iterator[Record]:
        for message in read_message(raw, header.created, lambda what: self.tell(what, where), run):
            yield Record(entry=message)

    def read_beside(self, id: str) -> None:
        for kind in layout.BESIDE:
            value = self.beside(layout.beside_name(kind, id))
            if value is not None:
                self.keep(f"a3s.{kind}", value)

    def beside(self, name: str) -> Any:
        path = os.path.join(cast("str", self.root), name)
        if not is_plain_file(path):
            return None
        data, problems = document(path)
        value = None if data.startswith(layout.SEALED) else decoded(data)
        if problems or value is None:
            self.tell("not readable, or sealed: left out", name)
        return value

    def unfinished(self, id: str, raws: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """What runs that did not end had said already, beyond what the session has."""
        if self.root is None:
            return
        folder = os.path.join(self.root, layout.TREE, layout.CHECKPOINTS)
        loops: dict[str, Any] = {}
        for name in names_in(folder):
            value = fields(self.beside(f"{layout.TREE}/{layout.CHECKPOINTS}/{name}")) if name.endswith(".json") else {}
            run, messages = value.get("run_id"), listed(value.get("messages"))
            if value.get("session_id") != id or not isinstance(run, str):
                continue
            if messages == raws[: len(messages)]:
                loops[run] = {**value, "messages": len(messages)}
            elif messages[: len(raws)] == raws:
                self.tell(f"run {run!r:.80} did not end: what it had done is read from its checkpoint", name)
                loops[run] = {**value, "messages": len(messages)}
                more = messages[len(raws) :]
                raws = messages
                yield run, more
            else:
                self.tell(f"the checkpoint of run {run!r:.80} goes another way: kept as it is", name)
                loops[run] = value
        self.keep(shape.LOOPS, loops)
