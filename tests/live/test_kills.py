"""A hook or its agent killed with -9 at any instant: the log is whole, nobody's work is lost, the next turn works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.live.killlab import SCENES


@pytest.mark.parametrize("name", SCENES)
def test_whenever_a_hook_dies_nothing_is_lost_and_the_next_turn_works(tmp_path: Path, name: str):
    assert SCENES[name].live(tmp_path, step=9, first=1 + len(name) % 5) > 2
