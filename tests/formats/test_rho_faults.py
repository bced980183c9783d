"""What breaks rho is a test here: each fault by name, and any damage at all."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.rho_rules import Loaded, Refused, complete, seed
from tests.formats.test_rho import (
    CUT,
    EXPECTED,
    ID,
    IDENTICAL,
    JOURNAL,
    PLAIN,
    SEEDS,
    TREE,
    UNIT,
    bring,
    data_of,
    load,
    one_turn,
    said,
    session_of,
    turnlog_text,
    written,
)
from turnlog import Message
from turnlog.errors import Ambiguous, NotFound
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Problem, Source
from turnlog.formats.seeds import rho
from turnlog.formats.seeds.rho.layout import workspace_key
from turnlog.log.entry import Compaction, Note
from turnlog.session.interior import interior

BROKEN = SEEDS / "broken"
HEAD = PLAIN.read_bytes().splitlines(keepends=True)[0]


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def message(text: str, at: int = 1782031201) -> bytes:
    said = {"User": [{"Text": text}]}
    return (
        json.dumps({"type": "message", "timestamp": str(at), "message": said}, separators=(",", ":")).encode() + b"\n"
    )


def file(tmp_path: Path, data: bytes, name: str = PLAIN.name) -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


# ── the faults of the first version ───────────────────────────────────────────────────────────────


def test_a_torn_tail_costs_only_itself(home):
    """Fault: a truncated final line is dropped without a word."""
    assert EXPECTED["broken/torn_tail.jsonl"] == {"load": "ok", "messages": 1}
    done = bring(home, BROKEN / "torn_tail.jsonl")
    assert done.problems == [Problem("the last record is cut short", offset=310, length=25)]
    assert len(home.resume(done.id).messages()) == 1


def test_an_empty_message_at_the_end_is_written_back(home, tmp_path):
    data = PLAIN.read_bytes() + message("").replace(b'[{"Text":""}]', b"[]")
    session = session_of(home, file(tmp_path, data))
    assert data_of(session) == data


def test_an_append_glued_to_a_torn_tail_is_read(home):
    """Fault: resume after a crash corrupts the file; one more message and it no longer loads at all."""
    path = BROKEN / "torn_tail_then_append.jsonl"
    assert EXPECTED["broken/torn_tail_then_append.jsonl"]["load"] == "error"
    with pytest.raises(Refused):
        seed(path.read_bytes())
    done = bring(home, path)
    assert done.problems == [Problem("the remains of a record, cut short", offset=310, length=25)]
    session = home.resume(done.id)
    assert said(session)[1:] == ["after", "lost"]
    one_turn(session)
    assert len(load(session).model) == len(seed(data_of(session))) == 7


def test_an_incomplete_turn_hides_nothing(home):
    """Fault: cut turns hide everything later, again at every load."""
    path = BROKEN / "incomplete_turn_then_more.jsonl"
    assert len(seed(path.read_bytes())) == EXPECTED["broken/incomplete_turn_then_more.jsonl"]["messages"] == 1
    session = session_of(home, path)
    assert [m.role for m in session.messages()] == ["user", "assistant", "user", "assistant"]
    files = written(session)
    assert [(loss.what, loss.count) for loss in files.lost] == [("missing tool result", 1)]
    assert set(path.read_bytes().splitlines()) < set(files.files[0].data.splitlines())
    assert len(seed(files.files[0].data)) == 5


def test_results_in_another_order_hide_nothing(home):
    """Fault: results in another order than the calls (parallel tools) trigger the same loss."""
    path = BROKEN / "results_out_of_order.jsonl"
    assert len(seed(path.read_bytes())) == EXPECTED["broken/results_out_of_order.jsonl"]["messages"] == 1
    session = session_of(home, path)
    assert len(session.messages()) == 5
    data = data_of(session)
    assert sorted(data.splitlines()) == sorted(path.read_bytes().splitlines())
    assert data == PLAIN.read_bytes()


def test_an_unanswered_call_at_the_end_stays_and_gets_a_result_when_more_comes(home):
    """Fault: an interrupted tool turn is cut, and everything appended behind it is lost at every later load."""
    assert EXPECTED[f"v1_1af5a5fb/.../{CUT.name}"]["note"] == "unanswered tool call cut"
    session = session_of(home, CUT)
    assert [call.id for call in session.pending()] == ["c1"]
    assert data_of(session) == CUT.read_bytes()
    session.user("пак")
    assert len(seed(data_of(session))) == 4


def test_a_line_that_two_processes_wrote_at_once_costs_only_itself(home, tmp_path):
    """Fault: one write per token and no lock, so that two processes interleave inside a line."""
    first, second = message("one")[:-1], message("two")[:-1]
    mixed = b"".join(bytes(pair) for pair in zip(first, second, strict=True)) + b"\n\n"
    done = bring(home, file(tmp_path, HEAD + message("zero") + mixed + message("three")))
    assert [problem.what for problem in done.problems] == ["a line that is no record"]
    assert said(home.resume(done.id)) == ["zero", "three"]


@pytest.mark.parametrize("at", [1, 3, 6])
def test_a_newer_record_type_anywhere_is_kept(home, tmp_path, at):
    """Fault: a newer record in the middle makes a session unreadable; at the end it is dropped, then overwritten."""
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    lines.insert(at, '{"type":"mood","timestamp":"1782031202","лице":["🙂",1.5]}\n'.encode())
    path = file(tmp_path, b"".join(lines))
    done = bring(home, path)
    assert [problem.is_news for problem in done.problems] == [True]
    session = home.resume(done.id)
    assert len(session.messages()) == 5
    (note,) = [entry for entry in session.entries() if isinstance(entry, Note)]
    assert note.data["лице"] == ["🙂", 1.5]
    assert data_of(session) == path.read_bytes()
    one_turn(session)
    assert data_of(session).startswith(path.read_bytes())


@pytest.mark.parametrize("version", [0, 5, 99, "x", None, 1.5])
def test_an_unknown_version_is_read_and_reported(home, tmp_path, version):
    """Fault: the version is never checked."""
    head = {**json.loads(HEAD), "version": version}
    path = file(tmp_path, json.dumps(head, ensure_ascii=False).encode() + b"\n" + message("да"))
    done = bring(home, path)
    assert "is not known" in done.problems[0].what
    session = home.resume(done.id)
    assert said(session) == ["да"]
    assert data_of(session).splitlines()[0] == path.read_bytes().splitlines()[0]


def test_a_deep_workspace_gets_a_folder_that_a_file_system_takes(home, tmp_path):
    """Fault: the folder's name is the whole path, longer than 255 bytes for a deep one."""
    deep = "/" + "/".join(["много-дълбоко"] * 40)
    assert len(workspace_key(deep)) == 255
    assert workspace_key(deep) != workspace_key(deep + "x")
    session = home.create(workspace=deep)
    session.user("тук")
    files = written(session)
    assert "name of a folder, which is too long" in [loss.what for loss in files.lost]
    path = Path(rho.place(files, str(tmp_path)))
    assert path.exists()
    assert [source.path for source in rho.find(str(tmp_path))] == [str(path)]
    assert json.loads(path.read_bytes().splitlines()[0])["cwd"] == deep


