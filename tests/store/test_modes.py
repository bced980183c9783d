"""Nobody else can look into a home, or into what was put into another agent's, whatever the umask was."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog.formats import OutputFile
from turnlog.interop.place import put_file, put_files


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(top: Path) -> dict[str, int]:
    return {str(path.relative_to(top)): mode(path) for path in [top, *sorted(top.rglob("*"))]}


def test_folders_made_for_other_agents_are_private(tmp_path: Path, umask: int):
    os.chmod(tmp_path, 0o755)
    put_file(str(tmp_path / "a" / "b" / "one"), b"1", mode=0o600)
    put_files([OutputFile("d/e/two", b"2"), OutputFile("d/three", b"3")], str(tmp_path / "c"))
    for name in ("a", "a/b", "c", "c/d", "c/d/e"):
        assert mode(tmp_path / name) == 0o700
    assert mode(tmp_path) == 0o755, "what was there before stays as it was"


def home_of(place: Path) -> Path:
    with turnlog.open(place) as home:
        session = home.create(id="one")
        session.user("x" * 200_000)
        home.delete(home.create(id="two").id)
    return place


def is_private(place: Path) -> None:
    found = modes(place)
    assert {name: bits for name, bits in found.items() if bits & 0o077} == {}


def test_a_home_is_private(tmp_path: Path, umask: int):
    is_private(home_of(tmp_path / "home"))


@pytest.mark.parametrize("way", ["open", "write"])
def test_a_home_that_was_opened_to_others_is_closed_when_it_is_used(tmp_path: Path, way: str):
    place = home_of(tmp_path / "home")
    for path in [place, *place.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)
    with turnlog.open(place) as home:
        session = home.resume("one")
        assert session.context()
        if way == "write":
            session.user("more")
    opened = {place, *(path for path in place.rglob("*") if path.is_dir()), place / "sessions" / "one.jsonl"}
    assert {str(path): mode(path) for path in opened if mode(path) & 0o077} == {}


def test_what_is_shared_on_purpose_stays_so(tmp_path: Path):
    place = home_of(tmp_path / "home")
    place.chmod(0o1777)
    with turnlog.open(place) as home:
        assert home.resume("one").context()
    assert mode(place) == 0o1777
    os.chmod(tmp_path, 0o755)
    (tmp_path / "plain").mkdir(mode=0o755)
    with turnlog.open(tmp_path / "plain") as home:
        home.sessions()
    assert mode(tmp_path / "plain") == 0o755, "a folder that is no home"
