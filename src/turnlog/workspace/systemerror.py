"""Errors of the system rather than of one file: a checkpoint without that file would only look complete."""

from __future__ import annotations

import errno

_SYSTEM_ERRORS = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO))


def raise_if_system_error(error: OSError, path: bytes) -> None:
    """Raise the error again, with the path, if it is one of the system."""
    if error.errno in _SYSTEM_ERRORS:
        raise error if error.filename == path else OSError(error.errno, error.strerror, path) from error