def test_looking_makes_no_folders(tmp_path):
    """Fault: failed look-ups create directories."""
    assert list(rho.find(str(tmp_path / "nothing"))) == []
    assert list(rho.find(str(tmp_path))) == []
    assert list(tmp_path.iterdir()) == []


def test_separators_do_not_make_two_workspaces_one():
    """Grouping by workspace: paths that look alike with dashes have folders of their own."""
    keys = {workspace_key(path) for path in ("/a/b", "/a-b", "/a b", "-a-b")}
    assert len(keys) == 4


def test_a_prefix_is_looked_up_among_sessions_here(home):
    """rho: several sessions match a prefix is an error, and so is none; here, too."""
    assert EXPECTED["prefix 6f1d2c3b"] == "error: multiple sessions match"
    assert EXPECTED["prefix nope"] == "error: no session found"
    ids = {bring(home, path).id for path in (PLAIN, CUT)}
    with pytest.raises(Ambiguous):
        home.find("rho-6f1d2c3b")
    with pytest.raises(NotFound):
        home.find("rho-nope")
    assert home.find("rho-6f1d2c3b-a") in ids


def test_an_upgraded_session_loads(home):
    """Fault, later: upgrading a session to a tree wrote a transcript that did not load."""
    session = session_of(home, BROKEN / "incomplete_turn_then_more.jsonl")
    session.rewind(turns=1)
    session.user("друго")
    loaded = load(session, 4)
    assert loaded.is_upgraded
    assert complete(loaded.model) == loaded.model
    assert complete(loaded.display) == loaded.display


def test_writing_many_turns_takes_time_in_proportion(home):
    """Fault, later: one full transcript for each node. Here a node of a tree holds what is new."""
    session = session_of(home, TREE)
    for index in range(40):
        session.user(f"ход {index} " + "x" * 200)
        session.assistant("да")
    more = data_of(session)[len(TREE.read_bytes()) :].splitlines()
    assert len(more) == 40
    assert max(map(len, more)) < min(map(len, more)) + 20


