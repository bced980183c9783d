"""What a3s-code does, done with Turnlog."""

import shutil

import pytest

import turnlog
from tests.seeds.scene import everything_below, texts, work
from turnlog import AlreadyExists, Conflict, NotFound, TurnlogWarning, Usage

CONFIG = {
    "name": "demo", "workspace": "/w", "system_prompt": None, "max_context_length": 200_000, "auto_compact": True,
    "auto_compact_threshold": 0.8, "storage_type": "file", "planning_mode": "Auto", "goal_tracking": False,
}  # fmt: skip
TASKS = [
    {"id": "1", "content": "find the race", "status": "in_progress", "priority": "high", "dependencies": []},
    {"id": "2", "content": "fix it", "status": "pending", "priority": "medium", "dependencies": ["1"]},
]


@pytest.fixture(params=["files", "memory"])
def any_home(request, folder):
    with turnlog.open("memory:" if request.param == "memory" else folder) as opened:
        yield opened


def test_a_store_has_a_name_and_says_whether_it_is_well(any_home):
    health = any_home.health()
    assert (health["ok"], health["backend"]) == (True, any_home.backend)
    assert any_home.backend in ("files", "memory")


def test_a_store_that_is_not_well_says_why(folder):
    with turnlog.open(folder) as home:
        home.create()
        shutil.rmtree(folder)
        folder.write_text("a file where a folder should be")
        health = home.health()
    assert health["ok"] is False
    assert health["error"]


def test_every_store_saves_loads_lists_and_deletes(any_home):
    session = any_home.create(id="one")
    session.user("hi")
    assert texts(any_home.resume("one").messages()) == ["hi"]
    assert [row.id for row in any_home.sessions()] == ["one"]
    with pytest.raises(AlreadyExists):
        any_home.create(id="one")
    any_home.delete("one")
    assert any_home.sessions() == []
    with pytest.raises(NotFound):
        any_home.resume("one")


def test_a_memory_store_leaves_nothing_on_the_disk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with turnlog.open("memory:") as home:
        home.create().user("hi")
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("config", CONFIG),
        ("state", "Paused"),
        ("tasks", TASKS),
        ("confirmation_policy", {"enabled": True, "default_timeout_ms": 30_000, "yolo_lanes": ["Query"]}),
        ("permission_policy", {"deny": [{"rule": "Bash(rm:*)"}], "allow": [], "default_decision": "ask"}),
        ("cost_records", [{"model": "m", "provider": "", "prompt_tokens": 5, "cost_usd": None}]),
        ("tool_names", ["read", "bash"]),
        ("thinking_enabled", True),
        ("thinking_budget", 4_096),
        ("parent_id", "parent/1"),
        ("context_usage", {"used_tokens": 10, "max_tokens": 200_000, "percent": 0.00005, "turns": 1}),
    ],
)
def test_what_a_session_is_set_to_is_a_fact(home, s, key, value):
    s.set(key, value)
    assert home.resume(s.id).get(key) == value


def test_facts_change_with_the_conversation_and_go_back_with_it(s):
    s.set("state", "Active")
    one = s.user("one")
    s.set("state", "Completed")
    s.set("tasks", TASKS)
    s.rewind(to=one)
    assert (s.get("state"), s.get("tasks")) == ("Active", None)
    s.undo()
    assert (s.get("state"), s.get("tasks")) == ("Completed", TASKS)


def test_an_api_key_is_never_written(home, s, folder):
    with pytest.warns(TurnlogWarning, match="api_key"):
        s.set("llm_config", {"provider": "openai", "model": "gpt-5.5", "base_url": None, "api_key": "sk-do-not-write"})
    assert home.resume(s.id).get("llm_config") == {
        "provider": "openai", "model": "gpt-5.5", "base_url": None, "api_key": "[secret]",
    }  # fmt: skip
    assert b"sk-do-not-write" not in everything_below(folder)


@pytest.mark.parametrize("name", ["a/b", "a\\b", "../../etc/passwd", "..", "x..y", "a b", "名前", "/abs", "con", "a:b"])
def test_path_separators_in_ids_are_safe(any_home, name, tmp_path, folder):
    before = {path for path in tmp_path.rglob("*") if folder not in path.parents and path != folder}
    any_home.create(id=name).user("inside")
    assert texts(any_home.resume(name).messages()) == ["inside"]
    assert [row.id for row in any_home.sessions()] == [name]
    assert {path for path in tmp_path.rglob("*") if folder not in path.parents and path != folder} == before


