"""`turnlog ls`."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session, settle, three_agents
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import COLOUR, Terminal

ID = "aaaaaaaa-1111-4222-8333-444444444444"
OTHER = "bbbbbbbb-1111-4222-8333-444444444444"


def ids(done) -> list[str]:
    assert done.code == 0, done.err
    return [row["id"] for row in done.json["sessions"]]


def test_the_newest_session_comes_first(cli: Cli, folder: Path):
    with turnlog.open() as home:
        old = home.create(title="old", workspace=".")
        new = home.create(title="new", workspace=".")
        time.sleep(0.002)  # times have milliseconds
        old.note("later")
        done = cli("ls")
    head, *rows = done.out.splitlines()
    assert done.code == 0
    assert head.split() == ["SESSION", "LAST", "ENTRY", "AGENT", "STATE", "TURNS", "COST", "WORKSPACE", "TITLE"]
    assert [row.split()[0] for row in rows] == [old.handle, new.handle]
    assert rows[0].endswith("old")


def test_a_changed_title_is_shown(cli: Cli, session: str):
    assert "The race in conftest" in cli("ls").out


def test_hidden_sessions_and_subagents_only_when_asked_for(cli: Cli, folder: Path):
    with turnlog.open() as home:
        main = home.create(title="main", workspace=".")
        home.create(title="secret", workspace=".", hidden=True)
        main.spawn(agent="explorer", title="child")
    assert {row["title"] for row in cli("ls", "--json").json["sessions"]} == {"main"}
    assert {row["title"] for row in cli("ls", "--all", "--json").json["sessions"]} == {"main"}
    assert {row["title"] for row in cli("ls", "--hidden", "--json").json["sessions"]} == {"main", "secret", "child"}
    text = cli("ls", "--hidden").out
    assert "(hidden)" in text
    assert "(subagent)" in text


def test_deleted_sessions_are_listed_apart(cli: Cli, session: str):
    with turnlog.open() as home:
        home.delete(session)
    assert cli("ls", "--json").json["sessions"] == []
    assert [row["id"] for row in cli("ls", "--deleted", "--json").json["sessions"]] == [session]


def test_this_folder_those_below_it_or_the_nearest_above(cli: Cli, tmp_path: Path, folder: Path, monkeypatch):
    deep = Path.cwd() / "packages/api"
    deep.mkdir(parents=True)
    with turnlog.open() as home:
        here = write_session(home)
        there = write_session(home, workspace=tmp_path / "other")
        below = write_session(home, workspace=deep)
    assert ids(cli("ls", "--json")) == [below, here]
    assert ids(cli("ls", "--all", "--json")) == [below, there, here]
    assert ids(cli("ls", "--all", "--limit", "1", "--json")) == [below]
    assert ids(cli("ls", "--all", "--limit", "0", "--json")) == [below, there, here]
    assert ids(cli("ls", "--workspace", str(tmp_path / "other"), "--json")) == [there]
    monkeypatch.chdir(deep)
    assert ids(cli("ls", "--json")) == [below]
    (deep / "src").mkdir()
    monkeypatch.chdir(deep / "src")
    assert ids(cli("ls", "--json")) == [below]


def test_a_repository_is_one_place(cli: Cli, folder: Path, monkeypatch):
    (Path.cwd() / ".git").mkdir()
    for name in ("one", "two"):
        (Path.cwd() / name).mkdir()
    with turnlog.open() as home:
        one, two = (write_session(home, workspace=name) for name in ("one", "two"))
    monkeypatch.chdir("one")
    assert ids(cli("ls", "--json")) == [two, one]


def test_filters_are_those_of_search(cli: Cli, folder: Path, tmp_path: Path):
    person = tmp_path / "person"
    claude_session(person, str(Path.cwd()), ID, "the flaky test")
    claude_session(person, str(Path.cwd()), OTHER, "another thing", at="2026-10-01T10:00:00.000Z")
    with turnlog.open() as home:
        ours = write_session(home)
    assert ids(cli("ls", "--json", "agent:claude-code")) == [ID, OTHER]
    assert ids(cli("ls", "--json", "flaky")) == [ours, ID]
    assert ids(cli("ls", "--json", "until:2026-10-02")) == [OTHER]
    assert ids(cli("ls", "--json", "agent:codex")) == []
    assert cli("ls", "colour:red").code == 2


def test_ours_and_those_of_three_agents_together(process: Cli, folder: Path, tmp_path: Path):
    three_agents(tmp_path / "person", Path.cwd())
    with turnlog.open() as home:
        ours = write_session(home)
    rows = process("ls", "--json").json["sessions"]
    assert {row["agent"] for row in rows} == {"my-agent", "claude-code", "codex", "gemini-cli"}
    assert rows[0]["id"] == ours
    assert len(process("ls").out.splitlines()) == len(rows) + 1
    named = {row["name"] for row in rows}
    assert {line.split()[0] for line in process("ls").out.splitlines()[1:]} == named


def test_what_json_had_before_it_still_has(cli: Cli, session: str):
    (row,) = cli("ls", "--json").json["sessions"]
    with turnlog.open() as home:
        (info,) = home.sessions()
    assert row["id"] == row["id"] == session
    assert row["handle"] == info.handle
    assert row["seq"] == info.seq
    assert row["labels"] == {}
    assert row["fork"] is None
    assert row["is_readable"] is True
    assert row["size_bytes"] == info.size_bytes
    assert row["title"] == "The race in conftest"
    assert row["turns"] == 2
    assert row["own"]["output_tokens"] == 80


def test_nothing_here_says_where_there_is_something(cli: Cli, folder: Path, tmp_path: Path):
    claude_session(tmp_path / "person", "/home/ada/other", ID, "the flaky test")
    done = cli("ls")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("hint: 1 session in other folders: `turnlog ls --all`\n")


def test_a_fork_says_whose(cli: Cli, session: str):
    with turnlog.open() as home:
        home.resume(session).fork(name="another idea")
    assert f"(fork of {session[-8:]})" in cli("ls").out


def test_an_empty_home_is_no_error_and_no_data(cli: Cli):
    done = cli("ls")
    assert (done.code, done.out) == (0, "")
    assert done.err == f"no sessions in {Path.cwd()}\n"
    assert cli("ls", "--json").json == {
        "version": 1, "sessions": [], "indexed": 0, "pending": 0, "left_out": 0, "cursor": None,
    }  # fmt: skip


def test_a_session_with_a_damaged_first_line_stays_listed(cli: Cli, log: Path):
    log.write_bytes(b"\0" * 100 + log.read_bytes()[100:])
    assert log.stem[-8:] in cli("ls", "--all").out


@pytest.mark.parametrize("columns", [30, 40, 60, 80, 100, 140])
def test_it_fits_whatever_the_width(folder: Path, tmp_path: Path, process: Cli, columns: int):
    claude_session(tmp_path / "person", str(Path.cwd()), ID, "the flaky test is flaky " * 20)
    with turnlog.open() as home:
        home.create(workspace=".", title="日本語" * 40)
    settle(process)
    with Terminal("-m", "turnlog", "ls", "--all", columns=columns) as terminal:
        assert terminal.end() == 0
    head, ours, theirs = terminal.plain.splitlines()
    assert max(len(line) + line.count("日") + line.count("本") + line.count("語") for line in (ours, theirs)) <= columns
    assert head.startswith("SESSION ")
    assert theirs.startswith("aaaaaaaa ")
    assert ours.endswith("…")


def test_a_terminal_gets_a_screenful_and_is_told_of_the_rest(folder: Path):
    with turnlog.open(checkpoints=False) as home:
        for number in range(60):
            home.create(workspace=".", title=f"Session {number}")
    with Terminal("-m", "turnlog", "ls") as terminal:
        assert terminal.end() == 0
    assert terminal.plain.count("Session ") == 36
    assert "… 24 more: --limit 0" in terminal.plain
    with Terminal("-m", "turnlog", "ls", "--limit", "0") as terminal:
        assert terminal.end() == 0
    assert terminal.plain.count("Session ") == 60


def test_colours_are_for_terminals_that_want_them(session: str, process: Cli):
    settle(process)
    with Terminal("-m", "turnlog", "ls") as terminal:
        assert terminal.end() == 0
    assert COLOUR.search(terminal.text)
    with Terminal("-m", "turnlog", "ls", NO_COLOR="1") as plain:
        assert plain.end() == 0
    assert plain.text == terminal.plain
    assert "\x1b" not in process("ls").out


def test_in_a_pipe_nothing_is_cut(folder: Path, process: Cli):
    with turnlog.open() as home:
        home.create(workspace=".", title="long " * 100)
    assert "long " * 99 in process("ls").out


def test_a_title_cannot_drive_the_terminal(folder: Path, process: Cli):
    with turnlog.open() as home:
        home.create(workspace=".", title="a \x1b[2J\u202e b\nc")
    assert "a \\x1b[2J\\u202e b c" in process("ls").out


def test_what_cannot_be_read_stays_listed(folder: Path, tmp_path: Path, process: Cli):
    path = claude_session(tmp_path / "person", str(Path.cwd()), ID, "the flaky test", "and another")
    data = path.read_bytes().split(b"\n")
    data[1] = b"{broken"
    path.write_bytes(b"\n".join(data))
    (row,) = process("ls", "--json", "--all").json["sessions"]
    assert row["damage"] == 1
    assert "(damaged in 1 place)" in process("ls").out


def test_looking_writes_no_session(cli: Cli, folder: Path):
    cli("ls")
    cli("show")
    cli("doctor")
    assert not (folder / "sessions").exists()


IMPATIENT = "import sys, turnlog.cli.frame.progress as p; p._AFTER_S = p._EVERY_S = -1.0; "
CALL = IMPATIENT + "sys.argv[1:] = ['ls', '--all']; import turnlog.cli as c; c.main()"


def test_the_first_time_shows_how_far_it_is_and_cleans_up(folder: Path, tmp_path: Path):
    three_agents(tmp_path / "person", Path.cwd())
    with Terminal("-c", CALL, columns=60) as terminal:
        assert terminal.end() == 0
    shown, cleared, rest = terminal.text.rpartition("\r\x1b[K")
    assert "indexing ███" in shown
    assert cleared
    assert COLOUR.sub("", rest).startswith("SESSION ")
    assert max(len(line) for line in shown.split("\r\x1b[K")) < 60


def test_in_a_pipe_nobody_is_told_how_far_it_is(folder: Path, tmp_path: Path):
    three_agents(tmp_path / "person", Path.cwd())
    done = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0
    assert done.stderr == ""


def test_the_first_time_can_be_interrupted_and_goes_on(folder: Path, tmp_path: Path, process: Cli):
    person = tmp_path / "person"
    for number in range(300):
        claude_session(person, str(Path.cwd()), f"{number:08x}-1111-4222-8333-444444444444", "word " * 2_000)
    with Terminal("-c", CALL) as terminal:
        terminal.until("indexing ██")
        terminal.type("\x03")
        assert terminal.end() == 130
    assert "what was read so far is kept, and the next command goes on" in terminal.plain
    assert "Traceback" not in terminal.text
    assert len(process("ls", "--json").json["sessions"]) == 300


def test_what_it_calls_them_can_be_typed(folder: Path, tmp_path: Path, process: Cli):
    """Also where a session of another folder has an id that begins alike."""
    person = tmp_path / "person"
    claude_session(person, str(Path.cwd()), ID, "here")
    claude_session(person, "/home/ada/other", ID[:-1] + "5", "elsewhere")
    settle(process)
    with Terminal("-m", "turnlog", "ls") as terminal:
        assert terminal.end() == 0
    name = terminal.plain.splitlines()[1].split()[0]
    assert process("title", name).err == process("title", ID).err
    assert process("show", name).out == process("show", ID).out != ""


def test_the_hint_to_other_folders_keeps_the_words(folder: Path, tmp_path: Path, process: Cli):
    claude_session(tmp_path / "person", "/home/ada/other", ID, "the login page")
    assert process("ls", "title:login page").err.endswith("`turnlog ls --all 'title:login page'`\n")


def test_what_was_imported_has_a_short_name_as_well(folder: Path, tmp_path: Path, process: Cli):
    claude_session(tmp_path / "person", str(Path.cwd()), ID, "here")
    assert process("import", ID).code == 0
    settle(process)
    with Terminal("-m", "turnlog", "ls") as terminal:
        assert terminal.end() == 0
    name = terminal.plain.splitlines()[1].split()[0]
    assert name == "claude-code-aaaaaaaa"
    assert process("show", name).code == 0


def test_a_session_of_claw_that_names_no_workspace_is_listed_where_it_lies(cli: Cli):
    sessions = Path.cwd() / ".claw" / "sessions"
    sessions.mkdir(parents=True)
    meta = '{"created_at_ms":1775128446000,"session_id":"session-1775128446000-0","type":"session_meta",'
    lines = [
        meta + '"updated_at_ms":1775128447000,"version":1}',
        '{"message":{"blocks":[{"text":"hi there","type":"text"}],"role":"user"},"type":"message"}',
    ]
    (sessions / "session-1775128446000-0.jsonl").write_text("\n".join(lines) + "\n")
    rows = cli("ls", "--json").json["sessions"]
    assert [(row["agent"], row["workspace"]) for row in rows] == [("claw", str(Path.cwd()))]


def test_words_find_titles_names_and_ids(cli: Cli, folder: Path, tmp_path: Path):
    claude_session(tmp_path / "person", "/home/ada/other", ID, "the login page")
    with turnlog.open() as home:
        one = home.create(title="One Hundred Thousand messages")
        one.user("hello")
        home.create(title="A hundred").user("thousand things were said")

    def ids(*words: str) -> list[str]:
        return [row["id"] for row in cli("ls", "--all", "--json", *words).json["sessions"]]

    assert ids("hundred thousand") == [one.id]
    assert ids("hundred", "-thousand", "since:1d") != [one.id]
    assert one.id in ids("thousand")
    assert ids('"hundred thousand"') == ids("hund* mess*") == ids("*undred* messages") == [one.id]
    assert ids("undred") == ids("mess") == []
    assert ids("hundred thousand", "role:user") == ids("hundred thousand", "until:2020") == []
    assert ids(one.handle) == ids(one.handle[:6]) == ids(one.id) == [one.id]
    assert ids(ID[:8]) == ids(f"claude-code:{ID[:8]}") == [ID]
    assert ids("claude") == ids(one.id[:8]) == []


@pytest.mark.parametrize(
    ("words", "hint"), [("agent:clade-code", "agent:claude-code"), ("model:sonet", "model:sonnet")]
)
@pytest.mark.parametrize("command", ["ls", "search", "usage"])
def test_a_value_that_nothing_has_is_asked_about(folder: Path, tmp_path: Path, cli: Cli, command, words, hint):
    claude_session(tmp_path / "person", str(Path.cwd()), "aaaaaaaa-1111-4222-8333-444444444444", "one")
    assert f"hint: did you mean {hint}?" in cli(command, words).err
    assert "did you mean is:running? one of" in cli(command, "is:runing").err
    assert "did you mean agent:? one of" in cli(command, "agnt:x").err


def test_the_trash_hides_nothing(cli: Cli, session: str):
    """Nobody restores what no list shows."""
    with turnlog.open() as home, home.resume(session) as parent:
        subagent = parent.spawn(agent="helper").id
    cli("archive", session)
    cli("rm", session, subagent)
    assert {row["id"] for row in cli("ls", "--deleted", "--json").json["sessions"]} == {session, subagent}
    assert cli("ls", "--deleted").err == ""
