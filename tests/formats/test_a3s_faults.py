"""What breaks a3s: each fault named, and what happens here instead."""

from __future__ import annotations

import json
import os
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests import public
from tests.formats.test_a3s import (
    CHILD,
    LOOP,
    ODD,
    PARTIAL,
    ROOT,
    SEEDS,
    TODOS,
    TREE,
    WHOLE,
    bring,
    data_of,
    document,
    loads_in_a3s,
    problems_of,
    save,
    session_of,
)
from tests.formats.test_claw_faults import damaged
from turnlog import ToolCall, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.formats import Problem, Record, Source
from turnlog.formats.seeds import a3s
from turnlog.interop.rust import pretty


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def test_ids_that_share_a_file_stay_apart(home: Any, tmp_path: Path) -> None:
    """In a3s `a/b`, `a\\b`, `a_b` and `x..y`, `x_y` share one file, and saving never asks whose it is."""
    first = save(tmp_path / "in" / "a_b.json", document(id="a_b"))
    other = save(tmp_path / "in2" / "a_b.json", document(id="a/b"))
    one, two = render(session_of(home, first), "a3s"), render(session_of(home, other), "a3s")
    assert one.files[0].path == two.files[0].path == "a_b.json"
    folder = str(tmp_path / "out")
    path = a3s.place(one, folder)
    for force in (False, True):
        with pytest.raises(turnlog.AlreadyExists, match="is session 'a_b'"):
            a3s.place(two, folder, force=force)
    assert Path(path).read_bytes() == first.read_bytes()
    assert a3s.place(one, folder, force=True) == path


def test_a_session_is_listed_under_its_id(home: Any) -> None:
    """a3s lists the names of files, which are not the ids."""
    done = bring(home, ODD)
    assert done.id == "a3s-foo/bar\\baz..qux"
    assert render(home.resume(done.id), "a3s").id == "foo/bar\\baz..qux"


def test_an_empty_id_is_found(home: Any, tmp_path: Path) -> None:
    """In a3s the id "" is a hidden file that is never listed."""
    save(tmp_path / ".json", document(id=""))
    (done,) = home.import_sessions(tmp_path, agent="a3s")
    written = render(home.resume(done.id), "a3s")
    assert not written.files[0].path.startswith(".")
    assert json.loads(written.files[0].data)["id"] == ""


def test_a_late_save_neither_overwrites_nor_resurrects(home: Any) -> None:
    """In a3s an older snapshot can replace a newer one, and a late save brings a deleted session back."""
    session = session_of(home, CHILD)
    stale = session.head
    session.user("newer")
    with pytest.raises(turnlog.Conflict):
        session.append(turnlog.Message(role="user", blocks=[turnlog.Text("older")]), after=stale)
    assert session.messages()[-1].blocks[0].text == "newer"
    home.delete(session.id)
    again = bring(home, CHILD)
    assert again.added == 0
    assert "was deleted here" in again.problems[0].what
    assert session.id not in [info.id for info in home.sessions()]


def test_a_failed_write_leaves_nothing_behind(home: Any, tmp_path: Path) -> None:
    """a3s leaves its temporary files behind when a save fails."""
    written = render(session_of(home, CHILD), "a3s")
    (tmp_path / "child-1.json").mkdir()
    with pytest.raises(turnlog.TurnlogError):
        a3s.place(written, str(tmp_path), force=True)
    assert os.listdir(tmp_path) == ["child-1.json"]


def test_a_cost_record_costs_a_line(tmp_path: Path) -> None:
    """a3s rewrites the whole document on every save, with cost records that grow for ever inside it."""
    with turnlog.open(tmp_path, checkpoints=False) as home:
        session = home.create()
        sizes: list[int] = []
        for _ in range(40):
            session.spend(Usage(1, 1, 1, 0, 1), model="m")
            sizes.append(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()))
        assert max(b - a for a, b in pairwise(sizes)) < 1000


def test_cached_tokens_are_counted(home: Any) -> None:
    """a3s never adds up cache tokens, and takes the sum of all prompts for what is in the context."""
    session = session_of(home, WHOLE)
    for _ in range(3):
        session.assistant("x", usage=Usage(10, 100, 5, 0, 1))
    whole = loads_in_a3s(data_of(session))
    assert whole["total_usage"]["cache_read_tokens"] == 800 + 300
    assert whole["total_usage"]["cache_write_tokens"] == 15
    assert whole["context_usage"]["used_tokens"] == 116
    assert session.usage().own.cache_read_tokens == 1100


