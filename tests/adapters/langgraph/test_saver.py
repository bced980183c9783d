"""`TurnlogSaver` beside LangGraph's own: its conformance suite, the same values, and what only a session can do."""

import asyncio
import datetime
import json
import os
import subprocess
import sys
import uuid
from base64 import b64decode
from collections import namedtuple
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

import turnlog
from tests.adapters import theirs
from turnlog import Conflict, File, Image, Invalid, Message, Text, ToolCall, ToolResult
from turnlog.adapters.langgraph import TurnlogSaver

THREAD = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}


class State(TypedDict):
    messages: Annotated[list, add_messages]
    note: Any


def answer(state: State) -> dict:
    said = state["messages"][-1].content
    usage = {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12}
    return {"messages": [AIMessage(f"answer to {said}", usage_metadata=usage)], "note": {"said": said}}


def graph(saver):
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def texts(state) -> list[str]:
    return [message.content for message in state["messages"]]


@pytest.fixture(params=["memory", "files"])
def place(request, tmp_path):
    with turnlog.open("memory:" if request.param == "memory" else tmp_path / "home") as home:
        yield home


# ── the suite ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_all_of_the_conformance_suite(backend, tmp_path):
    @checkpointer_test(name="turnlog")
    async def ours():
        async with TurnlogSaver("memory:" if backend == "memory" else tmp_path) as saver:
            yield saver

    report = asyncio.run(validate(ours))
    assert {name: result.failures for name, result in report.results.items() if result.failures} == {}
    passed = {name: result.tests_passed for name, result in report.results.items() if result.passed}
    assert (len(passed), sum(passed.values())) == (8, 81)


def test_a_thread_with_versions_of_another_saver_goes_on(place):
    theirs_version = InMemorySaver().get_next_version(None, None)
    saver = TurnlogSaver(place)
    versions = [theirs_version]
    for _ in range(12):
        versions.append(saver.get_next_version(versions[-1], None))
    assert versions == sorted(versions)
    assert len(set(versions)) == 13
    assert saver.get_next_version(None, None) == 1


# ── exactness ─────────────────────────────────────────────────────────────────────────────────────

Point = namedtuple("Point", "x y")


class Colour(Enum):
    RED = 1


ODD: list[Any] = [
    {"a": 1, "b": [1, 2.5, None, True, {"~": "~~"}], "": "ü\x00"},
    (1, (2, 3)), {1, 2}, b"bytes", datetime.datetime(2026, 1, 2, 3, tzinfo=datetime.UTC), Decimal("1.10"),
    uuid.UUID(int=5), {"t": (1, 2)}, {3: "three"}, 2**40, float(1), [], {}, "", None, True,
    [HumanMessage("hi", id="h"), {"not": "a message"}, (1,)],
    [AIMessage([{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "hm", "signature": "s" * 40}], id="x",
               tool_calls=[{"name": "bash", "args": {"command": "ls"}, "id": "c1"}],
               response_metadata={"model_name": "m", "deep": {"k": [1]}}, additional_kwargs={"z": 1})],
    [ToolMessage("out", tool_call_id="c1", name="bash", status="error", artifact={"a": (1, 2)})],
    [AIMessageChunk("part", id="p")], [SystemMessage("be brief"), RemoveMessage(id="gone")],
    [HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64,cHBw"}}])],
    [HumanMessage("lone \ud800 surrogate")], HumanMessage("by itself"), {"m": HumanMessage("inside")},
]  # fmt: skip


def shown(value: Any) -> str:
    """A value to the order of its keys, and the types of all that is in it."""
    if hasattr(value, "model_dump"):
        return f"{type(value).__name__}({shown(value.model_dump())})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(k)}: {shown(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}[" + ", ".join(map(shown, value)) + "]"
    return f"{type(value).__name__} {value!r}"


def put_all(saver, rounds):
    """The same story for both: channels that grow, stay, shrink and change in place."""
    saver_config, last = THREAD, empty_checkpoint()
    for step, values in enumerate(rounds):
        saver.put_writes(saver_config, [("odd", values)], f"task-{step}") if step else None
        checkpoint = create_checkpoint(last, None, step)
        checkpoint["channel_values"] = values
        checkpoint["channel_versions"] = dict.fromkeys(values, step + 1)
        metadata = {"source": "loop", "step": step, "parents": {}, "deep": {"k": [1, {"a": None}]}}
        saver_config = saver.put(saver_config, checkpoint, metadata, {})
        last = checkpoint


def told(saver) -> list[str]:
    rows = []
    for one in saver.list(THREAD):
        values, rest = one.checkpoint["channel_values"], {**one.checkpoint, "channel_values": None}
        rest.update(id=None, ts=None)
        writes = [(task, channel, shown(value)) for task, channel, value in one.pending_writes]
        rows.append(f"{shown(values)} {shown(rest)} {shown(one.metadata)} {writes} {one.parent_config is None}")
    return rows


def rounds():
    shared = HumanMessage("said once", id="s")
    grown = [shared]
    yield {"odd": list(ODD), "messages": list(grown), "same": {"k": [1]}}
    for number in range(6):
        grown.append(AIMessage(f"answer {number}", id=f"a{number}"))
        yield {"odd": list(ODD[: number + 3]), "messages": list(grown), "same": {"k": [1]}, "n": [number]}
    grown[0].content = "changed in place"
    yield {"messages": list(grown), "same": {"k": [1]}}
    grown[2].additional_kwargs["new"] = 1
    yield {"messages": [*grown[:1], *grown[3:], grown[2]], "other": [grown[2]]}
    yield {"messages": [], "same": {"k": [1.0]}}


@pytest.mark.parametrize("values", [{"odd": odd} for odd in ODD], ids=lambda values: repr(values)[:30])
def test_every_odd_value_is_as_sqlitesaver_gives_it(values, tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "theirs")) as theirs, TurnlogSaver(tmp_path / "ours") as ours:
        try:
            put_all(theirs, [values, values])
        except UnicodeEncodeError:
            return  # theirs refuses it
        put_all(ours, [values, values])
        assert told(ours) == told(theirs)
    with SqliteSaver.from_conn_string(str(tmp_path / "theirs")) as theirs, TurnlogSaver(tmp_path / "ours") as ours:
        assert told(ours) == told(theirs), "after a restart"


