"""Folds only save time: they are used where they can be believed, and nowhere else."""

import json
import zlib

import pytest

import turnlog
from turnlog.errors import Unavailable
from turnlog.store.files.names import file_name
from turnlog.thread import appender, history
from turnlog.thread.reader import history_of


@pytest.fixture(autouse=True)
def many_folds(monkeypatch):
    monkeypatch.setattr(appender, "_FOLD_ENTRIES", 10)
    monkeypatch.setattr(appender, "_FOLD_BYTES", 1 << 40)


@pytest.fixture
def counted(monkeypatch):
    """How many entries were folded."""
    seen = []
    real = history.fold

    def count(state, entry, **options):
        seen.append(entry.seq)
        return real(state, entry, **options)

    monkeypatch.setattr(history, "fold", count)
    return seen


def fill(session, count=100):
    session.system("be brief")
    for index in range(count):
        session.user(str(index))
        session.set("n", index)


def test_a_resumed_session_folds_only_what_came_after_the_newest_fold(s, place, counted):
    fill(s)
    assert len(list(s.entries(kind="fold"))) > 10
    counted.clear()
    again = place.open().resume(s.id)
    assert (again.get("n"), again.stats().messages, again.context().system) == (99, 101, "be brief")
    assert len(counted) < 25


def test_a_fork_begins_with_a_fold_of_what_it_inherits(s, place, counted):
    fill(s)
    child = s.fork()
    child.user("own")
    counted.clear()
    again = place.open().resume(child.id)
    assert (again.get("n"), again.stats().messages, again.context().system) == (99, 102, "be brief")
    assert len(counted) < 8


def test_a_fork_in_the_past_folds_only_from_the_fold_before_it(s, counted):
    fill(s)
    place = s.messages()[50]
    counted.clear()
    assert s.fork(at=place).get("n") == 48
    assert len(counted) < 30


def test_a_fold_that_somebody_edited_is_not_believed(files):
    with files.open() as home:
        session = home.create(title="right")
        fill(session, 20)
    path = files.folder / "sessions" / file_name(session.id)
    lines = path.read_bytes().splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.startswith(b'{"type":"fold"'):
            lines[index] = line.replace(b'"title":"right"', b'"title":"wrong"').replace(b'"n":', b'"m":')
            assert lines[index] != line
    path.write_bytes(b"".join(lines))
    again = files.open().resume(session.id)
    assert (again.title, again.get("n"), again.get("m")) == ("right", 19, None)
    assert [damage.kind for damage in again.damage] == ["edited"] * len(list(again.entries(kind="fold")))


@pytest.mark.parametrize(
    "change",
    [lambda f: f.update(upto=f["upto"] - 1), lambda f: f.update(state=None), lambda f: f.update(state={"seq": "x"})],
)
def test_a_fold_that_makes_no_sense_is_not_used(files, change):
    with files.open() as home:
        session = home.create(title="right")
        fill(session, 20)
    path = files.folder / "sessions" / file_name(session.id)
    lines = path.read_bytes().splitlines(keepends=True)
    for index, line in enumerate(lines):
        if line.startswith(b'{"type":"fold"'):
            fields = json.loads(line)
            del fields["c"]
            change(fields)
            body = json.dumps(fields, separators=(",", ":")).encode()[:-1]
            lines[index] = body + b',"c":"%08x"}\n' % zlib.crc32(body)
    path.write_bytes(b"".join(lines))
    again = files.open().resume(session.id)
    assert (again.title, again.get("n"), again.stats().messages, again.damage) == ("right", 19, 21, [])


def test_an_entry_that_is_in_the_log_does_not_fail_because_of_its_fold(s, monkeypatch):
    real = history.derived.version
    fill(s, 4)
    calls = []

    def unavailable(log):
        calls.append(log)
        if len(calls) == 1:
            raise Unavailable("the server is gone")
        return real(log)

    monkeypatch.setattr(history.derived, "version", unavailable)
    for index in range(20):
        s.user(f"once {index}")
    assert len(calls) > 1
    texts = [message.blocks[0].text for message in s.messages()]
    assert [texts.count(f"once {index}") for index in range(20)] == [1] * 20


def test_what_could_not_be_looked_at_again_is_looked_at_the_next_time(monkeypatch):
    home = turnlog.open("memory:")
    session = home.create()
    session.set("title", "a secret")
    looking = home.read(session.id)
    assert looking.facts["title"] == "a secret"
    session.erase(*[entry for entry in session.entries() if entry.type == "set"])
    real = history.History._state_before
    fails = [True]

    def failing(self, *args):
        if fails.pop() if fails else False:
            raise Unavailable("the server is gone")
        return real(self, *args)

    monkeypatch.setattr(history.History, "_state_before", failing)
    with pytest.raises(Unavailable):
        history_of(looking).renew()
    history_of(looking).renew()
    assert "title" not in looking.facts
