"""Facts: those of a branch follow it, those of the session do not."""

import os
from datetime import timedelta

import pytest

from turnlog import Invalid, Set
from turnlog.session.interior import interior
from turnlog.thread.appender import appending


def test_a_fact_is_what_was_last_set(s, place):
    tasks = [{"id": "1", "content": "find the race", "status": "pending"}]
    s.set("tasks", tasks)
    assert s.get("tasks") == tasks
    s.set("tasks", [])
    assert s.get("tasks") == []
    assert place.open().resume(s.id).get("tasks") == []


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}, 1.5, {"a": {"b": [1, None, "ü"]}}, 2**63, -(2**63)])
def test_a_fact_may_be_any_json(s, place, value):
    s.set("k", value)
    assert s.get("k", "default") == value
    assert place.open().resume(s.id).get("k", "default") == value


def test_a_fact_that_is_unset_is_no_more(s, place):
    s.set("k", 1)
    s.unset("k")
    s.unset("never")
    assert s.get("k") is None
    assert s.get("k", "default") == "default"
    assert "k" not in place.open().resume(s.id).facts


def test_facts_follow_the_branch(s):
    s.user("one")
    s.set("k", "old")
    s.set("gone", 1)
    two = s.user("two")
    s.set("k", "new")
    s.unset("gone")
    s.set("born", 1)
    s.rewind(before=two)
    assert s.facts == {"k": "old", "gone": 1}
    s.undo()
    assert s.facts == {"k": "new", "born": 1}
    s.redo()
    assert s.facts == {"k": "old", "gone": 1}


def test_facts_of_a_branch_survive_a_restart(s, place):
    one = s.user("one")
    s.set("k", "new")
    s.rewind(to=one)
    assert place.open().resume(s.id).facts == {}
    s.undo()
    assert place.open().resume(s.id).facts == {"k": "new"}


def test_a_fact_set_after_a_node_belongs_to_what_came_after_it(s):
    one = s.user("one")
    fact = s.set("k", 1)
    s.user("two")
    s.rewind(to=one)
    assert s.get("k") is None
    s.rewind(to=fact)
    assert s.get("k") == 1
    assert s.head == one.seq


def test_taking_up_a_branch_brings_its_facts_back(s):
    s.user("one")
    s.set("k", "first")
    end = s.user("end")
    s.rewind(turns=1)
    s.set("k", "second")
    s.user("other")
    s.rewind(to=end)
    assert s.get("k") == "first"


def test_facts_of_the_session_stay_whatever_the_branch(s, place, tmp_path):
    one = s.user("one")
    s.set("title", "Fix it")
    s.set("tags", ["a", "b"])
    s.set("archived", True)
    s.set("workspace", tmp_path)
    s.rewind(to=one)
    wide = {"title": "Fix it", "tags": ["a", "b"], "archived": True, "workspace": os.path.realpath(tmp_path)}
    for session in (s, place.open().resume(s.id)):
        assert session.facts == wide
        assert (session.title, session.workspace) == ("Fix it", os.path.realpath(tmp_path))
    s.unset("tags")
    assert s.get("tags") is None
    assert s.title == "Fix it"


def test_a_listing_shows_the_facts_of_the_session(home, tmp_path):
    session = home.create(title="first", workspace=tmp_path)
    for index in range(60):
        session.user("x" * 2000 + str(index))
    session.set("title", "second")
    session.set("tags", ["t"])
    for index in range(60):
        session.user("x" * 2000 + str(index))
    [info] = home.sessions()
    assert (info.title, info.tags, info.archived) == ("second", ["t"], False)
    assert info.workspace == os.path.realpath(tmp_path)
    session.unset("title")
    [info] = home.sessions()
    assert (info.title, info.tags) == (None, ["t"])


