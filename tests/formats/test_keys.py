"""Keys of records without an id: what they say, and which of their kind they are."""

from typing import Any

import pytest

from turnlog import Message, ToolCall
from turnlog.formats._shared.key import Keys, bound


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


@pytest.mark.parametrize("given", ["", "short", "long " * 5000, {"n": 1 << 70}, {"lone": "\ud800"}, "\ud800", None])
def test_what_names_a_call_is_known_by_it_and_by_what_it_says(given: Any) -> None:
    name = bound("call", given, 0)
    assert name == bound("call", given, 0)
    others = [bound("other", given, 0), bound("call", given, 1), bound("call", [given], 0), bound("call", "x", 0)]
    assert len({name, *others}) == 5


def test_an_answer_of_the_same_length_is_another_one() -> None:
    said = "a line of what a tool told\n" * 1000
    assert bound("call", said, 0) != bound("call", said.replace("tool", "fool"), 0)
    assert bound("call", "exit code 0", 0) != bound("call", "exit code 1", 0)


def test_what_is_told_again_under_the_same_call_has_its_number() -> None:
    keys, name = Keys(), bound("call", "told", 0)
    assert [keys.of_name(name), keys.of_name(name), keys.of_name("else"), keys.of_name(name)] == [
        name, f"{name}.2", "else", f"{name}.3"
    ]  # fmt: skip
