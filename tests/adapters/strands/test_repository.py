"""`TurnlogSessionRepository`: Strands' own tests, the same messages, and what only a session of ours can do."""

import json
import os
import subprocess
import sys

import pytest
from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.exceptions import SessionException
from strands.types.session import Session, SessionAgent, SessionMessage, SessionType

import turnlog
from tests.adapters import theirs
from turnlog import Image, Invalid, Message, Text, ToolCall, ToolResult
from turnlog.adapters.strands import TurnlogSessionManager, TurnlogSessionRepository


def test_the_tests_of_strands(tmp_path):
    found = theirs.run("strands", tmp_path, ["tests/strands/session/test_repository_session_manager.py"])
    assert {name for name, how in found.items() if how != "passed"} == set()
    assert len(found) == 51


ODD = [
    {"role": "user", "content": [{"text": "hi"}], "tracking_id": "t1"},
    {"content": [{"text": "keys in another order"}, {"text": ""}], "role": "user"},
    {"role": "user", "content": []},
    {
        "role": "assistant",
        "content": [
            {"reasoningContent": {"reasoningText": {"text": "so", "signature": "s" * 80}}},
            {"reasoningContent": {"redactedContent": b"\xff\x00"}},
            {"text": "user"},
            {
                "toolUse": {
                    "toolUseId": "c1",
                    "name": "bash",
                    "input": {"b": 1.0, "api_key": "k", "~": [{"~": "0.text"}]},
                }
            },
            {"toolUse": {"toolUseId": "c2", "name": "bash", "input": {"long": 2**70}}},
        ],
        "metadata": {"usage": {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}, "custom": {"n": None}},
    },
    {
        "role": "user",
        "content": [
            {
                "toolResult": {
                    "toolUseId": "c1",
                    "status": "success",
                    "content": [{"json": {"a": [1, None, "long " * 9]}}],
                }
            },
            {
                "toolResult": {
                    "toolUseId": "c2",
                    "status": "error",
                    "content": [{"text": "no"}, {"text": "x\x00ü\u2028"}],
                }
            },
        ],
    },
    {
        "role": "user",
        "content": [
            {"image": {"format": "png", "source": {"bytes": b"\xff\xd8" * 30}}},
            {"document": {"format": "pdf", "name": "a", "source": {"bytes": b"pdf"}, "citations": {"enabled": True}}},
            {"video": {"format": "mp4", "source": {"location": {"type": "s3", "uri": "s3://a/b"}}}},
            {"cachePoint": {"type": "default"}},
            {"guardContent": {"text": {"text": "look at this", "qualifiers": ["query"]}}},
            {"ofNextYear": {"deep": [{"x": b"bytes"}]}},
        ],
    },
    {
        "role": "assistant",
        "content": [{"text": "lone \ud800 surrogate"}, {"citationsContent": {"content": [{"text": "c"}]}}],
    },
]


def begun(repository, session="s1", agent="a1"):
    if repository.read_session(session) is None:
        repository.create_session(Session(session, SessionType.AGENT))
    state = {"n": 1, "token": "t", "deep": {"~": 2**70}}
    repository.create_agent(session, SessionAgent(agent, state, {"removed_message_count": 0}, {"bytes": b"\xff"}))
    return repository


@pytest.mark.parametrize("backend", ["memory", "files"])
def test_every_odd_message_comes_back_exactly(backend, tmp_path):
    home = turnlog.open("memory:" if backend == "memory" else tmp_path)
    repository = begun(TurnlogSessionRepository(home))
    sent = [SessionMessage.from_message(message, place) for place, message in enumerate(ODD)]
    for one in sent:
        repository.create_message("s1", "a1", one)
    again = TurnlogSessionRepository(home if backend == "memory" else turnlog.open(tmp_path))
    assert again.list_messages("s1", "a1") == sent
    assert [list(one.message) for one in again.list_messages("s1", "a1")] == [list(message) for message in ODD]
    assert again.list_messages("s1", "a1", limit=2, offset=3) == sent[3:5]
    assert [again.read_message("s1", "a1", place) for place in (0, 6, 7, -1)] == [sent[0], sent[6], None, None]
    agent = again.read_agent("s1", "a1")
    assert agent.state == {"n": 1, "token": "t", "deep": {"~": 2**70}}
    assert agent._internal_state == {"bytes": b"\xff"}
    assert home.resume("s1").usage().own.input_tokens == 10


