"""The guide shows the screens as they are."""

from __future__ import annotations

from pathlib import Path

from tests.tui.screens import GUIDE, made, written
from turnlog.tui.screens.explanation import key_name, keys_of
from turnlog.tui.screens.listing import ListScreen
from turnlog.tui.screens.reading import SessionScreen


def test_the_screens_in_the_guide_are_those_that_are_drawn(tmp_path: Path):
    text = GUIDE.read_text()
    screens = made(tmp_path / "shop")
    assert all(f"<!-- screen: {name} -->" in text for name in screens)
    assert written(text, screens) == text, "run `python -m tests.tui.screens`"


def test_every_key_of_list_and_session_is_in_the_guide():
    text = GUIDE.read_text()
    for place in (ListScreen, SessionScreen):
        for binding in keys_of(place):
            assert any(f"`{key_name(key)}`" in text for key in binding.key.split(",")), binding.key
