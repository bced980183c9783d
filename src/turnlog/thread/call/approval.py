"""Appending a question about a tool call, its answer, and the start of its execution."""

from __future__ import annotations

from msgspec.structs import replace

from turnlog.errors import Conflict, NotFound
from turnlog.log.entry import Answer, Ask, Started
from turnlog.log.fold.opencall import OpenCall, newest
from turnlog.thread.appender import Appender
from turnlog.thread.call.pending import open_calls


def ask(appender: Appender, draft: Ask) -> Ask:
    """Append a question about an open call."""
    opened = _open_call(appender, draft.call)
    return appender.append([replace(draft, entry=opened.entry)])[0]


def answer(appender: Appender, draft: Answer) -> Answer:
    """Append the answer to an open question. Raises `Conflict` if it was answered before."""
    opened = _call_with_ask(appender, draft.ask)
    if opened is None:
        raise NotFound(
            f"entry {draft.ask} is not an open question",
            hint="session.pending() has the calls that wait, each with its `ask`",
        )
    if not opened.answer:
        answered = appender.append([draft])[0]
        opened = _call_with_ask(appender, draft.ask)
        if opened is None or opened.answer == answered.seq:
            return answered
    first = appender.history.at(opened.answer)
    by = first.by if isinstance(first, Answer) else None
    verdict = "allowed" if opened.allow else "denied"
    raise Conflict(f"entry {draft.ask} was answered by {by or 'somebody'} before: {verdict}", by=by, expected=draft.ask)


def start(appender: Appender, draft: Started) -> Started:
    """Append that an open call is about to be run. Raises `Conflict` if the call waits for an answer or was denied."""
    opened = _open_call(appender, draft.call)
    if opened.state in ("waiting", "denied"):
        why = "waits for an answer" if opened.state == "waiting" else "was denied"
        raise Conflict(f"tool call {draft.call!r:.80} {why} (entry {opened.answer or opened.ask})")
    return appender.append([replace(draft, entry=opened.entry)])[0]


def _open_calls(appender: Appender) -> list[OpenCall]:
    """The open calls, including what other writers appended meanwhile."""
    appender.catch_up()
    return [opened for opened, _ in open_calls(appender.history)]


def _open_call(appender: Appender, call: str) -> OpenCall:
    opened = newest(_open_calls(appender), call)
    if opened is None:
        raise NotFound(f"no open tool call {call!r:.80}", hint="session.pending() has those without a result")
    return opened


def _call_with_ask(appender: Appender, ask: int) -> OpenCall | None:
    return next((opened for opened in _open_calls(appender) if opened.ask == ask), None)
