"""Where git stands, read without running it."""

import os
import subprocess
from pathlib import Path

import pytest

from turnlog.log.part import Git
from turnlog.workspace.git import git_left, git_now, worktree_of


def git(folder: Path, *words: str) -> str:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    done = subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **quiet}
    )
    return done.stdout.decode().strip()


def now(folder: Path) -> Git:
    found = git_now(str(folder))
    assert found is not None
    return found


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_what_is_staged_is_told_from_the_times_in_the_index(tmp_path: Path, version: str, form: str):
    git(tmp_path, "init", "-q", "-b", "main", f"--object-format={form}")
    for name in ("a", "deep/b", "deep/" + "n" * 200, "deep/ber"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert now(tmp_path) == Git("refs/heads/main", None, None)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "update-index", "--index-version", version)
    if version == "3":  # only what needs it is written so
        (tmp_path / "later").touch()
        git(tmp_path, "add", "-N", "later")
    first, data = now(tmp_path), (tmp_path / ".git/index").read_bytes()
    assert data[7] == int(version)
    assert (first.branch, first.commit) == ("refs/heads/main", git(tmp_path, "rev-parse", "HEAD"))
    os.utime(tmp_path / "a", (1, 1))
    git(tmp_path, "status")
    assert (tmp_path / ".git/index").read_bytes() != data
    assert now(tmp_path) == first
    for words in (["update-index", "--chmod=+x", "a"], ["rm", "-q", "--cached", "deep/b"], ["add", "deep/b"]):
        before = now(tmp_path)
        git(tmp_path, *words)
        assert now(tmp_path) != before
        assert git_left(before, now(tmp_path)) == "git is left as it is: what is staged is not what it was then"
    git(tmp_path, "update-index", "--chmod=-x", "a")
    assert now(tmp_path) == first


def test_what_was_read_once_is_remembered_until_it_changes(tmp_path: Path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("a")
    git(tmp_path, "add", ".")
    kept: dict[str, bytes] = {}

    def known(key: str, value: bytes | None) -> bytes | None:
        if value is not None:
            kept[key] = value
        return kept.get(key)

    first = git_now(str(tmp_path), known)
    kept |= {key: value[:-64] + b"0" * 64 for key, value in kept.items()}
    assert git_now(str(tmp_path), known) != first
    (tmp_path / "b").write_text("b")
    git(tmp_path, "add", ".")
    assert git_now(str(tmp_path), known) == now(tmp_path)


@pytest.mark.parametrize(
    "head",
    [b"ref: ../../secret\n", b"ref: refs/heads/../../../secret\n", b"ref: refs/\0\n", b"ref: \n", b"", b"x" * 100_000,
     b"ref: refs/heads/loop\n", b"\xff\xfe"],
    ids=range(8),
)  # fmt: skip
def test_whatever_stands_in_its_files_leads_nowhere(tmp_path: Path, head: bytes):
    place = tmp_path / "project"
    (place / ".git/refs/heads").mkdir(parents=True)
    (tmp_path / "secret").write_text("0" * 40)
    (place / ".git/HEAD").write_bytes(head)
    (place / ".git/refs/heads/loop").write_text("ref: refs/heads/loop\n")
    (place / ".git/index").write_bytes(b"DIRC\0\0\0\2\xff\xff\xff\xff" + head)
    found = git_now(str(place))
    assert found is None or found.commit is None


@pytest.mark.parametrize(
    "link", ["gitdir: /dev/zero\n", "gitdir: \0\n", "gitdir:\n", "gitdir: .git\n", "nothing", "pipe"]
)
def test_a_file_instead_of_a_folder_leads_nowhere_either(tmp_path: Path, link: str):
    if link == "pipe":
        os.mkfifo(tmp_path / ".git")
    else:
        (tmp_path / ".git").write_text(link)
    assert git_now(str(tmp_path)) is None
    assert worktree_of(str(tmp_path)) == str(tmp_path)


def test_special_files_are_not_opened(tmp_path: Path):
    git(tmp_path, "init", "-q")
    for name in ("index", "commondir"):
        os.mkfifo(tmp_path / ".git" / name)
    assert now(tmp_path).index is None
