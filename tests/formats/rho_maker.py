"""Sessions as rho writes them, by chance: every kind of record, in an order that rho itself could have made."""

from __future__ import annotations

import json
import random
from typing import Any
from uuid import UUID

from tests.formats.rho_rules import ZERO, Loaded, complete

Json = dict[str, Any]
WHO = {"provider": "openai", "api": "responses", "model": "gpt-5.6"}
WORDS = ["да", "не", "план 🚀", "a\u2028b", 'q"\\', "\u007f", "x" * 40, "", "тест\n"]


class Maker:
    """Writes one session, and asks the rules after every record."""

    def __init__(self, seed: int, version: int) -> None:
        self.random = random.Random(seed)
        self.session = str(UUID(int=self.random.getrandbits(128), version=4))
        self.version = version
        self.name = f"1782031200_{self.session}"
        head = {"type": "session", "version": version, "id": self.session, "timestamp": "1782031200", "cwd": "/w"}
        if version == 4:
            head |= {"agent_id": "default", "agent_fingerprint": "v2:abc"}
        self.out = line(head)
        self.now = 1782031200
        self.calls = 0
        self.is_tree = version == 4

    @property
    def loaded(self) -> Loaded:
        return Loaded(self.out, self.name)

    def run(self, count: int) -> bytes:
        for _ in range(count):
            self.now += self.random.randrange(3)
            if self.is_tree:
                self.random.choice(
                    [self.turn, self.turn, self.turn, self.compact, self.move, self.rename, self.prompt]
                )()
            else:
                self.random.choice([*[self.message] * 5, self.replace, *self.later()])()
        return self.out

    def put(self, record: Json) -> None:
        self.out += line(record)
        self.loaded  # noqa: B018 - it raises where rho would

    def word(self) -> str:
        return self.random.choice(WORDS) + str(self.random.randrange(100))

    def messages(self, *, rich: bool) -> list[Json]:
        """One turn."""
        user: list[Json] = [{"Text": self.word()}]
        if self.random.random() < 0.2:
            user.append({"Image": {"data": "iVBORw0KGgo=", "mime_type": "image/png"}})
        said: list[Json] = [{"User": user}]
        if self.random.random() < 0.5:
            calls = []
            for _ in range(self.random.randrange(1, 3)):
                self.calls += 1
                arguments = {"a": self.word(), "n": self.random.choice([1, 1.5, None, [], {"k": -3}])}
                calls.append({"ToolCall": {"id": f"c{self.calls}", "name": "bash", "arguments": arguments}})
            said.append({"Assistant": [{"Text": self.word()}, *calls]})
            for call in calls:
                ok = self.random.random() < 0.7
                said.append({"ToolResult": {"id": call["ToolCall"]["id"], "ok": ok, "content": self.word()}})
        said.append(self.random.choice([self.plain, self.enriched, self.aborted] if rich else [self.plain])())
        return said

    def plain(self) -> Json:
        return {"Assistant": [{"Text": self.word()}]}

    def enriched(self) -> Json:
        inner: Json = {"content": [{"Text": self.word()}]}
        if self.random.random() < 0.7:
            inner["provenance"] = WHO
        if self.random.random() < 0.5:
            inner["reasoning_summary"] = self.word()
        if self.random.random() < 0.3:
            inner["provider_context"] = [{"identity": WHO, "kind": "reasoning", "position": 0, "data": {"e": "x=="}}]
        return {"EnrichedAssistant": inner}

    def aborted(self) -> Json:
        usage = {
            "input_tokens": 10, "output_tokens": 2, "cache_read_tokens": self.random.choice([None, 5]),
            "cache_write_tokens": None, "total_tokens": 12, "context_window": None, "cost_usd_micros": 35,
        }  # fmt: skip
        calls = [{"id": None, "name": "bash", "arguments": '{"comm'}] if self.random.random() < 0.5 else []
        return {
            "AbortedAssistant": {
                "content": [{"Text": self.word()}],
                "reasoning": "",
                "tool_calls": calls,
                "usage": usage,
            }
        }

    # ── versions 1 to 3 ───────────────────────────────────────────────────────────────────────────

    def message(self) -> None:
        for said in self.messages(rich=self.version > 1):
            record: Json = {"type": "message", "timestamp": str(self.now), "message": said}
            if "User" in said and self.random.random() < 0.2:
                record["display_message"] = {"User": [{"Text": "/goal " + self.word()}]}
            self.put(record)

    def replace(self) -> None:
        self.put({"type": "replace_history", "timestamp": str(self.now), "messages": self.shorter(self.loaded.model)})

    def shorter(self, history: list[Json]) -> list[Json]:
        """A compacted history: the prompt or not, a summary, and perhaps the last turn."""
        front = [said for said in history[:1] if "System" in said] if self.random.random() < 0.8 else []
        starts = [i for i, said in enumerate(history) if "User" in said]
        tail = history[starts[-1] :] if starts and self.random.random() < 0.5 else []
        return [*front, {"User": [{"Text": "Summary " + self.word()}]}, *tail]

    def later(self) -> list[Any]:
        if self.version == 1 or not self.loaded.nodes:
            return []
        return [self.snapshot, self.upgrade] + [self.delta] * (self.version == 3)

    def snapshot(self) -> None:
        loaded = self.loaded
        fresh = self.messages(rich=True)
        inner = self.whole(loaded, [*loaded.model, *fresh], loaded.legacy["revision"] + 1, self.counts(loaded))
        self.put(
            {"type": "snapshot", "timestamp": str(self.now), "snapshot": inner, "display_messages": self.shown(fresh)}
        )

    def delta(self) -> None:
        loaded = self.loaded
        if not loaded.legacy["snapshot"] or not isinstance(loaded.legacy["compaction"], dict):
            return
        fresh = self.messages(rich=True)
        inner = self.more(loaded.legacy["revision"], fresh, self.counts(loaded))
        shown = self.shown(fresh)
        self.put({"type": "snapshot_delta", "timestamp": str(self.now), "delta": inner, "display_messages": shown})

    def counts(self, loaded: Loaded) -> Json:
        node = loaded.nodes[loaded.leaf] if loaded.leaf else {"compaction": ZERO}
        return node["compaction"] if isinstance(node["compaction"], dict) else {**ZERO, "completed_compactions": 1}

    def upgrade(self) -> None:
        loaded = self.loaded
        if not isinstance(loaded.legacy["compaction"], dict):
            return
        self.put({"type": "upgrade", "timestamp": str(self.now), "active_leaf_id": loaded.leaf})
        self.is_tree = True

    # ── the tree ──────────────────────────────────────────────────────────────────────────────────

    def whole(self, loaded: Loaded, history: list[Json], revision: int, counts: Json, **more: Any) -> Json:
        start = {"schema_version": 2, "session_id": self.session, "revision": revision, "history": history}
        return {**start, "provider": WHO, "compaction": counts, **more, "prompt_cache_key": f"rho:{self.session}"}

    def more(self, base: int, fresh: list[Json], counts: Json) -> Json:
        start = {"base_revision": base, "session_id": self.session, "revision": base + 1, "appended_history": fresh}
        return {
            **start,
            "provider": WHO,
            "compaction": counts,
            "metadata": {},
            "prompt_cache_key": f"rho:{self.session}",
        }

    def shown(self, fresh: list[Json]) -> list[Json]:
        shown = [{"timestamp": str(self.now), "message": said} for said in fresh if "System" not in said]
        if shown and "User" in shown[0]["message"] and self.random.random() < 0.2:
            shown[0] = {"timestamp": str(self.now - 1), "message": {"User": [{"Text": "/goal " + self.word()}]}}
        return shown

    def node(self, history: list[Json], fresh: list[Json], counts: Json | None = None, **more: Any) -> None:
        loaded = self.loaded
        before = loaded.nodes[loaded.leaf] if loaded.leaf else None
        now = self.counts(loaded) if counts is None else counts
        record: Json = {"type": "node", "id": str(UUID(int=self.random.getrandbits(128), version=4))}
        if before is not None:
            record["parent_id"] = loaded.leaf
        record |= {"timestamp": str(self.now), "kind": "commit" if counts is None else "compaction"}
        if counts is not None:
            record["compaction_facts"] = {
                "previous_messages": 5, "current_messages": 2, "previous_tokens": 1500, "current_tokens": 600,
                "cost_usd_micros": self.random.choice([None, 1200]),
            }  # fmt: skip
        revision = before["revision"] if before is not None else 0
        is_more = before is not None and before["snapshot"] and history == [*before["history"], *fresh] and not more
        if is_more and counts is None and not str(loaded.leaf).startswith("legacy:"):
            record["transition"] = {"type": "snapshot_delta", "delta": self.more(revision, fresh, now)}
        else:
            record["transition"] = {
                "type": "snapshot", "snapshot": self.whole(loaded, history, revision + 1, now, **more),
            }  # fmt: skip
        self.put({**record, "display_messages": self.shown(fresh)})

    def turn(self) -> None:
        loaded = self.loaded
        first: list[Json] = [] if loaded.nodes else [{"System": "You are Rho."}]
        fresh = [*first, *self.messages(rich=True)]
        self.node([*loaded.model, *fresh], fresh)

    def compact(self) -> None:
        loaded = self.loaded
        if loaded.nodes:
            counts = self.counts(loaded)
            counts = {**counts, "completed_compactions": counts["completed_compactions"] + 1}
            fresh = self.messages(rich=True) if self.random.random() < 0.3 else []
            self.node([*self.shorter(loaded.model), *fresh], fresh, counts)

    def move(self) -> None:
        # rho offers only nodes that it can go on from.
        nodes = [
            id for id, node in self.loaded.nodes.items()
            if isinstance(node["compaction"], dict) and complete(node["history"]) == node["history"]
        ]  # fmt: skip
        if nodes:
            self.put({"type": "set_leaf", "timestamp": str(self.now), "target_id": self.random.choice(nodes)})

    def rename(self) -> None:
        loaded = self.loaded
        if loaded.nodes:
            self.node(loaded.model, [], metadata={"title": self.word()})

    def prompt(self) -> None:
        """Another system prompt, as after an update."""
        loaded = self.loaded
        if loaded.model and "System" in loaded.model[0]:
            fresh = self.messages(rich=True)
            self.node([{"System": self.word()}, *loaded.model[1:], *fresh], fresh)


def line(record: Json) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
