"""The session that a command is about. `reader` finds it; progress and warnings are printed on stderr.

with session_to_read(word) as opened:      ours or another agent's; nothing is locked, nothing is written
session_to_change(home, word) -> Session   one of ours; of another agent's its imported copy, or an error
session_to_mark(home, word)                ours or another agent's; marks of another agent's are stored in the home
imported_session(home, word) -> Session    one of ours; another agent's is imported first, and stderr says so
names(home).find(word), .own_id(word)      only which one
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING

from turnlog.cli.frame.home import home_location, this_home
from turnlog.cli.frame.notes import tell, warn
from turnlog.cli.frame.progress import progress_line, restart_clock, show_count
from turnlog.errors import Conflict, Invalid, NotFound, Unavailable
from turnlog.log.ids import word_of
from turnlog.machine.process import may_run, runs
from turnlog.reader.naming.name import SessionNames
from turnlog.reader.naming.sessionref import SessionRef
from turnlog.reader.opening.opener import OpenedSession, SessionOpener
from turnlog.session.interior import interior
from turnlog.thread.reader import SessionReader, history_of
from turnlog.view.visible import quoted

if TYPE_CHECKING:
    from typing import Any

    from turnlog.catalog import Catalog
    from turnlog.log.fold import State
    from turnlog.reader.markable import MarkableSession
    from turnlog.session import Home, Session


def reader() -> SessionOpener:
    """Return what opens sessions of the home that the options name, and shows progress."""
    return SessionOpener(home_location(), home=this_home, catalog=_catalog, progress=_progress, warn=warn)


def _progress(what: str, number: int, total: int) -> None:
    if not number:
        restart_clock()  # what came before took its own time
    show_count(what, number, total)


def _catalog() -> AbstractContextManager[Catalog]:
    from turnlog.cli.pick.catalog import open_catalog

    return open_catalog(home_location())


def names(home: Home) -> SessionNames:
    """Return what finds sessions of that home by the words for them."""
    return reader().names(home)


@contextmanager
def session_to_read(
    word: str | None, *, key: str | None = None, files: bool = False, family: bool = False
) -> Generator[OpenedSession]:
    """The session that is meant, open until this is left: see `SessionOpener.read`."""
    with ExitStack() as stack:
        with progress_line():
            opened = stack.enter_context(reader().read(word, key=key, files=files, family=family))
        yield opened


def session_to_change(home: Home, word: str | None, *, files: bool = False) -> Session:
    """Return a session to write to; without a word, one of this folder, so that no other is changed by mistake."""
    return home.resume(names(home).changeable_id(word, files=files))


def session_to_mark(home: Home, word: str | None) -> MarkableSession:
    """Return a session to mark; of another agent's its imported copy, if there is one."""
    from turnlog.reader.markable import ForeignMarkable, OwnMarkable

    session_names = names(home)
    chosen = session_names.find(word, deleted=False)
    copy = chosen.id if chosen.source is None else session_names.copy_of(chosen.source)
    if copy is not None:
        return OwnMarkable(home.resume(copy))
    try:
        with _catalog() as catalog:
            return ForeignMarkable(home, catalog.find(chosen.name))
    except NotFound:
        hint = f"`turnlog import {quoted(word or chosen.name)}` imports it first"
        raise Invalid(f"{chosen.name} does not lie where its agent keeps sessions", hint=hint) from None


def busy_process(session: SessionReader) -> int:
    """Return the id of the process that is in the middle of a turn; 0 if none is."""
    state = history_of(session).state
    return _writer_of(state, state.turn, may_run)


def agent_process(session: SessionReader) -> int:
    """Return the id of the process of the agent whose hooks report its turns; 0 if it ended, or is not known."""
    state = history_of(session).state
    return _writer_of(state, state.turn or state.turn_before, runs) if state.is_relayed else 0


def _writer_of(state: State, turn: str | None, is_there: Callable[[Mapping[str, Any]], bool | None]) -> int:
    """Return the id of the process that wrote a turn, if it is there; else 0."""
    writer = None if turn is None else state.writers.get(word_of(turn))
    return int(writer.get("pid") or 0) if writer is not None and is_there(writer) else 0


def refuse_interrupted(session: Session) -> None:
    """Raise `Conflict` if an earlier rewind has to be finished first."""
    if session.interrupted():
        name = quoted(session.handle)
        raise Conflict(
            f"a rewind of session {session.handle} was begun and not finished",
            hint=f"`turnlog rewind --continue -s {name}` finishes it, `--abort` takes it back",
        )


def refuse_busy(session: Session) -> None:
    """Raise `Conflict` while an agent is in the middle of a turn: its next message would follow another entry."""
    pid = busy_process(session)
    if pid:
        message = f"process {pid} is in the middle of a turn in session {session.handle}"
        raise Conflict(message, hint="try again when it has ended")


def imported_session(home: Home, word: str | None, chosen: SessionRef | None = None) -> Session:
    """Return a session of ours to continue; another agent's is imported first, or brought up to date."""
    chosen = chosen or names(home).find(word, deleted=False)
    if chosen.source is None:
        return home.resume(chosen.id)
    from turnlog.exchange.importing.run import import_all

    with progress_line():
        imported = next(
            item for item in import_all(interior(home).creator, [chosen.source]) if item.source == chosen.source
        )
    if not imported.id:
        raise Unavailable(f"{chosen.source.path}: {imported.problems[-1].what}")
    if imported.added:
        tell(f"imported {chosen.name} as session {imported.id}")
    return home.resume(imported.id)
