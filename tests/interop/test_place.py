"""Files of ours among those of other programs: never over theirs, never past their locks."""

import errno
import os
from pathlib import Path

import pytest

from turnlog.errors import Unavailable
from turnlog.interop.place import Taken, locked, put_file
from turnlog.interop.value import micros


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


@pytest.mark.parametrize("amount", [True, False, None, "1", 0, -1, 1e9, float("nan")])
def test_what_is_no_amount_is_not_counted_as_one(amount: object) -> None:
    assert micros(amount) is None
