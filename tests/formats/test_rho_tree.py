"""Sessions of rho made by chance, against the rules of its loader: read whole, written back, gone on with."""

from __future__ import annotations

import json
import random
from collections import deque
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.checkers import rho as first_rho
from tests.formats.rho_maker import Maker, line
from tests.formats.rho_rules import ZERO, Loaded, complete
from tests.formats.test_rho import bring, load, name_of, session_of, written
from turnlog import Text, Thinking, ToolCall
from turnlog.formats.seeds.rho.message import RhoTally, to_messages
from turnlog.formats.seeds.rho.path import no_result, open_calls
from turnlog.log.entry import Compaction, Edit, Message

SEEDS = range(24)
Json = dict[str, Any]


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def plain(messages: list[Json]) -> list[str]:
    """What was said, however a response is wrapped; results of one turn in any order."""
    found: list[str] = []
    results: deque[str] = deque()
    for message in messages:
        ((kind, inner),) = message.items()
        if kind == "ToolResult":
            results.append(json.dumps(inner, sort_keys=True))
            continue
        found += sorted(results)
        results.clear()
        found.append(json.dumps(inner["content"] if isinstance(inner, dict) else inner, sort_keys=True))
    return found + sorted(results)


def must_agree(session: Any, loaded: Loaded) -> None:
    """Whether rho's model sees what a model sees here."""
    ear = RhoTally(session._home.get_blob)
    seen = [said for message in session.context() for said in to_messages(message, ear)]
    waiting = open_calls(loaded.model)
    assert waiting is not None  # nothing that was said is hidden
    assert open_calls(loaded.display) is not None
    model = [said for said in loaded.model if "System" not in said] + [no_result(call) for call in waiting]
    assert plain(seen) == plain(model)
    prompt = [said["System"] for said in loaded.model if "System" in said]
    if prompt:
        assert session.context().system == "\n\n".join(prompt)


def step(session: Any, chance: random.Random, index: int) -> None:
    """Something that may happen to a session here."""
    what = chance.choice(["turn", "turn", "tools", "rewind", "compact", "edit"])
    nodes = [entry for entry in session.entries() if entry.parent is not None]
    if what == "turn" or not nodes:
        session.user(f"u{index}", **({"display": "/x"} if chance.random() < 0.2 else {}))
        session.assistant([Thinking(text="t"), Text(f"a{index}")] if chance.random() < 0.3 else f"a{index}", model="m")
    elif what == "tools":
        session.user(f"u{index}")
        calls = [ToolCall(id=f"{name}{index}", name="x", input={"b": 1, "a": 2}) for name in "pqr"]
        session.assistant([*calls])
        for call in chance.sample(calls, chance.randrange(4)):  # any order, and perhaps not all
            session.tool_result(call, f"r{call.id}", is_error=chance.random() < 0.3)
        if chance.random() < 0.7:
            session.assistant(f"z{index}")
    elif what == "rewind":
        session.rewind(to=chance.choice([0, *nodes]) if chance.random() < 0.3 else chance.choice(nodes))
    elif what == "compact" and len(session.context()):
        session.compact(f"s{index}", keep=chance.choice([0, 2]))
    elif what == "edit":
        messages = [m for m in session.messages() if m.role == "user"]
        if messages:
            session.edit(chance.choice(messages), [Text(f"e{index}")])


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_rho_writes_comes_back_and_goes_on(home, tmp_path, seed, version):
    maker = Maker(seed, version)
    data = maker.run(12)
    path = tmp_path / f"{maker.name}.jsonl"
    path.write_bytes(data)
    done = bring(home, path)
    assert done.problems == []
    session = home.resume(done.id)
    assert not any("line" in (e.origin or {}) for e in session.entries() if e.type != "session")
    assert written(session).files[0].data == data
    must_agree(session, Loaded(data, maker.name))
    chance = random.Random(seed)
    for index in range(4):
        step(session, chance, index)
        out = written(session).files[0].data
        assert out.startswith(data)
        if session.head:
            must_agree(session, Loaded(out, maker.name))
    before = [entry.seq for entry in session.entries() if entry.parent is not None]
    again = session_of(home, path)
    assert [entry.seq for entry in again.entries() if entry.parent is not None] == before


