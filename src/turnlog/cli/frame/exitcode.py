"""Exit codes, and the two ways in which a command ends itself: with one of these, or because of what was typed."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130
PIPE_CLOSED = 141


class Exit(Exception):
    """The command is finished; this is its exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class UsageError(Exception):
    """No such command or option, or a value that it does not take."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, candidates: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.message, self.hint, self.candidates = message, hint, candidates
