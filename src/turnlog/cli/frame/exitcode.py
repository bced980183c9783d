"""How a command ends: its exit code, and one line for whatever went wrong.

Data goes to stdout and nothing else does. An error is one line and a hint on stderr, JSON under `--json`, and the
exit code of its class; a traceback only with `--debug`.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from io import TextIOWrapper

from turnlog.cli.draw.text import one_line
from turnlog.errors import Ambiguous, NotFound, TurnlogError, TurnlogWarning, Unavailable
from turnlog.machine.folder import is_here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TextIO

    from turnlog.reader.candidate import SeveralFit

INTERRUPTED = 130
PIPE_CLOSED = 141
_LISTED = 40
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What the system says no to, wherever that was: no fault of ours."""


class Left(Exception):
    """The command is finished; this is its exit code."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Misused(Exception):
    """No such command or option, or a value that it does not take."""

    def __init__(
        self, message: str, *, hint: str | None = None, exit_code: int = 2, candidates: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.message, self.hint, self.exit_code, self.candidates = message, hint, exit_code, candidates


def ended(arguments: Sequence[str], work: Callable[[], None]) -> int:
    """Do the work of these arguments and return its exit code. Raises nothing."""
    _prepare()
    before = sys.stderr
    sys.stderr = Notes(before)  # pyright: ignore[reportAttributeAccessIssue]
    try:
        return _ended(arguments, work)
    finally:
        sys.stderr = before
        try:
            before.flush()
        except OSError:
            _forget(2)


class Notes:
    """stderr that flushes stdout first: in a pipe that gets both, a note stands behind the result it belongs to."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """See `TextIO`. Raises where the result that was printed before cannot be written."""
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _ended(arguments: Sequence[str], work: Callable[[], None]) -> int:
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments  # the rest is another program's
    try:
        if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise Unavailable("stdout is closed", hint="use `>/dev/null` to discard the output")
        with warnings.catch_warnings():
            warnings.simplefilter("default", TurnlogWarning)
            warnings.showwarning = _show_warning
            work()
        sys.stdout.flush()
    except Left as left:
        return _flushed(left.exit_code, own)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _closed()
    except Exception as error:  # whatever it is, a person should see one line and not a stack
        return _told(error, own)
    return 0


def _prepare() -> None:
    """Whatever is in a log can be printed, and what is opened never gets the number of a stream that is closed.

    Without this, a log could become the stdout of a command that `turnlog run` starts.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it is the lowest number that is free
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - or `print` would take stdout in its place
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flushed(code: int, own: Sequence[str]) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed()
    except OSError as error:
        return _told(error, own)
    return code


def _closed() -> int:
    """The reader of our output closed it."""
    _forget()
    return PIPE_CLOSED


def _forget(stream: int = 1) -> None:
    """Discard what is still buffered: Python would report it once more when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _told(error: Exception, own: Sequence[str]) -> int:
    try:
        if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]
            sys.stdout.flush()
    except OSError:
        _forget()  # what went wrong first is what is told
    if "--debug" in own:
        import traceback

        traceback.print_exc()
    if isinstance(error, FileNotFoundError) and error.filename is None and not is_here():
        error = NotFound("the current folder is gone", hint="`cd` to one that is there")
    elif isinstance(error, OSError) and error.filename is None and error.strerror:  # a write, not a name
        error = Unavailable(f"the output cannot be written: {error.strerror}", hint="what was done is done")
        _forget()
    elif isinstance(error, OSError) and error.errno in _REFUSED:
        what = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the system"
        error = Unavailable(f"{what}: {error.strerror}", hint="check its owner, its mode, and the room on its disk")
    try:
        return _fail(error, as_json="--json" in own)
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError:
        return error.exit_code if isinstance(error, TurnlogError) else 1


def _show_warning(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    from turnlog.cli.draw.text import tell

    tell(f"warning: {message}")


def _fail(error: Exception, *, as_json: bool) -> int:
    if isinstance(error, TurnlogError):
        code, exit_code, message, hint = error.code, error.exit_code, error.message, error.hint
    elif isinstance(error, Misused):
        code, exit_code, message, hint = "usage", error.exit_code, error.message, error.hint
    else:
        code, exit_code, message = "internal", 1, f"{type(error).__name__}: {error}"
        hint = "this is a fault in turnlog; run it again with --debug and report what it prints"
    several: SeveralFit | None = None
    if isinstance(error, Ambiguous):
        from turnlog.reader.candidate import SeveralFit

        several = error if isinstance(error, SeveralFit) else None
    if as_json:
        import json

        meant: list[dict[str, object]] = []
        if isinstance(error, Misused):
            meant = [{"name": name} for name in error.candidates]
        if several is not None:
            from msgspec.structs import asdict

            meant = [
                {**asdict(item), "at": None if item.at is None else item.at.isoformat()} for item in several.candidates
            ]
        problem: dict[str, object] = {"code": code, "message": message, "hint": hint, "exit_code": exit_code}
        problem["candidates"] = meant
        print(json.dumps({"version": 1, "error": problem}), file=sys.stderr)
    else:
        if several is not None:
            print("\n".join(_table_of(several)), file=sys.stderr)
            message = several.brief
        print(f"error: {one_line(message)}", file=sys.stderr)
        if hint:
            print(f"hint: {one_line(hint)}", file=sys.stderr)
    return exit_code


def _table_of(several: SeveralFit) -> list[str]:
    from turnlog.cli.draw.table import table
    from turnlog.cli.draw.text import moment

    rows = [
        (str(number), item.name, item.agent or "", moment(item.at)[:16], item.title or "")
        for number, item in enumerate(several.candidates[:_LISTED], start=1)
    ]
    head = ("KEY", "SESSION", "AGENT", "WHEN", "TITLE")
    lines = table(head, rows, right=(0,)) if several.is_numbered else table(head[1:], [row[1:] for row in rows])
    more = len(several.candidates) - _LISTED
    return [*lines, f"… {more:,} more"] if more > 0 else lines
