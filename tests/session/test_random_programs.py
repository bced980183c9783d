"""Whatever two writers, two homes and a model that sums up do: what no summary stood for, the model sees."""

from collections import Counter

import pytest

from tests.session.randomprogram import run


@pytest.mark.parametrize("first", range(0, 12, 3))
def test_the_model_sees_every_message_that_no_summary_stood_for(first):
    done = sum((run(seed, steps=50) for seed in range(first, first + 3)), Counter())
    assert done["compact beside another"] and done["answer beside another"]
    assert min(done[move] for move in ("say", "compact", "answer", "fork", "rewind", "sync"))
