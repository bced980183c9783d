"""A session as a transcript: what the writer of a format needs for an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import cast

from msgspec.structs import replace

from turnlog.exchange.exporting.touchedfile import touched_files
from turnlog.exchange.origin import SOURCE_HEADER, SourceHeader, decode_origin, source_header_of
from turnlog.formats._shared.transcript import Transcript
from turnlog.log.block import AnyBlock, File, Image, ToolResult
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Message, Start
from turnlog.thread.reader import SessionReader

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def transcript_of(session: SessionReader, *, include_ignored: bool = False) -> Transcript:
    """Return a session as writers see it; with the content of ignored files only if that is asked for."""
    get = session.blob

    def entries() -> Iterator[AnyEntry]:
        return (_with_blobs(entry, get) for entry in session.entries())

    start, inherited = _starts(session)
    origin = decode_origin(start)
    header = SourceHeader() if origin.header is not None else source_header_of(session)
    path = [_with_blobs(entry, get) for entry in session.path()]
    context = SessionReader.context(session)  # for no model: it does not count as given out
    context.messages = [cast("Message", _with_blobs(message, get)) for message in context.messages]
    created = header.created or start.clock or start.at or session.stats().first_at or _EPOCH
    return Transcript(
        id=session.id,
        start=start,
        agent=origin.agent,
        source_id=origin.id or "",
        origin=origin.header or header.origin,
        created=created,
        updated=max([created, *(at for entry in path if (at := entry.clock or entry.at) is not None)]),
        title=session.title,
        workspace=session.workspace,
        facts={key: value for key, value in session.facts.items() if key != SOURCE_HEADER},
        path=path,
        entries=entries,
        files=partial(touched_files, session, include_ignored=include_ignored),
        context=context,
        usage=session.usage(),
        head=session.head,
        before=inherited,
        copied=origin.copied,
    )


def _starts(session: SessionReader) -> tuple[Start, list[Start]]:
    """The first line of a session, and those of the sessions that it was forked from, the nearest first."""
    starts = [entry for entry in session.entries(kind="session", reverse=True) if isinstance(entry, Start)]
    own = next((entry for entry in starts if entry.session_id == session.id), Start(id=session.id))
    return own, [entry for entry in starts if entry is not own]


def _with_blobs(entry: AnyEntry, get: Callable[[str], bytes]) -> AnyEntry:
    """An entry with the data of its images and files."""
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
