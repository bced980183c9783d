"""A home in a folder, a session in it, and a project that an agent works in."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from turnlog import Home, Session
from turnlog.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the home is."""
    return tmp_path / "home"


@pytest.fixture
def home(folder: Path, clock: ManualClock) -> Iterator[Home]:
    with turnlog.open(folder, clock=clock) as opened:
        yield opened


@pytest.fixture
def s(home: Home) -> Session:
    return home.create()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two files in it."""
    place = tmp_path / "project"
    place.mkdir()
    (place / "a.txt").write_text("one\n")
    (place / "b.txt").write_text("two\n")
    return place
