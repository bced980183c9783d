"""Appending: what comes back, ids, retries, and what happens when somebody else was faster."""

import itertools
import os
import threading

import pytest

from turnlog import (
    AlreadyExists,
    Conflict,
    Custom,
    Image,
    Invalid,
    Message,
    Note,
    NotFound,
    Set,
    Start,
    Text,
    TurnlogError,
    Unavailable,
)
from turnlog.log.entry import Fold


def texts(messages):
    return [message.blocks[0].text for message in messages]


def said(session):
    """All entries but those with which a writer introduces itself."""
    return [entry for entry in session.entries() if entry.type != "writer"]


def test_appending_methods_return_the_entry_with_its_place(s, place):
    ask = s.user("hello")
    answer = s.assistant("hi", model="m", stop="end")
    assert (ask.role, ask.parent, ask.blocks) == ("user", 0, [Text(text="hello")])
    assert (answer.role, answer.parent, answer.model) == ("assistant", ask.seq, "m")
    assert answer.seq > ask.seq > 0
    assert ask.at.timestamp() * 1000 == place.clock.now
    assert (s.head, s.seq) == (answer.seq, answer.seq)


def test_one_draft_gives_an_entry_and_several_give_a_list(s):
    one = s.append(Message(role="user", blocks=[Text(text="a")]))
    several = s.append(
        Message(role="user", blocks=[Text(text="b")]), Custom(kind="x.y", data={"k": [1]}), Note(text="n")
    )
    assert isinstance(one, Message)
    assert [entry.type for entry in several] == ["message", "custom", "note"]
    assert [entry.more for entry in several] == [2, 1, 0]
    assert several[1].parent == several[0].seq
    assert s.head == several[1].seq
    assert list(s.entries(after=one)) == several


def test_nothing_to_append_is_refused(s):
    with pytest.raises(Invalid):
        s.append()


def test_the_first_line_a_process_appends_says_who_it_is(s, home, place):
    s.user("a")
    s.user("b")
    other = place.open().resume(s.id)
    other.user("c")
    writers = list(s.entries(kind="writer"))
    assert [writer.pid for writer in writers] == [os.getpid()]
    assert writers[0].host
    assert s.find(next(s.entries(kind="message")).id).id.startswith(writers[0].word)


def test_a_draft_has_its_id_when_it_is_made_and_is_written_once(s):
    draft = Message(role="user", blocks=[Text(text="a")])
    first = s.append(draft)
    s.user("b")
    again = s.append(draft)
    assert first.id == draft.id
    assert again == first
    assert texts(s.messages()) == ["a", "b"]


def test_the_caller_may_choose_the_ids(s, place):
    one = s.append(Note(text="a"), id="mine")
    two, three = s.append(Note(text="b"), Note(text="c"), id="batch")
    assert (one.id, two.id, three.id) == ("mine", "batch", "batch/1")
    other = place.open().resume(s.id)
    assert other.append(Note(text="a"), id="mine") == one
    assert other.append(Note(text="b"), Note(text="c"), id="batch") == [two, three]
    assert len(list(s.entries(kind="note"))) == 3


def test_once_refuses_an_id_that_is_anywhere_in_the_log(s, place):
    s.append(Note(text="a"), id="mine", once=True)
    for index in range(30):
        s.note(str(index))
    for session in (s, place.open().resume(s.id)):
        with pytest.raises(AlreadyExists):
            session.append(Note(text="b"), id="mine", once=True)
    assert [entry.text for entry in s.entries(kind="note") if entry.id == "mine"] == ["a"]


def test_of_a_batch_of_which_a_part_is_there_the_rest_is_appended(s, place):
    there = s.append(Note(text="a"))
    new = Message(role="user", blocks=[Text("b")])
    done = s.append(there, new, Note(text="c"))
    assert [entry.seq for entry in done] == [there.seq, there.seq + 1, there.seq + 2]
    assert s.append(there, new) == done[:2]
    assert (s.head, s.seq) == (done[1].seq, done[2].seq)
    assert place.open().resume(s.id).head == done[1].seq


def test_two_drafts_of_one_batch_may_not_share_an_id(s):
    with pytest.raises(Invalid):
        s.append(Note(text="a", id="x"), Note(text="b", id="x"))
    assert list(s.entries(kind="note")) == []


@pytest.mark.parametrize("bad", ["", "x" * 1025, 7, None])
def test_an_id_that_is_no_text_is_refused(s, bad):
    with pytest.raises(Invalid):
        s.append(Note(text="a", id=bad))
    assert list(s.entries(kind="note")) == []


