"""Every dialect keeps the contract."""

import pytest

from tests.wire.recorded import RECORDED
from turnlog import Unsupported
from turnlog.testing import DialectContract
from turnlog.wire import dialect, names


class TestAnthropic(DialectContract):
    name = "anthropic"
    options = {"max_tokens": 4096}
    events, response = RECORDED["anthropic"]


class TestGemini(DialectContract):
    name = "gemini"
    conversation = "contents"
    events, response = RECORDED["gemini"]


class TestOpenaiResponses(DialectContract):
    name = "openai"
    conversation = "input"
    events, response = RECORDED["responses"]


class TestOpenaiChat(DialectContract):
    name = "openai"
    options = stream_options = {"api": "chat"}
    events, response = RECORDED["chat"]


def test_every_dialect_that_there_is_keeps_it():
    assert {contract.name for contract in DialectContract.__subclasses__()} >= set(names())


@pytest.mark.parametrize("name", ["llama", "_media", "anthropic.ask", ""])
def test_what_is_no_dialect_is_not_found_and_those_that_are_get_named(name):
    with pytest.raises(Unsupported) as told:
        dialect(name)
    assert told.value.hint == ", ".join(names()) == "anthropic, gemini, openai"
