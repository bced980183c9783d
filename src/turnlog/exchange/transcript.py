"""Sessions written for other agents, checked by reading them back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from turnlog.errors import Corrupt, Invalid, NotFound, Unsupported
from turnlog.exchange import HEADER
from turnlog.exchange.copy import copied_by, copied_from, spendings, without_spending
from turnlog.formats import (
    Format,
    Loss,
    Problem,
    Record,
    Rendered,
    TouchedFile,
    Transcript,
    Writing,
    format_of,
    put_file,
)
from turnlog.log.block import AnyBlock, File, Image, Text, ToolCall, ToolResult
from turnlog.log.codec import without_surrogates
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Message, Set, Start
from turnlog.machine.folder import absolute, lies_in_home, places_of
from turnlog.thread.reader import SessionReader
from turnlog.workspace.tree import FILE, FOLDER, Tree, TreeNode, changes, decode_tree, path_bytes

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ExportCounts(Struct, frozen=True):
    """How much is there when it is read back."""

    messages: int = 0
    """Of user and assistant."""
    tool_calls: int = 0
    tool_results: int = 0


class Exported(Struct, frozen=True):
    """What was written where, under which id, and what the other format could not carry."""

    agent: str
    id: str
    path: str
    lost: list[Loss]
    carried: ExportCounts = ExportCounts()
    notes: list[str] = []
    """What a person should know besides: which releases of the agent open it, where its first one does not."""


def transcript_of(session: SessionReader, *, include_ignored: bool = False) -> Transcript:
    """A session as writers see it; what is in ignored files only if that is asked for."""
    get = session.blob

    def entries() -> Iterator[AnyEntry]:
        return (_filled(entry, get) for entry in session.entries())

    # A fork has the first lines of what it builds on as well; its own is the last.
    firsts = [entry for entry in session.entries(kind="session", reverse=True) if isinstance(entry, Start)]
    start = next((entry for entry in firsts if entry.session_id == session.id), Start(id=session.id))
    origin = cast("dict[str, Any]", start.origin) if isinstance(start.origin, dict) else {}
    agent = origin.get("agent")
    path = [_filled(entry, get) for entry in session.path()]
    context = SessionReader.context(session)  # for no model: it does not count as given out
    context.messages = [cast("Message", _filled(message, get)) for message in context.messages]
    stats = session.stats()
    times = [when for entry in path if (when := entry.clock or entry.at) is not None]
    header = _told_header(session) if "header" not in origin else {}
    began = datetime.fromisoformat(header["created"]) if isinstance(header.get("created"), str) else None
    created = began or start.clock or start.at or stats.first_at or _EPOCH
    return Transcript(
        id=session.id,
        start=start,
        agent=agent if isinstance(agent, str) else None,
        source_id=str(origin.get("id") or ""),
        origin=origin.get("header") or header.get("origin"),
        created=created,
        updated=max([created, *times]),
        title=session.title,
        workspace=session.workspace,
        facts={key: value for key, value in session.facts.items() if key != HEADER},
        path=path,
        entries=entries,
        files=partial(_touched, session, include_ignored),
        context=context,
        usage=session.usage(),
        head=session.head,
        before=[entry for entry in firsts if entry is not start],
        copied=copied_by(start),
    )


def _told_header(session: SessionReader) -> dict[str, Any]:
    """What its agent's file says of itself, where that was read later: whatever was rewound since."""
    facts = (entry for entry in session.entries(kind="set", reverse=True) if isinstance(entry, Set))
    header = next((entry.value for entry in facts if entry.key == HEADER), None)
    return cast("dict[str, Any]", header) if isinstance(header, dict) else {}


