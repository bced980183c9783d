"""A disk that is full, or cannot be written, is no reason not to answer."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite import database


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root can mount a disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def work(home: Path) -> None:
    with turnlog.open(home) as opened:
        s = opened.create(title="the needle")
        s.user("find the needle")
        s.assistant("ok", model="claude-sonnet-4-5", usage=turnlog.Usage(input_tokens=10))


def fill(disk: Path) -> None:
    with open(disk / "rest", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return


def ask(*words: str, **places: Path) -> tuple[str, str]:
    environment = {**os.environ, **{name: str(place) for name, place in places.items()}}
    done = subprocess.run(
        [sys.executable, "-m", "turnlog", *words], capture_output=True, encoding="utf-8", check=True, env=environment
    )
    return done.stdout, done.stderr


@pytest.mark.parametrize(("cache", "before"), [("elsewhere", ""), ("full as well", "indexed before")])
def test_on_a_full_disk_there_are_answers(disk: Path, tmp_path: Path, cache: str, before: str):
    places = {
        "TURNLOG_HOME": disk / "home",
        "HOME": disk / "user",
        "XDG_CACHE_HOME": (tmp_path if cache == "elsewhere" else disk) / "cache",
    }
    work(disk / "home")
    if cache != "elsewhere":
        (disk / "cache" / "turnlog").mkdir(parents=True, mode=0o700)
    if before:
        ask("ls", "--all", **places)
        with turnlog.open(disk / "home") as home:
            home.resume().user("and another needle")
    fill(disk)
    for words in (("ls", "--all"), ("search", "needle"), ("usage", "--all")):
        out, err = ask(*words, **places)
        assert "needle" in out or "10" in out, words
        assert ("no disk has room for the index" in err) is (cache != "elsewhere")


def test_a_disk_that_cannot_be_written_gives_answers(disk: Path):
    work(disk / "home")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    places = {"TURNLOG_HOME": disk / "home", "HOME": disk / "user", "XDG_CACHE_HOME": disk / "c", "TMPDIR": disk}
    for words in (("ls", "--all"), ("search", "needle"), ("usage", "--all")):
        out, _ = ask(*words, **places)
        assert "needle" in out or "10" in out, words


def test_where_there_is_no_room_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    work(tmp_path / "home")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(database, "locked", full)
    with Catalog(tmp_path / "home", agents=False, fresh_for=0) as catalog:
        assert [card.title for card in catalog.cards()] == ["the needle"]
        work(tmp_path / "home")
        assert len(catalog.cards()) == len({hit.card.id for hit in catalog.search("needle")}) == 2
        assert catalog.rebuild().sessions == 2
        assert catalog.path == ":memory:"
    assert not list((tmp_path / "cache" / "turnlog").glob("*.sqlite"))
