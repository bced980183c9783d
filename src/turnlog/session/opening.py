"""Which store a location means, and the home that it keeps."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Literal, TypedDict, get_args

from turnlog.errors import Invalid
from turnlog.machine.environment import default_home
from turnlog.machine.location import connect
from turnlog.session.home import Home
from turnlog.store import Clock
from turnlog.thread.made import CreatedHere
from turnlog.thread.settings import Settings

Durability = Literal["fsync", "flush"]
DURABILITIES = get_args(Durability)


class HomeOptions(TypedDict, total=False):
    """What `turnlog.open` may be told besides."""

    checkpoints: bool
    max_file_bytes: int
    quota_bytes: int | None
    covers_ignored: bool
    trash_for: timedelta | None


def open_home(
    location: str | os.PathLike[str] | None = None,
    *,
    durability: Durability = "fsync",
    clock: Clock | None = None,
    checkpoints: bool = True,
    max_file_bytes: int = Settings().max_file_bytes,
    quota_bytes: int | None = None,
    covers_ignored: bool = True,
    trash_for: timedelta | None = None,
) -> Home:
    """The home at a location: None (`$TURNLOG_HOME` or `~/.turnlog`), a folder, `memory:` or `postgresql://…`.

    `durability="flush"` leaves syncing to the operating system: what is acknowledged survives the death of the
    process, not a power cut. Turns take a checkpoint of the workspace at each end, unless `checkpoints=False`; files
    larger than `max_file_bytes` are skipped, and one that needs more than `quota_bytes` of blobs is refused. Small
    files that git would ignore are covered, too, unless `covers_ignored=False`; what is in them stays in this home.
    What is in the trash stays there until somebody purges it; with `trash_for`, that long, and then goes for good with
    the next `delete` or `gc`.
    """
    if durability not in DURABILITIES:
        raise Invalid(f"the durability {durability!r}", hint=f"one of {', '.join(DURABILITIES)}")
    address = os.fspath(location) if location is not None else default_home()
    options: dict[str, Any] = {"durability": durability}
    if clock is not None:
        options["clock"] = clock
    settings = Settings(checkpoints, max_file_bytes, quota_bytes, covers_ignored, trash_for=trash_for)
    return Home(connect(address, **options), clock=clock, settings=settings, made=CreatedHere(address))