@pytest.mark.parametrize("wrapped", [False, True], ids=["plain", "encrypted"])
def test_a_story_of_changes_is_as_sqlitesaver_gives_it(wrapped, tmp_path):
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0" * 16) if wrapped else None
    with SqliteSaver.from_conn_string(str(tmp_path / "theirs")) as theirs:
        odd = [value for value in ODD if "\\ud800" not in repr(value)]
        ODD[:], before = odd, list(ODD)
        put_all(theirs, rounds())
        for _ in range(2):
            with TurnlogSaver(tmp_path / "ours", serde=serde) as ours:
                if not _:
                    put_all(ours, rounds())
                assert told(ours) == told(theirs)
        ODD[:] = before


def test_what_is_handed_out_may_be_changed(place):
    saver = TurnlogSaver(place)
    put_all(saver, [{"messages": [HumanMessage("a", id="1")], "note": {"k": [1]}}])
    first = saver.get_tuple(THREAD).checkpoint["channel_values"]
    first["messages"][0].content = "changed"
    first["note"]["k"].append(2)
    again = saver.get_tuple(THREAD).checkpoint["channel_values"]
    assert (again["messages"][0].content, again["note"]) == ("a", {"k": [1]})


def test_nothing_readable_of_an_encrypted_thread_reaches_the_disk(tmp_path):
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0" * 16)
    with TurnlogSaver(tmp_path, serde=serde) as saver:
        config = {"configurable": {"thread_id": "t1"}, "metadata": {"who": "VISIBLE"}}
        graph(saver).invoke({"messages": [HumanMessage("SECRET text")], "note": "VISIBLE"}, config)
        assert texts(graph(saver).get_state(THREAD).values) == ["SECRET text", "answer to SECRET text"]
    found = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for word in (b"SECRET", b"VISIBLE", b"answer", b"messages", b"note"):
        assert word not in found.replace(b'"type":"note"', b""), word


# ── a session of ours ─────────────────────────────────────────────────────────────────────────────


def test_a_program_goes_on_where_it_was(tmp_path):
    for number in (1, 2):
        with TurnlogSaver(tmp_path) as saver:
            state = graph(saver).invoke({"messages": [("user", f"question {number}")]}, THREAD)
    assert texts(state) == ["question 1", "answer to question 1", "question 2", "answer to question 2"]
    with turnlog.open(tmp_path) as home:
        session = home.resume("t1")
        assert [message.blocks[0].text for message in session.messages()] == texts(state)
        assert [message.role for message in session.messages()] == ["user", "assistant"] * 2
        assert session.usage().own.output_tokens == 4
        assert session.labels == {"framework": "langgraph", "thread_id": "t1"}
        exported = session.export("claude-code", tmp_path / "exported.jsonl")
        assert exported
    theirs.commands_see(tmp_path, "t1", "answer to question 2", 4)


