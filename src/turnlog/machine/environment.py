"""What the environment says, and the folders that follow from it. Nobody else reads either."""

from __future__ import annotations

import os
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
    """What the environment says."""
    return os.environ


def user_folder() -> str:
    """The home directory of whoever runs this; `~` if there is none."""
    return os.path.expanduser("~")


def config_folder() -> str:
    """Where programs look for this person's settings."""
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")


def state_folder() -> str:
    """Where this machine remembers what is this person's alone and cannot be made again; "" where there is no such."""
    base = os.environ.get("XDG_STATE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "turnlog") if os.path.isabs(base) else ""


def cache_folders() -> Iterator[str]:
    """Where things may lie that can be made again; the next one is for where the one before cannot be used."""
    base = os.environ.get("XDG_CACHE_HOME")
    if not base or not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    yield os.path.join(base, "turnlog")
    from tempfile import gettempdir  # hardly ever, and it takes a while to load

    yield os.path.join(gettempdir(), f"turnlog-{os.getuid()}")


RUN = "TURNLOG_RUN_TURN"
"""In what `turnlog run` starts: the turn that it is."""


def running_in() -> str | None:
    """The turn of the `turnlog run` that this process was started by."""
    value = os.environ.get(RUN, "")
    return value if 0 < len(value) < 200 and value.isprintable() else None


def allows_agent() -> bool:
    """Whether `TURNLOG_ALLOW_AGENT` lifts the checks that stop agents."""
    return os.environ.get("TURNLOG_ALLOW_AGENT", "") not in ("", "0")
