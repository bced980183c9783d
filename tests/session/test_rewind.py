"""Rewind, undo, redo, branches, turns: moving is an entry, and nothing that was said goes away."""

import pytest

from turnlog import Invalid, Message, NotFound, Text


def texts(session):
    return [message.blocks[0].text for message in session.messages()]


@pytest.fixture
def talk(s):
    for word in ("one", "two", "three"):
        s.user(word)
        s.assistant(word.upper())
    return s


def test_the_conversation_continues_from_a_node(talk, place):
    two = talk.messages()[2]
    head = talk.rewind(to=two)
    assert (head.to, head.why, head.left) == (two.seq, "rewind", talk.seq - 1)
    assert texts(talk) == ["one", "ONE", "two"]
    assert talk.head == two.seq
    assert talk.user("other").parent == two.seq
    assert texts(place.open().resume(talk.id)) == ["one", "ONE", "two", "other"]


def test_a_seq_is_as_good_as_its_entry(talk):
    talk.rewind(to=talk.messages()[0].seq)
    assert texts(talk) == ["one"]


def test_a_mark_means_the_last_node_before_it(s):
    s.user("one")
    note = s.note("n")
    s.user("two")
    s.rewind(to=note)
    assert texts(s) == ["one"]


def test_zero_is_the_empty_conversation(talk):
    head = talk.rewind(to=0)
    assert head.to == talk.head == 0
    assert texts(talk) == []
    assert list(talk.context()) == []
    assert talk.user("again").parent == 0
    assert texts(talk) == ["again"]


def test_the_first_line_means_the_empty_conversation_too(talk):
    talk.rewind(to=1)
    assert talk.head == 0


def test_before_drops_the_entry(talk):
    talk.rewind(before=talk.messages()[2])
    assert texts(talk) == ["one", "ONE"]
    talk.rewind(before=talk.messages()[0].seq)
    assert texts(talk) == []


def test_turns_drops_the_last_turns(talk):
    talk.rewind(turns=1)
    assert texts(talk) == ["one", "ONE", "two", "TWO"]
    talk.rewind(turns=2)
    assert texts(talk) == []


def test_bracketed_turns_are_dropped_whole(s):
    with s.turn():
        s.user("one")
        s.assistant("ONE")
    with s.turn():
        s.append(Message(role="assistant", blocks=[Text(text="woke up")]))
        s.user("two")
        s.user("and")
        s.assistant("TWO")
    s.rewind(turns=1)
    assert texts(s) == ["one", "ONE"]
    s.rewind(turns=1)
    assert texts(s) == []


def test_turns_that_are_not_there_cannot_be_dropped(talk):
    with pytest.raises(NotFound):
        talk.rewind(turns=4)
    assert texts(talk)[-1] == "THREE"
    talk.rewind(turns=3)
    assert texts(talk) == []


@pytest.mark.parametrize("target", [{}, {"to": 1, "before": 2}, {"turns": 0}, {"turns": -1}, {"to": 3, "turns": 1}])
def test_a_rewind_needs_one_target_that_makes_sense(talk, target):
    before = talk.seq
    with pytest.raises(Invalid):
        talk.rewind(**target)
    assert talk.seq == before


@pytest.mark.parametrize("target", [{"to": 999}, {"before": 999}, {"to": -1}, {"before": 0}])
def test_a_rewind_to_what_is_not_there_is_not_found(talk, target):
    before = talk.seq
    with pytest.raises(NotFound):
        talk.rewind(**target)
    assert talk.seq == before


def test_the_files_to_restore_are_a_list(talk):
    for wrong in ("f.txt", b"f.txt", 7):
        for call in (talk.rewind, talk.plan_rewind):
            with pytest.raises(Invalid, match="list"):
                call(turns=1, only=wrong)
    assert [entry for entry in talk.entries() if entry.type == "head"] == []


def test_a_change_is_that_of_a_turn_or_since_a_checkpoint(home, tmp_path):
    (tmp_path / "work").mkdir()
    s = home.create(workspace=tmp_path / "work")
    with s.turn():
        s.user("one")
    first, last = s.checkpoints()
    assert s.diff(first, last) == s.diff(first) == s.diff(turn=1) == s.diff() == []
    for wrong in ({"after": last}, {"after": last, "turn": 1}, {"before": first, "turn": 1}):
        with pytest.raises(Invalid, match=r"were both given|without `before`"):
            s.diff(**wrong)


def test_undo_takes_back_the_rewind_and_redo_takes_back_the_undo(talk, place):
    whole = texts(talk)
    talk.rewind(turns=1)
    talk.undo()
    assert texts(talk) == whole
    talk.redo()
    assert texts(talk) == whole[:4]
    talk.undo()
    other = place.open().resume(talk.id)
    assert texts(other) == whole
    other.redo()
    assert texts(other) == whole[:4]


