"""Warnings about a session that is shown, each with the command that deals with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from turnlog.cli.frame.notes import warn
from turnlog.view.number import count
from turnlog.view.visible import quoted

if TYPE_CHECKING:
    from turnlog.session import ReadOnlySession
    from turnlog.thread.reader import SessionReader


def warn_of_damage(session: SessionReader) -> None:
    """Warn if something in the log could not be read."""
    damage = session.damage
    if damage:
        where = count(len(damage), "damaged region")
        warn(f"{where} in this log; `turnlog doctor {quoted(session.handle)}` explains")


def warn_of_interruption(session: ReadOnlySession) -> None:
    """Warn if a rewind was begun and not finished."""
    if session.interrupted():
        name = quoted(session.handle)
        warn(
            f"a rewind was begun and not finished; `turnlog rewind --continue -s {name}` finishes it, "
            f"`turnlog rewind --abort -s {name}` takes it back"
        )
