"""The file that starts this program: a path in other programs' settings has to outlive an upgrade."""

from __future__ import annotations

import os
import sys
from tempfile import gettempdir

from turnlog.errors import Unsupported
from turnlog.machine.environment import environment, user_folder

_NAME = "turnlog"
_ENVIRONMENT = ("pyvenv.cfg", "conda-meta")
"""What lies in the folder of an environment that belongs to a project, a tool or a single run."""
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders")
_HEAD = 2048


def launcher(install: str = "hooks install") -> str:
    """The launcher of this installation. Raises `Unsupported` if none would outlive an upgrade.

    `install` is the command that wants it.
    """
    candidates = _candidates()
    for path in candidates:
        if not _why_temporary(path) and starts_this_installation(path):
            return path
    others = [path for path in candidates if not _why_temporary(path)]
    why = _why_temporary(this_launcher()) or f"{this_launcher()} is not on the PATH"
    tool = f"`{others[0]} {install}` is another installation" if others else "`uv tool install turnlog`, then again"
    raise Unsupported(
        f"this installation is not permanent: {why}", hint=f"{tool}; or --anyway, if you know that it stays"
    )


def this_launcher() -> str:
    """The file that started this process, wherever it lies; or that of its environment."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) == _NAME and os.access(started, os.X_OK):
        return started
    return os.path.join(sys.prefix, "bin", _NAME)


def _candidates() -> list[str]:
    """The files that users start this program by, the usual one first."""
    folders = environment().get("PATH", os.defpath).split(os.pathsep)
    usual = os.path.join(user_folder(), ".local", "bin")
    places = [os.path.join(folder, _NAME) for folder in [usual, *folders] if os.path.isabs(folder)]
    programs = [path for path in [*places, this_launcher()] if os.path.isfile(path) and os.access(path, os.X_OK)]
    return list(dict.fromkeys(programs))


def _why_temporary(path: str) -> str:
    """Why that file may be gone before long; empty if it may stay. The link counts, not what it leads to."""
    above = os.path.dirname(os.path.dirname(path))
    if any(os.path.lexists(os.path.join(above, name)) for name in _ENVIRONMENT):
        return f"{path} lies in an environment of its own"
    for folder in (*_TEMPORARY, gettempdir()):
        if path.startswith(folder.rstrip("/") + "/"):
            return f"{path} lies in a temporary folder"
    return ""


def starts_this_installation(path: str) -> bool:
    """Whether a file starts this installation: it is part of it, or its first lines name its Python."""
    ours = os.path.join(os.path.realpath(sys.prefix), "bin")
    if os.path.dirname(os.path.realpath(path)) == ours:
        return True
    try:
        with open(path, "rb") as file:
            head = os.fsdecode(file.read(_HEAD))
    except OSError:  # it may be run, but not read
        return False
    return f"{os.path.join(sys.prefix, 'bin')}/python" in head or f"{ours}/python" in head
