"""What was written for another agent, read back by the format itself: nothing may be missing unless it is reported."""

from __future__ import annotations

import os

from msgspec import Struct

from turnlog.errors import Corrupt
from turnlog.formats import Format, Problem, Record, Writing
from turnlog.formats._shared.transcript import Rendered, Transcript
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult
from turnlog.log.codec import without_surrogates
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Message


class ExportCounts(Struct, frozen=True):
    """How much is there when it is read back."""

    messages: int = 0
    """Of user and assistant."""
    tool_calls: int = 0
    tool_results: int = 0


class ReadBack(Struct):
    """What a written session says when it is read."""

    texts: set[str] = set()
    problems: list[Problem] = []
    messages: int = 0
    """The number of messages, whoever speaks; `counts` has those of user and assistant."""
    counts: ExportCounts = ExportCounts()

    def add(self, entry: AnyEntry) -> None:
        """Add an entry that was read."""
        self.texts.update(_texts(entry))
        if isinstance(entry, Message):
            self.messages += 1
            self.counts = ExportCounts(
                self.counts.messages + (entry.role in ("user", "assistant")),
                self.counts.tool_calls + sum(isinstance(block, ToolCall) for block in entry.blocks),
                self.counts.tool_results + sum(isinstance(block, ToolResult) for block in entry.blocks),
            )


def read_back(form: Format, writing: Writing, written: Rendered) -> ReadBack:
    """Place a written session in a temporary folder and read it there."""
    from tempfile import TemporaryDirectory

    result = ReadBack()
    with TemporaryDirectory(prefix="turnlog-") as folder:
        for source in form.find(writing.place(written, os.path.join(folder, "copy"))):
            reading = form.read(source)
            for step in reading.steps:
                if isinstance(step, Record):
                    result.add(step.entry)
            result.problems += reading.problems
    return result


def check_complete(result: ReadBack, written: Rendered, transcript: Transcript) -> None:
    """Raise `Corrupt` if reading it back shows a problem, or lacks a text and nothing was reported as lost."""
    what = f"session {transcript.id} could not be written"
    if result.problems:
        raise Corrupt(f"{what}: it reads back with a problem: {result.problems[0].what}", hint="please report this")
    if written.lost:
        return
    stripped = {text.strip() for text in result.texts}
    everything = "\n".join(result.texts)
    for message in transcript.context.messages:
        for text in _texts(message) if message.role in ("user", "assistant") else ():
            wanted = without_surrogates(text).strip()
            if wanted not in stripped and wanted not in everything:  # the second is slow, and for few
                raise Corrupt(
                    f"{what}: {text.strip()!r:.60} is missing when it is read back", hint="please report this"
                )


def _texts(entry: AnyEntry) -> list[str]:
    messages: list[Message] = []
    if isinstance(entry, Message):
        messages = [entry]
    elif isinstance(entry, Compaction):
        messages = [item for item in entry.replacement if isinstance(item, Message)]
    blocks: list[AnyBlock] = [block for message in messages for block in message.blocks]
    if isinstance(entry, (Custom, Edit)):
        blocks = list(entry.blocks or [])
    return [block.text for block in blocks if isinstance(block, Text)]
