"""What somebody who builds a store for a framework on sessions needs of them."""

import threading

import pytest

from turnlog import Conflict, Custom, Invalid, Message, NotFound, Set, Text, ToolCall, TurnlogWarning


def said(text, **fields):
    return Message(role="user", blocks=[Text(text)], **fields)


def texts(nodes):
    return [node.blocks[0].text for node in nodes]


# ── paths ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_path_gives_its_newest_nodes_of_every_kind(s):
    s.user("one")
    s.append(Custom(kind="x.y", data=1))
    s.user("two")
    assert [node.type for node in s.path(last=2)] == ["custom", "message"]
    assert s.path(last=0) == []
    assert s.path(last=9) == s.path()


def test_a_path_leads_to_any_node_of_any_branch(s):
    one = s.user("one")
    two = s.user("two")
    s.rewind(to=one)
    s.user("other")
    assert texts(s.path(to=two)) == ["one", "two"]
    assert texts(s.path(to=two.seq, last=1)) == ["two"]
    assert s.path(to=0) == []
    note = s.note("a mark")
    with pytest.raises(Invalid, match="no conversation ends there"):
        s.path(to=note)
    with pytest.raises(NotFound):
        s.path(to=999)


def test_a_context_that_is_not_repaired_is_as_it_was_said(s):
    s.set("system", "from a fact")
    s.system("be brief")
    s.user("go")
    s.assistant([ToolCall(id="c1", name="bash")])
    s.assistant([])
    s.user("never mind")
    context = s.context(repair=False)
    assert [message.role for message in context] == ["system", "user", "assistant", "assistant", "user"]
    assert context.system == "from a fact"
    assert s.context().system == "from a fact\n\nbe brief"
    s.compact("so far", keep=1)
    assert [message.role for message in s.context(repair=False)] == ["system", "user", "user"]


# ── moves ─────────────────────────────────────────────────────────────────────────────────────────


def test_who_expects_another_head_does_not_move_it(s):
    one, two = s.user("one"), s.user("two")
    with pytest.raises(Conflict, match=f"the head is entry {two.seq}, not {one.seq}"):
        s.rewind(to=0, after=one, files=False)
    assert s.rewind(to=one, after=two, files=False).to == one.seq


