"""What went wrong with the checkpoints of other agents, one test each. The fault is in the docstring."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import turnlog
from turnlog.workspace.folderscan import REPOSITORY


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_bytes(b"one\n")
    (folder / ".gitignore").write_text("*.log\nbuild/\n.env\n")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as opened:
        yield opened


def git(folder: Path, *words: str) -> str:
    names = ("GIT_AUTHOR", "GIT_COMMITTER")
    who = {f"{name}_{part}": "x@example.org" for name in names for part in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *words], cwd=folder, capture_output=True, encoding="utf-8", check=True, env={**os.environ, **who}
    )
    return done.stdout


def turn(session: turnlog.Session, *commands: str) -> None:
    """A turn in which an agent runs shell commands."""
    with session.turn():
        session.user("go")
        for command in commands:
            subprocess.run(command, shell=True, check=True, cwd=session.workspace)


# ── files that were somebody else's ───────────────────────────────────────────────────────────────────


def test_files_the_user_made_since_are_not_cleaned_away(home, place: Path):
    """Restore ended with `git clean -fd`, and deleted a gigabyte of untracked output, or virtually everything."""
    s = home.create(workspace=place)
    turn(s, "echo agent > agent.txt")
    (place / "thesis.tex").write_text("three years of work")
    (place / "results").mkdir()
    (place / "results/run1.csv").write_text("1,2,3")
    s.rewind(turns=1)
    assert not (place / "agent.txt").exists()
    assert (place / "thesis.tex").read_text() == "three years of work"
    assert (place / "results/run1.csv").read_text() == "1,2,3"


def test_files_the_user_made_between_turns_are_not_cleaned_away(home, place: Path):
    """Everything that came after the checkpoint counted as the agent's, whoever had made it."""
    s = home.create(workspace=place)
    turn(s, "echo 1 > one.txt")
    (place / "mine.txt").write_text("mine")
    turn(s, "echo 2 > two.txt")
    s.rewind(turns=2)
    assert sorted(path.name for path in place.iterdir()) == [".gitignore", "mine.txt", "src"]


def test_the_ignore_file_goes_back_and_what_it_hid_stays(home, place: Path):
    """The old ignore file was restored first; the cleaning that followed then deleted what the new one had hidden."""
    s = home.create(workspace=place)
    (place / "data.sqlite").write_bytes(b"the user's data")
    turn(s, "echo '*.sqlite' >> .gitignore")
    s.rewind(turns=1)
    assert (place / ".gitignore").read_text() == "*.log\nbuild/\n.env\n"
    assert (place / "data.sqlite").read_bytes() == b"the user's data"


def test_what_an_edited_ignore_file_uncovered_is_not_taken_for_new(home, place: Path):
    """The other way round: what was ignored before the turn and is not after it looked like the agent's."""
    (place / ".env").write_text("SECRET=1")
    (place / "build").mkdir()
    (place / "build/model.bin").write_bytes(b"\0" * 100)
    s = home.create(workspace=place)
    turn(s, "echo '*.log' > .gitignore")
    actions = {step.raw: step.action for step in s.plan_rewind(turns=1).steps}
    assert actions == {b".gitignore": "modify", b"build": "unknown"}
    s.rewind(turns=1)
    assert (place / ".env").read_text() == "SECRET=1"
    assert (place / "build/model.bin").exists()


def test_an_ignore_file_that_ignores_itself_counts(home, place: Path):
    """A virtual environment ignores all of itself, its ignore file included; without that file, all of it looks new."""
    (place / "venv/bin").mkdir(parents=True)
    (place / "venv/.gitignore").write_text("*\n")
    (place / "venv/bin/python").write_text("#!")
    s = home.create(workspace=place)
    turn(s, "rm venv/.gitignore")
    s.rewind(turns=1)
    assert (place / "venv/bin/python").read_text() == "#!"
    assert (place / "venv/.gitignore").read_text() == "*\n"


