"""Sessions that somebody looks at: another agent's read once and grown, ours beside it; secrets learnt; let go."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog.catalog import Catalog
from turnlog.errors import NotFound, Unavailable
from turnlog.exchange.importing.run import import_all
from turnlog.formats import every
from turnlog.log.context import text_of
from turnlog.log.entry import AnyEntry, Message
from turnlog.reader.viewing.desk import Desk
from turnlog.reader.viewing.foreignlog import ForeignLog
from turnlog.reader.viewing.ownlog import OwnLog
from turnlog.reader.viewing.viewedsession import ViewedSession
from turnlog.session.interior import interior

RECORDED = sorted(Path(__file__).parent.parent.glob("formats/agents/*/recorded"))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.fixture
def desk(machine: Machine) -> Iterator[Desk]:
    with turnlog.open(machine.home) as home, machine.catalog(fresh_for=0) as catalog:
        made = Desk(home, catalog, str(machine.home))
        yield made
        made.close()


def gist(entry: AnyEntry) -> tuple[str, str, str]:
    said = text_of(entry.blocks) if isinstance(entry, Message) else ""
    return entry.id, entry.type, said


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.parent.name)
def test_another_agents_session_reads_as_its_import_does(folder: Path) -> None:
    found = [source for _, form in every() for source in form.find(str(folder))]
    assert found
    for source in found:
        log = ForeignLog(source)
        with turnlog.open("memory:") as home:
            [*_, done] = import_all(interior(home).creator, [source])
            with home.read(done.id) as session:
                wanted = [gist(entry) for entry in session.path() if entry.origin is not None]
                there = {entry.seq: entry for entry in log.forward()}
                path = [gist(there[log.outline.seqs[index]]) for index in log.outline.path(log.head)]
                own = [one for one in wanted if one in path]
                assert [one for one in path if one[2]] == [one for one in own if one[2]]
                assert {one for one in wanted if one[2]} <= set(path) | {("", "", "")}


def test_it_grows_from_the_mark_to_what_it_would_be_anew(machine: Machine) -> None:
    for path, write in ((machine.claude("aaaa"), machine.claude), (machine.codex("bbbb"), machine.codex)):
        name = "aaaa" if write == machine.claude else "bbbb"
        source = next(source for _, form in every() for source in form.find(str(path)))
        log = ForeignLog(source)
        for _ in range(3):
            before = list(log.forward())
            write(name)
            assert log.read_on() == len(before) + 1
            fresh = ForeignLog(source)
            assert list(log.forward()) == list(fresh.forward())
            assert list(log.outline) == list(fresh.outline)
            assert log.head == fresh.head
        path.unlink()
        with pytest.raises(Unavailable):
            log.read_on()


def test_a_window_is_what_lies_there(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("turnlog.reader.viewing.foreignlog._PACKED_ENTRIES", 4)
    path = machine.claude("aaaa", 9)
    log = ForeignLog(next(source for _, form in every() for source in form.find(str(path))))
    everything = list(log.forward())
    for after in range(len(everything) + 1):
        for before in (None, after + 1, after + 2, after + 7):
            wanted = [e for e in everything if e.seq > after and (before is None or e.seq < before)]
            assert list(log.forward(after, before)) == wanted


@pytest.mark.parametrize("name", ["ours", "claude-code:aaaa", "codex:bbbb"])
def test_a_session_that_goes_on_is_seen_to(desk: Desk, machine: Machine, name: str) -> None:
    write = {"ours": machine.ours, "claude-code:aaaa": machine.claude, "codex:bbbb": machine.codex}[name]
    word = name.rpartition(":")[2]
    write(word, 2)
    card = desk.catalog.find(name)
    viewed = desk.open(card)
    version = viewed.version
    assert desk.open(card) is viewed
    before = len(viewed.pieces)
    assert viewed.refresh() is None
    write(word)
    changed = viewed.refresh()
    is_anew = name.startswith("claude")  # the turns of that machine each begin a conversation
    assert changed is not None
    assert is_anew or changed == before < len(viewed.pieces)
    assert viewed.version == version + 1
    assert viewed.changed_since(version) == changed
    assert viewed.changed_since(version - 9) == 0
    assert viewed.changed_since(viewed.version + 9) == 0, "a version that never was"
    said = [text_of(e.blocks) for piece in viewed.read(0, len(viewed.pieces)) for e in piece if isinstance(e, Message)]
    assert sum("needle" in text and ("find" in text or "ours" in text) for text in said) == (1 if is_anew else 3)
    hit = desk.catalog.search("needle*", limit=50)[0]
    assert viewed.pieces.position(viewed.find(hit.entry)) < len(viewed.pieces)
    with pytest.raises(NotFound):
        viewed.find("nowhere")


def test_secrets_are_known_before_any_of_it_is_shown(desk: Desk) -> None:
    secret = "sk-ant-api03-" + "Zq8vN2mX" * 6
    session = desk.home.create(id="talk")
    session.user(f"the last part is {secret[-30:]}, alone it says nothing")
    for _ in range(3):
        session.assistant("well")
    session.user(f"ANTHROPIC_API_KEY={secret}")
    viewed = desk.open(desk.catalog.find("talk"))
    assert secret not in str(list(viewed.read(0, 9, is_redacted=True)))
    session.user("password: " + "hunter2-" * 3)
    viewed.refresh()
    assert "hunter2-hunter2" not in str(list(viewed.read(0, 9, is_redacted=True)))
    assert "hunter2-hunter2" in str(list(viewed.read(0, 9)))


def test_secrets_of_a_file_that_was_replaced_are_known(desk: Desk, machine: Machine) -> None:
    path = machine.claude("aaaa")
    viewed = desk.open(desk.catalog.find("claude-code:aaaa"))
    assert list(viewed.read(0, 9, is_redacted=True))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    texts = ("set password = Hunter2xyzzy9 please", "I used Hunter2xyzzy9 there", "then")
    for row, text in zip(rows, texts, strict=False):
        row["message"]["content"] = text
    path.write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    assert viewed.refresh() is not None
    assert "Hunter2xyzzy9" in str(list(viewed.read(0, 9)))
    assert "Hunter2xyzzy9" not in str(list(viewed.read(0, 9, is_redacted=True)))


def test_secrets_of_a_record_that_grows_in_place_are_known(desk: Desk, machine: Machine) -> None:
    path = machine.claude("aaaa")
    viewed = desk.open(desk.catalog.find("claude-code:aaaa"))
    assert list(viewed.read(0, 9, is_redacted=True))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[-1]["message"]["content"][0]["text"] += ": password = Hunter2xyzzy9"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    viewed.refresh()
    last = {**rows[-1], "uuid": "later", "parentUuid": rows[-1]["uuid"]}
    last["message"] = {**last["message"], "id": "later", "content": [{"type": "text", "text": "Hunter2xyzzy9 it is"}]}
    with path.open("a") as file:
        file.write(json.dumps(last) + "\n")
    viewed.refresh()
    assert "Hunter2xyzzy9 it is" in str(list(viewed.read(0, 9)))
    assert "Hunter2xyzzy9" not in str(list(viewed.read(0, 9, is_redacted=True)))


def test_what_nobody_looks_at_is_let_go(machine: Machine) -> None:
    now = [0.0]
    with turnlog.open(machine.home) as home, Catalog(home, agents=False, fresh_for=0) as catalog:
        desk = Desk(home, catalog, clock=lambda: now[0])
        for number in range(12):
            home.create(id=f"talk-{number:02}").user("hello")
        opened: list[ViewedSession] = []
        for number in range(12):
            now[0] += 1
            opened.append(desk.open(catalog.find(f"talk-{number:02}")))
        assert opened[0].session is not None
        assert opened[0].session.is_closed
        assert opened[-1].session is not None
        assert not opened[-1].session.is_closed
        now[0] += 1000
        desk.tidy()
        assert opened[-1].session.is_closed


def test_sessions_in_use_stay_open_however_many_they_are(machine: Machine) -> None:
    now = [0.0]
    with turnlog.open(machine.home) as home, Catalog(home, agents=False, fresh_for=0) as catalog:
        desk = Desk(home, catalog, clock=lambda: now[0])
        for number in range(12):
            home.create(id=f"talk-{number:02}").user("hello")
        cards = [catalog.find(f"talk-{number:02}") for number in range(12)]
        first = [desk.open(card) for card in cards]
        now[0] += 0.5
        assert [desk.open(card) for card in cards] == first
        desk.close()


def test_one_that_is_purged_says_so(desk: Desk) -> None:
    session = desk.home.create(id="talk")
    session.user("hello")
    card = desk.catalog.find("talk")
    viewed = desk.open(card)
    session.user("more")
    session.close()
    desk.home.delete("talk")
    desk.home.purge("talk")
    with pytest.raises(NotFound):
        viewed.refresh()
        viewed.refresh()
    assert viewed.problem


def test_what_was_erased_is_gone_from_what_lies_open(desk: Desk) -> None:
    session = desk.home.create(id="talk")
    asked = session.user("a zebra in the attic")
    session.assistant("well")
    viewed = desk.open(desk.catalog.find("talk"))
    assert "zebra" in viewed.pieces.landmarks()[0].item.label
    session.erase(asked.seq, reason="asked for")
    assert isinstance(viewed.source, OwnLog)
    viewed.source._inode_asked_at = 0.0
    assert viewed.refresh() == 0
    assert "zebra" not in viewed.pieces.landmarks()[0].item.label
    assert "zebra" not in str(list(viewed.read(0, 9)))


def test_one_that_is_replaced_or_cannot_be_opened_leaves_nothing(
    desk: Desk, machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    path = machine.claude("aaaa")
    card = desk.catalog.find("claude-code:aaaa")
    first = desk.open(card)
    closed: list[ViewedSession] = []
    close = ViewedSession.close
    monkeypatch.setattr(ViewedSession, "close", lambda one: (closed.append(one), close(one))[1])
    first.problem = "it is gone"
    assert desk.open(card) is not first
    assert closed == [first]
    path.unlink()
    desk.open(card).problem = "it is gone"
    with pytest.raises(Unavailable):
        desk.open(card)
    assert not desk._opening


@pytest.mark.parametrize("folder", RECORDED, ids=lambda path: path.parent.name)
def test_what_is_read_again_is_not_counted_twice(folder: Path) -> None:
    """A record without a key is called by its content and its number among those."""
    for source in (source for _, form in every() for source in form.find(str(folder))):
        log = ForeignLog(source)
        counts, steps = dict(log._counts), log._steps
        log._cut(steps, log.head)
        assert log._counts.keys() >= counts.keys()
        assert {content: log._counts[content] for content in counts} == counts
        log._cut(0, 0)
        assert not log._counts
