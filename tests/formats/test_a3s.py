"""a3s-code: flat files and the newer tree, written back to the byte; keys of providers kept nowhere."""

from __future__ import annotations

import base64
import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog import Image, Message, Text, Thinking, ToolCall, ToolResult, UnknownBlock, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Places, Problem, Source
from turnlog.formats.seeds import a3s
from turnlog.formats.seeds.a3s.layout import digest_of, flat_name, tree_name, wal_entries
from turnlog.interop.rust import F32, by_key, pretty
from turnlog.session.interior import interior

SEEDS = Path(__file__).parent / "seeds" / "a3s"
FLAT = SEEDS / "v1_flat/sessions"
WHOLE = FLAT / "s-1.json"
CHILD = FLAT / "child-1.json"
ODD = FLAT / "foo_bar_baz_qux.json"
ROOT = SEEDS / "v2_tree/sessions"
TREE = ROOT / "v1/sessions/id_0LXQutC40L8vcy0x.json"
LOOP = ROOT / "v1/loop_checkpoints/id_cnVuLTI.json"
TODOS = SEEDS / "legacy/todos_alias.json"
PARTIAL = SEEDS / "broken/partial.json"
EXPECTED = json.loads((SEEDS.parent / "expected.json").read_text())["a3s"]
IDENTICAL = [WHOLE, CHILD, ODD, TREE]
KEYS = [
    "id", "config", "state", "messages", "context_usage", "total_usage", "total_cost", "model_name", "cost_records",
    "tool_names", "thinking_enabled", "thinking_budget", "created_at", "updated_at", "llm_config", "tasks", "parent_id",
]  # fmt: skip


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Any, path: Path) -> Any:
    source = Source("a3s", str(path))
    return import_source(interior(home).creator, source, a3s.read(source))


def session_of(home: Any, path: Path) -> Any:
    return home.resume(bring(home, path).id)


def data_of(session: Any) -> bytes:
    return render(session, "a3s").files[0].data


def json_of(session: Any) -> dict[str, Any]:
    return json.loads(data_of(session))


def document(path: Path = WHOLE, **changes: Any) -> dict[str, Any]:
    return {**json.loads(path.read_bytes()), **changes}


def save(path: Path, value: dict[str, Any]) -> Path:
    """As a3s would, with its two numbers of 32 bits."""
    session = value.get("session", value)
    session["config"]["auto_compact_threshold"] = F32(session["config"]["auto_compact_threshold"])
    session["context_usage"]["percent"] = F32(session["context_usage"]["percent"])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pretty(value))
    return path


