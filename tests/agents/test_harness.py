"""The harness itself: each agent runs, keeps a session, and sends it again when it resumes."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.agent import Agent, Failed
from tests.agents.drive import AGENTS
from tests.agents.provider import Provider
from tests.agents.record import workspace
from tests.agents.resumed import heard, resume_and_capture
from tests.agents.script import Call, Result, Text, Turn, Usage, flat, say

ASKED = "Was steht in notes.txt? 日本語 👩‍💻"


@pytest.fixture(params=AGENTS.values(), ids=AGENTS)
def agent(request: pytest.FixtureRequest) -> Agent:
    return request.param


@pytest.fixture
def home(tmp_path: Path) -> Path:
    workspace(tmp_path / "project")
    return tmp_path


def test_the_provider_sees_what_was_asked_and_the_session_is_sent_again(agent: Agent, home: Path):
    project = home / "project"
    look = Call("call_0001", *agent.shell("cat notes.txt"))
    fail = Call("call_0002", *agent.shell("echo oops >&2; exit 3"))
    with Provider(
        Turn([Text("I look."), look], Usage(input=10)), Turn([fail]), say("Three lines, größer ✓")
    ) as provider:
        agent.invoke(home, provider, project, agent.run(ASKED))
        asked = [flat(heard(agent, request.conversation)) for request in provider.main]
        assert provider.left == 0
        # opencode looks for packages of its own before anything else.
        assert provider.unknown == [] or agent.name == "opencode"

    assert asked[0] == [("user", Text(ASKED))]
    assert ("assistant", look) in asked[1]
    [result] = [block for _, block in asked[1] if isinstance(block, Result)]
    assert result.call == look.id
    assert "one\ntwo\nthree" in result.text

    again = flat(resume_and_capture(agent, home, agent.latest(home), project, "And now?"))
    said = [(role, block) for role, block in again if not isinstance(block, Result)]
    assert said == [
        ("user", Text(ASKED)),
        ("assistant", Text("I look.")),
        ("assistant", look),
        ("assistant", fail),
        ("assistant", Text("Three lines, größer ✓")),
        ("user", Text("And now?")),
    ]
    results = {block.call: block.text for _, block in again if isinstance(block, Result)}
    assert list(results) == [look.id, fail.id]
    assert "one\ntwo\nthree" in results[look.id]
    assert "oops" in results[fail.id]


def test_a_resumed_session_grows_where_it_lies(agent: Agent, home: Path):
    with Provider(say("First.")) as provider:
        agent.invoke(home, provider, home / "project", agent.run("First?"))
    files, session = agent.sessions(home), agent.latest(home)
    resume_and_capture(agent, home, session, home / "project", "Second?", answer="Second.")
    assert agent.sessions(home) == files
    assert agent.latest(home) == session
    third = flat(resume_and_capture(agent, home, session, home / "project", "Third?"))
    texts = ["First?", "First.", "Second?", "Second.", "Third?"]
    assert [block for _, block in third] == [Text(text) for text in texts]


def test_a_session_that_does_not_exist_is_not_resumed(agent: Agent, home: Path):
    nobody = "019a0000-0000-7000-8000-000000000000"
    missing = {"opencode": "ses_000000000000aaaaaaaaaaaaaa"}.get(agent.name, nobody)
    with pytest.raises(Failed):
        resume_and_capture(agent, home, missing, home / "project", "Hello?")


def test_opencode_takes_in_what_it_exported(home: Path, tmp_path_factory: pytest.TempPathFactory):
    agent = AGENTS["opencode"]
    with Provider(say("First.")) as provider:
        agent.invoke(home, provider, home / "project", agent.run("First?"))
        session = agent.latest(home)
        exported = home / "session.json"
        exported.write_text(agent.invoke(home, provider, home / "project", ["export", session]).out)

    other = tmp_path_factory.mktemp("other")
    workspace(other / "project")
    conversation = resume_and_capture(agent, other, exported, other / "project", "Second?")
    assert [block for _, block in flat(conversation)] == [Text("First?"), Text("First."), Text("Second?")]
    with Provider() as provider:
        listed = json.loads(agent.invoke(other, provider, other / "project", agent.listing() or []).out)
    assert [one["id"] for one in listed] == [session]
    with closing(sqlite3.connect(f"file:{agent.sessions(other)[0]}?mode=ro", uri=True)) as database:
        [(folder,)] = database.execute("SELECT directory FROM session").fetchall()
    assert folder == str(other / "project")


def test_gemini_cli_lists_a_session(home: Path):
    agent = AGENTS["gemini-cli"]
    with Provider(say("First.")) as provider:
        agent.invoke(home, provider, home / "project", agent.run("First?"))
        listed = agent.invoke(home, provider, home / "project", agent.listing() or []).out
    assert agent.latest(home) in listed
