"""Live text from process to process on this machine, through pipes that listeners make in the home.

A pipe holds nothing once it was read, so there is nothing to keep, to damage or to erase. A speaker makes nothing:
when it dies, nothing is left. A listener that died leaves its pipe; the next speaker finds that it is not read, and
removes it.
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
from turnlog.store.forked import renew_after_fork

_FRAME = select.PIPE_BUF
"""As much as is written in one piece, or not at all."""
_FULL = 1 << 16
_PATIENCE = 20
"""The rounds after which a listener whose pipe is full is given up."""


def _key(session_id: str) -> str:
    """How the names of all pipes for one session begin: they say nothing of it."""
    return sha256(session_id.encode()).hexdigest()[:16] + "."


class PipeInbox:
    """See `Inbox`."""

    def __init__(self, disk: Disk, folder: str, session_id: str) -> None:
        self._disk = disk
        self._rest = b""
        self._path = os.path.join(folder, _key(session_id) + word(16))
        temporary = os.path.join(folder, f".new-{word(16)}")
        disk.make_pipe(temporary)
        try:
            # Under its name it is being read: a speaker that finds it unread takes it away.
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
            while self._fd >= 0 and (piece := os.read(self._fd, _FULL)):
                yield piece
        except BlockingIOError:
            return  # there is a speaker, and nothing more yet

    def close(self) -> None:
        self.after_fork()
        self._disk.discard(self._path)

    def after_fork(self) -> None:
        """In a child process the pipe is the parent's."""
        fd, self._fd = getattr(self, "_fd", -1), -1
        if fd >= 0:
            os.close(fd)


class FileBroadcast:
    """Sends the live text of this process to listeners. Its thread lives as long as there is any."""

    def __init__(self, home: HomeFolder) -> None:
        self._disk = home.disk
        self._folder = os.path.join(home.folder, LISTENING)
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """In a child process nobody speaks."""
        self._mutex = threading.Lock()
        self._texts: list[tuple[str, LiveText]] = []
        self._ending: dict[LiveText, int] = {}
        self._thread: threading.Thread | None = None

    def hear(self, session_id: str) -> PipeInbox | None:
        """A pipe for that session; None where the disk cannot have one."""
        try:
            if not self._disk.exists(self._folder):
                try:
                    self._disk.mkdir(self._folder)
                except FileExistsError:
                    pass  # another listener was faster
            return PipeInbox(self._disk, self._folder, session_id)
        except OSError:
            return None

    def speak(self, session_id: str, text: LiveText) -> Callable[[], None]:
        """See `CarryLiveText.speak`."""
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
            self._carry()
        finally:
            with self._mutex:
                if self._thread is threading.current_thread():  # something is wrong: who speaks next begins anew
                    self._thread = None

    def _carry(self) -> None:
        self._sweep()
        while True:
            with self._mutex:
                texts = list(self._texts)
                if not texts:
                    self._thread = None
                    return
            names = self._names()
            delivered = [item for item in texts if self._bring(*item, names)]
            with self._mutex:
                self._texts = [item for item in self._texts if item not in delivered]
            time.sleep(PAUSE_S)

    def _names(self) -> list[str]:
        try:
            return self._disk.listdir(self._folder)
        except OSError:
            return []  # there was never a listener here

    def _bring(self, key: str, text: LiveText, names: list[str]) -> bool:
        """Whether it is over, and everybody knows."""
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
        """Whether the listener has all of it, or is gone."""
        path = os.path.join(self._folder, name)
        fd = -1
        try:
            for frame in text.frames_for(name, _FRAME):
                if fd < 0:
                    fd = self._disk.open_pipe(path, os.O_WRONLY)
                os.write(fd, frame + b"\n")
        except BlockingIOError:
            return False  # it is slow: it gets the rest when it has read that much
        except OSError as error:
            if error.errno in (errno.ENXIO, errno.EPIPE):
                self._disk.discard(path)  # its maker is gone
        finally:
            if fd >= 0:
                os.close(fd)
        return True

    def _sweep(self) -> None:
        """Pipes of listeners that died, of whichever session."""
        for name in self._names():
            try:
                os.close(self._disk.open_pipe(os.path.join(self._folder, name), os.O_WRONLY))
            except OSError as error:
                if error.errno == errno.ENXIO and not name.startswith("."):
                    self._disk.discard(os.path.join(self._folder, name))