def loads_in_a3s(data: bytes) -> dict[str, Any]:
    """Refuse whatever the loader would refuse."""
    session = json.loads(data)
    session = session.get("session", session)
    assert [key for key in KEYS if key in session] == [key for key in session if key in KEYS]
    optional = ("model_name", "llm_config", "parent_id", "total_cost", "cost_records", "tasks")
    assert set(KEYS) - set(optional) <= set(session)
    config = session["config"]
    assert all(isinstance(config[name], str) for name in ("name", "workspace"))
    assert isinstance(config["system_prompt"], str | None)
    assert config["storage_type"] in ("memory", "file", "custom")
    assert config["planning_mode"] in ("Auto", "Disabled", "Enabled")
    assert session["state"] in ("Unknown", "Active", "Paused", "Completed", "Error")
    assert isinstance(session["total_cost"], float)
    assert "api_key" not in session.get("llm_config", {})
    usage = session["total_usage"]
    assert all(isinstance(usage[name], int) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    assert set(session["context_usage"]) == {"used_tokens", "max_tokens", "percent", "turns"}
    for record in session["cost_records"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", record["timestamp"])
        assert isinstance(record["cost_usd"], float | None)
    for task in session["tasks"]:
        assert {"id", "content", "status", "priority"} <= set(task)
    for message in session["messages"]:
        assert isinstance(message["role"], str)
        for block in message["content"]:
            match block["type"]:
                case "text":
                    assert isinstance(block["text"], str)
                case "image":
                    assert set(block["source"]) == {"type", "media_type", "data"}
                case "tool_use":
                    assert set(block) == {"type", "id", "name", "input"}
                    assert block["input"] == by_key(block["input"])
                case "tool_result":
                    assert isinstance(block["content"], str | list)
                    assert isinstance(block["is_error"], bool | None)
                case kind:
                    raise AssertionError(kind)
    return session


# ── every fixture ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.name)
def test_what_was_read_is_written_to_the_byte_from_entries_alone(home: Any, path: Path, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(ROOT if path is TREE else FLAT, root)
    session = session_of(home, root / path.relative_to(ROOT if path is TREE else FLAT))
    shutil.rmtree(root)
    written = render(session, "a3s")
    assert written.files[0].data == path.read_bytes()
    assert written.files[0].path.rpartition("/")[2] == path.name
    assert written.lost == []


def test_every_file_that_a3s_writes_as_it_was_is_among_them() -> None:
    names = [SEEDS / name for name, told in EXPECTED.items() if isinstance(told, dict) and told.get("byte_identical")]
    assert set(names) <= set(IDENTICAL)
    assert len(names) == 3


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.name)
def test_after_one_more_turn_the_other_messages_are_identical_and_it_loads(home: Any, path: Path) -> None:
    session = session_of(home, path)
    before = json.loads(path.read_bytes())
    before = before.get("session", before)
    session.user("и още")
    spent = Usage(100, 20, 3, 0, 10, cost_micros=1500)
    session.assistant([ToolCall(id="t9", name="bash", input={"z": 1, "a": 2})], usage=spent, model="m-1")
    session.tool_result("t9", "план.txt")
    data = data_of(session)
    after = loads_in_a3s(data)
    head = path.read_bytes().partition(b'"context_usage"')[0].rstrip().rstrip(b",").rstrip().rstrip(b"]").rstrip()
    assert data.startswith(head)
    assert [message["role"] for message in after["messages"][len(before["messages"]) :]] == [
        "user",
        "assistant",
        "user",
    ]
    apart = path in (WHOLE, TREE)
    prompt = 100 if apart else 123
    assert after["total_usage"]["prompt_tokens"] == before["total_usage"]["prompt_tokens"] + prompt
    assert after["total_usage"]["completion_tokens"] == before["total_usage"]["completion_tokens"] + 10
    assert after["total_usage"]["cache_read_tokens"] == (before["total_usage"]["cache_read_tokens"] or 0) + 20
    assert after["total_usage"]["cache_write_tokens"] == 3
    assert after["total_cost"] == pytest.approx(before["total_cost"] + 0.0015)
    assert after["cost_records"][:-1] == before["cost_records"]
    assert after["cost_records"][-1]["total_tokens"] == prompt + 10
    assert after["context_usage"]["turns"] == before["context_usage"]["turns"] + 3
    assert after["updated_at"] > before["updated_at"]
    unchanged = ("id", "config", "state", "tool_names", "thinking_budget", "created_at", "tasks", "llm_config")
    assert {key: after.get(key) for key in unchanged} == {key: before.get(key) for key in unchanged}


@pytest.mark.parametrize("path", [*IDENTICAL, TODOS, PARTIAL], ids=lambda path: path.name)
def test_importing_twice_adds_nothing(home: Any, path: Path) -> None:
    first, again = bring(home, path), bring(home, path)
    assert first.id == again.id
    assert again.added == 0


def test_content_of_the_whole_session(home: Any) -> None:
    session = session_of(home, WHOLE)
    messages = session.messages()
    assert [message.role for message in messages] == ["user", "assistant", "tool", "tool", "tool", "assistant"]
    assert messages[1].blocks[0] == Thinking(text="мисля")
    assert messages[1].blocks[2].input == {"command": "cat план.txt", "timeout": 1.5}
    assert messages[2].blocks[0].is_error
    picture = messages[3].blocks[0].content[1]
    assert picture.media_type == "image/png"
    assert home.get_blob(picture.blob) == base64.b64decode("iVBORw0KGgo=")
    assert not messages[4].blocks[0].is_error
    assert (session.title, session.workspace) == ("Тест", "/home/anna/проект")
    assert messages[0].at == datetime.fromtimestamp(1772368496, UTC)


def test_what_the_session_knows_is_facts(home: Any) -> None:
    facts = session_of(home, WHOLE).facts
    assert facts["system"] == "You are helpful."
    assert facts["model"] == "claude-3-5-sonnet-20241022"
    assert facts["state"] == "Active"
    assert facts["permission_policy"]["deny"] == [{"rule": "Bash(rm:*)"}]
    assert facts["confirmation_policy"]["yolo_lanes"] == ["Query"]
    assert facts["config"]["queue_config"]["laneHandlers"]["Execute"]["mode"] == "External"
    assert facts["cost_records"][0]["cost_usd"] == 0.0105
    assert facts["tool_names"] == ["bash", "read"]
    assert (facts["thinking_enabled"], facts["thinking_budget"]) == (True, 4096)
    assert facts["llm_config"] == {"provider": "anthropic", "model": "claude-3-5-sonnet-20241022", "base_url": None}
    assert [task["id"] for task in facts["tasks"]] == ["1", "2"]


def test_a_session_that_names_no_model_is_given_no_name(home: Any, tmp_path: Path) -> None:
    data = document()
    del data["model_name"]
    path = tmp_path / WHOLE.name
    path.write_bytes(pretty(data))
    session = session_of(home, path)
    assert session.facts["model"] == data["llm_config"]["model"]
    assert "model_name" not in json.loads(data_of(session))
    session.user("more")
    assert "model_name" not in json.loads(data_of(session))
    session.set("model", "m-2")
    assert json.loads(data_of(session))["model_name"] == "m-2"


def test_a_tool_whose_name_is_no_text_has_no_name_here(home: Any) -> None:
    session = home.create()
    session.set("tools", [{"name": ["bash"]}, {"name": "read"}, {}])
    session.user("hi")
    assert json_of(session)["tool_names"] == ["read"]


def test_totals_are_spending_under_the_model(home: Any) -> None:
    report = session_of(home, WHOLE).usage()
    assert report.own == Usage(1004, 800, 0, 0, 500, cost_micros=10500)
    assert list(report.models) == ["claude-3-5-sonnet-20241022"]


def test_a_child_knows_its_parent(home: Any) -> None:
    home.import_sessions(FLAT, agent="a3s")
    child = home.resume("a3s-child-1")
    assert child.get("parent_id") == "s-1"
    assert [info.id for info in home.resume("a3s-s-1").children()] == ["a3s-child-1"]
    assert data_of(child) == CHILD.read_bytes()


def test_todos_are_tasks(home: Any) -> None:
    session = session_of(home, TODOS)
    assert session.get("tasks") == [{"id": "1", "content": "old name", "status": "completed", "priority": "medium"}]
    whole = loads_in_a3s(data_of(session))
    assert whole["tasks"][0]["content"] == "old name"
    assert "todos" not in whole
    assert whole["total_cost"] == 0.0
    assert whole["config"]["planning_enabled"] is True


def test_a_key_of_a_provider_is_read_past_and_kept_nowhere(tmp_path: Path) -> None:
    secret, login = "sk-very-secret-value", "anna:geheim"
    service = {"provider": "openai", "model": "m", "base_url": f"https://{login}@host/v1", "api_key": secret}
    path = save(tmp_path / "in" / "s-1.json", document(llm_config=service, tenant={"apiKey": secret}))
    with turnlog.open(tmp_path / "home") as home:
        done = bring(home, path)
        session = home.resume(done.id)
        assert "an API key: left out" in [problem.what for problem in done.problems]
        assert session.get("llm_config") == {"provider": "openai", "model": "m", "base_url": "https://host/v1"}
        assert secret.encode() not in data_of(session)
        found = [home.get_blob(name) for entry in session.entries() for name in entry.blobs]
    everything = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*") if path.is_file()) + b"".join(
        found
    )
    assert secret.encode() not in everything
    assert login.encode() not in everything


def test_numbers_of_32_bits_are_written_as_such(home: Any, tmp_path: Path) -> None:
    value = document()
    value["context_usage"] = {"used_tokens": 1, "max_tokens": 200000, "percent": 0.000005, "turns": 6}
    value["config"]["auto_compact_threshold"] = 0.1
    path = save(tmp_path / "s-1.json", value)
    assert b'"percent": 0.000005' in path.read_bytes()
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_an_image_a_thought_and_results_beside_text_come_back(home: Any, tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "r", "is_error": None}
    inner = [{"type": "text", "text": "x", "lang": "bg"}, {"type": "audio", "data": "y"}]
    value = document(messages=[
        {"role": "assistant", "content": [], "reasoning_content": ""},
        {"role": "user", "content": [{"type": "text", "text": "a"}, result, {"type": "text", "text": "b"}, result]},
        {"role": "user", "content": [result, {"type": "text", "text": "c", "trust": "external"}]},
        {"role": "user", "content": [{**result, "content": inner, "is_error": True, "redaction_reviewed": True}]},
        {"role": "developer", "content": [{"type": "text", "text": "d"}], "id": "m-9"},
        {"role": "user", "content": [
            {"type": "hologram", "depth": 1.5},
            {"type": "image", "source": {"type": "base64", "media_type": "a/b", "data": "***"}},
        ]},
    ])  # fmt: skip
    path = save(tmp_path / "s-1.json", value)
    session = session_of(home, path)
    assert data_of(session) == path.read_bytes()
    roles = [message.role for message in session.messages()]
    assert roles == ["assistant", "tool", "user", "tool", "user", "tool", "user", "user"]
    kinds = [block.kind for block in session.messages()[-1].blocks if isinstance(block, UnknownBlock)]
    assert kinds == ["hologram", "a3s.image"]


def test_unknown_fields_survive(home: Any, tmp_path: Path) -> None:
    value = document(tenant_id="t-1", principal={"b": 1, "a": 2})
    value["config"]["later"] = [1]
    path = save(tmp_path / "s-1.json", value)
    assert data_of(session_of(home, path)) == path.read_bytes()


# ── the tree ──────────────────────────────────────────────────────────────────────────────────────


def test_the_tree_comes_back_with_its_checkpoints(home: Any) -> None:
    (done,) = home.import_sessions(SEEDS / "v2_tree", agent="a3s")
    assert done.problems == []
    written = render(home.resume(done.id), "a3s")
    assert {file.path: file.data for file in written.files} == {
        path.relative_to(ROOT).as_posix(): path.read_bytes() for path in (TREE, LOOP)
    }


def test_the_digest_of_the_write_ahead_log_is_that_of_the_session() -> None:
    problems: list[Problem] = []
    entries = list(wal_entries(str(ROOT / "v1/wal/session-store.ndjson"), problems))
    assert problems == []
    assert [entry.phase for entry in entries] == ["intent", "committed"]
    assert {entry.snapshot_digest for entry in entries} == {digest_of(TREE.read_bytes())}


def copied(tmp_path: Path) -> Path:
    shutil.copytree(ROOT, tmp_path / "sessions")
    return tmp_path / "sessions"


def problems_of(root: Path) -> list[str]:
    reading = a3s.read(Source("a3s", str(root / TREE.relative_to(ROOT))))
    list(reading.steps)
    return [problem.what for problem in reading.problems]


def test_a_session_that_is_not_the_one_saved_last_is_told(tmp_path: Path) -> None:
    root = copied(tmp_path)
    path = root / TREE.relative_to(ROOT)
    path.write_bytes(path.read_bytes().replace(b"Active", b"Paused"))
    assert problems_of(root) == ["the session is not the one that was saved last, says the write-ahead log"]


def test_a_save_that_never_finished_is_told(tmp_path: Path) -> None:
    root = copied(tmp_path)
    wal = root / "v1/wal/session-store.ndjson"
    intent = wal.read_bytes().splitlines(keepends=True)[0]
    wal.write_bytes(intent)
    assert problems_of(root) == []
    (root / TREE.relative_to(ROOT)).write_bytes(TREE.read_bytes().replace(b"Active", b"Paused"))
    assert problems_of(root) == ["the session is of before a save that never finished, says the write-ahead log"]


def test_damage_in_the_write_ahead_log_is_told(tmp_path: Path) -> None:
    root = copied(tmp_path)
    wal = root / "v1/wal/session-store.ndjson"
    first, second = wal.read_bytes().splitlines(keepends=True)
    wal.write_bytes(first + first + second.replace(b'"recordedAtMs":1', b'"recordedAtMs":2') + b"{" + second)
    assert problems_of(root) == [
        "number 1 twice in the write-ahead log",
        "a line of the write-ahead log with another digest",
        "a line of the write-ahead log that is none",
    ]


def test_a_run_that_did_not_end_goes_on_from_its_checkpoint(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    path = root / TREE.relative_to(ROOT)
    value = json.loads(TREE.read_bytes())
    every = value["session"]["messages"]
    value["session"]["messages"] = every[:2]
    (root / "v1/wal/session-store.ndjson").unlink()
    save(path, value)
    done = bring(home, path)
    session = home.resume(done.id)
    assert len(session.messages()) == 3
    assert "run 'run-2' did not end: what it had done is read from its checkpoint" in done.problems[0].what
    files = {file.path: file.data for file in render(session, "a3s").files}
    assert files[path.relative_to(root).as_posix()] == path.read_bytes()
    assert files[LOOP.relative_to(ROOT).as_posix()] == LOOP.read_bytes()
    session.user("on with it")
    (file,) = render(session, "a3s").files
    assert len(json.loads(file.data)["session"]["messages"]) == 5  # with a result for the call that had none
    value["session"]["messages"] = every
    save(path, value)
    (root / LOOP.relative_to(ROOT)).unlink()
    fresh = turnlog.open("memory:")
    assert data_of(session_of(fresh, path)) == path.read_bytes()


def test_a_finished_run_is_part_of_the_session(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    path = root / TREE.relative_to(ROOT)
    value = json.loads(TREE.read_bytes())
    every = value["session"]["messages"]
    (root / "v1/wal/session-store.ndjson").unlink()
    save(path, {**value, "session": {**value["session"], "messages": every[:2]}})
    bring(home, path)
    (root / LOOP.relative_to(ROOT)).unlink()
    save(path, {**value, "session": {**value["session"], "messages": every}})
    assert data_of(session_of(home, path)) == path.read_bytes()


def test_a_checkpoint_that_goes_another_way_is_kept(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    loop = root / LOOP.relative_to(ROOT)
    value = json.loads(loop.read_bytes())
    value["messages"][0]["content"][0]["text"] = "else"
    loop.write_bytes(pretty(value))
    done = bring(home, root / TREE.relative_to(ROOT))
    assert "goes another way" in done.problems[0].what
    files = {file.path: file.data for file in render(home.resume(done.id), "a3s").files}
    assert files[LOOP.relative_to(ROOT).as_posix()] == loop.read_bytes()


def test_what_lies_beside_a_session_comes_along(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    trace = root / "v1/traces" / TREE.name
    trace.parent.mkdir()
    trace.write_bytes(pretty([{"event": "x", "ms": 0.5}]))
    artifacts = root / "v1/artifacts" / TREE.stem / "artifacts.json"
    artifacts.parent.mkdir(parents=True)
    artifacts.write_bytes(pretty({"a": []}))
    (root / "v1/runs").mkdir()
    (root / "v1/runs" / TREE.name).write_bytes(b"{")
    session = session_of(home, root / TREE.relative_to(ROOT))
    files = {file.path: file.data for file in render(session, "a3s").files}
    assert files[f"v1/traces/{TREE.name}"] == trace.read_bytes()
    assert files[f"v1/artifacts/{TREE.stem}/artifacts.json"] == artifacts.read_bytes()
    assert problems_of(root) == ["not readable, or sealed: left out"]


def test_runs_that_a3s_would_refuse_are_told(home: Any, tmp_path: Path) -> None:
    value = json.loads(TREE.read_bytes())
    run = value["run_records"][0]
    events = [{"sequence": number, "timestamp_ms": 1, "event": {}} for number in (2, 2)]
    value["run_records"] = [run, run, {"snapshot": {**run["snapshot"], "id": "r", "session_id": "x"}, "events": events}]
    done = bring(home, save(tmp_path / "v1/sessions" / TREE.name, value))
    assert [(problem.where, problem.what.partition(",")[0]) for problem in done.problems] == [
        ("run 'run-1'", "twice"),
        ("run 'r'", "of another session"),
        ("run 'r'", "with events out of order"),
        ("run 'r'", "with more events than it counts"),
    ]


def test_sealed_files_are_told(home: Any, tmp_path: Path) -> None:
    path = tmp_path / "v1" / "sessions" / tree_name("secret/one")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"A3SE\x01" + bytes(60))
    (done,) = home.import_sessions(tmp_path, agent="a3s")
    assert done.id == "a3s-secret/one"
    assert [problem.what for problem in done.problems] == ["sealed: it is encrypted, and only its key opens it"]


# ── where they are ────────────────────────────────────────────────────────────────────────────────


def test_sessions_lie_beside_the_workspace_or_at_home() -> None:
    assert a3s.homes(Places("/home/anna", "/srv")) == ["/srv/.a3s/sessions", "/home/anna/.a3s/sessions"]


def test_temporary_files_probes_and_links_are_no_sessions(tmp_path: Path) -> None:
    found = [Path(source.path).name for source in a3s.find(str(FLAT))]
    assert found == ["child-1.json", "foo_bar_baz_qux.json", "s-1.json"]
    (tmp_path / ".health_check").write_text("ok")
    (tmp_path / "link.json").symlink_to(WHOLE)
    (tmp_path / "v1").symlink_to(ROOT / "v1")
    assert list(a3s.find(str(tmp_path))) == []


def test_a_flat_file_that_was_moved_to_the_tree_is_not_read_again(tmp_path: Path) -> None:
    root = copied(tmp_path)
    save(root / "екип_s-1.json", document(id="екип/s-1"))
    save(root / "other.json", document(id="other"))
    assert [Path(source.path).name for source in a3s.find(str(root))] == [TREE.name, "other.json"]


def test_no_file_of_another_agent_is_taken() -> None:
    for path in SEEDS.parent.rglob("*"):
        if path.is_file() and SEEDS not in path.parents:
            assert list(a3s.find(str(path))) == [], path


def test_order_of_keys_does_not_matter_for_finding(tmp_path: Path) -> None:
    path = tmp_path / "s-1.json"
    path.write_text(json.dumps(dict(reversed(document().items()))))
    assert [source.path for source in a3s.find(str(tmp_path))] == [str(path)]


def test_a_session_goes_back_into_its_tree_with_an_entry_in_the_log(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    session = session_of(home, root / TREE.relative_to(ROOT))
    session.user("more")
    written = render(session, "a3s")
    with pytest.raises(turnlog.Unavailable, match="leased to 'worker-а'"):
        a3s.place(written, str(root))
    (root / "v1/writer_lease.json").unlink()
    with pytest.raises(turnlog.AlreadyExists):
        a3s.place(written, str(root))
    path = a3s.place(written, str(root), force=True)
    assert path == str(root / TREE.relative_to(ROOT))
    problems: list[Problem] = []
    entries = list(wal_entries(str(root / "v1/wal/session-store.ndjson"), problems))
    assert problems == []
    phases = [(entry.sequence, entry.phase) for entry in entries]
    assert phases == [(1, "intent"), (1, "committed"), (2, "intent"), (2, "committed")]
    assert entries[-1].snapshot_digest == digest_of(Path(path).read_bytes())
    assert [what for what in problems_of(root) if "write-ahead" in what] == []


def test_a_damaged_log_is_not_appended_to(home: Any, tmp_path: Path) -> None:
    root = copied(tmp_path)
    (root / "v1/writer_lease.json").unlink()
    wal = root / "v1/wal/session-store.ndjson"
    wal.write_bytes(wal.read_bytes() + b"{}\n")
    before = wal.read_bytes()
    written = render(session_of(home, TREE), "a3s")
    with pytest.raises(turnlog.Corrupt, match="is damaged"):
        a3s.place(written, str(root), force=True)
    assert wal.read_bytes() == before


@pytest.mark.parametrize("id", ["../../esc", "/", "\\", "", ".", "..", "x" * 5000, "a\0b", "\ud800"])
def test_an_id_is_never_a_path(id: str, tmp_path: Path) -> None:
    for name in (flat_name(id), tree_name(id)):
        assert "/" not in name
        assert "\0" not in name
        (tmp_path / name).write_text("ok")
    assert len(list(tmp_path.iterdir())) == 2


def test_different_ids_have_different_names_in_the_tree() -> None:
    ids = ["a/b", "a\\b", "a_b", "x..y", "x_y", "", "\u00e9", "e\u0301"]
    assert len({tree_name(id) for id in ids}) == len(ids)


# ── for sessions from elsewhere ───────────────────────────────────────────────────────────────────


def test_a_session_made_here_loads_in_a3s_and_tells_its_losses(home: Any) -> None:
    session = home.create(workspace="/srv/проект", title="t")
    session.set("model", "gpt-5")
    session.set("effort", "high")
    session.set("tasks", [{"id": "1", "content": "c", "status": "pending"}, "not a task"])
    session.set("state", "dreaming")
    session.system("rules")
    session.user([Text("look"), Image(media_type="image/png", data=b"\x89PNG"), Image(url="https://host/x.png")])
    session.assistant(
        [
            Thinking(text="hm", provider="openai", data={"sealed": "x"}),
            ToolCall(id="a", name="read", input={"z": 1, "path": "б"}),
            ToolCall(id="b", name="read", input={}),
            ToolCall(id="p", name="web_search", input={}, by="provider"),
        ],
        model="gpt-5",
        usage=Usage(10, 2, 3, 0, 5),
    )
    session.append(
        Message(role="tool", blocks=[
            ToolResult(call="a", content=[Text("one"), Image(media_type="image/png", data=b"x")]),
            ToolResult(call="b", content=b"\xff".decode("utf-8", "surrogateescape"), is_error=True),
        ])
    )  # fmt: skip
    session.assistant([ToolCall(id="never", name="bash", input="raw")])
    session.note("for people")
    written = render(session, "a3s")
    whole = loads_in_a3s(written.files[0].data)
    assert whole["config"]["system_prompt"] == "rules"
    assert whole["config"]["name"] == "t"
    assert [message["role"] for message in whole["messages"]] == [
        "user",
        "assistant",
        "user",
        "user",
        "assistant",
        "user",
    ]
    assert whole["messages"][1]["reasoning_content"] == "hm"
    assert whole["messages"][2]["content"][0]["content"][1]["source"]["data"] == base64.b64encode(b"x").decode()
    assert whole["messages"][-1]["content"][0]["is_error"] is True
    assert whole["total_usage"] == {
        "prompt_tokens": 15, "completion_tokens": 5, "total_tokens": 20, "cache_read_tokens": 2,
        "cache_write_tokens": 3,
    }  # fmt: skip
    assert whole["tool_names"] == ["read", "bash"]
    assert whole["tasks"] == [{"id": "1", "content": "c", "status": "pending", "priority": "medium"}]
    lost = {loss.what: loss.count for loss in written.lost}
    assert lost.pop("time of a message") == 6
    assert lost == dict.fromkeys(
        ("image", "sealed reasoning", "provider's tool call", "note", "fact", "task", "bytes that are not Unicode",
         "model of a message", "usage of a message"), 1,
    )  # fmt: skip


def test_a_fork_made_here_keeps_configuration_and_totals(home: Any) -> None:
    fork = session_of(home, WHOLE).fork()
    fork.user("elsewhere")
    whole, before = loads_in_a3s(data_of(fork)), document()
    assert whole["config"] == before["config"]
    assert whole["total_usage"] == before["total_usage"]
    assert whole["messages"][:-1] == before["messages"]
    assert whole["id"] != before["id"]
    assert {loss.what for loss in render(fork, "a3s").lost} == {"fork", "time of a message"}


def test_an_edit_and_a_rewind_show_in_what_is_written(home: Any) -> None:
    session = session_of(home, WHOLE)
    messages = session.messages()
    session.edit(messages[0], "anew")
    session.edit(messages[2], [ToolResult(call="tu_1", content="found")])
    written = loads_in_a3s(data_of(session))["messages"]
    assert written[0]["content"] == [{"type": "text", "text": "anew"}]
    assert written[2]["content"][0] == {
        "type": "tool_result",
        "tool_use_id": "tu_1",
        "content": "found",
        "is_error": False,
    }
    assert written[3:] == document()["messages"][3:]
    session.rewind(to=messages[1])
    left = render(session, "a3s")
    assert len(json.loads(left.files[0].data)["messages"]) == 2
    assert {loss.what: loss.count for loss in left.lost} == {"message on another branch": 4}


def test_there_and_back_through_claw_nothing_that_both_know_is_lost(tmp_path: Path) -> None:
    with turnlog.open("memory:") as home:
        exported = session_of(home, WHOLE).export("claw", tmp_path / "x.jsonl", format_version=2)
        (done,) = home.import_sessions(exported.path, agent="claw")
        back = loads_in_a3s(data_of(home.resume(done.id)))["messages"]
    assert {loss.what: loss.count for loss in exported.lost}["tool result without its call"] == 1
    whole = document()["messages"]
    del whole[4]
    assert [message["role"] for message in back] == [message["role"] for message in whole]
    assert back[0] == whole[0]
    assert back[1] == whole[1]
    assert back[2] == whole[2]
    assert back[-1] == whole[-1]


def test_sessions_with_an_odd_id_get_one_that_shares_its_file_with_no_other(home: Any) -> None:
    ids = [render(home.create(id=id), "a3s") for id in ("a/b", "a_b", "a\\b", "a..b")]
    assert len({written.files[0].path for written in ids}) == 4
    assert all(flat_name(written.id) == written.files[0].path for written in ids)
