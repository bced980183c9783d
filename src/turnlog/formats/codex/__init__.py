"""Codex: a rollout per thread under `~/.codex/sessions/YYYY/MM/DD/`, one JSON line per record."""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, Places, Resuming, Source, Watching, Writing
from turnlog.formats._shared.key import UUIDS
from turnlog.formats._shared.records import files_under
from turnlog.formats.codex.heading import NAME, first_meta, is_rollout
from turnlog.formats.codex.reading import grown, read


def homes(places: Places) -> list[str]:
    """See `turnlog.formats`."""
    base = places.environ.get("CODEX_HOME") or os.path.join(places.home, ".codex")
    return [os.path.join(base, "sessions"), os.path.join(base, "archived_sessions")]


def find(path: str) -> Iterator[Source]:
    """See `turnlog.formats`."""
    for file in files_under(path):
        if is_rollout(os.path.basename(file)) and first_meta(file) is not None:
            yield Source(NAME, file)


def _writing() -> Writing:
    from turnlog.formats.codex.writing import WRITING  # who only reads does not load what writes

    return WRITING


FORMAT = Format(
    "Codex, from the bare files of 2025 to today's, compressed and archived ones too",
    homes,
    find,
    read,
    write=_writing,
    resume=Resuming(command=lambda id, path, workspace: ["codex", "resume", id], ids=UUIDS),
    growth=grown,
    watch=Watching(by_file=True),
)
