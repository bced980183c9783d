"""Eight processes at one database: nothing is lost, nothing is mixed, and who came too late is told."""

import uuid
from itertools import chain

import pytest

import turnlog
from tests.pgserver import Server
from tests.store.actors import actors, at_once
from turnlog import Conflict
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.testing.build import seqs

NAMES = "abcdefgh"


@pytest.fixture
def location(postgres: Server) -> str:
    return f"{postgres.url}?tenant={uuid.uuid4()}"


@pytest.fixture
def home(location: str):
    with turnlog.open(location) as home:
        yield home


def test_marks_of_eight_processes_all_arrive(location: str, home: turnlog.Home):
    session = home.create(id="one")
    told = at_once(*(("notes", location, "one", name, 25) for name in NAMES))
    session.refresh()
    entries = session.entries()
    found = {name: [] for name in NAMES}
    for note in session.entries(kind=turnlog.Note):
        name, number, rest = note.text.split(" ")
        assert rest == name * (int(number) * 97 % 6_000)
        found[name].append((note.seq, int(number)))
    assert [seq for seq, _ in sorted(chain(*found.values()))] == sorted(chain(*told))
    for name, mine in zip(NAMES, told, strict=True):
        assert found[name] == list(zip(mine, range(25), strict=True))
    all_seqs = seqs(list(entries))
    assert all_seqs == list(range(1, len(all_seqs) + 1))


def test_nodes_of_eight_processes_make_one_conversation(location: str, home: turnlog.Home):
    session = home.create(id="one")
    at_once(*(("nodes", location, "one", name, 8) for name in NAMES))
    session.refresh()
    texts = [message.blocks[0].text for message in session.messages()]
    assert sorted(texts) == sorted(f"{name} {n}" for name in NAMES for n in range(8))
    for name in NAMES:
        assert [text for text in texts if text[0] == name] == [f"{name} {n}" for n in range(8)]


def test_eight_processes_on_sessions_of_their_own(location: str, home: turnlog.Home):
    made = at_once(*(("sessions", location, name, 12) for name in NAMES))
    assert sorted(info.id for info in home.sessions()) == sorted(chain(*made))
    for name in chain(*made):
        assert [message.blocks[0].text for message in home.resume(name).messages()] == [f"hello from {name}"]


def test_of_eight_processes_that_create_one_session_exactly_one_succeeds(location: str, home: turnlog.Home):
    told = at_once(*(("create", location, "same") for _ in NAMES))
    assert sum(seq is not None for seq in told) == 1
    assert len(home.resume("same").messages()) == 1


def test_eight_processes_meet_an_empty_database(postgres: Server):
    database = postgres.database(f"empty-{uuid.uuid4()}")
    made = at_once(*(("starts", database, name, 2) for name in NAMES))
    with turnlog.open(database) as home:
        assert sorted(derived.ids(interior(home).store)) == sorted(chain(*made))


def test_the_same_images_from_eight_processes(location: str, home: turnlog.Home):
    session = home.create(id="one")
    at_once(*(("images", location, "one", "same", 8) for _ in NAMES))
    session.refresh()
    data = [home.get_blob(message.blocks[0].blob) for message in session.messages()]
    assert sorted(data) == sorted(f"same {n % 7}".encode() * 20 for n in range(8) for _ in NAMES)


def test_a_conflict_names_the_process_that_was_faster(location: str, home: turnlog.Home):
    session = home.create(id="one")
    session.user("begin")
    with actors(("nodes", location, "one", "other", 1)) as (other,):
        other.go()
        (seq,) = other.hear()
        with pytest.raises(Conflict, match=rf"entry {seq} .*process {other.pid} on "):
            session.user("too late")


def test_a_forked_process_goes_on_with_connections_of_its_own(location: str, home: turnlog.Home):
    session = home.create(id="one")
    [[_, _, code]] = at_once(("forks", location, "one", 20))
    assert code == 0
    session.refresh()
    texts = [message.blocks[0].text for message in session.messages()]
    assert sorted(texts) == sorted(["before", *(f"{who} {n}" for who in ("parent", "child") for n in range(20))])


def test_forks_of_a_process_whose_threads_are_appending(location: str, home: turnlog.Home):
    session = home.create(id="one")
    [codes] = at_once(("forks_with_threads", location, "one", 10))
    assert codes == [0] * 10
    session.refresh()
    texts = [note.text for note in session.entries(kind=turnlog.Note)]
    assert sorted(text for text in texts if text.startswith("child")) == sorted(f"child {n}" for n in range(10))
