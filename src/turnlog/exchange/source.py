"""Sessions of other agents brought in: which they are, where they lie, and which session each one is here."""

from __future__ import annotations

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from turnlog.errors import Invalid, NotFound, TurnlogError, Unavailable
from turnlog.exchange.carry import gone_on, keep, stamp_of
from turnlog.exchange.importer import Importer
from turnlog.exchange.sourceindex import origin_of
from turnlog.formats import (
    Format,
    Jump,
    Problem,
    Reading,
    Record,
    SessionHeader,
    Source,
    Step,
    every,
    format_of,
    id_of,
    is_known,
    key_id,
    unknown_type,
)
from turnlog.log.digest import sha256
from turnlog.log.entry import Child, Message, Spawned, Start
from turnlog.log.ids import imported_id
from turnlog.log.secret import mask
from turnlog.machine.folder import absolute, lies_in_home, places_of, workspace_path
from turnlog.store import Store
from turnlog.thread.alias import session_under
from turnlog.thread.appender import Appender, appending
from turnlog.thread.creator import Creator
from turnlog.thread.handed import HandedOver
from turnlog.thread.history import History, loaded
from turnlog.thread.marking import copy_marks, marks_in
from turnlog.thread.reader import SessionReader

_FOLDERS = 2000
_APART = (".git", "node_modules", ".venv", "__pycache__")
Progress = Callable[[int, int, Source], None]
"""Told before each source: how many are done, how many there are, and which comes now."""


class Imported(Struct, frozen=True):
    """What came of one source: the session it is now, how much was new, and what was wrong with it."""

    id: str
    source: Source
    added: int
    problems: list[Problem]
    copy_of: str | None = None
    """The session that it was written from and only repeats: then that is what it is here, and nothing was brought."""


def sources(
    path: str | os.PathLike[str] | None = None, *, agent: str | None = None, workspace: str | None = None
) -> list[Source]:
    """The sessions at a path, or in the folders where the agents keep theirs; only those of a workspace, if told."""
    forms = dict(every()) if agent is None else {agent: format_of(agent)}
    if path is not None:
        folder = absolute(os.fspath(path))
        if not os.path.lexists(folder):
            raise NotFound(f"there is nothing at {folder}")
        sources = [source for form in forms.values() for source in _under(folder, form)]
        if not sources:
            _check_readable(folder)
            raise NotFound(f"no session of another agent at {folder}", hint=f"looked for {', '.join(forms)}")
    else:
        here = places_of(workspace)
        sources: list[Source] = []
        for form in forms.values():
            # Some keep all sessions together, some with the work they are about: without a workspace it is both.
            everywhere = [] if workspace is not None else form.homes(replace(here, workspace=None))
            for home in dict.fromkeys([*everywhere, *form.homes(here)]):
                if os.path.isdir(home):
                    sources += form.find(home)
    sources = list(dict.fromkeys(sources))
    return (
        sources if workspace is None else [source for source in sources if _is_for(source, workspace_path(workspace))]
    )


