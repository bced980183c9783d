"""Opening a home at a location."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, get_args

from turnlog.errors import Invalid
from turnlog.machine.environment import default_home
from turnlog.machine.location import connect
from turnlog.session.home import Home
from turnlog.store import Clock
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.home.settings import Settings, check_stay

Durability = Literal["fsync", "flush"]
DURABILITIES = get_args(Durability)


if TYPE_CHECKING:
    from typing import TypedDict

    class HomeOptions(TypedDict, total=False):
        """The options of `turnlog.open`."""

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

    `durability="flush"` leaves syncing to the operating system: acknowledged entries survive a crash of the process,
    but not a power failure. Turns take a checkpoint of the workspace at each end, unless `checkpoints=False`; files
    larger than `max_file_bytes` are skipped, and a checkpoint that needs more than `quota_bytes` of blobs is refused.
    Small files that git would ignore are covered, too, unless `covers_ignored=False`; their content stays in this home.
    Deleted sessions stay in the trash until they are purged; with `trash_for`, they stay that long, and the next
    `delete` or `gc` purges them.
    """
    if durability not in DURABILITIES:
        raise Invalid(f"there is no durability {durability!r:.80}", hint=f"one of {', '.join(DURABILITIES)}")
    if trash_for is not None:
        check_stay(trash_for)
    address = os.fspath(location) if location is not None else default_home()
    options: dict[str, Any] = {"durability": durability}
    if clock is not None:
        options["clock"] = clock
    settings = Settings(checkpoints, max_file_bytes, quota_bytes, covers_ignored, trash_for=trash_for)
    return Home(connect(address, **options), clock=clock, settings=settings, created_here=CreatedHere(address))
