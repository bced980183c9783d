"""What a file has beside its content and its mode: extended attributes, ACLs among them, and an owner."""

from __future__ import annotations

import os
from collections.abc import Callable

from turnlog.workspace.read import Attributes, attributes_of, is_kept
from turnlog.workspace.tree import Extra, Owner


def extra_of(status: os.stat_result, above: Owner, attributes: Attributes = ()) -> Extra | None:
    """What there is of it; `above` is the owner of the folder that is covered."""
    owner = (status.st_uid, status.st_gid)
    other = None if owner == above else owner
    return Extra(other, attributes) if other is not None or attributes else None


def apply_metadata(fd: int, mode: int, extra: Extra | None, above: Owner) -> str:
    """Give an open file or folder its owner, its mode and its attributes. Returns what the system does not allow."""
    owner = (extra and extra.owner) or above
    problems = [_own(os.fstat(fd), owner, lambda: os.fchown(fd, *owner))]
    os.fchmod(fd, mode)  # after the owner, which takes bits of the mode away
    wanted, present = dict(extra.attributes if extra else ()), dict(attributes_of(fd))
    for name in sorted(wanted.keys() | present.keys()):
        if wanted.get(name) == present.get(name) or not is_kept(name):
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
    """Give a link its owner. Returns what the system does not allow."""
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
