"""The conversation in pieces: the same as the whole, from the catalog as from the log, and as it grows."""

import random
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog import Message, Session, Text, ToolCall, ToolResult
from turnlog.catalog import Catalog
from turnlog.catalog.ask import detail
from turnlog.catalog.ask.usage import usage_by_two
from turnlog.formats import Source
from turnlog.log.entry import ENTRIES, Answer, AnyEntry, Ask, Child, Compaction, Custom, Note, Set, Spent, Turn
from turnlog.log.usage import Usage
from turnlog.reader.part import Part
from turnlog.reader.place import turns_of
from turnlog.reader.viewing.conversation import ConversationPieces
from turnlog.reader.viewing.foreignlog import ForeignLog
from turnlog.reader.viewing.ownlog import OwnEntries, outline_for
from turnlog.thread.outline import Outline, is_shown_to_people, outline_of
from turnlog.view.rowmaker import Rows

SAMPLES: list[AnyEntry] = [
    Message(role="user", blocks=[Text(text="a")]),
    Message(role="user", blocks=[Text(text="a")], display=False),
    Message(role="assistant", display=False, error={"message": "overloaded"}),
    Message(role="assistant", blocks=[ToolCall(id="c", name="bash", input={"command": "ls"})]),
    Message(role="tool", blocks=[ToolResult(call="c", content="x")], display=False),
    Compaction(replacement=[Message(role="user", blocks=[Text(text="s")])], tokens_before=9),
    Custom(kind="k"),
    Custom(kind="k", blocks=[Text(text="t")]),
    Turn(state="begin"),
    Turn(state="aborted"),
    Set(key="title", value="t"),
    Set(key="model", value="m"),
    Spent(usage=Usage(input_tokens=1)),
    Spent(usage=Usage(input_tokens=1), why="title"),
    Note(text="n"),
    Note(text="a record of the type x", data={}, origin={"agent": "a", "unknown_type": "x"}),
    Child(session="s"),
    Ask(call="c", text="may it?"),
    Answer(ask=1, allow=False),
]


@pytest.mark.parametrize("entry", SAMPLES, ids=lambda entry: entry.type)
def test_an_outline_knows_what_a_reader_sees(entry: AnyEntry) -> None:
    assert is_shown_to_people(entry) == bool(list(Rows().of(entry)))


def test_no_kind_of_entry_is_forgotten() -> None:
    quiet = {tag for tag, kind in ENTRIES.items() if not kind.is_shown}
    assert {entry.type for entry in SAMPLES} | quiet | {"uncompact", "edit", "head"} >= set(ENTRIES)


def wander(session: Session, chance: random.Random, steps: int) -> None:
    """Somebody talks, uses tools, goes back, takes notes."""
    for number in range(steps):
        what = chance.random()
        if what < 0.35:
            session.user(f"ask {number}")
        elif what < 0.6:
            calls = [ToolCall(id=f"c{number}-{i}", name="bash", input={"command": str(i)}) for i in range(2)]
            session.append(Message(role="assistant", blocks=[Text(text="well"), *calls]))
            for call in calls[: chance.randint(0, 2)]:
                if chance.random() < 0.3:
                    session.append(Note(text="in between"))
                session.append(Message(role="tool", blocks=[ToolResult(call=call.id, content=f"out {number}")]))
        elif what < 0.75:
            session.assistant(f"say {number}")
        elif what < 0.85:
            session.append(chance.choice([Note(text="n"), Child(session=f"s{number}"), Turn(state="failed")]))
        elif what < 0.9:
            session.set("title", f"title {number % 2}")
        elif session.messages():
            session.rewind(to=chance.choice(session.messages()).seq)


def whole(session: Session, head: int) -> list[int]:
    """What a reader of the whole log comes by."""
    return [entry.seq for entry in Part(head).entries(session) if list(Rows().of(entry))]


