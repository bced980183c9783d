"""A sync that is cut anywhere and done again: as if it had never been cut."""

import os
import shutil
import uuid
import warnings
from collections.abc import Callable, Iterator
from io import IOBase
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import turnlog
from tests.moving.scene import everything, ids_in, make
from tests.pgserver import Server
from tests.store.cutproxy import CutProxy
from tests.store.faultlab import FailingDisk
from turnlog.errors import Unavailable
from turnlog.log.codec import Damage
from turnlog.log.written import WrittenLine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived, files
from turnlog.store import postgres as store_postgres

WRITING = ("write_once", "sync", "sync_folder", "rename", "link", "unlink", "mkdir", "ftruncate")


class DyingDisk(FailingDisk):
    """The n-th call that changes anything is the last thing the process does; half of a write gets through."""

    def before(self, name: str, args: tuple[Any, ...]) -> None:
        if name not in WRITING:
            return
        self.calls += 1
        if self.calls == self._at:
            if name == "write_once":
                os.write(args[0], args[1][: len(args[1]) // 2])
            os._exit(9)


def fill(here: Home, there: Home, work: Path) -> None:
    """Something to send each way, a session that went on on both sides, a fork, files, big texts, the trash."""
    work.mkdir()
    (work / "file").write_bytes(b"content " * 5000)
    with here.create(id="both") as session:
        session.user("one")
    here.push(there)
    with here.resume("both") as mine, there.resume("both") as theirs:
        mine.user("mine")
        theirs.user("theirs " * 20_000)
        mine.fork(id="fork").user("forked")
    with here.create(id="files", workspace=work) as session, session.turn():
        session.user("x" * 100_000)
        (work / "file").write_bytes(b"changed " * 5000)
    with there.create(id="gone") as session:
        at = session.user("there")
        session.fork(at.seq, id="of gone").user("on")
    there.delete("gone")


def whole(home: Home) -> dict[str, list[bytes]]:
    """All sessions line by line, whatever remains of interrupted writes lie between them."""
    found: dict[str, list[bytes]] = {}
    for log in derived.all_logs(interior(home).store):
        items = list(log.lines())
        found[log.id] = [item.line for item in items if isinstance(item, WrittenLine)]
        assert {item.kind for item in items if isinstance(item, Damage)} <= {"torn", "unfinished"}
    return found


def blobs_are_there(home: Home) -> None:
    """Nothing refers to a blob that is not there; and nothing keeps a collection from working."""
    home.gc()
    for log in derived.all_logs(interior(home).store):
        for item in log.lines():
            if isinstance(item, WrittenLine):
                assert not derived.lacking(interior(home).store, item.entry.blobs)


def in_a_child(job: Callable[[], None]) -> int:
    """Do it in a process of its own; how that ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        try:
            job()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_killed_at_any_change_of_a_disk_it_goes_on(tmp_path: Path):
    with make("files", tmp_path) as here, make("files", tmp_path) as there:
        fill(here, there, tmp_path / "work")
        original = Path(interior(here).store.folder), Path(interior(there).store.folder)
    places = tmp_path / "here", tmp_path / "there"

    def anew() -> None:
        for place, source in zip(places, original, strict=True):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(source, place)

    def sync(at: int) -> None:
        disk = DyingDisk(at=at)
        here, there = (Home(files.connect(str(place), disk=disk)) for place in places)
        here.sync(there)

    anew()
    with turnlog.open(places[0]) as here, turnlog.open(places[1]) as there:
        here.sync(there)
        wanted = whole(here), whole(there)
        assert ids_in(here) == ids_in(there)
    for at in count(1, 1 if is_soak() else 2):
        anew()
        ended = in_a_child(lambda at=at: sync(at))
        assert ended in (0, 9)
        with turnlog.open(places[0]) as here, turnlog.open(places[1]) as there:
            if ended == 9:
                here.sync(there)
            assert (whole(here), whole(there)) == wanted, f"cut at change {at}"
            if at % 8 == 1 or not ended:
                blobs_are_there(here)
                blobs_are_there(there)
        if not ended:
            assert at > 40
            return


def is_soak() -> bool:
    """Whether every place is tried, and not one in a few."""
    return settings.get_current_profile_name() == "soak"


class Cut(BaseException):
    """Nobody expects this."""


class Cutting:
    """A store, or what it gave, that breaks off before or after its n-th call."""

    def __init__(self, inner: Any, clock: dict[str, int], when: str) -> None:
        self._inner = inner
        self._clock = clock
        self._when = when

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value) or name.startswith("_"):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self._clock["calls"] += 1
            is_now = self._clock["calls"] == self._clock["at"]
            if is_now and self._when == "before":
                raise Cut
            found = None
            try:
                found = value(*args, **options)
            finally:
                if is_now:
                    if isinstance(found, IOBase):
                        found.close()  # the lock that nobody got
                    raise Cut
            wraps = name in ("open", "base", "pack", "create")
            return Cutting(found, self._clock, self._when) if wraps else found

        return call

    def __enter__(self) -> "Cutting":
        self._inner.__enter__()
        return self

    def __exit__(self, *how: Any) -> Any:
        return self._inner.__exit__(*how)


@pytest.mark.parametrize("kinds", [("memory", "memory"), ("files", "postgres"), ("postgres", "memory")], ids="-".join)
@pytest.mark.parametrize("when", ["before", "after"])
def test_cut_at_any_call_of_a_store_it_goes_on(
    request: pytest.FixtureRequest, tmp_path: Path, kinds: tuple[str, str], when: str
):
    server = request.getfixturevalue("postgres") if "postgres" in kinds else None
    first, last = make(kinds[0], tmp_path, server), make(kinds[1], tmp_path, server)
    fill(first, last, tmp_path / "work")
    clock = {"calls": 0, "at": 0}
    at = 0
    step = 1 if server is None or is_soak() else 13
    while True:
        # Copies of both, so that every cut finds them as they were. A copy is what this is all about.
        here, there = make(kinds[0], tmp_path, server), make(kinds[1], tmp_path, server)
        first.push(here)
        last.push(there)
        before = ids_in(here) | ids_in(there)
        at += step
        clock.update(calls=0, at=at)
        cutting = [Home(Cutting(interior(home).store, clock, when)) for home in (here, there)]  # type: ignore[arg-type]
        try:
            cutting[0].sync(cutting[1])
            is_through = True
        except Cut:
            is_through = False
        here.sync(there)
        assert ids_in(here) == ids_in(there) == before
        assert {row.entries for rows in here.sync(there) for row in rows} == {0}
        seen = [whole(home) for home in (here, there)]
        for logs in seen:
            for lines in logs.values():
                assert len(set(lines)) == len(lines), f"something is there twice after a cut at call {at}"
        blobs_are_there(here)
        blobs_are_there(there)
        here.close()
        there.close()
        if is_through:
            break
    assert at > 60
    first.close()
    last.close()


# ── the server ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def proxy(postgres: Server) -> Iterator[CutProxy]:
    proxy = CutProxy(postgres.port)
    yield proxy
    proxy.close()


@pytest.mark.parametrize(("direction", "step"), [("ask", 1999), ("answer", 211)])
def test_the_line_to_the_server_may_be_cut_anywhere(
    tmp_path: Path, postgres: Server, proxy: CutProxy, direction: str, step: int
):
    with make("files", tmp_path) as here, make("memory", tmp_path) as there:
        fill(here, there, tmp_path / "work")
        for point in count(0, step):
            tenant = uuid.uuid4()
            location = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&tenant={tenant}"
            with turnlog.open(location) as server:
                derived.health(interior(server).store)
                before = proxy.cuts
                proxy.cut_after(direction, point)
                try:
                    here.push(server)
                except Unavailable:
                    proxy.whole()
                    here.push(server)
                proxy.whole()
                assert everything(server) == everything(here)
                if proxy.cuts == before:
                    assert point >= 5 * step
                    return


def test_a_server_that_is_killed_meanwhile_has_what_it_acknowledged(tmp_path: Path):
    server = Server()
    try:
        with make("files", tmp_path) as here, make("memory", tmp_path) as there:
            fill(here, there, tmp_path / "work")
            for calls in (1, 3):
                store = store_postgres.connect(f"{server.url}?tenant=t{calls}", patience=0.5)
                adopt, left = store.adopt, [calls]

                def killing(*args: Any, adopt: Any = adopt, left: list[int] = left, **how: Any) -> None:
                    left[0] -= 1
                    if left[0] == 0:
                        server.kill()
                    adopt(*args, **how)

                store.adopt = killing  # type: ignore[method-assign]
                with Home(store) as broken, pytest.raises(Unavailable):
                    here.push(broken)
                server.start()
                with turnlog.open(f"{server.url}?tenant=t{calls}") as whole_again:
                    here.push(whole_again)
                    assert everything(whole_again) == everything(here)
    finally:
        server.remove()
