"""`TurnlogSessionService`: the same sessions as ADK's own service gives, and what only a session of ours can do."""

import asyncio
import os
import subprocess
import sys

import pytest
from google.adk.agents import Agent
from google.adk.errors import StaleSessionError
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

import turnlog
from tests.adapters import theirs
from turnlog import Image, Invalid, Message, Text, ToolCall, ToolResult
from turnlog.adapters.adk import TurnlogSessionService

KEY = {"app_name": "app", "user_id": "ada", "session_id": "s1"}


def said(*parts, role="model", author="helper", **fields):
    return Event(author=author, invocation_id="i1", content=types.Content(role=role, parts=list(parts)), **fields)


def odd_events():
    call = types.FunctionCall(id="c1", name="bash", args={"command": "ls", "n": 1.0, "api_key": "k", "deep": {"~": []}})
    yield said(types.Part(text="hi"), role="user", author="user")
    yield said(types.Part(text="user"), role="user", author="user")
    yield said(
        types.Part(text="hm", thought=True, thought_signature=b"\xff\xfe" * 40),
        types.Part(text="so", thought_signature=b"\xfb\xef" * 40),
        types.Part(function_call=call, thought_signature=b"\x00"),
        model_version="gemini-3-pro",
        finish_reason="STOP",
        long_running_tool_ids={"c1", "b"},
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, cached_content_token_count=4, candidates_token_count=3, thoughts_token_count=2
        ),
    )
    for response in ({"result": "out"}, {"error": "no"}, {"a": [1, {"b": "long enough to be pointed at"}], "c": None}):
        answer = types.FunctionResponse(id="c1", name="bash", response=response)
        yield said(types.Part(function_response=answer), role="user")
    yield said(types.Part(inline_data=types.Blob(data=b"\xff\xfe\xfd", mime_type="image/png")), role="user")
    yield said(types.Part(file_data=types.FileData(file_uri="gs://a/b.pdf", mime_type="application/pdf")), role="user")
    yield said(
        types.Part(executable_code=types.ExecutableCode(code="print(1)", language="PYTHON")),
        types.Part(code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="1\n")),
    )
    yield said(types.Part(text=""), types.Part(text="two"), types.Part(text="two"), role=None, author="x")
    yield Event(author="helper", invocation_id="i2", actions=EventActions(state_delta={"k": [None, {"a": 1}]}))
    yield Event(author="user", content=types.Content(role="user", parts=[]), error_code="E", error_message="went wrong")
    yield Event(
        author="helper",
        custom_metadata={"~": {"~~": 1}, "big": 2**70, "tiny": 1e-300},
        actions=EventActions(agent_state={"n": 1}, end_of_agent=True, transfer_to_agent="b", artifact_delta={"f": 2}),
    )


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_every_odd_event_comes_back_as_adk_gives_it(backend, tmp_path):
    async def work():
        sqlite = SqliteSessionService(str(tmp_path / "adk.sqlite"))
        home = turnlog.open("memory:" if backend == "memory" else tmp_path / "home")
        state = {"s": {"token": "t"}, "app:a": [1.0, 1], "user:u": None}
        ours = TurnlogSessionService(home)
        sessions = [await service.create_session(**KEY, state=state) for service in (sqlite, ours)]
        for event in odd_events():
            event.timestamp = max(one.last_update_time for one in sessions)
            for service, session in zip((sqlite, ours), sessions, strict=True):
                await service.append_event(session, event.model_copy(deep=True))
        assert sessions[0].model_dump() == sessions[1].model_dump()
        again = TurnlogSessionService(home if backend == "memory" else turnlog.open(tmp_path / "home"))
        for config in (None, GetSessionConfig(num_recent_events=5)):
            found = [await service.get_session(**KEY, config=config) for service in (sqlite, again)]
            assert found[0].model_dump() == found[1].model_dump()
            assert [one.model_dump_json() for one in found[0].events] == [
                one.model_dump_json() for one in found[1].events
            ]

    asyncio.run(work())


