"""Every error Turnlog raises.

    TurnlogError       1    any of these; the number is its exit code
    ├── Invalid        2    the caller passed a value that is not accepted
    ├── NotFound       3    no such session, entry, checkpoint or blob
    │   └── Ambiguous  3    several sessions match that name
    ├── AlreadyExists  4    an id is taken
    ├── Conflict       5    another writer was first
    ├── Corrupt        6    what is stored breaks a rule of the format
    ├── Unsupported    7    this store, file system, format or version cannot do that
    └── Unavailable    8    the disk, the database or a collector did not answer; a retry may help
        └── OutOfSpace 8    the disk is full

Split by what the caller can do about it. `code` and `exit_code` are public and never reused. `TurnlogWarning` is no
error: it says what was done instead of what was asked for.
"""

from __future__ import annotations

from typing import ClassVar


class TurnlogError(Exception):
    """The root of the tree: a fact in lower case, and a hint at what to do next."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Invalid(TurnlogError):
    """The caller passed a value that is not accepted."""

    code = "invalid"
    exit_code = 2


class NotFound(TurnlogError):
    """No such session, entry, checkpoint or blob."""

    code = "not_found"
    exit_code = 3


class Ambiguous(NotFound):
    """Several sessions match that name."""

    code = "ambiguous"


class AlreadyExists(TurnlogError):
    """An id is taken."""

    code = "already_exists"
    exit_code = 4


class Conflict(TurnlogError):
    """Another writer was first; read what it wrote and try again."""

    code = "conflict"
    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        head: int | None = None,
        by: str | None = None,
        expected: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.head = head
        """The entry that the conversation stands at now; None where the conflict is about something else."""
        self.by = by
        """Who wrote: `process 4711 on box`; None if unknown."""
        self.expected = expected
        """The last entry, or the head, that the caller expected; in a conflict about a call, the expected question."""


class Corrupt(TurnlogError):
    """What is stored breaks a rule of the format."""

    code = "corrupt"
    exit_code = 6


class Unsupported(TurnlogError):
    """This store, file system, format or version cannot do that."""

    code = "unsupported"
    exit_code = 7


class Unavailable(TurnlogError):
    """The disk, the database or a collector did not answer; a retry with the same drafts is safe."""

    code = "unavailable"
    exit_code = 8


class OutOfSpace(Unavailable):
    """The disk is full: nothing was changed; free some space and try again."""

    code = "out_of_space"


class TurnlogWarning(UserWarning):
    """Something was kept or masked instead of what was asked for."""
