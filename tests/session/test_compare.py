"""Two sessions side by side: what both begin with counts once, and what is behind it for the one that did it."""

from pathlib import Path

import pytest

import turnlog
from turnlog import Message, NotFound, Text, ToolCall, Usage

USAGE = Usage(input_tokens=100, output_tokens=10, cost_micros=2000)
MORE = Usage(input_tokens=700, output_tokens=70, cost_micros=9000)


def prompts(side) -> list[str]:
    return [turn.prompt for turn in side.turns]


def test_a_fork_and_what_it_was_forked_from(s, home):
    s.user("begin")
    s.assistant("begun", usage=USAGE, model="m")
    at = s.head
    s.user("one way")
    s.append(Message(role="assistant", blocks=[Text("I call"), ToolCall(id="c", name="sh", input={})], usage=USAGE))
    s.tool_result("c", "done")
    s.assistant("did it", usage=USAGE)
    fork = s.fork(at)
    fork.user("another way")
    fork.assistant("did that", usage=MORE)
    fork.user("and more")
    found = home.compare(s.id, fork.id)
    assert (found.common.messages, found.common.prompts) == (2, ["begin"])
    assert (found.common.last_a, found.common.last_b) == (at, at)
    assert (prompts(found.a), prompts(found.b)) == (["one way"], ["another way", "and more"])
    [turn] = found.a.turns
    assert (turn.messages, turn.tool_calls, turn.answer, turn.usage) == (4, 1, "did it", USAGE + USAGE)
    assert (found.a.usage, found.a.cost.micros) == (USAGE + USAGE, 4000)
    assert (found.b.usage, found.b.cost.micros, found.b.messages) == (MORE, 9000, 3)
    assert found.a.files is found.b.files is None, "nobody took checkpoints"


def test_two_branches_of_one_session_and_what_was_spent_where(s, home):
    first = s.user("begin")
    s.spend(USAGE, why="title")
    s.assistant("one way", usage=USAGE)
    left = s.head
    s.spend(USAGE, why="summary")
    s.rewind(to=first)
    s.spend(MORE, why="title")  # where both stood
    s.assistant("another way", usage=MORE)
    found = home.compare(s.id, s.id, branch_a=left)
    assert (found.common.messages, found.a.head, found.b.head) == (1, left, s.head)
    assert prompts(found.a) == prompts(found.b) == ["begin"], "it is the rest of a turn that both have"
    assert (found.a.usage, found.b.usage) == (USAGE + USAGE, MORE)
    assert [turn.answer for turn in (*found.a.turns, *found.b.turns)] == ["one way", "another way"]


def test_the_same_words_are_in_common_whoever_wrote_them_down(home):
    one, other = home.create(), home.create()
    for session in (one, other):
        session.user("the same")
        session.assistant("answer")
    other.user("further")
    found = home.compare(one.id, other.id)
    assert (found.common.messages, found.a.turns, prompts(found.b)) == (2, [], ["further"])
    assert found.common.last_a == one.head
    same = home.compare(one.id, one.id)
    assert (same.common.messages, same.a.turns, same.b.turns) == (2, [], [])


def test_sessions_with_nothing_in_common_and_empty_ones(home):
    one, other, empty = home.create(), home.create(), home.create()
    one.user("this")
    other.system("be brief")
    other.user("that")
    found = home.compare(one.id, other.id)
    assert (found.common.messages, found.common.last_a, prompts(found.a), prompts(found.b)) == (
        0,
        0,
        ["this"],
        ["that"],
    )
    assert home.compare(empty.id, one.id).a.turns == []


def test_a_subagent_is_paid_where_it_was_started(s, home):
    s.user("begin")
    at = s.head
    s.assistant("I send somebody")
    child = s.spawn(agent="helper")
    child.assistant("found it", usage=USAGE)
    fork = s.fork(at)
    fork.assistant("by myself", usage=MORE)
    found = home.compare(s.id, fork.id)
    assert (found.a.usage, found.a.cost.micros, found.b.usage) == (USAGE, 2000, MORE)


def test_a_request_of_several_messages_counts_once(s, home):
    other = home.create()
    s.user("begin")
    s.assistant("a", usage=USAGE, request="r")
    s.assistant("b", usage=USAGE, request="r")
    found = home.compare(s.id, other.id)
    assert (found.a.usage, found.a.cost.micros) == (USAGE, 2000)


def test_what_is_not_there_is_told(s, home):
    s.user("begin")
    with pytest.raises(NotFound, match="no branch 99 in session"):
        home.compare(s.id, s.id, branch_b=99)
    with pytest.raises(NotFound, match="no-such"):
        home.compare(s.id, "no-such")


def test_files_are_those_of_its_own_turns(tmp_path: Path):
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.py").write_text("one\ntwo\n")
    with turnlog.open(tmp_path / "home", durability="flush", checkpoints=True) as home:
        one = home.create(workspace=place)
        one.user("begin")
        with one.turn():
            one.user("change it")
            (place / "a.py").write_text("one\nthree\nfour\n")
            (place / "gone.txt").write_text("for a while\n")
        with one.turn():
            one.user("tidy up")
            (place / "gone.txt").unlink()
            (place / "b.py").write_text("new\n")
        other = home.create(workspace=place)
        other.user("begin")
        with other.turn():
            other.user("delete it")
            (place / "a.py").unlink()
        found = home.compare(one.id, other.id)
    assert found.common.messages == 1
    assert found.a.files is not None
    assert found.b.files is not None
    told = [(file.path, file.action, file.added, file.removed) for file in found.a.files]
    assert told == [("a.py", "modified", 2, 1), ("b.py", "created", 1, 0)]
    assert [(file.path, file.action, file.removed) for file in found.b.files] == [("a.py", "deleted", 3)]
    assert [len(turn.files or ()) for turn in found.a.turns] == [2, 2]


def test_a_file_that_is_again_as_it_was_has_not_changed(tmp_path: Path):
    place = tmp_path / "work"
    place.mkdir()
    changed, deleted, both = (place / name for name in ("changed.txt", "deleted.txt", "both.txt"))
    for path in (changed, deleted, both):
        path.write_text("one\n")
    with turnlog.open(tmp_path / "home", durability="flush", checkpoints=True) as home:
        session = home.create(workspace=place)
        with session.turn():
            session.user("change them")
            changed.write_text("two\n")
            both.write_text("two\n")
            deleted.unlink()
        with session.turn():
            session.user("change them back")
            changed.write_text("one\n")
            both.write_text("three\n")
            deleted.write_text("one\n")
        found = home.compare(session.id, home.create().id).a
    assert [(file.path, file.action, file.added, file.removed) for file in found.files or ()] == [
        ("both.txt", "modified", 2, 2)
    ]
    assert [len(turn.files or ()) for turn in found.turns] == [3, 3]