def test_the_guide_runs(tmp_path):
    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    code = theirs.snippet("LangGraph").replace("~/.turnlog", str(tmp_path))
    exec(compile(code, "frameworks.md", "exec"), {"builder": builder})
    with turnlog.open(tmp_path) as home:
        assert [message.role for message in home.resume("t1").messages()] == ["user", "assistant"]


def test_every_message_is_there_once(tmp_path):
    long = "x" * 5000
    with TurnlogSaver(tmp_path) as saver:
        builder = StateGraph(State)
        builder.add_node("answer", lambda state: {"messages": [AIMessage(long)]})
        builder.add_edge(START, "answer")
        for _ in range(5):
            builder.compile(checkpointer=saver).invoke({"messages": [HumanMessage(long)]}, THREAD)
    [log] = (path.read_text() for path in tmp_path.rglob("*.jsonl"))
    assert log.count(long) == 10


def test_what_turnlog_does_to_the_conversation_the_graph_sees(place):
    saver = TurnlogSaver(place)
    run = graph(saver)
    for word in ("one", "two", "three"):
        run.invoke({"messages": [("user", word)]}, THREAD)
    session = place.resume("t1")
    session.user("by the way")
    assert texts(run.get_state(THREAD).values)[-1] == "by the way"
    session.refresh()
    session.edit(session.messages()[0], "[redacted]")
    session.compact("so far", keep=2)
    assert texts(run.get_state(THREAD).values) == ["so far", "answer to three", "by the way"]
    state = run.invoke({"messages": [("user", "four")]}, THREAD)
    assert texts(state) == ["so far", "answer to three", "by the way", "four", "answer to four"]
    session.refresh()
    assert [message.blocks[0].text for message in session.context()] == texts(state)
    session.rewind(to=session.messages()[1])
    assert 0 < len(texts(run.get_state(THREAD).values)) < len(texts(state))
    session.rewind(to=0)
    assert run.get_state(THREAD).values == {}


def test_an_edit_is_seen_in_every_checkpoint(place):
    saver = TurnlogSaver(place)
    run = graph(saver)
    run.invoke({"messages": [("user", "my password")]}, THREAD)
    session = place.resume("t1")
    session.edit(session.messages()[0], "[redacted]")
    run.invoke({"messages": [("user", "next")]}, THREAD)
    assert texts(run.get_state(THREAD).values)[0] == "[redacted]"


def test_time_travel_is_a_branch(place):
    saver = TurnlogSaver(place)
    run = graph(saver)
    for word in ("one", "two"):
        run.invoke({"messages": [("user", word)]}, THREAD)
    after_one = next(
        s for s in run.get_state_history(THREAD) if texts(s.values) == ["one", "answer to one"] and not s.next
    )
    state = run.invoke({"messages": [("user", "other")]}, after_one.config)
    assert texts(state) == ["one", "answer to one", "other", "answer to other"]
    session = place.resume("t1")
    assert [message.blocks[0].text for message in session.messages()] == texts(state)
    assert len(session.branches()) == 2
    fork = session.fork(id="t2")
    assert texts(run.get_state({"configurable": {"thread_id": fork.id}}).values) == texts(state)


def test_what_a_subgraph_hands_back_is_not_said_again(place):
    inner = StateGraph(State)
    inner.add_node("inside", lambda state: {"messages": [AIMessage("from inside")]})
    inner.add_edge(START, "inside")
    outer = StateGraph(State)
    outer.add_node("sub", inner.compile(checkpointer=True))
    outer.add_edge(START, "sub")
    run = outer.compile(checkpointer=TurnlogSaver(place))
    for word in ("one", "two"):
        state = run.invoke({"messages": [("user", word)]}, THREAD)
    assert texts(state) == ["one", "from inside", "two", "from inside"]
    assert [message.blocks[0].text for message in place.resume("t1").messages()] == texts(state)


