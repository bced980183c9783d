"""Every kind of error, through the real program: its code, one line for people, one object for programs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from turnlog import errors

PAGE = (Path(__file__).resolve().parents[2] / "docs/cli.md").read_text()
KINDS: dict[str, tuple[int, list[str]]] = {
    "usage": (2, ["log", "--nonsense"]),
    "invalid": (2, ["show", "--key", "1"]),
    "not_found": (3, ["show", "nobody"]),
    "ambiguous": (3, ["show", "abc"]),
    "already_exists": (4, ["export", "--to", "sofos", "-o", "taken.json"]),
    "conflict": (5, ["compact", "busy"]),
    "corrupt": (6, ["--home", "broken", "log"]),
    "unsupported": (7, ["--home", "ftp://example.org/x", "log"]),
    "unavailable": (8, ["--home", "postgresql://nobody@127.0.0.1:1/none?connect_timeout=1", "log"]),
    "not_runnable": (126, ["run", "--", "./taken.json"]),
    "no_command": (127, ["run", "--", "no-such-command"]),
}


@pytest.fixture
def scene(session: str, folder: Path) -> Iterator[None]:
    Path("taken.json").write_text("{}")
    Path("broken").mkdir()
    Path("broken/home.json").write_text("{")
    with turnlog.open(checkpoints=False) as home:
        home.create(id="abc-1", title="one")
        home.create(id="abc-2", title="two")
        busy = home.create(id="busy")
        with busy.turn():
            busy.user("hi")
            yield


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_error(name: str, scene: None, process: Cli):
    code, words = KINDS[name]
    done = process(*words)
    assert (done.code, done.out) == (code, "")
    assert re.search(r"^error: [^\n]+\n(hint: [^\n]+\n)?\Z", done.err, re.MULTILINE)
    at = words.index("--") if "--" in words else len(words)
    done = process(*words[:at], "--json", *words[at:])
    assert (done.code, done.out) == (code, "")
    problem = json.loads(done.err)
    assert problem["version"] == 1
    assert (problem["error"]["code"], problem["error"]["exit_code"]) == (name, code)
    assert problem["error"]["message"]
    assert f"\n| {code} | `{name}` |" in PAGE


def test_there_is_a_test_for_every_error():
    def below(kind: type[errors.TurnlogError]) -> set[str]:
        return {kind.code}.union(*map(below, kind.__subclasses__()))

    # A full disk is tried where there is one: see tests/store.
    assert below(errors.TurnlogError) - {"error", "out_of_space"} <= set(KINDS)


def test_several_that_fit_are_told_to_programs(scene: None, process: Cli):
    found = json.loads(process("show", "abc", "--json").err)["error"]["candidates"]
    assert [(row["name"], row["id"], row["agent"], row["title"]) for row in found] == [
        ("abc-2", "abc-2", None, "two"),
        ("abc-1", "abc-1", None, "one"),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", row["at"]) for row in found)


def test_several_that_fit_are_told_to_people(scene: None, process: Cli):
    lines = process("show", "abc").err.splitlines()
    assert lines[0].split() == ["SESSION", "AGENT", "WHEN", "TITLE"]
    assert [lines[1].split()[0], lines[2].split()[0]] == ["abc-2", "abc-1"]
    assert lines[1].endswith("two")
    assert lines[3:] == ["error: 'abc' fits 2 sessions", "hint: give more of the id"]
