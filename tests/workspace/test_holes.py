"""A checkpoint has everything in it, or there is none: what the system lacks is not the fault of a file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.workspace.hostilelab import Faults, standing_in
from turnlog.errors import Unavailable
from turnlog.workspace.scan import Scanner
from turnlog.workspace.sink import DigestOnlySink

_LIMITS = """
import json, os, resource, sys
import turnlog
from turnlog.errors import TurnlogError

home = turnlog.open(sys.argv[1])
s = home.create(workspace=sys.argv[2])
s.checkpoint("all of it")
found = []
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
lowest = max(int(name) for name in os.listdir("/proc/self/fd"))
for limit in range(lowest - 4, lowest + 40, 2):
    kept = home.create(workspace=sys.argv[2]) if limit % 4 else s  # with and without what the last scan remembers
    with open(sys.argv[2] + "/top.txt", "w") as file:
        file.write(str(limit))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        point = kept.checkpoint(f"limit {limit}")
        found.append([limit, point.roots[0].tree, point.skipped])
    except TurnlogError as error:
        found.append([limit, type(error).__name__, error.hint])
        continue
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    found[-1][1] = kept.checkpoint("again").roots[0].tree == found[-1][1]
print(json.dumps(found))
"""


@pytest.fixture
def deep(tmp_path: Path) -> Path:
    """Sixty folders inside each other, with something in every one of them."""
    place = tmp_path / "project"
    folder = place
    for number in range(60):
        folder = folder / f"f{number}"
        folder.mkdir(parents=True)
        (folder / "a.txt").write_text(f"{number}")
        (folder / "z").mkdir()
        (folder / "z/.gitignore").write_text("*.log\n")
        (folder / "z/b.txt").write_text(f"{number}")
    return place


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="asks Linux which descriptors are open")
def test_whatever_the_limit_on_open_files_a_checkpoint_is_whole_or_refused(tmp_path: Path, deep: Path):
    command = [sys.executable, "-c", _LIMITS, str(tmp_path / "home"), str(deep)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout)
    whole = [limit for limit, tree, skipped in found if tree is True and skipped == []]
    refused = [limit for limit, tree, hint in found if tree == "Unavailable" and hint]
    assert sorted(whole + refused) == [limit for limit, _, _ in found]
    assert whole, "few descriptors are enough for many folders"
    assert refused
    assert max(refused) < min(whole) + 12


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO], ids=errno.errorcode.get)
def test_whatever_call_of_a_scan_the_system_refuses_there_is_no_checkpoint(deep: Path, error: int):
    whole = Scanner(DigestOnlySink(), outside=[]).scan(str(deep))
    counting = Faults()
    with standing_in(counting.before):
        Scanner(DigestOnlySink(), outside=[]).scan(str(deep))
    for at in range(1, counting.calls, 97):
        faults = Faults(at, error=error)
        with standing_in(faults.before), pytest.raises(OSError, match=os.strerror(error)):
            Scanner(DigestOnlySink(), outside=[]).scan(str(deep))
        assert faults.failed
    assert not whole.skipped


def test_a_scan_of_deep_folders_holds_few_descriptors(deep: Path):
    most = 0

    class Watching(DigestOnlySink):
        def add(self, data: bytes) -> str:
            nonlocal most
            most = max(most, len(os.listdir("/dev/fd")))
            return super().add(data)

    before = len(os.listdir("/dev/fd"))
    Scanner(Watching(), outside=[]).scan(str(deep))
    assert most - before <= 12
    assert len(os.listdir("/dev/fd")) == before


def test_a_folder_that_is_moved_while_its_inside_is_looked_at_is_not_taken_for_another(
    deep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: sorted(listed(folder)))  # `zz` comes last on any disk

    class Moving(DigestOnlySink):
        def add(self, data: bytes) -> str:
            if data == b"59":  # the deepest is read: those above are not open any more
                os.rename(deep / "f0/f1", tmp_path / "moved")
                (deep / "f0/f1").symlink_to(tmp_path)
            return super().add(data)

    (tmp_path / "outside.txt").write_text("not ours")
    (deep / "f0/f1/zz").mkdir()
    (deep / "f0/f1/zz/outside.txt").write_text("ours")
    sink = Moving()
    found = Scanner(sink, outside=[]).scan(str(deep))
    assert b"not ours" not in sink.trees.values()
    assert not any(b"outside.txt" in tree for tree in sink.trees.values())
    assert not any("not ours" in item.reason for item in found.skipped)


def test_the_error_says_what_happened_and_what_to_do(tmp_path: Path, deep: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=deep)
        counting = Faults()
        with standing_in(counting.before):
            s.checkpoint()
        (deep / "f0/a.txt").write_text("new")
        with standing_in(Faults(10, error=errno.EMFILE, for_ever=True).before), pytest.raises(Unavailable) as caught:
            s.checkpoint()
    assert "no checkpoint" in caught.value.message
    assert "Too many open files" in caught.value.message
    assert "ulimit -n" in str(caught.value.hint)


def test_a_file_with_a_name_like_ours_is_covered_or_named(tmp_path: Path):
    place = tmp_path / "project"
    place.mkdir()
    ours = ".turnlog-half-done-" + "0123456789ab" * 2
    (place / ".turnlog-half-done-notes.txt").write_text("the user's")
    (place / ours).write_text("the user's, too")
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        with s.turn():
            s.user("go")
            (place / ".turnlog-half-done-notes.txt").unlink()
            (place / ours).write_text("changed")
        point = s.checkpoints()[-1]
        assert [row["path"] for row in point.skipped] == [ours]
        s.rewind(turns=1)
    assert (place / ".turnlog-half-done-notes.txt").read_text() == "the user's"
    assert (place / ours).read_text() == "changed"
