"""The turns behind a commit, what they cost, and Agent Trace records."""

import json
import os
import re
import uuid
from contextlib import closing
from datetime import UTC, datetime

import pytest

from tests.blame.lab import Lab
from turnlog import Usage
from turnlog.blame.commit import blame_commit, sessions_behind
from turnlog.blame.repository import Repository
from turnlog.blame.trace import trace_record
from turnlog.errors import Invalid, NotFound
from turnlog.log.entry import Child, Turn
from turnlog.reader.place import turns_of
from turnlog.session.interior import interior


@pytest.fixture
def lab(tmp_path, monkeypatch):
    lab = Lab(tmp_path)
    lab.git("init", "-qb", "main")
    lab.write("f", "one", "two")
    lab.commit("first")
    monkeypatch.chdir(lab.folder)
    return lab


def says(lab: Lab, model: str, usage: Usage | None, *lines: str) -> None:
    with lab.turn():
        lab.session.user("write")
        lab.write("f", *lab.lines("f"), *lines)
        lab.session.assistant("done", model=model, usage=usage)


def turns(found) -> list[tuple[int, int, int | None, list[str]]]:
    return [(one.author.turn, one.lines, one.cost_micros, one.unpriced) for one in found.turns]


def test_a_commit_has_the_turns_whose_lines_it_added_and_what_they_cost(lab):
    says(lab, "m", Usage(1, 1, cost_micros=2_000_000), "a", "b")
    says(lab, "no-such-model", Usage(5, 5), "c")
    says(lab, "m", None, "d")
    lab.write("f", "zero", *lab.lines("f"))
    lab.write("g", "new file")
    commit = lab.commit("many hands")
    found = blame_commit(interior(lab.home).store, "HEAD")
    assert (found.commit, found.subject, found.others) == (commit, "many hands", {"since": 2})
    assert turns(found) == [(1, 2, 2_000_000, []), (2, 1, None, ["no-such-model"]), (3, 1, None, [])]
    assert [one.path for one in found.files] == [str(lab.folder / "f"), str(lab.folder / "g")]
    only = blame_commit(interior(lab.home).store, commit[:10], lab.folder / "g")
    assert (only.turns, only.others) == ([], {"since": 1})
    lab.turn_that(lambda: None)
    assert blame_commit(interior(lab.home).store, "HEAD").others == {"between": 2}


def test_subagents_of_a_turn_are_in_what_it_cost(lab):
    with lab.turn():
        child = lab.session.spawn(agent="helper")
        child.assistant("x", model="m", usage=Usage(1, 1, cost_micros=30))
        lab.write("f", "one", "two", "three")
        lab.session.assistant("y", model="m", usage=Usage(1, 1, cost_micros=12))
    lab.commit()
    assert turns(blame_commit(interior(lab.home).store, "HEAD")) == [(1, 1, 42, [])]


def test_subagents_of_subagents_count_and_each_once(lab):
    with lab.turn():
        child = lab.session.spawn(agent="helper")
        child.assistant("x", model="m", usage=Usage(1, 1, cost_micros=30))
        below = child.spawn(agent="its helper")
        below.assistant("z", model="m", usage=Usage(1, 1, cost_micros=100))
        lab.session.append(Child(session=child.id), Child(session=below.id))
        lab.write("f", "one", "two", "three")
        lab.session.assistant("y", model="m", usage=Usage(1, 1, cost_micros=12))
    with lab.turn():
        lab.session.append(Child(session=child.id))  # it is the first turn's
        lab.write("f", "one", "two", "three", "four")
        lab.session.assistant("y", model="m", usage=Usage(1, 1, cost_micros=1))
    lab.commit()
    assert sorted(turns(blame_commit(interior(lab.home).store, "HEAD"))) == [(1, 1, 142, []), (2, 1, 1, [])]


