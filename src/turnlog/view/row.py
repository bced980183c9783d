"""Entries as rows: what a reader sees of them, one after the other. Nothing here is cut, coloured or made safe yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, cast

from msgspec import Struct, json

from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult, UnknownBlock
from turnlog.log.context import text_of
from turnlog.log.entry import (
    Answer,
    AnyEntry,
    Ask,
    Child,
    Compaction,
    Custom,
    Edit,
    Entry,
    Head,
    Message,
    Note,
    Set,
    Spent,
    Turn,
    Uncompact,
    Unknown,
)  # fmt: skip
from turnlog.log.payload import digest as digest_of
from turnlog.log.prompt import typed, without_preamble
from turnlog.log.shown.nativecompaction import compacted
from turnlog.log.usage import Usage
from turnlog.view.number import money, used
from turnlog.view.tool import FileChange, changes, in_full, is_diff, printed, telling

Price = Callable[[AnyEntry], int | None]
"""What an entry cost, in micro-dollars; None if nobody knows."""
Size = Callable[[str], int | None]
"""How large a blob is."""


class Speaker(Struct, frozen=True):
    """A message begins: who speaks, and what is known of it."""

    seq: int
    role: str
    agent: str | None = None
    model: str | None = None
    at: datetime | None = None
    usage: Usage | None = None
    micros: int | None = None
    stop: str | None = None

    def took(self, tell: Callable[[Usage], str] = used) -> list[str]:
        """How it ended, where that is worth a word, and what it took: money, tokens."""
        return [
            self.stop if self.stop in ("length", "aborted", "error") else "",
            money(self.micros) if self.micros else "",
            tell(self.usage) if self.usage is not None and self.usage != Usage() else "",
        ]


class Prose(Struct, frozen=True):
    """What somebody wrote. A model writes Markdown; what a person typed is taken as it is."""

    text: str
    is_markdown: bool = True
    role: str = "assistant"


class Thought(Struct, frozen=True):
    """What a model thought."""

    text: str


class Aside(Struct, frozen=True):
    """What an agent put in front of what a person said."""

    text: str


class Call(Struct, frozen=True):
    """A tool is called: its name, the argument that tells most, all arguments, and the changes it makes."""

    id: str
    name: str
    telling: str
    body: str
    changes: list[FileChange] = []

    @property
    def about(self) -> str:
        """What stands behind the name: the files it changes, or what tells most."""
        return ", ".join(change.path for change in self.changes) or self.telling


class Output(Struct, frozen=True):
    """What a tool answered, and to which call."""

    seq: int
    call: str
    name: str
    telling: str
    text: str
    is_error: bool = False
    is_diff: bool = False
    duration_ms: int | None = None


class Attachment(Struct, frozen=True):
    """A picture or a file, by its name and size."""

    what: str
    name: str
    media_type: str | None = None
    size_bytes: int | None = None
    digest: str = ""
    """Of its content, where that is kept here."""


class Event(Struct, frozen=True):
    """Something happened that nobody said: a compaction, a rewind, a note, a subagent. `body` is for who wants more."""

    seq: int
    kind: str
    text: str
    at: datetime | None = None
    body: str = ""
    session: str = ""
    """The session of a subagent."""


Row = Speaker | Prose | Thought | Aside | Call | Output | Attachment | Event


def _unknown(what: object) -> None:
    """Nobody knows what it cost, or how large it is."""


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
        """What a reader sees of one entry; of many kinds that is nothing."""
        if isinstance(entry, Message):
            yield from self._message(entry)
        elif isinstance(entry, Custom):
            if entry.blocks:
                yield Event(entry.seq, entry.kind, "", entry.at)
                yield from self._blocks(entry.blocks, entry.seq, entry.role)
        elif isinstance(entry, Ask):
            call = self._calls.get(entry.call)
            about = entry.call if call is None else f"{call.name} {telling(call.input)}".strip()
            yield Event(entry.seq, "asked", f"may {about} be run? {entry.text}".strip(), entry.at)
        else:
            event = _EVENTS.get(type(entry), _other)(entry)
            if event is not None:
                yield event
        if isinstance(entry, Compaction) and entry.usage is not None:
            cost = self._price(entry)
            if cost:
                yield Event(entry.seq, "spent", f"${cost / 1_000_000:.4f} for the compaction", entry.at)

    def paired(self, entries: Iterable[AnyEntry]) -> Iterator[Row]:
        """The rows of all of them, each result right behind its call."""
        asked: list[Row] = []
        answers: dict[str, list[Row]] = {}
        for entry in entries:
            if asked and isinstance(entry, Message) and entry.role == "tool":
                for call, rows in _by_call(self.of(entry)):
                    answers.setdefault(call, []).extend(rows)
                continue
            if isinstance(entry, _NODES):
                yield from _together(asked, answers)
                asked, answers = [], {}
            rows = list(self.of(entry))
            if asked or any(isinstance(row, Call) for row in rows):
                asked += rows
            else:
                yield from rows
        yield from _together(asked, answers)

    # ── messages ──────────────────────────────────────────────────────────────────────────────────

    def _message(self, message: Message) -> Iterator[Row]:
        if message.display is False and message.role != "tool":
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
            yield Event(message.seq, "error", _plain(message.error), message.at)

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
                block.id, block.name, telling(block.input), in_full(block.input), changes(block.name, block.input)
            )
        elif isinstance(block, ToolResult):
            yield from self._result(block, seq)
        else:
            yield self._attachment(block)

    def _result(self, result: ToolResult, seq: int) -> Iterator[Row]:
        call = self._calls.pop(result.call, None)
        name = call.name if call is not None else result.name or "tool"
        about = telling(call.input) if call is not None else result.call
        content = result.content
        text, is_bad = printed(content if isinstance(content, str) else text_of(content))
        yield Output(
            seq, result.call, name, about, text, result.is_error or is_bad, is_diff(text), result.duration_ms
        )  # fmt: skip
        for block in content if isinstance(content, list) else ():
            if isinstance(block, (Image, File, UnknownBlock)):
                yield self._attachment(block)
        if result.child:
            yield Event(seq, "subagent", result.child, session=result.child)

    def _attachment(self, block: Image | File | UnknownBlock) -> Attachment:
        if isinstance(block, UnknownBlock):
            return Attachment(block.kind, "")
        what = "image" if isinstance(block, Image) else "file"
        size = len(block.data) if block.data is not None else self._size(block.blob) if block.blob else None
        kept = block.blob or ("" if block.data is None else digest_of(block.data))
        return Attachment(what, block.name or block.url or block.file or "", block.media_type, size, kept)


_NODES = (Message, Compaction, Custom)


def in_words(entry: AnyEntry) -> str:
    """What an entry says in the fields of its own kind: `name: value`, one after the other."""
    own = (name for name in entry.__struct_fields__ if name not in Entry.__struct_fields__)
    said = ((name, getattr(entry, name)) for name in own)
    return ", ".join(
        f"{name}: {value if isinstance(value, str) else json.encode(value).decode()}"
        for name, value in said
        if value not in (None, "", [], {})
    )


def _by_call(rows: Iterator[Row]) -> Iterator[tuple[str, list[Row]]]:
    call = ""
    for row in rows:
        call = row.call if isinstance(row, Output) else call
        yield call, [row]


def _together(asked: list[Row], answers: dict[str, list[Row]]) -> Iterator[Row]:
    for row in asked:
        yield row
        if isinstance(row, Call):
            yield from answers.pop(row.id, ())
    for rows in answers.values():
        yield from rows


def _prose(text: str, role: str) -> Iterator[Row]:
    said = without_preamble(text) if role == "user" else text
    lead = text[: len(text) - len(said)].strip() if said != text else ""
    if lead:
        yield Aside(lead)
    if role == "user":
        said = typed(said)
    if said.strip():
        is_markdown = role == "assistant" or (role == "user" and "```" in said)
        yield Prose(said.strip("\n"), is_markdown=is_markdown, role=role)


def _plain(value: Any) -> str:
    """An error as people read it: its message, if it has one."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name in ("message", "error", "text"):
            if fields.get(name):
                return _plain(fields[name])
    return value if isinstance(value, str) else in_full(value)