def test_it_is_what_the_file_manager_gives(tmp_path):
    files = begun(FileSessionManager("s1", storage_dir=str(tmp_path / "theirs")))
    ours = begun(TurnlogSessionRepository(tmp_path / "ours"))
    messages = [SessionMessage.from_message(message, place) for place, message in enumerate(ODD[:-1])]
    for repository in (files, ours):
        for one in messages:
            repository.create_message("s1", "a1", one)
    redacted = SessionMessage(
        ODD[0],
        0,
        redact_message={"role": "user", "content": [{"text": "[redacted]"}]},
        created_at=messages[0].created_at,
    )
    for repository in (files, ours):
        repository.update_message("s1", "a1", redacted)
    assert ours.list_messages("s1", "a1") == files.list_messages("s1", "a1")
    assert ours.read_message("s1", "a1", 0).to_message()["content"] == [{"text": "[redacted]"}]
    [first, *_] = ours.sessions.home.resume("s1").context(repair=False)
    assert first.blocks == [Text("[redacted]")]


def test_what_is_refused_leaves_nothing_behind(tmp_path):
    repository = TurnlogSessionRepository(tmp_path)
    for odd in ("", None, 3):
        with pytest.raises(Invalid, match="session_id"):
            repository.create_session(Session(odd, SessionType.AGENT))
        with pytest.raises(Invalid, match="session_id"):
            TurnlogSessionManager(odd, tmp_path)
    assert repository.sessions.home.sessions() == []
    begun(repository)
    seq = repository.sessions.find("s1").seq
    for odd in ({"role": "user"}, {"role": "x", "content": []}, {"role": "user", "content": [{"text": object()}]}, 3):
        with pytest.raises(Invalid) as error:
            repository.create_message("s1", "a1", SessionMessage(odd, 0))
        assert error.value.hint
    with pytest.raises(Invalid):
        repository.update_agent("s1", SessionAgent("a1", {"x": object()}, {}))
    assert repository.sessions.find("s1").seq == seq
    message = SessionMessage.from_message(ODD[0], 0)
    for call in (
        lambda: repository.create_session(Session("s1", SessionType.AGENT)),
        lambda: repository.create_agent("s1", SessionAgent("a1", {}, {})),
        lambda: repository.create_agent("s2", SessionAgent("a1", {}, {})),
        lambda: repository.create_message("s1", "a2", message),
        lambda: repository.update_message("s1", "a1", message),
        lambda: repository.update_agent("s1", SessionAgent("a2", {}, {})),
        lambda: repository.list_messages("s1", "a2"),
        lambda: repository.delete_session("s2"),
    ):
        with pytest.raises(SessionException):
            call()


def test_another_agent_has_a_session_of_its_own(tmp_path):
    repository = begun(begun(TurnlogSessionRepository(tmp_path)), agent="a/2")
    for agent in ("a1", "a/2"):
        repository.create_message("s1", agent, SessionMessage.from_message(ODD[0], 0))
    repository.create_message("s1", "a/2", SessionMessage.from_message(ODD[3], 1))
    assert [len(repository.list_messages("s1", agent)) for agent in ("a1", "a/2")] == [1, 2]
    home = repository.sessions.home
    assert [child.id for child in home.resume("s1").children()] == ["s1/a%2F2"]
    assert repository.read_session("s1/a%2F2") is None
    repository.create_session(Session("s1/taken", SessionType.AGENT))
    with pytest.raises(SessionException, match="s1/taken"):
        repository.create_agent("s1", SessionAgent("taken", {}, {}))
    repository.delete_session("s1/taken")
    repository.delete_session("s1")
    assert home.sessions() == []
    assert repository.read_session("s1") is None


