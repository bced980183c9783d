"""Entries as a document of a3s."""

from __future__ import annotations

from datetime import UTC
from typing import Any, cast

from turnlog.formats import LossWord, OutputFile, Rendered, Transcript
from turnlog.formats._shared.compactedview import seen_on
from turnlog.formats._shared.losses import count_unseen, with_losses
from turnlog.formats._shared.origin import is_of, origin_of
from turnlog.formats._shared.tally import Tally, lost_facts, with_repaired_results
from turnlog.formats.seeds.a3s import schema
from turnlog.formats.seeds.a3s.layout import BESIDE, CHECKPOINTS, TREE, beside_name, flat_name, new_id, tree_name
from turnlog.formats.seeds.a3s.schema import NAME, join, own_record, records_of
from turnlog.interop.rust import F32, pretty
from turnlog.interop.value import as_counter, as_float, as_list, fields, in_order
from turnlog.log.block import ToolCall
from turnlog.log.context import split_system, text_of
from turnlog.log.draft import to_ms
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

_CARRIED = (
    "config", "system", "state", "model", "cost_records", "tool_names", "thinking_enabled", "thinking_budget",
    "llm_config", "tasks", "parent_id", "title", "workspace", "source_title", *schema.POLICIES, *schema.FACTS,
    *(f"a3s.{name}" for name in BESIDE),
)  # fmt: skip


