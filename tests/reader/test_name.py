"""Which session a word means: every way to name one, without a command line."""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.cli.scene import write_session
from tests.clock import tick
from turnlog.catalog import Catalog
from turnlog.errors import Invalid, NotFound, Unavailable
from turnlog.reader.naming.candidate import SeveralFit
from turnlog.reader.naming.name import SessionNames
from turnlog.reader.naming.sessionref import SessionRef
from turnlog.session import Home

FIRST, SECOND = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000002000"


@pytest.fixture
def home(workspace: Path) -> Iterator[Home]:
    with turnlog.open(checkpoints=False, clock=tick) as opened:
        yield opened


@pytest.fixture
def three(home: Home, workspace: Path) -> Home:
    """Three sessions of this folder, the oldest first, and one of another that is newer."""
    for name in ("alpha-1", "beta-2", "beta-3"):
        write_session(home, id=name)
    (workspace.parent / "elsewhere").mkdir()
    write_session(home, id="far-away", workspace="../elsewhere")
    return home


def names(home: Home, said: list[str] | None = None) -> SessionNames:
    return SessionNames(home, lambda: Catalog(agents=True), (said if said is not None else []).append)


def theirs(workspace: Path, id: str) -> Path:
    return claude_session(Path(os.environ["HOME"]), str(workspace), id, "plant roses", at="2020-01-01T10:00:00.000Z")


# ── ours ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", ["20261115-070012-k3f9q2m7", "k3f9q2m7", "k3f", "20261115-07"])
def test_by_id_handle_and_the_beginnings_of_both(home: Home, word: str):
    made = home.create(id="20261115-070012-k3f9q2m7")
    made.user("hi")
    assert names(home).find(word) == SessionRef(made.id)
    assert names(home).own_id(word) == names(home).changeable_id(word) == made.id


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        (None, "beta-3"),
        ("@", "beta-3"),
        ("@-", "beta-2"),
        ("@-1", "beta-2"),
        ("@-2", "alpha-1"),
        ("latest", "far-away"),
    ],
)
def test_the_newest_here_those_before_and_the_newest_of_all(three: Home, word: str | None, meant: str):
    assert names(three).find(word).id == meant


def test_before_the_first_there_is_none(three: Home, workspace: Path):
    with pytest.raises(NotFound, match=f"no session '@-3' for {workspace}: there are only 3") as failed:
        names(three).find("@-3")
    assert failed.value.hint == "`turnlog ls --all` shows all there are"


def test_where_none_is_here_it_is_the_latest_but_nothing_is_changed(three: Home, workspace: Path, monkeypatch):
    (workspace.parent / "empty").mkdir()
    monkeypatch.chdir(workspace.parent / "empty")
    assert names(three).find(None).id == names(three).own_id(None) == "far-away"
    with pytest.raises(NotFound, match="no session of Turnlog's own for "):
        names(three).changeable_id(None)


def test_several_that_fit_are_listed(three: Home):
    with pytest.raises(SeveralFit) as failed:
        names(three).find("beta")
    assert failed.value.brief == "'beta' fits 2 sessions"
    assert {item.id for item in failed.value.candidates} == {"beta-2", "beta-3"}
    assert {item.title for item in failed.value.candidates} == {"The race in conftest"}
    assert not failed.value.is_numbered
    assert failed.value.hint == "give more of the id"


def test_none_that_fits(three: Home):
    with pytest.raises(NotFound, match="no session 'gamma'"):
        names(three).find("gamma")


def test_a_deleted_one_is_found_unless_it_is_to_be_changed(three: Home):
    three.delete("alpha-1")
    assert names(three).find("al").id == names(three).find("alpha-1").id == "alpha-1"
    with pytest.raises(NotFound):
        names(three).changeable_id("alpha-1")
    with pytest.raises(NotFound):
        names(three).own_id("al", deleted=False)


@pytest.mark.parametrize("name", ["@", "@-", "latest", "here.jsonl", "claude-code:x"])
def test_an_id_comes_before_everything_else_it_could_be(home: Home, workspace: Path, name: str):
    (workspace / "here.jsonl").write_text("{}")
    home.create(id=name).user("hi")
    assert names(home).find(name) == SessionRef(name)


def test_without_an_index_ours_are_still_there_and_that_is_said(three: Home):
    def broken() -> AbstractContextManager[Catalog]:
        raise Unavailable("the disk is full")

    said: list[str] = []
    found = SessionNames(three, broken, said.append)
    assert [found.find(word).id for word in ("@", "@-", "latest")] == ["beta-3", "beta-2", "far-away"]
    assert said == ["other agents' sessions are left out: the disk is full"] * 3


# ── other agents' ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", [f"claude-code:{FIRST}", f"claude-code:{FIRST[:-3]}", FIRST])
def test_by_agent_and_id(home: Home, workspace: Path, word: str):
    path, _ = theirs(workspace, FIRST), theirs(workspace, SECOND)
    found = names(home).find(word)
    assert found.name == f"claude-code:{FIRST}"
    assert found.source is not None
    assert (found.source.agent, found.source.path) == ("claude-code", str(path))


def test_several_of_another_agent(home: Home, workspace: Path):
    for id in (FIRST, SECOND):
        theirs(workspace, id)
    with pytest.raises(SeveralFit) as failed:
        names(home).find("claude-code:0000")
    assert {item.name for item in failed.value.candidates} == {f"claude-code:{id}" for id in (FIRST, SECOND)}


def test_a_file_by_its_path_and_by_its_name(home: Home, workspace: Path):
    path = theirs(workspace, FIRST)
    beside = path.rename(workspace / path.name)
    for word in (str(beside), f"./{path.name}", path.name):
        assert names(home).find(word).name == f"claude-code:{FIRST}"
    (workspace / "empty").mkdir()
    with pytest.raises(NotFound, match="no session of another agent at "):
        names(home).find("./empty")


def test_another_agents_is_changed_in_its_imported_copy_only(home: Home, workspace: Path):
    path = theirs(workspace, FIRST)
    name = f"claude-code:{FIRST}"
    with pytest.raises(Invalid, match="which is only read") as failed:
        names(home).changeable_id(name)
    assert f"`turnlog import {name}`" in (failed.value.hint or "")
    with pytest.raises(Invalid, match="not one of ours"):
        names(home).own_id(name)
    home.import_sessions(path)
    assert names(home).changeable_id(name) == names(home).own_id(name) == f"claude-code-{FIRST}"
