"""What the environment says, and the folders that follow from it. Nobody else reads either."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from turnlog.errors import Invalid


def default_home() -> str:
    """`$TURNLOG_HOME`, or `.turnlog` in the home directory."""
    chosen = os.environ.get("TURNLOG_HOME")
    if chosen and chosen.strip():
        return chosen
    return usual_home()


def usual_home() -> str:
    """`.turnlog` in the home directory."""
    home = os.path.expanduser("~")
    if home == "~":
        raise Invalid("there is no home directory", hint="set TURNLOG_HOME")
    return os.path.join(home, ".turnlog")


def environment() -> Mapping[str, str]:
    """The environment variables."""
    return os.environ


def user_folder() -> str:
    """The home directory of whoever runs this; `~` if there is none."""
    return os.path.expanduser("~")


def config_folder() -> str:
    """Where programs look for this person's settings."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")


def state_folder() -> str:
    """The folder for this user's data that cannot be rebuilt; "" if there is none."""
    base = os.environ.get("XDG_STATE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "turnlog") if os.path.isabs(base) else ""


def cache_folders() -> Iterator[str]:
    """Yield folders for data that can be rebuilt; each is for the case that the one before cannot be used."""
    base = os.environ.get("XDG_CACHE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(base):  # without a home directory it is not
        yield os.path.join(base, "turnlog")
    from tempfile import gettempdir  # hardly ever, and it takes a while to load

    yield os.path.join(gettempdir(), f"turnlog-{os.getuid()}")


def usable_cache() -> str | None:
    """The folder to write to, created if it is missing; None if none can be used."""
    return next(filter(_is_made_ours, cache_folders()), None)


def existing_cache() -> str:
    """The folder that `usable_cache` returned before; nothing is created. If none exists, the usual one."""
    return next(filter(_is_ours, cache_folders()), None) or next(cache_folders())


def _is_made_ours(folder: str) -> bool:
    """Whether a folder exists or can be created that only this user can access, and can write to."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        is_ours = _is_ours(folder)
        if is_ours and stat.S_IMODE(os.lstat(folder).st_mode) != 0o700:
            os.chmod(folder, 0o700)
    except OSError:
        return False
    return is_ours


def _is_ours(folder: str) -> bool:
    """Whether a folder belongs to this user, who can write to it."""
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and os.access(folder, os.W_OK | os.X_OK)


RUN = "TURNLOG_RUN_TURN"
"""In what `turnlog run` starts: the turn that it is."""


def running_in() -> str | None:
    """The turn of the `turnlog run` that started this process."""
    value = os.environ.get(RUN, "")
    return value if 0 < len(value) < 200 and value.isprintable() else None


def allows_agent() -> bool:
    """Whether `TURNLOG_ALLOW_AGENT` lifts the checks that stop agents."""
    return os.environ.get("TURNLOG_ALLOW_AGENT", "") not in ("", "0")
