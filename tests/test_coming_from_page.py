"""`docs/coming-from.md`: what it shows is what happens."""

import re
import shutil
from pathlib import Path

import pytest

from tests.test_coming_from import SYSTEMS
from turnlog.cli.program import run
from turnlog.formats import format_of

ROOT = Path(__file__).resolve().parents[1]
SEEDS = ROOT / "tests" / "formats" / "seeds"
TEXT = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
SECTIONS = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")[1:]}
FILES = {
    "sofos": ("sofos/v0.2.8/workspace", "project"),
    "claw": ("claw/seed_12c364da/workspace", "project"),
    "rho": ("rho/v1_1af5a5fb/home", "person"),
    "Owlen": ("owlen/workspace", "project"),
    "a3s": ("a3s/v1_flat", "project/.a3s"),
}
"""What each program has left, and where."""


def blocks(system: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", SECTIONS[system], re.DOTALL | re.MULTILINE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in (("TURNLOG_HOME", "home"), ("HOME", "person")):
        monkeypatch.setenv(name, str(tmp_path / value))
        (tmp_path / value).mkdir()
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def test_every_system_has_five_lines_names_code_and_what_opens_where():
    assert tuple(SECTIONS) == SYSTEMS
    for system in SYSTEMS:
        assert [block.count("$ turnlog ") for block in blocks(system, "console")] == [5]
        assert len(blocks(system, "rust")) == len(blocks(system, "python")) == 1
        assert SECTIONS[system].count("\n| --- | --- |\n") == 1
        assert SECTIONS[system].count("\n| written | opens in | also contains |\n") == 1


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_versions_that_can_be_asked_for_are_those_of_the_format(system: str):
    told = {int(number) for number in re.findall(r"`--format-version (\d)`", SECTIONS[system])}
    writing = format_of(system.lower()).write
    assert writing is not None
    assert told == set(writing.versions) - {1}


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_code_runs(system: str, project: Path, monkeypatch: pytest.MonkeyPatch):
    [code] = blocks(system, "python")
    exec(compile(code, f"docs/coming-from.md: {system}", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_five_lines_do_what_they_say(system: str, project: Path, capsys: pytest.CaptureFixture[str]):
    source, place = FILES[system]
    shutil.copytree(SEEDS / source, project / place, dirs_exist_ok=True)
    before = {path: path.read_bytes() for path in (project / place).rglob("*") if path.is_file()}
    [block] = blocks(system, "console")
    outputs = []
    for line in block.splitlines():
        code = run(line.removeprefix("$ turnlog ").split())
        told = capsys.readouterr()
        assert (code, bool(told.out)) == (0, True), (line, told.err)
        outputs.append(told.out)
    listed = outputs[1].splitlines()
    assert len(listed) > 1
    assert {path: path.read_bytes() for path in before} == before
    back = [path.read_bytes() for path in (project / "project/back").rglob("*") if path.is_file()]
    assert any(data in before.values() for data in back)
