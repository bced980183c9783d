"""Homes in a store of another installed package: found by the scheme of the location, and like ours in everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.every import NAMES, looks_at_a_home, prepare
from tests.cli.scene import Cli, write_session
from tests.clock import tick
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.testing import StoreContract

SOURCE = (Path(__file__).parents[1] / "store" / "installed" / "toy.py").read_text()


class Packages:
    """Where this person's packages are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, name: str, source: str, value: str = "connect") -> None:
        """A distribution as an installer leaves it."""
        told = self.folder / f"{name}-1.0.dist-info"
        told.mkdir(parents=True)
        (self.folder / f"{name}.py").write_text(source)
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text(f"[turnlog.stores]\n{name} = {name}:{value}\n")


@pytest.fixture
def packages(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Packages:
    made = Packages(tmp_path / "site-packages")
    made.install("toy", SOURCE)
    monkeypatch.syspath_prepend(made.folder)
    monkeypatch.setenv("PYTHONPATH", str(made.folder))
    monkeypatch.setenv("TURNLOG_HOME", f"toy://{tmp_path}/kept")
    return made


@pytest.fixture
def session(packages: Packages) -> str:
    """A session there."""
    with turnlog.open(checkpoints=False, clock=tick) as home:
        assert home.backend == "toy"
        write_session(home)
        return next(iter(home.sessions())).id


class TestToy(StoreContract):
    def connect(self, folder, clock):
        from tests.store.installed import toy

        return toy.connect(f"toy://{folder}", clock=clock)


@pytest.mark.parametrize("name", [name for name in NAMES if looks_at_a_home(name) and name != "path"])
def test_every_command_works_there(name: str, session: str, cli: Cli):
    for more in ([], ["--json"]):
        words = prepare(cli, name)
        done = cli(words[0], *more, *words[1:])
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
    assert done.json["version"] == (2 if name == "search" else 1)


def test_what_it_cannot_do_is_said(session: str, process: Cli):
    for words in (["path"], ["doctor", "--repair"]):
        done = process(*words)
        assert (done.code, done.err.splitlines()[0]) == (7, "error: the toy store keeps no files")
    done = process("gc", "--quota", "1GB")
    assert (done.code, done.err.splitlines()[0]) == (7, "error: the toy store does not say how much it takes")


def listed(process: Cli, *words: str) -> list[str]:
    return [row["id"] for row in process("ls", "--json", *words).json["sessions"]]


def test_the_catalog_keeps_up_with_it(session: str, process: Cli):
    assert listed(process, "--all") == [session]
    with turnlog.open(clock=tick) as home:
        with home.resume(session) as found:
            found.user("and the pelargonium?")
        with home.create(workspace=".", title="another") as other:
            other.user("a geranium")
    assert listed(process) == [other.id, session]
    assert "pelargonium" in process("search", "pelargonium").out
    assert process("log", "@", "--json").json["session"] == other.id
    assert process("log", "@-", "--json").json["session"] == session
    assert process("rm", other.id).code == 0
    assert listed(process) == [session]
    assert listed(process, "--deleted") == [other.id]
    assert process("rm", "--purge", "--yes", other.id).code == 0
    assert listed(process, "--deleted") == []
    assert "geranium" not in process("search", "geranium").out
    with turnlog.open(clock=tick) as home, home.create(id=other.id, workspace=".") as again:
        again.user("a tulip")
    assert listed(process) == [other.id, session]
    assert "tulip" in process("search", "tulip").out


def test_one_of_the_same_name_is_read_anew(session: str, process: Cli):
    with turnlog.open(clock=tick) as home:
        with home.create(id="same", workspace=".") as found:
            for _ in range(20):
                found.user("a geranium")
        assert "geranium" in process("search", "geranium").out
        home.purge("same")
        with home.create(id="same", workspace=".") as found:
            found.user("a tulip")
    assert "geranium" not in process("search", "geranium").out
    assert "tulip" in process("search", "tulip").out
    assert [row["id"] for row in process("ls", "--json", "same").json["sessions"]] == ["same"]
    [row] = [row for row in process("ls", "--json").json["sessions"] if row["id"] == "same"]
    assert row["problem"] == "" and row["messages"] == 1


def test_an_unknown_scheme_names_those_there_are(packages: Packages, process: Cli):
    for words in (["ls"], ["show"], ["doctor"]):
        done = process(*words, "--home", "s3://bucket/x")
        assert done.code == turnlog.Unsupported.exit_code
        assert done.err == (
            "error: no store for s3: locations\nhint: a folder, or one of memory:, postgres:, postgresql:, toy:\n"
        )
    with pytest.raises(turnlog.Unsupported, match="no store for s3: locations"):
        turnlog.open("s3://bucket/x")


def test_a_broken_one_is_told_in_a_line_and_harms_nobody(packages: Packages, session: str, process: Cli):
    broken = {
        "stops": ("raise RuntimeError('not today,\\nnot ever')\n", "RuntimeError: not today, not ever"),
        "seven": ("connect = 7\n", "TypeError: seven:connect is no function"),
        "empty": ("", "AttributeError: module 'empty' has no attribute 'connect'"),
        "needs": ("import nothing_like_it\n", "ModuleNotFoundError: No module named 'nothing_like_it'"),
        "postgres": ("raise RuntimeError('never asked')\n", ""),
    }
    for name, (source, told) in broken.items():
        packages.install(name, source)
        if told:
            done = process("show", "--home", f"{name}://x")
            assert (done.code, done.out) == (turnlog.Unsupported.exit_code, "")
            assert done.err == f"error: the store for {name}: locations cannot be loaded: {told}\n"
    assert process("show").code == 0
    assert "never asked" not in process("show", "--home", "postgres://localhost:1/x").err


def test_nobody_asks_for_packages_who_needs_none(packages: Packages, folder: Path, tmp_path: Path):
    program = (
        "import sys, turnlog\nwith turnlog.open(sys.argv[1]) as home, home.create() as session: session.user('x')\n"
        "print(*sys.modules)"
    )
    words = [sys.executable, "-c", program]
    here = subprocess.run([*words, str(folder)], capture_output=True, text=True, check=True).stdout.split()
    toy = subprocess.run(
        [*words, os.environ["TURNLOG_HOME"]], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "importlib.metadata" in toy and "toy" in toy
    assert "importlib.metadata" not in here and "toy" not in here


def test_what_is_derived_is_what_a_store_with_an_index_says(packages: Packages, session: str, tmp_path: Path):
    with turnlog.open(clock=tick) as toy, turnlog.open(tmp_path / "kept") as home:
        assert list(derived.ids(interior(toy).store)) == list(derived.ids(interior(home).store))
        assert list(derived.newest(interior(toy).store)) == list(derived.newest(interior(home).store))
        assert toy.disk() == {name: number for name, number in home.disk().items() if name != "blobs"}