def _touched(session: SessionReader, include_ignored: bool, after: int) -> list[TouchedFile]:
    """See `Transcript.files`."""
    checkpoints = [entry for entry in session.checkpoints() if entry.seq > after and entry.origin is None]
    files: list[TouchedFile] = []

    def tree(name: str) -> Tree:
        return decode_tree(session.blob(name))

    def content(node: TreeNode | None) -> tuple[bytes | None, bool]:
        if node is None:
            return None, True
        try:
            return (session.blob(node.digest), True) if node.kind == FILE else (None, False)
        except NotFound:
            return None, False

    for root in checkpoints[-1].roots if checkpoints else ():
        begin = next((other for other in checkpoints[0].roots if other.name == root.name), None)
        try:
            found_here = list(changes(tree(begin.tree), tree(root.tree), tree)) if begin is not None else []
        except NotFound:
            continue  # ignored files of another home
        for path, old, new in found_here:
            if FOLDER in (old.kind if old else "", new.kind if new else ""):
                continue  # its content is reported
            where = os.path.join(os.fsdecode(path_bytes(root.path)), os.fsdecode(path))
            if root.is_private and not include_ignored:
                files.append(TouchedFile(where, None, None, checkpoints[-1].at, is_private=True))
                continue
            (before, is_known), (then, is_known_then) = content(old), content(new)
            files.append(TouchedFile(where, before, then, checkpoints[-1].at, is_known and is_known_then))
    return files


def render(session: SessionReader, agent: str, *, format_version: int | None = None) -> Rendered:
    """A session in another agent's form, read back and found to say the same; nothing is kept anywhere."""
    return written_for(transcript_of(session), agent, format_version)[0]


def written_for(
    transcript: Transcript, agent: str, format_version: int | None = None, *, is_free: bool = False
) -> tuple[Rendered, ExportCounts]:
    """A transcript in another agent's form, and how much of it is there when it is read back.

    With `is_free` it carries no spending; where it goes back to its own agent, only what was spent there.
    """
    form = format_of(agent)
    writing = writing_of(form, agent)
    if format_version is not None:
        versions = writing.versions
        if format_version not in versions:
            supported = ", ".join(f"{number} ({opens})" for number, opens in versions.items())
            hint = f"one of {supported}" if versions else "leave it out: there is only one"
            raise Unsupported(f"no format version {format_version} of {agent} is written", hint=hint)
        transcript = replace(transcript, version=format_version)
    if transcript.agent == agent:
        here = [entry for entry in spendings(transcript) if entry.origin is None] if is_free else []
        written = writing.render(without_spending(transcript, is_own=True) if here else transcript)
        carried, _ = _check(form, writing, written, transcript, is_own=True)
        return replace(written, lost=[*written.lost, *_counted_elsewhere(here)]), carried
    if form.resume is not None and form.resume.model is not None:
        transcript = replace(transcript, model=form.resume.model(places_of(transcript.workspace)))
    copied, spent = copied_from(transcript), spendings(transcript) if is_free else []
    transcript = replace(without_spending(transcript) if spent else transcript, copied=copied)
    written = writing.render(transcript)
    carried, messages = _check(form, writing, written, transcript, is_own=False)
    if messages:  # now that it is known how many they are
        copied = replace(copied, messages=messages)
        written = writing.render(replace(transcript, copied=copied))
    return replace(written, lost=[*written.lost, *_counted_elsewhere(spent)], copied=copied), carried


def _counted_elsewhere(spent: Sequence[AnyEntry]) -> list[Loss]:
    return [Loss("spending", len(spent), "it counts where it was spent")] if spent else []


def writing_of(form: Format, agent: str) -> Writing:
    """How sessions are written for an agent; raises `Unsupported` where they are only read."""
    if form.write is None:
        raise Unsupported(f"sessions of {agent} can be read, not written", hint="`turnlog formats` says which can")
    return form.write if isinstance(form.write, Writing) else form.write()


def notes_on(written: Rendered) -> list[str]:
    """What to say of what was written: which releases open it, and what its format has to add."""
    return [*([f"opens in {written.opens}"] if written.opens else []), *([written.note] if written.note else [])]