def test_another_sessions_work_is_not_reverted(home, place: Path):
    """Undo in one session took back what all sessions of that folder had done."""
    mine, other = home.create(workspace=place), home.create(workspace=place)
    turn(mine, "echo mine > mine.txt", "echo mine >> src/a.py")
    turn(other, "echo other > other.txt", "mkdir lib && echo x > lib/x.py")
    mine.rewind(turns=1)
    assert (place / "other.txt").read_text() == "other\n"
    assert (place / "lib/x.py").read_text() == "x\n"
    assert (place / "src/a.py").read_bytes() == b"one\n"


def test_redo_puts_back_what_was_undone_and_nothing_else(home, place: Path):
    """Redo checked out the whole tree of that time, over whatever had happened to other files since."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py")
    s.rewind(turns=1)
    (place / "notes.md").write_text("written after the rewind")
    s.undo()
    assert (place / "src/a.py").read_text() == "one\nagent\n"
    assert (place / "notes.md").read_text() == "written after the rewind"


def test_committed_work_of_the_user_is_not_removed(home, place: Path):
    """A revert to an old tree removed 1,300 lines that the user had committed meanwhile."""
    git(place, "init", "-q")
    s = home.create(workspace=place)
    turn(s, "echo agent > agent.py")
    (place / "src/a.py").write_text("one\n" + "user\n" * 1300)
    git(place, "add", "-A")
    git(place, "commit", "-qm", "mine")
    s.rewind(turns=1)
    assert (place / "src/a.py").read_text().count("user") == 1300


def test_what_the_user_changed_after_the_agent_is_kept_and_named(home, place: Path):
    """Restoring overwrote edits made since by hand, without a word and without a way back."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py")
    (place / "src/a.py").write_text("agent's, corrected by hand")
    (step,) = s.plan_rewind(turns=1).steps
    assert (step.action, step.reason) == ("conflict", "somebody changed it since")
    assert s.rewind(turns=1).files == {"conflict": 1}
    assert (place / "src/a.py").read_text() == "agent's, corrected by hand"


# ── files that did not come back ──────────────────────────────────────────────────────────────────────


def test_what_the_shell_did_comes_back(home, place: Path):
    """Only edits made with the edit tool were remembered: what `rm`, `mv` and `sed -i` did could not be restored."""
    (place / "src/old").mkdir()
    (place / "src/old/x.py").write_text("x")
    s = home.create(workspace=place)
    turn(s, "rm -rf src/old", "mv src/a.py src/b.py", "sed -i s/one/two/ src/b.py")
    s.rewind(turns=1)
    assert (place / "src/old/x.py").read_text() == "x"
    assert (place / "src/a.py").read_text() == "one\n"
    assert not (place / "src/b.py").exists()


def test_a_tracked_file_that_was_deleted_comes_back(home, place: Path):
    """A file that git tracked and the agent deleted was not in the list of changes, and stayed deleted."""
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    s = home.create(workspace=place)
    turn(s, "git rm -q src/a.py")
    s.rewind(turns=1)
    assert (place / "src/a.py").read_bytes() == b"one\n"


def test_binary_files_come_back_to_the_byte(home, place: Path):
    """Contents were kept as text: a binary file came back wiped, or with its bytes replaced."""
    data = bytes(range(256)) * 300
    (place / "logo.png").write_bytes(data)
    (place / "latin").write_bytes("Grüße".encode("latin-1"))
    s = home.create(workspace=place)
    turn(s, "printf '' > logo.png", "rm latin")
    s.rewind(turns=1)
    assert (place / "logo.png").read_bytes() == data
    assert (place / "latin").read_bytes() == "Grüße".encode("latin-1")


def test_a_file_the_agent_made_is_gone_and_not_left_empty(home, place: Path):
    """Absent was remembered as empty, so a created file was left behind with nothing in it."""
    (place / "empty").write_bytes(b"")
    s = home.create(workspace=place)
    turn(s, "echo x > made.py", "echo x > empty", "mkdir -p deep/er && echo x > deep/er/y")
    s.rewind(turns=1)
    assert not (place / "made.py").exists()
    assert not (place / "deep").exists()
    assert (place / "empty").read_bytes() == b""


