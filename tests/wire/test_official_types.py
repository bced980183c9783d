"""Every request validates against the SDKs' own types, and keeps the providers' rules."""

import json

import pytest
from pydantic import ValidationError

from tests.wire import official, rules
from tests.wire.scene import KINDS, ask, everything, session
from turnlog.wire import Request

GEMINIS = [("gemini", {"model": "gemini-3-pro-preview"}), ("gemini", {"model": "gemini-2.0-flash"})]


@pytest.mark.parametrize(("kind", "options"), [*((kind, {}) for kind in KINDS), *GEMINIS])
def test_a_session_with_everything_in_it_gives_a_request_that_validates(kind, options):
    request = ask(kind, everything().context(), **options)
    official.check(kind, request)
    rules.follow(kind, request)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("choice", ["auto", "none", "required", "bash", "mcp.files/list"])
def test_every_tool_choice_validates(kind, choice):
    request = ask(kind, everything().context(), tool_choice=choice, max_tokens=100)
    official.check(kind, request)
    rules.follow(kind, request)
    assert "bash" in json.dumps(request)


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_is_json_and_a_plain_dict_to_everybody(kind):
    request = ask(kind, everything().context())
    assert isinstance(request, Request) and isinstance(request, dict)
    assert json.loads(json.dumps(request)) == request
    assert request.report


@pytest.mark.parametrize(
    ("kind", "where", "wrong"),
    [
        ("anthropic", "messages", {"role": "user", "content": [{"type": "txt", "text": "a"}]}),
        ("anthropic", "messages", {"role": "user", "content": [{"type": "tool_result", "content": []}]}),
        ("anthropic", "messages", {"role": "tool", "content": "a"}),
        ("responses", "input", {"type": "function_call", "call_id": "1", "name": "bash", "arguments": {}}),
        ("responses", "input", {"type": "message", "role": "robot", "content": "a"}),
        ("chat", "messages", {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {}}]}),
        ("chat", "messages", {"role": "user", "content": [{"type": "image_url", "image_url": {}}]}),
        ("gemini", "contents", {"role": "user", "parts": [{"txt": "a"}]}),
    ],
)
def test_a_wrong_block_is_refused_by_the_official_types(kind, where, wrong):
    s = session()
    s.user("hello")
    request = ask(kind, s.context())
    official.check(kind, request)
    request[where].append(wrong)
    with pytest.raises(ValidationError):
        official.check(kind, request)


def test_a_field_that_the_types_do_not_know_is_refused():
    s = session()
    s.user("hello")
    request = ask("anthropic", s.context())
    request["messages"][0]["content"][0]["cache"] = True
    with pytest.raises(AssertionError):
        official.check("anthropic", request)
