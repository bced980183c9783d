"""Begun in a subfolder: the repository is covered, and its sessions are meant."""

import os
import subprocess
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli, write_session
from tests.clock import tick


def git(folder: Path, *words: str) -> None:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **quiet})


@pytest.fixture
def repository(folder: Path) -> Path:
    """A repository, and we are in a subfolder of it."""
    place = Path.cwd()
    (place / "packages/api").mkdir(parents=True)
    (place / "README.md").write_text("read me\n")
    (place / "packages/api/a.py").write_text("a\n")
    (place / ".git").mkdir()
    os.chdir(place / "packages/api")
    return place


def places(cli: Cli) -> list[str]:
    return [row["workspace"] for row in cli("ls", "--all", "--json").json["sessions"]]


def test_a_command_begun_in_a_subfolder_is_covered_in_all_of_the_repository(repository: Path, cli: Cli):
    done = cli("run", "--", "sh", "-c", "rm ../../README.md; echo two > a.py")
    assert f"(session {cli('ls', '--json').json['sessions'][0]['handle']}, {repository})" in done.err
    assert places(cli) == [str(repository)]
    done = cli("rewind", "--yes")
    assert f"paths are from {repository}\n" in done.out
    assert (repository / "README.md").read_text() == "read me\n"
    assert Path("a.py").read_text() == "a\n"
    cli("undo", "--yes")
    cli("rewind", "--yes", "--only", "a.py")
    assert Path("a.py").read_text() == "a\n"
    assert not (repository / "README.md").exists()
    assert cli("rewind", "--yes", "--only", "../../README.md").code == 0
    assert (repository / "README.md").exists()


def talk(home: turnlog.Home, place: Path) -> str:
    """A session in which something was said, and no files were kept."""
    session = home.create(workspace=place)
    session.user("hello there, mend the pump")
    return session.id


def test_files_are_those_of_the_newest_session_that_has_any(repository: Path, cli: Cli):
    cli("run", "-q", "--", "sh", "-c", "rm ../../README.md")
    [run] = [row["id"] for row in cli("ls", "--all", "--json").json["sessions"]]
    with turnlog.open(clock=tick) as home:
        newer = talk(home, repository)
    assert cli("show", "--json").json["session"] == newer
    assert "README.md" in cli("diff", "--stat").out
    assert cli("checkpoints", "--json").json["session"] == run
    assert cli("rewind", "--yes").code == 0
    assert (repository / "README.md").exists()
    assert cli("undo", "--yes").code == 0
    assert not (repository / "README.md").exists()


def test_where_nothing_has_files_the_newest_is_meant(repository: Path, cli: Cli):
    with turnlog.open(clock=tick) as home:
        talk(home, repository)
        newest = talk(home, repository)
    assert cli("checkpoints", "--json").json["session"] == newest


def test_here_is_the_folder_itself(repository: Path, cli: Cli):
    assert cli("checkpoint", "--json").json["workspace"] == str(repository)
    assert cli("checkpoint", "--here", "--json").json["workspace"] == os.getcwd()
    cli("run", "--here", "-q", "--", "true")
    cli("run", "-q", "--", "true")
    assert sorted(places(cli)) == [str(repository), os.getcwd()]
    assert cli("run", "--here", "--session", "x", "--", "true").code == 2
    assert cli("checkpoint", "--here", "--session", "x").code == 2


def test_in_a_subfolder_the_sessions_of_the_root_are_meant_too(repository: Path, cli: Cli):
    os.chdir(repository)
    with turnlog.open(clock=tick) as home:
        root = write_session(home, workspace=repository)
    assert cli("run", "-q", "--session", root, "--", "sh", "-c", "echo two > README.md").code == 0
    os.chdir(repository / "packages/api")
    with turnlog.open(clock=tick) as home:
        own = home.create(workspace=".", agent="my-agent")
        own.user("hello")
    assert cli("show", "@", "--json").json["session"] == own.id
    assert cli("show", "@-", "--json").json["session"] == root
    with turnlog.open(clock=tick) as home:
        home.resume(root).note("newer")
    assert cli("show", "@", "--json").json["session"] == root
    assert "modified  README.md" in cli("diff", "--stat").out
    assert {row["id"] for row in cli("ls", "--json").json["sessions"]} == {root, own.id}
    assert cli("rewind", "--yes").code == 0
    assert (repository / "README.md").read_text() == "read me\n"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_repository_in_another_is_on_its_own(repository: Path, cli: Cli, kind: str):
    with turnlog.open(clock=tick) as home:
        outer = write_session(home, workspace=repository)
    if kind == "folder":
        Path(".git").mkdir()
    else:
        Path(".git").write_text("gitdir: /nowhere/at/all\n")
    os.mkdir("src")
    os.chdir("src")
    assert cli("ls", "--json").json["sessions"] == []
    assert cli("show", "@").code == 3
    assert cli("rewind", "--yes").code == 3
    assert cli("checkpoint", "--json").json["workspace"] == str(repository / "packages/api")
    assert cli("show", "@", "--json").json["session"] != outer


