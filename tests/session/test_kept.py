"""What a compaction keeps, told in turns and tokens; a context with a question at its end, and one of long ago."""

import pytest

from turnlog import Image, Invalid, NotFound, Text, ToolCall
from turnlog.log.context import text_of
from turnlog.log.context.tokens import tokens_of
from turnlog.wire import anthropic


def told(context):
    return [text_of(message.blocks) or message.role for message in context]


@pytest.fixture
def worked(s):
    """Two turns, the second one with a tool."""
    s.user("one")
    s.assistant("first answer")
    s.user("two")
    s.assistant([Text("looking"), ToolCall(id="c", name="bash", input={"command": "ls"})])
    s.tool_result("c", "a.py")
    s.assistant("second answer")
    return s


@pytest.mark.parametrize(
    ("turns", "kept"),
    [
        (0, ["sum"]),
        (1, ["sum", "two", "looking", "tool", "second answer"]),
        (2, ["sum", "one", "first answer", "two", "looking", "tool", "second answer"]),
        (9, ["sum", "one", "first answer", "two", "looking", "tool", "second answer"]),
    ],
)
def test_whole_turns_are_kept(worked, turns, kept):
    worked.compact("sum", keep_turns=turns)
    assert told(worked.context()) == kept


def test_what_a_program_says_for_a_person_begins_no_turn(s):
    s.user("one")
    s.assistant("first answer")
    s.user("<system-reminder>be brief</system-reminder>", display=False)
    s.compact("sum", keep_turns=1)
    assert told(s.context())[1] == "one"


def test_as_much_is_kept_as_fits_and_nothing_is_parted(worked):
    sizes = [tokens_of(message) for message in worked.messages()]
    found = []
    for budget in range(sum(sizes) + 1):
        made = worked.compact("sum", keep_tokens=budget)
        kept = told(worked.context())[1:]
        used = sum(sizes[len(sizes) - len(kept) :])
        assert used <= budget
        found.append(tuple(kept))
        worked.uncompact(made)
    assert list(dict.fromkeys(found)) == [
        (),
        ("second answer",),
        ("two", "looking", "tool", "second answer"),
        ("one", "first answer", "two", "looking", "tool", "second answer"),
    ]


def test_what_nobody_summarised_stays_however_little_fits(s):
    s.user("one")
    context = s.context()
    s.user("typed meanwhile")
    s.compact("sum", keep_tokens=0, of=context)
    assert told(s.context()) == ["sum", "typed meanwhile"]


def test_one_measure_at_a_time(worked):
    for wrong in ({"keep": 1, "keep_turns": 1}, {"keep_turns": 1, "keep_tokens": 5}, {"keep_tokens": -1}):
        with pytest.raises(Invalid, match="keep"):
            worked.compact("sum", **wrong)
    assert worked.compactions() == []


def test_a_question_at_the_end_is_in_no_log(worked):
    context = worked.context()
    asked = context.plus("Sum up what happened")
    assert told(asked)[-1] == "Sum up what happened"
    assert len(asked) == len(context) + 1 == len(worked.messages()) + 1
    assert asked.tokens > context.tokens
    [last] = anthropic.request(asked, model="m", max_tokens=9)["messages"][-1]["content"]
    assert last["text"] == "Sum up what happened"
    worked.compact("sum", of=asked)
    assert told(worked.context()) == ["sum"]


def test_a_context_as_it_was(worked):
    worked.set("system", "be brief")
    ask = worked.user("three")
    worked.edit(worked.messages()[0], "ONE")
    worked.set("system", "be long")
    worked.compact("sum")
    later = worked.user("four")
    then = worked.context(at=ask)
    assert (told(then)[0], told(then)[-1], then.system) == ("one", "three", "be brief")
    assert then.head == ask.seq
    worked.rewind(to=ask)
    assert (told(worked.context(at=later)), worked.context(at=later).system) == (["sum", "four"], "be long")
    assert told(worked.context(at=0)) == []
    with pytest.raises(NotFound, match="9999"):
        worked.context(at=9999)


def test_a_context_that_was_loaded_asks_nobody(s):
    s.user([Text("see"), Image(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")])
    context = s.context()
    context.load()
    s.close()
    content = anthropic.request(context, model="m", max_tokens=9)["messages"][0]["content"]
    assert [part["type"] for part in content] == ["text", "image"]
    with pytest.raises(NotFound, match="in this context"):
        context.get_blob("sha256:" + "0" * 64)