@pytest.mark.parametrize("seed", range(6))
def test_pieces_are_the_whole_in_order_on_every_branch(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with turnlog.open(tmp_path / "home", durability="flush") as home, Catalog(home, agents=False) as catalog:
        session = home.create(id="talk")
        wander(session, chance, 60)
        fork = session.fork(at=chance.choice(session.messages()).seq) if session.messages() else session
        wander(fork, chance, 20)
        for one in (session, fork):
            outline = outline_for(one, catalog)
            assert list(outline) == list(outline_for(one))
            for branch in one.branches():
                talk = ConversationPieces(OwnEntries(one), outline, branch.head)
                assert talk.entries_shown == whole(one, branch.head)
                assert list(Outline.path(outline, branch.head)) == sorted(outline.path(branch.head))
                pieces = list(talk.read(0, len(talk)))
                assert [entry.seq for piece in pieces for entry in piece] == talk.entries_shown
                assert [piece[0].seq for piece in pieces] == [talk.seq(number) for number in range(len(talk))]
                for piece in pieces[1:]:
                    is_result = isinstance(piece[0], Message) and piece[0].role == "tool"
                    assert not is_result or piece[0].blocks[0].call not in str(pieces[: pieces.index(piece)])  # pyright: ignore


@pytest.mark.parametrize("seed", range(4))
def test_it_grows_to_what_it_would_be_from_the_beginning(seed: int) -> None:
    chance = random.Random(seed)
    with turnlog.open("memory:") as home:
        session = home.create()
        talk = ConversationPieces(OwnEntries(session), outline_for(session))
        for _ in range(25):
            before = [talk.seqs(number, number + 1) for number in range(len(talk))]
            wander(session, chance, 3)
            changed = talk.grow()
            fresh = ConversationPieces(OwnEntries(session), outline_for(session))
            assert (talk.entries_shown, talk.starts) == (fresh.entries_shown, fresh.starts)
            now = [talk.seqs(number, number + 1) for number in range(len(talk))]
            same = len(before) if changed is None else changed
            assert now[:same] == before[:same]
            assert changed is not None or now == before


def test_turns_have_the_numbers_that_people_type() -> None:
    """In the outline, from which buttons are made, as in the log, where `turn:3` is looked up."""
    with turnlog.open("memory:") as home:
        session = home.create()
        for number in range(3):
            with session.turn():
                session.user(f"ask {number}")
        again = next(entry for entry in session.entries() if isinstance(entry, Turn) and entry.state == "begin")
        session.append(Turn(state="begin", turn=again.turn))
        fork = session.fork()
        with fork.turn():
            fork.user("on the fork")
        for one in (session, fork):
            with home.read(one.id) as reading:
                numbers = {turn: number for number, turn in enumerate(outline_for(one).turn_begins(), 1)}
                assert numbers == turns_of(reading).numbers
                assert len(numbers) == (3 if one is session else 4)


def test_only_the_current_title_is_left_out() -> None:
    with turnlog.open("memory:") as home:
        session = home.create()
        session.user("go")
        older = session.set("title", "Fix")
        session.set("title", "Fix the login")
        talk = ConversationPieces(OwnEntries(session), outline_for(session))
        assert older.seq in talk.entries_shown
        assert talk.entries_shown == whole(session, session.head)
        session.set("title", "Fix the login\n" + "and " * 100)
        assert talk.grow() is not None
        assert talk.entries_shown == whole(session, session.head)


def test_a_title_that_was_taken_back_is_shown_where_it_was_set() -> None:
    with turnlog.open("memory:") as home:
        session = home.create()
        asked = session.user("go")
        titled = session.set("title", "Fix")
        talk = ConversationPieces(OwnEntries(session), outline_for(session))
        assert titled.seq not in talk.entries_shown
        session.unset("title")
        assert talk.grow() == 1
        assert talk.entries_shown == whole(session, session.head) == [asked.seq, titled.seq]


def test_a_place_inside_a_piece_is_that_piece() -> None:
    with turnlog.open("memory:") as home:
        session = home.create()
        session.user("go")
        session.append(Message(role="assistant", blocks=[ToolCall(id="c", name="bash", input={})]))
        result = session.append(Message(role="tool", blocks=[ToolResult(call="c", content="out")]))
        session.assistant("done")
        talk = ConversationPieces(OwnEntries(session), outline_for(session))
        assert len(talk) == 3
        assert talk.position(result.seq) == 1
        assert talk.position(10**6) == 2
        assert [item.label for _, item in talk.items() if item.is_prompt] == ["go"]


def test_an_outline_that_is_kept_is_the_same_and_a_damaged_one_is_none() -> None:
    with turnlog.open("memory:") as home:
        session = home.create()
        wander(session, random.Random(1), 50)
        made = outline_of(session.entries())
        kept = Outline.decode(made.encode())
        assert kept is not None
        assert list(kept) == list(made)
        assert Outline.decode(made.encode()[:-9]) is None


def test_the_catalog_keeps_up_with_a_session_that_grows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.catalog.index.sqlite.outlines._PIECE", 8)
    with turnlog.open(tmp_path, durability="flush") as home, Catalog(home, agents=False, fresh_for=0) as catalog:
        session = home.create(id="talk")
        for number in range(30):
            session.user(f"ask {number}")
            session.assistant(f"say {number}")
            if number % 3 == 0:
                known = catalog.ask(detail.outline, "talk")
                assert list(known) == list(outline_of(session.entries()))
        session.close()
        home.delete("talk")
        home.purge("talk")
        catalog.sync()
        assert not len(catalog.ask(detail.outline, "talk"))


def test_tools_context_files_and_spending_of_a_session(tmp_path: Path) -> None:
    with turnlog.open(tmp_path, durability="flush") as home, Catalog(home, agents=False) as catalog:
        session = home.create(id="talk")
        for number in range(5):
            usage = Usage(input_tokens=100 * number + 1, cache_read_tokens=7, cost_micros=number)
            call = ToolCall(id=f"c{number}", name="edit", input={"path": f"/srv/f{number % 2}.py"})
            session.append(Message(role="assistant", blocks=[call], usage=usage, model="m"))
            result = ToolResult(call=call.id, content="ok", is_error=number == 3, duration_ms=20)
            session.append(Message(role="tool", blocks=[result]))
        session.compact("what was said")
        card = catalog.find("talk")
        [tool] = catalog.ask(detail.tools, card)
        assert tool == ("edit", 5, 1, 100)
        assert catalog.ask(detail.tools) == [tool]
        points = catalog.ask(detail.context, card)
        assert [point.tokens for point in points] == [8, 108, 208, 308, 408, 0]
        assert points[-1].is_compaction
        few = catalog.ask(detail.context, card, most=4)
        assert len(few) == 4
        assert max(point.tokens for point in few) == 408
        assert few[-1].is_compaction
        assert [(file.path, file.times) for file in catalog.ask(detail.files, card)] == [
            ("/srv/f0.py", 3),
            ("/srv/f1.py", 2),
        ]
        assert sum(cost for _, cost in catalog.ask(detail.spent_by_entry, card)) == 10


def test_details_of_another_agents_session_name_its_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Machine(tmp_path, monkeypatch).claude("aaaa1111", 3)
    entries = {entry.seq: entry for entry in ForeignLog(Source("claude-code", str(path))).forward()}
    with Catalog(fresh_for=0) as catalog:
        card = catalog.find("claude-code:aaaa1111")
        points = catalog.ask(detail.context, card)
        assert len(points) == 6
        for point in points:
            entry = entries[point.seq]
            assert isinstance(entry, Message)
            assert entry.usage is not None
            assert entry.usage.input_tokens + entry.usage.cache_read_tokens == point.tokens
        spent = catalog.ask(detail.spent_by_entry, card)
        assert [seq for seq, _ in spent] == [point.seq for point in points]
        second = spent[1][0]
        assert catalog.ask(detail.spent_by_entry, card, first=second, last=second) == spent[1:2]


def test_usage_by_two_things_comes_to_the_same_sums(tmp_path: Path) -> None:
    with turnlog.open(tmp_path, durability="flush") as home, Catalog(home, agents=False) as catalog:
        for number in range(4):
            session = home.create(agent=f"agent-{number % 2}")
            for model in ("one", "two"):
                session.assistant("a", model=model, usage=Usage(input_tokens=10, cost_micros=number + 1))
        both = catalog.ask(usage_by_two, "agent", "model")
        [*agents, total] = catalog.usage(by="agent")
        assert [sum(part.tokens.cost_micros for part in both[one.group]) for one in agents] == [
            one.tokens.cost_micros for one in agents
        ]
        assert sum(part.requests for parts in both.values() for part in parts) == total.requests == 8
        assert {part.group for parts in both.values() for part in parts} == {"one", "two"}
        [day] = catalog.ask(usage_by_two, "day", "model")
        assert day == catalog.usage(by="day")[0].group