class Scripted(Model):
    """Answers with how many messages it was asked with."""

    def get_config(self):
        return {}

    def update_config(self, **_):
        pass

    async def structured_output(self, *_, **__):
        yield {}

    async def stream(self, messages, *_, **__):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"{len(messages)} messages"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}
        usage = {"inputTokens": 10, "outputTokens": 2, "totalTokens": 12}
        yield {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}}


def ask(manager, text, name="helper"):
    agent = Agent(agent_id=name, model=Scripted(), session_manager=manager, callback_handler=None)
    return str(agent(text)).strip()


def test_a_program_goes_on_where_it_was(tmp_path):
    for number in (1, 2):
        with TurnlogSessionManager("s1", tmp_path) as manager:
            said = ask(manager, f"question {number}")
    assert said == "3 messages"
    with turnlog.open(tmp_path) as home:
        session = home.resume("s1")
        assert [message.role for message in session.messages()] == ["user", "assistant"] * 2
        assert session.messages()[3].blocks[0].text == "3 messages"
        assert (session.usage().own.input_tokens, session.usage().own.output_tokens) == (20, 4)
        assert session.labels["framework"] == "strands"
        assert session.export("claude-code", tmp_path / "exported.jsonl")
    theirs.commands_see(tmp_path, "s1", "3 messages", 4)


def test_pictures_that_tools_of_others_gave_are_there(tmp_path):
    with turnlog.open(tmp_path) as home:
        ours = home.create(id="s1")
        ours.assistant([ToolCall(id="c", name="read", input={})])
        picture = Image(media_type="image/png", data=b"p" * 100_000)  # lies in a blob
        ours.append(Message(role="tool", blocks=[ToolResult(call="c", content=[Text("look"), picture])]))
        repository = begun(TurnlogSessionRepository(home))
        [_, result] = repository.list_messages("s1", "a1")
    [part] = result.message["content"]
    image = {"format": "png", "source": {"bytes": b"p" * 100_000}}
    assert part["toolResult"]["content"] == [{"text": "look"}, {"image": image}]


def test_a_session_of_another_agent_is_gone_on_with(tmp_path):
    with turnlog.open(tmp_path) as home:
        ours = home.create(id="s1", agent="claude-code")
        ours.user("hello")
        ours.assistant([Text("calling"), ToolCall(id="c", name="bash", input={"a": 1})])
        ours.tool_result("c", "out")
        assert ask(TurnlogSessionManager("s1", home), "go on") == "4 messages"
        ours.refresh()
        assert len(ours.messages()) == 5


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path))
    monkeypatch.setattr(Agent, "__init__", lambda self, session_manager: setattr(self, "given", session_manager))
    names = {"Agent": Agent}
    exec(compile(theirs.snippet("Strands Agents"), "frameworks.md", "exec"), names)
    assert isinstance(names["agent"].given, TurnlogSessionManager)
    with turnlog.open(tmp_path) as home:
        assert [info.id for info in home.sessions()] == ["s1"]