def _check_readable(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError as error:
        raise Unavailable(
            f"{path} cannot be read: {error.strerror or error}", hint="check its owner and mode"
        ) from None


def _under(place: str, form: Format) -> list[Source]:
    """The sessions of an agent at a path; where there are none, those of the folders below, not too many of them."""
    sources = list(form.find(place))
    if sources or not os.path.isdir(place):
        return sources
    folders = [place]
    for folder in folders:  # grows while it is gone through: near ones come first
        try:
            inner = sorted(entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        except OSError:
            continue
        for path in inner:
            sessions = [] if os.path.basename(path) in _APART else list(form.find(path))
            sources += sessions
            if not sessions and os.path.basename(path) not in _APART and len(folders) < _FOLDERS:
                folders.append(path)
    return sources


def _is_for(source: Source, workspace: str) -> bool:
    """Whether a session is about that folder; one that does not say lies where it was looked for."""
    try:
        folder = format_of(source.agent).read(source).header.workspace
    except OSError:
        return True  # the error is reported when the file is read
    return folder is None or workspace_path(folder) == workspace


def bring_all(creator: Creator, wanted: list[Source], progress: Progress | None = None) -> Iterator[Imported]:
    """Every source in turn; forks and subagents after their parents, where those are among them.

    What its agent deleted is read from the copy that is kept of it.
    """
    queue = list(wanted)
    chosen = set(queue)
    waiting: deque[tuple[Source, Reading]] = deque()
    for index, source in enumerate(queue):  # grows while it is gone through: parents that nobody asked for
        if progress is not None:
            progress(index, len(queue), source)
        if not os.path.lexists(source.path):
            yield _brought_back(creator, source)
            continue
        try:
            reading = format_of(source.agent).read(source)
        except OSError as error:
            yield Imported("", source, 0, [Problem(f"cannot be opened: {error.strerror or error}")])
            continue
        parent, fork = _parent(reading.header), reading.header.fork
        if not parent or _is_here(creator.store, source.agent, parent):
            yield _brought(creator, source, reading)
            continue
        if index < len(wanted):
            waiting.append((source, reading))
        else:
            waiting.appendleft((source, reading))  # the oldest first
        if fork is not None and fork.source is not None and fork.source not in chosen:
            chosen.add(fork.source)
            queue.append(fork.source)
    while waiting:
        left: deque[tuple[Source, Reading]] = deque()
        is_stuck = True
        for source, reading in waiting:
            if _is_here(creator.store, source.agent, _parent(reading.header)):
                yield _brought(creator, source, reading)
                is_stuck = False
            else:
                left.append((source, reading))
        waiting = left
        if is_stuck:
            yield _brought(creator, *waiting.popleft())


def _brought_back(creator: Creator, source: Source) -> Imported:
    from turnlog.exchange.kept import kept_or_there

    with kept_or_there(creator.made.location, source) as there:
        try:
            return _brought(creator, source, format_of(source.agent).read(there))
        except OSError as error:
            return Imported("", source, 0, [Problem(f"cannot be opened: {error.strerror or error}")])


def _brought(creator: Creator, source: Source, reading: Reading) -> Imported:
    """One session brought in; what is wrong with one is no reason to stop before the others."""
    try:
        return bring(creator, source, reading)
    except Invalid as error:
        return Imported("", source, 0, [*reading.problems, Problem(error.message)])
    except OSError as error:
        problem = Problem(f"could not be read to its end: {error.strerror or error}")
        return Imported("", source, 0, [*reading.problems, problem])


def bring(creator: Creator, source: Source, reading: Reading) -> Imported:
    """One session brought in, or brought up to date."""
    reading.header = _known_copy(creator, source, reading.header)
    steps = reading.steps
    name, here = _find(creator.store, source, reading.header)
    if here is None:
        if (original := _repeated(creator.store, source, reading.header)) is not None:
            return Imported(original, source, 0, list(reading.problems), original)
        if any(row.id == name for row in creator.store.listing("deleted")):
            problem = Problem(f"session {name} was deleted here: `turnlog restore {name}` brings it back")
            return Imported(name, source, 0, [*reading.problems, problem])
        here, steps = _create(creator, source, name, reading)
    try:
        before = stamp_of(source)
        grown = gone_on(creator.store, here, source, format_of(source.agent)) if is_known(source.agent) else None
        carried = None
        if grown is not None:
            reading, carried = grown
            steps = reading.steps
        appender = Appender(creator.store, here)
        appender.is_guest = here.state.is_relayed  # the importing process does not work in the session
        importer = Importer(creator.store, appender, source, reading, written_at(source), carried)
        importer.run(steps)
        keep(creator.store, here, source, reading, before, importer.carry())
        copy_marks(appender, marks_in(creator.store).get(f"{source.agent}:{reading.header.id}"))
        _link(creator.store, source, reading.header, name)
    finally:
        here.close()
    return Imported(name, source, importer.added, [*reading.problems, *importer.problems])


def written_at(source: Source) -> datetime | None:
    """When a source was last written, for what says no time itself; None if there is no such file."""
    try:
        return datetime.fromtimestamp(os.stat(source.path).st_mtime, UTC)
    except OSError:
        return None


def imported_as(store: Store, source: Source) -> str | None:
    """The session that a source was brought in as, or was written from; None where there is none."""
    header = format_of(source.agent).read(source).header
    name, here = _find(store, source, header)
    if here is None:
        return _repeated(store, source, header)
    here.close()
    return name


def _known_copy(creator: Creator, source: Source, header: SessionHeader) -> SessionHeader:
    """What a session of another agent says of itself, and what we know of it that it cannot say."""
    if header.copied is not None:
        return header
    return replace(header, copied=HandedOver(creator.made.location).all().get((source.agent, header.id)))


def _repeated(store: Store, source: Source, header: SessionHeader) -> str | None:
    """The session here that a source is a copy of, as long as nothing was added to it there."""
    copied = header.copied
    here = _open(store, copied.of[0].session) if copied is not None else None
    if copied is None or here is None:
        return None
    here.close()
    messages = 0
    for step in format_of(source.agent).read(source).steps:
        if isinstance(step, Record) and isinstance(step.entry, Message):
            messages += 1
            at = step.entry.at
            if messages > copied.messages or (at is not None and at.timestamp() * 1000 >= copied.until + 1):
                return None
    return copied.of[0].session


def _open(store: Store, name: str) -> History | None:
    try:
        log = store.open(name)
    except NotFound:
        return None
    return loaded(store, log)


def _parent(header: SessionHeader) -> str:
    return header.fork.session if header.fork else header.spawned.session if header.spawned else ""


def _is_here(store: Store, agent: str, native: str) -> bool:
    here = _open(store, imported_id(agent, native))
    if here is None:
        return False
    here.close()
    return True


def _find(store: Store, source: Source, header: SessionHeader) -> tuple[str, History | None]:
    """The session that this source already is here, or the id that it will have."""
    identity = header.identity or header.id
    chosen = imported_id(source.agent, header.id)
    other = f"{chosen}-{sha256(identity.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
    for name in (chosen, other):
        here = _open(store, name)
        if here is None:
            alias = session_under(store, source.agent, header.id)
            return (name, None) if alias is None else (alias, _open(store, alias))
        origin = origin_of(here)
        if origin.get("agent") == source.agent and origin.get("identity") == identity:
            return name, here
        here.close()
    raise Invalid(f"the ids {chosen} and {other} belong to other sessions")


def _create(creator: Creator, source: Source, name: str, reading: Reading) -> tuple[History, Iterator[Step]]:
    """A new session, and all steps still to be taken. A fork shares what it has in common with its parent."""
    header, steps = reading.header, reading.steps
    origin: dict[str, Any] = {
        "agent": source.agent, "id": header.id, "identity": header.identity or header.id, "path": source.path,
    }  # fmt: skip
    if header.origin is not None:
        origin["header"] = mask("", header.origin)[0]
    if header.copied is not None:
        origin["copied"] = to_builtins(header.copied)
    fields: dict[str, Any] = {
        "id": name, "agent": source.agent, "title": header.title, "labels": dict(header.labels),
        "hidden": header.hidden, "origin": origin, "at": header.created or written_at(source),
    }  # fmt: skip
    if header.fork is not None and header.fork.session:
        parent = _open(creator.store, imported_id(source.agent, header.fork.session))
        if parent is not None:
            try:
                shared, taken = _shared(SessionReader(parent), steps)
                steps = chain(taken, steps)
                if shared:
                    fork = creator.fork(parent, shared, header.fork.name, fields)
                    if lies_at_home(source):
                        creator.made.note(Start(**fields))
                    return fork, steps
            finally:
                parent.close()
        fields["labels"].setdefault("forked_from", header.fork.session)
    spawned = None
    if header.spawned is not None:
        spawned = Spawned(imported_id(source.agent, header.spawned.session), header.spawned.call, header.spawned.role)
    # Its first entry is called like it: whoever imports the same has the same session.
    start = Start(workspace=header.workspace, spawned=spawned, **fields)
    return creator.begin([start], is_own=lies_at_home(source)), steps


def lies_at_home(source: Source) -> bool:
    """Whether a session lies where its agent keeps this person's; not in a workspace, which may be anybody's clone."""
    return is_known(source.agent) and lies_in_home(format_of(source.agent), source.path)


def source_of(agent: str, native: str, path: str) -> Source | None:
    """The session with that id, in a file of its own or among others; only where its agent keeps sessions."""
    form = format_of(agent)
    try:
        if path:
            sources = form.find(path) if os.path.exists(path) else iter(())
            source = next((source for source in sources if source.key in ("", native)), None)
            return source if source is not None and lies_at_home(source) else None
        for home in form.homes(replace(places_of(None), workspace=None)):
            for source in form.find(home) if os.path.isdir(home) else ():
                if source.key == native or (not source.key and native in source.path):
                    return source
    except (OSError, TurnlogError):
        return None
    return None


def _shared(parent: SessionReader, steps: Iterator[Step]) -> tuple[int, list[Step]]:
    """The last entry of the parent that its fork still has, and the steps that had to be looked at."""
    imported = {entry.id: entry for entry in parent.entries() if entry.origin is not None}
    counts: Counter[str] = Counter()
    taken: list[Step] = []
    last = 0
    for step in steps:
        taken.append(step)
        if isinstance(step, Jump) and step.key is None:
            continue  # only where the next one hangs
        if isinstance(step, Record) and unknown_type(step.entry):
            continue  # which of them a fork has is no sign of where it was made
        entry = imported.get(key_id(str(step.key)) if isinstance(step, Jump) else id_of(step.key, step.entry, counts))
        if entry is None or entry.seq < last:
            break
        last = entry.seq
    return last, taken


def _link(store: Store, source: Source, header: SessionHeader, name: str) -> None:
    """A subagent is known to the session that started it."""
    if header.spawned is None:
        return
    try:
        log = store.open(imported_id(source.agent, header.spawned.session))
    except NotFound:
        return
    with appending(store, log) as parent:
        if SessionReader(parent.history).find(f"child.{name}") is None:
            child = Child(id=f"child.{name}", session=name, call=header.spawned.call, agent=header.spawned.role)
            parent.append([replace(child, at=header.created or parent.state.last_at)])
