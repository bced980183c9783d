"""The recorded files are as they were counted when they were recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.formats.agents import count

FOLDERS = sorted(Path(__file__).parent.glob("*/recorded*"))


def test_every_agent_has_recorded_files():
    assert {"claude-code", "codex", "gemini-cli", "opencode", "pi"} <= {folder.parent.name for folder in FOLDERS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_the_count_is_as_expected(folder: Path):
    expected = json.loads((folder / "expected.json").read_text())
    counted = count.sessions(expected["agent"], folder)
    assert counted.keys() == expected["sessions"].keys()
    for name, found in counted.items():
        assert found == {key: expected["sessions"][name][key] for key in found}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_the_count_is_what_was_said(folder: Path):
    """Apart from forks, which begin with what others said."""
    expected = json.loads((folder / "expected.json").read_text())
    scenes = [session for session in expected["sessions"].values() if session.get("scene") not in (None, "fork")]
    assert {"work", "image", "refused", "interrupted", "compacted"} <= {session["scene"] for session in scenes}
    for session in scenes:
        assert session["user"] == session["served"]["prompts"]
        assert session["tool_calls"] == session["tool_results"] == session["served"]["tool_calls"]
        assert session["assistant"] >= session["served"]["answers"] or session["scene"] == "compacted"