def test_an_id_may_be_any_text(s):
    for odd in ("a/b", "…", "x" * 1024, "\x00", "a\nb", '"', "0123456789ab-zz"):
        assert s.append(Note(text="a", id=odd)).id == odd
        assert s.find(odd).id == odd
        with pytest.raises(AlreadyExists):
            s.append(Note(text="a", id=odd), once=True)


def test_after_is_the_head_the_caller_expects(s):
    one = s.user("a")
    two = s.append(Message(role="user"), after=one)
    with pytest.raises(Conflict):
        s.append(Message(role="user"), after=one)
    with pytest.raises(Conflict):
        s.append(Message(role="user"), after=0)
    three = s.append(Message(role="user"), after=two.seq)
    assert [message.seq for message in s.messages()] == [one.seq, two.seq, three.seq]


def test_after_holds_for_an_empty_conversation(s):
    first = s.append(Message(role="user"), after=0)
    assert first.parent == 0


def test_a_node_of_another_process_is_a_conflict_that_names_it(s, place):
    other = place.open().resume(s.id)
    s.user("a")
    before = said(s)
    for attempt in (lambda: other.user("b"), lambda: other.append(Note(text="n"), Message(role="user"))):
        with pytest.raises(Conflict) as caught:
            attempt()
        assert str(os.getpid()) in str(caught.value)
        assert "refresh" in caught.value.hint
    assert said(s) == before


def test_after_a_refresh_the_other_process_goes_on(s, place):
    other = place.open().resume(s.id)
    ask = s.user("a")
    with pytest.raises(Conflict):
        other.user("b")
    other.refresh()
    assert other.head == ask.seq
    assert other.user("b").parent == ask.seq


def test_rebase_goes_on_from_the_new_head(s, place):
    other = place.open().resume(s.id)
    ask = s.user("a")
    mine = other.append(Message(role="user", blocks=[Text(text="b")]), rebase=True)
    assert mine.parent == ask.seq
    assert texts(other.messages()) == ["a", "b"]


def test_a_rewind_of_another_process_is_a_conflict_too(s, place):
    ask = s.user("a")
    other = place.open().resume(s.id)
    s.user("b")
    s.rewind(to=ask)
    with pytest.raises(Conflict):
        other.user("c")
    with pytest.raises(Conflict):
        other.rewind(to=0)


def test_marks_of_two_processes_merge(s, place):
    other = place.open().resume(s.id)
    s.user("a")
    other.set("k", 1)
    other.note("n")
    s.set("l", 2)
    s.refresh()
    other.refresh()
    assert s.facts == other.facts == {"k": 1, "l": 2}
    assert [entry.type for entry in said(s)] == ["session", "message", "set", "note", "set"]


def test_a_mark_of_another_process_is_no_conflict_for_a_node(s, place):
    other = place.open().resume(s.id)
    s.note("n")
    assert other.user("a").parent == 0


def test_an_unseen_node_stays_a_conflict_after_a_mark_of_our_own(s, place):
    other = place.open().resume(s.id)
    s.user("a")
    other.note("mine")
    with pytest.raises(Conflict):
        other.user("b")
    other.refresh()
    assert texts([*other.messages(), other.user("b")]) == ["a", "b"]


def test_a_retry_is_answered_even_where_a_new_node_would_conflict(s, place):
    draft = Message(role="user", blocks=[Text(text="a")])
    other = place.open().resume(s.id)
    done = other.append(draft)
    s.refresh()
    s.user("b")
    assert other.append(draft) == done
    with pytest.raises(Conflict):
        other.user("c")


def test_entries_are_read_both_ways_by_kind_and_from_a_place(s):
    s.user("a")
    s.set("k", 1)
    s.assistant("b")
    everything = list(s.entries())
    assert [entry.seq for entry in everything] == list(range(1, len(everything) + 1))
    assert list(s.entries(reverse=True)) == everything[::-1]
    assert [entry.type for entry in s.entries(kind="set")] == ["set"]
    assert list(s.entries(kind=Set)) == list(s.entries(kind="set"))
    assert list(s.entries(after=everything[2])) == everything[3:]
    assert list(s.entries(after=3, reverse=True)) == everything[:2:-1]
    assert list(s.entries(after=99)) == []


def test_entries_go_on_while_the_session_is_written(s):
    for index in range(5):
        s.note(str(index))
    seen = []
    for entry in s.entries(reverse=True):
        s.note("more")
        seen.append(entry.seq)
    assert seen == list(range(seen[0], 0, -1))


