"""Finding a session again: by id, by the beginning of it, by its handle, as the latest, by workspace."""

import shutil
from contextlib import nullcontext
from itertools import count

import pytest

import turnlog
from turnlog import Ambiguous, Invalid, NotFound, TurnlogError


def test_a_generated_id_sorts_by_time_and_has_a_short_handle(home, place):
    first = home.create()
    place.clock.tick(1000)
    second = home.create()
    assert first.id < second.id
    stamp, clock, handle = first.id.split("-")
    assert (len(stamp), len(clock), len(handle)) == (8, 6, 8)
    assert first.handle == handle
    assert home.create(id="my own").handle == "my own"


def test_a_session_is_found_by_its_full_id(home):
    session = home.create()
    other = home.create(id=session.id + "-longer")
    assert home.resume(session.id).id == session.id
    assert home.resume(other.id).id == other.id


def test_the_beginning_of_an_id_is_found(home):
    first = home.create(id="alpha-one")
    second = home.create(id="alpha-two")
    generated = home.create()
    assert home.find("alpha-o") == first.id
    assert home.find("alpha-t") == second.id
    for name in (generated.handle, generated.handle[:6], generated.id[:-2], generated.id):
        assert home.find(name) == generated.id


def test_several_that_fit_are_named(home):
    home.create(id="alpha-one")
    home.create(id="alpha-two")
    with pytest.raises(Ambiguous) as caught:
        home.find("alpha")
    assert "alpha-one" in str(caught.value)
    assert "alpha-two" in str(caught.value)
    assert isinstance(caught.value, NotFound)


@pytest.mark.parametrize("name", ["nobody", "", "LATEST", "*", "%", "../x", "x" * 5000, "\ud800"])
def test_none_that_fits_is_not_found(home, name):
    home.create(id="somebody")
    for call in (home.find, home.resume):
        with pytest.raises(NotFound) as caught:
            call(name)
        assert not isinstance(caught.value, Ambiguous)
        assert caught.value.hint
    assert not home.exists(name)


@pytest.mark.parametrize("name", ["session-1", "sess", "latest", "k3f9q2m7", ""])
@pytest.mark.parametrize("do", ["resume", "delete", "purge", "restore", "push", "sync"])
def test_what_takes_an_id_takes_nothing_else(home, do, name):
    for id in ("session-10", "20261115-070012-k3f9q2m7"):
        home.create(id=id).user("one")
    home.create(id="session-11")
    home.delete("session-11")
    with turnlog.open("memory:") if do in ("push", "sync") else nullcontext() as other:
        call = getattr(home, do) if other is None else lambda name: getattr(home, do)(other, [name])
        with pytest.raises(NotFound) as caught:
            call(name)
    assert caught.value.hint and not isinstance(caught.value, Ambiguous)
    assert not home.exists(name)
    assert {info.id for info in home.sessions()} == {"session-10", "20261115-070012-k3f9q2m7"}
    assert [info.id for info in home.sessions(deleted=True)] == ["session-11"]


def test_a_session_may_be_called_latest(home, place):
    named = home.create(id="latest")
    named.user("one")
    place.clock.tick()
    newest = home.create()
    newest.user("two")
    assert home.resume("latest").id == home.find("latest") == named.id
    assert home.resume().id == newest.id
    home.delete("latest")
    assert home.find("latest") == newest.id


def test_an_id_and_a_workspace_are_too_much(home, tmp_path):
    session = home.create(workspace=tmp_path)
    with pytest.raises(Invalid):
        home.resume(session.id, workspace=tmp_path)


def test_a_session_is_there_or_not(home):
    home.create(id="one")
    assert home.exists("one")
    assert not home.exists("on")
    home.delete("one")
    assert not home.exists("one")
    home.restore("one")
    assert home.exists("one")
    for name in (None, 1, b"one"):
        with pytest.raises(Invalid):
            home.exists(name)


def test_the_latest_is_the_one_with_the_newest_entry(home, place):
    first = home.create()
    place.clock.tick()
    second = home.create()
    assert home.resume().id == second.id
    place.clock.tick()
    first.note("awake again")
    assert home.resume().id == first.id


def test_the_latest_is_neither_hidden_nor_a_subagent(home, place):
    session = home.create()
    place.clock.tick()
    home.create(hidden=True)
    place.clock.tick()
    session.spawn(agent="explorer").user("x")
    assert home.resume().id == session.id


def test_a_fork_may_be_the_latest(home, place):
    session = home.create()
    place.clock.tick()
    child = session.fork()
    assert home.resume().id == child.id


def test_there_is_no_latest_in_an_empty_home(home):
    with pytest.raises(NotFound):
        home.resume()