def test_nothing_is_kept_twice(tmp_path):
    async def work():
        with TurnlogSessionService(tmp_path) as service:
            session = await service.create_session(**KEY)
            long = "said and done " * 100
            answer = types.FunctionResponse(id="c1", name="bash", response={"status": "ok", "report": long})
            await service.append_event(
                session, said(types.Part(text=long), types.Part(text="x", thought_signature=b"s"))
            )
            await service.append_event(session, said(types.Part(function_response=answer), role="user"))
            blob = types.Blob(data=b"\xff" * 3000, mime_type="image/png")
            await service.append_event(session, said(types.Part(inline_data=blob), role="user"))

    asyncio.run(work())
    [log] = (tmp_path / "sessions").glob("app*.jsonl")
    assert log.read_text().count("said and done ") == 200
    assert "____" not in log.read_text()


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    service = TurnlogSessionService(tmp_path)

    def create(**fields):
        return asyncio.run(service.create_session(**{"app_name": "a", "user_id": "u", **fields}))

    for fields in (
        {"app_name": ""},
        {"app_name": None},
        {"user_id": 3},
        {"user_id": ""},
        {"session_id": 3},
        {"state": 3},
        {"state": {3: "a key that is no text"}},
    ):
        with pytest.raises(Invalid) as error:
            create(**fields)
        assert error.value.hint
    with pytest.raises(Invalid, match="stale='no'"):
        TurnlogSessionService(stale="no")
    assert service.sessions.home.sessions() == []
    session = create(session_id="s1")
    for where, what in ((session, "no event"), (session, {"author": "user"}), (None, Event(author="user"))):
        with pytest.raises(Invalid) as error:
            asyncio.run(service.append_event(where, what))
        assert error.value.hint
    assert asyncio.run(service.get_session(app_name="a", user_id="u", session_id="s1")).events == []


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=10, candidates_token_count=2)
        content = types.Content(role="model", parts=[types.Part(text=f"{len(llm_request.contents)} contents")])
        yield LlmResponse(content=content, usage_metadata=usage, model_version="gemini-3-pro")


async def ask(service, text):
    agent = Agent(name="helper", model=Scripted())
    runner = Runner(app_name="app", agent=agent, session_service=service, auto_create_session=True)
    asked = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in runner.run_async(user_id="ada", session_id="s1", new_message=asked)]


def test_a_program_goes_on_where_it_was(tmp_path):
    for number in (1, 2):
        with TurnlogSessionService(tmp_path) as service:
            [answer] = asyncio.run(ask(service, f"question {number}"))
    assert answer.content.parts[0].text == "3 contents"
    with turnlog.open(tmp_path) as home:
        session = home.resume("app/ada/s1")
        assert [message.role for message in session.messages()] == ["user", "assistant"] * 2
        assert session.messages()[3].blocks[0].text == "3 contents"
        assert (session.usage().own.input_tokens, session.usage().own.output_tokens) == (20, 4)
        assert list(session.usage().models) == ["gemini-3-pro"]
        assert session.labels == {"framework": "adk", "app": "app", "user": "ada", "session": "s1"}
        assert session.export("claude-code", tmp_path / "exported.jsonl")
    theirs.commands_see(tmp_path, "app/ada/s1", "3 contents", 4)


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path))
    names = {"Runner": Runner, "agent": Agent(name="helper", model=Scripted())}
    exec(compile(theirs.snippet("Google ADK"), "frameworks.md", "exec"), names)
    assert names["runner"].session_service.stale == "raise"
    asyncio.run(names["runner"].session_service.create_session(**KEY))
    with turnlog.open(tmp_path) as home:
        assert [info.id for info in home.sessions()] == ["app/ada/s1"]


