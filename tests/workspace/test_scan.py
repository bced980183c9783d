"""A scan reads what changed, and what it remembers is never believed further than it goes."""

import os
from pathlib import Path
from typing import Any

import pytest

from turnlog.log.payload import digest
from turnlog.workspace import cache
from turnlog.workspace.folderscan import REPOSITORY
from turnlog.workspace.scan import Scan, Scanner
from turnlog.workspace.sink import DigestOnlySink
from turnlog.workspace.tree import decode_tree, files


class Kept(DigestOnlySink):
    """A sink that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[bytes] = []

    def add(self, data: bytes) -> str:
        self.given.append(data)
        return super().add(data)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for number in range(3):
        (folder / f"pkg{number}/inner").mkdir(parents=True)
        for name in ("a.py", "b.py", "c.log"):
            (folder / f"pkg{number}/inner" / name).write_text(f"{number} {name}")
    (folder / ".gitignore").write_text("*.log\n")
    age(folder)
    return folder


def age(folder: Path) -> None:
    """Make everything in it old enough to trust; `ctime` cannot be set, so the scans are told a later time."""
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))


def scan(folder: Path, seen: cache.Seen | None = None, **options: Any) -> tuple[Scan, Kept]:
    sink = Kept()
    scanner = Scanner(sink, outside=[], seen=seen, **options)
    scanner._young += 10**10  # ten seconds from now
    found = scanner.scan(str(folder))
    return found, sink


def names(found: Scan, *sinks: Kept) -> set[bytes]:
    trees = {name: data for sink in sinks for name, data in sink.trees.items()}

    def get(name: str) -> Any:
        return decode_tree(trees[name])

    return {path for path, _ in files(get(found.tree), get)}


def test_where_nothing_changed_nothing_is_read_and_nothing_is_new(place: Path):
    first, one = scan(place)
    assert (first.read, first.files, first.has_changed) == (7, 7, True)
    again, two = scan(place, cache.decode_seen(cache.encode_seen(first.seen)))
    assert (again.read, again.files, again.bytes) == (0, 7, first.bytes)
    assert (again.tree, again.has_changed, two.given) == (first.tree, False, [])
    assert b"pkg1/inner/a.py" in names(first, one)
    assert b"pkg1/inner/c.log" not in names(first, one)


def test_only_what_changed_is_read_and_only_the_folders_above_it_are_new(place: Path):
    first, _ = scan(place)
    (place / "pkg1/inner/a.py").write_text("other")
    again, sink = scan(place, first.seen)
    assert again.read == 1
    assert len(sink.given) == 4  # the file, its folder, the one above, the root
    assert again.tree != first.tree


def test_a_change_that_hides_in_size_and_mtime_is_seen(place: Path):
    first, _ = scan(place)
    path = place / "pkg2/inner/b.py"
    path.write_text("X" * path.stat().st_size)
    os.utime(path, (1, 1))
    assert scan(place, first.seen)[0].tree != first.tree


def test_what_is_young_is_read_again(place: Path):
    sink = Kept()
    first = Scanner(sink, outside=[]).scan(str(place))
    again = Scanner(sink, outside=[], seen=first.seen).scan(str(place))
    assert (again.read, again.tree) == (7, first.tree)


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [("", {b"a.py", b"b.py", b"c.log"}), ("*.py\n", {b"c.log"}), ("*\n!*/\n!b.py\n", {b"b.py"})],
    ids=["none", "other", "all but one"],
)
def test_new_rules_judge_everything_anew(place: Path, rules: str, wanted: set[bytes]):
    first, one = scan(place)
    (place / ".gitignore").write_text(rules)
    again, two = scan(place, first.seen)
    found = names(again, one, two)
    assert {path.rpartition(b"/")[2] for path in found if path.startswith(b"pkg0/inner/")} == wanted
    assert again.tree == scan(place)[0].tree


def test_a_new_name_is_judged_by_rules_that_nobody_read_again(place: Path):
    first, one = scan(place)
    (place / "pkg0/inner/d.log").write_text("ignored")
    (place / "pkg0/inner/d.py").write_text("covered")
    again, two = scan(place, first.seen)
    found = names(again, one, two)
    assert b"pkg0/inner/d.py" in found
    assert b"pkg0/inner/d.log" not in found


def test_what_nobody_has_any_more_is_read_again(place: Path):
    first, _ = scan(place)
    gone = digest(b"1 a.py")
    again, sink = scan(place, first.seen, has=lambda name: name != gone)
    assert (again.read, again.tree) == (1, first.tree)
    assert len(sink.trees) == 7  # every folder is told to the sink, which may lack it


def test_a_file_that_becomes_a_folder_and_a_folder_that_becomes_a_link(place: Path, tmp_path: Path):
    first, one = scan(place)
    (place / "pkg0/inner/a.py").unlink()
    (place / "pkg0/inner/a.py").mkdir()
    (place / "pkg0/inner/a.py/x").write_text("x")
    os.rename(place / "pkg1", tmp_path / "elsewhere")
    (place / "pkg1").symlink_to(tmp_path / "elsewhere")
    again, two = scan(place, first.seen)
    found = names(again, one, two)
    assert b"pkg0/inner/a.py/x" in found
    assert not any(path.startswith(b"pkg1/") for path in found)


def test_folders_deeper_than_anybody_makes_them_are_reported(place: Path):
    deep = place
    for _ in range(205):
        deep = deep / "d"
        deep.mkdir()
    found, _ = scan(place)
    assert [item.reason for item in found.skipped] == ["nested more than 200 folders deep"]


def test_damage_in_what_was_remembered_costs_time_and_nothing_else(place: Path):
    first, _ = scan(place)
    data = cache.encode_seen(first.seen)
    for position in range(0, len(data), 7):
        broken = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
        assert scan(place, cache.decode_seen(broken))[0].tree == first.tree
    assert cache.decode_seen(b"") == cache.Seen()


def test_numbers_of_any_size_fit(place: Path):
    assert len(cache.signature_bytes([2**64 - 1, -1, 0])) == 24
    assert cache.signature_bytes([1, 2]) == cache.signature_bytes([1, 2])
    assert cache.names_from_bytes(cache.names_to_bytes(["a", "odd-\udcff"])) == ["a", "odd-\udcff"]
    assert cache.names_from_bytes(cache.names_to_bytes([])) == []


@pytest.mark.parametrize("is_folder", [True, False], ids=["repository", "worktree"])
def test_a_repository_in_the_workspace_is_not_looked_into_as_long_as_it_is_one(place: Path, is_folder: bool):
    first, one = scan(place)
    mark = place / "pkg1/inner/.git"
    if is_folder:
        mark.mkdir()
    else:
        mark.write_text("gitdir: ../../.git/worktrees/inner\n")
    second, two = scan(place, first.seen)
    assert {path for path in names(second, one, two) if path.startswith(b"pkg1/")} == {b"pkg1/inner"}
    assert [(item.path, item.reason) for item in second.skipped] == [(b"pkg1/inner", REPOSITORY)]
    (place / "pkg1/inner/a.py").write_text("nobody looks")
    third, _ = scan(place, second.seen)
    assert (third.read, third.tree, third.skipped) == (0, second.tree, second.skipped)
    mark.rmdir() if is_folder else mark.unlink()
    (place / "pkg1/inner/a.py").write_text("1 a.py")
    assert scan(place, third.seen)[0].tree == first.tree


def test_what_is_tracked_in_a_repository_in_the_workspace_is_covered_and_nothing_else(place: Path):
    (place / "pkg1/inner/.git").mkdir()
    found, sink = scan(place, tracked=frozenset([b"pkg1/inner/c.log"]))
    assert {path for path in names(found, sink) if path.startswith(b"pkg1/inner/")} == {b"pkg1/inner/c.log"}
    found, sink = scan(place, tracked=frozenset([b"pkg1"]))
    inside = {b"pkg1/inner/a.py", b"pkg1/inner/b.py", b"pkg1/inner/c.log"}
    assert {path for path in names(found, sink) if path.startswith(b"pkg1/inner/")} == inside


@pytest.mark.parametrize("tracked", ["pkg1/inner/c.log", "pkg1/inner/deep/c.log"])
def test_a_repository_with_a_tracked_file_is_covered_when_it_is_one_no_more(place: Path, tracked: str):
    deep = place / "pkg1/inner/deep"
    deep.mkdir()
    for name in ("c.log", "new.py"):
        (deep / name).write_text(name)
    if deep.name in tracked:
        for path in (place / "pkg1/inner").glob("*.*"):
            path.unlink()
    wanted = scan(place, tracked=frozenset([tracked.encode()]))[0].tree
    (place / "pkg1/inner/.git").mkdir()
    found, _ = scan(place, tracked=frozenset([tracked.encode()]))
    assert found.tree != wanted
    (place / "pkg1/inner/.git").rmdir()
    assert scan(place, found.seen, tracked=frozenset([tracked.encode()]))[0].tree == wanted


@pytest.mark.parametrize("frames", [0, 400, 700])
def test_a_deep_folder_is_left_out_where_the_stack_of_the_caller_is_deep(tmp_path: Path, frames: int):
    (tmp_path / "a.py").write_text("a")
    below = tmp_path
    for _ in range(199):
        below /= "d"
        below.mkdir()

    def called(depth: int) -> tuple[Scan, Kept]:
        return called(depth - 1) if depth else scan(tmp_path, seen)

    seen: cache.Seen | None = None
    first, _ = called(frames)
    assert b"a.py" in names(first, _)
    assert [s.reason[:11] for s in first.skipped] == (["nested more"] if frames else [])
    seen = called(0)[0].seen
    again, _ = called(frames)  # with what a scan with more of the stack remembers
    assert [s.path for s in again.skipped] == [s.path for s in first.skipped]