def test_an_interrupt_comes_back(tmp_path):
    def ask(state: State) -> dict:
        return {"messages": [AIMessage(f"you said {interrupt({'api_key': 'k', 'q': '?'})}")]}

    def build(saver):
        builder = StateGraph(State)
        builder.add_node("ask", ask)
        builder.add_edge(START, "ask")
        return builder.compile(checkpointer=saver)

    with TurnlogSaver(tmp_path) as saver:
        build(saver).invoke({"messages": [("user", "go")]}, THREAD)
    with TurnlogSaver(tmp_path) as saver:
        [waiting] = build(saver).get_state(THREAD).interrupts
        assert waiting.value == {"api_key": "k", "q": "?"}
        state = build(saver).invoke(Command(resume="yes"), THREAD)
    assert texts(state) == ["go", "you said yes"]


def test_a_session_of_somebody_else_is_gone_on_with(place):
    with place.create(id="t1") as session:
        session.user("from a person")
        session.assistant("from an agent", model="m")
    saver = TurnlogSaver(place)
    run = graph(saver)
    before = run.get_state(THREAD)
    assert texts(before.values) == ["from a person", "from an agent"]
    assert [texts(one.values) for one in run.get_state_history(THREAD)] == [["from a person", "from an agent"]]
    run.invoke({"messages": [("user", "and now?")]}, THREAD)
    whole = ["from a person", "from an agent", "and now?", "answer to and now?"]
    for one in (run, graph(TurnlogSaver(place))):
        assert texts(one.get_state(THREAD).values) == whole
    assert [message.role for message in place.resume("t1").messages()] == ["user", "assistant", "user", "assistant"]
    run.invoke({"messages": [("user", "or so?")]}, before.config)
    assert texts(run.get_state(THREAD).values) == ["from a person", "from an agent", "or so?", "answer to or so?"]
    assert len(place.resume("t1").branches()) == 2
    place.resume("t1").rewind(to=place.resume("t1").path()[1])
    assert texts(graph(TurnlogSaver(place)).get_state(THREAD).values) == ["from a person", "from an agent"]


def test_pictures_and_files_that_others_sent_are_there(place):
    with place.create(id="t1") as session:
        session.user([Text("look"), Image(media_type="image/png", data=b"png"), File(url="https://x.example/a.pdf")])
        session.assistant([ToolCall(id="c", name="read", input={})])
        picture = Image(media_type="image/png", data=b"p" * 100_000)  # lies in a blob
        session.append(Message(role="tool", blocks=[ToolResult(call="c", content=[picture])]))
    run = graph(TurnlogSaver(place))
    run.invoke({"messages": [("user", "and now?")]}, THREAD)
    asked, _, result, *_ = run.get_state(THREAD).values["messages"]
    assert asked.content == [
        {"type": "text", "text": "look"},
        {"type": "image", "source_type": "base64", "mime_type": "image/png", "data": "cG5n"},
        {"type": "file", "source_type": "url", "url": "https://x.example/a.pdf"},
    ]
    assert [block["type"] for block in asked.content_blocks] == ["text", "image", "file"]
    [sent] = result.content
    assert b64decode(sent["data"]) == b"p" * 100_000


def test_prune_hides_and_delete_erases(tmp_path):
    with TurnlogSaver(tmp_path) as saver:
        run = graph(saver)
        for word in ("one", "two"):
            run.invoke({"messages": [("user", word)]}, THREAD)
        saver.prune(["t1"])
        assert len(list(saver.list(THREAD))) == 1
        assert texts(run.get_state(THREAD).values) == ["one", "answer to one", "two", "answer to two"]
        with pytest.raises(Invalid, match="strategy"):
            saver.prune(["t1"], strategy="some")
        saver.delete_thread("t1")
        assert not saver.sessions.home.exists("t1")
    assert b"answer to one" not in b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_refused_input_leaves_no_session_behind(place):
    with pytest.raises(Invalid, match="conflicts"):
        TurnlogSaver(place, conflicts="some")
    saver = TurnlogSaver(place)
    with pytest.raises(Invalid, match="strategy"):
        saver.prune(["t1"], strategy="some")
    for none in ({"thread_id": ""}, {"thread_id": None}, {}):
        with pytest.raises(Invalid, match="thread_id"):
            saver.put({"configurable": {"checkpoint_ns": "", **none}}, empty_checkpoint(), {}, {})
    with pytest.raises(TypeError):
        put_all(saver, [{"odd": object()}])
    assert place.sessions() == []


@pytest.mark.parametrize("thread_id", [0, 7, uuid.UUID(int=5)])
def test_a_thread_may_be_called_by_a_number_or_a_uuid(place, thread_id):
    config = {"configurable": {"thread_id": thread_id}}
    graph(TurnlogSaver(place)).invoke({"messages": [("user", "hi")]}, config)
    assert len(texts(graph(TurnlogSaver(place)).get_state(config).values)) == 2
    assert [info.id for info in place.sessions()] == [str(thread_id)]


