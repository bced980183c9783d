"""Erasing in files: write an intent, rewrite every affected file, record the erasure, remove the intent.

A log keeps its length and its offsets, and is replaced in one step: a concurrent reader still reads the old content.
After a crash the intent remains, and the next writer completes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from turnlog.errors import Corrupt
from turnlog.layout import BASES, DERIVED, ERASED, ERASING, SESSIONS, TRASH
from turnlog.log.erasure.content import ErasedLog, ErasingPlan, Erasure
from turnlog.log.ids import word
from turnlog.store import IMPORTED
from turnlog.store.files.blobs import FileBlobs
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.glimpse import first_id
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.names import file_name, is_temporary
from turnlog.store.files.rewriting import rehearse, rewrite

_SUFFIX = ".json"
_decode_plan = msgspec.json.Decoder(ErasingPlan).decode
_encode = msgspec.json.Encoder().encode


class FileErasing:
    """See `EraseEntries`."""

    def __init__(self, home: HomeFolder, blobs: FileBlobs) -> None:
        self._home = home
        self._disk = home.disk
        self._blobs = blobs
        self._applied: set[str] = set()
        """Plans whose lines were erased by this object."""
        self._refused: dict[str, Corrupt] = {}
        """Plans that cannot be completed as long as a log of theirs is damaged, and why."""

    def _in(self, *names: str) -> str:
        return os.path.join(self._home.folder, *names)

    def erase(self, plan: ErasingPlan) -> str:
        """See `EraseEntries.erase`. Nothing is erased until the intent is on the disk; after that, everything is."""
        name = word(16)
        with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusive():
            self._home.prepare_for_erasures()
            for log in plan.logs:
                for path in self._paths(log):
                    rehearse(self._disk, path, log.erasures)
            self._home.write_file(self._in(ERASING, name + _SUFFIX), _encode(plan))
            self._apply(plan)
            self._applied.add(name)
        return name

    def unsettled(self) -> dict[str, ErasingPlan]:
        """See `EraseEntries.unsettled`. Interrupted erasures are completed first."""
        self.finish_all()
        return {name: plan for name, plan in self._plans().items() if name in self._applied}

    def refuse_unfinished(self, session_id: str) -> None:
        """Complete interrupted erasures. Raises `Corrupt` if one in this session cannot be completed."""
        self.finish_all()
        for name, error in self._refused.items():
            if (plan := self._plans().get(name)) and session_id in {log.session for log in plan.logs}:
                raise Corrupt(
                    f"an erasure in session {session_id} cannot be completed: {error.message}", hint=error.hint
                )

    def retry_refused(self) -> None:
        """Try again to complete interrupted erasures: what prevented one may have been purged."""
        self._refused.clear()

    def finish_all(self) -> None:
        """Complete every interrupted erasure that can be completed."""
        if self._plans().keys() - self._applied - self._refused.keys():
            with disk_errors(f"erasing in {self._home.folder}"), self._blobs.exclusive():
                for name, plan in self._plans().items():
                    if name not in self._applied and name not in self._refused:
                        try:
                            self._apply(plan)
                        except Corrupt as error:
                            self._refused[name] = error
                        else:
                            self._applied.add(name)

    def _plans(self) -> dict[str, ErasingPlan]:
        with disk_errors(f"looking at {self._home.folder}"):
            plans: dict[str, ErasingPlan] = {}
            for name in self._names(ERASING):
                with suppress(FileNotFoundError):  # another process finished it meanwhile
                    plans[name.removesuffix(_SUFFIX)] = self._plan(self._in(ERASING, name))
            return plans

    def _plan(self, path: str) -> ErasingPlan:
        try:
            return _decode_plan(self._read(path))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint="restore it from a backup") from None

    def settle(self, name: str) -> None:
        with disk_errors(f"erasing in {self._home.folder}"):
            with suppress(FileNotFoundError):
                self._disk.unlink(self._in(ERASING, name + _SUFFIX))
            self._disk.sync_folder(self._in(ERASING))

    def erasures(self, first: str | None = None) -> dict[str, list[Erasure]]:
        with disk_errors(f"looking at {self._home.folder}"):
            if first is not None:
                path = self._in(ERASED, file_name(first) + _SUFFIX)
                return {first: self._recorded(path)[1]} if self._disk.exists(path) else {}
            return dict(self._recorded(self._in(ERASED, name)) for name in self._names(ERASED))

    # ── one erasure ───────────────────────────────────────────────────────────────────────────────

    def _apply(self, plan: ErasingPlan) -> None:
        """Rewrite the files of a plan. The caller has locked out moves, purges, collections and other erasures."""
        for log in plan.logs:
            self._finish_move(log.session)
            for path in self._paths(log):
                rewrite(self._home, path, log.erasures)
            self._record(log)
        self._remove_abandoned()

    def _finish_move(self, session: str) -> None:
        """Complete a move after a crash between linking the new name and removing the old one."""
        deleted = self._home.path(TRASH, session)
        if self._disk.exists(deleted) and self._home.is_also_live(os.path.basename(deleted)):
            self._disk.unlink(deleted)
            self._disk.sync_folder(self._in(TRASH))

    def _paths(self, log: ErasedLog) -> Iterator[str]:
        """Yield every file that has lines of that log."""
        for subfolder in (SESSIONS, TRASH):
            path = self._home.path(subfolder, log.session)
            if self._disk.exists(path) and first_id(self._disk, path) in (None, log.first):
                yield path
        if self._disk.exists(aside := self._home.path(BASES, log.first)):
            yield aside
        before = file_name(log.session) + ".before-repair-"
        with suppress(FileNotFoundError):
            yield from (
                self._in(TRASH, name) for name in self._disk.listdir(self._in(TRASH)) if name.startswith(before)
            )

    def _record(self, log: ErasedLog) -> None:
        path = self._in(ERASED, file_name(log.first) + _SUFFIX)
        earlier = self._recorded(path)[1] if self._disk.exists(path) else []
        recorded = {(one.seq, one.part) for one in earlier}
        new = [one for one in log.erasures if (one.seq, one.part) not in recorded]
        if new:
            record = ErasedLog(log.session, log.first, earlier + new)
            self._home.write_file(path, _encode(record))

    def _recorded(self, path: str) -> tuple[str, list[Erasure]]:
        try:
            record = msgspec.json.decode(self._read(path), type=ErasedLog)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise Corrupt(f"{path} is not what we wrote", hint="restore it from a backup") from None
        return record.first, record.erasures

    def _remove_abandoned(self) -> None:
        """Remove abandoned temporary files, which may hold erased content."""
        for subfolder in (SESSIONS, TRASH, BASES):
            for name in self._disk.listdir(self._in(subfolder)):
                if is_temporary(name):
                    self._home.remove_if_abandoned(self._in(subfolder, name))
        derived = self._in(DERIVED)
        for name in self._disk.listdir(derived) if self._disk.exists(derived) else []:
            if name.startswith(IMPORTED) or is_temporary(name):  # data about an import's source may hold erased text
                self._disk.discard(os.path.join(derived, name))

    def _names(self, subfolder: str) -> list[str]:
        try:
            return [name for name in self._disk.listdir(self._in(subfolder)) if name.endswith(_SUFFIX)]
        except FileNotFoundError:
            return []

    def _read(self, path: str) -> bytes:
        fd = self._disk.open(path, os.O_RDONLY)
        try:
            return self._disk.pread(fd, self._disk.fstat(fd).st_size, 0)
        finally:
            self._disk.close(fd)
