"""Taking back what turns did: which turns there are, the plan of going back, and doing exactly what was shown."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from turnlog.errors import Conflict, NotFound
from turnlog.log.digest import sha256
from turnlog.log.entry import Message
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.session.interior import interior
from turnlog.thread.outline import PROMPT
from turnlog.thread.reader import history_of
from turnlog.thread.target import rewind_to
from turnlog.view.number import count
from turnlog.workspace.plan import Plan, Step
from turnlog.workspace.tree import path_bytes, path_text

if TYPE_CHECKING:
    from turnlog.log.entry import Head
    from turnlog.reader.viewing.viewedsession import ViewedSession
    from turnlog.session.home import Home
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.session.session import Session
    from turnlog.workspace.restore import Outcome

BACK = {"rewind": "undo", "undo": "redo", "redo": "undo"}
"""What takes each of them back."""
NO_CHECKPOINT = "there is no checkpoint that far back, so files stay as they are"


class TurnRow(NamedTuple):
    """A turn with checkpoints: its number among all turns, the prompt that it began with, and its first entry."""

    number: int
    label: str
    seq: int


def turns_in(viewed: ViewedSession) -> list[TurnRow]:
    """Every turn that has checkpoints around it, oldest first."""
    covered = {checkpoint.turn for checkpoint in viewed.checkpoints() if checkpoint.when == "begin"}
    if not covered:
        return []
    outline = viewed.pieces.outline
    prompts: dict[str, str] = {}
    for flags, turn, seq in zip(outline.flags, outline.turns, outline.seqs, strict=True):
        if flags & PROMPT and turn:
            prompts.setdefault(turn, outline.labels.get(seq, ""))
    return [
        TurnRow(number, prompts.get(turn, ""), seq)
        for number, (turn, seq) in enumerate(outline.turn_begins().items(), 1)
        if turn in covered
    ]


class ConversationMove(NamedTuple):
    """How many messages the conversation leaves behind as a branch, and how many come back from another one."""

    leaving: int = 0
    returning: int = 0


def conversation_move(session: ReadOnlySession, to_seq: int) -> ConversationMove:
    """How the conversation moves if it continues from an entry: from where it stood as of that."""
    history = history_of(session)
    with history.mutex:
        heads = history.state.head, rewind_to(history, to=to_seq, before=None, turns=None).to
        current, restored = ({node.seq for node in history.path(head) if isinstance(node, Message)} for head in heads)
    return ConversationMove(len(current - restored), len(restored - current))


class ProposedRewind(NamedTuple):
    """What going back would do, as it is shown before anybody is asked."""

    plan: Plan
    words: str
    """How the place is called."""
    to_seq: int | None
    """The entry to go back to; None for an undo or a redo."""
    leaving: int
    """How many messages are left behind as a branch."""
    returning: int
    """How many messages come back from another branch."""
    has_files: bool
    """Whether files go back, too."""
    stamp: str
    """What tells it from every other: the files, the place, and where the conversation stands."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be done. An undo and a redo always do something."""
        return self.to_seq is not None and not (self.plan.to_do or self.leaving or self.returning)

    @property
    def conversation_notes(self) -> list[str]:
        """What happens to the conversation, a sentence each."""
        leaving, returning = count(self.leaving, "message"), count(self.returning, "message")
        return [
            *([f"{leaving} of the conversation stay as a branch."] if self.leaving else []),
            *([f"{returning} of the conversation come back from another branch."] if self.returning else []),
        ]


def propose(session: ReadOnlySession, target: str, only: list[str] | None = None) -> ProposedRewind:
    """What going there would do: to a place, `undo` or `redo`. With `only`, these paths alone go back."""
    if target in ("undo", "redo"):
        is_undo = target == "undo"
        plan = session.plan_undo() if is_undo else session.plan_redo()
        words = f"the last {'rewind' if is_undo else 'undo'} taken back"
        stamp = _stamp(session, None, None, plan)
        return ProposedRewind(plan, words, to_seq=None, leaving=0, returning=0, has_files=True, stamp=stamp)
    place = place_of(session, target or None)
    has_files = checkpoint_at(session, place) is not None
    if only and not has_files:
        raise NotFound(f"there is no checkpoint of files at or before {place.words}", hint="see `turnlog checkpoints`")
    plan = session.plan_rewind(place.seq, only=only) if has_files else Plan([], NO_CHECKPOINT)
    move = ConversationMove() if only else conversation_move(session, place.seq)
    return ProposedRewind(
        plan, place.words, place.seq, move.leaving, move.returning, has_files,
        stamp=_stamp(session, place.seq, only, plan),
    )  # fmt: skip


def _stamp(session: ReadOnlySession, to_seq: int | None, only: list[str] | None, plan: Plan) -> str:
    facts = (session.id, to_seq, session.head, sorted(only or []), plan.digest)
    return sha256(repr(facts).encode()).hexdigest()[:24]


class DoneRewind(NamedTuple):
    """What was done: the entry that says so, and what files stay as they are because something went wrong."""

    entry: Head
    problems: list[Outcome]
    workspace: str | None

    def staying(self) -> list[str]:
        """For each path that could not be changed: its name, and why."""
        return [f"{shown_path(one.step, self.workspace)} stays as it is: {one.problem}" for one in self.problems]


def shown_path(step: Step, workspace: str | None) -> str:
    """The path of a step as text: in the workspace from there, elsewhere from the root of the file system."""
    return path_text(raw_path(step, workspace)) or "."


def raw_path(step: Step, workspace: str | None) -> bytes:
    """The path of a step as bytes."""
    if not step.raw:
        return path_bytes(step.root)
    if not step.root:
        return step.raw
    path = path_bytes(step.root) + b"/" + step.raw
    return path.removeprefix(path_bytes(workspace) + b"/") if workspace else path


def carry_out(
    home: Home, id: str, target: str, stamp: str, *, only: list[str] | None = None, asked_by: str | None = None
) -> DoneRewind:
    """Do what was proposed, to the letter. `Conflict` if it would be something else by now: then nothing is done."""
    with home.resume(id) as session, undisturbed(home, session):
        proposed = propose(session, target, only)
        if stamp != proposed.stamp:
            raise Conflict("something changed since the plan was shown: nothing was done", hint="look at it again")
        digest = proposed.plan.digest
        note_asked(session, target if proposed.to_seq is None else "rewind", asked_by)
        if proposed.to_seq is None:
            entry = session.undo(plan=digest) if target == "undo" else session.redo(plan=digest)
        else:
            entry = session.rewind(
                proposed.to_seq, files=proposed.has_files, conversation=not only, only=only,
                plan=digest if proposed.has_files else None,
            )  # fmt: skip
        return DoneRewind(entry, session.problems(), session.workspace)


def note_asked(session: Session, what: str, who: str | None) -> None:
    """Where an agent asked for something, the session says so: what was asked, and which session or agent asked."""
    if who:
        session.note(f"{what}, asked for by {who}", data={"asked_by": who, "asked": what})


@contextmanager
def undisturbed(home: Home, session: Session) -> Generator[None]:
    """Hold back imports for this session while files are restored: they would look like news of another writer."""
    if not history_of(session).state.is_relayed:
        yield
        return
    from turnlog.exchange.turnlock import one_at_a_time

    with one_at_a_time(interior(home).store, session.id):
        session.refresh()
        yield