def write(transcript: Transcript) -> Rendered:
    """The session as one document, in the layout that it came in; flat, where it came from elsewhere."""
    words: tuple[LossWord, ...] = ("model of a message", "usage of a message")
    return with_losses(transcript, _Writer(transcript).written(), NAME, *words, always=("edit", "compaction"))


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.facts = transcript.facts
        self.is_own = transcript.agent == NAME
        self.origin = fields(transcript.origin) if self.is_own else {}
        self.tally = Tally(transcript.context.get_blob)
        self.has_facts = self.is_own or schema.UPDATED in self.facts
        """Whether it has facts of a3s: so has a fork made here."""
        self.has_totals = self.has_facts and not transcript.is_free
        self.id = transcript.source_id if self.is_own else new_id(transcript.id)
        self.fresh: list[Message] = []
        """What was said since it was read."""
        self.messages: list[dict[str, Any]] = []
        self.unsaved = 0
        """So many of them at the end are only in a checkpoint of their run."""
        self.system = self.facts.get("system")
        self.is_apart = schema.is_apart(self.facts)

    def written(self) -> Rendered:
        self.tell_messages()
        session = self.session()
        snapshot = self.facts.get(schema.WHOLE) if self.is_own else None
        if isinstance(snapshot, dict):
            session = schema.filled({**cast("dict[str, Any]", snapshot), "session": session}, schema.SNAPSHOT)
        is_tree = self.origin.get("layout") == "tree"
        documents = {f"{TREE}/sessions/{tree_name(self.id)}" if is_tree else flat_name(self.id): session}
        if is_tree:
            documents |= self.beside()
        plus = bool(self.origin.get("plus"))
        files = [OutputFile(path, pretty(document, plus=plus)) for path, document in documents.items()]
        self.count_losses()
        return Rendered(id=self.id, files=files, lost=self.tally.losses(), about={"id": self.id, "tree": is_tree})

    def tell_messages(self) -> None:
        seen = seen_on(self.transcript.path)
        messages = with_repaired_results(seen, NAME, self.tally)
        self.seen = {message.seq for message in seen}
        leading, rest = split_system(messages)
        if leading and not any(is_of(message, NAME) for message in leading):
            texts = [self.system, *(text_of(message.blocks) for message in leading)]
            self.system = "\n\n".join(str(text) for text in texts if text)
            messages = rest
        if not self.has_facts:  # a compaction hides messages that a prompt begins with, and the prompt stays
            self.system = self.transcript.context.system or self.system
        loops = fields(self.facts.get(schema.LOOPS))
        last: Message | None = None
        for message in messages:
            origin = origin_of(message, NAME)
            if origin is None:
                self.fresh.append(message)
                self.messages += records_of(message, self.tally)
                self.unsaved, last = 0, None
                continue
            record = own_record(message, self.tally)
            joins = origin.get("joins")
            before, last = last, message
            if isinstance(joins, list) and before is not None and before.role == "tool":
                join(self.messages[-1], record, cast("list[Any]", joins))
                continue
            self.messages.append(record)
            self.unsaved = self.unsaved + 1 if origin.get("run") in loops and self.is_own else 0

    def session(self) -> dict[str, Any]:
        facts, transcript = self.facts, self.transcript

        def fact(key: str, kind: type, otherwise: Any) -> Any:
            value = facts.get(key)
            return value if type(value) is kind else otherwise

        times = [at for entry in transcript.path if not is_of(entry, NAME) and (at := entry.clock or entry.at)]
        created = self.origin.get("created_at", to_ms(transcript.created) // 1000)
        updated = as_counter(facts.get(schema.UPDATED) if self.has_facts else created) or 0
        service = fields(facts.get("llm_config"))
        # Whether only its service named the model.
        is_unnamed = self.has_facts and facts.get(schema.NAMED) is None and service.get("model") == facts.get("model")
        record: dict[str, Any] = {
            "id": self.id,
            "config": self.config(),
            "state": facts.get("state") if facts.get("state") in schema.STATES else "Active",
            "messages": self.messages[: len(self.messages) - self.unsaved],
            "context_usage": self.context_usage(),
            **self.totals(),
            "model_name": ... if is_unnamed else fact("model", str, ...),
            "cost_records": self.cost_records(),
            "tool_names": fact("tool_names", list, self.tools()),
            "thinking_enabled": fact("thinking_enabled", bool, False),
            "thinking_budget": fact("thinking_budget", int, None),
            "created_at": created,
            "updated_at": max([updated, *(to_ms(at) // 1000 for at in times)]),
            "llm_config": in_order(service, ("provider", "model", "base_url")) if service else ...,
            "tasks": [schema.task(item) for item in as_list(facts.get("tasks")) if self.takes(item)],
            "parent_id": fact("parent_id", str, ...),
        }
        more = fields(facts.get(schema.MORE)) if self.has_facts else {}
        return {**{name: value for name, value in record.items() if value is not ...}, **more}

    def takes(self, task: Any) -> bool:
        """Whether a3s takes it for a task."""
        named = fields(task)
        is_text = all(isinstance(named.get(name), str) for name in ("id", "content"))
        is_task = self.has_facts or (is_text and named.get("status") in schema.PROGRESS)
        self.tally.add("task", "", int(not is_task))
        return is_task

    def config(self) -> dict[str, Any]:
        facts = self.facts if self.has_facts else {}
        policies = {name: facts[name] for name in schema.POLICIES if isinstance(facts.get(name), dict)}
        about = {"name": self.transcript.title or "", "workspace": self.transcript.folder}
        prompt = self.system if isinstance(self.system, str) else None
        config = {**fields(facts.get("config")), **policies, **about, "system_prompt": prompt}
        config = schema.filled(schema.settled(config), schema.CONFIG)
        threshold = as_float(config["auto_compact_threshold"])
        return {**config, "auto_compact_threshold": F32(0.8 if threshold is None else threshold)}

    def tools(self) -> list[str]:
        names = [fields(tool).get("name") for tool in as_list(self.facts.get("tools"))]
        calls = [b.name for message in self.fresh for b in message.blocks if isinstance(b, ToolCall) and b.by is None]
        return list(dict.fromkeys(name for name in [*names, *calls] if isinstance(name, str)))

    def prompt(self, usage: Usage) -> int:
        return usage.input_tokens if self.is_apart else usage.all_input_tokens

    def totals(self) -> dict[str, Any]:
        """What was spent: what its last document says, and what came since."""
        facts = self.facts if self.has_totals else {}
        raw, cost = fields(facts.get(schema.TOTAL)), as_float(facts.get(schema.COST)) or 0.0
        report = self.transcript.usage
        now = report.own + report.inherited
        more = now.beyond(schema.to_usage(raw, is_apart=self.is_apart))
        dearer = max(0, (now.cost_micros or 0) - round(cost * 1e6))
        prompt, output = self.prompt(more), more.output_tokens
        written = more.cache_write_tokens + more.cache_write_1h_tokens
        spent = (prompt, output, prompt + output, more.cache_read_tokens, written)
        total: dict[str, Any] = {
            # a3s leaves open what a cache did where nobody counted it
            name: None
            if "cache" in name and not count and raw.get(name) is None
            else (as_counter(raw.get(name)) or 0) + count
            for name, count in zip(schema.USAGE, spent, strict=True)
        }
        return {"total_usage": in_order({**raw, **total}, schema.USAGE), "total_cost": cost + dearer / 1e6}

    def cost_records(self) -> list[Any]:
        costs = self.facts.get("cost_records") if self.has_totals else None
        records = [
            in_order({**item, "cost_usd": as_float(item["cost_usd"]) or item["cost_usd"]}, schema.COST_RECORD)
            if "cost_usd" in (item := fields(raw))
            else raw
            for raw in as_list(costs)
        ]
        for message in self.fresh:
            usage, at = message.usage, message.clock or message.at or self.transcript.updated
            if usage is None:
                continue
            prompt, output, cost = self.prompt(usage), usage.output_tokens, usage.cost_micros
            dollars = None if cost is None else cost / 1e6
            stamp = at.astimezone(UTC).isoformat(timespec="milliseconds" if at.microsecond else "seconds")
            values = (message.model or "", "", prompt, output, prompt + output, dollars, stamp.replace("+00:00", "Z"))
            records.append(dict(zip(schema.COST_RECORD, (*values, self.id), strict=True)))
        return records

    def context_usage(self) -> dict[str, Any]:
        raw: dict[str, Any] = dict(fields(self.facts.get(schema.FILLED))) if self.has_facts else {}
        if self.fresh or not self.has_facts:
            raw["turns"] = len(self.messages)
            spent = [message.usage for message in self.fresh if message.usage is not None]
            if spent:
                raw["used_tokens"] = spent[-1].all_input_tokens + spent[-1].output_tokens
                raw["percent"] = raw["used_tokens"] / (as_counter(raw.get("max_tokens")) or 200_000)
        raw = {"used_tokens": 0, "max_tokens": 200_000, "percent": 0.0, "turns": 0, **raw}
        return in_order({**raw, "percent": F32(as_float(raw["percent"]) or 0.0)}, schema.CONTEXT)

    def beside(self) -> dict[str, Any]:
        """The other documents of a session in the tree, by their paths."""
        loops = fields(self.facts.get(schema.LOOPS)) if not self.fresh else {}  # a run that went on is over here, too
        documents: dict[str, Any] = {}
        for run, loop in loops.items():
            if isinstance(loop, dict):
                count = fields(loop).get("messages")
                messages = {"messages": self.messages[:count]} if isinstance(count, int) else {}
                documents[f"{TREE}/{CHECKPOINTS}/{tree_name(run)}"] = {**fields(loop), **messages}
        kept = {kind: self.facts[f"a3s.{kind}"] for kind in BESIDE if f"a3s.{kind}" in self.facts}
        return documents | {beside_name(kind, self.id): document for kind, document in kept.items()}

    def count_losses(self) -> None:
        transcript, tally = self.transcript, self.tally
        count_unseen(transcript, tally, self.seen)
        tally.add("time of a message", "the session's own times", len(self.fresh))
        tally.add("fork", "", int(transcript.start.fork is not None))
        carried = [name for name in _CARRIED if self.has_facts or name not in ("config", *schema.POLICIES)]
        tally.add("fact", "", lost_facts(transcript, (*carried, "tools")))
