"""What rho accepts, written down as its loader checks it: the judge of everything that is written for it."""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]
ZERO: Json = {
    "completed_compactions": 0, "removed_messages": 0, "removed_tokens": 0, "removed_cost_usd_micros": 0,
    "last_previous_tokens": None, "last_current_tokens": None, "last_revision": None,
}  # fmt: skip


class Refused(Exception):
    """rho would not load it."""


def need(condition: object, why: str) -> None:
    if not condition:
        raise Refused(why)


def check_message(said: Any) -> None:
    need(isinstance(said, dict) and len(said) == 1, f"not a message: {said!r:.80}")
    ((kind, inner),) = said.items()
    if kind == "System":
        need(isinstance(inner, str), "system text")
    elif kind in ("User", "Assistant"):
        check_content(inner)
    elif kind == "ToolResult":
        need(isinstance(inner["id"], str) and isinstance(inner["content"], str), "a result's texts")
        need(type(inner["ok"]) is bool, "ok")
    elif kind in ("EnrichedAssistant", "AbortedAssistant"):
        check_content(inner["content"])
        if "provenance" in inner:
            check_identity(inner["provenance"])
        need(isinstance(inner.get("reasoning_summary", ""), str), "a summary")
        for context in inner.get("provider_context", []):
            check_identity(context["identity"])
            need(isinstance(context["kind"], str) and "data" in context, "a context")
        if kind == "AbortedAssistant":
            need(isinstance(inner["reasoning"], str), "reasoning")
            for call in inner["tool_calls"]:
                need(isinstance(call["arguments"], str), "partial arguments")
            for count in inner["usage"].values():
                need(count is None or (type(count) is int and count >= 0), "a count")
    else:
        raise Refused(f"unknown variant {kind}")


def check_content(blocks: Any) -> None:
    need(isinstance(blocks, list), "content")
    for block in blocks:
        ((kind, inner),) = block.items()
        if kind == "Text":
            need(isinstance(inner, str), "text")
        elif kind == "Image":
            need(isinstance(inner["data"], str) and isinstance(inner["mime_type"], str), "an image")
        elif kind == "ToolCall":
            need(isinstance(inner["id"], str) and isinstance(inner["name"], str) and "arguments" in inner, "a call")
        else:
            raise Refused(f"unknown block {kind}")


def check_identity(who: Any) -> None:
    need(all(isinstance(who[name], str) for name in ("provider", "api", "model")), "an identity")


def complete(messages: list[Json]) -> list[Json]:
    """The messages up to the first call whose results do not follow at once and in order."""
    index = 0
    while index < len(messages):
        ((kind, inner),) = messages[index].items()
        blocks = inner if kind == "Assistant" else inner["content"] if kind == "EnrichedAssistant" else []
        calls = [block["ToolCall"]["id"] for block in blocks if "ToolCall" in block]
        given = messages[index + 1 : index + 1 + len(calls)]
        if [result.get("ToolResult", {}).get("id") for result in given] != calls:
            return messages[:index]
        index += 1 + len(calls)
    return messages


def seed(data: bytes) -> list[Json]:
    """The model's history as the first version finds it."""
    found: list[Json] = []
    lines = data.decode().split("\n")
    for index, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            need(record["type"] in ("session", "message"), f"unknown variant {record['type']}")
            if record["type"] == "message":
                check_message(record["message"])
                found.append(record["message"])
        except (ValueError, KeyError, Refused):
            if any(rest.strip() for rest in lines[index + 1 :]):
                raise Refused(f"line {index + 1}") from None
    return complete(found)


