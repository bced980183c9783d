"""What the model sees, and how broken tool turns are mended for it, and for it only."""

import itertools

import pytest

from turnlog import Custom, Message, Text, Thinking, ToolCall, ToolResult


def call(id, name="bash", **fields):
    return ToolCall(id=id, name=name, input={"n": id}, **fields)


def shape(messages):
    """Roles and what is in the blocks, short enough to read."""
    rows = []
    for message in messages:
        row = [message.role]
        for block in message.blocks:
            if isinstance(block, ToolCall):
                row.append(f"call {block.id}")
            elif isinstance(block, ToolResult):
                row.append(f"{'error' if block.is_error else 'result'} {block.call}")
            else:
                row.append(block.text)
        rows.append(" ".join(row))
    return rows


def test_a_sound_conversation_is_the_context_as_it_is(s):
    s.user("go")
    s.assistant([Thinking(text="hm", provider="p", data={"signature": "x"}), call("1")])
    s.tool_result("1", "done", details={"for": "people"}, duration_ms=3)
    s.assistant("ready")
    context = s.context()
    assert list(context) == s.messages()
    assert (len(context), context[0].role, context[-1].role) == (4, "user", "assistant")
    assert context[1:3] == s.messages()[1:3]
    assert s.pending() == []


def test_an_empty_session_has_an_empty_context(s):
    context = s.context()
    assert (list(context), context.system, context.tools) == ([], "", [])


def test_system_messages_at_the_beginning_are_the_system_prompt(s):
    s.system("be brief")
    s.system([Text(text="be kind"), Text(text="always")])
    s.user("hello")
    s.system("in between")
    context = s.context()
    assert context.system == "be brief\n\nbe kind\nalways"
    assert shape(context) == ["user hello", "system in between"]


def test_the_facts_system_and_tools_go_with_the_context(s):
    tools = [{"name": "bash", "description": "runs", "input_schema": {"type": "object"}}]
    s.set("system", "you are an agent")
    s.set("tools", tools)
    s.system("be brief")
    s.user("hello")
    context = s.context()
    assert context.system == "you are an agent\n\nbe brief"
    assert context.tools == tools
    s.unset("system")
    s.unset("tools")
    assert (s.context().system, s.context().tools) == ("be brief", [])


def test_an_unanswered_call_gets_an_error_for_the_model_only(s, place):
    s.user("go")
    s.assistant([Text(text="Looking."), call("1"), call("2")])
    s.tool_result("1", "done")
    assert shape(s.context()) == ["user go", "assistant Looking. call 1 call 2", "tool result 1", "tool error 2"]
    assert [waiting.id for waiting in s.pending()] == ["2"]
    assert shape(s.messages())[-1] == "tool result 1"
    other = place.open().resume(s.id)
    assert shape(other.context()) == shape(s.context())
    assert other.pending() == s.pending()


def test_later_turns_are_never_hidden_by_an_unanswered_call(s):
    s.user("go")
    s.assistant([call("1")])
    s.user("never mind")
    s.assistant("fine")
    assert shape(s.context()) == ["user go", "assistant call 1", "tool error 1", "user never mind", "assistant fine"]


def test_a_result_that_arrives_late_takes_its_place(s):
    s.user("go")
    s.assistant([call("1")])
    s.user("still there?")
    s.tool_result("1", "at last")
    assert shape(s.context()) == ["user go", "assistant call 1", "tool result 1", "user still there?"]
    assert s.context()[2].blocks[0].content == "at last"
    assert s.pending() == []


def test_an_orphan_result_is_left_out(s):
    s.user("go")
    s.tool_result("nobody", "asked")
    s.assistant("hm")
    assert shape(s.context()) == ["user go", "assistant hm"]
    assert len(s.messages()) == 3


def test_a_result_before_its_call_is_an_orphan(s):
    s.tool_result("1", "too early")
    s.assistant([call("1")])
    assert shape(s.context()) == ["assistant call 1", "tool error 1"]


def test_the_first_result_counts_and_a_duplicate_is_left_out(s):
    s.assistant([call("1")])
    s.tool_result("1", "first")
    s.tool_result("1", "second")
    s.user("go on")
    context = s.context()
    assert shape(context) == ["assistant call 1", "tool result 1", "user go on"]
    assert context[1].blocks[0].content == "first"