# ── what happened in between ──────────────────────────────────────────────────────────────────────


def _compaction(entry: Compaction) -> Event:
    said = [text_of(item.blocks) for item in entry.replacement if isinstance(item, Message)]
    sizes = [f"{number:,}" for number in (entry.tokens_before, entry.tokens_after) if number is not None]
    facts = [
        "the model sees a summary of what came before",
        f"and everything from entry {entry.keep}" if entry.keep else "",
        f"({' → '.join(sizes)} tokens)" if sizes else "",
        f"[{entry.trigger}]" if entry.trigger else "",
    ]
    return Event(entry.seq, "compacted", " ".join(filter(None, facts)), entry.at, "\n\n".join(filter(None, said)))


def _edit(entry: Edit) -> Event:
    if entry.blocks is None:
        return Event(entry.seq, "edited", f"entry {entry.entry} is left out for the model", entry.at)
    return Event(
        entry.seq, "edited", f"entry {entry.entry} reads otherwise for the model", entry.at, text_of(entry.blocks)
    )


def _head(entry: Head) -> Event:
    files = ", ".join(f"{number:,} {what}" for what, number in entry.files.items() if number)
    where = f"to entry {entry.to}" if entry.to else "to the beginning"
    left = f"; what was left is branch {entry.left}" if entry.left else ""
    return Event(entry.seq, entry.why, f"{where}{left}{f'; files: {files}' if files else ''}", entry.at)


