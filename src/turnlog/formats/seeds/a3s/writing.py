"""Entries as a document of a3s."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any, cast

from msgspec.structs import replace

from turnlog.formats import OutputFile, Rendered, Transcript
from turnlog.formats._shared.origin import is_of, origin_of
from turnlog.formats._shared.rest import also_lost
from turnlog.formats._shared.rust import pretty
from turnlog.formats._shared.tally import Tally, lost_facts, mended, unseen
from turnlog.formats._shared.value import EPOCH, fields, in_order, listed
from turnlog.formats._shared.view import seen_on
from turnlog.formats.seeds.a3s import shape
from turnlog.formats.seeds.a3s.layout import BESIDE, CHECKPOINTS, TREE, beside_name, flat_name, new_id, tree_name
from turnlog.formats.seeds.a3s.message import NAME, join, own_record, records_of
from turnlog.log.block import ToolCall
from turnlog.log.context import split_system, text_of
from turnlog.log.entry import Message
from turnlog.log.usage import Usage

_SECOND = timedelta(seconds=1)
_CARRIED = (
    "config", "system", "state", "model", "cost_records", "tool_names", "thinking_enabled", "thinking_budget",
    "llm_config", "tasks", "parent_id", "title", "workspace", "source_title", *shape.POLICIES, *shape.FACTS,
    *(f"a3s.{name}" for name in BESIDE),
)  # fmt: skip


_ALWAYS = ("edit", "compaction")
_ALSO = ("model of a message", "usage of a message")


def write(transcript: Transcript) -> Rendered:
    """The session as one document, in the layout that it came in; flat, where it came from elsewhere."""
    written = _Writer(transcript).written()
    return also_lost(transcript, written, "a3s", *_ALSO, always=_ALWAYS)


class _Writer:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.facts = transcript.facts
        self.is_own = transcript.agent == NAME
        self.origin = fields(transcript.origin) if self.is_own else {}
        self.tally = Tally(transcript.context.get_blob)
        self.is_kin = self.is_own or shape.UPDATED in self.facts
        self.has_totals = self.is_kin and not transcript.is_free
        """A fork made here has the facts of the session it was forked from."""
        self.id = transcript.source_id if self.is_own else new_id(transcript.id)
        self.fresh: list[Message] = []
        """What was said since it was read."""
        self.said: list[dict[str, Any]] = []
        self.unsaved = 0
        """So many of them at the end are only in a checkpoint of their run."""
        self.system = self.facts.get("system")
        self.is_apart = shape.is_apart(self.facts)

    def written(self) -> Rendered:
        self.say()
        session = self.session()
        plus = bool(self.origin.get("plus"))
        snapshot = self.facts.get(shape.WHOLE) if self.is_own else None
        document: Any = session
        if isinstance(snapshot, dict):
            document = shape.filled({**cast("dict[str, Any]", snapshot), "session": session}, shape.SNAPSHOT)
        is_tree = self.origin.get("layout") == "tree"
        path = f"{TREE}/sessions/{tree_name(self.id)}" if is_tree else flat_name(self.id)
        files = [OutputFile(path, pretty(document, plus=plus))]
        if is_tree:
            files += self.beside(plus)
        self.count_losses()
        return Rendered(id=self.id, files=files, lost=self.tally.losses(), about={"id": self.id, "tree": is_tree})

    def say(self) -> None:
        seen = seen_on(self.transcript.path)
        messages = mended(seen, NAME, self.tally)
        self.seen = {message.seq for message in seen}
        leading, rest = split_system(messages)
        if leading and not any(is_of(message, NAME) for message in leading):
            texts = [self.system, *(text_of(message.blocks) for message in leading)]
            self.system = "\n\n".join(str(text) for text in texts if text)
            messages = rest
        if not self.is_kin:  # a compaction hides messages that a prompt begins with, and the prompt stays
            self.system = self.transcript.context.system or self.system
        loops = fields(self.facts.get(shape.LOOPS))
        last: Message | None = None
        for message in messages:
            origin = origin_of(message, NAME)
            if origin is None:
                self.fresh.append(message)
                self.said += records_of(message, self.tally)
                self.unsaved, last = 0, None
                continue
            record = own_record(message, self.tally)
            joins = origin.get("joins")
            before, last = last, message
            if isinstance(joins, list) and before is not None and before.role == "tool":
                join(self.said[-1], record, cast("list[Any]", joins))
                continue
            self.said.append(record)
            self.unsaved = self.unsaved + 1 if origin.get("run") in loops and self.is_own else 0

    def session(self) -> dict[str, Any]:
        facts, transcript = self.facts, self.transcript
        state, names = facts.get("state"), facts.get("tool_names")
        thinking, budget = facts.get("thinking_enabled"), facts.get("thinking_budget")
        tasks, parent = facts.get("tasks"), facts.get("parent_id")
        model, service = facts.get("model"), facts.get("llm_config")
        times = [at for entry in transcript.path if not is_of(entry, NAME) and (at := entry.clock or entry.at)]
        created = self.origin.get("created_at", (transcript.created - EPOCH) // _SECOND)
        updated = facts.get(shape.UPDATED) if self.is_kin else created
        kept_tasks = [item for item in listed(tasks) if self.takes(item)]
        record: dict[str, Any] = {
            "id": self.id,
            "config": self.config(),
            "state": state if state in shape.STATES else "Active",
            "messages": self.said[: len(self.said) - self.unsaved],
            "context_usage": self.context_usage(),
            "total_usage": self.total_usage(),
            "total_cost": self.total_cost(),
            "model_name": model if isinstance(model, str) and not self.is_unnamed(model, service) else ...,
            "cost_records": self.cost_records(),
            "tool_names": names if isinstance(names, list) else self.tools(),
            "thinking_enabled": thinking if isinstance(thinking, bool) else False,
            "thinking_budget": budget if isinstance(budget, int) and not isinstance(budget, bool) else None,
            "created_at": created,
            "updated_at": max([shape.count(updated), *((at - EPOCH) // _SECOND for at in times)]),
            "llm_config": in_order(fields(service), ("provider", "model", "base_url")) if fields(service) else ...,
            "tasks": [shape.task(item) for item in kept_tasks],
            "parent_id": parent if isinstance(parent, str) else ...,
        }
        more = fields(facts.get(shape.MORE)) if self.is_kin else {}
        return {**{name: value for name, value in record.items() if value is not ...}, **more}

    def is_unnamed(self, model: str, service: Any) -> bool:
        """Whether only its service named the model."""
        return self.is_kin and self.facts.get(shape.NAMED) is None and fields(service).get("model") == model

    def takes(self, task: Any) -> bool:
        if self.is_kin or shape.is_task(task):
            return True
        self.tally.add("task")
        return False

    def config(self) -> dict[str, Any]:
        own = fields(self.facts.get("config")) if self.is_kin else {}
        policies = {name: self.facts[name] for name in shape.POLICIES if fields(self.facts.get(name)) and self.is_kin}
        return shape.config(
            {
                **own,
                **policies,
                "name": self.transcript.title or "",
                "workspace": self.transcript.folder,
                "system_prompt": self.system if isinstance(self.system, str) else None,
            }
        )

    def tools(self) -> list[str]:
        names = [fields(tool).get("name") for tool in listed(self.facts.get("tools"))]
        calls = [b.name for message in self.fresh for b in message.blocks if isinstance(b, ToolCall) and b.by is None]
        return [name for name in dict.fromkeys([*names, *calls]) if isinstance(name, str)]

    def since(self) -> Usage:
        report = self.transcript.usage
        now = report.own + report.inherited
        before = shape.to_usage(self.facts.get(shape.TOTAL), is_apart=self.is_apart) if self.has_totals else Usage()
        booked = round((shape.as_float(self.facts.get(shape.COST)) or 0.0) * 1e6) if self.has_totals else 0
        return replace(now.beyond(before), cost_micros=max(0, (now.cost_micros or 0) - booked))

    def prompt(self, usage: Usage) -> int:
        return usage.input_tokens if self.is_apart else usage.all_input_tokens

    def total_usage(self) -> dict[str, Any]:
        raw = fields(self.facts.get(shape.TOTAL)) if self.has_totals else {}
        more = self.since()
        written = more.cache_write_tokens + more.cache_write_1h_tokens
        adding = {
            "prompt_tokens": self.prompt(more), "completion_tokens": more.output_tokens,
            "total_tokens": self.prompt(more) + more.output_tokens,
        }  # fmt: skip
        total: dict[str, Any] = {name: shape.count(raw.get(name)) + count for name, count in adding.items()}
        for name, count in (("cache_read_tokens", more.cache_read_tokens), ("cache_write_tokens", written)):
            before = raw.get(name)
            total[name] = shape.count(before) + count if count or before is not None else None
        return {**total, **{name: value for name, value in raw.items() if name not in total}}

    def total_cost(self) -> float:
        before = (shape.as_float(self.facts.get(shape.COST)) or 0.0) if self.has_totals else 0.0
        more = self.since().cost_micros or 0
        return before + more / 1e6 if more else before

    def cost_records(self) -> list[Any]:
        costs = self.facts.get("cost_records") if self.has_totals else None
        records = [shape.cost_record(item) for item in listed(costs)]
        for message in self.fresh:
            usage, at = message.usage, message.clock or message.at or self.transcript.updated
            if usage is None:
                continue
            prompt, cost = self.prompt(usage), usage.cost_micros
            stamp = at.astimezone(UTC).isoformat(timespec="milliseconds" if at.microsecond else "seconds")
            records.append(
                {
                    "model": message.model or "", "provider": "", "prompt_tokens": prompt,
                    "completion_tokens": usage.output_tokens, "total_tokens": prompt + usage.output_tokens,
                    "cost_usd": None if cost is None else cost / 1e6, "timestamp": stamp.replace("+00:00", "Z"),
                    "session_id": self.id,
                }
            )  # fmt: skip
        return records

    def context_usage(self) -> dict[str, Any]:
        raw: dict[str, Any] = dict(fields(self.facts.get(shape.FILLED))) if self.is_kin else {"turns": 0}
        if self.fresh or not self.is_kin:
            raw["turns"] = len(self.said)
            spent = [message.usage for message in self.fresh if message.usage is not None]
            most = shape.count(raw.get("max_tokens")) or 200_000
            if spent:
                raw["used_tokens"] = spent[-1].all_input_tokens + spent[-1].output_tokens
                raw["percent"] = raw["used_tokens"] / most
        return shape.context_usage(raw)

    def beside(self, plus: bool) -> list[OutputFile]:
        files: list[OutputFile] = []
        for run, value in fields(self.facts.get(shape.LOOPS)).items():
            # A run that went on elsewhere is over here, too.
            if self.fresh or not isinstance(value, dict):
                continue
            loop = dict(fields(value))
            if isinstance(loop.get("messages"), int):
                loop["messages"] = self.said[: loop["messages"]]
            files.append(OutputFile(f"{TREE}/{CHECKPOINTS}/{tree_name(run)}", pretty(loop, plus=plus)))
        for kind in BESIDE:
            if f"a3s.{kind}" in self.facts:
                data = pretty(self.facts[f"a3s.{kind}"], plus=plus)
                files.append(OutputFile(beside_name(kind, self.id), data))
        return files

    def count_losses(self) -> None:
        transcript, tally = self.transcript, self.tally
        unseen(transcript, self.seen, tally)
        tally.add("time of a message", "the session's own times", len(self.fresh))
        tally.add("fork", "", int(transcript.start.fork is not None))
        carried = _CARRIED if self.is_kin else [name for name in _CARRIED if name not in ("config", *shape.POLICIES)]
        tally.add("fact", "", lost_facts(transcript, (*carried, "tools")))
