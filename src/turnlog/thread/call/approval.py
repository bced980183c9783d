"""Asking whether a tool may be run, answering that, and saying that it is about to be."""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.errors import Conflict, NotFound
from turnlog.log.entry import Answer, Ask, Started
from turnlog.log.fold.opencall import OpenCall, newest
from turnlog.thread.appender import Appender
from turnlog.thread.call.pending import open_calls


def ask(appender: Appender, draft: Ask) -> Ask:
    """Append the question about an open call."""
    known = _open_call(appender, draft.call)
    return appender.append([replace(draft, entry=known.entry)])[0]


def answer(appender: Appender, draft: Answer) -> Answer:
    """Append the answer to an open question. Raises `Conflict` where somebody else was faster."""
    known = _asked(appender, draft.ask)
    if known is None:
        raise NotFound(
            f"entry {draft.ask} asks nothing that is still open",
            hint="session.pending() has the calls that wait, each with its `ask`",
        )
    if not known.answer:
        made = appender.append([draft])[0]
        known = _asked(appender, draft.ask)
        if known is None or known.answer == made.seq:
            return made
    first = appender.history.at(known.answer)
    by = first.by if isinstance(first, Answer) else None
    said = "allowed" if known.allow else "denied"
    raise Conflict(f"entry {draft.ask} was answered by {by or 'somebody'} before: {said}", by=by, expected=draft.ask)


def start(appender: Appender, draft: Started) -> Started:
    """Append that an open call is about to be run. Raises `Conflict` where it waits for an answer, or may not be."""
    known = _open_call(appender, draft.call)
    if known.state in ("waiting", "denied"):
        why = "waits for an answer" if known.state == "waiting" else "was denied"
        raise Conflict(f"tool call {draft.call!r:.80} {why} (entry {known.answer or known.ask})")
    return appender.append([replace(draft, entry=known.entry)])[0]


def _known(appender: Appender) -> list[OpenCall]:
    """The open calls, with what others wrote meanwhile."""
    appender.catch_up()
    return [known for known, _ in open_calls(appender.history)]


def _open_call(appender: Appender, call: str) -> OpenCall:
    found = newest(_known(appender), call)
    if found is None:
        raise NotFound(f"no open tool call {call!r:.80}", hint="session.pending() has those without a result")
    return found


def _asked(appender: Appender, ask: int) -> OpenCall | None:
    return next((known for known in _known(appender) if known.ask == ask), None)
