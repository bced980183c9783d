"""A session as it is handed to those who write it, and what comes of that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from importlib import import_module
from typing import Any, Literal

from msgspec import Struct

from turnlog.interop.copied import Copied
from turnlog.interop.place import OutputFile, put_files
from turnlog.log.codec import without_surrogates
from turnlog.log.context import Context
from turnlog.log.entry import AnyEntry, Start
from turnlog.log.usage import UsageReport


class TouchedFile(Struct, frozen=True):
    """A file that was changed: what was in it before and after, or None where it was not there."""

    path: str
    """Absolute."""
    before: bytes | None
    after: bytes | None
    at: datetime | None = None
    is_known: bool = True
    """False where what was in it is not kept any more."""
    is_private: bool = False
    """Whether it is ignored, and nobody asked for what is in it."""


class Transcript(Struct, frozen=True, kw_only=True):
    """A session as writers see it. Payloads are whole; times are as they were read."""

    id: str
    start: Start
    agent: str | None = None
    """The format it was read from, if it was; then `source_id` and `origin` are what its header said."""
    source_id: str = ""
    origin: Any = None
    created: datetime
    updated: datetime
    title: str | None
    workspace: str | None
    facts: dict[str, Any]
    path: list[AnyEntry]
    """The nodes that lead to the head, oldest first."""
    entries: Callable[[], Iterable[AnyEntry]]
    """Every entry in the order of the log, side branches and marks included."""
    files: Callable[[int], list[TouchedFile]] = lambda after: []
    """The files that differ between the first checkpoint made here after that entry, and the last."""
    context: Context
    usage: UsageReport
    head: int = 0
    before: list[Start] = []
    """The first lines of the sessions it was forked from, the nearest first."""
    copied: Copied | None = None
    """What the header of a copy says of itself."""
    model: str | None = None
    """The model to go on with, as the agent names it; None for the session's own."""
    is_free: bool = False
    """Whether nothing of what it cost is to be written: it counts elsewhere."""
    version: int | None = None
    """The vocabulary that was asked for, one of the format's versions; None for the session's own."""

    @property
    def folder(self) -> str:
        """The workspace as text, with U+FFFD for what is not Unicode in its name; "" where there is none."""
        return str(without_surrogates(self.workspace or ""))


LossWord = Literal[
    "agent of a message", "bytes that are not Unicode", "cache write by duration", "cache write count",
    "checkpoint of files", "compaction", "custom entry", "details of a tool result", "duration", "earlier compaction",
    "edit", "error of an answer", "fact", "how a message is shown", "message before the last compaction",
    "message on another branch", "message that was taken out", "message without content", "model of a message", "note",
    "reasoning count", "reported cost", "role of a system message", "size before a compaction",
    "spending apart from answers", "stop reason", "system prompt", "time of a message", "title", "tool definition",
    "tool result without its call", "trigger of a compaction", "usage of a message", "workspace",
]  # fmt: skip
"""The losses that are counted in the same way for several formats; see `_shared.losses`."""


class Loss(Struct, frozen=True, omit_defaults=True):
    """Something that the other format cannot say: what, how often, and what stands in its place."""

    what: str
    count: int = 1
    instead: str = ""


class Rendered(Struct, frozen=True, kw_only=True):
    """A session in another agent's form. The first file is the session itself."""

    id: str
    """Its id in that agent."""
    files: list[OutputFile]
    lost: list[Loss] = []
    opens: str = ""
    """Which releases of the agent open it, where its first one does not."""
    note: str = ""
    """What else people should know of it."""
    copied: Copied | None = None
    """What it is a copy of, whether or not its files have a place to say so."""
    about: Any = None
    """What `place` needs to know besides, such as the row of an index."""


def put_session(written: Rendered, folder: str, *, force: bool = False) -> str:
    """`Writing.place` for an agent that keeps no list of its sessions: the files, just as they are named."""
    return put_files(written.files, folder, force=force)[0]


def written_by(module: str) -> Callable[[], Any]:
    """`Format.write` of a module with a value `WRITING`: who only reads does not load what writes."""
    return lambda: import_module(module).WRITING
