"""The model that opencode would go on with: what it is configured with, or was last used with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from turnlog.formats import Places
from turnlog.formats._shared.json import decoded
from turnlog.formats._shared.value import fields, items, text

_NAMES = ("opencode.jsonc", "opencode.json", "config.json")
_APART = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_MOST = 4 << 20


def configured(places: Places) -> str | None:
    """Provider and model, with a slash between them; None where nothing says which."""
    for path in _files(places):
        about = _settings(path)
        build = fields(fields(about.get("agent")).get("build"))
        for told in (build.get("model"), about.get("model")):
            if isinstance(told, str) and "/" in told.strip("/"):
                return told
    state = places.environ.get("XDG_STATE_HOME") or os.path.join(places.home, ".local", "state")
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
    base = places.environ.get("XDG_CONFIG_HOME") or os.path.join(places.home, ".config")
    yield from (os.path.join(base, "opencode", name) for name in _NAMES)


def _settings(path: str) -> dict[str, Any]:
    """JSON with comments, as people write it; nothing where there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            told = file.read(_MOST)
    except (OSError, UnicodeDecodeError):
        return {}
    return fields(decoded(_COMMA.sub(r"\1", _APART.sub(r"\1", told))))
