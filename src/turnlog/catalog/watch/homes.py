"""Where the agents keep their sessions, and whether a home of ours has a known layout.

Asking the agents loads every format, so their answer is cached. It is valid as long as the variables that were read
have the same values, and the formats are the same. A workspace, or a folder in one, is stored for any workspace, and
resolved for the current one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping

from turnlog.layout import HOME_FILE, LAYOUT_LINES
from turnlog.version import __version__

_ANYWHERE = "/\x01workspace"
_NEXT = "\x01\n"  # importing JSON would take longer than all the rest


def key() -> str:
    """The note with the answer. Each Python environment has its own packages, and several may share a catalog."""
    return f"homes of {sys.prefix}"


class RecordingEnvironment(Mapping[str, str]):
    """An environment that records which variables were read."""

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

    def encode(self, separator: str) -> str:
        """The variables that were read, with their values."""
        variables = (key if value is None else f"{key}={value}" for key, value in self.keys_asked.items())
        return separator.join(variables)


def still_holds(encoded: str, separator: str, environ: Mapping[str, str]) -> bool:
    """Whether the variables have the values that they had when `RecordingEnvironment.encode` was called."""
    for line in filter(None, encoded.split(separator)):
        key, equals, value = line.partition("=")
        if environ.get(key) != (value if equals else None):
            return False
    return True


def formats_here() -> str:
    """A fingerprint of the installed formats, without loading any: listing entry points takes far longer.

    It consists of the folder of our formats, and of those where installers put packages.
    """
    own = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "formats")
    parts = [__version__]
    for folder in (own, *(path for path in sys.path if path.endswith("-packages"))):
        try:
            parts.append(f"{folder}={os.stat(folder).st_mtime_ns}")
        except (OSError, ValueError):
            continue
    return _NEXT.join(parts)


def decode(noted: bytes | None, environ: Mapping[str, str], home: str) -> list[tuple[str, str]] | None:
    """The cached answer of the formats; None if they have to be asked again."""
    if noted is None:
        return None
    formats, home_before, asked, *homes = os.fsdecode(noted).split("\0")
    if formats != formats_here() or home_before != home or not still_holds(asked, _NEXT, environ):
        return None
    return list(zip(homes[::2], homes[1::2], strict=True))


def ask_formats(environ: Mapping[str, str], home: str) -> tuple[list[tuple[str, str]], bytes]:
    """Ask the formats. Returns their folders, and the answer as it is cached."""
    from turnlog.formats import Places, every

    formats, asked = formats_here(), RecordingEnvironment(environ)
    asked.get("PYTHONPATH")  # it may lead to other packages
    homes: list[tuple[str, str]] = []
    for name, form in every():
        everywhere = form.homes(Places(home=home, environ=asked))
        near = form.homes(Places(home=home, workspace=_ANYWHERE, environ=asked))
        inside = [path for path in near if (path + os.sep).startswith(_ANYWHERE + os.sep)]
        homes += [(name, path) for path in dict.fromkeys([*everywhere, *inside])]
    parts = [formats, home, asked.encode(_NEXT), *(part for pair in homes for part in pair)]
    return homes, os.fsencode("\0".join(parts))


def resolve(homes: list[tuple[str, str]], workspace: str) -> list[tuple[str, str]]:
    """The folders, with those of any workspace resolved for this one."""
    return [
        (agent, workspace + path.removeprefix(_ANYWHERE) if path.startswith(_ANYWHERE) else path)
        for agent, path in homes
    ]


def has_known_layout(folder: str) -> bool:
    """Whether this version knows how a home in a folder is laid out. A folder without a home counts as known."""
    try:
        with open(os.path.join(folder, HOME_FILE), "rb") as file:
            return file.read(1000) in LAYOUT_LINES
    except FileNotFoundError:
        return True
    except OSError:
        return False