def test_line_ends_and_modes_are_as_they_were(home, place: Path):
    """A repository beside the user's normalised line ends by `.gitattributes` and made 0640 into 0644."""
    (place / ".gitattributes").write_text("* text=auto eol=lf\n")
    (place / "dos.bat").write_bytes(b"@echo off\r\nexit\r\n")
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o750)
    (place / "dos.bat").chmod(0o640)
    s = home.create(workspace=place)
    turn(s, "rm dos.bat", "chmod 644 run.sh")
    s.rewind(turns=1)
    assert (place / "dos.bat").read_bytes() == b"@echo off\r\nexit\r\n"
    assert (place / "dos.bat").stat().st_mode & 0o777 == 0o640
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o750


def test_a_nested_repository_is_left_alone_and_named(home, place: Path):
    """Nested repositories were kept as a bare commit id, or had their `.git` renamed and left that way."""
    inner = place / "vendor/lib"
    inner.mkdir(parents=True)
    (inner / "code.c").write_text("int x;")
    s = home.create(workspace=place)
    turn(s, "echo 'int y;' >> vendor/lib/code.c")
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    before = sorted(str(path) for path in inner.rglob("*"))
    turn(s, "echo agent >> src/a.py", "echo 'int z;' >> vendor/lib/code.c", "echo n > vendor/lib/new.c")
    skipped = s.checkpoints()[-1].skipped
    assert [(item["path"], item["reason"]) for item in skipped] == [("vendor/lib", REPOSITORY)]
    assert [item.path for item in s.diff(turn=2)] == ["src/a.py"]
    actions = {step.raw: (step.action, step.reason) for step in s.plan_rewind(turns=2).steps}
    assert actions == {
        b"src/a.py": ("modify", "changed in turn 2"),
        b"vendor/lib/code.c": ("unknown", f"not covered: {REPOSITORY}"),
    }
    s.rewind(turns=2, force=True)
    assert (place / "src/a.py").read_text() == "one\n"
    assert (inner / "code.c").read_text() == "int x;int y;\nint z;\n"
    assert (inner / "new.c").exists()
    assert [path for path in before if not Path(path).exists()] == []
    own = home.create(workspace=inner)
    turn(own, "rm code.c")
    own.rewind(turns=1)
    assert (inner / "code.c").exists()


def test_a_folder_that_becomes_a_repository_is_not_told_as_deleted(home, place: Path):
    """Everything in it went out of sight at once, and looked deleted."""
    (place / "vendor/lib").mkdir(parents=True)
    (place / "vendor/lib/code.c").write_text("int x;")
    s = home.create(workspace=place)
    turn(s, "mkdir vendor/lib/.git")
    assert [(item.path, item.action) for item in s.diff(turn=1)] == [("vendor/lib", "modified")]
    assert [(step.raw, step.action) for step in s.plan_rewind(turns=1).steps] == [(b"vendor/lib", "unknown")]
    s.rewind(turns=1, force=True)
    assert (place / "vendor/lib/code.c").read_text() == "int x;"


def test_folders_with_common_names_are_covered(home, place: Path):
    """A fixed list of names to leave out (`bin`, `env`, `vendor`, `dist`) hid files that were somebody's sources."""
    for name in ("bin", "env", "vendor", "dist", "node_modules"):
        (place / name).mkdir()
        (place / name / "source.py").write_text("keep")
    s = home.create(workspace=place)
    turn(s, "rm -rf bin env vendor dist node_modules")
    s.rewind(turns=1)
    for name in ("bin", "env", "vendor", "dist", "node_modules"):
        assert (place / name / "source.py").read_text() == "keep"


