"""Erasing entries: gone wherever the home has them, whatever stops it; and everything else as it was."""

import errno
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import turnlog
from tests.faces import location
from tests.store.crashlab import fast_folder, home_at
from tests.store.faultlab import FailingDisk
from turnlog import Catalog, Invalid, NotFound, Text, TurnlogError
from turnlog.log.block import Image
from turnlog.log.draft import prepare
from turnlog.log.entry import Head, Message, Set
from turnlog.log.zstd import unpacked
from turnlog.session.interior import interior
from turnlog.session.readonly import ReadOnlySession
from turnlog.store import derived
from turnlog.store.files.disk import Disk

SECRET = "ZQ-only-once"
LONG = SECRET + "-in-a-blob " + "x" * 70_000


@pytest.fixture(params=["memory", "files", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[turnlog.Home]:
    with turnlog.open(location(request, tmp_path / "home"), checkpoints=False) as home:
        yield home


def found_in(folder: Path | str, text: str = SECRET) -> list[str]:
    """The files below a folder that have that text; the texts of an index are unpacked."""
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return [path.name for path in files if text.encode() in path.read_bytes() or text in "".join(indexed(path))]


def indexed(path: Path) -> Iterator[str]:
    if not path.read_bytes().startswith(b"SQLite format 3"):
        return
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        for (data,) in db.execute("SELECT data FROM texts"):
            yield unpacked(data, 1 << 24).decode()


def said(session: ReadOnlySession) -> list[str]:
    return [message.blocks[0].text for message in session.context() if isinstance(message.blocks[0], Text)]


def test_what_was_said_is_gone_and_its_place_stays(home: turnlog.Home):
    session = home.create()
    session.user("before")
    entry = session.user(SECRET, meta={"note": SECRET})
    session.assistant("after")
    fork = session.fork()
    receipt = session.erase(entry, reason="a key", by="ada")
    assert (receipt.by, receipt.reason) == ("ada", "a key")
    assert [(one.session, one.seq, one.id, one.type) for one in receipt.entries] == [
        (session.id, entry.seq, entry.id, "message")
    ]
    for one in (session, fork, home.read(session.id), home.read(fork.id)):
        assert said(one) == ["before", "[erased]", "after"]
        left = one.find(entry.id)
        assert left is not None and (left.seq, left.at, left.parent) == (entry.seq, entry.at, entry.parent)
        assert SECRET not in str(list(one.entries()))
    [known] = session.erasures()
    assert (known.seq, known.id, known.by, known.why, known.at) == (entry.seq, entry.id, "ada", "a key", receipt.at)
    assert session.damage == []
    session.user("and on")
    assert said(home.read(session.id))[-1] == "and on"


@pytest.mark.parametrize("odd", [5, b"a key", None, "caf\udce9"])
def test_who_and_why_are_text_and_what_is_not_harms_no_later_erasure(home: turnlog.Home, odd: object):
    session = home.create()
    first, second = session.user("first"), session.user("second")
    with pytest.raises(Invalid, match="Unicode text"):
        session.erase(first, reason=odd)  # type: ignore[arg-type]
    if odd is not None:
        with pytest.raises(Invalid, match="Unicode text"):
            session.erase(first, by=odd)  # type: ignore[arg-type]
    session.erase(second)
    assert said(home.resume(session.id)) == ["first", "[erased]"]
    assert len(session.erasures()) == 1


@pytest.mark.parametrize("name", ["a\0b", "".join(map(chr, range(0x4E00, 0x6000)))], ids=["NUL", "long"])
def test_a_fact_with_an_odd_name_is_gone_wherever_it_is_repeated(home: turnlog.Home, name: str):
    session = home.create()
    session.user("one")
    fact = session.set(name, SECRET)
    session.user("two")
    session.rewind(turns=1)
    session.erase(fact)
    assert SECRET not in str(list(home.read(session.id).entries()))
    [erasures] = derived.erasures(interior(home).store).values()
    assert {one.part for one in erasures} == {"", f"fact:{name}"}


def test_the_receipt_names_what_a_fork_repeats_as_it_is_there(home: turnlog.Home):
    session = home.create()
    fact = session.set("key", SECRET)
    asked = session.user("ask")
    fork = session.fork()
    fork.user("go on")
    fork.rewind(asked)
    for number in range(6):
        session.user(f"the other way {number}")
    receipt = session.erase(fact)
    assert [entry.type for entry in receipt.also if entry.session == fork.id] == ["fold", "head"]
    for entry in receipt.entries + receipt.also:
        there = home.read(entry.session).find(entry.id)
        assert there is not None and (there.seq, there.type) == (entry.seq, entry.type)


def test_an_inherited_entry_is_erased_where_it_is(home: turnlog.Home):
    session = home.create()
    entry = session.user(SECRET)
    fork = session.fork()
    fork.user("in the fork")
    home.delete(session.id)
    assert [one.session for one in fork.erase(entry.seq).entries] == [session.id]
    assert said(fork) == ["[erased]", "in the fork"]
    home.restore(session.id)
    assert said(home.read(session.id)) == ["[erased]"]


def test_others_who_have_it_open_see_it_gone(home: turnlog.Home):
    session = home.create()
    entry = session.user(SECRET)
    other, reader = home.resume(session.id), home.read(session.id)
    assert said(other) == said(reader) == [SECRET]
    session.erase(entry)
    assert said(other) == said(reader) == ["[erased]"]
    other.assistant("and on")
    session.refresh()
    assert said(session) == ["[erased]", "and on"]
    assert [entry.seq for entry in reader.entries()][-1] == other.seq


def test_a_long_text_goes_and_one_that_others_need_stays(home: turnlog.Home):
    session = home.create()
    alone = session.user(LONG)
    picture = [Image(data=b"\x89PNG" + SECRET.encode() * 9, media_type="image/png")]
    shared = session.user(picture)
    twice = session.user(picture)
    receipt = session.erase(alone, shared)
    assert receipt.blobs == 1
    [needed] = receipt.needed
    assert [(one.session, one.seq) for one in needed.entries] == [(session.id, twice.seq)]
    assert session.erase(twice).blobs == 1
    assert home.gc().blobs == 0


def test_facts_go_wherever_they_are_repeated(home: turnlog.Home):
    session = home.create(title=f"{SECRET} title")
    session.set("mode", "plan")
    session.set("pin", SECRET)
    session.set("workspace", "/w")
    node = session.user("x")
    session.rewind(to=node)
    for number in range(260):
        session.note(str(number))
    fork = session.fork()
    assert any(entry.type == "fold" for entry in session.entries())
    pin = next(entry for entry in session.entries() if isinstance(entry, Set) and entry.key == "pin")
    receipt = session.erase(pin, 1)
    assert receipt.also
    fork.refresh()
    for one in (session, fork, home.read(session.id), home.read(fork.id)):
        assert one.facts == {"mode": "plan", "workspace": "/w"}
        assert SECRET not in str(list(one.entries()))
        assert one.title is None
    [head] = [entry for entry in session.entries() if isinstance(entry, Head)]
    assert head.facts == {"mode": "plan"}
    assert [row.title for row in home.sessions()] == [None, None]
    session.set("pin", "another")
    assert home.read(session.id).facts["pin"] == "another"


def test_an_origin_of_ones_own_names_no_other_files(home: turnlog.Home):
    session = home.create()
    first, second = session.user("hi", origin={"x": 1}), session.user("hi", origin={"agent": "pi"})
    for _ in range(2):
        assert session.erase(first).copies == ["the files of pi, from which it was imported"]
    assert session.erase(second).copies == ["the files of pi, from which it was imported"]


def test_what_it_cost_and_what_hangs_together_stays(home: turnlog.Home):
    session = home.create()
    session.user("go")
    call = turnlog.ToolCall(id="c1", name="bash", input={"command": SECRET})
    asked = session.assistant([Text(SECRET), call], model="m", usage=turnlog.Usage(input_tokens=7, output_tokens=3))
    session.tool_result(call, SECRET)
    usage, stats = session.usage(), session.stats()
    session.erase(asked, asked.seq + 1)
    again = home.read(session.id)
    assert again.usage() == usage and again.stats() == stats
    assert [message.role for message in again.context()] == ["user", "assistant", "tool"]
    assert again.pending() == []
    assert SECRET not in str(again.context().messages)


def test_what_cannot_be_erased_says_so(home: turnlog.Home):
    session = home.create()
    entry = session.user(SECRET)
    with pytest.raises(NotFound, match="no entry 99"):
        session.erase(99)
    with pytest.raises(Invalid, match="writer"):
        session.erase(2)
    with pytest.raises(Invalid, match="nothing"):
        session.erase()
    assert session.erase(entry).entries
    assert session.erase(entry).entries == [], "it was erased already"
    assert len(session.erasures()) == 1


def test_a_summary_that_came_later_is_named(home: turnlog.Home):
    session = home.create()
    entry = session.user(SECRET)
    summary = session.compact(f"they said {SECRET}")
    assert [one.seq for one in session.erase(entry).summaries] == [summary.seq]
    session.erase(summary)
    assert said(session) == ["[erased]"]
    session.uncompact()
    assert said(session) == ["[erased]"]


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def test_no_byte_of_it_is_left_in_the_home_or_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "home"
    with turnlog.open(place) as home, Catalog(home, agents=False) as catalog:
        session = home.create()
        entry = session.user(f"{SECRET} is what I typed first")
        fork = session.fork()
        fork.user("another")
        assert len(catalog.search(SECRET)) == 1
        assert any(SECRET in card.preview for card in catalog.cards())
        assert any(SECRET in text for path in (tmp_path / "cache").rglob("*.sqlite") for text in indexed(path))
        session.erase(entry)
        catalog.forget_purged()
        assert found_in(tmp_path) == []
        assert len(catalog.search(SECRET)) == 0
        assert not any(SECRET in card.preview for card in catalog.cards())
        second = fork.user(SECRET)
        catalog.sync()
        fork.erase(second)
        catalog.sync()
        assert found_in(tmp_path) == []


def test_what_was_left_of_writes_and_repairs_goes_as_well(tmp_path: Path):
    place = tmp_path / "home"
    with turnlog.open(place) as home:
        session = home.create(id="s")
        session.user("before")
        path = place / "sessions" / "s.jsonl"
        torn = b'{"type":"message","seq":9,"role":"user","blocks":[{"type":"text","text":"' + SECRET.encode()
        path.write_bytes(path.read_bytes() + torn)
        session = home.resume("s")
        entry = session.user(SECRET)
        damaged = path.read_bytes().replace(b"before", b"BEFORE")
        session.close()
        path.write_bytes(damaged.replace(b'"type":"writer"', b'"type":"wri\0er"'))
        interior(home).store.repair("s", without=())
        assert len(found_in(place)) == 2
        (place / "sessions" / ".new-0123456789abcdef").write_text(SECRET)
        session = home.resume("s")
        session.erase(entry)
        assert found_in(place) == []
        assert not [item for item in session.damage if item.seq is None]
        assert "BEFORE" in str(session.messages())


def test_what_a_later_line_sealed_off_is_blanked_out_once(tmp_path: Path):
    """An unfinished batch is named twice: for itself, and by the line that sealed it off."""
    with turnlog.open(tmp_path / "home", checkpoints=False) as home:
        path = left_in_a_batch(home, tmp_path / "home")
        session = home.resume("s")
        entry = session.user(SECRET)
        assert len(path.read_bytes().split(SECRET.encode())) == 4
        session.erase(entry)
        assert not found_in(tmp_path)
        assert said(session) == ["before", "[erased]"]
        assert home.create().user("another").seq


def left_in_a_batch(home: turnlog.Home, place: Path) -> Path:
    """A session whose last batch of two lines was torn in its second one."""
    session = home.create(id="s")
    session.user("before")
    drafts = [Message(role="user", blocks=[Text(text=f"{SECRET} {number}")]) for number in range(2)]
    interior(home).store.open("s").append([prepare(one)[0] for one in drafts], after=99, head=3)
    session.close()
    path = place / "sessions" / "s.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    return path


def test_one_erasure_that_cannot_be_completed_stops_no_other_session(tmp_path: Path):
    class Dying(Disk):
        def rename(self, source: str, target: str) -> None:
            if os.path.basename(os.path.dirname(target)) == "sessions":
                raise OSError(errno.EIO, "as if the process had died")
            super().rename(source, target)

    place = tmp_path / "home"
    with turnlog.open(place, checkpoints=False) as home:
        session, other = home.create(id="s"), home.create(id="other")
        entry = session.user(SECRET)
        later = other.user(SECRET)
    with home_at(str(place), Dying()) as home, pytest.raises(TurnlogError):
        home.resume("s").erase(entry)
    path = place / "sessions" / "s.jsonl"
    [at] = [number for number, line in enumerate(path.read_bytes().splitlines()) if SECRET.encode() in line]
    lines = path.read_bytes().splitlines(keepends=True)
    short = b'{"type":"message","seq":%d,"id":"%s","role":"user","blocks":[]}\n' % (entry.seq, entry.id.encode())
    path.write_bytes(b"".join([*lines[:at], short, *lines[at + 1 :]]))
    with turnlog.open(place, checkpoints=False) as home:
        home.create().user("a new one")
        other = home.resume("other")
        other.erase(later)
        assert said(other) == ["[erased]"]
        with pytest.raises(turnlog.Corrupt, match="erasure in session s cannot be completed"):
            home.resume("s")
        home.purge("s")
        home.create(id="s").user("and again")
    with turnlog.open(place, checkpoints=False) as home:
        home.create()
        assert not list((place / "erasing").iterdir())


def test_an_older_version_is_told_to_upgrade_only_from_then_on(tmp_path: Path):
    with turnlog.open(tmp_path / "home") as home:
        session = home.create()
        entry = session.user(SECRET)
        assert "erasures" not in (tmp_path / "home" / "home.json").read_text()
        session.erase(entry)
        assert '"erasures":1' in (tmp_path / "home" / "home.json").read_text()
    with turnlog.open(tmp_path / "home") as home:
        home.create().user("and on")
    assert '"erasures":1' in (tmp_path / "home" / "home.json").read_text()


def _story(folder: str, disk: Disk | None = None) -> tuple[turnlog.Home, turnlog.Session, Message, Message]:
    home = home_at(folder, disk)
    session = home.create(id="s")
    session.user("before")
    entry, long = session.user(SECRET), session.user(LONG)
    session.fork(id="fork")
    session.user("after")
    return home, session, entry, long


def _check(folder: str, *, must: bool) -> bool:
    """Whether it is gone; all of it, or nothing of it."""
    with home_at(folder) as home:
        session = home.resume("s")
        texts = [message.blocks[0].text for message in session.messages()]  # pyright: ignore[reportAttributeAccessIssue]
        is_gone = texts[1] == "[erased]"
        assert is_gone or not must
        assert texts == (["before", "[erased]", "[erased]", "after"] if is_gone else ["before", SECRET, LONG, "after"])
        assert session.damage == []
        if is_gone:
            assert found_in(folder) == []
            assert len(session.erasures()) == 2
            assert not os.listdir(os.path.join(folder, "erasing"))
            assert home.gc(dry_run=True).blobs == 0
        session.user("and on")
        return is_gone


def test_killed_anywhere_it_is_finished_or_untouched():
    """Every call to the system is the last one once."""
    with fast_folder() as top:
        outcomes = set()
        for number in range(1, 400):
            folder = os.path.join(top, str(number))
            disk = FailingDisk(at=0)
            _, session, entry, long = _story(folder, disk)
            disk._at, disk._for_ever = disk.calls + number, True
            try:
                session.erase(entry, long)
            except TurnlogError:
                outcomes.add(_check(folder, must=False))
            else:
                assert _check(folder, must=True)
                if not disk.failed:
                    break
        assert outcomes == {True, False}
        assert not disk.failed, "not every call was reached"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_error_of_the_disk_is_typed_and_it_can_be_tried_again(error: int):
    with fast_folder() as top:
        for number in range(1 + (error == errno.EIO), 400, 3):
            folder = os.path.join(top, str(number))
            disk = FailingDisk(at=0, error=error)
            home, session, entry, long = _story(folder, disk)
            disk._at = disk.calls + number
            try:
                session.erase(entry, long)
            except TurnlogError:
                disk.heal()
                session.erase(entry, long)
            home.close()
            assert _check(folder, must=True)
            if not disk.failed:
                return


class _WaitsForTwo(Disk):
    """The first lock of an append is free; before the second is, somebody else erases once more."""

    def __init__(self) -> None:
        super().__init__()
        self.before_lock: list[Callable[[], object]] = []

    def lock(self, fd: int) -> None:
        if self.before_lock:
            self.before_lock.pop(0)()
        super().lock(fd)


def test_a_file_that_is_replaced_twice_while_a_writer_waits_gets_what_he_writes(tmp_path: Path):
    disk = _WaitsForTwo()
    with home_at(str(tmp_path), disk) as home, turnlog.open(tmp_path) as others:
        session = home.create(id="s")
        entries = [session.user(f"{SECRET} {number}") for number in range(3)]
        eraser = others.resume("s")
        disk.before_lock = [lambda: eraser.erase(entries[0]), lambda: eraser.erase(entries[1])]
        session.note("kept")
        assert disk.before_lock == []
        assert [entry.text for entry in others.read("s").entries(kind="note")] == ["kept"]  # pyright: ignore
        session.note("as well")
        assert others.read("s").damage == []


class _NamesItMeanwhile(Disk):
    """A file that is being made gets its name just before somebody looks whether it is abandoned."""

    new = ""

    def try_lock(self, fd: int) -> bool:
        if self.new:
            os.rename(self.new, self.new.replace(".new-", "named-"))
            self.new = ""
        return super().try_lock(fd)


def test_a_file_that_gets_its_name_meanwhile_is_not_abandoned(tmp_path: Path):
    disk = _NamesItMeanwhile()
    with home_at(str(tmp_path), disk) as home:
        session = home.create(id="s")
        entry = session.user(SECRET)
        new = tmp_path / "sessions" / ".new-0123456789abcdef"
        new.write_text("being made")
        disk.new = str(new)
        session.erase(entry)
        assert new.with_name("named-0123456789abcdef").read_text() == "being made"


def test_somebody_appends_and_somebody_else_erases_meanwhile(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        session = home.create(id="s")
        entries = [session.user(f"{SECRET} {number}") for number in range(24)]
        errors: list[BaseException] = []

        def append() -> None:
            own = home.resume("s")
            for number in range(60):
                own.note(f"note {number}")

        def erase(some: list[Message]) -> None:
            own = home.resume("s")
            for entry in some:
                own.erase(entry)

        def watched(work, *args) -> None:
            try:
                work(*args)
            except BaseException as error:
                errors.append(error)

        jobs = ((append,), (erase, entries[::2]), (erase, entries[1::2]), (erase, entries[::3]))
        threads = [threading.Thread(target=watched, args=args) for args in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        fresh = home.read("s")
        assert [e.text for e in fresh.entries(kind="note")] == [f"note {n}" for n in range(60)]  # pyright: ignore
        assert fresh.damage == []
        assert found_in(tmp_path) == []


def test_facts_that_one_line_repeats_go_together(home: turnlog.Home):
    """Every line that says a session-wide fact says all of them, and so does a head."""
    session = home.create(title="kept")
    session.user("one")
    title = session.set("title", f"{SECRET} title")
    tags = session.set("tags", [f"{SECRET} tag"])
    model = session.set("model", f"{SECRET} model")
    session.set("archived", True)
    session.user("two")
    session.rewind(turns=1, files=False)
    fork = session.fork()
    fork.set("archived", False)
    receipt = session.erase(title, tags, model)
    assert [one.seq for one in receipt.entries] == [title.seq, tags.seq, model.seq]
    both = [(one.session, one.seq) for one in receipt.entries + receipt.also]
    assert len(both) == len(set(both))
    for one in (session, fork, home.read(session.id), home.read(fork.id)):
        assert not any(SECRET in str(entry.to_json()) for entry in one.entries())
    assert SECRET not in str(session.facts) + str(fork.facts)
    again = home.resume(session.id)
    again.user("three")
    assert said(again)[-1] == "three"


@pytest.mark.parametrize("then", ["create", "gc", "purge", "resume"])
def test_whatever_is_done_next_finishes_what_was_interrupted(tmp_path: Path, then: str):
    """Between the intent and the rewriting."""

    class Dying(Disk):
        def rename(self, source: str, target: str) -> None:
            if os.path.basename(os.path.dirname(target)) == "sessions":
                raise OSError(errno.EIO, "as if the process had died")
            super().rename(source, target)

    with turnlog.open(tmp_path / "home", checkpoints=False) as home:
        session, other = home.create(), home.create()
        entry = session.user(SECRET)
        long = session.user(LONG)
    with home_at(str(tmp_path / "home"), Dying()) as home, pytest.raises(TurnlogError):
        home.resume(session.id).erase(entry, long)
    assert found_in(tmp_path / "home" / "sessions")
    with turnlog.open(tmp_path / "home", checkpoints=False) as home:
        if then == "create":
            home.create()
        elif then == "gc":
            home.gc()
        elif then == "purge":
            home.purge(other.id)
        else:
            home.resume(session.id)
    assert not found_in(tmp_path / "home")


def test_each_log_is_read_once_however_many_entries_go(home: turnlog.Home, monkeypatch: pytest.MonkeyPatch):
    """And a fork that was made between two facts repeats only the earlier one."""
    session = home.create(id="s")
    early = session.set("early", SECRET)
    fork = session.fork(name=None)
    late = [session.set(f"late {number}", f"{SECRET} {number}") for number in range(30)]
    messages = [session.user(f"{SECRET} {number}") for number in range(30)]
    for teller in (session, fork):
        teller.rewind(to=teller.user("go"))  # a head entry repeats all facts
        teller.user("on")
    store, opened = interior(home).store, list[str]()
    original = store.open

    def recording(name: str, **options: object) -> object:
        opened.append(name)
        return original(name, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(store, "open", recording)
    receipt = session.erase(early, *late, *messages)
    assert len(opened) < 20
    monkeypatch.undo()
    assert len(receipt.entries) == 61
    for name in (session.id, fork.id):
        assert SECRET not in repr([entry for entry in home.read(name).entries() if entry.type in ("head", "set")])
