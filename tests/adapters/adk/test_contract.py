"""What ADK asks of a session service, from its documentation and from what its own services do. Those pass it, too."""

import asyncio

import pytest
from google.adk.agents import Agent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.events.event_actions import EventActions
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from turnlog.adapters.adk import TurnlogSessionService

pytestmark = pytest.mark.asyncio
ADA = {"app_name": "app", "user_id": "ada"}
LASTING = ["sqlite", "turnlog memory", "turnlog files", "turnlog append"]


def made(name, folder):
    if name == "memory":
        return InMemorySessionService()
    if name == "sqlite":
        return SqliteSessionService(str(folder / "adk.sqlite"))
    home = "memory:" if name == "turnlog memory" else folder / "home"
    return TurnlogSessionService(home, stale="append" if name == "turnlog append" else "raise")


@pytest.fixture(params=["memory", *LASTING])
def service(request, tmp_path):
    return made(request.param, tmp_path)


@pytest.fixture(params=LASTING[:3])
def strict(request, tmp_path):
    return made(request.param, tmp_path)


def event(text="hi", *, at=None, author="user", invocation="i1", **state):
    content = None if text is None else types.Content(role="user", parts=[types.Part(text=text)])
    made = Event(author=author, invocation_id=invocation, content=content, actions=EventActions(state_delta=state))
    if at is not None:
        made.timestamp = at
    return made


async def read(service, session, **config):
    wanted = GetSessionConfig(**config) if config else None
    return await service.get_session(**ADA, session_id=session.id, config=wanted)


def texts(session):
    return [event.content.parts[0].text for event in session.events]


# ── making and finding ────────────────────────────────────────────────────────────────────────────


async def test_a_new_session_is_empty_and_is_found(service):
    session = await service.create_session(**ADA, session_id="s1", state={"k": 1})
    assert (session.id, session.app_name, session.user_id) == ("s1", "app", "ada")
    assert (session.state, session.events) == ({"k": 1}, [])
    assert await read(service, session) == session


async def test_an_id_is_made_where_none_is_given(service):
    found = {(await service.create_session(**ADA, session_id=given)).id for given in (None, None, "", "  ")}
    assert len(found) == 4
    assert all(found)


async def test_an_id_is_stripped(service):
    session = await service.create_session(**ADA, session_id="  s1 ")
    assert session.id == "s1"
    assert (await service.get_session(**ADA, session_id=" s1")).id == "s1"
    await service.delete_session(**ADA, session_id="s1 ")
    assert await read(service, session) is None


async def test_there_is_one_session_of_an_id(service):
    session = await service.create_session(**ADA, session_id="s1", state={"k": 1})
    await service.append_event(session, event())
    for again in ("s1", " s1 "):
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**ADA, session_id=again, state={"k": 2})
    assert texts(await read(service, session)) == ["hi"]
    assert (await read(service, session)).state == {"k": 1}
    await service.create_session(app_name="app", user_id="bob", session_id="s1")
    await service.create_session(app_name="other", user_id="ada", session_id="s1")


async def test_what_is_not_there_is_none(service):
    await service.create_session(**ADA, session_id="s1")
    for app, user, name in (("app", "ada", "s"), ("app", "ada", "s11"), ("app", "bob", "s1"), ("ap", "ada", "s1")):
        assert await service.get_session(app_name=app, user_id=user, session_id=name) is None


@pytest.mark.parametrize("odd", ["a/b", "a%2Fb", "..", "ü \u2028.", "a:b", "latest", "-x", "x" * 300])
async def test_any_text_is_an_id(service, odd):
    key = {"app_name": odd, "user_id": odd, "session_id": odd}
    session = await service.create_session(**key, state={"app:a": 1, "user:u": 2, "s": 3})
    await service.append_event(session, event())
    assert (await service.get_session(**key)).state == {"app:a": 1, "user:u": 2, "s": 3}
    [listed] = (await service.list_sessions(app_name=odd, user_id=odd)).sessions
    assert (listed.app_name, listed.user_id, listed.id) == (odd, odd, odd)


async def test_ids_of_several_parts_do_not_run_together(service):
    for app, user, name in (("a", "b/c", "d"), ("a/b", "c", "d"), ("a", "b", "c/d")):
        await service.create_session(app_name=app, user_id=user, session_id=name, state={"app:x": app})
    assert [one.user_id for one in (await service.list_sessions(app_name="a")).sessions] == ["b/c", "b"]
    assert (await service.get_session(app_name="a/b", user_id="c", session_id="d")).state == {"app:x": "a/b"}


