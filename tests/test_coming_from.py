"""Every line of `docs/coming-from-proofs.md` is proved by a test that exists and runs."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.coming_from import PAGE, Row, Witness, plain, rows

ROOT = PAGE.parents[1]
SYSTEMS = ("sofos", "claw", "rho", "Owlen", "a3s")
ROWS = rows(PAGE.read_text())


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> set[str]:
    """Every test of the files that the page names, and of those written for it, as pytest finds them."""
    files = {name.partition("::")[0] for row in ROWS for name in row.tests}
    files |= {str(path.relative_to(ROOT)) for path in (ROOT / "tests/seeds").glob("test_*.py")}
    missing = sorted(name for name in files if not (ROOT / name).exists())
    assert not missing, f"the page names files that are not there: {missing}"
    found: set[str] = set()
    config = request.config
    if not (config.option.keyword or config.option.markexpr or any("::" in word for word in config.args)):
        found = {plain(item.nodeid) for item in request.session.items}
    files -= {name.partition("::")[0] for name in found}
    if files:  # not part of this run
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *sorted(files)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:]
        found |= {plain(line) for line in done.stdout.splitlines() if "::" in line}
    return found


def test_every_system_has_both_tables():
    assert Counter(row.system for row in ROWS).keys() == set(SYSTEMS)
    text = PAGE.read_text()
    for system in SYSTEMS:
        section = text.partition(f"\n## {system}\n")[2].partition("\n## ")[0]
        assert section.count("\n| --- | --- | --- |\n") == 2


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line-{row.line}")
def test_no_cell_is_empty_and_every_row_names_a_test(row: Row):
    assert len(row.cells) == 3
    assert all(row.cells)
    assert row.tests, f"line {row.line} names no test"


def test_every_test_that_is_named_exists(collected: set[str]):
    missing = sorted({f"line {row.line}: {name}" for row in ROWS for name in row.tests if name not in collected})
    assert not missing


def test_every_test_that_was_written_for_it_is_named(collected: set[str]):
    named = {name for row in ROWS for name in row.tests}
    assert sorted(name for name in collected if name.startswith("tests/seeds/") and name not in named) == []


def test_every_fault_has_its_name_in_the_docstring():
    for path in sorted((ROOT / "tests/seeds").glob("test_*_faults.py")):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if line.startswith("def test_"):
                assert lines[number + 1].startswith('    """'), f"{path.name}: {line}"


def test_a_row_without_a_test_is_noticed():
    head = "## x\n\n| a | b | c |\n| --- | --- | --- |\n"
    one, two = rows(f"{head}| what | how | `tests/a.py::test_b[1]` `tests/a.py::test_c` |\n| |  | no |\n")
    assert (one.system, one.tests) == ("x", ["tests/a.py::test_c"])
    assert (two.cells, two.tests) == (["", "", "no"], [])


WITNESSED = """
from tests.coming_from import Witness
def pytest_configure(config):
    config.pluginmanager.register(Witness({"tests/test_it.py::test_named"}), "coming-from")
"""


@pytest.mark.parametrize(
    ("body", "args", "code"),
    [
        ("import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test_named(n): pass", [], 0),
        ("def test_other(): pass", [], 1),
        ("import pytest\ndef test_named(): pytest.skip('not here')\ndef test_other(): pass", [], 1),
        ("def test_other(): pass", ["-k", "other"], 0),
    ],
    ids=["ran", "absent", "skipped", "narrowed"],
)
def test_a_run_of_everything_fails_if_a_named_test_did_not_run(tmp_path: Path, body: str, args: list[str], code: int):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text(body)
    (tmp_path / "conftest.py").write_text(WITNESSED)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\ntestpaths = tests\npythonpath = {ROOT}\naddopts = --import-mode=importlib\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    assert ("which did not run" in done.stdout) == bool(code)


def test_the_witness_is_there_in_this_run(pytestconfig: pytest.Config):
    if hasattr(pytestconfig, "workerinput"):
        return  # the process that hears of every test has it
    assert isinstance(pytestconfig.pluginmanager.get_plugin("coming-from"), Witness)
