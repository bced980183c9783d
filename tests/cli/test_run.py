"""`turnlog run`."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.scene import Cli


def entries(process: Cli) -> list[dict]:
    return process("log", "--json").json["entries"]


def test_it_says_what_a_command_changed_and_how_to_take_it_back(process: Cli):
    Path("a.txt").write_text("a\n")
    done = process("run", "--", "sh", "-c", "echo out; echo err >&2; echo b >> a.txt; mkdir d; touch d/e")
    assert (done.code, done.out) == (0, "out\n")
    assert done.err.startswith("err\n")
    assert "  modified  a.txt  2 B → 4 B\n  created   d/e    0 B\n" in done.err
    assert "2 changes: 1 created, 1 modified" in done.err
    assert "`turnlog diff` shows it, `turnlog rewind` takes it back" in done.err
    assert process("rewind", "--yes").code == 0
    assert Path("a.txt").read_text() == "a\n"
    assert not Path("d").exists()


def test_show_tells_it(process: Cli):
    process("run", "--quiet", "--", "sh", "-c", "exit 4")
    told = process("show").out
    assert "user · turnlog run" in told
    assert "$ sh -c 'exit 4'" in told
    assert "exited with 4 after" in told
    turn = entries(process)[-1]
    assert (turn["type"], turn["state"], turn["error"]) == ("turn", "failed", "CommandFailed: exited with 4")


def test_the_exit_code_is_the_commands(process: Cli):
    assert process("run", "sh", "-c", "exit 0").code == 0
    assert process("run", "sh", "-c", "exit 41").code == 41
    assert process("run", "--", "sh", "-c", "kill -TERM $$").code == 128 + signal.SIGTERM


def test_options_of_the_command_are_its_own(process: Cli):
    done = process("run", "echo", "--json", "--session", "x", "-q")
    assert (done.code, done.out) == (0, "--json --session x -q\n")
    assert "nothing changed" in done.err
    assert process("run", "--", "no-such-thing", "--json").err.startswith("error: no command 'no-such-thing'\nhint: ")


def test_a_command_that_is_not_there_is_refused_before_anything_is_written(process: Cli, folder: Path):
    done = process("run", "--", "no-such-command")
    assert (done.code, done.out) == (127, "")
    Path("data.txt").write_text("no program")
    refused = process("run", "--", "./data.txt")
    assert refused.code == 126
    assert refused.err.startswith("error: ./data.txt is not executable\nhint: ")
    folder_named = process("run", "--", "/")
    assert (folder_named.code, folder_named.err) == (126, "error: / is a folder\nhint: name a program in it\n")
    assert not (folder / "sessions").exists() or not list((folder / "sessions").iterdir())


def test_a_command_that_cannot_start_leaves_a_finished_turn(process: Cli):
    Path("broken").write_text("not a program")
    Path("broken").chmod(0o755)
    done = process("run", "--", "./broken")
    assert done.code == 126
    assert [e["state"] for e in entries(process) if e["type"] == "turn"] == ["begin", "failed"]


def test_commands_of_a_folder_go_into_one_session(process: Cli):
    process("run", "--", "sh", "-c", "echo 1 > a")
    process("run", "--", "sh", "-c", "echo 2 > a")
    Path("below").mkdir()
    inside = subprocess.run([sys.executable, "-m", "turnlog", "run", "--json", "--", "true"], cwd="below", stdout=-1)
    assert inside.returncode == 0
    [row] = process("ls", "--json").json["sessions"]
    assert (row["agent"], row["workspace"]) == ("turnlog", os.getcwd())
    process("rewind", "turn:1", "--yes")
    assert not Path("a").exists()
    process("run", "--new", "--", "true")
    assert len(process("ls", "--json").json["sessions"]) == 2


def test_a_repository_of_its_own_has_a_session_of_its_own(process: Cli):
    process("run", "--", "true")
    Path("inner/.git").mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "turnlog", "run", "-q", "--", "true"], cwd="inner", check=True)
    places = {row["workspace"] for row in process("ls", "--json").json["sessions"]}
    assert places == {os.getcwd(), f"{os.getcwd()}/inner"}


def test_an_agents_session_is_left_alone_and_may_be_named(process: Cli):
    with turnlog.open() as home:
        other = home.create(workspace=".", agent="my-agent").id
    process("run", "-q", "--", "true")
    assert {row["agent"] for row in process("ls", "--json").json["sessions"]} == {"turnlog", "my-agent"}
    assert process("run", "-q", "--session", other, "--", "true").code == 0
    assert "$ true" in process("show", other).out
    with turnlog.open() as home:
        far = home.create(workspace="/usr").id
    done = process("run", "--session", far, "--", "true")
    assert done.code == 2
    assert "works in /usr, not here" in done.err


def test_while_one_runs_another_gets_its_own_session(folder: Path, process: Cli):
    command = [sys.executable, "-m", "turnlog", "run", "-q", "--", "sh", "-c", "echo ready; read line; echo 1 > one"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdin is not None
        assert first.stdout is not None
        assert first.stdout.readline() == b"ready\n"
        assert process("run", "-q", "--", "sh", "-c", "echo 2 > two").code == 0
        first.stdin.write(b"go\n")
        first.stdin.close()
        assert first.wait(60) == 0
    sessions = process("ls", "--json").json["sessions"]
    assert len(sessions) == 2
    assert {Path(name).exists() for name in ("one", "two")} == {True}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_are_passed_on_and_the_end_is_recorded(folder: Path, process: Cli, number: signal.Signals):
    program = (  # no shell, which may hold a signal back
        "import pathlib, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "pathlib.Path('made').write_text('half'); print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-m", "turnlog", "run", "--", sys.executable, "-c", program]

    def heed() -> None:
        signal.signal(number, signal.SIG_DFL)  # under nohup it would be ignored, and should be

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, text=True, preexec_fn=heed
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 128 + number
    assert "created  made" in err
    assert [e["state"] for e in entries(process) if e["type"] == "turn"] == ["begin", "aborted"]


def test_what_nohup_ignores_stays_ignored_for_the_command_too(folder: Path, process: Cli):
    def started_in_the_background() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    script = "kill -HUP $PPID $$; kill -INT $PPID $$; echo went on"
    command = [sys.executable, "-m", "turnlog", "run", "-q", "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=started_in_the_background, check=False)
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_a_label_is_a_place_to_go_back_to(process: Cli):
    process("run", "-q", "--label", "clean", "--", "sh", "-c", "echo 1 > a")
    process("run", "-q", "--", "sh", "-c", "echo 2 > b")
    assert process("rewind", "clean", "--yes").code == 0
    assert list(Path().iterdir()) == []


def test_json_follows_on_stdout(process: Cli):
    done = process("run", "--json", "--", "sh", "-c", "echo x > new; exit 3")
    assert done.code == 3
    assert done.json["exit_code"] == 3
    assert done.json["counts"] == {"created": 1}
    assert [change["path"] for change in done.json["changes"]] == ["new"]


def test_the_home_folder_is_refused_before_anything_runs(process: Cli, monkeypatch, tmp_path: Path):
    monkeypatch.setenv("HOME", os.getcwd())
    for words in (["run", "--", "touch", "ran"], ["checkpoint"]):
        done = process(*words)
        assert done.code == 2
        assert "it is the home folder" in done.err
    assert not Path("ran").exists()
    assert process("ls", "--json").json["sessions"] == []


def test_many_changes_are_told_in_a_few_lines(process: Cli):
    script = "mkdir many; i=0; while [ $i -lt 300 ]; do echo $i > many/$i; i=$((i+1)); done; echo x > one"
    done = process("run", "--", "sh", "-c", script)
    assert "created  many/  300 paths" in done.err
    assert len(done.err.splitlines()) < 8


@pytest.mark.parametrize(
    ("words", "logged"),
    [
        (["echo", "--api-key", "hunter2"], "$ echo --api-key '[secret]'"),
        (["echo", "--token=hunter2", "x"], "$ echo '--token=[secret]' x"),
        (["env", "OPENAI_API_KEY=hunter2", "true"], "$ env 'OPENAI_API_KEY=[secret]' true"),
        (["echo", "-H", "Authorization: Bearer hunter2"], "$ echo -H 'Authorization: [secret]'"),
        (["echo", "https://ada:hunter2@example.org/x"], "$ echo 'https://ada:[secret]@example.org/x'"),
        (["sh", "-c", "PASSWORD=hunter2 true; echo --secret hunter2"],
         "$ sh -c 'PASSWORD=[secret] true; echo --secret [secret]'"),
        (["echo", '{"password": "hunter2", "n": 1}'], """$ echo '{"password": "[secret]", "n": 1}'"""),
        (["echo", f"sk-ant-{'api03'}-{'hunter2' * 9}AA"], "$ echo '[redacted: "),
        (["echo", "--token-file", "a", "--tokens=5", "sk=1"], "$ echo --token-file a --tokens=5 sk=1"),
    ],
)  # fmt: skip
def test_secrets_in_its_arguments_are_not_logged(process: Cli, folder: Path, words: list[str], logged: str):
    done = process("run", "-q", "--", *words)
    assert done.code == 0
    if words[0] == "echo":
        assert done.out == " ".join(words[1:]) + "\n", "the command itself gets them as they are"
    assert logged in process("show").out
    assert not [path for path in folder.rglob("*") if path.is_file() and b"hunter2" in path.read_bytes()]


def test_a_run_that_was_killed_owns_nothing_that_came_after(process: Cli):
    Path("a.txt").write_text("one\n")
    assert process("run", "--", "sh", "-c", "echo agent >> a.txt; echo x > new.txt; kill -9 $PPID").code == -9
    Path("mine.txt").write_text("mine")
    Path("a.txt").write_text("one\nagent\nmine\n")
    done = process("rewind", "turn:1", "--yes")
    why = "nobody can tell who changed it: turn 1 was cut short"
    assert [line.split(maxsplit=2) for line in done.out.splitlines() if why in line] == [
        ["conflict", name, why] for name in ("a.txt", "mine.txt", "new.txt")
    ]
    assert "--only PATH takes back changes without a known owner" in done.out
    assert Path("mine.txt").read_text() == "mine"
    assert process("rewind", "turn:1", "--only", "new.txt", "--yes").code == 0
    assert not Path("new.txt").exists()
    process("run", "--quiet", "--", "sh", "-c", "echo second > second.txt")
    [row] = process("ls", "--json").json["sessions"]
    assert row["turns"] == 2, "the same session goes on: nobody works in it any more"
    assert process("rewind", "--yes").code == 0
    assert sorted(path.name for path in Path().iterdir()) == ["a.txt", "mine.txt"]
    assert process("rewind", "turn:1", "--force", "--yes").code == 0
    assert {path.name: path.read_text() for path in Path().iterdir()} == {"a.txt": "one\n"}


# ── a safety net beside conversations ─────────────────────────────────────────────────────────────


def talk(**more: Any) -> str:
    with turnlog.open(checkpoints=False) as home, home.create(workspace=".", agent="my-agent", **more) as session:
        session.user("hello")
        session.assistant("hello you")
        return session.id


def test_a_run_is_listed_by_its_command(cli: Cli):
    cli("run", "-q", "--", "true")
    cli("run", "-q", "--", "sh", "-c", "echo $TOKEN > built")
    [row] = cli("ls", "--json").json["sessions"]
    assert (row["title"], row["preview"], row["is_conversation"]) == (None, "run: sh -c 'echo $TOKEN > built'", False)
    assert "run: sh -c 'echo $TOKEN > built'" in cli("ls").out
    cli("title", "@", "the build")
    assert "the build" in cli("ls").out
    assert "run: " not in cli("ls").out


def test_a_run_of_before_is_listed_by_its_command_too(cli: Cli, folder: Path):
    with turnlog.open() as home, home.create(workspace=".", agent="turnlog", title="webshop") as session:
        session.user("$ make build", agent="turnlog run")
        session.user("exited with 0 after 1.0 s", agent="turnlog run")
    assert "run: make build" in cli("ls").out
    assert "webshop\n" not in cli("ls").out


def test_a_checkpoint_alone_is_listed_by_its_name(cli: Cli):
    cli("checkpoint")
    assert cli("ls", "--json").json["sessions"][0]["preview"] == "checkpoint"
    cli("checkpoint", "before-lunch")
    assert cli("ls", "--json").json["sessions"][0]["preview"] == "checkpoint: before-lunch"


@pytest.mark.parametrize("word", [(), ("@",), ("latest",)])
def test_a_conversation_is_meant_and_not_the_run_after_it(cli: Cli, word: tuple[str, ...]):
    said = talk(resume=["my-agent", "{id}"])
    cli("run", "-q", "--", "true")
    assert cli("show", *word, "--json").json["session"] == said
    assert cli("resume", *word).out.endswith(f"my-agent {said}\n")
    assert cli("log", *word, "--json").json["session"] == said
    assert cli("title", *(word or ("@",)), "called", "so", "--json").json["session"] == said
    assert cli("tag", *word, "--json").json["session"] == said
    assert cli("show", "@-").code == 3
    with turnlog.open() as home:
        assert home.find("latest") == said
    with turnlog.Catalog() as catalog:
        assert [catalog.find(name).id for name in ("@", "latest")] == [said] * 2


def test_files_are_those_of_the_run(cli: Cli):
    said = talk()
    run = cli("run", "--json", "--", "sh", "-c", "echo b > built").json["session"]
    assert run != said
    assert cli("diff", "--json").json["session"] == run
    assert cli("checkpoints", "--json").json["session"] == run
    assert cli("rewind", "--yes", "--json").json["session"] == run
    assert not Path("built").exists()
    assert cli("undo", "--yes", "--json").json["session"] == run
    assert cli("redo", "--yes", "--json").json["session"] == run


@pytest.mark.parametrize("words", [(), ("--in", "codex"), ("@",)])
def test_a_run_cannot_be_resumed_and_one_line_says_what_it_is(cli: Cli, words: tuple[str, ...]):
    name = cli("run", "--json", "--", "echo", "a\nb").json["session"][-8:]
    done = cli("resume", *words)
    assert (done.code, done.out) == (7, "")
    error, hint = done.err.splitlines()
    assert error.startswith(f"error: session {name} is `turnlog run` of `echo 'a")
    assert hint.startswith(f"hint: `turnlog diff -s {name}` ")
    assert cli("show", *words[:0], "--json").json["session"].endswith(name)


def test_a_run_that_is_killed_has_crashed(process: Cli, folder: Path):
    command = [sys.executable, "-m", "turnlog", "run", "--", "sh", "-c", "kill -9 $PPID"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    [row] = process("ls", "--json").json["sessions"]
    assert (row["state"], row["preview"][:9]) == ("crashed", "run: sh -")


def test_what_a_run_did_is_found_and_nobody_is_sent_to_resume_it(cli: Cli):
    name = cli("run", "--json", "--", "echo", "marmalade").json["session"][-8:]
    [hit] = cli("search", "marmalade", "--json").json["hits"]
    assert hit["resume"] == ["turnlog", "diff", "--session", name]
