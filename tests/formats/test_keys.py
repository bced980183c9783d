"""Keys of records without an id: what they say, and which of their kind they are."""

from typing import Any

import pytest

from turnlog import Message, ToolCall
from turnlog.formats._key import Keys


def asks(given: Any) -> Message:
    return Message(id="-", role="assistant", blocks=[ToolCall(id="call", name="run", input=given)])


@pytest.mark.parametrize("given", [{"n": 1}, {"n": 1 << 70}, {"lone": "\ud800"}])
def test_a_record_has_the_same_key_whenever_it_is_read(given: Any) -> None:
    one, other = Keys(), Keys()
    first = [one.of(asks(given)), one.of(asks(given)), one.of(asks({"n": 2}))]
    assert first == [other.of(asks(given)), other.of(asks(given)), other.of(asks({"n": 2}))]
    assert len(set(first)) == 3


def test_the_order_of_keys_in_an_input_says_nothing() -> None:
    assert Keys().of(asks({"a": 1, "b": 2})) == Keys().of(asks({"b": 2, "a": 1}))
