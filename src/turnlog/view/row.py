"""Entries as rows: who spoke, text, tool calls, output, events. Rows are neither shortened nor escaped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from turnlog.log.startup import pattern
from turnlog.log.usage import Usage
from turnlog.view.filechange import FileChange
from turnlog.view.number import money, size, used
from turnlog.view.toolcall import first_of, with_more
from turnlog.view.visible import one_line

_READERS = ("read", "view", "cat", "open_file", "notebookread")
"""The beginnings of the names of tools that read a file."""
ERROR, SUBAGENT, SPENT, EDITED, ABORTED, FAILED = "error", "subagent", "spent", "edited", "turn aborted", "turn failed"
"""The kinds of events that viewers draw in their own way. Readers see these words, too."""


class Speaker(Struct, frozen=True):
    """The beginning of a message: who speaks, and facts about it."""

    seq: int
    role: str
    agent: str | None = None
    model: str | None = None
    at: datetime | None = None
    usage: Usage | None = None
    micros: int | None = None
    stop: str | None = None

    def facts(self, usage_text: Callable[[Usage], str] = used) -> list[str]:
        """How it ended, where that is worth a word, and what it took: money, tokens."""
        return [
            self.stop if self.stop in ("length", "aborted", "error") else "",
            money(self.micros) if self.micros else "",
            usage_text(self.usage) if self.usage is not None and self.usage != Usage() else "",
        ]


class Prose(Struct, frozen=True):
    """What somebody wrote. A model writes Markdown; what a person typed is taken as it is."""

    text: str
    is_markdown: bool = True
    role: str = "assistant"


class Thought(Struct, frozen=True):
    """What a model thought."""

    text: str


class Preamble(Struct, frozen=True):
    """What an agent put in front of what a person said."""

    text: str


class Call(Struct, frozen=True):
    """A tool is called: its name, the argument that tells most, all arguments, and the changes it makes."""

    id: str
    name: str
    main_argument: str
    body: str
    changes: list[FileChange] = []

    @property
    def about(self) -> str:
        """The text after the name: the files that it changes, or the most telling argument."""
        return ", ".join(change.path for change in self.changes) or self.main_argument

    @property
    def added(self) -> int:
        """How many lines it adds to files."""
        return sum(change.plus for change in self.changes)

    @property
    def removed(self) -> int:
        """How many lines it removes from files."""
        return sum(change.minus for change in self.changes)

    @property
    def has_more(self) -> bool:
        """Whether all arguments say more than the one that tells most."""
        return bool(self.body) and one_line(self.body) != one_line(self.main_argument)

    @property
    def shows_first_line(self) -> bool:
        """Whether `main_argument` is the first line of `body`, and more lines follow."""
        return one_line(with_more(first_of(self.body))) == one_line(self.main_argument)


class Output(Struct, frozen=True):
    """The result of a tool, and its call."""

    seq: int
    call: str
    name: str
    main_argument: str
    text: str
    is_error: bool = False
    is_diff: bool = False
    duration_ms: int | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is the content of a file, which a tool read."""
        return self.name.lower().startswith(_READERS) and not self.is_error


class Attachment(Struct, frozen=True):
    """A picture or a file, by its name and size."""

    what: str
    name: str
    media_type: str | None = None
    size_bytes: int | None = None
    digest: str = ""
    """The digest of the content, if it is stored here."""

    @property
    def label(self) -> str:
        """What it is, its name, type and size, in brackets."""
        heavy = "" if self.size_bytes is None else size(self.size_bytes)
        return f"[{' · '.join(filter(None, (self.what, self.name[:200], self.media_type, heavy)))}]"


class Event(Struct, frozen=True):
    """Something happened that nobody said: a compaction, a rewind, a note, a subagent. `body` is for who wants more."""

    seq: int
    kind: str
    text: str
    at: datetime | None = None
    body: str = ""
    session: str = ""
    """The session of a subagent."""

    @property
    def is_failure(self) -> bool:
        """Whether it says that something went wrong."""
        return self.kind in (ERROR, FAILED, ABORTED)

    @property
    def is_part_of_message(self) -> bool:
        """Whether it belongs to the message above it."""
        return self.kind in (ERROR, SUBAGENT)

    @property
    def has_anchor(self) -> bool:
        """Whether a link to its entry leads to it; of several rows of an entry, to one alone."""
        return bool(self.seq) and self.kind not in (ERROR, SUBAGENT, SPENT)

    @property
    def shows_body(self) -> bool:
        """Whether its body is shown at once, where lines can be folded."""
        return bool(self.body) and self.kind != EDITED


Row = Speaker | Prose | Thought | Preamble | Call | Output | Attachment | Event


_MARKUP = pattern(r"[*_`~#]+")


def texts_of(row: Row) -> tuple[str, ...]:
    """Every text in a row, for searching."""
    if isinstance(row, Prose):
        return row.text, _MARKUP.sub("", row.text)  # as it was written, and as it is shown
    if isinstance(row, (Thought, Preamble)):
        return (row.text,)
    if isinstance(row, Call):
        return row.name, row.about, row.body, *(line for change in row.changes for line in change.lines)
    if isinstance(row, Output):
        return (row.text,)
    if isinstance(row, Event):
        return row.kind, row.text, row.body
    if isinstance(row, Attachment):
        return (row.name,)
    return row.agent or "", row.model or ""
