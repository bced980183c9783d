"""`turnlog compare`: the same numbers as `home.compare`, whosever the sessions are."""

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.cli.scene import Cli
from turnlog import Usage


@pytest.fixture
def pair(folder) -> tuple[str, str]:
    with turnlog.open(folder, checkpoints=False) as home:
        one = home.create(workspace=".", title="One attempt")
        one.user("begin")
        at = one.head
        one.assistant("one way", usage=Usage(input_tokens=1500, output_tokens=5, cost_micros=20_000))
        fork = one.fork(at, title="Another attempt")
        fork.assistant("another way\x1b[31m", usage=Usage(input_tokens=70, output_tokens=3), model="no-such-model")
        fork.user("further")
        return one.id, fork.id


def test_it_tells_what_is_in_common_once_and_then_each_turn(cli: Cli, pair: tuple[str, str], monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = cli("compare", *pair)
    assert done.code == 0, done.err
    assert all(len(line) <= 80 for line in done.out.splitlines())
    assert "\x1b" not in done.out
    for line in ("1 prompt, 1 message in common", "   begin", "turn 2", "B  further"):
        assert line in done.out.splitlines()
    rows = {line.split("  ")[0]: line.split()[-2:] for line in done.out.splitlines() if line}
    assert rows["turns"] == ["1", "2"]
    assert rows["tokens in"] == ["1,500", "70"]
    assert rows["cost"] == ["$0.02", "?"]


def test_programs_get_what_the_library_gives(cli: Cli, pair: tuple[str, str], folder):
    told = cli("compare", *pair, "--json").json
    with turnlog.open(folder) as home:
        found = home.compare(*pair)
    assert told["common"] == {"messages": 1, "prompts": ["begin"], "last_a": found.common.last_a,
                              "last_b": found.common.last_b}  # fmt: skip
    for side, ours in ((told["a"], found.a), (told["b"], found.b)):
        assert (side["session"], side["head"], side["cost_micros"]) == (ours.session, ours.head, ours.cost.micros)
        assert [turn["prompt"] for turn in side["turns"]] == [turn.prompt for turn in ours.turns]
    assert told["b"]["unpriced"] == ["no-such-model"]
    assert told["a"]["files"] is None


def test_sessions_that_are_the_same_and_branches_that_are_not_there(cli: Cli, pair: tuple[str, str]):
    done = cli("compare", pair[0], pair[0])
    assert "they are the same" in done.out
    assert "turns" not in done.out
    done = cli("compare", *pair, "--branch-b", "99")
    assert (done.code, done.out) == (3, "")
    assert done.err.startswith(f"error: no branch 99 in session {pair[1]}\nhint: ")


def test_other_agents_sessions_can_be_compared(cli: Cli, tmp_path, monkeypatch: pytest.MonkeyPatch):
    place = tmp_path / "machine"
    place.mkdir()
    machine = Machine(place, monkeypatch)
    machine.claude("aaaa1111", 2)
    machine.codex("bbbb2222", 2)
    told = cli("compare", "claude-code:aaaa1111", "codex:bbbb2222", "--json").json
    assert (told["a"]["session"], told["b"]["session"]) == ("claude-code:aaaa1111", "codex:bbbb2222")
    assert told["a"]["turns"]
    assert told["b"]["turns"]
