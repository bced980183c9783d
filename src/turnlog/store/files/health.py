"""The health of a home folder: whether a file can be created, written, synced and removed there."""

from __future__ import annotations

import os
from typing import Any

from turnlog.errors import TurnlogError
from turnlog.layout import SESSIONS
from turnlog.store.files.disk import Disk, disk_errors
from turnlog.store.files.homefolder import HomeFolder


def health(home: HomeFolder, backend: str) -> dict[str, Any]:
    """See `ReportHealth.health`."""
    report: dict[str, Any] = {"backend": backend, "location": home.folder, "ok": True}
    disk = home.disk
    try:
        with disk_errors(f"writing to {home.folder}"):
            home.make_ready()
            _try_writing(disk, home.new_name(""))
            report["file_system"] = disk.file_system(home.folder)
            report["sessions"] = len(home.names(SESSIONS))
            report["private"] = not disk.stat(home.folder).st_mode & 0o077
            free = os.statvfs(home.folder)
            report["free_bytes"] = free.f_bavail * free.f_frsize
    except TurnlogError as error:
        report |= {"ok": False, "reason": error.code, "problem": str(error), "hint": error.hint, "error": str(error)}
    except Exception as error:  # a monitor wants to know about any error
        report |= {"ok": False, "reason": "error", "problem": str(error), "error": str(error)}
    return report


def _try_writing(disk: Disk, path: str) -> None:
    try:
        fd = disk.open(path, os.O_WRONLY, create=True)
        try:
            disk.write(fd, b"health\n")
            disk.sync(fd)
        finally:
            disk.close(fd)
        disk.unlink(path)
    except BaseException:
        disk.discard(path)
        raise
