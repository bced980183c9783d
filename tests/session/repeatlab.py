"""Logs with an entry that was written again after a failed sync: both of its lines can be read."""

from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.faces import Place
from tests.store.faultlab import ForgetfulDisk
from turnlog import Home, TurnlogError
from turnlog.log.entry import AnyEntry
from turnlog.session.interior import interior
from turnlog.store.files import connect


def append_twice(home: Home, disk: ForgetfulDisk, folder: Path, session: turnlog.Session, draft: AnyEntry) -> AnyEntry:
    """Append an entry whose first sync fails after another process appended a note. Returns the second one."""
    with Home(connect(str(folder))) as other:
        disk.fail_next = True
        disk.before_failure = lambda: other.resume(session.id).note("somebody else's")
        with pytest.raises(TurnlogError):
            session.append(draft)
        appended = session.append(draft)
    assert appended.again == appended.seq - 2
    return appended


def session_with_repeat(place: Place, folder: Path, draft: AnyEntry) -> tuple[Any, AnyEntry]:
    """A session in the home of a test: a prompt, then the draft twice. Returns the second one, too."""
    disk = ForgetfulDisk()
    with Home(connect(str(folder), disk=disk)) as home:
        session = home.create(id="s")
        session.user("one")
        repeat = append_twice(home, disk, folder, session, draft)
        opened = place.open()
        home.push(Home(interior(opened._target._blocking if place.face == "aio" else opened).store))
    return opened.resume("s"), repeat