# ── many at once ──────────────────────────────────────────────────────────────────────────────────

WORKER = """
import sys
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langchain_core.messages import HumanMessage
from turnlog import Conflict
from turnlog.adapters.langgraph import TurnlogSaver

home, conflicts, me = sys.argv[1], sys.argv[2], sys.argv[3]
thread = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
with TurnlogSaver(home, conflicts=conflicts) as saver:
    last = None
    for number in range(int(sys.argv[4])):
        while True:
            found = saver.get_tuple(thread) if conflicts == "raise" or last is None else last
            checkpoint = create_checkpoint(found.checkpoint if found else empty_checkpoint(), None, number)
            before = found.checkpoint["channel_values"].get("messages", []) if found else []
            checkpoint["channel_values"] = {"messages": [*before, HumanMessage(f"{me}:{number}", id=f"{me}:{number}")]}
            try:
                saver.put(found.config if found else thread, checkpoint, {"source": "loop", "step": number}, {})
            except Conflict:
                continue
            if conflicts == "branch":
                last = saver.get_tuple({"configurable": {**thread["configurable"], "checkpoint_id": checkpoint["id"]}})
            break
"""


@pytest.mark.parametrize("conflicts", ["raise", "branch"])
def test_eight_processes_lose_nothing(conflicts, tmp_path):
    each = 50
    command = [sys.executable, "-c", WORKER, str(tmp_path), conflicts]
    workers = [subprocess.Popen([*command, str(me), str(each)], env=os.environ) for me in range(8)]
    assert [worker.wait(300) for worker in workers] == [0] * 8
    wanted = {f"{me}:{number}" for me in range(8) for number in range(each)}
    with TurnlogSaver(tmp_path) as saver:
        if conflicts == "raise":
            found = [message.id for message in saver.get_tuple(THREAD).checkpoint["channel_values"]["messages"]]
            assert len(found) == len(set(found)) == 8 * each
            assert set(found) == wanted
        else:
            rows = list(saver.list(THREAD))
            assert len(rows) == 8 * each
            assert {row.checkpoint["channel_values"]["messages"][-1].id for row in rows} == wanted


def test_tasks_and_threads_share_one_saver(place):
    async def work():
        async with TurnlogSaver(place) as saver:
            run = graph(saver)
            configs = [{"configurable": {"thread_id": f"t{number}"}} for number in range(6)]
            for word in ("one", "two"):
                await asyncio.gather(*(run.ainvoke({"messages": [("user", word)]}, config) for config in configs))
            return [texts((await run.aget_state(config)).values) for config in configs]

    assert asyncio.run(work()) == [["one", "answer to one", "two", "answer to two"]] * 6


def test_the_second_of_two_is_told(place):
    saver, other = TurnlogSaver(place, conflicts="raise"), TurnlogSaver(place, conflicts="raise")
    put_all(saver, [{"n": 1}])
    found = other.get_tuple(THREAD)
    put_all_again = create_checkpoint(found.checkpoint, None, 1)
    saver.put(found.config, put_all_again, {"source": "loop", "step": 1}, {})
    late = create_checkpoint(found.checkpoint, None, 1)
    with pytest.raises(Conflict, match="the newest checkpoint is"):
        other.put(found.config, late, {"source": "loop", "step": 1}, {})


def test_the_log_is_what_the_format_says(tmp_path):
    with TurnlogSaver(tmp_path) as saver:
        graph(saver).invoke({"messages": [("user", "hi")]}, THREAD)
    [log] = (tmp_path / "sessions").iterdir()
    kinds = [json.loads(line).get("kind", json.loads(line)["type"]) for line in log.read_text().splitlines()]
    assert kinds.count("message") == 2
    assert {"langgraph.checkpoint", "langgraph.writes"} <= set(kinds)


def test_a_listing_holds_no_lock_while_it_waits_for_its_reader(tmp_path):
    with turnlog.open(tmp_path) as home:
        home.create(id="t1").user("said before LangGraph came")
        saver = TurnlogSaver(home)
        listing = saver.list(THREAD)
        assert next(listing).checkpoint["channel_values"]["messages"][0].content == "said before LangGraph came"

        async def another():
            return await asyncio.wait_for(saver.aput(THREAD, empty_checkpoint(), {}, {}), 20)

        assert asyncio.run(another())["configurable"]["checkpoint_id"]
        assert list(listing) == []