def test_two_threads_never_take_the_same_message_back(s):
    for number in range(40):
        s.user(str(number))
    taken = []

    def take():
        for _ in range(20):
            while True:
                [last] = s.path(last=1)
                try:
                    s.rewind(before=last, after=last, files=False)
                except Conflict:
                    continue
                taken.append(last.seq)
                break

    threads = [threading.Thread(target=take) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == len(set(taken)) == 40
    assert s.head == 0


@pytest.mark.parametrize("between", ["nothing", "a fact", "a system message", "an edit", "a rewind to before a fact"])
def test_a_short_way_back_restores_what_a_long_one_does(s, place, between):
    s.system("be brief")
    first = s.user("one")
    s.set("mood", "good")
    s.user("two")
    here = s.user("three")
    if between == "a rewind to before a fact":
        s.rewind(to=first)
    if between == "a fact":
        s.set("mood", "bad")
    if between == "a system message":
        s.system("be long")
    if between == "an edit":
        s.edit(first, "changed")
    s.user("four")
    short = s.rewind(to=here, files=False)
    again = place.open().resume(s.id)
    for _ in range(3):
        again.user("far")
    long = again.rewind(to=here, files=False)
    assert (short.to, short.facts, short.system) == (long.to, long.facts, long.system)
    assert (short.to, short.facts) == (here.seq, {"mood": "good"})


def test_one_batch_moves_and_goes_on(s, place):
    one = s.user("one")
    two = s.user("two")
    new = said("other", id="mine")
    done = s.append(new, Custom(kind="x.y"), to=one)
    assert [entry.parent for entry in done] == [one.seq, done[0].seq]
    assert s.head == done[1].seq
    assert texts(s.messages()) == ["one", "other"]
    assert s.append(new, to=one) == done[0], "sent again, it counts once"
    assert s.append(said("more"), to=done[1]).parent == done[1].seq
    assert s.path(to=two)
    again = place.open().resume(s.id)
    assert texts(again.messages()) == ["one", "other", "more"]
    again.undo()
    assert texts(again.messages()) == ["one", "two"]


def test_ids_that_were_made_from_ids_of_ours_are_ids(place, home):
    s = home.create()
    first = s.user("a")
    again = place.open().resume(s.id)  # one that has not seen what this process wrote before
    batch = [said("b"), said("c")]
    done = again.append(*batch, id=first.id + "x-y", to=0)
    assert [entry.id for entry in done] == [first.id + "x-y", first.id + "x-y/1"]
    assert place.open().resume(s.id).append(said("d"), id=first.id + "-z").parent == done[1].seq


def test_a_batch_that_moves_is_refused_where_somebody_was_faster(s, place):
    one = s.user("one")
    s.user("two")
    place.open().resume(s.id).user("theirs")
    with pytest.raises(Conflict):
        s.append(said("mine"), to=one)
    assert s.append(said("mine"), to=one, rebase=True).parent == one.seq


def test_alone_means_that_nobody_wrote_anything_not_even_a_fact(s, place):
    other = place.open().resume(s.id)
    other.set("count", 2)
    for count in (3, 4):
        with pytest.raises(Conflict):  # also when it is the first thing that this object appends
            s.append(Set(key="count", value=9), alone=True)
        s.refresh()
        s.append(Set(key="count", value=s.get("count") + 1), alone=True)
        other.set("count", count)
    s.refresh()
    assert s.get("count") == 4


# ── facts ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_exact_fact_keeps_its_secrets_and_another_one_does_not(s, place):
    with pytest.warns(TurnlogWarning, match="a secret was left out"):
        s.set("plain", {"api_key": "k"})
    s.set("paused", {"api_key": "k"}, exact=True)
    s.append(Set(key="listed", value={"token": "t"}, exact=True))
    s.set("title", "a title does not touch what is beside it")
    again = place.open().resume(s.id)
    assert again.get("plain") == {"api_key": "[secret]"}
    assert again.get("paused") == {"api_key": "k"}
    assert again.get("listed") == {"token": "t"}


def test_a_listing_shows_what_the_caller_put_there(s, home):
    s.set("title", "before")
    s.append(said("a"), Set(key="listed", value={"state": {"n": 1}}), Set(key="title", value="after"))
    [row] = [row for row in home.sessions() if row.id == s.id]
    assert (row.title, row.listed) == ("after", {"state": {"n": 1}})
    s.rewind(to=0)
    s.unset("title")
    [row] = [row for row in home.sessions() if row.id == s.id]
    assert (row.title, row.listed) == (None, {"state": {"n": 1}})
    s.set("listed", {"text": "x" * 100_000})
    [row] = [row for row in home.sessions() if row.id == s.id]
    assert row.listed == {}
    assert len(s.get("listed")["text"]) == 100_000


def test_a_batch_with_a_title_loses_nobody_elses(s, place):
    other = place.open().resume(s.id)
    other.set("tags", ["theirs"])
    s.append(said("a"), Set(key="title", value="mine"))
    [row] = [row for row in place.open().sessions() if row.id == s.id]
    assert (row.title, row.tags) == ("mine", ["theirs"])
    other.refresh()
    other.user("theirs")
    with pytest.raises(Conflict):
        s.append(said("b"), Set(key="title", value="too late"))


# ── making and removing ───────────────────────────────────────────────────────────────────────────


def test_a_session_is_there_with_its_first_entries_or_not_at_all(home, place):
    one = said("one", id="mine")
    s = home.create(id="made", title="t", drafts=[one, Set(key="listed", value={"n": 1}), said("two")])
    assert texts(s.messages()) == ["one", "two"]
    assert s.messages()[1].parent == s.messages()[0].seq
    assert s.append(one).seq == s.messages()[0].seq
    [row] = home.sessions()
    assert (row.title, row.listed) == ("t", {"n": 1})
    assert texts(place.open().resume("made").messages()) == ["one", "two"]
    with pytest.raises(Invalid):
        home.create(id="refused", drafts=[said("one"), Message(role="nobody")])
    assert not home.exists("refused")


@pytest.mark.parametrize("way", ["delete", "purge"])
def test_a_session_that_went_on_is_not_removed_by_who_has_not_seen_it(home, place, way):
    s = home.create(id="kept")
    s.user("one")
    seen = s.seq
    place.open().resume("kept").user("two")
    with pytest.raises(Conflict, match=f"not {seen}"):
        getattr(home, way)("kept", after=seen)
    s.refresh()
    getattr(home, way)("kept", after=s.seq)
    assert not home.exists("kept")


def test_an_id_that_was_purged_can_be_used_again_though_forks_build_on_the_old_one(home):
    old = home.create(id="again")
    old.user("old")
    fork = old.fork()
    home.purge("again")
    new = home.create(id="again", drafts=[said("new")])
    assert texts(new.messages()) == ["new"]
    assert texts(fork.messages()) == ["old"]


def test_who_holds_a_purged_session_writes_nothing_into_the_next_of_that_name(home, place):
    old = home.create(id="again")
    old.user("old")
    other = place.open()
    other.purge("again")
    with pytest.raises(NotFound):
        old.user("nowhere")
    new = other.create(id="again", drafts=[said("new"), said("new")])
    with pytest.raises((Conflict, NotFound)):
        old.user("not here")
    new.refresh()
    assert texts(new.messages()) == ["new", "new"]


def test_an_entry_leads_to_its_session(home):
    one = home.create(id="one", drafts=[said('a "b" ü', id='odd "id" ü')])
    two = home.create(id="TWO", drafts=[said('"id":"wanted"'), said("x")])
    assert home.session_of('odd "id" ü') == "one"
    assert home.session_of(two.messages()[1].id) == "TWO"
    assert home.session_of("wanted") is None
    assert one.fork().find('odd "id" ü').seq == one.messages()[0].seq


# ── finding and looking again ─────────────────────────────────────────────────────────────────────


def test_an_entry_is_found_whoever_wrote_it_and_whenever(s, place):
    first = s.append(said("first"), id="of the caller's")
    for number in range(5):
        s.user(str(number))
    assert s.find("of the caller's") == first
    assert s.find("nobody's") is None
    other = place.open().resume(s.id)
    theirs = other.append(said("theirs"), id="theirs")
    assert s.find("theirs") == theirs
    assert other.find("of the caller's").seq == first.seq
    s.refresh()
    s.append(said("late"), id="late")
    assert other.find("late").seq == s.head


def test_what_a_message_carries_beside_it_may_be_large(s, place):
    big = {"text": "ü" * 100_000, "more": [1, None, {"a": "b"}]}
    s.append(said("small", meta=big), said("x" * 200_000, meta=big))
    small, large = place.open().resume(s.id).messages()
    assert small.meta == large.meta == big
    assert (small.blocks, large.blocks) == ([Text("small")], [Text("x" * 200_000)])
    huge = {"text": "y" * (20 << 20)}
    assert s.append(said("huge", meta=huge)).meta == huge