@pytest.mark.parametrize(("seed", "version"), [*((seed, 4) for seed in SEEDS), *((seed, None) for seed in SEEDS[:8])])
def test_whatever_happens_here_rho_loads_and_nothing_is_hidden(home, tmp_path, seed, version):
    chance = random.Random(seed)
    session = home.create(workspace="/w")
    if chance.random() < 0.5:
        session.system("You are nobody.")
    for index in range(10):
        step(session, chance, index)
        if session.head:
            must_agree(session, load(session, version))
    if not session.head:
        return
    files = written(session, version)
    if version is None:
        assert first_rho.faults(files.files[0].path, files.files[0].data) == []
    path = tmp_path / f"{name_of(files)}.jsonl"
    path.write_bytes(files.files[0].data)
    with turnlog.open("memory:") as other:
        again = session_of(other, path)
        must_agree(again, load(session, version))
        assert written(again).files[0].data == path.read_bytes()


# ── shapes that chance may miss ───────────────────────────────────────────────────────────────────

ID = "33333333-3333-4333-8333-333333333333"
WHO = {"provider": "p", "api": "a", "model": "m"}


def user(text: str) -> Json:
    return {"User": [{"Text": text}]}


def snapshot(revision: int, history: list[Json], **more: Any) -> Json:
    start = {"schema_version": 2, "session_id": ID, "revision": revision, "history": history, "provider": WHO}
    return {**start, "compaction": ZERO, **more}


def node(name: str, parent: str | None, inner: Json, fresh: list[Json], kind: str = "commit") -> Json:
    record: Json = {"type": "node", "id": name, **({"parent_id": parent} if parent else {}), "timestamp": "300"}
    shown = [{"timestamp": "300", "message": said} for said in fresh if "System" not in said]
    kept = "snapshot" if "history" in inner else "snapshot_delta"
    transition = {"type": kept, "snapshot" if "history" in inner else "delta": inner}
    return {**record, "kind": kind, "transition": transition, "display_messages": shown}


def file(tmp_path: Path, version: int, *records: Json | bytes) -> Path:
    head = {"type": "session", "version": version, "id": ID, "timestamp": "300", "cwd": "/historical/workspace"}
    path = tmp_path / f"300_{ID}.jsonl"
    path.write_bytes(b"".join(r if isinstance(r, bytes) else line(r) for r in [head, *records]))
    return path


def test_an_older_snapshot_without_its_later_fields_comes_back(home, tmp_path):
    """Version 2, as it was first written: counts without tokens, metadata, and no key for a cache."""
    inner = snapshot(4, [user("snapshot prompt"), {"Assistant": [{"Text": "answer"}]}], schema_version=1)
    inner["compaction"] = {"completed_compactions": 1, "removed_messages": 3, "last_revision": 3}
    inner["metadata"] = {"source": "fixture"}
    shown = [{"timestamp": "201", "message": user("/goal snapshot prompt")}]
    record = {"type": "snapshot", "timestamp": "204", "snapshot": inner, "display_messages": shown}
    path = file(tmp_path, 2, record)
    session = session_of(home, path)
    assert written(session).files[0].data == path.read_bytes()
    session.user("още")
    assert [next(iter(m)) for m in load(session).model] == ["User", "Assistant", "User"]


def test_a_new_prompt_is_an_edit_and_not_a_second_one(home, tmp_path):
    first = [{"System": "old"}, user("a")]
    second = [{"System": "new"}, user("a"), user("b")]
    path = file(
        tmp_path, 4, node("n1", None, snapshot(1, first), first), node("n2", "n1", snapshot(2, second), [user("b")])
    )
    session = session_of(home, path)
    assert session.context().system == "new"
    assert [entry.type for entry in session.path()] == ["message", "message", "edit", "message"]
    assert isinstance(session.path()[2], Edit)
    assert written(session).files[0].data == path.read_bytes()


def test_what_a_compaction_keeps_is_kept_and_not_said_again(home, tmp_path):
    first = [{"System": "s"}, user("a"), user("b")]
    second = [{"System": "s"}, user("summary"), user("b")]
    inner = snapshot(2, second, compaction={**ZERO, "completed_compactions": 1})
    path = file(tmp_path, 4, node("n1", None, snapshot(1, first), first), node("n2", "n1", inner, [], "compaction"))
    session = session_of(home, path)
    (compaction,) = [entry for entry in session.path() if isinstance(entry, Compaction)]
    assert [b.text for m in compaction.replacement for b in m.blocks] == ["summary"]
    assert session.find(compaction.id).keep == session.path()[2].seq
    assert [m.blocks[0].text for m in session.context()] == ["summary", "b"]
    assert written(session).files[0].data == path.read_bytes()