# ── events ────────────────────────────────────────────────────────────────────────────────────────


async def test_events_come_back_in_order_with_their_ids(service):
    session = await service.create_session(**ADA)
    sent = [event(f"e{number}", at=session.last_update_time + number) for number in range(5)]
    for one in sent:
        assert await service.append_event(session, one) is one
    found = await read(service, session)
    assert texts(found) == ["e0", "e1", "e2", "e3", "e4"]
    assert [one.id for one in found.events] == [one.id for one in sent] == [one.id for one in session.events]
    assert found.events == sent


async def test_the_time_of_a_session_is_that_of_its_last_event(service):
    session = await service.create_session(**ADA)
    assert session.last_update_time > 0
    one = event(at=session.last_update_time + 100)
    await service.append_event(session, one)
    assert session.last_update_time == one.timestamp == (await read(service, session)).last_update_time
    [listed] = (await service.list_sessions(**ADA)).sessions
    assert listed.last_update_time == one.timestamp


async def test_a_partial_event_is_not_kept(service):
    session = await service.create_session(**ADA)
    one = event(k=1)
    one.partial = True
    assert await service.append_event(session, one) is one
    assert (session.events, session.state) == ([], {})
    assert (await read(service, session)).events == []


async def test_an_event_needs_its_session(service):
    session = await service.create_session(**ADA)
    await service.delete_session(**ADA, session_id=session.id)
    with pytest.raises(SessionNotFoundError):
        await service.append_event(session, event(**{"app:k": 1, "user:k": 1}))
    assert await read(service, session) is None
    assert (await service.create_session(**ADA)).state == {}


async def test_an_event_may_say_nothing(service):
    session = await service.create_session(**ADA)
    for text in (None, "a", None, None, "b", None):
        await service.append_event(session, event(text, k=text))
    found = await read(service, session)
    assert [one.content is None for one in found.events] == [True, False, True, True, False, True]
    assert found.state == {"k": None}


async def test_the_newest_events(service):
    session = await service.create_session(**ADA)
    for number in range(6):
        await service.append_event(session, event(f"e{number}", at=session.last_update_time + 1, last=number))
    for count, expected in ((0, 0), (1, 1), (3, 3), (6, 6), (99, 6)):
        found = await read(service, session, num_recent_events=count)
        assert texts(found) == [f"e{number}" for number in range(6 - expected, 6)]
        assert found.state == {"last": 5}
    with pytest.raises(ValueError, match="num_recent_events"):
        GetSessionConfig(num_recent_events=-1)


async def test_events_since(service):
    session = await service.create_session(**ADA)
    start = session.last_update_time
    for number in range(1, 6):
        await service.append_event(session, event(f"e{number}", at=start + number))
    assert texts(await read(service, session, after_timestamp=start + 3)) == ["e3", "e4", "e5"]
    assert texts(await read(service, session, after_timestamp=start + 2.5)) == ["e3", "e4", "e5"]
    assert texts(await read(service, session, after_timestamp=start + 2, num_recent_events=2)) == ["e4", "e5"]
    assert texts(await read(service, session, after_timestamp=start + 5, num_recent_events=4)) == ["e5"]


async def test_what_is_given_out_is_a_copy(service):
    session = await service.create_session(**ADA, state={"deep": {"k": [1]}, "app:a": {"k": 1}})
    found = await read(service, session)
    found.state["new"] = 1
    found.state["deep"]["k"].append(2)
    found.state["app:a"]["k"] = 2
    found.events.append(event())
    again = await read(service, session)
    assert (again.state, again.events) == ({"deep": {"k": [1]}, "app:a": {"k": 1}}, [])


# ── state ─────────────────────────────────────────────────────────────────────────────────────────


async def test_state_is_the_sessions_the_users_or_the_apps(service):
    first = await service.create_session(**ADA, state={"app:a": 1, "user:u": 1, "s": 1, "temp:t": 1})
    assert {key: first.state.get(key) for key in ("app:a", "user:u", "s")} == {"app:a": 1, "user:u": 1, "s": 1}
    same = await service.create_session(**ADA)
    assert same.state == {"app:a": 1, "user:u": 1}
    other = await service.create_session(app_name="app", user_id="bob")
    assert other.state == {"app:a": 1}
    assert (await service.create_session(app_name="else", user_id="ada")).state == {}
    await service.append_event(first, event(**{"app:a": 2, "user:u": 2, "s": 2, "app:new": True}))
    assert (await read(service, first)).state == {"app:a": 2, "user:u": 2, "s": 2, "app:new": True}
    assert (await read(service, same)).state == {"app:a": 2, "user:u": 2, "app:new": True}
    found = await service.get_session(app_name="app", user_id="bob", session_id=other.id)
    assert found.state == {"app:a": 2, "app:new": True}


