"""A second process that reads other agents' sessions, to use two cores. It writes nothing.

What it read comes back through a pipe, in pieces. It ends with its parent process; if it ends earlier, the parent
reads the rest.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Self

import msgspec

from turnlog.catalog.index.batch import Batch, Doc, Portion
from turnlog.catalog.index.notes import PRICES, get_note, set_note
from turnlog.catalog.index.rows import SpentRow, ToolUseRow
from turnlog.catalog.index.sqlite.watchlist import Stamp
from turnlog.catalog.read import foreign
from turnlog.catalog.read.job import Job, reason_of
from turnlog.formats import Source
from turnlog.machine.detached import is_allowed
from turnlog.machine.environment import environment
from turnlog.thread.home.handedover import HandedOver

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from threading import Thread

_LOCATION = "TURNLOG_HOME"
_PIPE_BYTES = 1 << 20
"""The size of the pipe: how far the second process may be ahead, not counting its current piece."""


class Task(msgspec.Struct, array_like=True):
    """A session to be read."""

    agent: str
    path: bytes
    key: str
    session: int
    stamp: Stamp


class Piece(msgspec.Struct, array_like=True):
    """What was read."""

    docs: list[Doc]
    spent: list[SpentRow]
    used: list[ToolUseRow]
    size: int
    finished: list[tuple[int, dict[str, Any], str]]
    """Finished sessions, each with its columns, a `SessionRow`, or why it cannot be read.

    msgspec does not decode the type of a path, which is text or bytes.
    """
    prices: bytes | None = None
    is_last: bool = False


class HelperEnded(Exception):
    """The helper has exited without reading everything."""


# ── in the parent process ─────────────────────────────────────────────────────────────────────────


class Helper:
    """The helper process, started on the first `read`. `close` ends it."""

    def __init__(self, location: str | None) -> None:
        self._location = location or ""
        self._process: subprocess.Popen[bytes] | None = None
        self._is_usable = bool(sys.executable) and is_allowed() and _cores() > 1

    @property
    def is_usable(self) -> bool:
        """Whether a helper can run and would be of use."""
        return self._is_usable

    def read(self, jobs: dict[int, Job], prices: bytes | None) -> Iterator[Piece]:
        """Read sessions of other agents, in pieces. `prices` are the cached ones. Raises `HelperEnded`."""
        from threading import Thread

        tasks = [
            Task(job.source.agent, os.fsencode(job.path), job.source.key, session, job.stamp)
            for session, job in jobs.items()
            if job.source is not None
        ]
        try:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            feeder = Thread(target=_feed, args=(process.stdin, tasks, prices), daemon=True)
            feeder.start()
            yield from self._pieces(process.stdout, feeder)
        except (OSError, EOFError, msgspec.MsgspecError) as error:
            self._is_usable = False
            self.close()
            raise HelperEnded(str(error)) from None

    def _pieces(self, pipe: IO[bytes], feeder: Thread) -> Iterator[Piece]:
        decode = msgspec.msgpack.Decoder(Piece).decode
        is_last = False
        while not is_last:
            piece = decode(_received(pipe))
            is_last = piece.is_last
            yield piece
        feeder.join()

    def _started(self) -> subprocess.Popen[bytes]:
        import subprocess

        if self._process is None:
            # Without -P, modules in the current folder would be imported. The location is in the environment, because
            # it may have a password in it, and every user can see the arguments.
            command = [sys.executable, "-P", "-m", "turnlog.catalog.read.helper"]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                pipesize=_PIPE_BYTES,
                env={**environment(), _LOCATION: self._location},
            )
        return self._process

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, even in the middle of its work."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):  # pending input is discarded
                    pipe.close()  # type: ignore[union-attr]


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count() or 1


def _feed(pipe: IO[bytes], tasks: list[Task], prices: bytes | None) -> None:
    with suppress(OSError, ValueError):  # it has exited, which `read` notices
        _send(pipe, msgspec.msgpack.encode((prices, tasks)))


def _send(pipe: IO[bytes], data: bytes) -> None:
    pipe.write(len(data).to_bytes(8, "little"))
    pipe.write(data)
    pipe.flush()


def _received(pipe: IO[bytes]) -> bytes:
    head = pipe.read(8)
    size = int.from_bytes(head, "little")
    data = pipe.read(size) if len(head) == 8 else b""
    if not head or len(data) < size:
        raise EOFError
    return data


# ── in the helper process ─────────────────────────────────────────────────────────────────────────


class _Sender:
    """See `PortionWriter`."""

    most = 1 << 19

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._encode = msgspec.msgpack.Encoder().encode
        self.finished: list[tuple[int, dict[str, Any], str]] = []

    def write(self, portion: Portion) -> None:
        """See `PortionWriter.write`."""
        self.send(portion)

    def wait(self) -> None:
        """See `PortionWriter.wait`. A no-op: the parent process writes."""

    def send(self, portion: Portion, *, prices: bytes | None = None, is_last: bool = False) -> None:
        """Send what was read since the last piece, and the finished sessions."""
        finished, self.finished = self.finished, []
        piece = Piece(portion.docs, portion.spent, portion.used, portion.size, finished, prices, is_last)
        _send(self._pipe, self._encode(piece))


def serve(tasks: IO[bytes], pipe: IO[bytes], location: str) -> None:
    """Read the requested sessions until the input ends."""
    from turnlog.catalog.index.sqlite.database import MemoryDatabase
    from turnlog.catalog.index.sqlite.engine import SqliteEngine

    decode = msgspec.msgpack.Decoder(tuple[bytes | None, list[Task]]).decode
    database, sender = MemoryDatabase(), _Sender(pipe)
    database.make()  # nothing is written to it but prices
    engine = SqliteEngine(database.connection)
    handed = HandedOver(location or None)
    while True:
        prices, batch_of = decode(_received(tasks))
        if prices is not None:
            set_note(engine, PRICES, prices)
        batch = Batch(engine, sender)
        for task in batch_of:
            source = Source(task.agent, os.fsdecode(task.path), task.key)
            row: dict[str, Any] = {}
            problem = ""
            try:
                row = dict(foreign.read_session(batch, source, task.session, task.stamp, None, handed))
            except BrokenPipeError:
                raise
            except Exception as error:  # as in `Indexer`: a session that cannot be read is listed with the reason
                problem = reason_of(error)
            sender.finished.append((task.session, row, problem))
        batch.flush()
        batch.prices.remember(engine)
        sender.send(Portion(), prices=get_note(engine, PRICES), is_last=True)


def main() -> None:
    """Run the helper process."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    gc.set_threshold(50_000, *gc.get_threshold()[1:])
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # printed text does not belong into the pipe
    with suppress(EOFError, BrokenPipeError):
        serve(sys.stdin.buffer, pipe, environment()[_LOCATION])


if __name__ == "__main__":
    main()
