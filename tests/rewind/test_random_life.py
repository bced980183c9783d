"""Two people, two agents in folders inside each other, and kills: see `randomlife.py`."""

from pathlib import Path

import pytest

from tests.rewind.randomlife import live


@pytest.mark.parametrize("seed", [1, 6, 12])
def test_nothing_is_taken_that_somebody_else_wrote(tmp_path: Path, seed: int):
    life = live(tmp_path, seed, 70)
    assert life.rewinds > 0
