"""Random programs of two writers, two homes and a model that sums up, with an oracle that knows no code of ours.

Everything that is said holds a word of its own. A summary repeats every word of the context that it was made of. So
whatever a model is shown has to hold every word of the conversation: in a message, or in a summary that stood for it.
The oracle keeps, for every entry by its id, the words of the conversation that ends with it, and where each session
stands; it asks the log for nothing but that text.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import turnlog
from turnlog import Conflict, Context, Message, NotFound, Text, Thinking, ToolCall, ToolResult
from turnlog.wire import anthropic, openai

DIALECTS = (anthropic, openai)
_WORD = re.compile(r"\bw\d+\b")


def words_of(value: Any) -> set[str]:
    """Every word in what a model is shown."""
    if isinstance(value, (Context, list, tuple)):
        return {word for one in value for word in words_of(one)}
    if isinstance(value, Thinking):  # for the provider alone
        return set()
    if isinstance(value, Message):
        return words_of(value.blocks)
    if isinstance(value, ToolCall):
        return set(_WORD.findall(str(value.input)))
    if isinstance(value, ToolResult):
        return words_of(value.content)
    return set(_WORD.findall(value.text if isinstance(value, Text) else str(value)))


def words_in(dialect: Any, context: Context) -> set[str]:
    """Every word in what a provider is sent; what it compacted itself has those that it stands for."""
    if not len(context):
        return set()
    limit = {"max_tokens": 9} if dialect is anthropic else {}
    return set(_WORD.findall(json.dumps(dialect.request(context, model="m", **limit))))


def _compacting(dialect: Any, known: str, text: str) -> dict[str, Any]:
    """A response that puts what it knows in place of what came before."""
    if dialect is anthropic:
        block = {"type": "compaction", "content": f"all: {known}"}
        return {"content": [block, {"type": "text", "text": text}], "stop_reason": "end_turn"}
    spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {"output": [{"type": "compaction", "id": "cmp", "encrypted_content": f"all: {known}"}, spoken]}


class Program:
    """One program, from its seed. `run` raises `AssertionError` with what was done."""

    def __init__(self, seed: int, homes: list[turnlog.Home]) -> None:
        self.rng = random.Random(seed)
        self.seed = seed
        self.homes = homes
        self.done: list[str] = []
        self.counts: Counter[str] = Counter()
        self._words = 0
        self._ends: dict[str, frozenset[str]] = {"": frozenset()}
        """The words of the conversation that ends with an entry, by its id."""
        self._stands: dict[tuple[int, str], str] = {}
        """The id of the entry that a session of a home stands at."""
        self._went_on: set[tuple[int, str]] = set()
        """Where something was said or moved since both homes had the same."""
        self._writers: dict[tuple[int, str], list[turnlog.Session]] = {}
        self._asked: dict[turnlog.Session, Context] = {}
        """What a writer's model was last shown: it may take its time to sum it up."""
        self._begin(0, homes[0].create())

    def run(self, steps: int) -> None:
        """So many steps, each looked at."""
        moves = [self.say] * 8 + [self.ask] * 3 + [self.compact] * 4 + [self.rewind] * 2 + [self.answer] * 3
        moves += [self.uncompact, self.fork, self.resume, self.sync]
        for _ in range(steps):
            place = self.rng.choice(list(self._writers))
            move = self.rng.choice(moves)
            move(place, self.rng.choice(self._writers[place]))
            for where in self._writers if move.__name__ == "sync" else [place]:
                self._check(where)

    # ── moves ─────────────────────────────────────────────────────────────────────────────────────

    def say(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """A question, an answer, or a call with its result."""
        drafts = self._drafts()
        self._note("say", place, *(draft.role for draft in drafts))
        rebase = self.rng.random() < 0.5
        try:
            made = writer.append(*drafts, rebase=rebase)
        except Conflict:
            assert not rebase
            writer.refresh()
            made = writer.append(*drafts, rebase=True)
        for entry in made if isinstance(made, list) else [made]:
            self._ended(place, entry.id, words_of(entry))

    def ask(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """A model begins with a summary; others go on meanwhile."""
        self._note("ask", place)
        self._asked[writer] = writer.context()

    def compact(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """The summary of what was asked is taken, whatever happened since."""
        of = self._asked.pop(writer, None) or writer.context()
        summary = f"so far: {' '.join(sorted(words_of(of)))}"
        kept: dict[str, Any] = self.rng.choice(
            [{}, {"keep": self.rng.randrange(4)}, {"keep_turns": 1}, {"keep_tokens": 40}]
        )
        if self.rng.random() < 0.5:
            kept["of"] = of  # without it, it is what this writer was last given
        self._note("compact", place, sorted(kept))
        try:
            made = writer.compact(summary, **kept)
        except Conflict:
            self.counts["compact beside another"] += 1
            writer.refresh()
            made = writer.compact(summary, **kept)
        self._ended(place, made.id, set())

    def answer(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """A provider compacts what it was asked, while it answers; others may have gone on meanwhile."""
        of = self._asked.pop(writer, None) or writer.context()
        if not len(of):
            return
        dialect = self.rng.choice(DIALECTS)
        self._note("answer", place, dialect.__name__)
        known, word = " ".join(sorted(words_in(dialect, of))), self._word()
        made = _compacting(dialect, known, f"answer {word}")
        draft = dialect.draft(made, context=of)
        try:
            entry = writer.append(draft)
        except Conflict:
            self.counts["answer beside another"] += 1
            writer.refresh()
            entry = writer.append(draft, rebase=True)
        self._ended(place, entry.id, {word})

    def uncompact(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """It no longer applies."""
        writer.refresh()
        try:
            made = writer.uncompact()
        except NotFound:
            return
        self._note("uncompact", place)
        self._ended(place, made.id, set())

    def rewind(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """Back to anything that was said, on this branch or another."""
        writer.refresh()
        there = [entry for entry in writer.entries(kind=Message) if entry.id in self._ends]
        if there:
            entry = self.rng.choice(there)
            self._note("rewind", place, entry.seq)
            writer.rewind(to=entry, files=False)
            self._stand(place, entry.id)

    def fork(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """Another session goes on from here."""
        writer.refresh()
        at = self.rng.choice([None, *(entry for entry in writer.path() if entry.id in self._ends)])
        self._note("fork", place, at and at.seq)
        self._begin(place[0], writer.fork(at), self._stands[place] if at is None else at.id)

    def resume(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """Another process takes over."""
        self._note("resume", place)
        others = [one for one in self._writers[place] if one is not writer]
        self._writers[place] = [*others, self.homes[place[0]].resume(place[1])]

    def sync(self, place: tuple[int, str], writer: turnlog.Session) -> None:
        """Both homes have what both said, and go on."""
        self._note("sync", place)
        self.homes[0].sync(self.homes[1])
        for number, home in enumerate(self.homes):
            for info in home.sessions():
                where = (number, info.id)
                session = home.resume(info.id)
                head = next((entry.id for entry in session.entries() if entry.seq == session.head), "")
                assert head in self._ends, self._told(f"{where} stands at {head!r}, which nobody wrote")
                if where not in self._writers:
                    self._begin(number, session, head)
                elif self._stands[where] != head:
                    assert where not in self._went_on, self._told(f"{where} was moved under who went on there")
                    self._stands[where] = head
        self._went_on.clear()
        for home in self.homes:
            every = {
                word for info in home.sessions() for entry in home.read(info.id).entries(kind=Message)
                for word in words_of(entry)
            }  # fmt: skip
            assert every >= {f"w{number}" for number in range(1, self._words + 1)}, self._told("a sync lost words")

    # ── the oracle ────────────────────────────────────────────────────────────────────────────────

    def _begin(self, home: int, session: turnlog.Session, stands: str = "") -> None:
        place = (home, session.id)
        self._stands[place] = stands
        self._writers[place] = [session, self.homes[home].resume(session.id)]

    def _drafts(self) -> list[Message]:
        kind = self.rng.choice(("user", "assistant", "call"))
        if kind != "call":
            return [Message(role=kind, blocks=[Text(f"{kind} says {self._word()}")])]
        call = ToolCall(id=f"c{self._words}", name="look", input={"at": self._word()})
        result = ToolResult(call=call.id, name="look", content=f"found {self._word()}")
        return [Message(role="assistant", blocks=[call]), Message(role="tool", blocks=[result])]

    def _word(self) -> str:
        self._words += 1
        return f"w{self._words}"

    def _ended(self, place: tuple[int, str], entry: str, words: set[str]) -> None:
        self._ends[entry] = self._ends[self._stands[place]] | words
        self._stand(place, entry)

    def _stand(self, place: tuple[int, str], entry: str) -> None:
        self._stands[place] = entry
        self._went_on.add(place)

    def _check(self, place: tuple[int, str]) -> None:
        context = self.homes[place[0]].read(place[1]).context()
        wanted = self._ends[self._stands[place]]
        for who, shown in (("model", words_of(context)), *((one.__name__, words_in(one, context)) for one in DIALECTS)):
            missing = wanted - shown
            assert not missing, self._told(f"{place}: the {who} does not see {sorted(missing)}")

    def _note(self, what: str, place: tuple[int, str], *more: object) -> None:
        self.counts[what] += 1
        self.done.append(" ".join(map(str, (what, *place, *more))))

    def _told(self, problem: str) -> str:
        return "\n".join([problem, f"program {self.seed}:", *self.done])


def run(seed: int, steps: int = 60) -> Counter[str]:
    """One program in memory; returns how often it did what."""
    with turnlog.open("memory:") as one, turnlog.open("memory:") as other:
        program = Program(seed, [one, other])
        program.run(steps)
        return program.counts
