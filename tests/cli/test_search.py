"""`turnlog search`."""

import shlex
from pathlib import Path

import pytest

from tests.cli.machine import claude_session, settle, three_agents
from tests.cli.scene import Cli
from tests.cli.terminal import COLOUR, Terminal

ID = "aaaaaaaa-1111-4222-8333-444444444444"
OTHER = "bbbbbbbb-1111-4222-8333-444444444444"


@pytest.fixture
def person(folder: Path, tmp_path: Path) -> Path:
    return tmp_path / "person"


@pytest.fixture
def two(person: Path) -> None:
    claude_session(person, str(Path.cwd()), ID, "the flaky test", "self._cache.get(key) fails")
    claude_session(person, "/home/ada/other", OTHER, "another flaky test", at="2026-11-14T10:00:00.000Z")


def test_a_word_in_a_tool_output_of_another_agent(person: Path, process: Cli):
    three_agents(person, Path.cwd())
    done = process("search", "oops", "role:tool", "agent:claude-code")
    assert done.code == 0, done.err
    assert "claude-code:45669978-e1a9-4bd3-816d-e6c803d48a5e  2026-11-15 " in done.out
    assert "  Bash  Exit code 3 ⏎ oops\n" in done.out


def test_a_line_per_hit_in_a_pipe_the_newest_first(two: None, process: Cli):
    lines = process("search", "flaky", "role:user").out.splitlines()
    assert [line.split()[0] for line in lines] == [f"claude-code:{ID}", f"claude-code:{OTHER}"]
    assert lines[0].endswith("you  the flaky test")


def test_json_has_the_session_the_place_and_the_command(two: None, process: Cli):
    told = process("search", "flaky", "role:user", "--json").json
    assert told["version"] == 2
    assert told["cursor"] is None
    hit = told["hits"][0]
    assert hit["session"] == ID
    assert [(card["id"], card["agent"]) for card in told["sessions"]] == [(ID, "claude-code"), (OTHER, "claude-code")]
    assert hit["role"] == "user"
    assert [hit["snippet"][start:end] for start, end in hit["marks"]] == ["flaky"]
    assert process("show", hit["session"], "--at", hit["place"], "--json").json["messages"]
    assert hit["resume"][0]


def test_pages(two: None, process: Cli):
    first = process("search", "flaky", "--limit", "1", "--json").json
    assert len(first["hits"]) == 1
    found = [first["hits"][0]["entry"]]
    cursor = first["cursor"]
    while cursor is not None:
        page = process("search", "flaky", "-n1", "--cursor", cursor, "--json").json
        found += [hit["entry"] for hit in page["hits"]]
        cursor = page["cursor"]
    assert len(found) == len(set(found)) == len(process("search", "flaky", "--json").json["hits"]) == 4
    told = process("search", "flaky", "-n1")
    assert len(told.out.splitlines()) == 1
    assert f"… older ones: turnlog search flaky --limit 1 --before {first['cursor']}\n" == told.err


def test_only_here_or_in_one_folder(two: None, process: Cli):
    def ids(*words: str) -> set[str]:
        return {hit["session"] for hit in process("search", "flaky", "--json", *words).json["hits"]}

    assert ids() == {ID, OTHER}
    assert ids("--here") == {ID}
    assert ids("--workspace", "/home/ada") == {OTHER}
    assert ids("workspace:other") == {OTHER}


def test_code_phrases_and_what_must_not_be_there(two: None, process: Cli):
    assert "self._cache.get(key)" in process("search", "self._cache.get(").out
    assert process("search", '"flaky test"', "-another", "role:user").out.count("\n") == 1
    assert process("search", "flaky", "-another", "role:user").out.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["nirvana"], "try a beginning, nirva*, or a part of a word, *nirvana*"),
        (["nirvana", "samsara"], "all words have to be in one message"),
        (["flaky", "agent:codex"], "try it without the filters"),
        (["another", "--here"], "there are matches elsewhere"),
    ],
)
def test_nothing_found_says_what_to_try(two: None, process: Cli, words: list[str], hint: str):
    done = process("search", *words)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("nothing found for ")
    assert hint in done.err


def test_nothing_to_look_for_is_an_error(process: Cli):
    done = process("search")
    assert done.code == 2
    assert done.err.startswith("error: nothing to look for\nhint: ")


def test_an_unknown_filter_names_those_there_are(process: Cli):
    done = process("search", "colour:red")
    assert done.code == 2
    assert "agent, workspace, role" in done.err


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_on_a_terminal_sessions_with_their_hits(two: None, process: Cli, columns: int):
    settle(process)
    with Terminal("-m", "turnlog", "search", "flaky", columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.plain.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("aaaaaaaa  ") for line in lines)
    assert any(line.startswith("bbbbbbbb  ") for line in lines)
    assert "\x1b[1;33mflaky\x1b[0m" in terminal.text
    assert "  → " in terminal.plain
    with Terminal("-m", "turnlog", "search", "flaky", columns=columns, NO_COLOR="1") as plain:
        assert plain.end() == 0
    assert not COLOUR.search(plain.text)
    assert plain.text == terminal.plain


def test_what_was_said_cannot_drive_the_terminal(person: Path, process: Cli):
    claude_session(person, str(Path.cwd()), ID, "a trap \x1b[2J\x07 \u202e here")
    assert "\x1b" not in process("search", "trap").out
    with Terminal("-m", "turnlog", "search", "trap") as terminal:
        assert terminal.end() == 0
    assert "\x1b[2J" not in terminal.text
    assert "\x07" not in terminal.text
    assert "\\x1b[2J" in terminal.plain


def test_every_command_it_prints_works(person: Path, process: Cli):
    """Also where names begin alike: in other folders, and with those of subagents."""
    three_agents(person, Path.cwd())
    for end in ("1", "2"):
        claude_session(person, "/home/ada/other", f"aaaaaaaa-1111-4222-8333-44444444444{end}", "count the lines")
    settle(process)
    with Terminal("-m", "turnlog", "search", "lines", columns=120) as terminal:
        assert terminal.end() == 0
    commands = [line.split("→ ")[1] for line in terminal.plain.splitlines() if "→ turnlog" in line]
    assert len(commands) > 10
    for command in commands:
        words = shlex.split(command)
        done = process(*words[1:]) if words[1] == "show" else process("path", words[2])
        assert done.code == 0, (command, done.err)


def test_a_whole_query_in_one_word_of_the_shell(two: None, process: Cli):
    def ids(*words: str) -> set[str]:
        return {hit["session"] for hit in process("search", "--json", *words).json["hits"]}

    assert ids("agent:claude-code another") == ids("agent:claude-code", "another") == {OTHER}
    assert ids("workspace:/home/ada/my folder") == set()


def test_the_next_page_of_words_that_look_like_options(two: None, process: Cli):
    told = process("search", "-n1", "--", "-another flaky").err.removeprefix("… older ones: ")
    page = process(*shlex.split(told)[1:])
    assert page.code == 0
    assert len(page.out.splitlines()) == 1


def test_an_option_with_its_value_attached_leaves_no_word_out(two: None, process: Cli):
    nowhere = process("search", "the", "-w", "/nope", "--json")
    assert process("search", "the", "-w/nope", "--json").json == nowhere.json
    assert nowhere.json["hits"] == []
    assert len(process("ls", "-an1", "--json").json["sessions"]) == 1
    assert len(process("ls", "-n1", "--json").json["sessions"]) == 1
    assert process("search", "the", "-wip", "--json").json["hits"], "a word to leave out"
