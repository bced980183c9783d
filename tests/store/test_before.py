"""A home that an earlier version made, in which a session's first entry is called like the session itself.

`before/` was written by that version: forks of sessions that were purged, deleted and kept, and of one with a long id.
"""

import shutil
from pathlib import Path

import pytest

import turnlog
from tests.moving.scene import everything, said
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files import homefolder

SAID = {
    "kept": ["kept one", "long long "],
    "fork of kept": ["kept one", "long long ", "from kept"],
    "fork of purged": ["one", "two", "from two"],
    "fork of a fork": ["one", "two", "from two", "deeper"],
    "fork of gone": ["gone one", "gone two", "from gone"],
    "fork of a long one": ["a long id", "from it"],
    "end": ["c1", "c2", "c3"],
}
LONG = "x" * 300


@pytest.fixture
def place(tmp_path: Path) -> Path:
    shutil.copytree(Path(__file__).parent / "before", tmp_path / "home")
    return tmp_path / "home"


def conversations(home: turnlog.Home) -> dict[str, list[str]]:
    return {name: said(home, name) for name in derived.ids(interior(home).store)}


def test_everything_is_there(place: Path):
    with turnlog.open(place) as home:
        assert conversations(home) == SAID
        home.gc()
        home.restore("gone")
        assert conversations(home) == {**SAID, "gone": ["gone one", "gone two"]}


def test_ids_that_were_purged_or_deleted_then_can_be_used_again(place: Path):
    with turnlog.open(place) as home:
        for name in ("purged", "gone", "chain", "link", LONG):
            with home.create(id=name) as session:
                session.user("anew")
                session.fork(id=f"new fork of {name[:9]}").user("on")
        new = {name: ["anew"] for name in ("purged", "gone", "chain", "link", LONG)}
        forks = {f"new fork of {name[:9]}": ["anew", "on"] for name in new}
        assert conversations(home) == {**SAID, **new, **forks}
        with pytest.raises(turnlog.AlreadyExists):
            home.restore("gone")
        home.restore("gone", as_="back")
        for name in new:
            home.purge(name)
        assert conversations(home) == {**SAID, **forks, "back": ["gone one", "gone two"]}
        home.gc()
        for name in (*SAID, *forks, "back"):
            home.purge(name)
        assert home.disk()["logs"] == 0  # nothing is kept aside for nobody


def test_a_fork_made_now_of_what_was_there_before_is_found_as_well(place: Path):
    with turnlog.open(place) as home:
        home.resume("fork of purged").fork(3, id="early").user("now")
        home.resume("kept").fork(id="late").user("now")
        for name in ("kept", "fork of purged"):
            home.purge(name)
            home.create(id=name).user("another")
        assert said(home, "early") == ["one", "now"]
        assert said(home, "late") == [*SAID["kept"], "now"]
        assert said(home, "fork of a fork") == SAID["fork of a fork"]


def test_it_moves_to_another_home_and_back(place: Path, tmp_path: Path):
    with turnlog.open(place) as home, turnlog.open(tmp_path / "other") as other:
        rows = [row for rows in home.sync(other) for row in rows]
        assert [row.error for row in rows if row.error] == []
        assert everything(home) == everything(other)
        assert conversations(other) == SAID
        with other.resume("fork of purged") as session:
            session.user("there")
        home.sync(other)
        assert said(home, "fork of purged")[-1] == "there"


def test_an_older_version_does_not_write_to_a_home_that_a_newer_one_wrote_to(place: Path, monkeypatch):
    def version_of_before() -> None:
        for name in ("LAYOUT", "ERASED_LAYOUT"):
            monkeypatch.setattr(homefolder, name, {"layout": 1, "packs": 1})

    with turnlog.open(place) as home, monkeypatch.context():
        home.sessions()
        version_of_before()
        turnlog.open(place).close()  # nobody has written there yet
        monkeypatch.undo()
        home.create(id="new").close()
    version_of_before()
    with pytest.raises(turnlog.Unsupported, match=r"this Turnlog knows [01]$"):
        turnlog.open(place)
