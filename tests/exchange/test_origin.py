"""Where a session was read from, whatever its first line says of that."""

from __future__ import annotations

from typing import Any

import pytest

from turnlog.exchange.origin import Origin, decode_origin
from turnlog.interop.copied import Copied, CopyOf
from turnlog.log.entry import Start


@pytest.mark.parametrize(
    "origin",
    [
        Origin("codex", "a", "b", "/c", {"d": 1}, Copied(of=[CopyOf("e")], messages=2)),
        Origin("codex", "", "", "/c"),
    ],
)
def test_an_origin_is_read_as_it_was_written(origin: Origin):
    assert decode_origin(Start(id="s", origin=origin.to_json())) == origin


@pytest.mark.parametrize("told", [None, "codex", [], {"agent": 1, "id": None, "path": [], "copied": {"of": []}}])
def test_what_is_no_origin_is_an_empty_one(told: Any):
    assert decode_origin(Start(id="s", origin=told)) == Origin()