def test_the_latest_of_a_workspace(home, place, tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = home.create(workspace=tmp_path / "a")
    place.clock.tick()
    second = home.create(workspace=str(tmp_path / "b"))
    assert home.resume(workspace=tmp_path / "a").id == home.find("latest", tmp_path / "a") == first.id
    monkeypatch.chdir(tmp_path / "b")
    assert home.resume(workspace=".").id == second.id
    assert [info.id for info in home.sessions(workspace=tmp_path / "a")] == [first.id]
    with pytest.raises(NotFound):
        home.resume(workspace=tmp_path)


def test_a_workspace_is_the_same_through_a_link(home, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    session = home.create(workspace=tmp_path / "link")
    assert [info.id for info in home.sessions(workspace=tmp_path / "real")] == [session.id]


def test_a_workspace_that_is_not_unicode_has_a_name_too(home, tmp_path):
    session = home.create(workspace=str(tmp_path) + "/caf\udce9")
    assert session.workspace.startswith("bytes:")
    assert [info.id for info in home.sessions(workspace=str(tmp_path) + "/caf\udce9")] == [session.id]


def test_a_deleted_session_is_found_only_to_be_restored(home):
    session = home.create(id="alpha-one")
    home.delete("alpha-one")
    for call in (home.resume, home.find, home.delete):
        with pytest.raises(NotFound):
            call("alpha-one")
    assert [info.id for info in home.sessions(deleted=True)] == [session.id]
    assert home.find("alpha", deleted=True) == session.id
    home.restore("alpha-one")
    assert home.find("alpha") == session.id
    with pytest.raises(NotFound):
        home.restore("alpha-one")


def test_a_beginning_means_only_what_can_be_meant(home, tmp_path):
    home.create(id="alpha-one")
    home.create(id="alpha-two", workspace=tmp_path)
    assert home.find("alpha", tmp_path) == "alpha-two"
    with pytest.raises(NotFound):
        home.find("alpha-one", tmp_path)
    home.delete("alpha-one")
    assert home.find("alpha") == "alpha-two"
    home.purge("alpha-one")
    with pytest.raises(NotFound):
        home.find("alpha-one", deleted=True)


def test_a_session_is_purged_wherever_it_is(home):
    home.create(id="one")
    home.create(id="two")
    home.delete("one")
    home.purge("one")
    home.purge("two")
    assert home.sessions() == home.sessions(deleted=True) == []
    with pytest.raises(NotFound):
        home.purge("one")


def test_purging_a_live_session_never_takes_a_deleted_one_that_begins_like_it(home):
    home.create(id="alpha")
    home.create(id="alpha-two")
    home.delete("alpha-two")
    home.purge("alpha")
    assert home.sessions() == []
    assert [info.id for info in home.sessions(deleted=True)] == ["alpha-two"]


# ── listings ──────────────────────────────────────────────────────────────────────────────────────


def test_a_listing_is_newest_first_and_in_pages(home, place):
    ids = []
    for index in range(5):
        ids.append(home.create(title=str(index)).id)
        place.clock.tick()
    ids.reverse()
    assert [info.id for info in home.sessions()] == ids
    assert [info.id for info in home.sessions(limit=2)] == ids[:2]
    assert [info.id for info in home.sessions(limit=2, after=ids[1])] == ids[2:4]
    assert [info.id for info in home.sessions(after=ids[3])] == ids[4:]
    assert home.sessions(after=ids[4]) == []
    assert home.sessions(limit=0) == []
    with pytest.raises(NotFound):
        home.sessions(after="nobody")


def test_a_listing_can_be_narrowed_by_labels(home):
    one = home.create(labels={"team": "a", "env": "dev"})
    two = home.create(labels={"team": "a"})
    assert {info.id for info in home.sessions(labels={"team": "a"})} == {one.id, two.id}
    assert [info.id for info in home.sessions(labels={"team": "a", "env": "dev"})] == [one.id]
    assert home.sessions(labels={"team": "b"}) == []


def test_a_row_says_what_one_wants_to_know(home, place, tmp_path):
    session = home.create(title="Fix it", agent="mine", labels={"a": "b"}, workspace=tmp_path)
    place.clock.tick(5000)
    last = session.user("one")
    [info] = home.sessions()
    assert (info.id, info.handle, info.title, info.agent) == (session.id, session.handle, "Fix it", "mine")
    assert (info.labels, info.seq, info.updated_at, info.is_readable) == ({"a": "b"}, last.seq, last.at, True)
    assert info.updated_at > info.created_at
    assert (info.hidden, info.archived, info.tags, info.parent, info.fork) == (False, False, [], None, None)
    if place.face in ("files", "aio"):
        assert info.size_bytes == place.path(session).stat().st_size


def test_hidden_sessions_and_subagents_are_listed_and_marked(home):
    session = home.create()
    hidden = home.create(hidden=True)
    child = session.spawn(agent="explorer")
    rows = {info.id: info for info in home.sessions()}
    assert rows[hidden.id].hidden
    assert rows[child.id].parent == session.id
    assert [info.id for info in home.sessions(parent=session.id)] == [child.id]


def test_a_home_says_what_it_is_and_how_it_is(home, place):
    home.create()
    health = home.health()
    assert health["ok"] is True
    assert health["sessions"] == 1
    assert home.backend == health["backend"] == {"aio": "files"}.get(place.face, place.face)


def test_a_home_that_cannot_be_written_says_so(files):
    with files.open() as home:
        home.create()
        shutil.rmtree(files.folder)
        files.folder.write_text("a file where a folder should be")
        health = home.health()
        files.folder.unlink()
    assert health["ok"] is False
    assert health["error"]


def test_a_file_in_the_place_of_the_home_is_an_error_of_ours(files):
    files.folder.write_text("a file where a folder should be")
    with pytest.raises(TurnlogError):
        files.open().create()
    assert files.folder.read_text() == "a file where a folder should be"
    files.folder.unlink()


@pytest.mark.parametrize("what", ["grows", "goes"])
def test_pages_by_cursor_show_each_session_once(what: str):
    ticks = count(1_700_000_000_000, 7)
    with turnlog.open("memory:", clock=ticks.__next__) as home:
        ids = [home.create().id for _ in range(10)]
        seen: list[str] = []
        after = None
        while page := home.sessions(limit=3, after=after):
            seen += [row.id for row in page]
            after = page[-1].cursor
            if what == "grows":
                home.resume(page[-1].id).note("more")
            else:
                home.purge(page[-1].id)
        assert seen == ids[::-1]
        for bad in ("~nonsense", "~"):
            with pytest.raises(turnlog.NotFound):
                home.sessions(after=bad)
