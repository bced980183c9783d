"""Documents of a3s, flat or in the newer tree, as entries."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, pairwise
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import Problem, Reading, Record, SessionHeader, Source, Spawn, Step
from turnlog.formats.seeds.a3s import layout, schema
from turnlog.interop.folder import head_of, is_plain_file, names_in
from turnlog.interop.json import decoded
from turnlog.interop.jsonline import MAX_LINE, document
from turnlog.interop.problem import tell
from turnlog.interop.salvage import salvage
from turnlog.interop.value import as_counter, as_float, as_list, fields, from_ms, mistyped, text
from turnlog.log.secret import mask
from turnlog.log.usage import Usage

_PLUS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|([0-9]e\+[0-9])', re.DOTALL)
"""A text, or a number with a plus in its exponent."""
_LOGIN = re.compile(r"://[^/@\s]*@")
_REQUIRED: dict[str, type] = {
    "id": str, "config": dict, "state": str, "messages": list, "context_usage": dict, "total_usage": dict,
    "tool_names": list, "thinking_enabled": bool, "created_at": int, "updated_at": int,
}  # fmt: skip
_KNOWN: dict[str, type] = {
    **_REQUIRED, "total_cost": float, "model_name": str, "cost_records": list, "thinking_budget": int,
    "llm_config": dict, "tasks": list, "todos": list, "parent_id": str,
}  # fmt: skip
_INNER: dict[str, dict[str, type]] = {
    "config": {"name": str, "workspace": str, "system_prompt": str, "auto_compact_threshold": float}
    | dict.fromkeys(schema.POLICIES, dict),
    "context_usage": {"percent": float}, "total_usage": dict.fromkeys(schema.USAGE, int),
}  # fmt: skip


def read(source: Source) -> Reading:
    """One session, with the checkpoints of runs that did not end, and what lies beside it in the tree."""
    return _Reader(source.path).reading()


class _Reader:
    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []
        self.facts: dict[str, Any] = {}
        folder, self.name = os.path.split(os.path.abspath(path))
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
            header = SessionHeader(id=self.name_id(), hidden=True, origin=origin or None)
            return Reading(header=header, steps=iter(()), problems=self.problems)
        value, problems = salvage(data)
        self.problems += problems
        whole = fields(value)
        if not isinstance(value, dict):
            self.tell("no session: not an object")
        session = fields(whole.get("session"))
        if "schema_version" in whole or "session" in whole:
            self.keep(schema.WHOLE, {key: item for key, item in whole.items() if key != "session"})
            if whole.get("schema_version") != 1:
                self.tell(f"snapshot version {whole.get('schema_version')!r:.40}, read as version 1")
            if not session:
                self.tell("a snapshot without its session")
        else:
            session = whole
        if b"e+" in data and any(match[1] for match in _PLUS.finditer(data)):
            origin["plus"] = True
        header = self.header(session, origin)
        self.check_runs(whole.get("run_records"), header.id)
        if self.root is not None:
            layout.check_wal(os.path.join(self.root, layout.WAL), header.id, data, self.problems)
            for kind in layout.BESIDE:
                if (value := self.beside(layout.beside_name(kind, header.id))) is not None:
                    self.keep(f"a3s.{kind}", value)
        self.session_facts(session)
        cost = as_float(session.get("total_cost")) or 0.0
        total = schema.to_usage(session.get("total_usage"), is_apart=schema.is_apart(self.facts))
        spent = replace(total, cost_micros=round(cost * 1e6) or None if 0 < cost < 1e9 else None)
        return Reading(
            header=header,
            steps=self.steps(session, header),
            problems=self.problems,
            facts=self.facts,
            totals={self.facts["model"] or "": spent} if spent != Usage() else {},
        )

    def name_id(self) -> str:
        stem = self.name.removesuffix(".json")
        return (layout.id_in(self.name) if self.root is not None else None) or stem or "unnamed"

    def header(self, session: dict[str, Any], origin: dict[str, Any]) -> SessionHeader:
        self.check_fields(session)
        id, config, parent = session.get("id"), fields(session.get("config")), text(session.get("parent_id"))
        if not isinstance(id, str):
            self.tell("without an id: it has the one that its file is called by")
            id = self.name_id()
        created, stamp = session.get("created_at"), None
        if type(created) is int and abs(created) < 1 << 63:
            stamp = from_ms(created * 1000)
            origin |= {"created_at": created} if stamp is None else {}
        if self.root is not None and layout.tree_name(id) != self.name:
            self.tell(f"the id is {id!r:.80}, the file is called {self.name!r:.80}")
        return SessionHeader(
            id=id,
            # Ids are chosen by people: only with when it began do they tell sessions of two machines apart.
            identity=f"{id}@{created}",
            workspace=text(config.get("workspace")),
            title=text(config.get("name")),
            created=stamp,
            spawned=Spawn(parent) if parent else None,
            origin=origin or None,
        )

    def check_fields(self, session: dict[str, Any]) -> None:
        """Tell where a3s would refuse a session for its fields: most of them are written as a3s would have them."""
        if missing := [name for name in _REQUIRED if session.get(name) is None]:
            self.tell(f"without {', '.join(missing)}, which a3s requires")
        inner = (mistyped(fields(session.get(name)), types) for name, types in _INNER.items())
        for what in chain(mistyped(session, _KNOWN), *inner):
            self.tell(f"{what}, which a3s refuses")
        if session.get("state") not in (None, *schema.STATES):
            self.tell(f"the state {session['state']!r:.40} is not known")

    def check_runs(self, records: Any, id: str) -> None:
        """Tell where a3s would refuse a snapshot for its runs."""
        seen: set[str] = set()
        for record in as_list(records):
            run = fields(fields(record).get("snapshot"))
            events = as_list(fields(record).get("events"))
            numbers = [as_counter(fields(event).get("sequence")) or 0 for event in events]
            faults = {
                "twice": str(run.get("id")) in seen,
                "of another session": run.get("session_id") != id,
                "with events out of order": any(later <= earlier for earlier, later in pairwise(numbers)),
                "with more events than it counts": (as_counter(run.get("event_count")) or 0) < max(numbers, default=0),
            }
            for what, is_so in faults.items():
                if is_so:
                    self.tell(f"{what}, which a3s refuses", f"run {run.get('id')!r:.80}")
            seen.add(str(run.get("id")))

    def keep(self, key: str, value: Any) -> None:
        """A fact, without what is secret in it."""
        self.facts[key], secrets = mask(key, value)
        if secrets:
            self.tell(f"secrets were left out: {', '.join(secrets)[:200]}")

    def session_facts(self, session: dict[str, Any]) -> None:
        config = fields(session.get("config"))
        apart = ("name", "workspace", "system_prompt", *schema.POLICIES)
        self.keep("config", schema.settled({key: item for key, item in config.items() if key not in apart}))
        for name in schema.POLICIES:
            self.keep(name, schema.settled(config.get(name), name))
        # Set absent values to None explicitly: facts that are not set keep their old value.
        prompt, model = config.get("system_prompt"), session.get("model_name")
        self.facts["system"] = prompt if isinstance(prompt, str) else None
        self.facts["model"] = self.facts[schema.NAMED] = model if isinstance(model, str) else None
        for name in ("state", "tool_names", "thinking_enabled", "thinking_budget", "parent_id"):
            self.keep(name, session.get(name))
        tasks, costs = session.get("tasks", session.get("todos")), session.get("cost_records")
        if isinstance(tasks, list):
            self.keep("tasks", [schema.task(item) for item in as_list(tasks)])
        if isinstance(costs, list):
            self.keep("cost_records", costs)
        if service := dict(fields(session.get("llm_config"))):
            self.keep_service(service)
        for key, name in schema.RUNNING.items():
            if session.get(name) is not None:
                self.keep(key, session[name])
        if more := {key: item for key, item in session.items() if key not in _KNOWN}:
            self.keep(schema.MORE, more)

    def keep_service(self, service: dict[str, Any]) -> None:
        address = service.get("base_url")
        if isinstance(address, str) and _LOGIN.search(address):
            service["base_url"] = _LOGIN.sub("://", address)
            self.tell("a login in the address of the provider: left out")
        if service.pop("api_key", None):
            self.tell("an API key: left out")
        self.keep("llm_config", service)
        if self.facts["model"] is None and isinstance(service.get("model"), str):
            self.facts["model"] = service["model"]

    def steps(self, session: dict[str, Any], header: SessionHeader) -> Iterator[Step]:
        count, raws = 0, as_list(session.get("messages"))
        for run, more in chain([(None, raws)], self.unfinished(header.id, raws)):
            for raw in more:
                where = f"message {count}" if run is None else f"run {run}, message {count}"
                for message in schema.read_message(raw, header.created, partial(self.tell, where=where), run):
                    yield Record(entry=message)
                count += 1

    def beside(self, name: str) -> Any:
        path = os.path.join(cast("str", self.root), name)
        if not is_plain_file(path):
            return None
        value = decoded(head_of(path, MAX_LINE))
        if value is None:
            self.tell("not readable, or sealed: left out", name)
        return value

    def unfinished(self, id: str, raws: list[Any]) -> Iterator[tuple[str, list[Any]]]:
        """What runs that did not end had said already, beyond what the session has."""
        if self.root is None:
            return
        folder = os.path.join(self.root, layout.TREE, layout.CHECKPOINTS)
        loops: dict[str, Any] = {}
        for name in names_in(folder, ".json"):
            value = fields(self.beside(f"{layout.TREE}/{layout.CHECKPOINTS}/{name}"))
            run, messages = value.get("run_id"), as_list(value.get("messages"))
            if value.get("session_id") != id or not isinstance(run, str):
                continue
            if messages[: len(raws)] != raws[: len(messages)]:
                self.tell(f"the checkpoint of run {run!r:.80} goes another way: kept as it is", name)
                loops[run] = value
                continue
            loops[run] = {**value, "messages": len(messages)}
            if len(messages) > len(raws):
                self.tell(f"run {run!r:.80} did not end: what it had done is read from its checkpoint", name)
                yield run, messages[len(raws) :]
                raws = messages
        self.keep(schema.LOOPS, loops)