def _check(
    form: Format, writing: Writing, written: Rendered, transcript: Transcript, *, is_own: bool
) -> tuple[ExportCounts, int]:
    """Raise `Corrupt` if what was written cannot be read without a problem, or lacks what was said and does not tell.

    A session that goes back to its own agent takes its oddities along: then it is only counted. Gives also how many
    messages there are of any kind.
    """
    from tempfile import TemporaryDirectory

    counts = [0, 0, 0]
    messages = 0
    with TemporaryDirectory(prefix="turnlog-") as folder:
        path = writing.place(written, os.path.join(folder, "there"))
        missing: set[str] = set()
        problems: list[Problem] = []
        for source in form.find(path):
            reading = form.read(source)
            for step in reading.steps:
                if isinstance(step, Record):
                    missing.update(_texts(step.entry))
                    if isinstance(step.entry, Message):
                        messages += 1
                        counts[0] += step.entry.role in ("user", "assistant")
                        counts[1] += sum(isinstance(block, ToolCall) for block in step.entry.blocks)
                        counts[2] += sum(isinstance(block, ToolResult) for block in step.entry.blocks)
            problems += reading.problems
    carried = ExportCounts(*counts)
    if is_own:
        return carried, messages
    what = f"session {transcript.id} could not be written"
    if problems:
        raise Corrupt(f"{what}: it reads back with a problem: {problems[0].what}", hint="please report this")
    if written.lost:
        return carried, messages
    there = {text.strip() for text in missing}
    everything = "\n".join(missing)
    for message in transcript.context.messages:
        for text in _texts(message) if message.role in ("user", "assistant") else ():
            wanted = without_surrogates(text).strip()
            if wanted not in there and wanted not in everything:  # the second is slow, and for few
                raise Corrupt(
                    f"{what}: {text.strip()!r:.60} is missing when it is read back", hint="please report this"
                )
    return carried, messages


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


def _filled(entry: AnyEntry, get: Callable[[str], bytes]) -> AnyEntry:
    """An entry with its pictures and files in it."""
    if not entry.blobs:
        return entry
    if isinstance(entry, Compaction):
        inner = [
            replace(m, blocks=_with_data(m.blocks, get)) if isinstance(m, Message) else m for m in entry.replacement
        ]
        return replace(entry, replacement=inner)
    if isinstance(entry, (Message, Custom, Edit)):
        return replace(entry, blocks=_with_data(entry.blocks or [], get) if entry.blocks is not None else None)
    return entry


def _with_data(blocks: list[AnyBlock], get: Callable[[str], bytes]) -> list[AnyBlock]:
    loaded: list[AnyBlock] = []
    for block in blocks:
        if isinstance(block, (Image, File)) and block.blob is not None and block.data is None:
            block = replace(block, data=get(block.blob))
        elif isinstance(block, ToolResult) and not isinstance(block.content, str):
            block = replace(block, content=_with_data(block.content, get))
        loaded.append(block)
    return loaded


def send(
    session: SessionReader,
    agent: str,
    place: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    format_version: int | None = None,
    include_ignored: bool = False,
) -> Exported:
    """Write a session for another agent: to a file, into a folder laid out as that agent does, or here.

    Every release of it opens that, unless the session came from a newer one or `format_version` asks for more. `force`
    overwrites; what is in ignored files stays here unless `include_ignored`, and is named as lost. In a folder where
    the agent keeps its own sessions it carries no spending, so that nobody counts it twice.
    """
    transcript = transcript_of(session, include_ignored=include_ignored)
    is_free = place is not None and lies_in_home(format_of(agent), os.fspath(place))
    written, carried = written_for(transcript, agent, format_version, is_free=is_free)
    path = put(written, agent, place, force=force)
    return Exported(agent, written.id, path, written.lost, carried, notes_on(written))


def put(written: Rendered, agent: str, place: str | os.PathLike[str] | None = None, *, force: bool = False) -> str:
    """What was written, as a file or laid out in a folder; gives the path of the session itself."""
    target = absolute(os.fspath(place) if place is not None else os.path.basename(written.files[0].path))
    is_folder = place is not None and (os.fspath(place).endswith("/") or os.path.isdir(target))
    if is_folder:
        return writing_of(format_of(agent), agent).place(written, target, force=force)
    if len(written.files) > 1:
        names = ", ".join(output.path for output in written.files)
        raise Invalid(f"a session of {agent} is several files: {names}", hint="give a folder: -o FOLDER/")
    output = written.files[0]
    put_file(target, output.data, mode=output.mode, force=force)
    return target