def test_entries_go_on_while_more_is_written_than_is_kept_in_memory(s, monkeypatch):
    monkeypatch.setattr("turnlog.thread.history._RECENT", 4)
    for index in range(20):
        s.note(str(index))
    seen = []
    for entry in s.entries(reverse=True):
        seen.append(entry.seq)
        for _ in range(3):
            s.note("more")
    assert seen == list(range(seen[0], 0, -1))


def test_readers_and_writers_of_one_object_do_not_disturb_each_other(s, monkeypatch):
    monkeypatch.setattr("turnlog.thread.history._RECENT", 8)
    s.user("first")
    stop = threading.Event()
    errors = []

    def look():
        try:
            while not stop.is_set():
                backwards = [entry.seq for entry in s.entries(reverse=True)]
                assert backwards == list(range(len(backwards), 0, -1))
                assert len(s.messages()) >= 1
                assert s.find("nobody's") is None
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for index in range(60):
        s.user(str(index))
        s.note("n")
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []


def test_an_entry_is_found_by_id(s, place):
    ask = s.user("a")
    assert s.find(ask.id) == ask
    assert place.open().resume(s.id).find(ask.id) == ask
    assert s.find("nobody's") is None


def test_the_last_messages_are_the_newest_of_the_conversation(s):
    for index in range(6):
        s.user(str(index))
        s.note("between")
    s.rewind(turns=1)
    assert texts(s.messages(last=2)) == ["3", "4"]
    assert texts(s.messages(last=99)) == ["0", "1", "2", "3", "4"]
    assert s.messages(last=0) == []


def test_parallel_tools_answer_at_once(s, place):
    s.user("go")

    def answer(index):
        for number in range(5):
            s.tool_result(f"c{index}", f"{index}:{number}")

    threads = [threading.Thread(target=answer, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    messages = s.messages()
    assert len(messages) == 31
    assert all(later.parent == earlier.seq for earlier, later in itertools.pairwise(messages))
    said = [message.blocks[0].content for message in messages[1:]]
    assert sorted(said) == sorted(f"{index}:{number}" for index in range(6) for number in range(5))
    assert place.open().resume(s.id).messages() == messages


def test_every_error_is_ours(s):
    with pytest.raises(TurnlogError):
        s.undo()


def test_a_session_closes_and_lets_go(home, place):
    with home.create() as session:
        session.user("a")
    assert texts(place.open().resume(session.id).messages()) == ["a"]


def test_a_child_that_cannot_be_linked_is_not_there(place):
    if place.face == "aio":
        return  # its method is the same one, on a thread
    home = place.open()
    session = home.create()

    def append(*_: object, **__: object) -> None:
        raise Unavailable("the disk does not answer")

    session._append = append
    with pytest.raises(Unavailable):
        session.spawn(id="child")
    assert [info.id for info in home.sessions()] == [session.id]
    assert place.open().resume(session.id).spawn(id="child").id == "child"


def test_the_first_entries_of_a_session_are_checked_like_later_ones(home, s):
    missing = Message(role="user", blocks=[Image(blob="sha256:" + "0" * 64)])
    twins = [Note(text="a", id="d"), Note(text="b", id="d")]
    for append in (lambda *drafts: s.append(*drafts), lambda *drafts: home.create(drafts=drafts)):
        with pytest.raises(NotFound, match="no blob"):
            append(missing)
        with pytest.raises(Invalid, match="same id"):
            append(*twins)
    assert [row.id for row in home.sessions()] == [s.id]
    kept = Message(role="user", blocks=[Image(blob=home.put_blob(b"abc"))])
    assert home.create(drafts=[kept]).messages()[0].blocks == kept.blocks


@pytest.mark.parametrize("draft", [Start(title="evil"), Fold(upto=3, state={"seq": 3, "head": 0})])
def test_what_only_a_log_writes_about_itself_is_not_appended(home, s, draft):
    s.user("hello")
    batch = [Note(text="n"), draft]
    for append in (lambda: s.append(draft), lambda: s.append(*batch), lambda: home.create(drafts=batch)):
        with pytest.raises(Invalid, match="the log has its own"):
            append()
    assert (s.title, len(s.messages())) == (None, 1)


def test_a_conversation_can_be_copied_entry_by_entry(home, s):
    s.user("hello")
    s.set("k", 1)
    with pytest.raises(Invalid, match="a session entry"):
        home.create().append(*s.entries())
    other = home.create()
    other.append(*(entry for entry in s.entries() if not isinstance(entry, (Start, Fold))))
    assert texts(other.messages()) == ["hello"]
