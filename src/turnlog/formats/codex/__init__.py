"""Codex: a rollout per thread under `~/.codex/sessions/YYYY/MM/DD/`, one JSON line per record."""

from __future__ import annotations

import os

from turnlog.formats import Format, Resuming, Watching
from turnlog.formats._shared.finding import beneath, found_by
from turnlog.formats._shared.growth import growing
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.codex.heading import NAME, first_meta, is_rollout
from turnlog.formats.codex.items import CodexState
from turnlog.formats.codex.reading import read


def _is_ours(path: str) -> bool:
    return is_rollout(os.path.basename(path)) and first_meta(path) is not None


FORMAT = Format(
    "Codex, from the bare files of 2025 to today's, compressed and archived ones too",
    beneath("CODEX_HOME", ".codex", "sessions", "archived_sessions"),
    found_by(NAME, _is_ours),
    read,
    write=written_by("turnlog.formats.codex.writing"),
    resume=Resuming(command=lambda id, path, workspace: ["codex", "resume", id], ids=UUIDS),
    growth=growing(CodexState, read),
    watch=Watching(by_file=True),
)
