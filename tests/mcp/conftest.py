"""A machine of a person with two projects, and sessions in them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import AGENT_HOMES
from tests.mcp.desk import Desk


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of a person who works in `webshop`; other agents keep their sessions in it."""
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in (*AGENT_HOMES, "XDG_CACHE_HOME", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "person").mkdir()
    (tmp_path / "webshop").mkdir()
    monkeypatch.chdir(tmp_path / "webshop")
    return tmp_path / "person"


@pytest.fixture
def desk(person: Path) -> Iterator[Desk]:
    """An agent that nobody knows, in that project."""
    opened = Desk()
    yield opened
    opened.close()
