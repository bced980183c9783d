"""Taking back what turns did: which turns there are, the plan of going back, and doing exactly what was shown."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from turnlog.errors import Conflict
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.thread.outline import PROMPT
from turnlog.workspace.plan import Plan

if TYPE_CHECKING:
    from turnlog.log.entry import Head
    from turnlog.reader.desk import LookedAt
    from turnlog.session import Home, Session
    from turnlog.session.readonly import ReadOnlySession

BACK = {"rewind": "undo", "undo": "redo", "redo": "undo"}
"""What takes each of them back."""


class TurnRow(NamedTuple):
    """A turn that was bracketed: its number, the prompt that it began with, and its first entry."""

    number: int
    label: str
    seq: int


def turns_in(looked: LookedAt) -> list[TurnRow]:
    """Every turn that has checkpoints around it, oldest first."""
    outline = looked.pieces.outline
    begun = [
        (turn, seq)
        for kind, turn, seq in zip(outline.kinds, outline.turns, outline.seqs, strict=True)
        if kind == "turn" and outline.labels.get(seq) == "begin"
    ]
    if not begun:
        return []
    prompts: dict[str, str] = {}
    for flags, turn, seq in zip(outline.flags, outline.turns, outline.seqs, strict=True):
        if flags & PROMPT and turn:
            prompts.setdefault(turn, outline.labels.get(seq, ""))
    return [TurnRow(number, prompts.get(turn, ""), seq) for number, (turn, seq) in enumerate(begun, 1)]


def plan_for(session: ReadOnlySession, target: str) -> tuple[Plan, str]:
    """What going there would do, and how the place is called."""
    if target in ("undo", "redo"):
        return (
            session.plan_undo() if target == "undo" else session.plan_redo()
        ), f"the last {'rewind' if target == 'undo' else 'undo'} taken back"
    place = place_of(session, target or None)
    if checkpoint_at(session, place) is None:
        return Plan([], "there is no checkpoint that far back, so files stay as they are"), place.words
    return session.plan_rewind(place.seq), place.words


def stamp_of_plan(session: ReadOnlySession, plan: Plan) -> str:
    """What tells this plan for this conversation from any other."""
    return f"{session.head}.{plan.digest}"


def carry_out(home: Home, id: str, target: str, stamp: str) -> Head:
    """Do what a plan said, to the letter. `Conflict` if it would be another one by now: then nothing is done."""
    with home.resume(id) as session, undisturbed(home, session):
        plan, _ = plan_for(session, target)
        if stamp != stamp_of_plan(session, plan):
            raise Conflict("something changed since the plan was shown: nothing was done, this is the new one")
        if target == "undo":
            return session.undo(plan=plan.digest)
        if target == "redo":
            return session.redo(plan=plan.digest)
        place = place_of(session, target or None)
        has_files = checkpoint_at(session, place) is not None
        return session.rewind(place.seq, files=has_files, plan=plan.digest if has_files else None)


@contextmanager
def undisturbed(home: Home, session: Session) -> Generator[None]:
    """While files move, nothing that was said to an agent is brought in: it would look like somebody else's news."""
    if not session.history.state.is_relayed:
        yield
        return
    from turnlog.live.follow import one_at_a_time

    with one_at_a_time(home.store, session.id):
        session.refresh()
        yield