def _turn(entry: Turn) -> Event | None:
    if entry.state not in ("aborted", "failed"):
        return None
    return Event(entry.seq, f"turn {entry.state}", entry.error or "", entry.at)


def _set(entry: Set) -> Event | None:
    if entry.key != "title" or entry.unset:
        return None
    return Event(entry.seq, "title", str(entry.value), entry.at)


def _child(entry: Child) -> Event:
    return Event(
        entry.seq, "subagent", " ".join(filter(None, (entry.agent, entry.session))), entry.at, "", entry.session
    )


def _spent(entry: Spent) -> Event | None:
    return Event(entry.seq, "spent", f"{used(entry.usage)} for {entry.why}", entry.at) if entry.why else None


def _answer(entry: Answer) -> Event:
    by = f"by {entry.by}" if entry.by else ""
    said = " ".join(filter(None, (by, f"(to entry {entry.ask})", entry.text)))
    return Event(entry.seq, "allowed" if entry.allow else "denied", said, entry.at)


def _note(entry: Note) -> Event | None:
    from turnlog.formats import unknown_type  # few sessions have notes

    return None if unknown_type(entry) else Event(entry.seq, "note", typed(entry.text), entry.at)


def _other(entry: AnyEntry) -> Event | None:
    """Any other mark, by what it says."""
    return Event(entry.seq, entry.type, in_words(entry), entry.at) if entry.is_shown else None


_EVENTS: dict[type, Callable[[Any], Event | None]] = {
    Compaction: _compaction,
    Uncompact: lambda entry: Event(
        entry.seq, "uncompacted", f"compaction {entry.compaction} no longer applies", entry.at
    ),
    Edit: _edit,
    Head: _head,
    Turn: _turn,
    Set: _set,
    Child: _child,
    Spent: _spent,
    Answer: _answer,
    Note: _note,
    Unknown: lambda entry: Event(entry.seq, entry.kind, "an entry of a newer version", entry.at, entry.json),
}