def test_it_works_without_git_and_outside_of_a_repository(home, place: Path, monkeypatch):
    """No repository, no checkpoints: undo did nothing there, and said nothing."""
    monkeypatch.setenv("PATH", "/nowhere")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "src/a.py").write_text("changed")
    s.rewind(turns=1)
    assert (place / "src/a.py").read_bytes() == b"one\n"


def test_large_files_are_named_where_they_are_not_covered(tmp_path: Path, place: Path):
    """Untracked files over 2 MiB were skipped without a word."""
    with turnlog.open(tmp_path / "small", max_file_bytes=1000) as home:
        s = home.create(workspace=place)
        (place / "model.bin").write_bytes(b"x" * 1001)
        (skipped,) = s.checkpoint().skipped
        assert (skipped["path"], skipped["reason"]) == ("model.bin", "larger than 1000 bytes")
        turn(s, "rm model.bin")
        assert [(step.raw, step.action) for step in s.plan_rewind(turns=1).steps] == [(b"model.bin", "unknown")]


def test_a_file_outside_the_folder_is_covered_once_it_is_tracked(home, place: Path, tmp_path: Path):
    """Edits outside of the current folder were the gap of every checkpoint made with git."""
    config = tmp_path / "config.toml"
    config.write_text("a = 1\n")
    s = home.create(workspace=place)
    s.track(config)
    turn(s, f"echo 'b = 2' >> {config}")
    assert [(item.path, item.action) for item in s.diff(turn=1)] == [(str(config), "modified")]
    s.rewind(turns=1)
    assert config.read_text() == "a = 1\n"


def test_a_fork_can_go_back_too(home, place: Path):
    """Forks had no undo: the copies belonged to the session they were made in."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py")
    fork = s.fork()
    fork.rewind(turns=1)
    assert (place / "src/a.py").read_bytes() == b"one\n"
    fork.undo()
    assert (place / "src/a.py").read_text() == "one\nagent\n"


# ── the wrong checkpoint ──────────────────────────────────────────────────────────────────────────────


def test_a_rewind_goes_to_that_turn_and_not_to_a_stale_baseline(home, place: Path, tmp_path: Path):
    """The tree to compare with was remembered once and never again: for 25 days, undo went back to that."""
    s = home.create(workspace=place)
    for number in range(4):
        turn(home.resume(s.id), f"echo {number} > counter")
        with turnlog.open(tmp_path / "home") as again:
            (place / "counter").write_text(f"user after {number}\n")
            turn(again.resume(s.id), f"echo agent {number} >> src/a.py")
    s = home.resume(s.id)
    s.rewind(turns=1)
    assert (place / "src/a.py").read_text() == "one\nagent 0\nagent 1\nagent 2\n"
    assert (place / "counter").read_text() == "user after 3\n"


def test_a_change_that_keeps_size_and_time_is_seen(home, place: Path):
    """Two edits within one tick of the clock, or a tool that restores mtime, were taken for no change."""
    s = home.create(workspace=place)
    s.checkpoint()
    status = (place / "src/a.py").stat()
    turn(s, "printf 'two\\n' > src/a.py")
    os.utime(place / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    turn(s, "printf 'six\\n' > src/a.py")
    os.utime(place / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [len(s.diff(turn=number)) for number in (1, 2)] == [1, 1]


def test_the_undo_of_an_undo_is_there_after_a_restart(home, place: Path, tmp_path: Path):
    """Snapshots and the rewound position were only in memory, and gone with the process."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py")
    s.rewind(turns=1)
    with turnlog.open(tmp_path / "home") as again:
        again.resume(s.id).undo()
    assert (place / "src/a.py").read_text() == "one\nagent\n"
    with turnlog.open(tmp_path / "home") as again:
        again.resume(s.id).redo()
    assert (place / "src/a.py").read_text() == "one\n"


# ── the user's repository, the disk, the home folder ──────────────────────────────────────────────────