def test_two_processes_that_set_facts_of_the_session_lose_neither(s, place):
    other = place.open().resume(s.id)
    s.set("title", "mine")
    other.set("tags", ["theirs"])
    s.set("archived", True)
    assert s.facts == {"title": "mine", "tags": ["theirs"], "archived": True}
    [info] = place.open().sessions()
    assert (info.title, info.tags, info.archived) == ("mine", ["theirs"], True)


def test_a_workspace_is_an_absolute_path_however_it_is_set(home, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    fact, wanted = Set(key="workspace", value="a"), os.path.realpath(tmp_path / "a")
    by_create = home.create(drafts=[fact])
    one = by_create.user("one")
    by_append, by_batch, by_move = home.create(), home.create(), by_create.fork()
    by_append.append(fact)
    by_batch.append(Set(key="title", value="t"), fact)
    by_move.append(fact, to=one)
    for session in (by_create, by_append, by_batch, by_move):
        assert session.workspace == wanted
        for wrong in (5, ["a"]):
            with pytest.raises(Invalid, match="folder"):
                session.append(Set(key="workspace", value=wrong))
        session.append(Set(key="workspace", value=None))
        session.append(Set(key="workspace", unset=True))
        assert session.workspace is None
    with pytest.raises(Invalid, match="folder"):
        home.create(drafts=[Set(key="workspace", value=5)])


def test_the_workspace_can_be_moved(home, tmp_path, monkeypatch):
    (tmp_path / "new").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "new")
    session = home.create(workspace=tmp_path)
    session.set("workspace", tmp_path / "link")
    assert [info.id for info in home.sessions(workspace=tmp_path / "new")] == [session.id]
    assert home.sessions(workspace=tmp_path) == []
    monkeypatch.chdir(tmp_path / "new")
    assert [info.id for info in home.sessions(workspace=".")] == [session.id]


def test_a_fact_may_be_set_in_a_batch(s):
    s.append(Set(key="k", value=1), Set(key="k", value=2), Set(key="l", value=3))
    assert s.facts == {"k": 2, "l": 3}


def test_setting_a_fact_does_not_move_the_head(s, place):
    one = s.user("one")
    entry = s.set("k", 1)
    assert (entry.key, entry.value, entry.parent) == ("k", 1, None)
    assert s.head == one.seq
    place.clock.tick(1000)
    assert s.set("k", 2).at - entry.at == timedelta(seconds=1)


def test_a_big_fact_comes_back_whole(s, place):
    value = {"plan": "x" * 200_000, "n": [1, 2]}
    s.set("plan", value)
    one = s.user("one")
    s.rewind(to=one)
    for session in (s, place.open().resume(s.id)):
        assert session.get("plan") == value


def test_a_big_title_is_shown_in_listings(home, place):
    session = home.create()
    title = "long " * 30_000
    session.set("title", title)
    assert session.title == title
    assert place.open().resume(session.id).title == title
    [info] = place.open().sessions()
    assert info.title[:200] == title[:200]


@pytest.mark.parametrize(("key", "value"), [("title", 5), ("title", ["t"]), ("tags", "bug"), ("tags", ["bug", 5])])
def test_a_title_and_tags_are_text(s, home, key, value):
    for attempt in (
        lambda: s.set(key, value),
        lambda: s.append(Set(key=key, value=value)),
        lambda: home.create(drafts=[Set(key=key, value=value)]),
    ):
        with pytest.raises(Invalid, match="text"):
            attempt()
    s.set(key, None)
    s.append(Set(key=key, value=value, unset=True))
    assert s.title is None


def test_a_title_that_is_no_text_is_none(files):
    """The log of another program may have one; a fork of the session can be made all the same."""
    home = files.open()
    session = home.create()
    session.user("fix the flaky test")
    with appending(interior(home).store, interior(home).store.open(session.id)) as appender:
        appender.append_batch([Set(key="title", value=5), Set(key="tags", value=7)])
    again = home.resume(session.id)
    assert again.title is None
    assert [(row.title, row.tags) for row in home.sessions()] == [(None, [])]
    assert again.fork().title is None
    assert home.compare(session.id, session.id).a.title == "fix the flaky test"
