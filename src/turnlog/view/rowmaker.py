"""Makes rows of entries, and remembers which call a result belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from turnlog.interop.value import fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import text_of
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import AnyEntry, Ask, Compaction, Custom, Message
from turnlog.log.payload import digest as digest_of
from turnlog.log.prompt import typed, without_preamble
from turnlog.view.event import event_of
from turnlog.view.filechange import changes, is_diff
from turnlog.view.number import money
from turnlog.view.row import (
    ERROR,
    SPENT,
    SUBAGENT,
    Attachment,
    Call,
    Event,
    Output,
    Preamble,
    Prose,
    Row,
    Speaker,
    Thought,
)
from turnlog.view.toolcall import arguments_text, main_argument, unwrapped_output

Price = Callable[[AnyEntry], int | None]
"""Returns the cost of an entry in micro-dollars; None if unknown."""
Size = Callable[[str], int | None]
"""Returns the size of a blob; None if unknown."""


def _unknown(what: object) -> None:
    """The cost or the size is unknown."""


class Rows:
    """Makes rows of entries, and remembers which call a result belongs to."""

    def __init__(self, *, price: Price | None = None, size: Size | None = None) -> None:
        self._price: Price = price or _unknown
        self._size: Size = size or _unknown
        self._calls: dict[str, ToolCall] = {}

    def take(self, entry: AnyEntry | None) -> None:
        """Remember the calls of an entry that is not shown."""
        for block in entry.blocks if isinstance(entry, Message) else ():
            if isinstance(block, ToolCall):
                self._calls[block.id] = block

    def of(self, entry: AnyEntry) -> Iterator[Row]:
        """The rows of one entry; many kinds have none."""
        if isinstance(entry, Message):
            yield from self._message(entry)
        elif isinstance(entry, Custom):
            if entry.blocks:
                yield Event(entry.seq, entry.kind, "", entry.at)
                yield from self._blocks(entry.blocks, entry.seq, entry.role)
        elif isinstance(entry, Ask):
            call = self._calls.get(entry.call)
            about = entry.call if call is None else f"{call.name} {main_argument(call.input)}".strip()
            yield Event(entry.seq, "asked", f"may {about} be run? {entry.text}".strip(), entry.at)
        else:
            event = event_of(entry)
            if event is not None:
                yield event
        if isinstance(entry, Compaction) and entry.usage is not None:
            cost = self._price(entry)
            if cost:
                yield Event(entry.seq, SPENT, f"{money(cost)} for the compaction", entry.at)

    def paired(self, entries: Iterable[AnyEntry]) -> Iterator[Row]:
        """The rows of several entries, each result right after its call."""
        pending_rows: list[Row] = []
        answers: dict[str, list[Row]] = {}
        for entry in entries:
            if pending_rows and isinstance(entry, Message) and entry.role == "tool":
                for call, rows in _by_call(self.of(entry)):
                    answers.setdefault(call, []).extend(rows)
                continue
            if isinstance(entry, _NODES):
                yield from _with_results(pending_rows, answers)
                pending_rows, answers = [], {}
            rows = list(self.of(entry))
            if pending_rows or any(isinstance(row, Call) for row in rows):
                pending_rows += rows
            else:
                yield from rows
        yield from _with_results(pending_rows, answers)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def _message(self, message: Message) -> Iterator[Row]:
        if message.display is False and message.role != "tool":
            if message.error is not None:
                yield Event(message.seq, ERROR, _plain(message.error), message.at)
            return
        is_answer = message.role == "tool" and all(isinstance(block, ToolResult) for block in message.blocks)
        if not is_answer:
            yield Speaker(
                message.seq, message.role, message.agent, message.model, message.clock or message.at, message.usage,
                self._price(message), message.stop,
            )  # fmt: skip
        if message.display not in (None, False):
            yield Prose(str(message.display), is_markdown=message.role == "assistant", role=message.role)
        else:
            yield from self._blocks(message.blocks, message.seq, message.role)
        if message.error is not None:
            yield Event(message.seq, ERROR, _plain(message.error), message.at)

    def _blocks(self, blocks: list[AnyBlock], seq: int, role: str) -> Iterator[Row]:
        for block in blocks:
            yield from self._block(block, seq, role)

    def _block(self, block: AnyBlock, seq: int, role: str) -> Iterator[Row]:
        if isinstance(block, Text):
            yield from _prose(block.text, role)
        elif isinstance(block, Thinking):
            if compacted(block):
                yield Event(
                    seq, "compacted", f"by {block.provider}: it gets this instead of what came before", None, block.text
                )
            elif block.text.strip():
                yield Thought(block.text)
        elif isinstance(block, ToolCall):
            self._calls[block.id] = block
            yield Call(
                block.id,
                block.name,
                main_argument(block.input),
                arguments_text(block.input),
                changes(block.name, block.input),
            )
        elif isinstance(block, ToolResult):
            yield from self._result(block, seq)
        else:
            yield self._attachment(block)

    def _result(self, result: ToolResult, seq: int) -> Iterator[Row]:
        call = self._calls.pop(result.call, None)
        name = call.name if call is not None else result.name or "tool"
        about = main_argument(call.input) if call is not None else result.call
        content = result.content
        output = unwrapped_output(content if isinstance(content, str) else text_of(content))
        yield Output(
            seq, result.call, name, about, output.text, result.is_error or output.is_error, is_diff(output.text),
            result.duration_ms,
        )  # fmt: skip
        for block in content if isinstance(content, list) else ():
            if isinstance(block, (Image, File, UnknownBlock)):
                yield self._attachment(block)
        if result.child:
            yield Event(seq, SUBAGENT, result.child, session=result.child)

    def _attachment(self, block: Image | File | UnknownBlock) -> Attachment:
        if isinstance(block, UnknownBlock):
            return Attachment(block.kind, "")
        what = "image" if isinstance(block, Image) else "file"
        size = len(block.data) if block.data is not None else self._size(block.blob) if block.blob else None
        kept = block.blob or ("" if block.data is None else digest_of(block.data))
        return Attachment(what, block.name or block.url or block.file or "", block.media_type, size, kept)


_NODES = (Message, Compaction, Custom)


def _by_call(rows: Iterator[Row]) -> Iterator[tuple[str, list[Row]]]:
    call = ""
    for row in rows:
        call = row.call if isinstance(row, Output) else call
        yield call, [row]


def _with_results(pending_rows: list[Row], answers: dict[str, list[Row]]) -> Iterator[Row]:
    for row in pending_rows:
        yield row
        if isinstance(row, Call):
            yield from answers.pop(row.id, ())
    for rows in answers.values():
        yield from rows


def _prose(text: str, role: str) -> Iterator[Row]:
    typed_text = without_preamble(text) if role == "user" else text
    lead = text[: len(text) - len(typed_text)].strip() if typed_text != text else ""
    if lead:
        yield Preamble(lead)
    if role == "user":
        typed_text = typed(typed_text)
    if typed_text.strip():
        is_markdown = role == "assistant" or (role == "user" and "```" in typed_text)
        yield Prose(typed_text.strip("\n"), is_markdown=is_markdown, role=role)


def _plain(value: Any) -> str:
    """An error as people read it: its message, if it has one."""
    error = fields(value)
    for name in ("message", "error", "text"):
        if error.get(name):
            return _plain(error[name])
    return value if isinstance(value, str) else arguments_text(value)
