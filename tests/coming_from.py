"""`docs/coming-from-proofs.md`, read: its tables, and the tests they name.

As a plug-in of pytest it looks on while the whole suite runs, and makes the run fail if a test that the page names did
not run. A part of the suite proves nothing about the page, and is left alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs/coming-from-proofs.md"
_ID = re.compile(r"`(tests/[\w/]+\.py(?:::\w+)+)`")


class Row(NamedTuple):
    """One line of a table."""

    system: str
    line: int
    cells: list[str]

    @property
    def tests(self) -> list[str]:
        return _ID.findall(self.cells[-1])


def rows(text: str) -> list[Row]:
    """The lines of every table, without their heads, each with the section it stands in."""
    found: list[Row] = []
    system, inside = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("## "):
            system = line[3:]
        inside = inside + 1 if line.startswith("|") else 0
        if inside > 2:
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found.append(Row(system, number, [cell.strip() for cell in cells]))
    return found


def plain(node_id: str) -> str:
    """The name of a test, whatever its parameters."""
    return node_id.partition("[")[0]


class Witness:
    """Sees which tests run."""

    def __init__(self, named: set[str]) -> None:
        self.named = named
        self.ran: set[str] = set()
        self.missed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and not report.skipped:
            self.ran.add(plain(report.nodeid))

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.OK and is_whole(session.config):
            self.missed = sorted(self.named - self.ran)
            if self.missed:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for name in self.missed:
            terminalreporter.write_line(f"docs/coming-from-proofs.md names {name}, which did not run", red=True)


def is_whole(config: pytest.Config) -> bool:
    """Whether this is a run of everything."""
    option = config.option
    narrowed = option.keyword or option.markexpr or option.collectonly or option.deselect or option.ignore
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not (
        narrowed or config.getoption("lf", default=False) or config.getoption("ff", default=False)
    )


def watch(config: pytest.Config) -> None:
    """Look on, where this process hears of every test: not in a worker of xdist."""
    if not hasattr(config, "workerinput") and PAGE.exists():
        named = {name for row in rows(PAGE.read_text()) for name in row.tests}
        config.pluginmanager.register(Witness(named), "coming-from")
