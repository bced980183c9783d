"""`turnlog rewind`, `undo` and `redo`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, Done
from tests.cli.terminal import Terminal
from turnlog.cli.demo.files import digest
from turnlog.errors import Conflict

# Ends the process at the N-th time that the files of the workspace are about to be changed.
KILLED = """
import os, sys
left = int(sys.argv[1])
def deadly(call):
    def instead(*args, **more):
        global left
        if "dir_fd" in more or "src_dir_fd" in more:
            left -= 1
            if left == 0:
                os._exit(9)
        return call(*args, **more)
    return instead
for name in ("unlink", "rename", "rmdir", "link", "replace"):
    setattr(os, name, deadly(getattr(os, name)))
sys.argv[1:] = sys.argv[2:]
import turnlog.cli
turnlog.cli.main()
"""


@pytest.fixture
def work(process: Cli, folder: Path) -> Path:
    """Two turns of somebody, and a user's edit between them."""
    place = Path.cwd()
    for name in ("a", "b", "c", "d"):
        (place / name).write_text(f"{name}\n")
    run(process, "echo 1 >> a; rm b; mkdir new; echo n > new/n; ln -s a link")
    (place / "user").write_text("the user's")
    run(process, "echo 2 >> a; echo 2 >> c; chmod +x d")
    return place


def run(process: Cli, script: str) -> None:
    done = process("run", "-q", "--", "sh", "-c", script)
    assert (done.code, done.err) == (0, "")


def actions(done: Done) -> dict[str, str]:
    return {step["path"]: step["action"] for step in done.json["steps"]}


def entries(process: Cli) -> list[dict]:
    return process("log", "--json").json["entries"]


def test_turn_by_turn_and_back_again_to_the_byte(work: Path, process: Cli):
    second = digest(work)
    assert process("rewind", "--yes").code == 0
    first = digest(work)
    assert (work / "a").read_text() == "a\n1\n"
    done = process("rewind", "--yes")
    assert "target: before turn 1" in done.out
    assert sorted(path.name for path in work.iterdir()) == ["a", "b", "c", "d", "user"]
    start = digest(work)
    for word, expected in (("undo", first), ("undo", second), ("redo", first), ("redo", start), ("undo", first)):
        done = process(word, "--yes")
        assert done.code == 0, done.err
        assert digest(work) == expected
        assert f"`turnlog {'redo' if word == 'undo' else 'undo'}` takes it back" in done.out


def test_the_preview_says_what_and_why_and_touches_nothing(work: Path, process: Cli):
    (work / "c").write_text("edited since\n")
    before, log = digest(work), entries(process)
    done = process("rewind", "turn:1", "--dry-run")
    assert (done.code, done.err) == (0, "")
    rows = [line.split(maxsplit=2) for line in done.out.splitlines()[1:9]]
    assert rows == [
        ["modify", "a", "changed in turn 2"],
        ["create", "b", "changed in turn 1"],
        ["mode", "d", "changed in turn 2"],
        ["delete", "link", "changed in turn 1"],
        ["delete", "new/", "changed in turn 1"],
        ["delete", "new/n", "changed in turn 1"],
        ["conflict", "c", "somebody changed it since"],
        [],
    ]
    assert "6 changes to the files: 1 create, 1 modify, 3 delete, 1 mode; stays as it is: 1 conflict" in done.out
    assert "4 messages left behind as a branch" in done.out
    assert "--force" in done.out
    assert (digest(work), entries(process)) == (before, log)


def test_what_somebody_else_changed_stays_unless_forced(work: Path, process: Cli):
    (work / "c").write_text("edited since\n")
    done = process("rewind", "--yes")
    assert done.out.endswith("left alone: 1\n`turnlog undo` takes it back\n")
    assert (work / "c").read_text() == "edited since\n"
    process("undo", "--yes")
    process("rewind", "--force", "--yes")
    assert (work / "c").read_text() == "c\n"
    process("undo", "--yes")
    assert (work / "c").read_text() == "edited since\n"


@pytest.mark.parametrize("word", ["rewind", "undo", "redo"])
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_where_nobody_can_be_asked_it_refuses(work: Path, process: Cli, word: str, more: list[str]):
    for step in {"rewind": [], "undo": ["rewind"], "redo": ["rewind", "undo"]}[word]:
        process(step, "--yes")
    before, log = digest(work), entries(process)
    done = process(word, *more)
    assert (done.code, done.out) == (2, "")
    assert f"{word} asks before it changes anything" in done.err
    assert "--yes" in done.err
    assert (digest(work), entries(process)) == (before, log)


