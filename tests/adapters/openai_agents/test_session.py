"""`TurnlogSession`: the SDK's own tests, the same items, and what only a session of ours can do."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
from agents import Agent, RunConfig, Runner, Usage
from agents.testing import ScriptedModel, assistant_message

import turnlog
from tests.adapters import theirs
from turnlog import File, Image, Invalid, Message, Text, Thinking, ToolCall, ToolResult, Unavailable
from turnlog.adapters.openai_agents import TurnlogSession, popping

LEFT_OUT = {
    # Private connections.
    "test_sqlite_session_close_closes_worker_thread_connections",
    "test_sqlite_session_reaps_connections_from_exited_worker_threads",
    "test_sqlite_session_closes_retired_connections_before_the_next_allocation",
    "test_sqlite_session_keeps_connections_of_live_worker_threads",
    "test_sqlite_session_rollback_failure_evicts_connection",
    "test_sqlite_session_close_retries_quarantined_connection",
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[add]",
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[pop]",
    "test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome[clear]",
    # Private locks.
    "test_sqlite_session_file_lock_is_shared_across_instances",
    # Its tables.
    "test_sqlite_session_failed_add_items_releases_write_lock",
    "test_sqlite_session_failed_clear_session_rolls_back",
    "test_sqlite_session_failed_pop_item_releases_write_lock",
    # Rows that the test corrupts.
    "test_sqlite_session_pop_item_skips_corrupt_most_recent",
    "test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows",
    "test_sqlite_session_get_items_limit_skips_corrupt_newest_rows",
    "test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows",
    # The words of its error when it is closed.
    "test_sqlite_session_closed_rejects_empty_add_items",
}
"""Of 71. One that begins to pass has to go."""


def test_the_tests_of_the_sdk(tmp_path):
    found = theirs.run(
        "openai-agents", tmp_path, ["tests/memory/test_session.py", "tests/memory/test_session_limit.py"]
    )
    assert {name for name, how in found.items() if how != "passed"} == LEFT_OUT
    assert len(found) == 71


ODD = [
    {"role": "user", "content": "hi"},
    {"content": "keys in another order", "role": "user"},
    {"role": "user", "content": "user"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "a"},
            {"type": "input_image", "image_url": "data:image/png;base64,cHBw", "detail": "auto"},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "input_file", "file_data": "data:application/pdf;base64,cHBw", "filename": "a.pdf"}],
    },
    {"role": "developer", "content": "be brief", "~": {"~~": [{"~": "0.text"}]}},
    {
        "type": "function_call",
        "call_id": "c1",
        "name": "bash",
        "arguments": '{"b":  1, "a": [1.0, "ü"]}',
        "id": "fc",
        "status": "completed",
    },
    {"type": "function_call", "call_id": "c2", "name": "bash", "arguments": "not json"},
    {"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "out"}]},
    {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": "so"}],
        "encrypted_content": "e" * 200,
    },
    {
        "type": "message",
        "role": "assistant",
        "id": "m",
        "status": "completed",
        "content": [{"type": "output_text", "text": "x\x00ü\u2028", "annotations": [{"k": None}], "logprobs": []}],
    },
    {"type": "item_reference", "id": "somewhere"},
    {"type": "of next year", "deep": {"n": [2**70, -0.0, 1e300, None, True]}},
    {"role": "user", "content": "lone \ud800 surrogate", "nested": {"api_key": "k", "": {}}},
]


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_every_odd_item_comes_back_exactly(backend, tmp_path):
    async def work():
        place = turnlog.open("memory:" if backend == "memory" else tmp_path)
        session = TurnlogSession("c1", place)
        for item in ODD:
            await session.add_items([item])
        again = TurnlogSession("c1", place if backend == "memory" else turnlog.open(tmp_path))
        return (
            await again.get_items(),
            [await again.get_items(limit) for limit in (1, 5)],
            [await again.pop_item() for _ in ODD],
        )

    items, (one, five), popped = asyncio.run(work())
    assert [json.dumps(item) for item in items] == [json.dumps(item) for item in ODD]
    assert (one, five) == (ODD[-1:], ODD[-5:])
    assert popped == ODD[::-1]


def test_an_item_that_is_none_is_refused_and_leaves_no_session(tmp_path):
    async def work(items):
        await TurnlogSession("c1", tmp_path).add_items(items)

    circle = {"role": "user"}
    circle["content"] = [circle]
    good, deep = {"role": "user", "content": "good"}, json.loads("[" * 900 + "]" * 900)
    bad = ("bad", None, {"content": object()}, {"content": {1}}, {(1, 2): 3}, circle, {"content": deep})
    for items in (*([good, one] for one in bad), None, 3, "text", good):
        with pytest.raises(Invalid):
            asyncio.run(work(items))
    with turnlog.open(tmp_path) as home:
        assert home.sessions() == []
    for name in ("", None, 3):
        with pytest.raises(Invalid, match="session_id"):
            TurnlogSession(name)


def test_a_program_goes_on_where_it_was(tmp_path):
    for number in (1, 2):
        with TurnlogSession("c1", tmp_path) as session:
            model = ScriptedModel()
            model.set_default_usage(Usage(requests=1, input_tokens=10, output_tokens=2, total_tokens=12))
            model.enqueue([assistant_message(f"answer {number}")])
            agent, config = Agent(name="a", model=model), RunConfig(tracing_disabled=True)
            asyncio.run(Runner.run(agent, f"question {number}", session=session, run_config=config))
    given = model.last_call.input
    assert [item["content"] for item in given if item["role"] == "user"] == ["question 1", "question 2"]
    with turnlog.open(tmp_path) as home:
        session = home.resume("c1")
        assert [message.role for message in session.messages()] == ["user", "assistant"] * 2
        assert session.messages()[3].blocks[0].text == "answer 2"
        assert (session.usage().own.input_tokens, session.usage().own.output_tokens) == (20, 4)
        assert session.labels == {"framework": "openai-agents", "session_id": "c1"}
        assert session.export("claude-code", tmp_path / "exported.jsonl")
    theirs.commands_see(tmp_path, "c1", "answer 2", 4)


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path))
    model = ScriptedModel()
    model.enqueue([assistant_message("hello")])
    names = {"Runner": Runner, "agent": Agent(name="a", model=model)}
    code = "async def main():\n" + "".join(f"    {line}\n" for line in theirs.snippet("OpenAI Agents").splitlines())
    exec(compile(code, "frameworks.md", "exec"), names)
    asyncio.run(names["main"]())
    with turnlog.open(tmp_path) as home:
        assert [message.role for message in home.resume("chat-1").messages()] == ["user", "assistant"]


def test_what_turnlog_does_to_the_conversation_the_sdk_sees(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            theirs_session = TurnlogSession("c1", home)
            for word in ("one", "two", "three"):
                await theirs_session.add_items([{"role": "user", "content": f"say {word}"}])
            ours = home.resume("c1")
            ours.assistant([Text("from elsewhere"), ToolCall(id="c", name="bash", input={"a": 1})])
            ours.tool_result("c", "out")
            seen = await theirs_session.get_items()
            assert [item.get("content") or item["type"] for item in seen[3:]] == [
                "from elsewhere",
                "function_call",
                "function_call_output",
            ]
            ours.edit(ours.messages()[0], "[redacted]")
            assert (await theirs_session.get_items())[0] == {"role": "user", "content": "[redacted]"}
            ours.compact("so far", keep=2)
            assert (await theirs_session.get_items())[0]["content"] == "so far"
            assert len(await theirs_session.get_items(1)) == 1
            ours.rewind(to=ours.path()[1])
            assert [item["content"] for item in await theirs_session.get_items()] == ["say one", "say two"]
            assert len(ours.fork().messages()) == 2

    asyncio.run(work())


def _contents(items):
    return [item.get("content") or item["type"] for item in items]


def test_one_item_is_popped_of_a_message_of_several_that_an_edit_or_a_compaction_follows(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            ours = home.create(id="c1")
            ours.user("go")
            ours.assistant([Text("I look"), ToolCall(id="c", name="bash", input={})])
            ours.edit(ours.messages()[0], "changed")
            session = TurnlogSession("c1", home)
            assert (await session.pop_item())["type"] == "function_call"
            assert _contents(await session.get_items()) == ["changed", "I look"]
            assert (await session.pop_item())["content"] == "I look"
            ours.refresh()
            answer = Message(role="assistant", blocks=[Text("I looked"), ToolCall(id="d", name="bash", input={})])
            ours.compact([Message(role="user", blocks=[Text("so far")]), answer])
            assert (await session.pop_item())["call_id"] == "d"
            assert _contents(await session.get_items()) == ["so far", "I looked"]
            assert [(await session.pop_item())["content"] for _ in range(2)] == ["I looked", "so far"]
            assert await session.pop_item() is None

    asyncio.run(work())


def test_no_two_pop_the_same_item_where_a_compaction_is_the_newest(tmp_path, monkeypatch):
    both = threading.Barrier(2)
    once = threading.local()
    items_of = popping.items_of

    def slowly(*args, **options):
        if not hasattr(once, "waited"):
            once.waited = True
            both.wait(10)
        return items_of(*args, **options)

    async def work():
        async with TurnlogSession("c1", tmp_path) as session:
            await session.add_items([{"role": "user", "content": f"say {word}"} for word in "abcdefgh"])
            session.session.compact("so far", keep=6)
            monkeypatch.setattr(popping, "items_of", slowly)
            popped = await asyncio.gather(session.pop_item(), session.pop_item())
            assert sorted(item["content"] for item in popped) == ["say g", "say h"]

    asyncio.run(work())


def test_a_limit_counts_items_where_a_message_has_none(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            session = TurnlogSession("c1", home)
            await session.add_items([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
            home.resume("c1").assistant([Thinking(text="hm", provider="anthropic")])
            assert [item["content"] for item in await session.get_items(2)] == ["one", "two"]

    asyncio.run(work())


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (
            Image(media_type="image/png", data=b"png"),
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,cG5n"},
        ),
        (
            Image(url="https://x.example/a.png"),
            {"type": "input_image", "detail": "auto", "image_url": "https://x.example/a.png"},
        ),
        (Image(file="file-1", provider="openai"), {"type": "input_image", "detail": "auto", "file_id": "file-1"}),
        (
            File(media_type="application/pdf", data=b"pdf", name="a.pdf"),
            {"type": "input_file", "file_data": "data:application/pdf;base64,cGRm", "filename": "a.pdf"},
        ),
        (File(url="https://x.example/a.pdf"), {"type": "input_file", "file_url": "https://x.example/a.pdf"}),
    ],
)
@pytest.mark.parametrize("where", ["message", "result"])
def test_pictures_and_files_that_others_sent_are_there(tmp_path, block, part, where):
    async def work():
        with turnlog.open(tmp_path) as home:
            ours = home.create(id="c1")
            if where == "message":
                ours.user([Text("look"), block])
            else:
                ours.assistant([ToolCall(id="c", name="read", input={})])
                ours.append(Message(role="tool", blocks=[ToolResult(call="c", content=[Text("look"), block])]))
            item = (await TurnlogSession("c1", home).get_items())[-1]
            assert item.get("content", item.get("output")) == [{"type": "input_text", "text": "look"}, part]

    asyncio.run(work())


WORKER = """
import asyncio, sys
from turnlog.adapters.openai_agents import TurnlogSession, popping

