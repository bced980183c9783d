"""Keeping the sessions of agents: what is new or has grown in their folders, and the retention limits of the agents."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from turnlog.errors import TurnlogError, Unsupported
from turnlog.exchange.kept import KeptFiles
from turnlog.formats import Format, Retention, every, format_of, put_file
from turnlog.machine.folder import places_of
from turnlog.machine.keepstate import KeepState
from turnlog.machine.settings import MISSING, SettingsFile, with_value

_DATABASES = (".db", ".sqlite", ".sqlite3", "-wal", "-shm")
_PASSING = (".lock", ".tmp")
_OFTEN = 200
"""After so many files it is written down how far it is."""


class KeepReport(Struct, frozen=True):
    """What came of looking once."""

    at: datetime
    files: int = 0
    """That were brought, or of which there was more."""
    problems: dict[str, str] = {}
    """Files that could not be, and why."""


class Limit(Struct, frozen=True):
    """How long an agent leaves its sessions alone."""

    agent: str
    days: float | None
    """None for ever."""
    settings: str
    """Where that is said."""
    problem: str = ""
    """Why it could not be read there."""


def limits() -> Iterator[Limit]:
    """Of every agent that removes sessions by itself and is here."""
    for name, form in every():
        if form.retention is not None and any(map(os.path.isdir, _homes(form))):
            yield limit_of(name, form.retention)


def limit_of(agent: str, retention: Retention) -> Limit:
    """As its settings say now. What cannot be read there is taken for what holds without it."""
    path = retention.settings(places_of(None))
    try:
        setting = SettingsFile(path, dialect=retention.dialect).value(retention.path)
    except TurnlogError as error:
        return Limit(agent, retention.days(None), path, error.message)
    return Limit(agent, retention.days(None if setting is MISSING else setting), path)


def unlimited_retention(retention: Retention) -> tuple[SettingsFile, Callable[[str], str]]:
    """The settings file that limits how long an agent keeps its sessions, and the edit that raises the limit."""
    file = SettingsFile(retention.settings(places_of(None)), dialect=retention.dialect)

    def edit(text: str) -> str:
        for path, value in retention.forever:
            text = with_value(text, path, value, dialect=retention.dialect)
        return text

    return file, edit


def check_keepable(agent: str) -> None:
    """Raise `Unsupported` for an agent whose sessions are no files."""
    homes = [home for home in _homes(format_of(agent)) if os.path.isdir(home)]
    names = [name for home in homes for name in os.listdir(home)]
    if any(name.endswith(_DATABASES[:3]) for name in names):
        hint = f"it removes none by itself; `turnlog import --agent {agent}` brings them here"
        raise Unsupported(f"{agent} keeps its sessions in a database, not in files", hint=hint)


def _homes(form: Format) -> list[str]:
    return form.homes(places_of(None))


class Keeping:
    """One look at all that is to be kept."""

    def __init__(self, location: str) -> None:
        self._state = KeepState(location)
        self._kept = KeptFiles(location)
        self._seen = self._read_seen()
        self._problems: dict[str, str] = {}
        self._files = 0

    def run(self) -> KeepReport:
        """Bring all that is new; whoever is killed leaves it to the next one to go on."""
        now: dict[str, tuple[int, int]] = {}
        for agent in self._state.agents():
            form = format_of(agent)
            for path, stamp in _files_of(form):
                now[path] = stamp
                if self._seen.get(path) != stamp:
                    self._bring(agent, form, path, stamp)
        self._seen = {path: stamp for path, stamp in self._seen.items() if path in now}
        self._write_seen()
        report = KeepReport(datetime.now(UTC), self._files, self._problems)
        put_file(self._state.report_path, msgspec.json.encode(report), mode=0o600, force=True)
        return report

    def _bring(self, agent: str, form: Format, path: str, stamp: tuple[int, int]) -> None:
        try:
            if _is_session(form, path) or self._belongs(agent, form, path):
                self._files += self._kept.keep(agent, path)
        except (OSError, TurnlogError) as error:
            if not isinstance(error, FileNotFoundError):
                reason = error.strerror if isinstance(error, OSError) else str(error)
                self._problems[path] = reason or str(error)
            return
        if time.time_ns() - stamp[1] > 2_000_000_000:  # one that is younger may change and look the same
            self._seen[path] = stamp
        if self._files and self._files % _OFTEN == 0:
            self._write_seen()

    def _belongs(self, agent: str, form: Format, path: str) -> bool:
        """Whether it lies in the folder of a session, or beside one under its name."""
        stem = path.removesuffix(".meta.json")
        homes = _homes(form)
        while stem not in homes and len(stem) > 1:
            owner = f"{stem}.jsonl"
            if owner != path and (os.path.isfile(owner) or self._kept.has(agent, owner)):
                return True
            stem = os.path.dirname(stem)
        return False

    def _read_seen(self) -> dict[str, tuple[int, int]]:
        try:
            with open(self._state.seen_path, "rb") as file:
                return msgspec.msgpack.decode(file.read(), type=dict[str, tuple[int, int]])
        except (OSError, msgspec.DecodeError):
            return {}  # then every file is looked into once more

    def _write_seen(self) -> None:
        put_file(self._state.seen_path, msgspec.msgpack.encode(self._seen), mode=0o600, force=True)


def last_report(state: KeepState) -> KeepReport | None:
    """What came of the last look."""
    try:
        with open(state.report_path, "rb") as file:
            return msgspec.json.decode(file.read(), type=KeepReport)
    except (OSError, msgspec.DecodeError):
        return None


def _is_session(form: Format, path: str) -> bool:
    return next(form.find(path), None) is not None


def _files_of(form: Format) -> Iterator[tuple[str, tuple[int, int]]]:
    """Every file in the folders of an agent, and how it looks."""
    for home in _homes(form):
        for folder, folders, names in os.walk(home):
            folders[:] = sorted(name for name in folders if name not in form.watch.apart)
            for name in sorted(names):
                if name.endswith((*_DATABASES, *_PASSING)):
                    continue
                path = os.path.join(folder, name)
                try:
                    status = os.stat(path)
                except OSError:
                    continue  # its agent deleted it meanwhile, or it is a link to nothing
                if stat.S_ISREG(status.st_mode):
                    yield path, (status.st_size, status.st_mtime_ns)
