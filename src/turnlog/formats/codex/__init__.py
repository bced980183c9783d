"""Codex: a rollout per thread under `~/.codex/sessions/YYYY/MM/DD/`, one JSON line per record."""

from __future__ import annotations

from turnlog.formats import Format, Watching
from turnlog.formats._shared.finding import find_files, homes_under_variable, resume_command
from turnlog.formats._shared.growth import growing
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.codex.heading import NAME, first_meta, is_rollout
from turnlog.formats.codex.reading import CodexState, read

FORMAT = Format(
    "Codex, from the bare files of 2025 to today's, compressed and archived ones too",
    homes_under_variable("CODEX_HOME", ".codex", "sessions", "archived_sessions"),
    find_files(NAME, lambda path: is_rollout(path) and first_meta(path) is not None),
    read,
    write=written_by("turnlog.formats.codex.writing"),
    resume=resume_command("codex", "resume", "ID"),
    growth=growing(CodexState, read),
    watch=Watching(by_file=True),
)