@pytest.mark.parametrize("whose", ["the person's home", "above it"])
def test_a_repository_of_the_home_folder_is_not_taken_and_that_is_said(
    repository: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, whose: str
):
    monkeypatch.setenv("HOME", str(repository if whose == "the person's home" else repository / "packages/ada"))
    done = cli("run", "--", "sh", "-c", "echo two > a.py")
    assert done.code == 0
    assert done.err.startswith(f"note: only {os.getcwd()} is covered, not the repository {repository}: ")
    assert places(cli) == [os.getcwd()]
    assert cli("run", "-q", "--", "true").err == ""  # once, when it opens
    assert cli("rewind", "turn:1", "--yes").code == 0
    assert Path("a.py").read_text() == "a\n"


def test_a_program_gets_the_folder_it_gives(repository: Path):
    with turnlog.open(clock=tick) as home:
        assert home.create(workspace=".").workspace == os.getcwd()


# ── what git is told ──────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def versioned(repository: Path) -> Path:
    (repository / ".git").rmdir()
    git(repository, "init", "-q", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "first")
    return repository


def test_git_is_left_alone_and_what_changed_in_it_is_said(versioned: Path, cli: Cli):
    cli("run", "-q", "--", "sh", "-c", "echo two > a.py; git status")
    done = cli("rewind", "--yes")
    assert "note: " not in done.out  # only times changed in it
    git(versioned, "checkout", "-qb", "topic")
    cli("undo", "--yes")
    git(versioned, "commit", "-qam", "second")
    (versioned / "README.md").write_text("staged\n")
    git(versioned, "add", "README.md")
    before = {name: (versioned / ".git" / name).read_bytes() for name in ("HEAD", "index", "refs/heads/topic")}
    done = cli("rewind", "turn:1", "--yes")
    line = next(line for line in done.out.splitlines() if line.startswith("note: "))
    assert "git is left as it is: HEAD was main at " in line
    assert " and is topic at " in line
    assert line.endswith("what is staged is not what it was then")
    assert {name: (versioned / ".git" / name).read_bytes() for name in before} == before


def test_what_is_packed_detached_or_in_a_worktree_is_read_as_well(versioned: Path, cli: Cli):
    tree = versioned.parent / "tree"
    git(versioned, "worktree", "add", "-q", "-b", "side", str(tree))
    git(versioned, "pack-refs", "--all")
    os.chdir(tree / "packages")
    assert cli("checkpoint", "c1", "--json").json["workspace"] == str(tree)
    git(tree, "checkout", "-q", "--detach")
    assert "HEAD was side at " in cli("rewind", "c1", "--dry-run", "--files").out
    cli("checkpoint", "c2")
    git(tree, "commit", "-q", "--allow-empty", "-m", "more")
    said = cli("rewind", "c2", "--dry-run", "--files").out
    assert "HEAD was " in said
    assert "staged" not in said
    git(versioned, "commit", "-q", "--allow-empty", "-m", "elsewhere")
    cli("checkpoint", "c3")
    git(versioned, "commit", "-q", "--allow-empty", "-m", "of another worktree")
    assert "note: git" not in cli("rewind", "c3", "--dry-run", "--files").out


def test_a_project_without_sessions_takes_none_of_elsewhere(
    process: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    person = folder.parent / "person"
    project, plain = folder.parent / "project", person / "plain"
    for place in (project / ".git", plain):
        place.mkdir(parents=True)
    with turnlog.open(checkpoints=False, clock=tick) as home:
        write_session(home, workspace=folder.parent)
        write_session(home, workspace=person)
    monkeypatch.chdir(project)
    for words in (["diff"], ["checkpoints"], ["show", "@"], ["rewind", "--yes"]):
        assert process(*words).err.startswith(("error: no session ", "error: no checkpoints for ")), words
    assert process("ls", "--json").json["sessions"] == []
    monkeypatch.chdir(plain)
    assert process("ls", "--json").json["sessions"] == []
    assert process("show", "@").code == 3
