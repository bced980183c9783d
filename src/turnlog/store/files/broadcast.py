"""Live text between processes on this machine, through pipes that listeners create in the home.

A pipe is empty once it was read, so nothing has to be stored, repaired or erased. A speaker creates no files. A
listener that died leaves its pipe; the next speaker finds that the pipe has no reader, and removes it.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Callable, Iterator

from turnlog.layout import LISTENING
from turnlog.log.digest import sha256
from turnlog.log.ids import word
from turnlog.store.broadcast import PAUSE_S, Delta, LiveText, delta_of
from turnlog.store.files.disk import Disk
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.names import new_temporary_name
from turnlog.store.forked import renew_after_fork

_FRAME = select.PIPE_BUF
"""The most bytes that are written atomically."""
_READ_BYTES = 1 << 16
_PATIENCE = 20
"""The number of rounds after which a listener with a full pipe is given up."""


def _key(session_id: str) -> str:
    """Return the prefix of the pipes' names for one session; it does not reveal the session's id."""
    return sha256(session_id.encode()).hexdigest()[:16] + "."


class PipeInbox:
    """See `Inbox`."""

    def __init__(self, disk: Disk, folder: str, session_id: str) -> None:
        self._disk = disk
        self._rest = b""
        self._path = os.path.join(folder, _key(session_id) + word(16))
        temporary = os.path.join(folder, new_temporary_name())
        disk.make_pipe(temporary)
        try:
            # Opened before it gets its name: a speaker removes a pipe without a reader.
            self._fd = disk.open_pipe(temporary, os.O_RDONLY)
            disk.rename(temporary, self._path)
        except BaseException:
            self.after_fork()
            disk.discard(temporary)
            raise
        renew_after_fork(self)

    def take(self) -> list[Delta]:
        *lines, self._rest = b"".join([self._rest, *self._pieces()]).split(b"\n")
        return [delta for line in lines if (delta := delta_of(line))]

    def _pieces(self) -> Iterator[bytes]:
        try:
            while self._fd >= 0 and (piece := os.read(self._fd, _READ_BYTES)):
                yield piece
        except BlockingIOError:
            return  # a speaker has the pipe open, and there is no more data yet

    def close(self) -> None:
        self.after_fork()
        self._disk.discard(self._path)

    def after_fork(self) -> None:
        """Close the pipe in a child process: it is the parent's."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)


class FileBroadcast:
    """Sends the live text of this process to listeners. Its thread runs as long as there is live text."""

    def __init__(self, home: HomeFolder) -> None:
        self._disk = home.disk
        self._folder = os.path.join(home.folder, LISTENING)
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Reset in a child process: there are no speakers."""
        self._mutex = threading.Lock()
        self._texts: list[tuple[str, LiveText]] = []
        self._ending: dict[LiveText, int] = {}
        self._thread: threading.Thread | None = None

    def open_inbox(self, session_id: str) -> PipeInbox | None:
        """Return a pipe for that session; None if the disk does not support pipes."""
        try:
            if not self._disk.exists(self._folder):
                try:
                    self._disk.mkdir(self._folder)
                except FileExistsError:
                    pass  # another listener was faster
            return PipeInbox(self._disk, self._folder, session_id)
        except OSError:
            return None

    def publish(self, session_id: str, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText.publish`."""
        with self._mutex:
            self._texts.append((_key(session_id), text))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="turnlog broadcast", daemon=True)
                self._thread.start()

        def stop() -> None:
            text.is_over = True

        return stop

    def _run(self) -> None:
        try:
            self._send_all()
        finally:
            with self._mutex:
                if self._thread is threading.current_thread():  # after an error: the next speaker starts a new one
                    self._thread = None

    def _send_all(self) -> None:
        self._sweep()
        while True:
            with self._mutex:
                texts = list(self._texts)
                if not texts:
                    self._thread = None
                    return
            names = self._names()
            delivered = [item for item in texts if self._send(*item, names)]
            with self._mutex:
                self._texts = [item for item in self._texts if item not in delivered]
            time.sleep(PAUSE_S)

    def _names(self) -> list[str]:
        try:
            return self._disk.listdir(self._folder)
        except OSError:
            return []  # no listener ever existed here

    def _send(self, key: str, text: LiveText, names: list[str]) -> bool:
        """Send the text to its listeners. Returns whether it is over and every listener knows."""
        is_over = text.is_over
        text.refresh()
        reached = [self._write(name, text) for name in names if name.startswith(key)]
        if not is_over:
            return False
        self._ending[text] = self._ending.get(text, 0) + 1
        if all(reached) or self._ending[text] > _PATIENCE:
            del self._ending[text]
            return True
        return False

    def _write(self, name: str, text: LiveText) -> bool:
        """Send a listener what it lacks. Returns whether it has the whole text, or is gone."""
        path = os.path.join(self._folder, name)
        fd = -1
        try:
            for frame in text.frames_for(name, _FRAME):
                if fd < 0:
                    fd = self._disk.open_pipe(path, os.O_WRONLY)
                os.write(fd, frame + b"\n")
        except BlockingIOError:
            return False  # a slow listener gets the rest later
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.EPIPE):
                self._disk.discard(path)  # its listener is gone
        finally:
            if fd >= 0:
                os.close(fd)
        return True

    def _sweep(self) -> None:
        """Remove the pipes of dead listeners, of all sessions."""
        for name in self._names():
            try:
                os.close(self._disk.open_pipe(os.path.join(self._folder, name), os.O_WRONLY))
            except OSError as error:
                if error.errno == errno.ENXIO and not name.startswith("."):
                    self._disk.discard(os.path.join(self._folder, name))
