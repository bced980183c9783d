"""What was sent once is sent the same way again, byte for byte: caches hit, and signatures stay valid."""

import json

import pytest

from tests.wire.recorded import RECORDED
from tests.wire.scene import KINDS, PNG, TOOLS, answer, ask, call, said, session
from turnlog import Image, Text, Thinking

WHERE = {"anthropic": "messages", "responses": "input", "chat": "messages", "gemini": "contents"}


def turns(s, kind):
    """A conversation, stopping wherever a request would be made."""
    s.set("system", "You are an agent.")
    s.set("tools", TOOLS)
    s.user("start")
    yield
    s.append(answer(kind, RECORDED[kind][1]))
    for waiting in s.pending():
        s.tool_result(waiting, [Text(text="done"), Image(data=PNG)], is_error=waiting.name == "now")
    yield
    s.append(said(Thinking(text="hm", provider="elsewhere"), "and", call("functions.bash:0"), call("functions.bash:0")))
    s.tool_result("functions.bash:0", "one")
    s.tool_result("functions.bash:0", "two")
    yield
    s.append(said("all done"))
    s.user([Image(data=PNG), Text(text="now the next")])
    yield
    s.append(answer(kind, RECORDED[kind][1]))
    for waiting in s.pending():
        s.tool_result(waiting, "")
    yield


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"tool_choice": "auto"}])
def test_appending_a_turn_leaves_the_serialised_earlier_part_unchanged(kind, options):
    s = session()
    earlier = None
    for _ in turns(s, kind):
        request = ask(kind, s.context(), **options)
        said_before = json.dumps(request[WHERE[kind]])
        frame = json.dumps({key: value for key, value in request.items() if key != WHERE[kind]})
        if earlier is not None:
            assert said_before.startswith(earlier[0][:-1])
            assert frame == earlier[1]
            assert len(said_before) > len(earlier[0])
        earlier = said_before, frame


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_log_gives_the_same_bytes_in_another_process_to_come(kind):
    first, second = session(), session()
    for _ in zip(turns(first, kind), turns(second, kind), strict=True):
        assert json.dumps(ask(kind, first.context())) == json.dumps(ask(kind, second.context()))


def test_anthropic_marks_the_system_prompt_and_lets_the_moving_mark_move_by_itself():
    s = session()
    s.set("system", "You are an agent.")
    s.user("hello")
    request = ask("anthropic", s.context())
    mark = {"type": "ephemeral", "ttl": "5m"}
    assert (request["cache_control"], request["system"][0]["cache_control"]) == (mark, mark)
    assert "cache_control" not in json.dumps(request["messages"])
    assert ask("anthropic", s.context(), cache="1h")["cache_control"]["ttl"] == "1h"
    assert "cache_control" not in json.dumps(ask("anthropic", s.context(), cache=None))