async def main():
    session = TurnlogSession("c1", sys.argv[1])
    if sys.argv[2] == "add":
        for number in range(50):
            await session.add_items([{"role": "user", "content": f"{sys.argv[3]}:{number}"}])
    else:
        for _ in range(5):
            print((await session.pop_item())["content"])

asyncio.run(main())
"""


def test_eight_processes_lose_nothing_and_never_pop_the_same(tmp_path):
    def eight(what):
        command = [sys.executable, "-c", WORKER, str(tmp_path), what]
        workers = [
            subprocess.Popen([*command, str(me)], stdout=subprocess.PIPE, text=True, env=os.environ) for me in range(8)
        ]
        said = [worker.communicate(timeout=300)[0] for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * 8
        return " ".join(said).split()

    eight("add")
    items = asyncio.run(TurnlogSession("c1", tmp_path).get_items())
    assert len({item["content"] for item in items}) == len(items) == 400
    popped = eight("pop")
    assert len(popped) == len(set(popped)) == 40
    left = asyncio.run(TurnlogSession("c1", tmp_path).get_items())
    assert {item["content"] for item in left} | set(popped) == {item["content"] for item in items}


def test_what_a_run_took_is_counted_once(tmp_path):
    class Told:
        def __init__(self):
            self.input_tokens, self.output_tokens = 0, 0

    class Wrapper:
        usage = Told()

    async def work():
        session = TurnlogSession("c1", tmp_path)
        for _ in range(3):
            Wrapper.usage.input_tokens += 10
            Wrapper.usage.output_tokens += 2
            await session.add_items([{"role": "user", "content": "x"}], wrapper=Wrapper())
        await session.add_items([{"role": "user", "content": "x"}], wrapper=Wrapper())
        return session.session.usage().own

    spent = asyncio.run(work())
    assert (spent.input_tokens, spent.output_tokens) == (30, 6)


def test_what_no_log_can_hold_of_a_call_comes_back_all_the_same(tmp_path):
    deep = "[" * 300 + "]" * 300
    call = {"type": "function_call", "call_id": "c", "name": "n"}
    items = [
        {**call, "arguments": text} for text in (deep, "[" * 3000 + "]" * 3000, '{"a": "\\ud800"}', '{"n": 1e400}')
    ]
    items += [{"type": ["odd"], "n": 1}, {"type": "of next year", "held": json.loads(deep)}]
    with TurnlogSession("c1", tmp_path) as session:
        asyncio.run(session.add_items(items))
    with TurnlogSession("c1", tmp_path) as session:
        assert asyncio.run(session.get_items()) == items


class Run:
    """What the SDK hands over beside the items: the usage of a run so far."""

    def __init__(self, input_tokens, cached_tokens=0):
        details = SimpleNamespace(cached_tokens=cached_tokens)
        self.usage = SimpleNamespace(input_tokens=input_tokens, input_tokens_details=details, output_tokens=1)


def test_what_a_run_took_is_counted_when_its_items_are_added_again(tmp_path, monkeypatch):
    def refused(*_, **__):
        monkeypatch.undo()
        raise Unavailable("the disk is full")

    with TurnlogSession("c1", tmp_path) as session:
        asyncio.run(session.add_items([{"role": "user", "content": "x"}]))
        run = Run(10, cached_tokens=4)
        monkeypatch.setattr(turnlog.Session, "append", refused)
        with pytest.raises(Unavailable):
            asyncio.run(session.add_items([{"role": "user", "content": "y"}], wrapper=run))
        for _ in range(2):
            asyncio.run(session.add_items([{"role": "user", "content": "y"}], wrapper=run))
        own = session.session.usage().own
        assert (own.input_tokens, own.cache_read_tokens, own.output_tokens) == (6, 4, 1)


@pytest.mark.parametrize("call", ["clear_session", "pop_item"])
def test_a_session_that_is_purged_meanwhile_has_nothing(tmp_path, monkeypatch, call):
    rewind = turnlog.Session.rewind

    def purged_first(*given, **options):
        monkeypatch.undo()
        with turnlog.open(tmp_path) as home:
            home.purge("c1", deleted=False)
        return rewind(*given, **options)

    with TurnlogSession("c1", tmp_path) as session:
        asyncio.run(session.add_items([{"role": "user", "content": "x"}]))
        monkeypatch.setattr(turnlog.Session, "rewind", purged_first)
        assert asyncio.run(getattr(session, call)()) is None
        assert asyncio.run(session.get_items()) == []


def test_an_item_before_very_many_notes_is_taken_back(tmp_path):
    with TurnlogSession("c1", tmp_path) as session:
        asyncio.run(session.add_items([{"role": "user", "content": "x"}]))
        session.session.append(*[Message(role="user", blocks=[]) for _ in range(1_500)])
        assert asyncio.run(session.pop_item()) == {"role": "user", "content": "x"}