def test_a_child_knows_its_parent(home, s):
    child = s.spawn(agent="helper", call="c1")
    (row,) = home.sessions(parent=s.id)
    assert (row.id, row.parent) == (child.id, s.id)


def test_a_child_inherits_what_its_parent_was_set_to_where_it_is_forked(home, s):
    s.set("confirmation_policy", {"enabled": True})
    assert s.fork(name="child").get("confirmation_policy") == {"enabled": True}


def test_every_message_with_its_blocks_comes_back(home, s):
    s.user([turnlog.Text("look"), turnlog.Image("image/png", data=b"\x89PNG")])
    s.assistant([turnlog.Thinking(text="hm"), turnlog.ToolCall(id="c1", name="read", input={"path": "x"})])
    s.tool_result("c1", [turnlog.Text("text"), turnlog.Image("image/png", data=b"\x89PNG")], is_error=False)
    again = home.resume(s.id)
    assert again.messages() == s.messages()
    assert home.get_blob(again.messages()[0].blocks[1].blob) == b"\x89PNG"


def test_a_compaction_keeps_the_first_and_the_last(s):
    """a3s keeps the first two messages, a summary, and the last twenty."""
    for number in range(40):
        s.user(f"message {number}")
    first, second = s.messages()[:2]
    summary = turnlog.Message(role="user", blocks=[turnlog.Text("in between")])
    s.compact([turnlog.Ref(first.seq), turnlog.Ref(second.seq), summary], keep=20)
    assert texts(s.context()) == [
        "message 0", "message 1", "in between", *(f"message {number}" for number in range(20, 40))
    ]  # fmt: skip


def test_old_outputs_can_be_pruned_for_the_model_only(s):
    s.user("go")
    work(s, "c1", "x" * 10_000)
    result = s.messages()[-1]
    s.edit(result, [turnlog.ToolResult(call="c1", content="[output pruned]")])
    assert texts(s.context())[-1] == "[output pruned]"
    assert texts(s.messages())[-1] == "x" * 10_000


def test_how_full_a_context_is_is_known(s):
    s.set("max_context_length", 200_000)
    s.assistant("a", usage=Usage(input_tokens=150_000, output_tokens=10_000))
    assert s.context().tokens / s.get("max_context_length") == 0.8


def test_a_crash_between_tool_rounds_goes_on_where_it_was(home, s):
    """Loop checkpoints of a3s: every finished round is in the log, and the open call is known."""
    s.user("go")
    work(s, "c1", "one")
    s.assistant([turnlog.ToolCall(id="c2", name="bash", input={"command": "make"})])
    again = home.resume(s.id)
    (call,) = again.pending()
    again.tool_result(call, "two")
    assert again.pending() == []
    assert texts(again.context())[-1] == "two"


def test_a_save_may_say_what_it_expects(home, s):
    """Compare and swap."""
    one = s.user("one")
    s.append(turnlog.Message(role="user", blocks=[turnlog.Text("two")]), after=one)
    with pytest.raises(Conflict):
        s.append(turnlog.Message(role="user", blocks=[turnlog.Text("two again")]), after=one)
    assert texts(s.messages()) == ["one", "two"]


def test_commits_can_be_watched(home, s):
    s.user("one")
    watcher = home.resume(s.id).follow(after=0)
    seen = [next(watcher) for _ in range(3)]
    assert seen[-1].blocks == [turnlog.Text("one")]


def test_a_tenant_is_a_label(home):
    session = home.create(labels={"tenant_id": "t1", "principal": "ada"})
    home.create(labels={"tenant_id": "t2"})
    assert [row.id for row in home.sessions(labels={"tenant_id": "t1"})] == [session.id]


def test_costs_are_kept_per_request_and_by_model(home, s):
    s.assistant("a", usage=Usage(input_tokens=1_000, output_tokens=10), model="claude-haiku-4-5", request="r1")
    s.assistant("b", usage=Usage(input_tokens=1_000, cost_micros=77), model="gpt-5.5", request="r2")
    own = home.resume(s.id).cost().own
    assert own.models == {"claude-haiku-4-5": 1_050, "gpt-5.5": 77}
    records = [(m.model, m.request, m.usage.all_input_tokens, m.at is not None) for m in s.messages()]
    assert records == [("claude-haiku-4-5", "r1", 1_000, True), ("gpt-5.5", "r2", 1_000, True)]
