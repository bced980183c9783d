"""Where the catalog lies."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from turnlog.catalog.database import place_of
from turnlog.errors import Unavailable, Unsupported
from turnlog.session.places import default_home, kind_of


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_beside_what_it_is_about(temporary: Path):
    assert place_of(str(temporary / "home"), "") == str(temporary / "home" / "catalog.sqlite")


def test_with_things_that_can_be_made_again(temporary: Path):
    place = Path(place_of(None, "postgresql://anna:secret@here/one"))
    assert place.parent == temporary / "cache" / "turnlog"
    assert place_of(None, "postgresql://anna:other@here/one") == str(place)
    assert place_of(None, "postgresql://anna:secret@here/two") != str(place)


def test_where_no_cache_can_be_made_it_is_temporary_and_private(temporary: Path):
    (temporary / "cache").write_text("in the way")
    place = Path(place_of(None, "memory:"))
    assert place.parent == temporary / f"turnlog-{os.getuid()}"
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700


def test_a_link_that_somebody_left_there_is_not_followed(temporary: Path):
    (temporary / "cache").write_text("in the way")
    (temporary / "trap").mkdir()
    (temporary / f"turnlog-{os.getuid()}").symlink_to("trap")
    with pytest.raises(Unavailable, match="can be written nowhere"):
        place_of(None, "memory:")
    assert not list((temporary / "trap").iterdir())


def test_a_location_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch):
    assert [kind_of(place) for place in ("memory:", "postgres://x/y", "~/here", "a:b")] == [
        "memory", "postgres", "files", "files",
    ]  # fmt: skip
    with pytest.raises(Unsupported, match="no store for http: locations"):
        kind_of("http://x")
    monkeypatch.setenv("TURNLOG_HOME", " ")
    assert default_home().endswith(".turnlog")
