"""Conversations that agents really had, as requests of every dialect."""

import pytest

from tests.wire import official, rules, shared
from tests.wire.scene import KINDS, ask, session
from turnlog import Message


@pytest.fixture(scope="module")
def conversations():
    return shared.conversations()


@pytest.mark.parametrize("kind", KINDS)
def test_every_conversation_gives_a_request_that_validates(kind, conversations):
    assert len(conversations) > 20
    for name, messages in conversations:
        s = session()
        for message in messages:
            s.append(Message(role=message.role, blocks=message.blocks))
        context = s.context()
        if not len(context):
            continue
        request = ask(kind, context)
        rules.follow(kind, request)
        official.check(kind, request)
        assert request.keys() and name