def test_files_or_conversation_alone(work: Path, process: Cli):
    before, said = digest(work), process("show", "--json").json["messages"]
    assert process("rewind", "--conversation", "--yes").code == 0
    assert digest(work) == before
    assert len(process("show", "--json").json["messages"]) == len(said) - 2
    process("undo", "--yes")
    assert process("rewind", "--files", "--yes").code == 0
    assert digest(work) != before
    assert process("show", "--json").json["messages"] == said
    done = process("rewind", "turn:2", "--files", "--yes")
    assert done.out.endswith("nothing to do\n")


def test_only_some_paths(work: Path, process: Cli):
    said = process("show", "--json").json["messages"]
    assert actions(process("rewind", "turn:1", "--only", "new", "--only", "./link", "--dry-run", "--json")) == {
        "link": "delete", "new": "delete", "new/n": "delete",
    }  # fmt: skip
    below = subprocess.run(
        [sys.executable, "-m", "turnlog", "rewind", "turn:1", "--only", "n", "--yes"], cwd="new", capture_output=True
    )
    assert below.returncode == 0
    assert not (work / "new/n").exists()
    assert (work / "link").is_symlink()
    assert process("show", "--json").json["messages"] == said
    everything = actions(process("rewind", "turn:1", "--only", ".", "--dry-run", "--json"))
    assert everything.keys() >= {"a", "b", "link"}


def test_a_file_elsewhere_is_not_that_of_its_name_in_the_workspace(process: Cli, folder: Path, tmp_path: Path):
    (outside := tmp_path / "config.toml").write_text("1")
    with turnlog.open() as home, home.create(workspace=".") as session:
        session.track(outside)
        with session.turn():
            session.user("go")
            for path in (outside, Path("config.toml")):
                path.write_text("2")
    assert process("rewind", "--only", str(outside), "--yes").code == 0
    assert (outside.read_text(), Path("config.toml").read_text()) == ("1", "2")
    assert process("rewind", "turn:1", "--only", "config.toml", "--yes").code == 0
    assert not Path("config.toml").exists()


def test_places(work: Path, process: Cli):
    process("checkpoint", "lunch")
    process("checkpoint", "12")
    (work / "late").write_text("late")
    cases = {"lunch": "“lunch”, entry", "label:12": "“12”, entry", "12": "entry 12", "turn:2": "before turn 2"}
    for target, words in cases.items():
        done = process("rewind", target, "--dry-run")
        assert done.code == 0, done.err
        assert f"target: {words}" in done.out
    for target, problem in {
        "dinner": "no checkpoint 'dinner'", "turn:9": "no turn '9'", "turn:x": "no turn 'x'", "99999": "no entry 99999",
    }.items():  # fmt: skip
        done = process("rewind", target, "--yes")
        assert done.code == 3
        assert problem in done.err
        assert "hint: " in done.err


def test_without_turns_it_goes_to_the_last_checkpoint_asked_for(process: Cli, folder: Path):
    Path("a").write_text("1")
    process("checkpoint", "first")
    for text in ("2", "3"):
        Path("a").write_text(text)
        done = process("rewind", "--yes")
        assert done.code == 0
        assert "target: “first”" in done.out
        assert "everything that changed counts as the session's" in done.out
        assert Path("a").read_text() == "1"


