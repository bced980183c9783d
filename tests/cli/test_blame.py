"""`turnlog blame` and `turnlog why`."""

import json
import subprocess
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from turnlog import Usage


@pytest.fixture
def session(folder: Path) -> str:
    """A file of five lines: two of before, one of each of two turns, one of nobody."""
    Path("f.py").write_text("one\n\ttwo\n")
    with turnlog.open() as home, home.create(workspace=".", agent="my-agent") as session:
        with session.turn():
            session.user("add a third line")
            Path("f.py").write_text("one\n\ttwo\nthree\n")
            session.assistant("It is there.", model="claude-sonnet-4-5", usage=Usage(10, 10))
        with open("f.py", "a") as file:
            file.write("by hand\n")
        with session.turn():
            session.user("and a long one \x1b[31m")
            with open("f.py", "a") as file:
                file.write("x" * 5000 + "\n")
        return session.id


def test_every_line_with_its_author_and_the_turns_below(cli: Cli, session: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = cli("blame", "f.py")
    name = session.rpartition("-")[2]
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert lines[:4] == [
        "before      1  one",
        "before      2      two",
        f"{name} 1  3  three",
        "between     4  by hand",
    ]
    assert lines[4].startswith(f"{name} 2  5  xxxx")
    assert lines[6].split() == ["SESSION", "TURN", "LINES", "AGENT", "WHEN", "ENTRY", "PROMPT"]
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in done.out
    monkeypatch.delenv("COLUMNS")
    assert "… (5,000 characters)" in cli("blame", "f.py:5").out


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["f.py:2"], [2]),
        (["f.py:2,3"], [2, 3]),
        (["-L", "2,4", "f.py"], [2, 3, 4]),
        (["-L", "2,+2", "f.py"], [2, 3]),
        (["-L", "5", "f.py"], [5]),
    ],
)
def test_lines_are_chosen_as_people_type_them(cli: Cli, session: str, words: list[str], wanted: list[int]):
    assert [line["line"] for line in cli("blame", "--json", *words).json["lines"]] == wanted


def test_json_has_every_field(cli: Cli, session: str):
    lines = cli("blame", "f.py", "--json").json["lines"]
    names = {"line", "text", "session", "turn", "agent", "model", "at", "prompt", "entry", "why", "commit", "turns"}
    assert all(line.keys() == names for line in lines)
    third = lines[2]
    assert (third["session"], third["turn"], third["agent"]) == (session, 1, "my-agent")
    assert (third["model"], third["prompt"], third["why"]) == ("claude-sonnet-4-5", "add a third line", None)
    assert cli("show", session, "--at", str(third["entry"])).out.count("add a third line") == 2, "its title, too"
    assert [line["why"] for line in lines] == ["before", "before", None, "between", None]


def test_a_file_whose_name_ends_like_a_line_is_that_file(cli: Cli, session: str):
    Path("f.py:2").write_text("odd\n")
    assert [line["text"] for line in cli("blame", "f.py:2", "--json").json["lines"]] == ["odd"]


def test_why_shows_prompt_answer_and_diff(cli: Cli, session: str):
    done = cli("why", "f.py:3")
    assert done.code == 0
    assert "turn 1 of session" in done.out
    assert "asked:\n  add a third line\n" in done.out
    assert "answered:\n  It is there.\n" in done.out
    assert "\n+three\n" in done.out
    data = cli("why", "f.py:3", "--json").json
    assert (data["line"]["turn"], data["turns"][0]["answer"]) == (1, "It is there.")
    assert [change["path"] for change in data["turns"][0]["changes"]] == ["f.py"]
    assert "changed between turns; the first checkpoint that has it is of " in cli("why", "f.py:4").out
    assert cli("why", "f.py:1").out == "before  1  one\n\nthere before the first checkpoint\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["blame"], 2, "missing argument"),
        (["blame", "f.py:9"], 2, "there is no line 9"),
        (["blame", "f.py:0"], 2, "lines 0 to 0"),
        (["blame", "-L", "x", "f.py"], 2, "is no range of lines"),
        (["blame", "f.py:1", "-L", "1,2"], 2, "either file:line or -l"),
        (["blame", "gone.py"], 3, "there is no"),
        (["blame", "../outside"], 3, "no checkpoint covers"),
        (["blame", "b.bin"], 7, "is binary"),
        (["blame", "--commit", "HEAD"], 3, "is in no git repository"),
        (["why", "f.py"], 2, "which line"),
        (["why", "f.py:1,2"], 2, "which line"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_an_exit_code(
    cli: Cli, session: str, words: list[str], code: int, said: str
):
    Path("b.bin").write_bytes(b"\0")
    Path("../outside").write_text("x\n")
    done = cli(*words)
    assert (done.code, done.out) == (code, "")
    assert said in done.err.lower()


def test_a_commit_and_a_record(cli: Cli, session: str):
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=me", "-c", "user.email=a@b", *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all of it")
    done = cli("blame", "--commit", "HEAD")
    assert done.code == 0
    assert ": 5 lines added in 1 file" in done.out
    assert "2 lines there before the first checkpoint\n1 line changed between turns" in done.out
    assert "what 1 turn cost is not known" in done.err
    data = cli("blame", "--commit", "HEAD", "f.py", "--json").json
    assert [(row["session"], row["turn"], row["lines"]) for row in data["turns"]] == [(session, 1, 1), (session, 2, 1)]
    assert data["turns"][1]["cost_micros"] is None
    record = json.loads(cli("blame", "f.py", "--to", "agent-trace").out)
    assert record["files"][0]["path"] == "f.py"
    assert record.keys() == {"version", "id", "timestamp", "vcs", "tool", "files"}
    assert json.loads(cli("blame", "--commit", "HEAD", "--to", "agent-trace").out)["vcs"] == record["vcs"]


def test_an_ignored_file_is_told_to_be_one(cli: Cli, session: str):
    Path(".gitignore").write_text("*.env\n")
    Path("a.env").write_text("KEY=1\n")
    cli("checkpoint")
    done = cli("blame", "a.env")
    assert (done.code, done.out) == (0, "between  1  KEY=1\n")
    assert done.err.startswith("note: git ignores ")