def test_ids_of_old_lines_move_with_the_lines(home, tmp_path):
    """A file with damage before its upgrade: without it every line stands elsewhere, and rho names lines by place."""
    records = [line({"type": "message", "timestamp": "300", "message": user(text)}) for text in ("a", "b")]
    path = file(tmp_path, 1, b"garbage\n\n", *records)
    data = path.read_bytes()
    ids = [f"legacy:{data.index(record):016x}" for record in records]
    upgrade = {"type": "upgrade", "timestamp": "301", "active_leaf_id": ids[1]}
    back = {"type": "set_leaf", "timestamp": "302", "target_id": ids[0]}
    more = node("n1", ids[0], snapshot(2, [user("a"), user("c")]), [user("c")])
    path.write_bytes(data + line(upgrade) + line(back) + line(more))
    done = bring(home, path)
    assert [problem.what for problem in done.problems] == ["a line that is no record"]
    session = home.resume(done.id)
    loaded = load(session)
    assert loaded.model == [user("a"), user("c")]
    assert len(loaded.nodes) == 3


def test_a_node_whose_parent_is_gone_is_still_read(home, tmp_path):
    delta = {"base_revision": 2, "session_id": ID, "revision": 3, "appended_history": [user("c")]}
    delta |= {"provider": WHO, "compaction": ZERO, "metadata": {}}
    path = file(
        tmp_path, 4, node("n1", None, snapshot(1, [user("a")]), [user("a")]), b'{"type":"node","id":"n2"\n',
        node("n3", "n2", delta, [user("c")]),
    )  # fmt: skip
    done = bring(home, path)
    assert len(done.problems) == 2
    session = home.resume(done.id)
    assert load(session).model == [user("a"), user("c")]


def test_a_node_id_twice_costs_nothing(home, tmp_path):
    first = node("n1", None, snapshot(1, [user("a")]), [user("a")])
    second = node("n1", "n1", snapshot(2, [user("a"), user("b")]), [user("b")])
    path = file(tmp_path, 4, first, second)
    done = bring(home, path)
    assert "which is taken" in done.problems[0].what
    assert load(home.resume(done.id)).model == [user("a"), user("b")]


@pytest.mark.parametrize("name", ["legacy:0000000000000001", "rho-" + ID, "a/b", "x" * 128, "§ \u0007"])
def test_odd_node_ids_come_back(home, tmp_path, name):
    path = file(tmp_path, 4, node(name, None, snapshot(1, [user("a")]), [user("a")]))
    session = session_of(home, path)
    assert len(session.messages()) == 1
    assert written(session).files[0].data == path.read_bytes()


def test_a_line_written_otherwise_comes_back_as_it_was(home, tmp_path):
    """Spaces, other orders, numbers in another dress, fields nobody knows: kept to the letter, and understood."""
    odd = (
        b'{"message": {"User":[{"Text":"a"}]}, "type":"message","timestamp":"300","later":1e2}\r\n'
        b'{"type":"message","timestamp":"300","message":{"Assistant":[{"ToolCall":{"name":"x","id":"c","arguments":{"b":1.50,"a":10000000000000000000000}}}]}}\n'
        b'{"type":"message","timestamp":"300","message":{"ToolResult":{"id":"c","ok":true,"content":"1","more":[1]}}}\n'
        b'{"type":"message","timestamp":"0300","message":{"Future":{"x":[1,2]}}}\n'
        b'{"type":"message","timestamp":"300","message":{"User":[{"Audio":{"a":1}},{"Image":{"data":"???","mime_type":"x"}}]}}\n'
    )
    path = file(tmp_path, 1, odd)
    done = bring(home, path)
    assert done.problems == []
    session = home.resume(done.id)
    assert [message.role for message in session.messages()] == ["user", "assistant", "tool", "user", "user"]
    assert session.messages()[1].blocks[0].input["b"] == 1.5
    assert written(session).files[0].data == path.read_bytes()


def test_going_on_after_results_in_another_order_gives_a_whole_history(home, tmp_path):
    """In a tree the records stay as they are; the next node holds the history as rho wants it."""
    calls = [{"ToolCall": {"id": c, "name": "x", "arguments": {}}} for c in "ab"]
    results = [{"ToolResult": {"id": c, "ok": True, "content": c}} for c in "ba"]
    history = [user("u"), {"Assistant": calls}, *results]
    path = file(tmp_path, 4, node("n1", None, snapshot(1, history), history))
    session = session_of(home, path)
    assert written(session).files[0].data == path.read_bytes()
    session.user("next")
    model = load(session).model
    assert complete(model) == model
    assert len(model) == 5
    assert isinstance(session.messages()[0], Message)