def test_rewinds_are_undone_newest_first(talk):
    whole = texts(talk)
    talk.rewind(turns=1)
    talk.rewind(turns=1)
    talk.undo()
    assert texts(talk) == whole[:4]
    talk.undo()
    assert texts(talk) == whole
    with pytest.raises(NotFound):
        talk.undo()
    talk.redo()
    talk.redo()
    assert texts(talk) == whole[:2]
    with pytest.raises(NotFound):
        talk.redo()


def test_undo_after_more_was_said_goes_back_and_keeps_that_as_a_branch(talk):
    whole = texts(talk)
    talk.rewind(turns=1)
    talk.user("other")
    talk.undo()
    assert texts(talk) == whole
    assert {branch.preview for branch in talk.branches()} == {"three", "other"}


def test_a_new_node_empties_redo(talk):
    talk.rewind(turns=1)
    talk.undo()
    talk.user("more")
    with pytest.raises(NotFound):
        talk.redo()
    assert texts(talk)[-1] == "more"


def test_a_mark_does_not_empty_redo(talk):
    talk.rewind(turns=1)
    talk.undo()
    talk.note("n")
    talk.set("k", 1)
    talk.redo()
    assert texts(talk)[-1] == "TWO"


def test_there_is_nothing_to_undo_in_a_session_that_never_went_back(talk):
    with pytest.raises(NotFound):
        talk.undo()
    with pytest.raises(NotFound):
        talk.redo()


def test_an_abandoned_branch_can_be_taken_up_again(talk):
    last = talk.messages()[-1]
    talk.rewind(turns=2)
    talk.user("other")
    talk.rewind(to=last)
    assert texts(talk) == ["one", "ONE", "two", "TWO", "three", "THREE"]
    talk.user("four")
    assert texts(talk)[-2:] == ["THREE", "four"]


def test_branches_are_the_ends_of_the_conversation_newest_first(talk, place):
    end = talk.head
    talk.rewind(turns=1)
    other = talk.user("other")
    [newest, oldest] = talk.branches()
    assert (newest.head, newest.messages, newest.is_current, newest.preview) == (other.seq, 5, True, "other")
    assert (oldest.head, oldest.messages, oldest.is_current, oldest.preview) == (end, 6, False, "three")
    assert newest.at == other.at
    assert place.open().resume(talk.id).branches() == [newest, oldest]


def test_the_current_end_is_a_branch_even_inside_the_conversation(talk):
    two = talk.messages()[2]
    talk.rewind(to=two)
    assert [(branch.head, branch.is_current) for branch in talk.branches()] == [(two.seq + 3, False), (two.seq, True)]
    talk.rewind(to=0)
    assert [(branch.head, branch.is_current) for branch in talk.branches()] == [(two.seq + 3, False), (0, True)]


def test_an_empty_conversation_is_one_branch(s):
    [branch] = s.branches()
    assert (branch.head, branch.messages, branch.is_current, branch.at) == (0, 0, True, None)


def test_a_rewind_survives_a_restart(talk, place):
    talk.rewind(turns=1)
    other = place.open().resume(talk.id)
    assert other.head == talk.head
    other.undo()
    assert len(other.messages()) == 6


def test_a_turn_is_bracketed_and_its_entries_carry_it(s):
    with s.turn() as turn:
        inside = s.user("one")
        fact = s.set("k", 1)
    outside = s.user("two")
    begin, end = s.entries(kind="turn")
    assert (begin.state, end.state, begin.turn, end.turn) == ("begin", "completed", turn, turn)
    assert (inside.turn, fact.turn, outside.turn) == (turn, turn, None)


def test_a_turn_that_raises_has_failed_and_says_why(s):
    with pytest.raises(ZeroDivisionError), s.turn():
        s.user("one")
        raise ZeroDivisionError("no")
    end = list(s.entries(kind="turn"))[-1]
    assert (end.state, end.error) == ("failed", "ZeroDivisionError: no")
    with s.turn():
        s.user("two")


def test_a_turn_that_is_interrupted_was_aborted(s):
    with pytest.raises(KeyboardInterrupt), s.turn():
        raise KeyboardInterrupt
    assert list(s.entries(kind="turn"))[-1].state == "aborted"


def test_turns_do_not_nest(s):
    with s.turn():
        with pytest.raises(Invalid), s.turn():
            raise AssertionError
        s.user("still inside")
    assert [entry.state for entry in s.entries(kind="turn")] == ["begin", "completed"]
    assert s.messages()[0].turn is not None
