"""One run of keeping: everything that is new or has grown in the folders of the chosen agents."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec
from msgspec import Struct

from turnlog.errors import TurnlogError, Unsupported
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.exchange.keeping.retention import homes_of
from turnlog.formats import Format, format_of, is_known
from turnlog.interop.place import put_file
from turnlog.machine.keepstate import KeepState

_DATABASES = (".db", ".sqlite", ".sqlite3")
_NEVER_KEPT = (*_DATABASES, "-wal", "-shm", ".lock", ".tmp")
_YOUNG_NS = 2_000_000_000
"""A file that changed this recently may change again without a visible change of its times."""
_OFTEN = 200
"""The progress is saved after so many files."""


class KeepReport(Struct, frozen=True):
    """The result of one run."""

    at: datetime
    files: int = 0
    """The number of files that were new or had grown, and are kept now."""
    problems: dict[str, str] = {}
    """The files that could not be kept and the folders that could not be read, and why."""


def check_keepable(agent: str) -> None:
    """Raise `Unsupported` for an agent whose sessions are no files, or lie in the folders that it works in."""
    hint = f"it removes none by itself; `turnlog import --agent {agent}` brings them here"
    homes = homes_of(format_of(agent))
    if not homes:
        raise Unsupported(f"{agent} keeps its sessions in the folders that it works in", hint=hint)
    names = [name for home in homes if os.path.isdir(home) for name in os.listdir(home)]
    if any(name.endswith(_DATABASES) for name in names):
        raise Unsupported(f"{agent} keeps its sessions in a database, not in files", hint=hint)


class _Stamp(NamedTuple):
    """The size of a file, and the time when it was last written."""

    size: int
    mtime_ns: int


class _SeenFile(NamedTuple):
    """A file as it was when it was last read, and whether it has a copy."""

    size: int
    mtime_ns: int
    has_copy: bool


class Keeping:
    """One run over the files of all agents whose sessions are to be kept."""

    def __init__(self, location: str) -> None:
        self._state = KeepState(location)
        self._kept = KeptFiles(location)
        self._seen = self._read_seen()
        """By path, the files that need not be read again."""
        self._problems: dict[str, str] = {}
        self._files = 0

    def run(self) -> KeepReport:
        """Keep all that is new. If the process is killed, the next run continues."""
        present: set[str] = set()
        for agent in filter(is_known, self._state.agents()):  # a later version may know more
            form = format_of(agent)
            for path, stamp in self._files_of(form):
                present.add(path)
                if not self._is_done(agent, path, stamp):
                    self._keep_file(agent, form, path, stamp)
        self._seen = {path: seen for path, seen in self._seen.items() if path in present}
        self._write_seen()
        report = KeepReport(datetime.now(UTC), self._files, self._problems)
        put_file(self._state.report_path, msgspec.json.encode(report), mode=0o600, force=True)
        return report

    def _files_of(self, form: Format) -> Iterator[tuple[str, _Stamp]]:
        """Every file in the folders of an agent, with its stamp."""

        def report_folder(error: OSError) -> None:
            self._report(str(error.filename), error)

        for home in homes_of(form):
            for folder, folders, names in os.walk(home, onerror=report_folder):
                folders[:] = sorted(name for name in folders if name not in form.watch.apart)
                for path in [os.path.join(folder, name) for name in sorted(names) if not name.endswith(_NEVER_KEPT)]:
                    try:
                        status = os.stat(path)
                    except OSError as error:
                        self._report(path, error)
                        continue
                    if stat.S_ISREG(status.st_mode):
                        yield path, _Stamp(status.st_size, status.st_mtime_ns)

    def _report(self, path: str, error: OSError) -> None:
        """Report what could not be read, unless its agent deleted it meanwhile, or it is a link to nothing."""
        if not isinstance(error, FileNotFoundError):
            self._problems[path] = error.strerror or str(error)

    def _is_done(self, agent: str, path: str, stamp: _Stamp) -> bool:
        """Whether a file is as it was when it was last read, and its copy, if it has one, is still there."""
        seen = self._seen.get(path)
        if seen is None or (seen.size, seen.mtime_ns) != stamp:
            return False
        return not seen.has_copy or self._kept.has(agent, path)

    def _keep_file(self, agent: str, form: Format, path: str, stamp: _Stamp) -> None:
        try:
            is_wanted = _is_session(form, path) or self._belongs(agent, form, path)
            is_new = is_wanted and self._kept.keep(agent, path)
        except OSError as error:
            self._report(path, error)
            return
        except TurnlogError as error:
            self._problems[path] = str(error)
            return
        if time.time_ns() - stamp.mtime_ns > _YOUNG_NS:
            self._seen[path] = _SeenFile(*stamp, is_wanted)
        self._files += is_new
        if is_new and self._files % _OFTEN == 0:
            self._write_seen()

    def _belongs(self, agent: str, form: Format, path: str) -> bool:
        """Whether a file lies in the folder of a session, or beside the session with its name."""
        stem = path.removesuffix(".meta.json")
        homes = homes_of(form)
        while stem not in homes and len(stem) > 1:
            owner = f"{stem}.jsonl"
            if owner != path and (os.path.isfile(owner) or self._kept.has(agent, owner)):
                return True
            stem = os.path.dirname(stem)
        return False

    def _read_seen(self) -> dict[str, _SeenFile]:
        try:
            with open(self._state.seen_path, "rb") as file:
                return msgspec.msgpack.decode(file.read(), type=dict[str, _SeenFile])
        except (OSError, msgspec.DecodeError):
            return {}  # every file is read once more

    def _write_seen(self) -> None:
        put_file(self._state.seen_path, msgspec.msgpack.encode(self._seen), mode=0o600, force=True)


def last_report(state: KeepState) -> KeepReport | None:
    """The report of the last run."""
    try:
        with open(state.report_path, "rb") as file:
            return msgspec.json.decode(file.read(), type=KeepReport)
    except (OSError, msgspec.DecodeError):
        return None


def _is_session(form: Format, path: str) -> bool:
    return next(form.find(path), None) is not None