# ── names and ids ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("id", ["../../esc", "/", "\\", "", "x" * 5000, "a\0b", ".", "..", "a_b", "ж"])
def test_no_id_leads_out_of_the_folder(home, tmp_path, id):
    head = {**json.loads(HEAD), "id": id}
    path = file(tmp_path, json.dumps(head).encode() + b"\n" + message("да"), "any.jsonl")
    session = session_of(home, path)
    out = tmp_path / "out"
    placed = Path(rho.place(written(session), str(out)))
    assert out in placed.parents
    assert [p for p in tmp_path.rglob("*") if p.is_file()] in ([path, placed], [placed, path])
    assert len(Loaded(placed.read_bytes(), placed.stem).model) == 1


def test_a_header_that_names_another_session_is_reported(home, tmp_path):
    path = file(tmp_path, PLAIN.read_bytes(), "1782031200_6f1d2c3b-ffff-4e87-9b1a-0c2d3e4f5a6b.jsonl")
    done = bring(home, path)
    assert "its header says that it is" in done.problems[0].what
    assert data_of(home.resume(done.id)) == PLAIN.read_bytes()


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\0" * 100, b"null\n", b"[]\n", b'{"type":1}\n'])
def test_a_file_with_nothing_in_it_is_a_session_without_messages(home, tmp_path, data):
    path = file(tmp_path, data)
    reading = rho.read(Source("rho", str(path)))
    assert list(reading.steps) == []
    assert "it has no header" in [problem.what for problem in reading.problems]


def test_a_session_without_its_header_is_read_and_gets_one(home, tmp_path):
    path = file(tmp_path, b"".join(PLAIN.read_bytes().splitlines(keepends=True)[1:]))
    assert len(list(rho.find(str(path)))) == 1
    session = session_of(home, path)
    assert len(session.messages()) == 5
    assert load(session).id == ID


def test_a_header_in_the_wrong_place_is_found(home, tmp_path):
    head, *rest = PLAIN.read_bytes().splitlines(keepends=True)
    done = bring(home, file(tmp_path, rest[0] + head + b"".join(rest[1:])))
    assert [problem.what for problem in done.problems] == ["the header is not at the beginning"]
    assert data_of(home.resume(done.id)) == PLAIN.read_bytes()


@pytest.mark.parametrize("name", ["timestamp", "cwd", "id"])
def test_a_header_with_a_value_of_another_type_is_told(home, tmp_path, name):
    head = json.dumps({**json.loads(HEAD), name: ["/there"]}, separators=(",", ":")).encode()
    done = bring(home, file(tmp_path, head + b"\n" + message("да")))
    assert [problem.what for problem in done.problems] == [f"in its header, {name} is ['/there']"]


@pytest.mark.parametrize("name", ["version", "timestamp", "cwd", "id"])
def test_a_header_with_a_hole_is_mended(home, tmp_path, name):
    head = json.loads(HEAD)
    del head[name]
    path = file(tmp_path, json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode() + b"\n" + message("да"))
    session = session_of(home, path)
    assert len(load(session).model) == 1


def test_a_tree_without_its_header_is_a_tree_again(home, tmp_path):
    path = file(tmp_path, b"".join(TREE.read_bytes().splitlines(keepends=True)[1:]), f"1786000000_{ID}.jsonl")
    session = session_of(home, path)
    assert len(load(session).nodes) == 4
    assert data_of(session).splitlines()[1:] == TREE.read_bytes().splitlines()[1:]