async def test_what_is_only_for_now_is_not_kept(service):
    session = await service.create_session(**ADA)
    one = event(**{"temp:t": 1, "s": 2})
    await service.append_event(session, one)
    assert session.state == {"temp:t": 1, "s": 2}
    assert one.actions.state_delta == {"s": 2}
    found = await read(service, session)
    assert found.state == {"s": 2}
    assert found.events[0].actions.state_delta == {"s": 2}


async def test_state_is_any_json(service):
    state = {
        "none": None, "no": False, "n": 1, "f": 1.5, "zero": 0.0, "long": 2**53, "words": "ü\u2028\x00", "": "no name",
        "deep": {"a": [{"b": None}, []], "~": {"~~": 1}}, "api_key": "k", "token": {"password": "p"}, "list": [1, "2"],
    }  # fmt: skip
    session = await service.create_session(**ADA, state=state)
    assert session.state == state
    changed = {key: [value] for key, value in state.items()}
    assert (await read(service, session)).state == state
    await service.append_event(session, event(**changed))
    assert (await read(service, session)).state == changed
    [listed] = (await service.list_sessions(**ADA)).sessions
    assert listed.state == changed


async def test_the_state_of_a_user_alone(service):
    assert await service.get_user_state(**ADA) == {}
    session = await service.create_session(**ADA, state={"user:a": {"b": 1}, "app:x": 1, "s": 1})
    await service.append_event(session, event(**{"user:c": None}))
    found = await service.get_user_state(**ADA)
    assert found == {"a": {"b": 1}, "c": None}
    found["a"]["b"] = 2
    assert (await service.get_user_state(**ADA))["a"] == {"b": 1}
    assert await service.get_user_state(app_name="app", user_id="bob") == {}


# ── listing and deleting ──────────────────────────────────────────────────────────────────────────


async def test_a_listing_has_the_newest_last_and_no_events(service):
    for user, name in (("ada", "s1"), ("bob", "s2"), ("ada", "s3")):
        session = await service.create_session(app_name="app", user_id=user, session_id=name, state={"user:u": user})
        await service.append_event(session, event(n=name, **{"app:last": name}))
    first = await service.get_session(**ADA, session_id="s1")
    await service.append_event(first, event(at=first.last_update_time + 100))
    every = (await service.list_sessions(app_name="app")).sessions
    assert [(one.id, one.user_id) for one in every] == [("s2", "bob"), ("s3", "ada"), ("s1", "ada")]
    assert [one.state for one in every] == [{"n": one.id, "user:u": one.user_id, "app:last": "s3"} for one in every]
    assert all(one.events == [] for one in every)
    assert [one.id for one in (await service.list_sessions(**ADA)).sessions] == ["s3", "s1"]
    assert (await service.list_sessions(app_name="else")).sessions == []
    assert (await service.list_sessions(app_name="app", user_id="carol")).sessions == []


async def test_those_of_the_same_moment_are_in_order(service):
    for user, name in (("b", "s2"), ("a", "s3"), ("b", "s1")):
        session = await service.create_session(app_name="app", user_id=user, session_id=name)
        await service.append_event(session, event(at=4e9))
    found = (await service.list_sessions(app_name="app")).sessions
    assert [(one.user_id, one.id) for one in found] == [("a", "s3"), ("b", "s1"), ("b", "s2")]


async def test_delete_erases_one_session_and_no_shared_state(service):
    for name in ("s1", "s2"):
        await service.create_session(**ADA, session_id=name, state={"app:a": 1, "user:u": name, "s": 1})
    await service.delete_session(**ADA, session_id="s1")
    await service.delete_session(**ADA, session_id="s1")
    await service.delete_session(**ADA, session_id="never")
    assert [one.id for one in (await service.list_sessions(**ADA)).sessions] == ["s2"]
    again = await service.create_session(**ADA, session_id="s1")
    assert (again.state, again.events) == ({"app:a": 1, "user:u": "s2"}, [])


# ── several at once ───────────────────────────────────────────────────────────────────────────────


