"""Transcripts in the form of another agent, checked by reading them back."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from turnlog.errors import Unsupported
from turnlog.exchange.exporting.exportcopy import copied_from, spendings, without_spending
from turnlog.exchange.exporting.readback import ExportCounts, check_complete, read_back
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats import Format, Writing, format_of
from turnlog.formats._shared.transcript import Loss, Rendered, Transcript
from turnlog.log.entry import AnyEntry
from turnlog.machine.formatplaces import places_of
from turnlog.thread.reader import SessionReader


def writing_of(form: Format, agent: str) -> Writing:
    """Return how sessions are written for an agent. Raises `Unsupported` if they are only read."""
    if form.write is None:
        raise Unsupported(f"sessions of {agent} can be read, not written", hint="`turnlog formats` says which can")
    return form.write if isinstance(form.write, Writing) else form.write()


def render(session: SessionReader, agent: str, *, format_version: int | None = None) -> Rendered:
    """Return a session in another agent's form, without writing it to any place that stays."""
    return written_for(transcript_of(session), agent, format_version)[0]


def written_for(
    transcript: Transcript, agent: str, format_version: int | None = None, *, is_free: bool = False
) -> tuple[Rendered, ExportCounts]:
    """Return a transcript in an agent's form, and how much of it is there when it is read back.

    With `is_free` it carries no spending; if it goes back to its own agent, only what was spent there.
    """
    form = format_of(agent)
    writing = writing_of(form, agent)
    if format_version is not None:
        _check_version(writing, agent, format_version)
        transcript = replace(transcript, version=format_version)
    if transcript.agent == agent:
        return _for_own_agent(form, writing, transcript, is_free=is_free)
    return _for_other_agent(form, writing, transcript, is_free=is_free)


def _check_version(writing: Writing, agent: str, format_version: int) -> None:
    versions = writing.versions
    if format_version not in versions:
        supported = ", ".join(f"{number} ({opens})" for number, opens in versions.items())
        hint = f"one of {supported}" if versions else "leave it out: there is only one"
        raise Unsupported(f"no format version {format_version} of {agent} is written", hint=hint)


def _for_own_agent(
    form: Format, writing: Writing, transcript: Transcript, *, is_free: bool
) -> tuple[Rendered, ExportCounts]:
    """Write a session back for the agent that it came from, with all its oddities: it is counted, and not checked."""
    spent_here = [entry for entry in spendings(transcript) if entry.origin is None] if is_free else []
    written = writing.render(without_spending(transcript, is_own=True) if spent_here else transcript)
    counts = read_back(form, writing, written).counts
    return replace(written, lost=[*written.lost, *_counted_elsewhere(spent_here)]), counts


def _for_other_agent(
    form: Format, writing: Writing, transcript: Transcript, *, is_free: bool
) -> tuple[Rendered, ExportCounts]:
    """Write a session as a copy that says which session it is a copy of."""
    if form.resume is not None and form.resume.model is not None:
        transcript = replace(transcript, model=form.resume.model(places_of(transcript.workspace)))
    copied, spent = copied_from(transcript), spendings(transcript) if is_free else []
    transcript = replace(without_spending(transcript) if is_free else transcript, copied=copied)
    written = writing.render(transcript)
    result = read_back(form, writing, written)
    check_complete(result, written, transcript)
    if result.messages:  # their number is part of the header, and known only now
        copied = replace(copied, messages=result.messages)
        written = writing.render(replace(transcript, copied=copied))
    return replace(written, lost=[*written.lost, *_counted_elsewhere(spent)], copied=copied), result.counts


def _counted_elsewhere(spent: Sequence[AnyEntry]) -> list[Loss]:
    return [Loss("spending", len(spent), "it counts where it was spent")] if spent else []


def notes_on(written: Rendered) -> list[str]:
    """Return the notes for a person on what was written: which releases open it, and what its format has to add."""
    return [*([f"opens in {written.opens}"] if written.opens else []), *([written.note] if written.note else [])]