def test_what_turnlog_does_to_the_conversation_strands_sees(tmp_path):
    with turnlog.open(tmp_path) as home:
        repository = begun(TurnlogSessionRepository(home))
        for place, word in enumerate(("one", "two", "three")):
            message = {"role": "user", "content": [{"text": f"say {word}"}]}
            repository.create_message("s1", "a1", SessionMessage.from_message(message, place))

        def seen(start=0):
            found = repository.list_messages("s1", "a1")
            assert [one.message_id for one in found] == list(range(start, start + len(found)))
            return [one.to_message()["content"][0] for one in found]

        ours = home.resume("s1")
        ours.assistant([Text("from elsewhere")])
        assert seen()[3] == {"text": "from elsewhere"}
        ours.edit(ours.messages()[0], "[redacted]")
        assert seen()[0] == {"text": "[redacted]"}
        ours.compact("so far", keep=2)
        assert seen(1) == [{"text": "so far"}, {"text": "say three"}, {"text": "from elsewhere"}]
        # Strands may have dropped some of what the summary stands for itself.
        for offset, expected in ((0, 3), (1, 3), (2, 2), (3, 1), (4, 0)):
            assert len(repository.list_messages("s1", "a1", offset=offset)) == expected
        assert repository.read_message("s1", "a1", 0) is None
        assert repository.read_message("s1", "a1", 2).message["content"] == [{"text": "say three"}]
        ours.rewind(to=ours.path()[1])
        assert seen() == [{"text": "say one"}, {"text": "say two"}]
        assert len(ours.fork().messages()) == 2
        ours.rewind(to=0)
        assert seen() == []
        assert ask(RepositorySessionManager("s1", repository), "anew", name="a1") == "1 messages"


WORKER = """
import sys
from strands.types.session import SessionMessage
from turnlog.adapters.strands import TurnlogSessionRepository

repository = TurnlogSessionRepository(sys.argv[1])
for number in range(50):
    message = {"role": "user", "content": [{"text": f"{sys.argv[2]}:{number}"}]}
    repository.create_message("s1", "a1", SessionMessage.from_message(message, number))
"""


def test_the_end_of_a_conversation_is_found_from_its_end(tmp_path):
    """A message knows its place, whoever wrote before it and whatever was done to what is before it."""
    with turnlog.open(tmp_path) as home:
        repository = begun(TurnlogSessionRepository(home))

        def say(*words):
            for word in words:
                message = {"role": "user", "content": [{"text": word}]}
                repository.create_message("s1", "a1", SessionMessage.from_message(message, 99))

        def from_place(offset):
            found = TurnlogSessionRepository(home).list_messages("s1", "a1", offset=offset)
            return [(one.message_id, one.to_message()["content"][0]["text"]) for one in found]

        say("a", "b")
        ours = home.resume("s1")
        ours.assistant("c, from elsewhere")
        ours.edit(ours.messages()[0], "[redacted]")
        say("d", "e", "f")
        assert from_place(3) == [(3, "d"), (4, "e"), (5, "f")]
        assert from_place(4) == [(4, "e"), (5, "f")]
        assert from_place(2)[0] == (2, "c, from elsewhere")
        assert from_place(0)[0] == (0, "[redacted]")
        ours.refresh()
        ours.rewind(to=ours.messages()[3])
        say("other e", "other f")
        assert from_place(4) == [(4, "other e"), (5, "other f")]
        assert from_place(6) == []
        ours.refresh()
        ours.edit(ours.messages()[4], "[redacted]")
        assert from_place(4) == [(4, "[redacted]"), (5, "other f")]


def test_eight_processes_lose_nothing(tmp_path):
    repository = begun(TurnlogSessionRepository(tmp_path))
    command = [sys.executable, "-c", WORKER, str(tmp_path)]
    workers = [subprocess.Popen([*command, str(me)], env=os.environ) for me in range(8)]
    assert [worker.wait(timeout=300) for worker in workers] == [0] * 8
    found = repository.list_messages("s1", "a1")
    assert [one.message_id for one in found] == list(range(400))
    assert {one.message["content"][0]["text"] for one in found} == {
        f"{me}:{number}" for me in range(8) for number in range(50)
    }


