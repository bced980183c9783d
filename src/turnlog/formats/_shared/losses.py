"""Losses common to all conversation writers."""

from __future__ import annotations

from collections.abc import Collection
from itertools import chain

from msgspec.structs import replace

from turnlog.formats import Rendered, Transcript
from turnlog.formats._shared.compactedview import View, spoken_on, view_of
from turnlog.formats._shared.tally import Tally, is_import_note, lost_facts
from turnlog.interop.value import fields
from turnlog.log.block import ToolResult
from turnlog.log.entry import AnyEntry, Checkpoint, Compaction, Custom, Edit, Message, Note, Spent

_FACTS = ("title", "source_title", "workspace", "model", "system", "tools")
"""What is no loss as a fact: it is elsewhere in the file, or told apart."""
_ODD = "bytes that are not Unicode"
"""The log keeps them; other agents' files are text. Also in the name of the folder that a session is about."""
_STOPS = ("length", "aborted", "error")
"""Why an answer ended, where that does not follow from what it says."""


def tell_rest(
    transcript: Transcript, view: View, tally: Tally, *, carried: Collection[str], facts: Collection[str] = ()
) -> None:
    """Count what is in a session and cannot be in the file, apart from the words of losses that it carries."""
    counts = {**_of_messages(transcript), **_of_session(transcript, view, facts)}
    for what, number in counts.items():
        if what not in carried:
            tally.add(what, _INSTEAD.get(what, ""), number)


def with_compaction(transcript: Transcript, view: View) -> frozenset[str]:
    """What is no loss where a compaction says what it cost: spending, if there is no other apart from answers."""
    spent = sum(isinstance(entry, (Spent, Compaction)) and bool(entry.usage) for entry in transcript.entries())
    is_all = spent == int(view.compaction is not None and bool(view.compaction.usage))
    return frozenset({"spending apart from answers"} if is_all else ())


def also_lost(
    transcript: Transcript, written: Rendered, agent: str, *words: str, always: Collection[str] = ()
) -> Rendered:
    """A session as it was written, with what else the report has to name: what a bare history lacks.

    `always` are words that count for its own sessions, too: what was done here and cannot be told there.
    """
    named = (_ODD, *always) if transcript.agent == agent else (_ODD, *_NOWHERE, *words, *always)
    view, tally = view_of(transcript), Tally()
    reported = {loss.what for loss in written.lost}
    counts = {**_of_messages(transcript), **_of_session(transcript, view, ()), **_of_history(transcript, view, agent)}
    for what in named:
        if what not in reported:
            tally.add(what, _INSTEAD.get(what, ""), counts[what])
    return replace(written, lost=[*written.lost, *tally.losses()])


_NOWHERE = (
    "tool definition", "reported cost", "cache write by duration", "reasoning count", "stop reason",
    "error of an answer", "duration", "details of a tool result", "how a message is shown", "custom entry",
    "trigger of a compaction", "size before a compaction", "agent of a message", "checkpoint of files",
    "message without content",
)  # fmt: skip


def _of_history(transcript: Transcript, view: View, agent: str) -> dict[str, int]:
    def is_here(entry: AnyEntry | None) -> bool:
        return entry is not None and not (transcript.agent == agent == fields(entry.origin).get("agent"))

    messages = [message for message in spoken_on(transcript.path) if message.blocks]
    return {
        "time of a message": len(messages),
        "model of a message": sum(message.model is not None for message in messages),
        "usage of a message": sum(message.usage is not None for message in messages),
        "message before the last compaction": len(view.hidden) if is_here(view.compaction) else 0,
        "compaction": sum(isinstance(entry, Compaction) and is_here(entry) for entry in transcript.path),
        "workspace": int(transcript.workspace is not None),
        "title": int(bool(transcript.title)),
    }


