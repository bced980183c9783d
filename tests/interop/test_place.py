"""Files of ours among those of other programs: never over theirs, never past their locks."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from turnlog.errors import OutOfSpace, Unavailable
from turnlog.interop.place import Taken, appending, locked, private_folders, put_file


def test_a_lock_that_cannot_be_opened_is_not_free(tmp_path: Path) -> None:
    busy = Unavailable("somebody has it")
    with locked(str(tmp_path / "nobody"), busy, create=False):
        pass
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be locked"), locked(str(tmp_path / "link"), busy, create=False):
        pass


def test_a_file_system_without_hard_links_gets_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(source: str, target: str) -> None:
        raise OSError(errno.EPERM, "no links here", source, None, target)

    monkeypatch.setattr(os, "link", link)
    put_file(str(tmp_path / "file"), b"content", mode=0o600)
    assert (tmp_path / "file").read_bytes() == b"content"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(Taken):
        put_file(str(tmp_path / "file"), b"another")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"content"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_appending_to_a_full_disk_says_so() -> None:
    with pytest.raises(OutOfSpace, match="could not be written"), appending("/dev/full") as append:
        append(b"content")


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:3])))
    with appending(str(tmp_path / "file")) as append:
        append(b"one line\n")
        append(b"another\n")
    assert (tmp_path / "file").read_bytes() == b"one line\nanother\n"


def test_a_lock_that_the_file_system_cannot_give_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(fd: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(Unavailable, match="cannot be locked"), locked(str(tmp_path / "lock"), Unavailable("busy")):
        pass


def test_the_current_folder_needs_no_making(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    private_folders("")
    private_folders(os.path.join("a", "b"))
    assert (tmp_path / "a" / "b").is_dir()
