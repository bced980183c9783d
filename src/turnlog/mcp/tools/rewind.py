"""Rewinding files and conversation: the first call shows the plan, the second carries out exactly that plan."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

from turnlog.errors import Conflict, Invalid
from turnlog.mcp.page import SEARCH_BYTES, fitted, result
from turnlog.reader.takeback import carry_out, propose, shown_path
from turnlog.view.number import count, rewind_outcome
from turnlog.workspace.tree import path_bytes, path_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.mcp.library import Library
    from turnlog.reader.takeback import DoneRewind, ProposedRewind
    from turnlog.session import ReadOnlySession

_PROBLEMS = 20
"""The largest number of problems that are listed."""


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    confirmed, target = arguments.get("confirm"), arguments.get("to") or ""
    with library.covered(arguments["session"]) as (_, session):
        if session.interrupted():
            hint = f"a person has to type `turnlog rewind --continue -s {session.handle}`, or `--abort`"
            raise Conflict("a rewind of this session was begun and not finished", hint=hint)
        only = [_inside(session, path) for path in arguments.get("only") or ()] or None
        proposed = propose(session, target, only)
        if confirmed is None:
            return _shown(library, session, proposed)
    if confirmed != proposed.stamp:
        raise Conflict(
            "that is not the plan as of now: something changed since, or the arguments did; nothing was done",
            hint="call it without confirm for the plan as of now",
        )
    from turnlog.session import open_home

    with open_home(library.location) as home:
        asker = library.caller.asker(library.catalog, meta)
        return _done(library, session, carry_out(home, session.id, target, confirmed, only=only, asked_by=asker))


def _shown(library: Library, session: ReadOnlySession, proposed: ProposedRewind) -> dict[str, Any]:
    """The plan in words. Nothing is changed."""
    plan, leaving, returning, stamp = proposed.plan, proposed.leaving, proposed.returning, proposed.stamp
    line = library.quotes.line
    words, note = line(proposed.words), line(plan.note or "")
    steps = [
        {"action": step.action, "path": line(shown_path(step, session.workspace)), "reason": line(step.reason)}
        for step in plan.steps
    ]

    def make(some: Sequence[dict[str, str]]) -> dict[str, Any]:
        lines = [f"{step['action']} {step['path']} {step['reason']}".rstrip() for step in some]
        left = len(steps) - len(some)
        head = f"Plan for session {session.id}, back to {words}. Nothing was done yet."
        does = [f"{count(leaving, 'message')} left behind as a branch"] if leaving else []
        does += [f"{count(returning, 'message')} back from another branch"] if returning else []
        more = [f"and {left:,} more paths"] if left else []
        notes = [note] if note else []
        foot = f"If the user agrees: call again with confirm = {stamp}"
        data = {
            "session": session.id, "plan": stamp, "target": words, "steps": list(some),
            "counts": dict(Counter(step["action"] for step in steps)), "left": left,
            "messages_left_behind": leaving, "note": note,
        }  # fmt: skip
        return result("\n".join([head, *lines, *more, *does, *notes, foot]), data)

    return fitted(steps, make, SEARCH_BYTES)


def _done(library: Library, session: ReadOnlySession, done: DoneRewind) -> dict[str, Any]:
    """What was done, what could not be done, and how to undo it."""
    line = library.quotes.line
    stays = [line(problem) for problem in done.staying()[:_PROBLEMS]]
    back = f"turnlog undo -s {session.handle}"
    entry, files = done.entry.seq, done.entry.files
    text = [
        f"Done, entry {entry}: {rewind_outcome(files) if files else 'no files'}.",
        *stays,
        f"`{back}` takes it back.",
    ]
    data = {"session": session.id, "done": True, "entry": entry, "files": files, "problems": stays, "undo": back}
    return result("\n".join(text), data)


def _inside(session: ReadOnlySession, path: str) -> str:
    """A path as plans name it: from the workspace."""
    base, named = path_bytes(session.workspace or ""), path_bytes(path)
    full = os.path.normpath(os.path.join(base, named))
    if not base or not full.startswith(base + b"/"):
        raise Invalid(f"only: {path!r:.200} is not in the workspace of the session", hint="paths from there")
    return path_text(os.path.relpath(full, base))
