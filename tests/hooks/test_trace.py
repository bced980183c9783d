"""The log of hooks, and what is told of it."""

from pathlib import Path

import pytest

from turnlog.hooks.trace import NAME, note, read_traces

BROKEN = [
    b'{"agent":"codex","event":"Stop"}', b'{"agent":"codex","at":1}', b'{"agent":"codex","event":"Stop","at":"x"}',
    b"[1]", b"null", b"{", b'{"agent":"codex","event":"Stop","at":null}',
    b'{"agent":"codex","event":"Stop","at":1e300}', b'{"agent":"codex","event":"Stop","at":-1e15}',
]  # fmt: skip


@pytest.mark.parametrize("line", BROKEN)
def test_a_broken_line_is_passed_over_as_a_whole(tmp_path: Path, line: bytes):
    (tmp_path / NAME).write_bytes(line + b"\n")
    assert read_traces(str(tmp_path)) == {}
    note(str(tmp_path), "codex", "Stop", "s", 0.0, "it failed")
    trace = read_traces(str(tmp_path))["codex"]
    assert (trace.last_event, trace.last_error, trace.events) == ("Stop", "it failed", {"Stop": 1})