def test_a_turn_that_is_told_again_keeps_its_number_and_its_cost(lab):
    says(lab, "m", Usage(1, 1, cost_micros=5), "a")
    says(lab, "m", Usage(1, 1, cost_micros=7), "b")
    first = next(entry for entry in lab.session.entries() if isinstance(entry, Turn))
    for state in ("begin", "completed"):
        lab.session.append(Turn(state=state, turn=first.turn))
    says(lab, "m", Usage(1, 1, cost_micros=9), "c")
    lab.commit()
    assert sorted(turns(blame_commit(interior(lab.home).store, "HEAD"))) == [
        (1, 1, 5, []),
        (2, 1, 7, []),
        (3, 1, 9, []),
    ]
    begins = turns_of(lab.session).begins
    assert sorted(begins) == [1, 2, 3]
    assert begins[1] < begins[2] < begins[3]


def test_an_old_commit_and_one_that_was_rewritten_are_found_by_what_they_say(lab):
    says(lab, "m", None, "a")
    first = lab.commit("a")
    says(lab, "m", None, "b")
    lab.commit("b")
    says(lab, "m", None, "c")
    lab.write("f", "one", "c")
    lab.commit("c, and much is gone")
    assert turns(blame_commit(interior(lab.home).store, first)) == [(1, 1, None, [])]
    lab.git("checkout", "-q", "--orphan", "squashed", "HEAD~1")
    squashed = lab.commit("all in one")
    lab.git("checkout", "-qf", "main")
    found = blame_commit(interior(lab.home).store, squashed)
    assert turns(found) == [(1, 1, None, []), (2, 1, None, [])]
    assert found.others == {"before": 2}


def test_a_merge_and_a_rename_add_only_what_is_new(lab):
    lab.write("f", *(f"line {n}" for n in range(20)))
    lab.commit("more")
    with lab.turn():
        lab.git("mv", "f", "g")
        lab.write("g", *lab.lines("g"), "new")
        lab.commit("renamed")
    assert [(one.path, len(one.lines)) for one in blame_commit(interior(lab.home).store, "HEAD").files] == [
        (str(lab.folder / "g"), 1)
    ]


def test_what_is_no_commit_is_said(lab, tmp_path, monkeypatch):
    for name in ("nonsense", "-x", "HEAD:f", ""):
        with pytest.raises(NotFound, match="no commit"):
            blame_commit(interior(lab.home).store, name)
    with pytest.raises(NotFound, match="did not change"):
        blame_commit(interior(lab.home).store, "HEAD", lab.folder / "other")
    with pytest.raises(NotFound, match="no checkpoint covers"):
        blame_commit(interior(lab.home).store, "HEAD")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, match="in no git repository"):
        blame_commit(interior(lab.home).store, "HEAD")


def test_a_record_says_what_agent_trace_asks_for(lab):
    says(lab, "claude-opus-4-5", None, "a", "b")
    lab.write("f", *lab.lines("f"), "mine")
    says(lab, "own/model", None, "c")
    revision = lab.commit("all")
    found = lab.home.blame(lab.folder / "f")
    assert found.revision == revision
    record = json.loads(
        json.dumps(trace_record([found], str(lab.folder), found.revision, datetime(2026, 1, 2, tzinfo=UTC)))
    )
    assert re.fullmatch(r"\d+\.\d+\.\d+", record["version"])
    assert uuid.UUID(record["id"])
    assert (record["timestamp"], record["vcs"]) == ("2026-01-02T00:00:00.000Z", {"type": "git", "revision": revision})
    [file] = record["files"]
    assert file["path"] == "f"
    told = [
        (one["contributor"], [(r["start_line"], r["end_line"]) for r in one["ranges"]]) for one in file["conversations"]
    ]
    assert told == [
        ({"type": "unknown"}, [(1, 2)]),
        ({"type": "ai", "model_id": "anthropic/claude-opus-4-5"}, [(3, 4)]),
        ({"type": "unknown"}, [(5, 5)]),
        ({"type": "ai", "model_id": "own/model"}, [(6, 6)]),
    ]
    assert file["conversations"][1]["url"] == f"turnlog:{lab.session.id}#turn=1"
    lab.write("f", *lab.lines("f"), "not committed")
    assert lab.home.blame(lab.folder / "f").revision is None