def test_what_turnlog_does_to_the_conversation_adk_sees(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            service = TurnlogSessionService(home)
            session = await service.create_session(**KEY)
            for number, word in enumerate(("one", "two", "three")):
                delta = EventActions(state_delta={"n": number})
                await service.append_event(
                    session, said(types.Part(text=word), role="user", author="user", actions=delta)
                )
                await service.append_event(session, Event(author="helper", invocation_id=word))

            async def seen():
                found = await service.get_session(**KEY)
                return found, [one.content.parts[0].text for one in found.events if one.content]

            ours = home.resume("app/ada/s1")
            ours.assistant([Text("from elsewhere"), ToolCall(id="c", name="bash", input={"a": 1})])
            picture = Image(media_type="image/png", data=b"p" * 100_000)  # lies in a blob
            ours.append(Message(role="tool", blocks=[ToolResult(call="c", content=[Text("out"), picture])]))
            found, _ = await seen()
            assert [one.author for one in found.events[-2:]] == ["adk", "user"]
            assert found.events[-2].content.parts[1].function_call.args == {"a": 1}
            assert found.events[-1].content.parts[0].function_response.response == {"output": "out"}
            assert found.events[-1].content.parts[0].function_response.name == "bash"
            [image] = found.events[-1].content.parts[0].function_response.parts
            assert image.inline_data.data == b"p" * 100_000
            ours.edit(ours.messages()[0], "[redacted]")
            found, texts = await seen()
            assert texts[0] == "[redacted]"
            assert len(found.events) == 8
            ours.compact("so far", keep=3)
            found, texts = await seen()
            assert texts[:2] == ["so far", "three"]
            assert len(found.events) == 5  # the silent one behind `three` is there as well
            ours.rewind(to=ours.path()[1])
            found, texts = await seen()
            assert (texts, found.state) == (["one"], {"n": 0})
            fork = ours.fork(id="app/ada/s2")
            assert len(fork.messages()) == 1
            listed = (await service.list_sessions(app_name="app")).sessions
            assert sorted(one.id for one in listed) == ["s1", "s2"]
            elsewhere = home.create(agent="claude-code")
            elsewhere.user("hello")
            elsewhere.fork(id="app/ada/s3")
            third = await service.get_session(app_name="app", user_id="ada", session_id="s3")
            await service.append_event(third, said(types.Part(text="go on"), role="user", author="user"))
            again = await service.get_session(app_name="app", user_id="ada", session_id="s3")
            assert [one.content.parts[0].text for one in again.events] == ["hello", "go on"]
            assert len((await service.list_sessions(app_name="app")).sessions) == 3

    asyncio.run(work())


def test_a_rewind_of_adk_is_a_branch(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            service = TurnlogSessionService(home)
            for word in ("one", "two"):
                await ask(service, word)
            second = (await service.get_session(**KEY)).events[2].invocation_id
            runner = Runner(app_name="app", agent=Agent(name="helper", model=Scripted()), session_service=service)
            await runner.rewind_async(user_id="ada", session_id="s1", rewind_before_invocation_id=second)
            session = home.resume("app/ada/s1")
            assert len(session.messages()) == 2
            assert len(session.branches()) == 2
            assert len((await service.get_session(**KEY)).events) == 5

    asyncio.run(work())


def test_an_event_that_is_sent_again_counts_once(tmp_path):
    async def work():
        service = TurnlogSessionService(tmp_path)
        session = await service.create_session(**KEY)
        event = said(types.Part(text="a"), role="user", actions=EventActions(state_delta={"k": 1}))
        other = said(types.Part(text="b"), role="user", id=event.id, timestamp=event.timestamp)
        for one in (event, event.model_copy(deep=True), other):
            await service.append_event(session, one)
        found = await service.get_session(**KEY)
        assert [one.content.parts[0].text for one in found.events] == ["a", "b"]
        assert len(session.events) == 2

    asyncio.run(work())


def test_a_long_state_is_listed_as_well(tmp_path):
    async def work():
        service = TurnlogSessionService(tmp_path)
        session = await service.create_session(**KEY, state={"long": "x" * 100_000})
        await service.append_event(session, said(types.Part(text="a")))
        [listed] = (await TurnlogSessionService(tmp_path).list_sessions(app_name="app")).sessions
        assert (listed.state, listed.last_update_time) == (session.state, session.last_update_time)

    asyncio.run(work())


WORKER = """
import asyncio, sys
from google.adk.errors import StaleSessionError
from google.adk.events import Event
from google.genai import types
from turnlog.adapters.adk import TurnlogSessionService

async def main():
    service = TurnlogSessionService(sys.argv[1], stale=sys.argv[2])
    key = {"app_name": "app", "user_id": "ada", "session_id": "s1"}
    session = await service.get_session(**key)
    for number in range(50):
        text = f"{sys.argv[3]}:{number}"
        event = Event(author="user", content=types.Content(role="user", parts=[types.Part(text=text)]))
        event.actions.state_delta = {text: number, f"app:{text}": number}
        try:
            await service.append_event(session, event)
        except StaleSessionError:
            session = await service.get_session(**key)
        else:
            print(text)

asyncio.run(main())
"""


@pytest.mark.parametrize("stale", ["append", "raise"])
def test_eight_processes_keep_what_was_acknowledged(stale, tmp_path):
    asyncio.run(TurnlogSessionService(tmp_path).create_session(**KEY))
    command = [sys.executable, "-c", WORKER, str(tmp_path), stale]
    workers = [
        subprocess.Popen([*command, str(me)], stdout=subprocess.PIPE, text=True, env=os.environ) for me in range(8)
    ]
    told = " ".join(worker.communicate(timeout=300)[0] for worker in workers).split()
    assert [worker.returncode for worker in workers] == [0] * 8
    found = asyncio.run(TurnlogSessionService(tmp_path).get_session(**KEY))
    kept = [event.content.parts[0].text for event in found.events]
    assert sorted(kept) == sorted(told)
    assert len(set(kept)) == len(kept)
    assert {key for key in found.state if not key.startswith("app:")} == set(told)
    assert {key.removeprefix("app:") for key in found.state if key.startswith("app:")} == set(told)
    if stale == "append":
        assert len(kept) == 400


def test_an_event_of_a_slow_clock_makes_other_copies_stale(tmp_path):
    async def work():
        with turnlog.open(tmp_path) as home:
            service = TurnlogSessionService(home)
            await service.create_session(**KEY)
            here, there = [await service.get_session(**KEY) for _ in range(2)]
            slow = said(types.Part(text="from a machine that is behind"), timestamp=here.last_update_time - 5)
            await service.append_event(there, slow)
            with pytest.raises(StaleSessionError):
                await service.append_event(here, said(types.Part(text="has not seen that")))
            assert len((await service.get_session(**KEY)).events) == 1

    asyncio.run(work())