def test_of_two_processes_each_redacts_what_it_said(tmp_path):
    mine, other = begun(TurnlogSessionRepository(tmp_path)), TurnlogSessionRepository(tmp_path)
    said = [SessionMessage({"role": "user", "content": [{"text": text}]}, 0, created_at=text) for text in ("a", "b")]
    mine.create_message("s1", "a1", said[0])
    other.create_message("s1", "a1", said[1])
    said[1].redact_message = {"role": "user", "content": [{"text": "[redacted]"}]}
    other.update_message("s1", "a1", said[1])
    texts = [one.to_message()["content"][0]["text"] for one in mine.list_messages("s1", "a1")]
    assert texts == ["a", "[redacted]"]


def test_what_no_log_can_hold_and_what_is_oddly_shaped_comes_back_all_the_same(tmp_path):
    deep = json.loads("[" * 300 + "]" * 300)
    call = {"toolUseId": "c", "name": "n"}
    parts = [
        {"toolUse": {**call, "input": {"n": float("inf"), "m": 10**30}}},
        {"toolUse": {**call, "input": {"deep": deep}}},
        {"image": {"format": 5, "source": 5}},
        {"document": {"format": "pdf", "name": 5, "source": {"location": {"uri": 5}}}},
        {"toolResult": {"content": 5}},
        {"toolResult": {"toolUseId": "c", "content": ["text"]}},
        {"reasoningContent": {"reasoningText": 5}},
        {"citationsContent": {"content": 5}},
    ]
    messages = [{"role": "user", "content": [part]} for part in parts]
    about = ({"usage": {"inputTokens": -1, "outputTokens": 10**30}}, {"usage": 5}, 5)
    messages += [{"role": "assistant", "content": [{"text": "x"}], "metadata": one} for one in about]
    repository = begun(TurnlogSessionRepository(tmp_path))
    for place, message in enumerate(messages):
        repository.create_message("s1", "a1", SessionMessage(message, place))
    assert [one.message for one in TurnlogSessionRepository(tmp_path).list_messages("s1", "a1")] == messages
    with pytest.raises(Invalid, match="levels deep"):
        message = {"role": "user", "content": [{"text": "x", "y": json.loads("[" * 700 + "]" * 700)}]}
        repository.create_message("s1", "a1", SessionMessage(message, 9))


@pytest.mark.parametrize("is_other", [False, True])
def test_a_session_that_goes_away_during_an_update_is_told(tmp_path, is_other):
    repository = begun(TurnlogSessionRepository(tmp_path))
    eraser = TurnlogSessionRepository(tmp_path) if is_other else repository

    class Erasing(SessionAgent):
        def to_dict(self):
            if eraser.read_session("s1") is not None:
                eraser.delete_session("s1")
            return super().to_dict()

    with pytest.raises(SessionException, match="Agent a1 in session s1 does not exist"):
        repository.update_agent("s1", Erasing("a1", {}, {}))
    assert repository.read_session("s1") is None


def test_what_an_agent_does_to_its_message_later_does_not_change_what_is_kept(tmp_path):
    repository = begun(TurnlogSessionRepository(tmp_path))
    call = {"toolUse": {"toolUseId": "c", "name": "n", "input": {"of": ["given"], "raw": b"bytes"}}}
    message = {"role": "assistant", "content": [call]}
    repository.create_message("s1", "a1", SessionMessage(message, 0))
    call["toolUse"]["input"]["of"].append("later")
    [kept] = repository.list_messages("s1", "a1")
    assert kept.message["content"][0]["toolUse"]["input"] == {"of": ["given"], "raw": b"bytes"}


def test_a_message_of_a_class_of_its_own_is_what_it_says_itself(tmp_path):
    class Marked(SessionMessage):
        def to_dict(self):
            return {**super().to_dict(), "mark": 1}

    repository = begun(TurnlogSessionRepository(tmp_path))
    repository.create_message("s1", "a1", Marked({"role": "user", "content": [{"text": "hi"}]}, 0))
    [message] = repository.sessions.find("s1").messages()
    assert message.meta["strands"]["mark"] == 1