def test_with_no_checkpoint_that_far_back_only_the_conversation_moves(process: Cli, folder: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(workspace=".")
        session.user("one")
        ask = session.user("two")
    done = process("rewind", str(ask.seq - 1), "--yes")
    assert done.code == 0
    assert "note: there is no checkpoint that far back, so files stay as they are" in done.out
    assert len(process("show", "--json").json["messages"]) == 1
    done = process("rewind", str(ask.seq), "--yes")
    assert "conversation: 1 message back from another branch" in done.out
    assert len(process("show", "--json").json["messages"]) == 2
    done = process("rewind", "99999", "--dry-run")
    assert (done.code, "no entry 99999" in done.err) == (3, True)
    done = process("rewind", "1", "--files", "--yes")
    assert done.code == 3
    assert "no checkpoint at or before entry 1" in done.err


def test_a_session_of_another_folder_has_to_be_named(work: Path, process: Cli, tmp_path: Path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    for word in ("rewind", "undo", "redo"):
        done = subprocess.run(
            [sys.executable, "-m", "turnlog", word, "--yes"], cwd=other, capture_output=True, text=True
        )
        assert done.returncode == 3
        assert done.stderr.startswith(f"error: no checkpoints for {other} yet\nhint: `turnlog run -- AGENT`")


def test_nothing_to_undo_is_said(work: Path, process: Cli):
    assert process("undo", "--yes").err.startswith("error: there is no rewind to undo\n")
    assert process("redo", "--yes").code == 3


def test_json_has_everything(work: Path, process: Cli):
    done = process("rewind", "turn:2", "--yes", "--json")
    assert (done.code, done.err) == (0, "")
    told = done.json
    assert (told["version"], told["action"], told["done"], told["dry_run"]) == (1, "rewind", True, False)
    assert actions(done) == {"a": "modify", "c": "modify", "d": "mode"}
    assert told["result"] == told["counts"] == {"modify": 2, "mode": 1}
    assert told["entry"] == entries(process)[-1]["seq"]
    assert told["problems"] == []


def test_names_that_are_not_text_are_shown_and_restored(process: Cli, folder: Path):
    name = b"caf\xe9\x1b[31m\n.txt"
    with open(name, "wb") as file:
        file.write(b"1")
    run(process, 'for f in *; do echo 2 >> "$f"; done')
    done = process("rewind", "--dry-run")
    assert "caf\\xe9\\x1b[31m\\x0a.txt" in done.out
    assert "caf\\xe9" in process("diff", "--stat").out
    assert process("rewind", "--yes", "--only", os.fsdecode(name)).code == 0
    assert Path(os.fsdecode(name)).read_bytes() == b"1"


def test_thousands_of_files_are_cut_on_the_screen_and_counted(process: Cli, folder: Path):
    run(process, "mkdir 00; i=0; while [ $i -lt 400 ]; do echo > $i.txt; echo > 00/$i; i=$((i+1)); done")
    done = process("rewind", "--yes")
    assert "delete  00/ and 400 more in it" in done.out
    assert "801 changes to the files: 801 delete" in done.out
    assert "… and more: " in done.out
    assert len(done.out.splitlines()) < 45
    process("undo", "--yes")
    assert len(process("rewind", "--dry-run").out.splitlines()) > 801


# ── interrupted ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def interrupted(work: Path) -> Path:
    """A rewind that was killed after its first change."""
    killed = subprocess.run([sys.executable, "-c", KILLED, "2", "rewind", "turn:1", "--yes"], capture_output=True)
    assert killed.returncode == 9, killed.stderr
    return work


def test_an_interrupted_rewind_is_reported_everywhere(interrupted: Path, process: Cli):
    for words in (["show"], ["log"], ["checkpoints"], ["diff"], ["show", "--last", "1"]):
        done = process(*words)
        assert done.code == 0
        assert "a rewind was begun and not finished; `turnlog rewind --continue" in done.err, words
    found = process("doctor")
    assert found.code == 6
    assert "`turnlog rewind --continue -s" in found.out.replace("\n    ", "")
    before = digest(interrupted)
    for words in (
        ["rewind", "--yes"], ["rewind", "-n"], ["undo", "--yes"], ["redo", "--yes"], ["checkpoint"], ["run", "ls"],
    ):  # fmt: skip
        done = process(*words)
        assert done.code == 5
        assert "was begun and not finished" in done.err
        assert "--continue" in done.err
    assert digest(interrupted) == before


@pytest.mark.parametrize("word", ["--continue", "--abort"])
def test_it_is_finished_or_taken_back(interrupted: Path, process: Cli, word: str):
    done = process("rewind", word)
    assert done.code == 0, done.err
    names = sorted(path.name for path in interrupted.iterdir())
    if word == "--continue":
        assert names == ["a", "b", "c", "d", "user"]
        assert "rewind done" in done.out
        assert process("undo", "--yes").code == 0
    else:
        assert names == ["a", "c", "d", "link", "new", "user"]
        assert (interrupted / "a").read_text() == "a\n1\n2\n"
        assert "abort done" in done.out
    assert process("doctor").code == 0
    assert "not finished" not in process("show").err
    again = process("rewind", word)
    assert again.code == 3
    assert "was interrupted" in again.err


@pytest.mark.parametrize("word", ["--continue", "--abort"])
def test_to_finish_it_is_no_dry_run(interrupted: Path, process: Cli, word: str):
    before = digest(interrupted)
    done = process("rewind", word, "-n")
    assert (done.code, f"error: {word} and --dry-run do not go together" in done.err) == (2, True)
    assert digest(interrupted) == before


@pytest.mark.parametrize("word", ["--continue", "--abort"])
def test_an_agent_that_finishes_it_is_noted(interrupted: Path, process: Cli, monkeypatch, word: str):
    monkeypatch.setenv("CLAUDECODE", "1")
    assert process("rewind", word).code == 0
    asked = [entry for entry in entries(process) if entry["type"] == "note"]
    assert f"rewind {word}, asked for by" in str(asked)
    assert process("rewind", word).code == 3
    assert len([entry for entry in entries(process) if entry["type"] == "note"]) == 1


def test_what_the_user_edits_meanwhile_stays_and_is_named(interrupted: Path, process: Cli):
    (interrupted / "a").write_text("edited while it lay there")
    done = process("rewind", "--continue")
    assert done.code == 5
    assert "warning: a stays as it is: " in done.err
    assert (interrupted / "a").read_text() == "edited while it lay there"
    assert (interrupted / "b").read_text() == "b\n"


@pytest.mark.parametrize(
    "words",
    [["--continue", "--abort"], ["--continue", "12"], ["--abort", "--files"], ["--files", "--conversation"]],
)
def test_what_does_not_go_together_is_refused(work: Path, process: Cli, words: list[str]):
    done = process("rewind", *words)
    assert done.code == 2
    assert "--help`" in done.err or "leave one of them out" in done.err


def test_a_damaged_blob_is_named_and_the_others_are_restored(process: Cli, folder: Path):
    noise = os.urandom(20_000)
    Path("noise").write_bytes(noise)
    Path("text").write_text("one\n")
    run(process, "rm noise; echo two > text")
    [pack] = [path for path in (folder / "blobs").iterdir() if noise[:100] in path.read_bytes()]
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes().replace(noise[500:510], noise[500:510][::-1]))
    done = process("rewind", "--yes", "--json")
    assert done.code == 5
    [problem] = done.json["problems"]
    assert problem["path"] == "noise"
    assert "sha256:" in problem["problem"]
    assert Path("text").read_text() == "one\n"
    assert not Path("noise").exists()


def test_a_checkpoint_by_name_takes_back_what_was_done_by_hand_since(process: Cli):
    Path("a.txt").write_text("one\n")
    process("run", "--quiet", "--", "sh", "-c", "echo two >> a.txt")
    process("checkpoint", "c1")
    Path("a.txt").write_text("by hand\n")
    Path("new.txt").write_text("by hand\n")
    done = process("rewind", "c1", "--yes")
    assert "2 changes to the files: 1 modify, 1 delete" in done.out
    assert "note: no turn of the session since, so everything that changed counts as the session's" in done.out
    assert (Path("a.txt").read_text(), Path("new.txt").exists()) == ("one\ntwo\n", False)
    assert process("undo", "--yes").code == 0
    assert (Path("a.txt").read_text(), Path("new.txt").read_text()) == ("by hand\n", "by hand\n")


def test_what_was_changed_since_is_left_alone_unless_forced(work: Path, process: Cli):
    assert process("rewind", "turn:2", "--yes").out.count("left alone") == 0
    for name in ("a", "c"):
        (work / name).write_text("mine\n")
    (work / "d").write_text("mine\n")
    assert "--force overwrites what is in conflict\n" in process("undo", "--dry-run").out
    assert "conflict" not in process("undo", "--dry-run", "--force").out
    assert process("undo", "--yes").out.splitlines()[-2].endswith(": no file changed; left alone: 3")
    process("rewind", "turn:2", "--yes", "--force")
    (work / "c").write_text("mine again\n")
    process("undo", "--yes", "--force")
    assert (work / "c").read_text() == "mine\n"


def test_what_is_not_there_is_said_before_that_nobody_can_be_asked(work: Path, process: Cli):
    for words in (["rewind", "nowhere"], ["undo"], ["redo"], ["rewind", "--session", "nowhere"]):
        done = process(*words)
        assert done.code == 3, done.err
        assert "terminal" not in done.err
    assert "there is no terminal" in process("rewind", "turn:2").err


@pytest.mark.parametrize("what", ["rewind", "undo"])
def test_what_changes_while_it_asks_makes_it_another_plan_and_nothing_is_done(work: Path, process: Cli, what: str):
    if what == "undo":
        assert process("rewind", "--yes").code == 0
    with Terminal("-m", "turnlog", what) as terminal:
        terminal.until(f"{what}?")
        (work / "c").unlink()
        before = digest(work)
        terminal.type("y\n")
        assert terminal.end() == Conflict.exit_code
        assert "something changed since the plan was shown" in terminal.text
    assert digest(work) == before


def test_what_is_said_while_it_asks_is_not_left_behind_unseen(work: Path, process: Cli):
    with turnlog.open() as home:
        session = home.create(workspace=".")
        with session.turn():
            session.user("first")
        with Terminal("-m", "turnlog", "rewind", "-s", session.id) as terminal:
            terminal.until("rewind?")
            session.user("second")
            terminal.type("y\n")
            assert terminal.end() == Conflict.exit_code
        assert len(list(session.messages())) == 2


@pytest.mark.parametrize("word", ["--continue", "--abort"])
def test_a_program_is_told_how_it_was_finished(interrupted: Path, process: Cli, word: str):
    (interrupted / "a").write_text("edited while it lay there")
    done = process("rewind", word, "--json")
    assert done.code == 5
    assert (done.json["done"], done.json["dry_run"]) == (True, False)
    assert [one["path"] for one in done.json["problems"]] == ["a"]
