"""Extended attributes, ACLs and owners come back with a file; where the system does not allow it, that is said."""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import turnlog
from tests.store.crashlab import fast_folder
from tests.workspace.hostilelab import in_parallel
from turnlog import Home
from turnlog.workspace.tree import Extra, TreeNode, decode_tree, encode_tree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
SOMEBODY = 65534


def acl(user: int) -> bytes:
    """`u::rw-,u:USER:r--,g::r--,m::r--,o::---`, as the kernel has it."""
    none = 0xFFFFFFFF
    entries = [(1, 6, none), (2, 4, user), (4, 4, none), (0x10, 4, none), (0x20, 0, none)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / ".gitignore").write_text("*.local\n")
    for name in ("plain", "marked", "sub/listed", "kept.local"):
        (folder / name).write_text(name)
    try:
        os.setxattr(folder / "marked", "user.origin", b"https://example.org\0\xff")
        os.setxattr(folder / "kept.local", "user.origin", b"here")
        os.setxattr(folder / "sub", "user.kind", b"a folder")
        os.setxattr(folder / "sub/listed", "system.posix_acl_access", acl(SOMEBODY))
    except OSError as error:
        pytest.skip(f"this file system has no extended attributes: {error.strerror}")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with turnlog.open(tmp_path / "home") as opened:
        yield opened


def everything(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        names = [] if path.is_symlink() else os.listxattr(path)
        attributes = {name: os.getxattr(path, name) for name in names if name.startswith(("user.", "system."))}
        content = path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (status.st_mode, status.st_uid, status.st_gid, attributes, content)
    return found


def test_a_tree_without_any_is_encoded_as_it_always_was():
    plain = {b"a": TreeNode("file", 0o644, "sha256:" + "0" * 64, 1)}
    assert encode_tree(plain) == (
        b"TREE1\n\x91\x92\xc4\x01a\x96\xa4file\xcd\x01\xa4\xd9G" + b"sha256:" + b"0" * 64 + b"\x01\xc4\x00\xa0"
    )
    extra = {
        b"a": TreeNode("file", extra=Extra((1, 2), ((b"user.a", b"\0"),))),
        **{b"b": TreeNode("link", target=b"a")},
    }
    assert decode_tree(encode_tree(extra)) == extra
    assert decode_tree(encode_tree(plain)) == plain


def test_they_come_back_with_what_was_replaced_or_deleted(home: Home, place: Path):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        for name in ("marked", "kept.local"):
            (place / name).unlink()
            (place / name).write_text("new")
        (place / "sub/listed").unlink()
        (place / "sub").rmdir()
        (place / "plain").write_text("new")
        os.setxattr(place / "plain", "user.new", b"1")
    after = everything(place)
    s.rewind(turns=1)
    assert (s.problems(), s.incomplete()) == ([], [])
    assert everything(place) == before
    s.undo()
    assert everything(place) == after
    assert s.plan_rewind(turns=1).of("conflict") == []


def test_a_change_of_nothing_else_is_a_change(home: Home, place: Path):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        os.setxattr(place / "marked", "user.origin", b"elsewhere")
        os.removexattr(place / "kept.local", "user.origin")
        os.setxattr(place / "sub", "user.more", b"1")
    assert {item.path: item.action for item in s.diff(turn=1)} == {
        "marked": "mode", "kept.local": "mode", "sub": "mode",
    }  # fmt: skip
    inode = (place / "marked").stat().st_ino
    s.rewind(turns=1)
    assert everything(place) == before
    assert (place / "marked").stat().st_ino == inode


def test_what_is_as_it_was_is_known_without_looking(home: Home, place: Path):
    s = home.create(workspace=place)
    first = s.checkpoint()
    (place / "plain").write_text("other")
    (place / "sub/listed2").write_text("new")
    s.checkpoint()
    (place / "plain").write_text("plain")
    (place / "sub/listed2").unlink()
    assert s.checkpoint().roots == first.roots


@as_root
def test_root_gives_files_back_to_their_owners(home: Home, place: Path):
    os.chown(place / "marked", SOMEBODY, SOMEBODY)
    (place / "link").symlink_to("marked")
    os.chown(place / "link", SOMEBODY, 0, follow_symlinks=False)
    os.chown(place / "sub", 1, 2)
    (place / "sub").chmod(0o2750)
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        for name in ("marked", "link", "sub/listed"):
            (place / name).unlink()
        (place / "sub").rmdir()
        os.chown(place / "plain", 7, 7)
    s.rewind(turns=1)
    assert everything(place) == before
    assert s.incomplete() == []


@as_root
def test_in_somebodys_folder_what_root_puts_back_is_somebodys(home: Home, place: Path):
    for path in (place, *place.rglob("*")):
        os.chown(path, SOMEBODY, SOMEBODY)
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        (place / "marked").write_text("new")
        (place / "sub/listed").unlink()
    s.rewind(turns=1)
    assert everything(place) == before


@as_root
def test_what_an_ordinary_user_may_not_give_away_is_named_and_back_all_the_same():
    def as_somebody(place: Path) -> None:
        os.setgid(SOMEBODY)
        os.setuid(SOMEBODY)
        with turnlog.open("memory:") as home:
            s = home.create(workspace=place)
            with s.turn():
                s.user("go")
                (place / "plain").unlink()
            s.rewind(turns=1)
            assert (place / "plain").read_text() == "plain"
            assert s.problems() == []
            (outcome,) = s.incomplete()
            assert outcome.step.raw == b"plain"
            assert outcome.note.startswith(f"its owner is {SOMEBODY}:{SOMEBODY} now, not 0:0: ")

    with fast_folder() as folder:
        os.chmod(folder, 0o755)
        place = Path(folder, "project")
        place.mkdir()
        (place / "plain").write_text("plain")
        os.chown(place, SOMEBODY, SOMEBODY)  # the file in it stays root's
        assert in_parallel(partial(as_somebody, place)) == [0]


def test_an_attribute_that_cannot_be_set_is_named_and_the_file_is_back(home: Home, place: Path, monkeypatch):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "marked").unlink()

    def refuse(*_: object, **__: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "setxattr", refuse)
    s.rewind(turns=1)
    assert (place / "marked").read_text() == "marked"
    assert [(o.step.raw, o.note) for o in s.incomplete()] == [
        (b"marked", "attribute user.origin: Operation not supported")
    ]