def test_the_users_repository_is_not_touched(home, place: Path):
    """Commits, refs, stashes and the index of the user's own repository were used, clobbered and filled up."""
    git(place, "init", "-q")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "first")
    (place / "src/a.py").write_text("staged\n")
    git(place, "add", "-A")

    def everything() -> dict[str, tuple[float, bytes]]:
        return {str(p): (p.stat().st_mtime, p.read_bytes()) for p in (place / ".git").rglob("*") if p.is_file()}

    before = everything()
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py", "echo x > new.py")
    s.rewind(turns=1)
    s.undo()
    s.redo()
    home.gc()
    assert everything() == before


def test_a_file_that_changes_a_little_every_turn_does_not_fill_the_disk(home, place: Path):
    """100 GB of objects that nobody referred to, and no way to be rid of them."""
    for number in range(200):
        (place / f"src/{number}.py").write_text(f"# {number}\n" * 50)
    s = home.create(workspace=place)
    turn(s, "true")
    base = home.disk()["blobs"]
    for number in range(30):
        turn(s, f"echo {number} > src/0.py")
    assert home.disk()["blobs"] < base + 30 * 30_000
    home.gc()
    assert home.disk()["blobs"] < base + 30 * 20_000
    session = s.id
    home.purge(session)
    home.gc()
    assert home.disk()["blobs"] == 0


def test_a_checkpoint_that_failed_leaves_nothing_behind(tmp_path: Path, place: Path):
    """Half-written packs of snapshots that were interrupted: 533 GB of them."""
    with turnlog.open(tmp_path / "home", quota_bytes=50_000) as home:
        s = home.create(workspace=place)
        for number in range(40):
            (place / f"{number}.bin").write_bytes(os.urandom(5000))
        with pytest.raises(turnlog.OutOfSpace):
            s.checkpoint()
        assert home.disk()["blobs"] == 0
        assert list((tmp_path / "home/blobs").iterdir()) == []


def test_the_home_folder_is_refused(tmp_path: Path, monkeypatch):
    """Started in the home folder, an agent took snapshots of all of it: 318 GB."""
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "me/project").mkdir(parents=True)
    with turnlog.open(tmp_path / "elsewhere") as home:
        for folder in (tmp_path / "me", tmp_path, Path("/")):
            with pytest.raises(turnlog.Invalid, match="never scanned"):
                home.create(workspace=folder).checkpoint()
        home.create(workspace=tmp_path / "me/project").checkpoint()


def test_its_own_folder_in_the_workspace_is_left_out(place: Path):
    """A snapshot that contains the snapshots grows with every one taken."""
    with turnlog.open(place / ".turnlog") as home:
        s = home.create(workspace=place)
        for _ in range(3):
            turn(s, "true")
        (skipped,) = s.checkpoints()[-1].skipped
        assert (skipped["path"], skipped["reason"]) == (".turnlog", "Turnlog's own folder")
        sizes = [home.disk()["blobs"]]
        turn(s, "true")
        assert home.disk()["blobs"] == sizes[0]


def test_a_restore_through_a_link_goes_nowhere(home, place: Path, tmp_path: Path):
    """Files were restored through symbolic links, to wherever those pointed by then."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("one\nagent\n")
    shutil.rmtree(place / "src")
    (place / "src").symlink_to(outside)
    s.rewind(turns=1, force=True)
    assert (outside / "a.py").read_text() == "one\nagent\n"


def test_a_plan_changes_nothing_and_says_everything(home, place: Path):
    """A destructive default: no preview, and the answer to the question was yes."""
    s = home.create(workspace=place)
    turn(s, "echo agent >> src/a.py", "echo x > new.py", "chmod 600 .gitignore")
    (place / "new.py").write_text("the user's by now")
    seq, disk = s.seq, home.disk()
    plan = s.plan_rewind(turns=1)
    assert {step.raw: step.action for step in plan.steps} == {
        b".gitignore": "mode", b"new.py": "conflict", b"src/a.py": "modify",
    }  # fmt: skip
    assert (s.seq, home.disk()) == (seq, disk)