def test_an_id_that_a_provider_uses_again_is_another_call(s):
    s.assistant([call("1")])
    s.tool_result("1", "first")
    s.assistant([call("1")])
    s.tool_result("1", "second")
    assert shape(s.context()) == ["assistant call 1", "tool result 1"] * 2
    assert [message.blocks[0].content for message in s.context()[1::2]] == ["first", "second"]


def test_a_reused_id_answers_the_newest_call_that_waits(s):
    s.assistant([call("1")])
    s.user("interrupted")
    s.assistant([call("1")])
    s.tool_result("1", "second")
    context = s.context()
    assert shape(context) == [
        "assistant call 1",
        "tool error 1",
        "user interrupted",
        "assistant call 1",
        "tool result 1",
    ]


def test_two_calls_of_one_message_with_one_id_get_one_result_each(s):
    s.assistant([call("1"), call("1")])
    s.tool_result("1", "only")
    assert sorted(shape(s.context())[1:]) == ["tool error 1", "tool result 1"]


def test_a_call_that_the_provider_runs_is_left_alone(s):
    s.assistant([call("1", by="provider"), Text(text="searched")])
    s.user("thanks")
    assert shape(s.context()) == ["assistant call 1 searched", "user thanks"]
    assert s.pending() == []


@pytest.mark.parametrize("order", list(itertools.permutations(["1", "2", "3"])))
def test_parallel_results_are_accepted_in_any_order(s, order):
    s.assistant([call("1"), call("2"), call("3")])
    for id in order:
        s.tool_result(id, f"of {id}")
    results = [block for message in s.context()[1:] for block in message.blocks]
    assert [(block.call, block.content) for block in results] == [(id, f"of {id}") for id in order]


def test_results_in_one_message_are_accepted(s):
    s.assistant([call("1"), call("2")])
    s.append(Message(role="tool", blocks=[ToolResult(call="2", content="b"), ToolResult(call="1", content="a")]))
    assert shape(s.context()) == ["assistant call 1 call 2", "tool result 2 result 1"]


def test_what_else_stands_in_a_tool_message_is_kept(s):
    s.assistant([call("1")])
    s.append(Message(role="tool", blocks=[ToolResult(call="1", content="a"), Text(text="by the way")]))
    assert shape(s.context()) == ["assistant call 1", "tool result 1", "user by the way"]


def test_a_mended_context_is_sound(s):
    s.tool_result("0", "orphan")
    s.assistant([call("1"), call("2")])
    s.user("stop")
    s.tool_result("2", "late")
    s.assistant([call("3")])
    waiting = set()
    for message in s.context():
        if message.role == "tool":
            for block in message.blocks:
                waiting.remove(block.call)
        else:
            assert not waiting
            waiting = {block.id for block in message.blocks if isinstance(block, ToolCall)}
    assert not waiting


def test_empty_messages_are_not_sent(s):
    s.user("go")
    s.append(Message(role="assistant", stop="aborted"))
    s.user("again")
    assert shape(s.context()) == ["user go", "user again"]
    assert len(s.messages()) == 3


def test_a_custom_entry_is_seen_only_if_it_has_blocks(s):
    s.append(Custom(kind="x.hidden", data={"k": 1}))
    s.append(Custom(kind="x.shown", data={"k": 1}, blocks=[Text(text="mode: plan")]))
    s.append(Custom(kind="x.shown", role="assistant", blocks=[Text(text="noted")]))
    assert shape(s.context()) == ["user mode: plan", "assistant noted"]
    assert s.messages() == []
    assert [entry.data for entry in s.entries(kind="custom")] == [{"k": 1}, {"k": 1}, None]


def test_notes_and_meta_never_reach_a_model(s):
    s.append(Message(role="user", blocks=[Text(text="hello")], meta={"mine": 1}))
    s.note("for people", data={"k": 1})
    assert shape(s.context()) == ["user hello"]
    assert s.context()[0].meta == {"mine": 1}


def test_pending_says_what_was_asked(s):
    s.assistant([call("1"), call("2", name="read", by="provider"), call("3", name="read")])
    assert s.pending() == [call("1"), call("3", name="read")]


def test_a_call_that_is_not_unicode_is_counted(s):
    context = s.context()
    for value in ({"a": "\ud800"}, {"\ud800": [1]}):
        assert context.plus([ToolCall(id="c", name="n", input=value)], role="assistant").tokens > context.tokens
