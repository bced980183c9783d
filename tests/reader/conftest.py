"""A home, a person's folder and a current folder that are none of ours."""

from pathlib import Path

import pytest

from tests.cli.conftest import AGENT_HOMES


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; the home is beside it."""
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    for name in AGENT_HOMES:
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "webshop"
    place.mkdir()
    monkeypatch.chdir(place)
    return place
