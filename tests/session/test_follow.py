"""Following a session as it is written; subagents; instructions."""

import threading
import time

import pytest

import turnlog
from turnlog import AlreadyExists, Invalid, NotFound, Text, ToolCall, Unavailable, Usage


def take(source, count):
    return [next(source) for _ in range(count)]


def test_what_is_there_after_a_place_comes_first(s):
    one = s.user("one")
    two = s.user("two")
    three = s.note("three")
    assert take(s.follow(after=one), 2) == [two, three]
    assert take(s.follow(after=0), 1) == take(s.entries(), 1)


def test_entries_come_as_they_are_appended_by_whomever(s, place):
    s.user("before")
    other = place.open().resume(s.id)
    seen = []

    def watch():
        for entry in s.follow():
            seen.append(entry)
            if len(seen) == 4:
                return

    thread = threading.Thread(target=watch)
    thread.start()
    time.sleep(0.1)
    written = [other.user("one"), other.note("two")]
    time.sleep(0.1)
    s.refresh()
    written += [s.user("three"), s.set("k", 4)]
    thread.join(10)
    assert not thread.is_alive()
    assert seen == written


def test_following_ends_when_the_session_is_closed(s, place):
    source = place.open().resume(s.id)
    threading.Timer(0.2, source.close).start()
    assert list(source.follow()) == []


def test_a_fork_can_be_followed_from_what_it_inherited(s):
    one = s.user("one")
    child = s.fork()
    mine = child.user("mine")
    followed = child.follow(after=one)
    got = take(followed, 3)
    assert got[-1].seq <= mine.seq
    assert [entry.seq for entry in got] == sorted(entry.seq for entry in got)


# ── subagents ─────────────────────────────────────────────────────────────────────────────────────


def test_a_subagent_is_a_session_of_its_own_linked_both_ways(s, home, place):
    s.assistant([ToolCall(id="c1", name="task", input={"goal": "look"})])
    child = s.spawn(agent="explorer", call="c1", role="search", title="Looking")
    child.user("look")
    s.tool_result("c1", "found", child=child.id)
    for session in (s, place.open().resume(s.id)):
        [info] = session.children()
        assert (info.id, info.agent, info.title, info.parent) == (child.id, "explorer", "Looking", s.id)
    [mark] = s.entries(kind="child")
    assert (mark.session, mark.call, mark.agent) == (child.id, "c1", "explorer")
    start = next(iter(child.entries()))
    assert (start.spawned.session, start.spawned.call, start.spawned.role) == (s.id, "c1", "search")
    assert s.messages()[-1].blocks[0].child == child.id
    assert [info.id for info in home.sessions(parent=s.id)] == [child.id]


def test_a_subagent_works_where_its_parent_does(home, tmp_path):
    (tmp_path / "other").mkdir()
    parent = home.create(workspace=tmp_path)
    assert parent.spawn().workspace == parent.workspace
    assert parent.spawn(workspace=tmp_path / "other").workspace != parent.workspace
    assert parent.spawn(id="mine", labels={"a": "b"}).labels == {"a": "b"}


def test_a_spawn_that_fails_leaves_no_child(s, home):
    home.create(id="other").assistant("a", usage=Usage(input_tokens=7))
    for error, fields in ((AlreadyExists, {"id": "other"}), (Invalid, {"labels": ["x"]}), (Invalid, {"workspace": 5})):
        with pytest.raises(error):
            s.spawn(**fields)
    assert s.children() == []
    assert list(s.entries(kind="child")) == []
    assert s.usage().subagents == Usage()


def test_children_come_in_the_order_they_were_spawned_and_those_gone_are_left_out(s, home):
    children = [s.spawn(agent=str(index)) for index in range(4)]
    home.delete(children[1].id)
    assert [info.agent for info in s.children()] == ["0", "2", "3"]
    home.restore(children[1].id)
    assert [info.agent for info in s.children()] == ["0", "1", "2", "3"]


def test_a_session_without_subagents_has_none(s):
    assert s.children() == []


def test_spawning_moves_no_head(s):
    one = s.user("one")
    s.spawn(agent="explorer")
    assert s.head == one.seq


# ── instructions ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "work" / ".turnlog").mkdir(parents=True)
    return tmp_path / "work"


def test_the_projects_instructions_come_first_then_personal_ones(folder, tmp_path):
    (folder / "AGENTS.md").write_text("project ü\n", encoding="utf-8")
    (folder / ".turnlog" / "instructions.md").write_text("  mine, here  \n")
    (tmp_path / "home" / "instructions.md").write_text("mine, everywhere")
    assert turnlog.instructions(folder) == "project ü\n\nmine, here\n\nmine, everywhere"
    assert turnlog.instructions(str(folder)) == turnlog.instructions(folder)


def test_no_instructions_are_none(folder, tmp_path):
    assert turnlog.instructions(folder) is None
    (folder / "AGENTS.md").write_text("  \n")
    assert turnlog.instructions(folder) is None
    (tmp_path / "home" / "instructions.md").write_text("only mine")
    assert turnlog.instructions(folder) == "only mine"
    assert turnlog.instructions(tmp_path / "nowhere") == "only mine"


def test_instructions_that_are_not_text_are_read_as_far_as_they_can_be(folder):
    (folder / "AGENTS.md").write_bytes(b"caf\xe9")
    assert turnlog.instructions(folder).startswith("caf")


@pytest.mark.parametrize("name", ["AGENTS.md", ".turnlog/instructions.md", ".sofos/instructions.md"])
def test_instructions_that_cannot_be_read_are_an_error_that_names_them(folder, name):
    (folder / name).mkdir(parents=True)
    with pytest.raises(Unavailable, match=f"{name} cannot be read: "):
        turnlog.instructions(folder)


def test_personal_instructions_for_sofos_are_read(folder):
    (folder / "AGENTS.md").write_text("project")
    (folder / ".sofos").mkdir()
    (folder / ".sofos/instructions.md").write_text("mine, for sofos\n")
    assert turnlog.instructions(folder) == "project\n\nmine, for sofos"


# ── the home folder ───────────────────────────────────────────────────────────────────────────────


def test_the_home_is_where_the_environment_says(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "chosen"))
    with turnlog.open() as home:
        home.create()
    assert (tmp_path / "chosen" / "sessions").is_dir()


def test_the_home_is_in_the_home_directory_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("TURNLOG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with turnlog.open() as home:
        home.create()
    with turnlog.open("~/elsewhere") as home:
        home.create()
    assert (tmp_path / ".turnlog" / "sessions").is_dir()
    assert (tmp_path / "elsewhere" / "sessions").is_dir()


def test_looking_at_a_home_that_does_not_exist_makes_nothing(tmp_path):
    with turnlog.open(tmp_path / "home") as home:
        assert home.sessions() == []
        with pytest.raises(NotFound):
            home.resume()
    assert not (tmp_path / "home").exists()


def test_a_memory_home_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with turnlog.open("memory:") as home:
        home.create().user([Text(text="x" * 100_000)])
        assert home.backend == "memory"
    assert list(tmp_path.iterdir()) == []
