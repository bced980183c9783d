"""How a command ends: its exit code, and one line for whatever went wrong.

Data goes to stdout and nothing else does. An error is one line and a hint on stderr, JSON under `--json`, and the
exit code of its class; a traceback only with `--debug`.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings

from turnlog.cli.frame.exitcode import INTERRUPTED, PIPE_CLOSED, Exit, UsageError
from turnlog.cli.frame.stdio import OutputLost, discard_output, own_streams
from turnlog.errors import Ambiguous, Invalid, NotFound, TurnlogError, TurnlogWarning, Unavailable
from turnlog.machine.folder import is_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from turnlog.cli.frame.command import Command
    from turnlog.reader.naming.candidate import SeveralFit

_LISTED = 40
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What the system says no to, wherever that was: no fault of ours."""
_EXHAUSTED = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system has no more of: processes, open files, memory."""


class ErrorForm:
    """How an error is printed: what the words of the command that runs ask for."""

    as_json = False
    has_traceback = False

    @classmethod
    def choose(cls, command: Command, own: Sequence[str], words: Sequence[str]) -> None:
        """Set the form from the words of a command. For an unknown command, all words of the program are read."""
        if command.is_program:
            own_json = words[: words.index("--")] if "--" in words else words
            cls.as_json = "--json" in own_json
        else:
            flags = {flag for option in command.options for flag in option.flags}
            cls.as_json = not {"--json", "--jsonl"}.isdisjoint(flags.intersection(own))
        cls.has_traceback = cls.has_traceback or "--debug" in own


def run_to_exit_code(work: Callable[[], None]) -> int:
    """Do the work and return its exit code. Raises nothing."""
    ErrorForm.as_json = ErrorForm.has_traceback = False
    with own_streams():
        return _run(work)


def _run(work: Callable[[], None]) -> int:
    try:
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise Unavailable("stdout is closed", hint="use `>/dev/null` to discard the output")
        with warnings.catch_warnings():
            warnings.simplefilter("default", TurnlogWarning)
            warnings.showwarning = _show_warning
            work()
        return _flush(0)
    except Exit as exit:
        return _flush(exit.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _close_pipe()
    except Exception as error:  # whatever it is, a person should see one line and not a stack
        return _report(error)


def _flush(exit_code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _close_pipe()
    except OSError as error:
        return _report(error)
    return exit_code


def _close_pipe() -> int:
    """End quietly: the reader of our output closed it."""
    discard_output()
    return PIPE_CLOSED


def _report(error: Exception) -> int:
    try:
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except OSError:
        discard_output()  # what went wrong first is what is told
    if ErrorForm.has_traceback:
        import traceback

        traceback.print_exc()
    if isinstance(error, OutputLost):
        discard_output()
    reported = _as_ours(error)
    failure = _Failure(reported)
    try:
        if ErrorForm.as_json:
            failure.print_json()
        else:
            failure.print()
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError:
        return failure.exit_code if isinstance(reported, TurnlogError) else 1
    return failure.exit_code


def _as_ours(error: Exception) -> Exception:
    """Return the error of ours for one of the system, or of what was typed, that is no fault of ours; else as it is."""
    if isinstance(error, UnicodeEncodeError):
        return Invalid(f"text that is not Unicode: {error.object!r:.80}")
    if not isinstance(error, OSError):
        return error
    if isinstance(error, FileNotFoundError) and error.filename is None and not is_here():
        return NotFound("the current folder is gone", hint="`cd` to one that is there")
    if isinstance(error, OutputLost):
        return Unavailable(f"the output cannot be written: {error.strerror}", hint="what was done is done")
    if error.errno in _EXHAUSTED:
        return Unavailable(f"the system: {error.strerror}", hint="try it again when less is running")
    if error.errno in _REFUSED:
        what = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the system"
        return Unavailable(f"{what}: {error.strerror}", hint="check its owner, its mode, and the room on its disk")
    return error


def _show_warning(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    from turnlog.cli.frame.notes import warn

    warn(str(message))


class _Failure:
    """What is told of an error: in a line for people, in an object for programs."""

    def __init__(self, error: Exception) -> None:
        self.several: SeveralFit | None = None
        """Sessions of which each may be meant."""
        self.near: Sequence[str] = ()
        """Words of which each may be meant."""
        if isinstance(error, TurnlogError):
            self.code, self.exit_code, self.message, self.hint = error.code, error.exit_code, error.message, error.hint
        elif isinstance(error, UsageError):
            self.code, self.exit_code, self.message, self.hint = "usage", error.exit_code, error.message, error.hint
            self.near = error.candidates
        else:
            self.code, self.exit_code, self.message = "internal", 1, f"{type(error).__name__}: {error}"
            self.hint = "this is a fault in turnlog; run it again with --debug and report what it prints"
        if isinstance(error, Ambiguous):
            from turnlog.reader.naming.candidate import SeveralFit

            self.several = error if isinstance(error, SeveralFit) else None

    def print(self) -> None:
        """Print the line and its hint, and before them a table of the sessions that may be meant."""
        from turnlog.cli.frame import notes

        if self.several is not None:
            notes.tell_table(_candidate_table(self.several))
        notes.tell_error(self.message if self.several is None else self.several.brief, self.hint)

    def print_json(self) -> None:
        """Print the object."""
        import json

        from turnlog.cli.frame.document.encoding import VERSION, in_json

        candidates: list[dict[str, Any]] = [{"name": name} for name in self.near]
        if self.several is not None:
            from msgspec.structs import asdict

            candidates = [asdict(item) for item in self.several.candidates]
        error = {
            "code": self.code, "message": self.message, "hint": self.hint, "exit_code": self.exit_code,
            "candidates": candidates,
        }  # fmt: skip
        print(json.dumps({"version": VERSION, "error": error}, default=in_json), file=sys.stderr)


def _candidate_table(several: SeveralFit) -> list[str]:
    from turnlog.cli.draw.table import table
    from turnlog.view.time import local_second

    rows = [
        (str(number), item.name, item.agent or "", local_second(item.at)[:16], item.title or "")
        for number, item in enumerate(several.candidates[:_LISTED], start=1)
    ]
    head = ("KEY", "SESSION", "AGENT", "WHEN", "TITLE")
    lines = table(head, rows, right=(0,)) if several.is_numbered else table(head[1:], [row[1:] for row in rows])
    more = len(several.candidates) - _LISTED
    return [*lines, f"… {more:,} more"] if more > 0 else lines