def test_a_compaction_parts_no_call_from_its_result_and_throws_nothing_away(home: Any) -> None:
    """a3s' compaction ignores which result belongs to which call, and the original is lost."""
    session = session_of(home, CHILD)
    session.assistant([ToolCall(id="t", name="bash", input={})])
    session.tool_result("t", "r")
    session.compact("short", keep=1)
    messages = loads_in_a3s(data_of(session))["messages"]
    assert [block["type"] for message in messages for block in message["content"]] == [
        "text",
        "tool_use",
        "tool_result",
    ]
    assert len(session.messages()) == 3


def test_a_session_cut_off_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    """In a3s a truncated file, or one required key that is missing, is an error with no way back."""
    data = WHOLE.read_bytes()
    path = tmp_path / "s-1.json"
    counts: list[int] = []
    for size in range(0, len(data), 97):
        path.write_bytes(data[:size])
        reading = a3s.read(Source("a3s", str(path)))
        counts.append(len(list(reading.steps)))
        assert reading.problems
    assert counts == sorted(counts)
    assert counts[-1] == 6


@pytest.mark.parametrize("key", sorted(document()))
def test_a_missing_key_costs_only_itself(home: Any, tmp_path: Path, key: str) -> None:
    """In a3s one missing key makes the whole session unloadable."""
    value = document()
    del value[key]
    path = tmp_path / "s-1.json"
    path.write_text(json.dumps(value))
    done = bring(home, path)
    required = key not in ("total_cost", "model_name", "cost_records", "thinking_budget", "llm_config", "tasks")
    told = [problem.what for problem in done.problems]
    assert any(f"without {key}, which a3s requires" in what for what in told) == required
    session = home.resume(done.id)
    assert len(session.messages()) == (0 if key == "messages" else 6)
    loads_in_a3s(data_of(session))


@pytest.mark.parametrize(
    ("key", "value"),
    [("messages", "hi"), ("messages", {"0": "hi"}), ("config", ["hi"]), ("tasks", "hi"), ("cost_records", {"0": 1}),
     ("llm_config", "hi"), ("model_name", ["hi"]), ("total_usage", [1]), ("thinking_enabled", "yes"),
     ("created_at", "today"), ("updated_at", 1 << 70), ("total_cost", "a lot"), ("state", "Asleep")],
)  # fmt: skip
def test_a_value_of_another_type_is_told(home: Any, tmp_path: Path, key: str, value: Any) -> None:
    path = tmp_path / "s-1.json"
    path.write_text(json.dumps(document(**{key: value})))
    done = bring(home, path)
    assert [problem.what for problem in done.problems if repr(value)[:40] in problem.what]
    loads_in_a3s(data_of(home.resume(done.id)))


@pytest.mark.parametrize(("inside", "key"), [("config", "name"), ("config", "permission_policy"), ("total_usage", "x")])
def test_a_value_of_another_type_further_inside_is_told(home: Any, tmp_path: Path, inside: str, key: str) -> None:
    value = document()
    value[inside]["prompt_tokens" if key == "x" else key] = ["hi"]
    path = tmp_path / "s-1.json"
    path.write_text(json.dumps(value))
    assert ["['hi']" in problem.what for problem in bring(home, path).problems] == [True]


def test_a_counter_that_no_program_counts_to_is_told_and_not_counted(home: Any, tmp_path: Path) -> None:
    value = document()
    value["total_usage"]["prompt_tokens"] = (1 << 63) - 1
    done = bring(home, save(tmp_path / "s-1.json", value))
    assert [problem.what for problem in done.problems] == [f"prompt_tokens is {(1 << 63) - 1}, which a3s refuses"]
    assert home.resume(done.id).usage().own.input_tokens == 0


def test_a_policy_without_rules_comes_back(home: Any, tmp_path: Path) -> None:
    value = document()
    value["config"]["permission_policy"] = {}
    path = save(tmp_path / "s-1.json", value)
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_a_cost_that_is_no_number_comes_back(home: Any, tmp_path: Path) -> None:
    value = document()
    value["cost_records"][0]["cost_usd"] = "half a dollar"
    del value["cost_records"][1]["cost_usd"]
    path = save(tmp_path / "s-1.json", value)
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_a_cost_record_of_a_later_version_comes_back(home: Any, tmp_path: Path) -> None:
    value = document()
    value["cost_records"] = ["0.5 dollars", *value["cost_records"]]
    path = save(tmp_path / "s-1.json", value)
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_the_order_of_sets_means_nothing(home: Any, tmp_path: Path) -> None:
    """Sets and maps of a3s are written in another order each time."""
    value = document()
    lanes, handler = ["Query", "Control", "Execute"], {"mode": "Internal", "timeout_ms": 1}
    value["config"]["confirmation_policy"]["yolo_lanes"] = lanes
    value["config"]["queue_config"]["laneHandlers"] = dict.fromkeys(lanes, handler)
    path = save(tmp_path / "s-1.json", value)
    first = data_of(session_of(home, path))
    value["config"]["confirmation_policy"]["yolo_lanes"] = lanes[::-1]
    value["config"]["queue_config"]["laneHandlers"] = dict.fromkeys(lanes[::-1], handler)
    save(path, value)
    assert bring(home, path).added == 0
    assert data_of(session_of(home, path)) == first
    assert json.loads(first)["config"]["confirmation_policy"]["yolo_lanes"] == sorted(lanes)


