"""Where the catalog lies."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

import turnlog
from turnlog.catalog.ask.completion import names_beginning
from turnlog.catalog.index.sqlite.indexfile import index_path
from turnlog.catalog.watch.limits import limits
from turnlog.errors import Unsupported
from turnlog.machine.environment import default_home
from turnlog.machine.location import folder_of, is_shared


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def place(location: str) -> Path:
    found = index_path(location, agents=True)
    assert found is not None
    return Path(found)


def test_with_things_that_this_machine_can_make_again(temporary: Path):
    here = place("postgresql://anna:secret@here/one")
    assert here.parent == temporary / "cache" / "turnlog"
    assert stat.S_IMODE(here.parent.stat().st_mode) == 0o700
    assert place("postgresql://anna:other@here/one") == here
    assert place("postgresql://anna@here/one?password=x") == place("postgresql://anna@here/one?")
    assert place("postgres://u:pw@h:1/one?application_name=me@x") != place(
        "postgres://u:pw@h:1/two?application_name=me@x"
    )
    others = ["postgresql://anna:secret@here/two", "postgresql://anna@here/one?tenant=a", str(temporary / "home")]
    assert len({here, *map(place, others), place(str(temporary / "home2"))}) == 5
    (temporary / "link").symlink_to("home")
    assert place(str(temporary / "link")) == place(f"{temporary}/home/../home/")
    assert not (temporary / "home").exists()


def test_a_folder_that_others_could_look_into_is_closed(temporary: Path):
    (temporary / "cache" / "turnlog").mkdir(parents=True)
    (temporary / "cache" / "turnlog").chmod(0o755)
    assert stat.S_IMODE(place("memory:").parent.stat().st_mode) == 0o700


def test_where_no_cache_can_be_made_it_is_temporary_and_private(temporary: Path):
    (temporary / "cache").write_text("in the way")
    assert place("memory:").parent == temporary / f"turnlog-{os.getuid()}"
    assert stat.S_IMODE(place("memory:").parent.stat().st_mode) == 0o700


def test_without_a_home_directory_it_is_no_folder_named_after_the_tilde(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(temporary)
    assert place("memory:").parent == temporary / f"turnlog-{os.getuid()}"
    assert not (temporary / "~").exists()


def test_where_no_cache_can_be_made_everybody_looks_into_the_temporary_one(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    (temporary / "cache").write_text("in the way")
    monkeypatch.setenv("HOME", str(temporary))
    home = str(temporary / "home")
    with turnlog.open(home, checkpoints=False) as opened:
        opened.create(id="one", title="A title").close()
    with turnlog.Catalog(home) as catalog:
        catalog.sync()
    assert names_beginning(home, "on") == [("one", "A title")]
    limits()
    assert sorted(path.name for path in (temporary / f"turnlog-{os.getuid()}").glob("limits")) == ["limits"]


def test_a_link_that_somebody_left_there_is_not_followed(temporary: Path):
    (temporary / "cache").write_text("in the way")
    (temporary / "trap").mkdir()
    (temporary / f"turnlog-{os.getuid()}").symlink_to("trap")
    assert index_path("memory:", agents=True) is None  # nowhere: it is made in memory
    assert not list((temporary / "trap").iterdir())


def test_a_location_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch):
    here = [os.path.expanduser("~/here"), os.path.abspath("a:b")]
    assert [folder_of(place) for place in ("memory:", "postgres://x/y", "~/here", "a:b")] == [None, None, *here]
    assert [is_shared(place) for place in ("memory:", "postgres://x/y", "~/here", "a:b")] == [False, True, False, False]
    with pytest.raises(Unsupported, match="no store for http: locations") as caught:
        folder_of("http://x")
    assert caught.value.hint == "a folder, or one of memory:, postgres:, postgresql:"
    monkeypatch.setenv("TURNLOG_HOME", " ")
    assert default_home().endswith(".turnlog")


def test_names_are_completed_from_a_cache_in_a_folder_that_is_not_unicode(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = os.fsdecode(os.fsencode(temporary) + b"/\xff?")
    try:
        os.mkdir(folder, 0o700)
    except OSError:
        pytest.skip("names have to be Unicode here")
    monkeypatch.setenv("XDG_CACHE_HOME", folder)
    home = str(temporary / "home")
    with turnlog.open(home, checkpoints=False) as opened:
        opened.create(id="one", title="A title").close()
    with turnlog.Catalog(home) as catalog:
        catalog.sync()
        assert catalog.path.startswith(folder)
    assert names_beginning(home, "on") == [("one", "A title")]
