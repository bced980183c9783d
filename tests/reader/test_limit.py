"""What agents said of their limits, whatever numbers they wrote."""

import json
from pathlib import Path

import pytest

from turnlog.reader.agents.limit import _of_codex

NUMBERS = ["1" + "0" * 400, "Infinity", "-Infinity", "NaN", "1e300", "true", "null", '"5"', "[]"]


def rollout(folder: Path, **window: str) -> str:
    fields = {"used_percent": "12.5", "window_minutes": "300", "resets_at": "1800000000", **window}
    inner = ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items())
    path = folder / "rollout.jsonl"
    limits = '{"rate_limits":{"primary":{' + inner + "}}}"
    path.write_text('{"timestamp":"2026-11-01T10:00:00Z","payload":' + limits + "}\n")
    return str(path)


def test_a_window_of_codex(tmp_path: Path):
    [limit] = _of_codex([rollout(tmp_path)])
    assert (limit.minutes, limit.used_percent, limit.resets_s) == (300, 12.5, 1_800_000_000)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_is_none_is_nothing(tmp_path: Path, number: str):
    assert _of_codex([rollout(tmp_path, window_minutes=number)]) == []
    assert _of_codex([rollout(tmp_path, used_percent=number)]) == []
    [limit] = _of_codex([rollout(tmp_path, resets_at=number)])
    assert limit.resets_s is None
