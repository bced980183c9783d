"""A few random programs over files and PostgreSQL, with kills in between; `make soak` runs more."""

import uuid
from pathlib import Path

import pytest

from tests.moving.erasinglab import Program
from turnlog.store.postgres import lease


@pytest.mark.parametrize("seed", [5])
def test_what_was_erased_is_found_nowhere_and_the_rest_is_as_it_should_be(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(lease, "TERM_S", 2.0)  # so long the lease of one that was killed is waited for
    url = f"{request.getfixturevalue('postgres').url}?tenant={uuid.uuid4()}"
    program = Program(seed, tmp_path, url, kills=0.1)
    program.run()
    assert program.erased
