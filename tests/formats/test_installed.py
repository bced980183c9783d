"""Formats of other installed packages: found by their entry points, like ours in everything, and no danger to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.formats.installed import notebook
from turnlog import Message, NotFound, Text, Unsupported
from turnlog.formats import (
    Places,
    Reading,
    Record,
    Rendered,
    ResumePoint,
    Resuming,
    Retention,
    SessionHeader,
    Source,
    Step,
    Watching,
    Writing,
    added,
    format_of,
    is_known,
    names,
)  # fmt: skip
from turnlog.formats._guard import guarded
from turnlog.testing import FormatContract

HERE = Path(__file__).parent / "installed"
BROKEN = "from turnlog.formats import Format\nraise RuntimeError('not today,\\nnot ever')\n"
RAISING = """
from turnlog.formats import Format, Source
def no(*given):
    raise KeyError("not\\nhere")
FORMAT = Format("raises", no, no, no)
"""


class TestNotebook(FormatContract):
    name = "notebook"
    format = notebook.FORMAT
    samples = [HERE / "errands"]
    writes = False


class Machine:
    """A person with a workspace, and packages of theirs on the path."""

    def __init__(self, folder: Path) -> None:
        self.packages, self.work, self.user = (folder / name for name in ("site-packages", "work", "user"))
        for made in (self.packages, self.work, self.user):
            made.mkdir()
        (self.work / "notebook.txt").write_bytes((HERE / "errands" / "notebook.txt").read_bytes())

    def install(self, name: str, source: str, value: str = "FORMAT") -> None:
        """A distribution as an installer leaves it."""
        (self.packages / f"{name}.py").write_text(source)
        told = self.packages / f"{name}-1.0.dist-info"
        told.mkdir()
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (told / "entry_points.txt").write_text(f"[turnlog.formats]\n{name} = {name}:{value}\n")

    def run(self, *words: str, code: int = 0, flags: tuple[str, ...] = ()) -> tuple[str, str]:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.user),
            "TURNLOG_HOME": str(self.user / "sessions"),
            "PYTHONPATH": str(self.packages),
        }
        done = subprocess.run(
            [sys.executable, *flags, "-m", "turnlog", *words],
            cwd=self.work,
            env=environ,
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done
        return done.stdout, done.stderr

    def agents(self) -> list[str]:
        return sorted(row["agent"] for row in json.loads(self.run("ls", "--json")[0])["sessions"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def notebooks(machine: Machine) -> Machine:
    machine.install("notebook", (HERE / "notebook.py").read_text())
    return machine


def test_it_is_listed_and_a_name_of_ours_stays_ours(notebooks: Machine):
    notebooks.install("codex", BROKEN)
    rows = {row["name"]: row for row in json.loads(notebooks.run("formats", "--json")[0])["formats"]}
    assert set(rows) == {*names(), "notebook"}
    assert rows["notebook"] == {
        "name": "notebook", "title": "notebooks of a test", "read": True, "write": False, "resume": False,
        "homes": [str(notebooks.work)],
    }  # fmt: skip
    [line] = [line for line in notebooks.run("formats")[0].splitlines() if line.startswith("notebook")]
    assert line.split() == ["notebook", "read", ".", "notebooks", "of", "a", "test"]


def test_its_sessions_are_found_though_their_home_is_the_workspace_itself(notebooks: Machine):
    assert notebooks.agents() == ["notebook"]
    out, err = notebooks.run("search", "pelargonium", "--json")
    assert [card["agent"] for card in json.loads(out)["sessions"]] == ["notebook"], out
    assert err == ""


def test_its_sessions_are_read_where_they_lie_and_brought_in(notebooks: Machine):
    assert "it stands on the balcony" in notebooks.run("show", "notebook.txt")[0]
    assert "notebook-work" in notebooks.run("import", "--agent", "notebook")[0]
    assert "it stands on the balcony" in notebooks.run("show", "notebook-work")[0]


def test_a_format_that_was_installed_since_is_asked(machine: Machine):
    assert machine.agents() == []
    machine.install("notebook", (HERE / "notebook.py").read_text())
    assert machine.agents() == ["notebook"]


def test_one_that_is_gone_harms_nobody(notebooks: Machine):
    assert notebooks.agents() == ["notebook"]
    for path in sorted(notebooks.packages.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    with (notebooks.work / "notebook.txt").open("a") as file:
        file.write("user: and the geraniums\n")
    (notebooks.work / "more").mkdir()
    assert notebooks.agents() == ["notebook"]
    assert notebooks.run("search", "pelargonium")[1] == ""
    notebooks.install("notebook", (HERE / "notebook.py").read_text())
    assert "geraniums" in notebooks.run("search", "geraniums")[0]


def test_broken_ones_are_told_in_a_line_each_and_harm_nobody(notebooks: Machine):
    broken = {
        "stops": (BROKEN, "cannot be loaded: RuntimeError: not today, not ever"),
        "seven": ("FORMAT = 7\n", "cannot be loaded: seven:FORMAT is no Format"),
        "empty": ("", "cannot be loaded: AttributeError: "),
        "raises": (RAISING, "failed: KeyError: 'not\\nhere'"),
    }
    for name, (source, _) in broken.items():
        notebooks.install(name, source)
    out, err = notebooks.run("formats")
    assert {line.split()[0] for line in out.splitlines()[1:]} == {*names(), "notebook", "raises"}
    told = sorted(err.splitlines())
    assert len(told) == len(broken)
    for line, name in zip(told, sorted(broken), strict=True):
        assert line.startswith(f"warning: the format {name!r} of {name} {broken[name][1]}")
    assert notebooks.agents() == ["notebook"]
    assert "notebook-work" in notebooks.run("import", "notebook.txt")[0]


def test_one_that_raises_while_it_reads_costs_its_own_sessions(notebooks: Machine):
    source = (
        (HERE / "notebook.py")
        .read_text()
        .replace("            who, _, said", "            1 / (2 - number)\n            who, _, said")
    )
    notebooks.install("bad", source.replace('"notebook", "notebook.txt"', '"bad", "bad.txt"'))
    (notebooks.work / "bad.txt").write_text("user: one\nnotebook: two\nuser: three\n")
    assert notebooks.agents() == ["bad", "notebook"]
    out, err = notebooks.run("import", "bad.txt")
    assert "the format 'bad' of bad broke off: ZeroDivisionError" in out + err
    assert "two" in notebooks.run("show", "bad-work")[0]


def raising(*given: Any, **named: Any) -> Any:
    raise KeyError("not here")


def test_a_growth_that_raises_while_it_is_read_breaks_off_with_a_problem():
    def grown(source: Source, start: ResumePoint) -> Reading:
        def steps() -> Iterator[Step]:
            yield Record(entry=Message(role="user", blocks=[Text(text="on")]), key="1")
            raising()

        header = SessionHeader(id="one")
        return Reading(header=header, steps=steps(), mark=ResumePoint(9, 9))

    form = guarded("the format 'bad' of bad", replace(notebook.FORMAT, growth=grown))
    assert form.growth is not None
    reading = form.growth(Source("bad", "x"), ResumePoint(0, 0))
    assert reading is not None
    assert [step.key for step in reading.steps] == ["1"]
    assert [problem.what for problem in reading.problems] == [
        "the format 'bad' of bad broke off: KeyError: 'not here'"
    ]  # fmt: skip
    assert reading.mark is None, "what is missing is read again"


@pytest.mark.filterwarnings("ignore:the format 'bad'")
def test_whatever_else_raises_is_unsupported_or_as_if_it_were_not_there():
    form = guarded("the format 'bad' of bad", replace(
        notebook.FORMAT,
        write=Writing(render=raising, place=raising),
        resume=Resuming(command=raising, model=raising),
        growth=raising,
        watch=Watching(stamps=raising, sidecars=raising),
        retention=Retention(settings=raising, syntax="json", path=("a",), days=raising, forever=()),
    ))  # fmt: skip
    places, source = Places("/home"), Source("bad", "x")
    assert isinstance(form.write, Writing) and form.resume and form.resume.model and form.retention and form.growth
    written = Rendered(id="one", files=[])
    for call in (
        lambda: form.write.render(written), lambda: form.write.place(written, "x"),
        lambda: form.resume.command("id", "x", "/"), lambda: guarded("x", replace(form, write=raising)).write(),
    ):  # fmt: skip
        with pytest.raises(Unsupported, match="KeyError: 'not here'"):
            call()
    assert form.resume.model(places) is None
    assert form.growth(source, ResumePoint(0, 0)) is None
    assert form.retention.days(None) is None
    assert form.watch.stamps and form.watch.sidecars
    stamps = form.watch.stamps("x")
    stamps["one"] = "two"
    assert (form.watch.stamps("x"), form.watch.sidecars(source)) == ({}, [])


def test_nobody_asks_for_packages_who_needs_none(notebooks: Machine):
    """To ask takes several times as long as Python itself takes to start."""
    for path in (notebooks.work / "notebook.txt", notebooks.work):
        os.utime(path, (0, 0))  # what has just changed is looked at again
    assert notebooks.agents() == notebooks.agents() == ["notebook"]  # the first one leaves compiled modules there
    _, err = notebooks.run("ls", flags=("-X", "importtime"))
    assert "turnlog.catalog" in err
    assert "importlib.metadata" not in err
    _, err = notebooks.run("export", "notebook-work", "--to", "pi", code=3, flags=("-X", "importtime"))
    assert "importlib.metadata" not in err


def test_for_a_test_no_package_has_to_be_installed():
    with added("notebook", notebook.FORMAT):
        assert is_known("notebook") and "notebook" in names()
        assert format_of("notebook") is notebook.FORMAT
    assert not is_known("notebook")
    with pytest.raises(NotFound, match="no format 'notebook'"):
        format_of("notebook")
