"""Where the agents keep their sessions. To ask them takes loading every format, so the answer is remembered.

It holds as long as the variables that were asked for are as they were, and no format came or went. A workspace, or a
folder inside one, is remembered as one of any workspace, and looked for wherever somebody stands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

from turnlog.version import __version__

_ANYWHERE = "/\x01workspace"
_NEXT = "\x01\n"  # JSON would take longer to import than all the rest to answer


def key() -> str:
    """Under which the index has the answer. Each environment has its own packages, and several may share a catalog."""
    return f"homes of {sys.prefix}"


class Asked(Mapping[str, str]):
    """The environment, and what was asked of it."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.keys_asked: dict[str, str | None] = {}

    def __getitem__(self, key: str) -> str:
        self.keys_asked[key] = self._environ.get(key)
        return self._environ[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._environ)

    def __len__(self) -> int:
        return len(self._environ)


def formats_here() -> str:
    """A fingerprint of the installed formats, without loading any: listing entry points takes far longer.

    It is the folder of our own, and those where installers put packages.
    """
    own = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "formats")
    parts = [__version__]
    for place in (own, *(path for path in sys.path if path.endswith("-packages"))):
        try:
            parts.append(f"{place}={os.stat(place).st_mtime_ns}")
        except (OSError, ValueError):
            continue
    return _NEXT.join(parts)


def remembered(noted: bytes | None, environ: Mapping[str, str], home: str) -> list[tuple[str, str]] | None:
    """What the formats said when they were last asked; None if they have to be asked again."""
    if noted is None:
        return None
    formats, place, asked, *homes = os.fsdecode(noted).split("\0")
    if formats != formats_here() or place != home:
        return None
    for line in filter(None, asked.split(_NEXT)):
        key, equals, value = line.partition("=")
        if environ.get(key) != (value if equals else None):
            return None
    return list(zip(homes[::2], homes[1::2], strict=True))


def ask(environ: Mapping[str, str], home: str) -> tuple[list[tuple[str, str]], bytes]:
    """What the formats say, and how to remember it."""
    from turnlog.formats import Places, every

    formats, asked = formats_here(), Asked(environ)
    asked.get("PYTHONPATH")  # who sets it may have other packages
    homes: list[tuple[str, str]] = []
    for name, form in every():
        everywhere = form.homes(Places(home=home, environ=asked))
        near = form.homes(Places(home=home, workspace=_ANYWHERE, environ=asked))
        inside = [path for path in near if (path + os.sep).startswith(_ANYWHERE + os.sep)]
        homes += [(name, path) for path in dict.fromkeys([*everywhere, *inside])]
    variables = [key if value is None else f"{key}={value}" for key, value in asked.keys_asked.items()]
    parts = [formats, home, _NEXT.join(variables), *(part for pair in homes for part in pair)]
    return homes, os.fsencode("\0".join(parts))


def here(homes: list[tuple[str, str]], workspace: str) -> list[tuple[str, str]]:
    """Those homes, for somebody who stands in that folder."""
    return [
        (agent, workspace + path.removeprefix(_ANYWHERE) if path.startswith(_ANYWHERE) else path)
        for agent, path in homes
    ]
