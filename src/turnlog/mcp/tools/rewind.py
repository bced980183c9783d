"""Files and conversation back to an earlier point: the plan first, and then that plan or nothing."""

from __future__ import annotations

import os
from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from turnlog.errors import Conflict, Invalid, NotFound
from turnlog.mcp.page import SEARCH_BYTES, fitted, result
from turnlog.reader.place import Place, checkpoint_at, place_of
from turnlog.view.number import count
from turnlog.view.visible import one_line
from turnlog.workspace.tree import path_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnlog.mcp.library import Library
    from turnlog.session import ReadOnlySession, Session
    from turnlog.workspace.plan import Plan


def call(library: Library, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    """See `turnlog.mcp.offer`."""
    token = arguments.get("confirm")
    with library.covered(arguments["session"]) as (_, reading):
        wanted = _Wanted(reading, arguments.get("to"), arguments.get("only"))
        if token is None:
            return wanted.shown(library)
    if token != wanted.token:
        raise Conflict(
            "that is not the plan as of now: something changed since, or the arguments did; nothing was done",
            hint="call it without confirm for the plan as of now",
        )
    from turnlog.session import open_home

    with open_home(library.location) as home, home.resume(reading.id) as session:
        return wanted.carried_out(session)


class _Wanted:
    """What is asked for, and what it would do."""

    def __init__(self, session: ReadOnlySession, to: str | None, only: list[str] | None) -> None:
        if session.interrupted():
            hint = f"a person has to type `turnlog rewind --continue -s {session.handle}`, or `--abort`"
            raise Conflict("a rewind of this session was begun and not finished", hint=hint)
        self._id = session.id
        self._place: Place = place_of(session, to)
        self._only = None if not only else [_inside(session, path) for path in only]
        if checkpoint_at(session, self._place) is None and self._only:
            raise NotFound(f"there is no checkpoint of files at or before {self._place.words}")
        self._plan: Plan = session.plan_rewind(self._place.seq, only=self._only)
        self._leaving = 0 if self._only else sum(one.seq > self._place.seq for one in session.messages())
        self._head = session.head

    @property
    def token(self) -> str:
        """Of this plan and no other: of these files, and of the conversation where it stands."""
        facts = (self._id, self._place.seq, self._head, sorted(self._only or []), self._plan.digest)
        return sha256(repr(facts).encode()).hexdigest()[:24]

    def shown(self, library: Library) -> dict[str, Any]:
        """The plan, in words. Nothing is done."""
        steps = [
            {"action": step.action, "path": library.quotes.line(step.path), "reason": library.quotes.line(step.reason)}
            for step in self._plan.steps
        ]

        def make(some: Sequence[dict[str, str]]) -> dict[str, Any]:
            lines = [f"{step['action']} {step['path']} {step['reason']}".rstrip() for step in some]
            left = len(steps) - len(some)
            head = f"Plan for session {self._id}, back to {self._place.words}. Nothing was done yet."
            does = [f"{count(self._leaving, 'message')} left behind as a branch"] if self._leaving else []
            more = [f"and {left:,} more paths"] if left else []
            notes = [self._plan.note] if self._plan.note else []
            foot = f"If the user agrees: call again with confirm = {self.token}"
            data = {
                "session": self._id, "plan": self.token, "target": self._place.words, "steps": list(some),
                "counts": dict(Counter(step["action"] for step in steps)), "left": left,
                "messages_left_behind": self._leaving, "note": self._plan.note,
            }  # fmt: skip
            return result("\n".join([head, *lines, *more, *does, *notes, foot]), data)

        return fitted(steps, make, SEARCH_BYTES)

    def carried_out(self, session: Session) -> dict[str, Any]:
        """By that plan, or not at all."""
        rewound = session.rewind(self._place.seq, conversation=not self._only, only=self._only, plan=self._plan.digest)
        stays = [one_line(f"{one.step.path} stays as it is: {one.problem}") for one in session.problems()]
        back = f"turnlog undo -s {session.handle}"
        counts = ", ".join(f"{number:,} {action}" for action, number in rewound.files.items()) or "no files"
        text = "\n".join([f"Done, entry {rewound.seq}: {counts}.", *stays[:20], f"`{back}` takes it back."])
        data = {
            "session": session.id,
            "done": True,
            "entry": rewound.seq,
            "files": rewound.files,
            "problems": stays[:20],
        }
        return result(text, {**data, "undo": back})


def _inside(session: ReadOnlySession, path: str) -> str:
    """A path as plans name it: from the workspace."""
    base = os.fsdecode(path_bytes(session.workspace or ""))
    full = os.path.normpath(os.path.join(base, path))
    if not base or not full.startswith(base + os.sep):
        raise Invalid(f"only: {path!r:.200} is not in the workspace of the session", hint="paths from there")
    return os.path.relpath(full, base)
