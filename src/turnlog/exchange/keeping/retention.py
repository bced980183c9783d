"""How long agents leave their sessions alone, and the settings that say so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from msgspec import Struct

from turnlog.errors import TurnlogError
from turnlog.formats import Format, Retention, every
from turnlog.machine.formatplaces import places_of_person
from turnlog.machine.settings import MISSING, SettingsFile, with_value

LONG_DAYS = 3650
"""A limit of this many days or more is as good as none."""


class Limit(Struct, frozen=True):
    """How long an agent leaves its sessions alone."""

    agent: str
    days: float | None
    """After so many days it deletes a session; None if it deletes none."""
    settings: str
    """The settings file that says so."""
    problem: str = ""
    """Why that file could not be read; then `days` are those that hold without it."""

    @property
    def is_long(self) -> bool:
        """Whether it is as good as no limit."""
        return self.days is None or self.days >= LONG_DAYS


def homes_of(form: Format) -> list[str]:
    """The folders in which an agent keeps this person's sessions, whether or not they exist."""
    return form.homes(places_of_person())


def limits() -> Iterator[Limit]:
    """The limits of all agents on this machine that delete sessions by themselves."""
    for name, form in every():
        if form.retention is not None and any(map(os.path.isdir, homes_of(form))):
            yield limit_of(name, form.retention)


def limit_of(agent: str, retention: Retention) -> Limit:
    """The limit of an agent according to its settings. A setting that cannot be read counts as missing."""
    path = retention.settings(places_of_person())
    try:
        setting = SettingsFile(path, syntax=retention.syntax).value(retention.path)
    except TurnlogError as error:
        return Limit(agent, retention.days(None), path, error.message)
    return Limit(agent, retention.days(None if setting is MISSING else setting), path)


def unlimited_retention(retention: Retention) -> tuple[SettingsFile, Callable[[str], str]]:
    """The settings file that limits how long an agent keeps its sessions, and the edit that raises the limit."""
    file = SettingsFile(retention.settings(places_of_person()), syntax=retention.syntax)

    def edit(text: str) -> str:
        for setting in retention.forever:
            text = with_value(text, setting.path, setting.value, syntax=retention.syntax)
        return text

    return file, edit
