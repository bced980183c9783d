"""Losses common to all conversation writers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping
from itertools import chain

from msgspec.structs import replace

from turnlog.formats import LossWord, Rendered, Transcript
from turnlog.formats._shared.compactedview import View, spoken_on, view_of
from turnlog.formats._shared.tally import Tally, is_import_note, lost_facts
from turnlog.interop.value import fields
from turnlog.log.block import ToolResult
from turnlog.log.entry import AnyEntry, Checkpoint, Compaction, Custom, Edit, Message, Note, Spent

_FACTS = ("title", "source_title", "workspace", "model", "system", "tools")
"""The facts that are no loss: they are elsewhere in the file, or are counted as losses of their own."""
_ODD = "bytes that are not Unicode"
"""The log keeps them; other agents' files are text. Also in the name of the folder that a session is about."""
_STOPS = ("length", "aborted", "error")
"""Why an answer ended, where that does not follow from what it says."""
_NOWHERE: tuple[LossWord, ...] = (
    "tool definition", "reported cost", "cache write by duration", "reasoning count", "stop reason",
    "error of an answer", "duration", "details of a tool result", "how a message is shown", "custom entry",
    "trigger of a compaction", "size before a compaction", "agent of a message", "checkpoint of files",
    "message without content",
)  # fmt: skip
"""What no file of messages alone has a place for."""
_INSTEAD: dict[LossWord, str] = {
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


def count_losses(
    transcript: Transcript, view: View, tally: Tally, *, carried: Collection[LossWord], facts: Collection[str] = ()
) -> None:
    """Count every loss of a session whose word is not in `carried`, and whose fact is not in `facts`."""
    _add(tally, {**_of_messages(transcript), **_of_session(transcript, view, facts)}, carried)


def carried_by_compaction(transcript: Transcript, view: View) -> frozenset[LossWord]:
    """The words of losses that a format carries if its compaction has a usage, and nothing else was spent apart."""
    spent = sum(isinstance(entry, (Spent, Compaction)) and bool(entry.usage) for entry in transcript.entries())
    is_all = spent == int(view.compaction is not None and bool(view.compaction.usage))
    return frozenset({"spending apart from answers"} if is_all else ())


def with_losses(
    transcript: Transcript, written: Rendered, agent: str, *words: LossWord, always: Collection[LossWord] = ()
) -> Rendered:
    """A session as it was written to a file of messages alone, with those of these losses that are not reported yet.

    `words` do not count for sessions of the agent itself; `always` do, because they were made here.
    """
    named: tuple[LossWord, ...] = (_ODD, *always)
    if transcript.agent != agent:
        named = (_ODD, *_NOWHERE, *words, *always)
    view, tally = view_of(transcript), Tally()
    reported = {loss.what for loss in written.lost}
    counts = {**_of_messages(transcript), **_of_session(transcript, view, ()), **_of_history(transcript, view, agent)}
    _add(tally, {word: counts[word] for word in named}, reported)
    return replace(written, lost=[*written.lost, *tally.losses()])


def count_unseen(
    transcript: Transcript, tally: Tally, seen: Container[int], is_lost: Callable[[Note], bool] = lambda note: True
) -> None:
    """Count what a file of messages alone lacks: messages that no model sees, and entries that are no messages."""
    hidden = (entry for entry in transcript.path if isinstance(entry, Message) and entry.seq not in seen)
    count = sum(bool(message.blocks) for message in hidden)
    _add(tally, {**_beside_path(transcript, is_lost), "message before the last compaction": count})


def _add(tally: Tally, counts: Mapping[LossWord, int], carried: Collection[str] = ()) -> None:
    for word, count in counts.items():
        if word not in carried:
            tally.add(word, _INSTEAD.get(word, ""), count)


def _of_history(transcript: Transcript, view: View, agent: str) -> dict[LossWord, int]:
    def was_made_elsewhere(entry: AnyEntry | None) -> bool:
        return entry is not None and not (transcript.agent == agent == fields(entry.origin).get("agent"))

    messages = [message for message in spoken_on(transcript.path) if message.blocks]
    return {
        "time of a message": len(messages),
        "model of a message": sum(message.model is not None for message in messages),
        "usage of a message": sum(message.usage is not None for message in messages),
        "message before the last compaction": len(view.hidden) if was_made_elsewhere(view.compaction) else 0,
        "compaction": sum(isinstance(entry, Compaction) and was_made_elsewhere(entry) for entry in transcript.path),
        "workspace": int(transcript.workspace is not None),
        "title": int(bool(transcript.title)),
    }


def _beside_path(transcript: Transcript, is_lost: Callable[[Note], bool] = lambda note: True) -> dict[LossWord, int]:
    on_path = {entry.seq for entry in transcript.path}
    branch = notes = checkpoints = 0
    for entry in transcript.entries():
        branch += isinstance(entry, Message) and entry.seq not in on_path
        notes += isinstance(entry, Note) and is_lost(entry) and not is_import_note(entry)
        checkpoints += isinstance(entry, Checkpoint)
    return {"note": notes, "checkpoint of files": checkpoints, "message on another branch": branch}


def _of_messages(transcript: Transcript) -> dict[LossWord, int]:
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


def _of_session(transcript: Transcript, view: View, facts: Collection[str]) -> dict[LossWord, int]:
    path = transcript.path
    hidden = {message.seq for message in view.hidden}
    compactions = [entry for entry in path if isinstance(entry, Compaction)]
    edits = [entry for entry in path if isinstance(entry, Edit) and entry.entry not in hidden]
    apart = 0
    for entry in transcript.entries():
        usage = entry.usage if isinstance(entry, Compaction) else None
        apart += isinstance(entry, Spent) or bool(usage and (usage.all_input_tokens or usage.output_tokens))
    return {
        **_beside_path(transcript),
        "system prompt": int(bool(transcript.context.system)),
        "tool definition": len(transcript.context.tools),
        "spending apart from answers": apart,
        "custom entry": sum(isinstance(entry, Custom) and not entry.blocks for entry in path),
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
    """How many results do not stand behind their call, or are the second for it."""
    edited = {entry.entry for entry in path if isinstance(entry, Edit)}
    written = (message for message in (*view.hidden, *view.kept, *view.messages) if message.seq)
    spoken = (message for message in spoken_on(path) if message.role == "tool")
    return _results_in(spoken, edited) - _results_in(written, edited)


def _results_in(messages: Iterable[Message], edited: Collection[int]) -> int:
    unedited = (message for message in messages if message.seq not in edited)
    return sum(isinstance(block, ToolResult) for message in unedited for block in message.blocks)
