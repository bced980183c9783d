"""opencode: a database under `~/.local/share/opencode`, folders of JSON in early versions, exports, captured events."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Format, Places, Resuming, Source, Watching
from turnlog.formats._shared.finding import folder_of, homes_under_variable, sessions_in
from turnlog.formats._shared.transcript import written_by
from turnlog.formats.opencode.reading import grown, read
from turnlog.formats.opencode.storage import NAME, in_export, in_storage, is_database, is_export, stamps, storage_of
from turnlog.interop.folder import head_of, names_in
from turnlog.interop.json import decoded
from turnlog.interop.value import fields, items, text
from turnlog.log.startup import pattern


def _find(path: str) -> Iterator[Source]:
    if os.path.isfile(path):
        yield from _in_file(path)
        return
    if _is_storage(path):
        yield from in_storage(path)
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        for name in [name for name in folders if _is_storage(os.path.join(folder, name))]:
            folders.remove(name)
            yield from in_storage(os.path.join(folder, name))
        for name in sorted(files):
            yield from _in_file(os.path.join(folder, name))


def _in_file(path: str) -> Iterator[Source]:
    if path.endswith(".db"):
        if is_database(path):
            yield from sessions_in(NAME, path, "session", "time_created")
    elif path.endswith(".json") and storage_of(path):
        yield Source(NAME, path)
    elif path.endswith((".json", ".jsonl")) and is_export(path):
        yield from in_export(path)


def _is_storage(folder: str) -> bool:
    return all(os.path.isdir(os.path.join(folder, name)) for name in ("session", "message", "part"))


def _resume(id: str, path: str, workspace: str) -> list[str]:
    """See `turnlog.formats`. What is not in its database has to be taken in first."""
    folder = os.path.dirname(path)
    databases = (os.path.join(folder, name) for name in names_in(folder, ".db"))
    if storage_of(path) or any(source.key == id for file in databases for source in _in_file(file)):
        return ["opencode", "-s", id]
    return ["sh", "-c", f"opencode import {shlex.quote(path)} && opencode -s {shlex.quote(id)}"]


_NAMES = ("opencode.jsonc", "opencode.json", "config.json")
_APART = pattern(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = pattern(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST = 4 << 20


def configured(places: Places) -> str | None:
    """What it is configured with, or was last used with: provider and model, with a slash between them, or None."""
    for path in _files(places):
        about = _settings(path)
        build = fields(fields(about.get("agent")).get("build"))
        for named in (build.get("model"), about.get("model")):
            if isinstance(named, str) and "/" in named.strip("/"):
                return named
    state = folder_of(places, "XDG_STATE_HOME", ".local/state")
    for used in items(_settings(os.path.join(state, "opencode", "model.json")).get("recent")):
        provider, model = text(used.get("providerID")), text(used.get("modelID"))
        if provider and model:
            return f"{provider}/{model}"
    return None


def _files(places: Places) -> Iterator[str]:
    """Where its settings lie; what stands first counts."""
    folder = places.workspace
    while folder:
        yield from (os.path.join(folder, inner, name) for inner in ("", ".opencode") for name in _NAMES[:2])
        if os.path.exists(os.path.join(folder, ".git")) or os.path.dirname(folder) == folder:
            break
        folder = os.path.dirname(folder)
    if given := places.environ.get("OPENCODE_CONFIG"):
        yield given
    base = folder_of(places, "XDG_CONFIG_HOME", ".config")
    yield from (os.path.join(base, "opencode", name) for name in _NAMES)


def _settings(path: str) -> dict[str, Any]:
    """JSON with comments, as people write it; nothing where there is none."""
    data = (head_of(path, _MOST) or b"").decode("utf-8", "replace")
    return fields(decoded(_COMMA.sub(r"\1", _APART.sub(r"\1", data))))


FORMAT = Format(
    "opencode: its database, storage folders, exports and captured events",
    homes_under_variable("XDG_DATA_HOME", ".local/share", "opencode"), _find, read,
    write=written_by("turnlog.formats.opencode.writing"),
    resume=Resuming(command=_resume, ids=r"ses_[0-9A-Za-z]{1,80}", model=configured), growth=grown,
    watch=Watching(apart=("bin", "log", "message", "part", "snapshot", "tool-output"), stamps=stamps),
)  # fmt: skip