async def test_sessions_are_written_side_by_side(service):
    sessions = [await service.create_session(**ADA) for _ in range(4)]

    async def write(session):
        for number in range(5):
            await service.append_event(session, event(f"e{number}", **{f"user:{session.id}": number}))

    await asyncio.gather(*map(write, sessions))
    for session in sessions:
        assert texts(await read(service, session)) == [f"e{number}" for number in range(5)]
    assert await service.get_user_state(**ADA) == {session.id: 4 for session in sessions}


async def test_a_stale_session_is_refused_and_nothing_of_it_kept(strict):
    first = await strict.create_session(**ADA, state={"k": 0})
    second = await read(strict, first)
    await strict.append_event(first, event("first", k=1))
    with pytest.raises(StaleSessionError):
        await strict.append_event(second, event("second", k=2, **{"app:k": 2, "user:k": 2}))
    found = await read(strict, first)
    assert (texts(found), found.state) == (["first"], {"k": 1})
    assert second.events == []
    await strict.append_event(found, event("third"))
    assert texts(await read(strict, first)) == ["first", "third"]


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────


class Scripted(BaseLlm):
    """Answers with how many contents it was asked with."""

    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        content = types.Content(role="model", parts=[types.Part(text=f"{len(llm_request.contents)} contents")])
        yield LlmResponse(content=content)


async def run(service, session_id, text):
    agent = Agent(name="helper", model=Scripted(), output_key="said")
    runner = Runner(app_name="app", agent=agent, session_service=service)
    asked = types.Content(role="user", parts=[types.Part(text=text)])
    return [one async for one in runner.run_async(user_id="ada", session_id=session_id, new_message=asked)], runner


async def test_a_run_is_kept(service):
    session = await service.create_session(**ADA)
    for turn in range(3):
        [answer], _ = await run(service, session.id, f"q{turn}")
        assert answer.content.parts[0].text == f"{2 * turn + 1} contents"
    found = await read(service, session)
    assert texts(found) == ["q0", "1 contents", "q1", "3 contents", "q2", "5 contents"]
    assert found.state["said"] == "5 contents"


async def test_a_rewind_takes_events_and_state_back(service):
    session = await service.create_session(**ADA)
    for turn in range(3):
        _, runner = await run(service, session.id, f"q{turn}")
    second = (await read(service, session)).events[2].invocation_id
    await runner.rewind_async(user_id="ada", session_id=session.id, rewind_before_invocation_id=second)
    found = await read(service, session)
    assert found.state["said"] == "1 contents"
    assert len(found.events) == 7
    assert found.events[-1].actions.rewind_before_invocation_id == second
    [answer], _ = await run(service, session.id, "again")
    assert answer.content.parts[0].text == "3 contents"
    found = await read(service, session)
    assert len(found.events) == 9
    assert [one.id for one in (await read(service, session, num_recent_events=4)).events] == [
        one.id for one in found.events[-4:]
    ]
    first = found.events[0].invocation_id
    await runner.rewind_async(user_id="ada", session_id=session.id, rewind_before_invocation_id=first)
    [answer], _ = await run(service, session.id, "anew")
    assert answer.content.parts[0].text == "1 contents"
    assert len((await read(service, session)).events) == 12


async def test_an_event_that_comes_again_does_not_bring_its_state_back(service):
    session = await service.create_session(**ADA)
    first = event("one", at=1.0, x=1)
    await service.append_event(session, first)
    await service.append_event(session, event("two", at=2.0, x=2))
    again = await read(service, session)
    if not isinstance(service, TurnlogSessionService):
        pytest.skip("their own services store it twice, or refuse it")
    await service.append_event(again, first)
    assert (await read(service, session)).state == {"x": 2}
    assert texts(await read(service, session)) == ["one", "two"]
    listed = (await service.list_sessions(**ADA)).sessions
    assert [(one.state, one.last_update_time) for one in listed] == [({"x": 2}, 2.0)]


async def test_the_listing_has_what_every_process_appended(tmp_path):
    one, other = made("turnlog append", tmp_path), made("turnlog append", tmp_path)
    session = await one.create_session(**ADA)
    theirs = await read(other, session)
    await one.append_event(session, event("one", a=1))
    await other.append_event(theirs, event("two", b=2))
    await one.append_event(session, event("three", c=3))
    [listed] = (await other.list_sessions(**ADA)).sessions
    assert listed.state == {"a": 1, "b": 2, "c": 3} == (await read(one, session)).state
