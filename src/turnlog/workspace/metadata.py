"""Metadata of a file besides content and mode: extended attributes, including ACLs, and an owner."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from turnlog.workspace.systemerror import raise_if_system_error
from turnlog.workspace.tree import Extra, Owner

Attributes = tuple[tuple[bytes, bytes], ...]
"""Extended attributes with their values, in order."""


def _belongs_to_file(name: bytes) -> bool:
    """Whether an extended attribute is the file's, and not the system's."""
    return name.startswith((b"user.", b"system.posix_acl_"))


def attributes_of(fd: int) -> Attributes:
    """The extended attributes of an open file or folder, including ACLs; none if the system does not support them."""
    if sys.platform != "linux":
        return ()
    try:
        names = os.listxattr(fd)
        return tuple(
            (name, os.getxattr(fd, name)) for name in sorted(map(os.fsencode, names)) if _belongs_to_file(name)
        )
    except OSError as error:
        raise_if_system_error(error, b"")
        return ()  # the file system has none, or they changed concurrently


def extra_of(status: os.stat_result, above: Owner, attributes: Attributes = ()) -> Extra | None:
    """The extra metadata of a file; None if it has none. `above` is the owner of the covered folder."""
    owner = (status.st_uid, status.st_gid)
    other = None if owner == above else owner
    return Extra(other, attributes) if other is not None or attributes else None


def apply_metadata(fd: int, mode: int, extra: Extra | None, above: Owner) -> str:
    """Set owner, mode and attributes of an open file or folder. Returns what the system does not allow."""
    owner = (extra and extra.owner) or above
    problems = [_own(os.fstat(fd), owner, lambda: os.fchown(fd, *owner))]
    os.fchmod(fd, mode)  # after the owner, because setting that clears bits of the mode
    wanted, present = dict(extra.attributes if extra else ()), dict(attributes_of(fd))
    for name in sorted(wanted.keys() | present.keys()):
        if wanted.get(name) == present.get(name) or not _belongs_to_file(name):
            continue
        try:
            if name in wanted:
                os.setxattr(fd, name, wanted[name])
            else:
                os.removexattr(fd, name)
        except OSError as error:
            problems.append(f"attribute {name.decode('utf-8', 'backslashreplace')}: {error.strerror}")
    return "; ".join(filter(None, problems))


def own_link(folder: int, name: bytes, extra: Extra | None, above: Owner) -> str:
    """Set the owner of a link. Returns what the system does not allow."""
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    wanted = (extra and extra.owner) or above
    return _own(status, wanted, lambda: os.chown(name, *wanted, dir_fd=folder, follow_symlinks=False))


def _own(status: os.stat_result, owner: Owner, change: Callable[[], None]) -> str:
    if (status.st_uid, status.st_gid) == owner:
        return ""
    try:
        change()
    except (OSError, OverflowError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        return f"its owner is {status.st_uid}:{status.st_gid} now, not {owner[0]}:{owner[1]}: {why}"
    return ""
