"""The home that the options name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.cli.frame.progress import show_files

if TYPE_CHECKING:
    from turnlog.session import Home


class _Chosen:
    location: str | None = None


def choose_home(location: str | None) -> None:
    """Set the location that the options name; None for the default."""
    _Chosen.location = location


def home_location() -> str | None:
    """The location of the home that the options name; None for the default."""
    return _Chosen.location


def this_home() -> Home:
    """Open the home that the options name, or the default one. Long operations in it report to `progress`."""
    from msgspec.structs import replace

    from turnlog.machine.environment import default_home
    from turnlog.machine.location import folder_of
    from turnlog.machine.retention import trash_for
    from turnlog.session import open_home
    from turnlog.session.interior import interior

    home = open_home(home_location())
    inner = interior(home)
    folder = folder_of(home_location() or default_home())
    trash_time = trash_for(folder) if folder is not None else None
    inner.settings = replace(inner.settings, progress=show_files, trash_for=trash_time)
    return home


def without_password(location: str) -> str:
    """Return a location as it may be shown: that of a database without its password."""
    if not location.startswith(("postgresql://", "postgres://")):
        return location
    from urllib.parse import urlsplit, urlunsplit

    parts = urlsplit(location)
    user, at, host = parts.netloc.rpartition("@")
    options = "&".join(option for option in parts.query.split("&") if not option.startswith("password="))
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host, query=options))
