"""The real agents are large and slow, and need node: these tests run only where this folder is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(config.invocation_params.dir, argument.partition("::")[0]).resolve() for argument in config.args]
    if not any(path.is_relative_to(HERE) for path in named):
        return True
    if not os.environ.get("AGENTS_BIN") and not (HERE / "node_modules/.ready").exists():
        raise pytest.UsageError("the agents are not installed; `make test-agents` does that")
    return None