def test_the_sessions_behind_a_range_of_commits(lab, monkeypatch):
    def turn(session, *lines):
        lab.turn_that(lambda: lab.write("f", *lab.lines("f"), *lines), session)

    base = lab.git("rev-parse", "HEAD")
    other, third = (lab.home.create(workspace=lab.folder, agent="agent") for _ in range(2))
    turn(lab.session, "a")
    first = lab.commit("first turn")
    turn(other, "b")
    lab.commit("second turn")
    turn(third, "c")
    assert sessions_behind(interior(lab.home).store, f"{base}..HEAD") == [other.id, lab.session.id]
    assert sessions_behind(interior(lab.home).store, "HEAD") == [other.id]
    assert sessions_behind(interior(lab.home).store, f"{base}..{first}") == [lab.session.id]
    assert sessions_behind(interior(lab.home).store, f"{first}..") == [other.id]
    with pytest.raises(NotFound, match="no commit 'nowhere'"):
        sessions_behind(interior(lab.home).store, "nowhere..HEAD")
    monkeypatch.setattr("turnlog.blame.repository._MOST_IN_RANGE", 2)
    assert len(sessions_behind(interior(lab.home).store, f"{base}..HEAD")) == 2
    monkeypatch.setattr("turnlog.blame.repository._MOST_IN_RANGE", 1)
    with pytest.raises(Invalid, match="more than 1 commits"):
        sessions_behind(interior(lab.home).store, f"{base}..HEAD")


def test_what_is_too_large_in_git_is_passed_over_and_the_next_is_read(lab, monkeypatch):
    monkeypatch.setattr("turnlog.blame.repository.LARGEST_BYTES", 1000)
    lab.write("big", "x" * 3000)
    lab.write("small", "y")
    commit = lab.commit("both")
    with closing(Repository(str(lab.folder))) as repository:
        assert repository.content(commit, os.fsencode(lab.folder / "big")) is None
        assert repository.content(commit, os.fsencode(lab.folder / "small")) == b"y\n"


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(lab):
    with lab.turn():
        lab.write("f", "one", "two", "three")
    commit = lab.commit("more")
    (lab.folder / "f").unlink()
    os.mkfifo(lab.folder / "f")
    assert turns(blame_commit(interior(lab.home).store, commit)) is not None


def test_a_session_that_is_purged_while_it_is_looked_for_is_left_out(lab, monkeypatch):
    other = lab.home.create(id="gone", workspace=lab.folder)
    with lab.turn(other):
        lab.write("f", "one", "two", "theirs")
    with lab.turn():
        lab.session.user("go on")
        lab.write("f", "one", "two", "theirs", "ours")
    store = interior(lab.home).store
    listed = list(store.listing())
    lab.home.purge("gone")
    monkeypatch.setattr(store, "listing", lambda *given: iter(listed))
    assert [line.author.turn for line in lab.blame("f") if line.author is not None] == [1]
    lab.session.rewind(turns=1)
    assert lab.lines("f") == ["one", "two", "theirs"]


def test_a_range_has_two_dots_and_may_begin_or_end_with_the_head(lab):
    first = lab.git("rev-parse", "HEAD").strip()
    lab.git("checkout", "-qb", "topic")
    lab.write("g", "more")
    second = lab.commit("second")
    with closing(Repository(str(lab.folder))) as repository:
        assert repository.commits("main..topic") == repository.commits("main..") == [second]
        assert repository.commits("..main") == []
        assert repository.commits(f"{first}..HEAD") == [second]
        with pytest.raises(Invalid, match="three dots") as refused:
            repository.commits("main...topic")
        assert "main..topic" in str(refused.value.hint)
