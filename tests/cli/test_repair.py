"""A repair on a disk that fails: the log is what it was, or what it should be, and never anything else."""

import errno
from pathlib import Path

import pytest

import turnlog
from tests.store.faultlab import FailingDisk
from turnlog.session.interior import interior
from turnlog.store.files import now_ms
from turnlog.store.files.disk import Disk
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.repair import repair


def hurt(log: Path) -> bytes:
    lines = log.read_bytes().split(b"\n")
    lines[5] = lines[5][:70]
    log.write_bytes(b"\n".join(lines)[:-30])
    return log.read_bytes()


def entries_of(log: Path) -> list[tuple[int, str]]:
    with turnlog.open() as home:
        items = interior(home).store.open(log.stem, read_only=True).read()
        return [(item.seq, item.id) for item in items if not isinstance(item, turnlog.Damage)]


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "for ever"])
def test_an_error_at_any_step_loses_nothing(error: int, for_ever: bool, log: Path, folder: Path):
    broken = hurt(log)
    readable = entries_of(log)
    steps = 0
    while True:
        log.write_bytes(broken)
        for leftover in (folder / "trash").iterdir():
            leftover.unlink()
        steps += 1
        try:
            repair(
                HomeFolder(str(folder), FailingDisk(at=steps, error=error, for_ever=for_ever)), log.stem, clock=now_ms
            )
        except turnlog.TurnlogError:
            assert entries_of(log)[: len(readable)] == readable
            kept = [path.read_bytes() for path in (folder / "trash").iterdir()]
            assert log.read_bytes() == broken or kept == [broken]
        else:
            break
    assert steps > 10
    assert entries_of(log)[:-1] == readable
    assert repair(HomeFolder(str(folder), Disk()), log.stem, clock=now_ms) is None


def test_two_repairs_at_the_same_moment_keep_both_originals(log: Path, folder: Path):
    for _ in range(2):
        hurt(log)
        assert repair(HomeFolder(str(folder), Disk()), log.stem, clock=lambda: 1_800_000_000_000) is not None
    assert len(list((folder / "trash").iterdir())) == 2


def test_private_whatever_the_umask(log: Path, folder: Path):
    hurt(log)
    done = repair(HomeFolder(str(folder), Disk()), log.stem, clock=now_ms)
    assert done is not None
    assert log.stat().st_mode & 0o777 == 0o600
    assert Path(done.original).stat().st_mode & 0o777 == 0o600


def test_a_repair_of_nobody_is_a_clear_error(folder: Path, session: str):
    with pytest.raises(turnlog.NotFound):
        repair(HomeFolder(str(folder), Disk()), "nobody", clock=now_ms)
