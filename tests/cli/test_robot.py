"""What programs and agents ask of the command line: only some fields, only so many bytes, and never a question."""

import json
import os
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.every import EVERY, NAMES, words_for
from tests.cli.machine import three_agents
from tests.cli.scene import Cli, Done
from turnlog.cli.frame.commandlist import get_command
from turnlog.cli.frame.document.selection import selectable
from turnlog.cli.frame.document.shape import items_of
from turnlog.cli.guide import GUIDE, HEAD

LISTS = [
    ("sessions", ["ls", "--all", "--hidden"]),
    ("hits", ["search", "the"]),
    ("hits", ["search", "the", "--sort", "relevance"]),
    ("groups", ["usage", "--by", "session"]),
    ("messages", ["show", "CODEX"]),
    ("messages", ["show", "CODEX", "--context"]),
    ("entries", ["log", "CODEX"]),
    ("entries", ["log", "CODEX", "--reverse"]),
    ("formats", ["formats"]),
    ("agents", ["hooks", "status"]),
    ("agents", ["mcp", "status"]),
    ("sessions", ["doctor"]),
    ("commands", ["api"]),
]


@pytest.fixture
def agents(cli: Cli, session: str) -> Cli:
    """The command line of a machine on which three agents have worked; CODEX stands for a session of one of them."""
    three_agents(Path.home(), Path.cwd())
    cards = cli("ls", "--all", "--json", "--fields", "id,agent,messages").json["sessions"]
    longest = max((card for card in cards if card["agent"] == "codex"), key=lambda card: card["messages"])["id"]
    return lambda *words: cli(*(longest if word == "CODEX" else word for word in words))


def problem(done: Done) -> dict[str, Any]:
    assert done.out == ""
    return json.loads(done.err)["error"]


def test_with_fields_an_item_has_only_these(agents: Cli):
    whole = agents("search", "the", "--json", "-n5").json
    some = agents("search", "the", "--json", "-n5", "--fields", "snippet, session,sessions.title").json
    assert some["hits"] == [{name: hit[name] for name in ("session", "snippet")} for hit in whole["hits"]]
    assert some["sessions"] == [{"title": card["title"]} for card in whole["sessions"]]
    assert {**some, "hits": 0, "sessions": 0} == {**whole, "hits": 0, "sessions": 0}
    inside = agents("show", "CODEX", "--json", "--fields", "role,blocks.type").json
    assert {name for message in inside["messages"] for name in message} == {"role", "blocks"}
    assert {name for message in inside["messages"] for block in message["blocks"] for name in block} == {"type"}
    assert set(agents("title", "--json", "--fields", "title").json) == {"version", "title"}


def test_the_five_hits_of_a_model_are_small(agents: Cli):
    done = agents("search", "the", "--json", "--fields", "session,seq,snippet", "-n", "5")
    assert len(done.json["hits"]) == 5
    assert len(done.out.encode()) <= 2000


@pytest.mark.parametrize("name", EVERY)
def test_an_unknown_field_is_refused_before_anything_is_done(name: str, cli: Cli):
    there = list(selectable(import_module(f"turnlog.cli.commands.{name}").FIELDS))
    for wrong in ("nonsense", f"{there[0]}.nonsense.more"):
        told = problem(cli(name, "--json", "--fields", wrong, *words_for(name)))
        assert (told["code"], told["exit_code"]) == ("usage", 2)
        assert wrong in told["message"]
    told = problem(cli(name, "--json", "--fields", "nonsense", *words_for(name)))
    assert [one["name"] for one in told["candidates"]] == there
    assert ", ".join(there) in told["hint"]


@pytest.mark.parametrize("name", EVERY)
def test_every_list_can_be_cut_and_goes_on(name: str):
    module = import_module(f"turnlog.cli.commands.{name}")
    flags = {flag for option in get_command(name).options for flag in option.flags}
    assert "--fields" in flags
    assert ("--max-bytes" in flags) == bool(items_of(module.FIELDS))
    assert ("--cursor" in flags) == ("--max-bytes" in flags)


