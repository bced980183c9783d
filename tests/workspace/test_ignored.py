"""Small ignored files are covered, up to a limit; whatever is not stays as it is, and is named when it changed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

import turnlog
from tests.faces import location
from turnlog import Home, Session
from turnlog.session.interior import interior
from turnlog.workspace import ignoredscan
from turnlog.workspace.tree import decode_tree, files


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/a.py").write_text("a\n")
    (folder / "src/local.ini").write_text("level = 1\n")
    (folder / ".gitignore").write_text("*.env\n.env\n*.ini\n*.bin\n/.secrets/\nnode_modules/\nbuild/\n__pycache__/\n")
    (folder / ".env").write_text("KEY=one\n")
    (folder / ".secrets/deep").mkdir(parents=True)
    (folder / ".secrets/deep/token").write_text("t")
    (folder / ".secrets/deep").chmod(0o700)
    for name in ("node_modules/lib", "build", "src/__pycache__"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.js").write_text("x")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as opened:
        yield opened


def everything(folder: Path) -> dict[str, object]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else oct(path.lstat().st_mode)
        for path in folder.rglob("*")
        if not path.is_symlink()
    }


def private_names(home: Home, s: Session) -> dict[bytes, str]:
    root = next(root for root in s.checkpoints()[-1].roots if root.is_private)

    def get(name: str):
        return decode_tree(interior(home).store.get(name))

    return {path: node.kind for path, node in files(get(root.tree), get)}


@pytest.fixture(params=["files", "memory", "postgres"])
def anywhere(request, tmp_path: Path):
    return location(request, tmp_path / "home")


def test_what_a_turn_did_to_ignored_files_is_taken_back_and_made_again(anywhere: str, place: Path):
    with turnlog.open(anywhere) as home:
        s = home.create(workspace=place)
        before = everything(place)
        with s.turn():
            s.user("go")
            (place / ".env").unlink()
            (place / "src/local.ini").write_text("level = 2\n")
            (place / ".secrets/deep/token").unlink()
            (place / ".secrets/deep").rmdir()
            (place / "new.env").write_text("made")
            (place / "src/other").mkdir()
            (place / "src/other/b.env").write_text("made")
        after = everything(place)
        changed = {item.path: (item.action, item.is_private) for item in s.diff(turn=1)}
        assert changed == {
            ".env": ("deleted", True),
            ".secrets/deep/token": ("deleted", True),
            "new.env": ("created", True),
            "src/local.ini": ("modified", True),
            "src/other/b.env": ("created", True),
        }
        s.rewind(turns=1)
        assert everything(place) == before
        s.undo()
        assert everything(place) == after
        s.redo()
        assert everything(place) == before


def test_dependencies_builds_and_caches_are_not_looked_into(home: Home, place: Path):
    s = home.create(workspace=place)
    s.checkpoint()
    assert private_names(home, s) == {
        b".env": "file",
        b".secrets": "folder",
        b".secrets/deep": "folder",
        b".secrets/deep/token": "file",
        b"build": "unknown",
        b"node_modules": "unknown",
        b"src": "folder",
        b"src/local.ini": "file",
    }


def test_it_can_be_switched_off(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", covers_ignored=False) as home:
        s = home.create(workspace=place)
        with s.turn():
            s.user("go")
            (place / ".env").write_text("changed")
        assert [root.name for root in s.checkpoints()[-1].roots] == ["workspace"]
        assert s.plan_rewind(turns=1).steps == []


def limited(monkeypatch: pytest.MonkeyPatch, **limits: int) -> None:
    for name, value in limits.items():
        monkeypatch.setattr(ignoredscan, name, value)


def test_the_smallest_are_covered_and_the_rest_is_unknown(home: Home, place: Path, monkeypatch: pytest.MonkeyPatch):
    limited(monkeypatch, MOST_BYTES=1000)
    (place / "large.bin").write_bytes(b"x" * 900)
    s = home.create(workspace=place)
    s.checkpoint()
    assert private_names(home, s)[b"large.bin"] == "file"
    (place / "larger.bin").write_bytes(b"x" * 990)
    s.checkpoint()
    kinds = private_names(home, s)
    assert (kinds[b"large.bin"], kinds[b"larger.bin"], kinds[b".env"]) == ("file", "unknown", "file")


@pytest.mark.parametrize("how", ["bytes", "files", "names"])
def test_what_falls_out_of_coverage_is_unknown_and_never_touched(
    home: Home, place: Path, monkeypatch: pytest.MonkeyPatch, how: str
):
    """Covered before the turn and not after it, or the other way round: neither deleted nor made."""
    s = home.create(workspace=place)
    (place / "large.bin").write_bytes(b"x" * 900)
    with s.turn():
        s.user("out")
        small = {"bytes": {"MOST_BYTES": 500}, "files": {"MOST_FILES": 2}, "names": {"_MOST_NAMES": 0}}[how]
        limited(monkeypatch, **small)
        (place / "large.bin").write_bytes(b"y" * 950)
    with s.turn():
        s.user("in")
        limited(monkeypatch, MOST_BYTES=1 << 20, MOST_FILES=100, _MOST_NAMES=100)
        (place / ".env").write_text("KEY=two\n")
    before = everything(place)
    s.rewind(turns=1)
    assert (place / "large.bin").read_bytes() == b"y" * 950
    assert how == "names" or (place / ".env").read_text() == "KEY=one\n"
    s.undo()
    assert everything(place) == before
    limited(monkeypatch, **small)
    s.rewind(turns=2)
    assert (place / "large.bin").read_bytes() == b"y" * 950
    s.undo()
    assert everything(place) == before


@pytest.mark.parametrize("covers", [True, False])
@pytest.mark.parametrize("rules", ["*.env\n.env\n*.ini\n*.txt\nsrc/\n", "", "*\n"], ids=["more", "none", "all"])
def test_a_file_that_a_rule_hides_or_shows_is_never_lost(home: Home, place: Path, rules: str, covers: bool):
    (place / "mine.txt").write_text("the user's")
    interior(home).settings = replace(interior(home).settings, covers_ignored=covers)
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        (place / ".gitignore").write_text(rules)
    after = everything(place)
    s.rewind(turns=1)
    assert everything(place) == before
    s.undo()
    assert everything(place) == after
    s.redo()
    assert everything(place) == before


def test_a_file_that_moves_from_ignored_to_not_and_is_changed_goes_back(home: Home, place: Path):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        (place / ".gitignore").write_text("*.py\nnode_modules/\nbuild/\n__pycache__/\n")
        (place / ".env").write_text("changed")
        (place / "src/a.py").write_text("changed")
        (place / "made.env").write_text("made")
    s.rewind(turns=1)
    assert everything(place) == before


def test_checkpoints_from_before_do_not_know_ignored_files(home: Home, place: Path):
    """A session that went on from one that did not cover them: unknown, so nothing is made or deleted."""
    interior(home).settings = replace(interior(home).settings, covers_ignored=False)
    s = home.create(workspace=place)
    first = s.checkpoint()
    interior(home).settings = replace(interior(home).settings, covers_ignored=True)
    s = home.resume(s.id)
    with s.turn():
        s.user("go")
        (place / "made.env").write_text("made")
        (place / "src/a.py").write_text("changed")
    assert {step.raw: step.action for step in s.plan_rewind(to=first).steps} == {
        b"made.env": "unknown", b"src/a.py": "modify",
    }  # fmt: skip
    interior(home).settings = replace(interior(home).settings, covers_ignored=False)
    s = home.resume(s.id)
    (place / "made.env").write_text("mine now")
    s.rewind(turns=1)
    assert (place / "made.env").read_text() == "mine now"
    assert (place / ".env").read_text() == "KEY=one\n"


def test_what_is_not_covered_and_changed_is_in_the_diff_of_the_turn(
    home: Home, place: Path, monkeypatch: pytest.MonkeyPatch
):
    limited(monkeypatch, MOST_BYTES=500)
    (place / "large.bin").write_bytes(b"x" * 900)
    (place / "still.bin").write_bytes(b"x" * 900)
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "large.bin").write_bytes(b"y" * 900)
        (place / "node_modules/other").mkdir()
        (place / "src/__pycache__/y.pyc").write_text("y")
        os.rename(place / "build", place.parent / "gone")
    found = {item.path: item.action for item in s.diff(turn=1)}
    assert found == {"large.bin": "modified", "node_modules": "modified", "build": "deleted"}
    assert all("unknown" in (n.kind for n in (item.before, item.after) if n) for item in s.diff(turn=1))


def test_where_nothing_changed_nothing_is_read_and_no_tree_is_made(home: Home, place: Path, monkeypatch):
    for path in place.rglob("*"):
        os.utime(path, (1, 1))
    monkeypatch.setattr(ignoredscan, "YOUNG_NS", -(10**10))
    s = home.create(workspace=place)
    one = s.checkpoint()

    def fail(*_: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(ignoredscan, "read_file", fail)
    assert s.checkpoint().roots == one.roots


def test_a_folder_with_very_many_files_is_given_up_and_the_others_are_not(home: Home, place: Path, monkeypatch):
    limited(monkeypatch, MOST_FILES=20)
    (place / ".secrets/many").mkdir()
    for number in range(30):
        (place / f".secrets/many/{number}").write_text("x")
    s = home.create(workspace=place)
    s.checkpoint()
    kinds = private_names(home, s)
    assert (kinds[b".secrets"], kinds[b".env"]) == ("unknown", "file")


def test_a_folder_that_goes_while_it_is_given_up_hides_no_other(home: Home, place: Path, monkeypatch):
    limited(monkeypatch, MOST_FILES=20)
    (place / "z.env").write_text("KEY=one")
    for number in range(30):
        (place / f".secrets/deep/{number}").write_text("x")
    real = os.lstat

    def lstat(path, **options):
        if path == ".secrets" and sys._getframe(1).f_code.co_name == "_top":
            shutil.rmtree(place / ".secrets")
        return real(path, **options)

    s = home.create(workspace=place)
    monkeypatch.setattr(os, "lstat", lstat)
    s.checkpoint()
    monkeypatch.undo()
    assert {b".env", b"z.env", b"build"} <= private_names(home, s).keys()


def test_a_repository_in_an_ignored_folder_is_left_alone(home: Home, place: Path):
    (place / ".secrets/tree").mkdir()
    (place / ".secrets/tree/.git").write_text("gitdir: elsewhere")
    (place / ".secrets/tree/a.py").write_text("another session's")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / ".secrets/tree/a.py").write_text("changed")
    s.rewind(turns=1)
    assert (place / ".secrets/tree/a.py").read_text() == "changed"


def test_a_link_in_an_ignored_folder_is_kept_and_not_followed(home: Home, place: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("not ours")
    (place / ".secrets/link").symlink_to(tmp_path / "outside")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / ".secrets/link").unlink()
    assert b".secrets/link/secret" not in private_names(home, s)
    s.rewind(turns=1)
    assert os.readlink(place / ".secrets/link") == str(tmp_path / "outside")
    assert (tmp_path / "outside/secret").read_text() == "not ours"


def test_ignored_files_of_another_session_are_not_taken_back(home: Home, place: Path):
    s, other = home.create(workspace=place), home.create(workspace=place)
    with s.turn():
        first = s.user("ours")
        (place / ".env").write_text("KEY=ours\n")
        (place / "made.env").write_text("ours")
        with other.turn():
            other.user("theirs")
            (place / "src/local.ini").write_text("level = theirs\n")
    actions = {step.raw: step.action for step in s.plan_rewind(before=first).steps}
    assert actions == {b".env": "modify", b"made.env": "delete", b"src/local.ini": "conflict"}


def test_a_deleted_project_comes_back_with_its_ignored_files(home: Home, place: Path):
    s = home.create(workspace=place)
    before = (place / ".env").read_bytes(), (place / ".secrets/deep/token").read_bytes()
    with s.turn():
        s.user("go")
        shutil.rmtree(place)
    s.rewind(turns=1)
    assert ((place / ".env").read_bytes(), (place / ".secrets/deep/token").read_bytes()) == before
