"""A disk that is full and a catalog that is thrown away under the server: reading goes on."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.catalog.test_full_disk import fill
from tests.web.conftest import Served, furnish

READING = ("/", "/?q=haystack3", "/s/talk-one", "/s/talk-one?at=5", "/s/claude-code%3Aaaaa1111", "/s/talk-one/stats",
           "/s/talk-one/tree", "/compare?a=talk-one&b=claude-code%3Aaaaa1111", "/usage",
           "/s/talk-one/export?to=markdown")  # fmt: skip


def everything_can_be_read(served: Served) -> None:
    for path in READING:
        page = served.ask(path)
        assert page.status == 200, (path, page.text[:2000])
    assert "Fix the login page" in served.ask("/?q=haystack3").text
    assert "please look at case 0" in served.ask("/s/talk-one?at=5").text


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of eight megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def serving(machine: Machine) -> Iterator[Served]:
    """It is stopped whatever happens, and says nothing of Python."""
    served = Served(machine)
    try:
        yield served
    finally:
        code, err = served.stop()
    assert (code, "Traceback" in err) == (0, False), err


@pytest.mark.parametrize("is_known", [True, False], ids=["indexed before", "never indexed"])
def test_on_a_full_disk_everything_can_be_read(disk: Path, monkeypatch: pytest.MonkeyPatch, is_known: bool):
    machine = Machine(disk, monkeypatch)
    furnish(machine)
    if not is_known:
        fill(disk)
    with serving(machine) as served:
        everything_can_be_read(served)
        fill(disk)
        everything_can_be_read(served)
        kept = "Fix the login page"
        for number in range(50):  # there is some room in the last block of the log
            said = served.post("/s/talk-one/title", {"title": f"Fix the login page {number} {'more ' * 80}".strip()})
            if said.status != 200:
                break
            kept = f"Fix the login page {number} more"
        assert said.status == 500
        assert re.search("space|full", said.text.lower()), said.text
        assert kept in served.get("/s/talk-one").text, "what was acknowledged is there"
        assert "Traceback" not in said.text
        everything_can_be_read(served)
        (disk / "rest").unlink()
        assert served.post("/s/talk-one/title", {"title": "Fix the login page, again"}).status == 200
        assert "Fix the login page, again" in served.get("/s/talk-one").text


@pytest.mark.parametrize("how", ["removed", "overwritten"])
def test_a_catalog_that_is_thrown_away_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str):
    machine = Machine(tmp_path, monkeypatch)
    furnish(machine)
    with serving(machine) as served:
        everything_can_be_read(served)
        for path in machine.index.parent.glob(machine.index.stem + "*"):
            if how == "removed":
                path.unlink()
            elif path == machine.index:
                path.write_bytes(b"no database " * 10_000)
        everything_can_be_read(served)
        with turnlog.open(str(machine.home)) as home, home.create(id="late-one", title="A late one") as session:
            session.user("a word that came lately")
        assert served.get("/s/late-one").status == 200
