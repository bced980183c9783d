"""Parts of a conversation: the last messages, what is around an entry, a branch; and places to go back to."""

from collections.abc import Iterator

import pytest

import turnlog
from turnlog import Message, Session, Text, ToolCall
from turnlog.errors import NotFound
from turnlog.log.context import text_of
from turnlog.log.entry import Custom, Note
from turnlog.reader.part import Part, numbered, part_of
from turnlog.reader.place import checkpoint_at, place_of, turns_of


@pytest.fixture
def session() -> Iterator[Session]:
    """Ten messages; the last two were left for two others."""
    with turnlog.open("memory:") as home:
        made = home.create(id="talk-1")
        for number in range(1, 6):
            made.user(f"ask {number}")
            made.assistant(f"say {number}")
        yield made


def told(session: Session, part: Part) -> list[str]:
    return [text_of(entry.blocks) for entry in part.entries(session) if isinstance(entry, Message)]


def seq_of(session: Session, text: str) -> int:
    return next(m.seq for m in session.messages() if text_of(m.blocks) == text)


def part(session: Session, last: int | None = None, at: object = None, branch: object = None) -> Part:
    return part_of(
        session, last=last, at=None if at is None else str(at), branch=None if branch is None else str(branch)
    )


@pytest.mark.parametrize("word", ["1" * 5_000, "٣", "-1", "1_0", "", "turn:" + "1" * 5_000])
def test_a_number_that_is_none_is_not_found(session: Session, word: str):
    assert numbered(word) is None
    for options in ({"at": word}, {"branch": word}):
        with pytest.raises(NotFound):
            part(session, **options)
    with pytest.raises(NotFound):
        place_of(session, f"turn:{word}")


def test_all_of_it(session: Session):
    found = part(session)
    assert (found.is_whole, found.is_end, found.note) == (True, True, "")
    assert len(told(session, found)) == 10


def test_the_last_ones(session: Session):
    found = part(session, last=3)
    assert told(session, found) == ["say 4", "ask 5", "say 5"]
    assert (found.is_whole, found.is_end, found.note) == (False, True, "… earlier messages are left out")
    assert part(session, last=10) == part(session, last=99) == part(session)


def test_around_an_entry_by_number_and_by_id(session: Session):
    middle = session.messages()[4]
    found = part(session, last=1, at=middle.seq)
    assert told(session, found) == ["say 2", "ask 3", "say 3"]
    assert found.note == f"… around entry {middle.seq}; 3 messages before and 4 messages after left out"
    assert (found.mark, found.is_end) == (middle.seq, False)
    assert part(session, last=1, at=middle.id) == found
    assert part(session, last=9, at=middle.seq).is_whole
    with pytest.raises(NotFound, match="no entry '999' in session talk-1") as raised:
        part(session, at=999)
    assert f"its last is {session.seq};" in str(raised.value.hint)


def test_another_branch_by_its_end_and_by_what_is_in_it(session: Session):
    left, asked = session.head, seq_of(session, "ask 5")
    session.rewind(to=seq_of(session, "say 4"))
    session.user("ask something else")
    assert told(session, part(session))[-1] == "ask something else"
    assert told(session, part(session, branch=left))[-2:] == ["ask 5", "say 5"]
    assert told(session, part(session, branch=asked))[-1] == "ask 5"
    assert told(session, part(session, last=1, at=asked)) == ["say 4", "ask 5", "say 5"], "on the branch that has it"
    with pytest.raises(NotFound, match="no branch '999'") as failed:
        part(session, branch=999)
    assert failed.value.hint == f"there are {session.head}, {left}; `turnlog tree` shows them"


@pytest.mark.parametrize("kind", ["custom", "note"])
def test_whatever_was_left_is_shown_around_itself(session: Session, kind: str):
    session.user("ask on another way")
    left = session.append(Custom(kind="k", blocks=[Text(text="left")])) if kind == "custom" else session.note("left")
    session.assistant("say on another way")
    session.rewind(to=seq_of(session, "say 2"))
    session.user("ask again")
    around = part(session, last=1, at=left.seq)
    assert left.seq in [entry.seq for entry in around.entries(session)]
    assert told(session, around) == ["ask on another way", "say on another way"]


def test_marks_stand_where_the_conversation_was(session: Session):
    session.note("of the end")
    left = session.head
    session.rewind(to=seq_of(session, "say 1"))
    session.note("of the beginning")
    here = [entry.text for entry in part(session).entries(session) if isinstance(entry, Note)]
    there = [entry.text for entry in part(session, branch=left).entries(session) if isinstance(entry, Note)]
    assert here == ["of the beginning"]
    assert there == ["of the end"]


def test_a_title_is_not_told_twice(session: Session):
    session.set("title", "an old one")
    session.set("title", "the one above it")
    titles = [entry for entry in part(session).entries(session) if entry.type == "set"]
    assert [entry.value for entry in titles] == ["an old one"]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_answer_before_a_part_has_the_calls_of_its_results(session: Session):
    session.assistant([ToolCall(id="c1", name="bash", input={})])
    session.tool_result("c1", "done")
    found = part(session, last=1)
    before = found.before(session)
    assert before is not None
    assert [block.id for block in before.blocks if isinstance(block, ToolCall)] == ["c1"]
    assert part(session).before(session) is None


# ── places ────────────────────────────────────────────────────────────────────────────────────────


def test_places_are_entries_turns_and_labels(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    folder = tmp_path / "work"
    folder.mkdir()
    with turnlog.open("memory:") as home:
        session = home.create(workspace=folder)
        with pytest.raises(NotFound, match="no turn and no checkpoint to go back to"):
            place_of(session, None)
        with session.turn():
            session.user("hello")
        session.rewind(turns_of(session).begins[1])
        with pytest.raises(NotFound) as nothing:
            place_of(session, None)
        assert nothing.value.hint == "`turnlog undo` takes back the last rewind"
        session = home.create(workspace=folder)
        kept = session.checkpoint("12")
        assert place_of(session, None).seq == kept.seq
        for _ in range(2):
            with session.turn():
                session.user("hi")
        begins = turns_of(session).begins
        assert list(begins) == [1, 2]
        assert place_of(session, None).seq == place_of(session, "turn:2").seq == begins[2]
        assert place_of(session, "turn:1").words == "before turn 1"
        assert (place_of(session, "12").seq, place_of(session, "label:12").seq) == (12, kept.seq)
        assert place_of(session, "0").words == "the beginning"
        found = checkpoint_at(session, place_of(session, "label:12"))
        assert found is not None
        assert found.seq == kept.seq
        for word in ("turn:3", "turn:x", "nowhere", "label:nowhere", str(session.seq + 1)):
            with pytest.raises(NotFound):
                place_of(session, word)


def test_a_session_without_brackets_has_a_turn_for_each_prompt():
    with turnlog.open("memory:") as home:
        session = home.create()
        for word in "abc":
            session.user(word)
            session.assistant("answer")
        session.rewind(before=session.messages()[4], files=False)
        session.user("instead of c")
        prompts = [message.seq for message in session.messages() if message.role == "user"]
        assert [place_of(session, f"turn:{number}").seq for number in (1, 2, 3)] == [seq - 1 for seq in prompts]
        with pytest.raises(NotFound, match=r"no turn '4' in session .*: it has 3"):
            place_of(session, "turn:4")
