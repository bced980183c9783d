"""What two sessions have in common, and what one lost on the way to the other: found by looking, not by asking writers.

A session is taken apart into notions. Ids, `meta`, `origin` and how blocks were grouped into messages are none: they
say nothing to people or models. `lost(before, after)` names every notion of which something is gone.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from turnlog import (
    Compaction,
    Custom,
    Edit,
    File,
    Image,
    Message,
    Note,
    Spent,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownBlock,
)
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.log.context.toolturn import INTERRUPTED
from turnlog.log.entry import Checkpoint, Uncompact

STOPS = ("length", "aborted", "error")
"""The others follow from whether a tool was called."""
DERIVED = ("title", "source_title", "workspace", "model", "system", "tools")


@dataclass
class Atom:
    """One thing that was said, in the words of no format."""

    kind: str
    says: Any
    more: Any = None
    is_summary: bool = False
    is_edited: bool = False


@dataclass
class Account:
    """A session taken apart."""

    seen: list[Atom]
    """What a model sees, in order."""
    said: list[Atom]
    """All that was ever said on the way here."""
    replaced: list[Atom]
    """What compactions put in its place."""
    facts: dict[str, Counter[Any]] = field(default_factory=dict)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if isinstance(block, (Text, Thinking)))


def _media(block: Image | File, where: str) -> Atom:
    what = sha256(block.data).hexdigest() if block.data is not None else block.url or block.file
    kind = "image" if isinstance(block, Image) else "file"
    return Atom(f"{kind}{where}", (block.media_type if block.data is not None else None, what))


def _atoms(messages: list[Message], edited: frozenset[int] = frozenset(), *, is_summary: bool = False) -> list[Atom]:
    found: list[Atom] = []
    calls: dict[str, str] = {}
    for message in messages:
        start = len(found)
        for block in message.blocks:
            if isinstance(block, Text):
                if block.text.strip():
                    found.append(Atom(message.role, block.text.strip()))
            elif isinstance(block, ToolCall) and block.by is None:
                calls[block.id] = f"{block.name} {_json(block.input)}"
                found.append(Atom("call", block.name, block.input))
            elif isinstance(block, ToolResult):
                told = _plain(block.content).strip()
                if told != INTERRUPTED:
                    found.append(Atom("result", told, (calls.get(block.call, "?"), block.is_error)))
                inner = [] if isinstance(block.content, str) else block.content
                found += [_media(part, " in a result") for part in inner if isinstance(part, (Image, File))]
                found += [Atom("unknown", part.kind) for part in inner if isinstance(part, UnknownBlock)]
            elif isinstance(block, Thinking):
                found.append(Atom("thinking", block.text.strip(), block.data))
            elif isinstance(block, (Image, File)):
                found.append(_media(block, ""))
            elif isinstance(block, UnknownBlock):
                found.append(Atom("unknown", block.kind))
            else:
                found.append(Atom("run", block.name))
        for atom in found[start:]:
            atom.is_edited = message.seq in edited and bool(message.seq)
            atom.is_summary = is_summary
    return _in_order(found)


def _in_order(atoms: list[Atom]) -> list[Atom]:
    """Results that came in together, in an order that does not depend on which was first."""
    found: list[Atom] = []
    group: list[list[Atom]] = []
    for atom in [*atoms, Atom("end", "")]:
        if atom.kind == "result":
            group.append([atom])
        elif atom.kind.endswith(" in a result") and group:
            group[-1].append(atom)
        else:
            group.sort(key=lambda part: (part[0].more[0], part[0].says))
            found += [inner for part in group for inner in part]
            group = []
            found.append(atom)
    return found[:-1]


def _spoken(entry: Any) -> Message | None:
    if isinstance(entry, Custom) and entry.blocks:
        return Message(role=entry.role, blocks=entry.blocks, seq=entry.seq)
    return entry if isinstance(entry, Message) else None


def account(session: Any) -> Account:
    """A session taken apart."""
    transcript = transcript_of(session)
    path = transcript.path
    edited = frozenset(entry.entry for entry in path if isinstance(entry, Edit))
    leading = 0
    spoken = [message for entry in path if (message := _spoken(entry)) is not None]
    while leading < len(spoken) and spoken[leading].role == "system":
        leading += 1
    compactions = [entry for entry in path if isinstance(entry, Compaction)]
    undone = {entry.compaction for entry in path if isinstance(entry, Uncompact)}
    live = [entry for entry in compactions if entry.seq not in undone]
    summary = [m for entry in live[-1:] for m in entry.replacement if isinstance(m, Message)]
    summary_ids = {m.id for m in summary}
    seen: list[Atom] = []
    for part in _runs(list(transcript.context), summary_ids):
        seen += _atoms(part[1], is_summary=part[0])
    replaced = [m for entry in compactions for m in entry.replacement if isinstance(m, Message)]
    said = _atoms(spoken[leading:], edited)
    made = Account(seen, said, _atoms(replaced))
    empty = [message for message in spoken if not message.blocks and message.role != "tool"]
    spoken = [message for message in spoken[leading:] if message.blocks]
    answers = [message for message in spoken if message.role == "assistant"]
    results = [b for m in spoken for b in m.blocks if isinstance(b, ToolResult)]
    entries = list(transcript.entries())
    on_path = {entry.seq for entry in path}
    spent = [message.usage for message in answers if message.usage is not None]
    apart = [e.usage for e in entries if isinstance(e, Spent)] + [c.usage for c in compactions if c.usage]
    many = Counter[Any]
    made.facts = {
        "title": many([transcript.title] if transcript.title else []),
        "workspace": many([transcript.workspace] if transcript.workspace else []),
        "system": many([transcript.context.system] if transcript.context.system else []),
        "tools": many(_json(tool) for tool in transcript.context.tools),
        "model": many(m.model for m in answers if m.model),
        "time": many(int((e.clock or e.at).timestamp() * 1000) for e in spoken if e.role != "tool" and e.at),
        "tool time": many(
            int((e.clock or e.at).timestamp() * 1000) for e in spoken if e.role == "tool" and e.at
            for block in e.blocks if isinstance(block, ToolResult)
        ),
        "usage": many((u.all_input_tokens, u.output_tokens) for u in spent if u.all_input_tokens or u.output_tokens),
        "cache read": many(u.cache_read_tokens for u in spent if u.cache_read_tokens),
        "cache write": many(
            u.cache_write_tokens + u.cache_write_1h_tokens for u in spent
            if u.cache_write_tokens or u.cache_write_1h_tokens
        ),
        "cache 1h": many(u.cache_write_1h_tokens for u in spent if u.cache_write_1h_tokens),
        "reasoning count": many(u.reasoning_tokens for u in spent if u.reasoning_tokens),
        "cost": many(u.cost_micros for u in spent if u.cost_micros),
        "spending": many((u.all_input_tokens, u.output_tokens) for u in apart if u.all_input_tokens or u.output_tokens),
        "stop": many(m.stop for m in answers if m.stop in STOPS),
        "error": many("error" for m in answers if m.error),
        "duration": many(
            [m.duration_ms for m in answers if m.duration_ms] + [r.duration_ms for r in results if r.duration_ms]
        ),
        "details": many(_json(r.details) for r in results if r.details),
        "display": many(_json(m.display) for m in spoken if m.display is not None and m.role == "user"),
        "agent": many(m.agent for m in answers if m.agent),
        "empty": many("empty" for _ in empty),
        "note": many(e.text for e in entries if isinstance(e, Note) and not _is_report(e)),
        "custom": many(e.kind for e in path if isinstance(e, Custom) and not e.blocks),
        "branch": many("message" for e in entries if isinstance(e, Message) and e.seq not in on_path),
        "checkpoint": many("checkpoint" for e in entries if isinstance(e, Checkpoint)),
        "compaction": many("compaction" for _ in compactions),
        "trigger": many(c.trigger for c in live[-1:] if c.trigger in ("auto", "manual")),
        "tokens before": many(c.tokens_before for c in live[-1:] if c.tokens_before),
        "fact": many(
            f"{key}={_json(value)}" for key, value in transcript.facts.items()
            if key not in DERIVED and value is not None and not key.startswith(f"{transcript.agent}.")
        ),
    }  # fmt: skip
    return made


def _runs(messages: list[Message], summary: set[str]) -> list[tuple[bool, list[Message]]]:
    """Summaries apart from the rest, with calls and results left together."""
    head = [m for m in messages if not m.seq and m.id in summary]
    rest = [m for m in messages if m.seq or m.id not in summary]
    return [(True, head), (False, rest)]


def _is_report(note: Note) -> bool:
    data = note.data if isinstance(note.data, list) else []
    return bool(data) and isinstance(data[0], dict) and "what" in data[0]


def lost(before: Account, after: Account) -> dict[str, int]:
    """Every notion of which something is gone, and how much of it."""
    gone: Counter[str] = Counter()
    at = 0
    used: set[int] = set()
    for atom in before.seen:
        place = next((i for i in range(at, len(after.seen)) if _is_same(atom, after.seen[i])), None)
        if place is None:
            gone[_notion(atom)] += 1
            continue
        _compare(atom, after.seen[place], gone)
        used.add(place)
        at = place if atom.is_summary else place + 1
    rest = [*after.said, *after.replaced]
    there = Counter(_name(atom) for atom in rest)
    flags = Counter(_name(atom) for atom in rest if atom.kind == "result" and atom.more[1])
    loose = [atom for atom in rest if atom.kind == "user"]
    for atom in before.said:
        name = _name(atom)
        if there[name] > 0:
            there[name] -= 1
            if atom.kind == "result" and atom.more[1]:
                gone["error flag"] += flags[name] <= 0
                flags[name] -= 1
        elif atom.kind == "system" and there["user", _json(atom.says)] > 0:
            there["user", _json(atom.says)] -= 1
            gone["system role"] += 1
        elif atom.is_edited:
            gone["edit"] += 1
        elif atom.kind == "result" and any(o.kind == "result" and o.says.startswith(atom.says) for o in rest):
            continue  # with a word for its picture behind it
        elif not (atom.kind == "user" and any(atom.says in other.says for other in loose)):
            is_apart = atom.kind not in ("user", "assistant", "system", "call", "result")
            is_apart = is_apart or (atom.kind == "result" and atom.more[0] == "?")
            gone[_notion(atom) if is_apart or _was_seen(atom, before) else "hidden"] += 1
    for name, values in before.facts.items():
        missing = sum((values - after.facts[name]).values())
        if missing:
            gone[name] += missing
    return {notion: count for notion, count in gone.items() if count}


def added(before: Account, after: Account) -> list[Atom]:
    """What a model sees now and did not see before."""
    known = Counter(_name(atom) for atom in before.seen)
    known.update(("user", _json(atom.says)) for atom in before.seen if atom.kind == "system")
    fresh: list[Atom] = []
    for atom in after.seen:
        if known[_name(atom)] > 0:
            known[_name(atom)] -= 1
        elif not any(other.is_summary and str(other.says) in str(atom.says) for other in before.seen):
            fresh.append(atom)
    return fresh


def _was_seen(atom: Atom, before: Account) -> bool:
    return any(_name(other) == _name(atom) for other in before.seen)


def _name(atom: Atom) -> tuple[str, Any]:
    if atom.kind == "call":
        given = atom.more if isinstance(atom.more, dict) else {"input": atom.more}
        return "call", f"{atom.says} {_json(given)}"
    return atom.kind, _json(atom.says)


def _is_same(atom: Atom, other: Atom) -> bool:
    if atom.kind in ("user", "system") and other.kind == "user":
        return atom.says == other.says or (atom.is_summary and atom.says in other.says)
    if atom.is_summary and atom.kind == "assistant" and other.kind == "user":
        return atom.says in other.says
    return _name(atom) == _name(other)


def _compare(atom: Atom, other: Atom, gone: Counter[str]) -> None:
    if atom.kind == "system" and other.kind == "user":
        gone["system role"] += 1
    elif atom.kind == "call" and atom.more != other.more:
        gone["input"] += 1
    elif atom.kind == "result" and atom.more[1] != other.more[1]:
        gone["error flag"] += 1
    elif atom.kind == "thinking" and atom.more and atom.more != other.more:
        gone["seal"] += 1


def _notion(atom: Atom) -> str:
    return "text" if atom.kind in ("user", "assistant", "system") else atom.kind
