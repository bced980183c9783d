"""What was sent once is sent the same way again, byte for byte: caches hit, and signatures stay valid."""

import json

import pytest

import turnlog
from tests.wire import rules
from tests.wire.recorded import RECORDED
from tests.wire.scene import KINDS, PNG, TOOLS, answer, ask, call, said, session
from turnlog import Image, Invalid, Text, Thinking
from turnlog.wire import anthropic

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
        one, other = (ask(kind, s.context(), **keyless(kind)) for s in (first, second))  # two sessions have two keys
        assert json.dumps(one) == json.dumps(other)


def keyless(kind):
    return {"prompt_cache_key": None} if kind == "responses" else {}


def test_openai_is_told_one_key_for_a_session_and_its_forks_wherever_they_are(tmp_path):
    with turnlog.open(tmp_path / "here") as here, turnlog.open(tmp_path / "there") as there:
        s = here.create()
        s.user("hello")
        key = ask("responses", s.context())["prompt_cache_key"]
        assert 0 < len(key) <= 64 and s.id not in key
        fork = s.fork().fork()
        fork.user("more")
        here.push(there)
        for one in (here.resume(s.id), fork, there.read(fork.id), there.read(s.id)):
            assert ask("responses", one.context().plus("and?"))["prompt_cache_key"] == key
        assert s.spawn().context().cache_key != key != here.create().context().cache_key
        assert turnlog.Context([]).cache_key == ""
        asked = [ask("responses", s.context(), prompt_cache_key=mine) for mine in ("mine", None)]
        assert (asked[0]["prompt_cache_key"], "prompt_cache_key" in asked[1]) == ("mine", False)
        assert "prompt_cache_key" not in ask("chat", s.context())
        assert ask("chat", s.context(), prompt_cache_key=key)["prompt_cache_key"] == key


def marked(value):
    """What is marked, in the order of the request, and the request without its marks."""
    found, names = [], ("cache_control", "prompt_cache_breakpoint")

    def bare(part):
        if isinstance(part, dict):
            if any(name in part for name in names):
                found.append({key: part[key] for key in part if key not in names})
            return {key: bare(item) for key, item in part.items() if key not in names}
        return [bare(item) for item in part] if isinstance(part, list) else part

    return json.dumps(bare(value)), found


@pytest.mark.parametrize("kind", ["anthropic", "responses", "chat"])
def test_explicit_marks_change_nothing_else_and_the_last_request_ends_in_one(kind):
    s, before, sent = session(), "", []
    for _ in turns(s, kind):
        request = ask(kind, s.context(), cache_marks="explicit", **keyless(kind))
        rules.follow(kind, request)
        plain, marks = marked(request[WHERE[kind]])
        assert plain.startswith(before[:-1]) and marks
        assert all(mark in marks for mark in sent[-1:])
        assert kind == "anthropic" or marks[: len(sent)] == sent
        before, sent = plain, marks
        if kind != "chat":  # which takes a mark on a part only, so that text becomes a part
            assert plain == json.dumps(ask(kind, s.context(), **keyless(kind))[WHERE[kind]])
    with pytest.raises(Invalid, match="'every'"):
        ask(kind, s.context(), cache_marks="every")


def test_marks_of_tools_that_come_with_them_leave_less_for_the_rest():
    s = session()
    mark = {"cache_control": {"type": "ephemeral"}}
    s.set("system", "You are an agent.")
    s.set("tools", [{"type": f"bash_2025012{day}", "name": f"bash{day}", **mark} for day in range(2)])
    for text in ("one", "two", "three"):
        s.user(text)
        s.assistant("yes")
    s.user("four")
    request = anthropic.request(s.context(), model="m", max_tokens=9, cache_marks="explicit")
    marks = marked(request["messages"])[1]
    assert (len(marks), marks[-1]["text"], len(marked(dict(request))[1])) == (1, "four", 4)
    assert "cache_control" not in anthropic.request(s.context(), model="m", max_tokens=9, cache_marks="explicit")


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