@pytest.mark.parametrize(("name", "words"), LISTS)
def test_a_list_in_pieces_is_the_whole_list(name: str, words: list[str], agents: Cli):
    whole = agents(*words, "--json").json
    most = max(len(json.dumps(item)) for item in whole[name]) + 6000
    if "search" in words:
        most += 4000  # sessions stand beside the hits
    pieces: list[Any] = []
    cursor: str | None = ""
    while cursor is not None:
        done = agents(*words, "--json", "--max-bytes", str(most), *(["--cursor", cursor] if cursor else []))
        assert done.code == 0, done.err
        assert len(done.out.encode()) <= most
        assert done.json[name]
        pieces += _without_ids(done.json[name])
        assert (done.json["left_out"] > 0) <= (done.json["cursor"] is not None)
        cursor = done.json["cursor"]
    seen = len(pieces) if name == "hits" else len(whole[name])  # without it, a page of hits is shorter
    assert pieces[: len(whole[name])] == _without_ids(whole[name])
    assert len(pieces) == seen


def _without_ids(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Marks of another agent's session have another id each time it is read."""
    return [{key: value for key, value in item.items() if key != "id"} for item in items]


def test_what_has_no_room_says_how_much_it_needs(agents: Cli):
    told = problem(agents("ls", "--all", "--json", "--max-bytes", "200"))
    assert "no room for the next item" in told["message"]
    needed = told["hint"].split()[1]
    assert agents("ls", "--all", "--json", "--max-bytes", needed).json["sessions"]


@pytest.mark.parametrize("more", [[], ["--page", "1"], ["--sort", "relevance"]])
def test_the_room_that_a_hit_needs_counts_its_session(agents: Cli, more: list[str]):
    words = ["search", "the", *more, "--json", "--max-bytes"]
    needed = problem(agents(*words, "1"))["hint"].split()[1].strip(";")
    [hit] = agents(*words, needed).json["hits"]
    assert hit["snippet"]
    assert agents(*words, str(int(needed) - 1)).code == 2


def test_what_was_done_is_told_however_little_room_there_is(cli: Cli, session: str):
    told = cli("run", "--json", "--max-bytes", "1", "--", "touch", "new").json
    assert (told["changes"], told["left_out"], told["cursor"]) == ([], 1, None)
    assert problem(cli("rm", "@", "--json", "--cursor", "0"))["message"] == "--cursor would do it again"
    assert cli("ls", "--json").json["sessions"]


@pytest.mark.parametrize(
    "words", [["ls", "--cursor", "x"], ["search", "a", "--cursor", "1.0"], ["log", "--cursor", "x"]]
)
def test_a_cursor_that_no_answer_gave_is_refused(words: list[str], cli: Cli, session: str):
    assert "no such cursor" in problem(cli(*words, "--json"))["message"]


@pytest.mark.parametrize("flag", ["--fields=id", "--max-bytes=9", "--cursor=0"])
def test_it_is_for_json(flag: str, cli: Cli):
    assert cli("ls", flag).err == f"error: {flag.partition('=')[0]} is for --json\nhint: add --json\n"


def test_a_list_that_grew_at_its_front_goes_on_where_it_stood(agents: Cli, process: Cli):
    first = agents("ls", "--all", "--json", "-n2").json
    with turnlog.open(checkpoints=False) as home, home.create(workspace=".") as new:
        new.user("what came meanwhile")
    rest = agents("ls", "--all", "--json", "--cursor", first["cursor"]).json["sessions"]
    ids = [card["id"] for card in (*first["sessions"], *rest)]
    assert len(ids) == len(set(ids))
    assert new.id not in ids


@pytest.mark.parametrize("name", [name for name in EVERY if name != "run"])  # to which it is another program's
def test_wrong_options_are_an_error_for_programs(name: str, cli: Cli):
    told = problem(cli(name, "--json", "--nonsense-here"))
    assert set(told) == {"code", "message", "hint", "exit_code", "candidates"}
    assert (told["code"], told["exit_code"]) == ("usage", 2)


def test_a_command_that_was_meant_is_a_candidate(cli: Cli):
    assert problem(cli("serach", "--json"))["candidates"] == [{"name": "search"}]
    assert problem(cli("api", "serach", "--json"))["candidates"] == [{"name": "search"}]
    assert problem(cli("api", "list", "--json"))["candidates"] == [{"name": "ls"}], "as without `api`"
    assert cli("api", "hide", "--json", "--fields", "name").json["name"] == "archive"


ASKING = [
    ["rewind"], ["undo"], ["redo"], ["rm", "@", "--purge"], ["keep"], ["hooks", "install"], ["mcp", "install"],
    ["setup"], ["setup", "--undo"], ["resume", "--in", "codex", "--exec"], ["gc", "--older-than", "1d"],
]  # fmt: skip
"""What asks somebody on a terminal."""
ALONE = """
import json, sys
from turnlog.cli.program import run
codes = [run(words) for words in json.loads(sys.argv[1])]
open(sys.argv[2], "w").write(json.dumps(codes))
"""


@pytest.mark.parametrize("is_closed", [False, True], ids=["a pipe that never ends", "closed"])
def test_nothing_waits_for_input_without_a_terminal(is_closed: bool, session: str, tmp_path: Path):
    (Path.home() / ".claude/projects").mkdir(parents=True)
    # The demo takes long and runs these commands; alone, `mcp` is a server that an agent talks to.
    every = [*ASKING, *([name, *words_for(name)] for name in NAMES if name not in ("demo", "mcp"))]
    reading, writing = os.pipe()
    call = [sys.executable, "-c", ALONE, json.dumps(every), str(tmp_path / "codes")]
    with (tmp_path / "told").open("w") as told:
        closing = ["sh", "-c", 'exec "$@" <&-', "sh"] if is_closed else []
        subprocess.run([*closing, *call], stdin=reading, stdout=told, stderr=told, start_new_session=True, timeout=50)
    os.close(reading)
    os.close(writing)
    codes = json.loads((tmp_path / "codes").read_text())
    failed = [" ".join(words) for words, code in zip(every, codes, strict=True) if code == 1]
    assert failed == [], (tmp_path / "told").read_text()


# ── the guide ─────────────────────────────────────────────────────────────────────────────────────


def test_the_guide_fits_into_instructions():
    assert len(GUIDE.encode()) <= 3000
    assert HEAD.startswith("---\nname: turnlog\ndescription: ")
    assert HEAD.endswith("\n---\n\n")


def test_every_line_of_the_guide_runs(agents: Cli):
    assert agents("run", "-q", "--", "sh", "-c", "echo one > notes.txt").code == 0
    lines = [line.strip() for line in GUIDE.splitlines() if line.startswith("    ")]
    assert len(lines) > 8
    for line in lines:
        program, *words = shlex.split(line)
        done = agents(*words)
        assert (program, done.code) == ("turnlog", 0), (line, done.err)
        assert "--json" not in line or done.json["version"]


def test_what_only_looks_can_be_continued(cli: Cli, session: str):
    for number in range(3):
        cli("note", "@", f"one note of many, number {number}")
    first = cli("note", "@", "--json", "--max-bytes", "250")
    assert first.code == 0, first.err
    assert first.json["cursor"]
    more = cli("note", "@", "--json", "--cursor", first.json["cursor"])
    listed = [*first.json["notes"], *more.json["notes"]]
    assert [one["text"][-1] for one in listed if one["text"].startswith("one")] == ["0", "1", "2"]
    assert all(one["at"].endswith("Z") for one in listed)
    assert "would do it again" in cli("note", "@", "one more", "--json", "--cursor", "1-x").err


def test_a_session_called_status_is_pushed_and_not_looked_at(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create(id="status").user("hi")
    done = cli("push", "status", "../copy", "--json", "--cursor", "1-x")
    assert "would do it again" in done.err


def test_what_may_change_files_of_a_workspace_says_so():
    kinds = {name: get_command(name).module.CHANGES for name in ("rewind", "undo", "redo", "web", "tui", "mcp", "run")}
    assert set(kinds.values()) == {"the workspace", "files of other agents"}


def test_an_error_is_json_only_where_this_command_was_asked_for_it(cli: Cli, session: str):
    other = cli("run", "no-such-command", "--json", "--debug")
    assert other.err.splitlines()[-2].startswith("error: ")
    assert "Traceback" not in other.err
    own = cli("run", "--json", "--label", "--", "no-such-command")
    assert json.loads(own.err.splitlines()[-1])["error"]["exit_code"]
    for words in (["watch", "nosuch", "--jsonl"], ["ls", "--no-such", "--json"], ["nosuch", "--json"]):
        assert json.loads(cli(*words).err)["version"] == 1


def test_times_of_candidates_are_as_everywhere(cli: Cli, folder: Path):
    with turnlog.open() as home:
        for name in ("same-1", "same-2"):
            home.create(id=name).user("hi")
    candidates = json.loads(cli("show", "same", "--json").err)["error"]["candidates"]
    assert [one["at"][-1] for one in candidates] == ["Z", "Z"]


def test_raw_lines_are_no_document(cli: Cli, session: str):
    done = cli("show", "--raw", "--json", "--fields", "seq")
    assert (done.code, done.out) == (2, "")
    assert "either --raw or --json" in done.err


@pytest.mark.parametrize(
    "fields", ["blocks.text,blocks", "blocks,blocks.text", "blocks.input.command,blocks.text,blocks"]
)
def test_a_field_that_is_named_whole_is_whole_in_any_order(cli: Cli, session: str, fields: str):
    whole = cli("show", "--json", "--fields", "blocks").json
    assert {"type", "input"} <= set(whole["messages"][1]["blocks"][1])
    assert cli("show", "--json", "--fields", fields).json == whole


def test_what_is_named_twice_inside_of_a_field_is_both(cli: Cli, session: str):
    done = cli("show", "--json", "--fields", "blocks.input.command,blocks.name,blocks.input.command").json
    assert done["messages"][1]["blocks"][1] == {"name": "bash", "input": {"command": "pytest -x"}}


@pytest.mark.parametrize("words", [["api", "search"], ["api", "--guide"]])
def test_a_document_without_its_list_has_no_more_bytes_than_asked_for_and_no_cursor(words: list[str], cli: Cli):
    told = problem(cli(*words, "--json", "--max-bytes", "100"))
    assert told["message"] == "--max-bytes 100 has no room for the answer"
    need = int(told["hint"].split()[1])
    assert len(cli(*words, "--json", "--max-bytes", str(need)).out.encode()) == need
    assert cli(*words, "--json", "--max-bytes", str(need - 1)).code == 2
    assert problem(cli(*words, "--json", "--cursor", "1-x"))["message"] == "no such cursor: '1-x'"


@pytest.mark.parametrize("words", [["ls"], ["search", "the"], ["search", "the", "--sort", "relevance"], ["log"]])
@pytest.mark.parametrize("cursor", ["9" * 5000, "9" * 19, "1." + "9" * 5000, "9" * 5000 + ".1", "9" * 5000 + ".1-x"])
def test_a_number_that_no_list_is_as_long_as_is_no_cursor(words: list[str], cursor: str, cli: Cli, session: str):
    told = problem(cli(*words, "--json", "--cursor", cursor))
    assert (told["code"], told["message"][:16]) == ("usage", "no such cursor: "), told


def test_a_screen_wider_than_any_is_none(cli: Cli, session: str, monkeypatch: pytest.MonkeyPatch):
    before = cli("ls").out
    monkeypatch.setenv("COLUMNS", "9" * 5000)
    assert (cli("ls").code, cli("ls").out) == (0, before)