class Loaded:
    """A session as the newest version finds it."""

    def __init__(self, data: bytes, name: str) -> None:
        self.version: int | None = None
        self.id = ""
        self.is_upgraded = False
        self.leaf: str | None = None
        self.nodes: dict[str, Json] = {}
        self.legacy: Json = {
            "history": [], "display": [], "revision": 0, "compaction": ZERO, "snapshot": False, "envelope": None,
        }  # fmt: skip
        offset = 0
        for line in data.split(b"\n"):
            if line.strip():
                self.apply(json.loads(line), offset, name.rpartition("_")[2])
            offset += len(line) + 1
        need(self.leaf is None or self.leaf in self.nodes, "the leaf is missing")

    @property
    def model(self) -> list[Json]:
        return self.nodes[self.leaf]["history"] if self.leaf else []

    @property
    def display(self) -> list[Json]:
        return [shown["message"] for shown in self.nodes[self.leaf]["display"]] if self.leaf else []

    def apply(self, record: Json, offset: int, id: str) -> None:
        kind = record["type"]
        if kind == "session":
            need(not self.id, "a second header")
            need(type(record["version"]) is int and 1 <= record["version"] <= 4, "version")
            need(record["id"] == id, f"the header says {record['id']}, the name {id}")
            need(isinstance(record["cwd"], str) and isinstance(record["timestamp"], str), "header")
            self.version, self.id = record["version"], record["id"]
            return
        need(self.version is not None, "before the header")
        need(isinstance(record["timestamp"], str) and record["timestamp"].isdigit(), "timestamp")
        if kind in ("node", "set_leaf"):
            need(self.version == 4 or self.is_upgraded, f"{kind} before the upgrade")
            if kind == "set_leaf":
                need(record["target_id"] in self.nodes, f"no node {record['target_id']}")
                self.leaf = record["target_id"]
            else:
                self.node(record)
        elif kind == "upgrade":
            need(self.version != 4 and not self.is_upgraded, "upgrade")
            need(self.leaf is not None and record["active_leaf_id"] == self.leaf, "upgrade names another leaf")
            self.is_upgraded = True
        elif kind in ("message", "replace_history", "snapshot", "snapshot_delta"):
            need(self.version != 4 and not self.is_upgraded, "an old record in the tree")
            self.old(record, offset)
        else:
            raise Refused(f"unknown variant {kind}")

    def old(self, record: Json, offset: int) -> None:
        state = dict(self.legacy)
        kind = record["type"]
        if kind == "message":
            check_message(record["message"])
            shown = record.get("display_message", record["message"])
            check_message(shown)
            state["history"] = [*state["history"], record["message"]]
            state["display"] = [*state["display"], {"timestamp": record["timestamp"], "message": shown}]
            state["revision"] += 1
        elif kind == "replace_history":
            for said in record["messages"]:
                check_message(said)
            state["history"] = record["messages"]
            state["revision"] += 1
            # rho counts tokens here, which nobody else can: nothing a file says is ever equal to it.
            state["compaction"] = object()
        else:
            inner = record["snapshot" if kind == "snapshot" else "delta"]
            shown = record["display_messages"]
            history, compaction = self.restored(inner, kind == "snapshot", self.legacy if state["snapshot"] else None)
            is_same = (history, inner["revision"], compaction) == (
                state["history"], state["revision"], state["compaction"],
            )  # fmt: skip
            is_changed = not is_same or (kind == "snapshot" and not state["snapshot"])
            state.update(
                history=history, revision=inner["revision"], compaction=compaction, snapshot=True, envelope=inner,
                display=[*state["display"], *shown],
            )  # fmt: skip
            if not is_changed:
                self.legacy = state
                return
        self.legacy = state
        self.insert(f"legacy:{offset:016x}", state, self.leaf)

    def restored(self, inner: Json, is_full: bool, base: Json | None) -> tuple[list[Json], Any]:
        need(inner["session_id"] == self.id, "the session's id")
        need(type(inner["revision"]) is int and inner["revision"] >= 0, "revision")
        check_identity(inner["provider"])
        said = inner["history" if is_full else "appended_history"]
        for message in said:
            check_message(message)
        if is_full:
            need(inner["schema_version"] in (1, 2), "schema")
            compaction = inner.get("compaction", ZERO)
        else:
            need(base is not None and base["snapshot"], "a delta without a snapshot")
            assert base is not None
            need(inner["base_revision"] == base["revision"], "a delta to another revision")
            need(inner["revision"] >= inner["base_revision"], "revisions run backwards")
            need(isinstance(inner["metadata"], dict), "metadata")
            compaction, said = inner["compaction"], [*base["history"], *said]
        need(type(compaction["completed_compactions"]) is int and type(compaction["removed_messages"]) is int, "counts")
        return said, {**ZERO, **compaction}

    def node(self, record: Json) -> None:
        kind, parent = record["kind"], record.get("parent_id")
        need(kind in ("commit", "compaction"), "kind")
        need(kind == "compaction" or "compaction_facts" not in record, "facts of a commit")
        need(parent is not None or not self.nodes, "a second beginning")
        is_full = record["transition"]["type"] == "snapshot"
        inner = record["transition"]["snapshot" if is_full else "delta"]
        if parent is None:
            need(is_full and kind == "commit", "the first node")
            history, compaction = self.restored(inner, True, None)
            before: Json = {"display": []}
        else:
            need(parent in self.nodes, f"no parent {parent}")
            before = self.nodes[parent]
            need(kind == "commit" or is_full, "a compaction that is no snapshot")
            history, compaction = self.restored(inner, is_full, before)
            is_same = history == before["history"] and compaction == before["compaction"]
            is_changed = not is_same or inner["revision"] != before["revision"]
            need(not is_changed or inner["revision"] > before["revision"], "a change without a new revision")
            need((compaction != before["compaction"]) == (kind == "compaction"), "kind and counts do not agree")
        for shown in record["display_messages"]:
            need(isinstance(shown["timestamp"], str), "display")
            check_message(shown["message"])
        state = {
            "history": history, "compaction": compaction, "revision": inner["revision"], "snapshot": True,
            "display": [*before["display"], *record["display_messages"]],
        }  # fmt: skip
        self.insert(record["id"], state, parent)

    def insert(self, id: str, state: Json, parent: str | None) -> None:
        need(isinstance(id, str) and 0 < len(id.encode()) <= 128 and id.strip() == id, "node id")
        need(id not in self.nodes, f"node {id} twice")
        self.nodes[id] = {**state, "parent": parent}
        self.leaf = id