def test_a_torn_file_says_what_it_has(home: Any) -> None:
    """a3s refuses it: the file ends inside a string."""
    done = bring(home, PARTIAL)
    assert done.id == "a3s-partial-session"
    assert done.problems[0] == Problem("the JSON breaks off", offset=23, length=9)


def test_a_session_that_grew_there_adds_only_what_is_new(home: Any, tmp_path: Path) -> None:
    """a3s has no record of what changed between two saves."""
    path = save(tmp_path / "s-1.json", document())
    session = session_of(home, path)
    before = session.usage().own
    value = document(state="Completed", updated_at=1772368600)
    value["messages"].append({"role": "user", "content": [{"type": "text", "text": "още"}]})
    value["total_usage"]["prompt_tokens"] += 6
    save(path, value)
    done = bring(home, path)
    again = home.resume(done.id)
    assert again.messages()[-1].blocks[0].text == "още"
    assert len(again.messages()) == 7
    assert again.usage().own.input_tokens == before.input_tokens + 6
    assert data_of(again) == path.read_bytes()


# ── damage of any kind ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", [WHOLE, CHILD, TODOS], ids=lambda path: path.name)
def test_damage_gives_problems_and_nothing_else(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    luck = random.Random(path.name)
    target = tmp_path / path.name
    for _ in range(120):
        target.write_bytes(damaged(data, luck))
        reading = a3s.read(Source("a3s", str(target)))
        steps = list(reading.steps)
        assert all(isinstance(step, Record) for step in steps)
        assert len(steps) < 1000
        assert all(isinstance(problem, Problem) for problem in reading.problems)
        assert len(reading.problems) <= 300


@pytest.mark.parametrize(
    "victim", ["v1/wal/session-store.ndjson", LOOP.relative_to(ROOT), TREE.relative_to(ROOT)], ids=str
)
def test_damage_in_the_tree_gives_problems_and_nothing_else(tmp_path: Path, victim: Path) -> None:
    luck = random.Random(str(victim))
    for path in ROOT.rglob("*"):
        if path.is_file():
            (tmp_path / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    for _ in range(60):
        (tmp_path / victim).write_bytes(damaged((ROOT / victim).read_bytes(), luck))
        assert len(problems_of(tmp_path)) < 300


def test_damaged_sessions_can_be_kept_and_written_again(tmp_path: Path) -> None:
    luck = random.Random(11)
    path = tmp_path / "s-1.json"
    for _ in range(60):
        path.write_bytes(damaged(luck.choice([WHOLE, CHILD, TODOS]).read_bytes(), luck))
        with turnlog.open("memory:") as home:
            written = render(session_of(home, path), "a3s")
            json.loads(written.files[0].data)
            a3s.place(written, str(tmp_path / "out"), force=True) if not (tmp_path / "out").exists() else None


def test_nesting_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "s-1.json"
    path.write_bytes(b'{"id":"s","messages":[{"role":"user","content":[' + b'{"a":[' * 1_000_000)
    reading = a3s.read(Source("a3s", str(path)))
    assert len(list(reading.steps)) <= 1
    assert reading.problems


def test_a_text_that_looks_like_a_number_changes_no_number(home: Any, tmp_path: Path) -> None:
    whole = document()
    call = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1e16}}
    said = {"type": "text", "text": 'a quote \\" and : 1e+5'}
    whole["messages"] = [{"role": "assistant", "content": [said, call]}]
    for plus in (False, True):
        path = tmp_path / f"{plus}.json"
        path.write_bytes(pretty(whole, plus=plus))
        reading = a3s.read(Source("a3s", str(path)))
        assert bool((reading.header.origin or {}).get("plus")) is plus


if (SPECIFIED := public.SEEDS / "a3s").is_dir():

    def test_the_fixtures_are_those_of_the_specification() -> None:
        files = [path for path in SPECIFIED.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert (SEEDS / path.relative_to(SPECIFIED)).read_bytes() == path.read_bytes()