_INSTEAD = {
    _ODD: "the replacement character",
    "system prompt": "the agent's own",
    "tool definition": "the agent's own",
    "edit": "what the model sees now",
    "compaction": "what the model sees now",
    "message before the last compaction": "its summary",
    "earlier compaction": "the newest one",
    "cache write count": "input",
    "role of a system message": "a message of the user's",
}


def _of_messages(transcript: Transcript) -> dict[str, int]:
    every = spoken_on(transcript.path)
    messages = [message for message in every if message.blocks]
    answers = [message for message in messages if message.role == "assistant"]
    usages = [message.usage for message in answers if message.usage is not None]
    blocks = [block for message in messages for block in message.blocks]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    contents = [result.content for result in results if isinstance(result.content, list)]
    odd = sum(block.raw is not None for block in chain(blocks, *contents))
    return {
        _ODD: odd + (transcript.folder != (transcript.workspace or "")),
        "reported cost": sum(bool(usage.cost_micros) for usage in usages),
        "cache write by duration": sum(usage.cache_write_1h_tokens > 0 for usage in usages),
        "cache write count": sum(usage.cache_write_tokens + usage.cache_write_1h_tokens > 0 for usage in usages),
        "reasoning count": sum(usage.reasoning_tokens > 0 for usage in usages),
        "duration": sum(bool(one.duration_ms) for one in [*answers, *results]),
        "stop reason": sum(message.stop in _STOPS for message in answers),
        "error of an answer": sum(bool(message.error) for message in answers),
        "agent of a message": sum(message.agent is not None for message in answers),
        "details of a tool result": sum(bool(result.details) for result in results),
        "how a message is shown": sum(message.role == "user" and message.display is not None for message in messages),
        "message without content": sum(not message.blocks and message.role != "tool" for message in every),
    }


def _of_session(transcript: Transcript, view: View, facts: Collection[str]) -> dict[str, int]:
    path = transcript.path
    on_path = {entry.seq for entry in path}
    hidden = {message.seq for message in view.hidden}
    compactions = [entry for entry in path if isinstance(entry, Compaction)]
    edits = [entry for entry in path if isinstance(entry, Edit) and entry.entry not in hidden]
    apart = branch = notes = checkpoints = 0
    for entry in transcript.entries():
        usage = entry.usage if isinstance(entry, Compaction) else None
        apart += isinstance(entry, Spent) or bool(usage and (usage.all_input_tokens or usage.output_tokens))
        branch += isinstance(entry, Message) and entry.seq not in on_path
        notes += isinstance(entry, Note) and not is_import_note(entry)
        checkpoints += isinstance(entry, Checkpoint)
    return {
        "system prompt": int(bool(transcript.context.system)),
        "tool definition": len(transcript.context.tools),
        "spending apart from answers": apart,
        "message on another branch": branch,
        "note": notes,
        "custom entry": sum(isinstance(entry, Custom) and not entry.blocks for entry in path),
        "checkpoint of files": checkpoints,
        "fact": lost_facts(transcript, (*_FACTS, *facts)),
        "edit": len(edits),
        "message that was taken out": len({edit.entry for edit in edits if edit.blocks is None}),
        "earlier compaction": len(compactions) - (view.compaction is not None),
        "trigger of a compaction": int(view.compaction is not None and view.compaction.trigger in ("auto", "manual")),
        "size before a compaction": int(view.compaction is not None and bool(view.compaction.tokens_before)),
        "role of a system message": sum(message.role == "system" for message in view.summary_messages),
        "tool result without its call": _orphans(path, view),
    }


def _orphans(path: list[AnyEntry], view: View) -> int:
    """Results that stand nowhere behind their call, or are the second for it."""
    edited = {entry.entry for entry in path if isinstance(entry, Edit)}
    written = [*view.hidden, *view.kept, *view.messages]
    there = sum(isinstance(b, ToolResult) for m in written if m.seq and m.seq not in edited for b in m.blocks)
    results = [m for m in spoken_on(path) if m.role == "tool" and m.seq not in edited]
    return sum(isinstance(block, ToolResult) for message in results for block in message.blocks) - there