def test_a_file_that_cannot_be_opened_says_so(home, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        rho.read(Source("rho", str(tmp_path / "none.jsonl")))


# ── any damage at all ─────────────────────────────────────────────────────────────────────────────


def damaged(data: bytes, chance: random.Random) -> bytes:
    what = chance.choice(["flip", "cut", "splice", "nul", "swap", "drop", "deep", "value"])
    at = chance.randrange(len(data))
    if what == "flip":
        spots = bytearray(data)
        for _ in range(chance.randrange(1, 20)):
            spots[chance.randrange(len(spots))] = chance.randrange(256)
        return bytes(spots)
    if what == "cut":
        return data[:at]
    if what == "splice":
        other = chance.randrange(len(data))
        return data[:at] + data[other:]
    if what == "nul":
        return data[:at] + b"\0" * chance.randrange(1, 5000) + data[at:]
    lines = data.splitlines(keepends=True)
    if what == "swap":
        chance.shuffle(lines)
    elif what == "drop":
        lines = [line for line in lines if chance.random() < 0.6] + lines[:1]
    elif what == "deep":
        lines.insert(chance.randrange(len(lines)), b'{"type":"message","message":' + b"[" * 5000 + b"\n")
    else:
        strange = chance.choice(
            [b"null", b"1e999", b'"\\ud800"', b"{}", b"[]", b"-1", b"18446744073709551616", b'"x"', b"true", b"[[]]"]
        )
        line = chance.randrange(len(lines))
        parts = lines[line].split(b":")
        parts[chance.randrange(len(parts))] = strange
        lines[line] = b":".join(parts)
    return b"".join(lines)


@pytest.mark.parametrize("round", range(60))
def test_damage_gives_problems_and_nothing_else(home, tmp_path, round):
    chance = random.Random(round)
    path = chance.choice(IDENTICAL)
    data = path.read_bytes()
    for _ in range(chance.randrange(1, 4)):
        data = damaged(data or b"{}\n", chance)
    folder = tmp_path / UNIT.name
    (folder / "workspace-checkpoints").mkdir(parents=True)
    copy = file(folder, data, "session.jsonl") if path == TREE else file(tmp_path, data, path.name)
    (folder / "workspace-checkpoints/checkpoints.jsonl").write_bytes(damaged(JOURNAL.read_bytes(), chance))
    source = Source("rho", str(copy))
    done = import_source(interior(home).creator, source, rho.read(source))
    assert all(isinstance(problem, Problem) for problem in done.problems)
    session = home.resume(done.id)
    files = written(session)
    # Everything that was read is there again in what was written.
    other = file(tmp_path, files.files[0].data, "again.jsonl")
    with turnlog.open("memory:") as second:
        source = Source("rho", str(other))
        back = second.resume(import_source(interior(second).creator, source, rho.read(source)).id)
        assert not words(session) - words(back)


def words(session: Any) -> Counter[str]:
    """What was said, also where it now stands in a history that was put in order."""
    entries = list(session.entries())
    messages = [entry for entry in entries if isinstance(entry, Message)]
    messages += [m for entry in entries if isinstance(entry, Compaction) for m in entry.replacement]
    return Counter(turnlog_text(message) for message in messages if turnlog_text(message))


def test_a_hostile_line_costs_bounded_time_and_memory(home, tmp_path):
    starts = b'{"type":"message","timestamp":"1","message":' * 20_000
    path = file(tmp_path, HEAD + starts + b"\n" + b"[" * 3_000_000 + b"\n" + message("да"))
    tracemalloc.start()
    done = bring(home, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(done.problems) == 2
    assert said(home.resume(done.id)) == ["да"]
    assert peak < 60 << 20


def test_many_bad_lines_are_not_many_problems(home, tmp_path):
    path = file(tmp_path, HEAD + b"bad\n" * 5000 + message("да"))
    done = bring(home, path)
    assert len(done.problems) <= 60
    assert said(home.resume(done.id)) == ["да"]


def test_a_pipe_beside_a_session_is_not_waited_for(home, tmp_path):
    unit = tmp_path / UNIT.name
    unit.mkdir()
    file(unit, TREE.read_bytes(), "session.jsonl")
    os.mkfifo(unit / "web")
    assert bring(home, unit).problems == []


def test_a_checkpoint_that_cannot_be_read_costs_only_itself(home, tmp_path):
    unit = tmp_path / UNIT.name
    (unit / "workspace-checkpoints").mkdir(parents=True)
    file(unit, TREE.read_bytes(), "session.jsonl")
    journal = JOURNAL.read_bytes()
    (unit / "workspace-checkpoints/checkpoints.jsonl").write_bytes(journal[:100] + b"\n" + journal)
    done = bring(home, unit)
    where = "workspace-checkpoints/checkpoints.jsonl"
    assert done.problems == [Problem("a checkpoint that cannot be read", where, 0, 100)]
    assert written(home.resume(done.id)).files[1].data == journal


def test_a_big_checkpoint_is_kept_whole(home, tmp_path):
    unit = tmp_path / UNIT.name
    (unit / "workspace-checkpoints").mkdir(parents=True)
    file(unit, TREE.read_bytes(), "session.jsonl")
    record = json.loads(JOURNAL.read_text())
    record["checkpoint"]["files"][0]["original"]["bytes"] = "AAAA" * 700_000  # the 2 MiB that rho allows for a file
    data = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    (unit / "workspace-checkpoints/checkpoints.jsonl").write_bytes(data)
    session = session_of(home, unit)
    assert written(session).files[1].data == data
    assert isinstance(session.messages()[0], Message)
