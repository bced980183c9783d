"""Compaction, its undoing, and edits: what the model sees changes, what was said does not."""

import pytest

from turnlog import Conflict, Custom, Invalid, Message, NotFound, Ref, Text, ToolCall, ToolResult, Usage


def shape(messages):
    rows = []
    for message in messages:
        words = [message.role[0]]
        for block in message.blocks:
            if isinstance(block, ToolCall):
                words.append(f"call {block.id}")
            elif isinstance(block, ToolResult):
                words.append(f"result {block.call}")
            else:
                words.append(block.text)
        rows.append(" ".join(words))
    return rows


@pytest.fixture
def talk(s):
    """Three turns, the second with a tool."""
    s.user("one")
    s.assistant("1")
    s.user("two")
    s.assistant([ToolCall(id="c", name="bash")])
    s.tool_result("c", "done")
    s.assistant("2")
    s.user("three")
    s.assistant("3")
    return s


def test_the_model_sees_the_summary_then_what_was_kept(talk, place):
    before = talk.messages()
    entry = talk.compact("so far", keep=2, trigger="auto", tokens_before=9000, tokens_after=300)
    assert shape(talk.context()) == ["u so far", "u three", "a 3"]
    assert (entry.keep, entry.trigger, entry.tokens_before) == (before[-2].seq, "auto", 9000)
    assert talk.head == entry.seq
    assert talk.messages() == before
    assert shape(place.open().resume(talk.id).context()) == ["u so far", "u three", "a 3"]


def test_the_conversation_goes_on_after_the_summary(talk):
    talk.compact("so far", keep=1)
    talk.user("four")
    assert shape(talk.context()) == ["u so far", "a 3", "u four"]


def test_nothing_has_to_be_kept(talk):
    entry = talk.compact("so far")
    assert entry.keep == 0
    assert shape(talk.context()) == ["u so far"]
    talk.user("four")
    assert shape(talk.context()) == ["u so far", "u four"]


@pytest.mark.parametrize("keep", range(9))
def test_a_tool_call_is_never_parted_from_its_result(talk, keep):
    whole = ["u one", "a 1", "u two", "a call c", "t result c", "a 2", "u three", "a 3"]
    kept = whole[3:] if keep == 4 else whole[len(whole) - keep :]
    talk.compact("so far", keep=keep)
    assert shape(talk.context()) == ["u so far", *kept]


def test_keeping_more_than_there_is_keeps_everything(talk):
    talk.compact("preamble", keep=99)
    assert shape(talk.context()) == ["u preamble", *shape(talk.messages())]


def test_parallel_calls_stay_together_in_any_order(s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="x"), ToolCall(id="b", name="x")])
    s.tool_result("b", "B")
    s.user("hurry")
    s.tool_result("a", "A")
    s.compact("so far", keep=1)
    assert shape(s.context()) == ["u so far", "a call a call b", "t result a", "t result b", "u hurry"]


def test_a_call_that_still_waits_is_kept_whatever_is_asked(s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="x")])
    s.compact("so far", keep=0)
    s.tool_result("a", "A")
    assert shape(s.context()) == ["u so far", "a call a", "t result a"]
    assert s.pending() == []


def test_an_old_call_that_was_never_answered_holds_nothing_back(s):
    s.assistant([ToolCall(id="a", name="x")])
    s.user("never mind")
    s.assistant("fine")
    s.compact("so far", keep=1)
    assert shape(s.context()) == ["u so far", "a fine"]


def test_a_negative_number_of_messages_is_refused(talk):
    with pytest.raises(Invalid):
        talk.compact("so far", keep=-1)


@pytest.mark.parametrize("keep", [None, 1.5, True, "1"])
def test_what_is_kept_is_a_whole_number_of_messages(talk, keep):
    with pytest.raises(Invalid, match="cannot keep"):
        talk.compact("sum", keep=keep)


def test_the_system_prompt_survives_a_compaction(s):
    s.system("be brief")
    s.user("one")
    s.assistant("1")
    s.compact("so far", keep=1)
    context = s.context()
    assert (context.system, shape(context)) == ("be brief", ["u so far", "a 1"])
    s.compact("all of it")
    assert (s.context().system, shape(s.context())) == ("be brief", ["u all of it"])


def test_the_system_prompt_is_not_counted_among_the_kept(s):
    s.system("be brief")
    s.user("one")
    s.compact("so far", keep=5)
    assert (s.context().system, shape(s.context())) == ("be brief", ["u so far", "u one"])


def test_a_compaction_can_be_compacted(talk):
    talk.compact("first", keep=4)
    talk.user("four")
    talk.compact("second", keep=2)
    assert shape(talk.context()) == ["u second", "a 3", "u four"]
    talk.compact("third", keep=99)
    assert shape(talk.context()) == ["u third", "a 3", "u four"]


def test_uncompact_takes_back_the_newest_that_applies(talk):
    talk.compact("first", keep=4)
    talk.compact("second", keep=2)
    talk.uncompact()
    assert shape(talk.context()) == ["u first", "a call c", "t result c", "a 2", "u three", "a 3"]
    talk.uncompact()
    assert list(talk.context()) == talk.messages()
    with pytest.raises(NotFound):
        talk.uncompact()


def test_a_chosen_compaction_is_taken_back(talk):
    first = talk.compact("first", keep=6)
    second = talk.compact("second", keep=2)
    talk.uncompact(first)
    assert shape(talk.context()) == ["u second", "u three", "a 3"]
    talk.uncompact(second.seq)
    assert list(talk.context()) == talk.messages()
    with pytest.raises(NotFound):
        talk.uncompact(first)
    with pytest.raises(NotFound):
        talk.uncompact(talk.messages()[0])


def test_what_was_said_after_a_compaction_stays_when_it_is_taken_back(talk):
    talk.compact("first", keep=1)
    talk.user("four")
    talk.uncompact()
    assert shape(talk.context())[-2:] == ["a 3", "u four"]
    assert len(talk.context()) == 9


def test_a_rewind_to_before_a_compaction_undoes_it_on_that_path(talk):
    last = talk.messages()[-1]
    talk.compact("first", keep=1)
    talk.rewind(to=last)
    assert list(talk.context()) == talk.messages()
    talk.undo()
    assert shape(talk.context()) == ["u first", "a 3"]


def test_a_replacement_may_be_messages_of_any_role(talk):
    talk.compact(
        [Message(role="user", blocks=[Text(text="sum")]), Message(role="assistant", blocks=[Text(text="understood")])],
        keep=1,
    )
    assert shape(talk.context()) == ["u sum", "a understood", "a 3"]


def test_a_replacement_may_name_earlier_entries(talk, place):
    one = talk.messages()[0]
    talk.compact([Ref(one.seq), Message(role="user", blocks=[Text(text="then a lot")])], keep=1)
    assert shape(talk.context()) == ["u one", "u then a lot", "a 3"]
    assert shape(place.open().resume(talk.id).context()) == ["u one", "u then a lot", "a 3"]


def test_a_named_entry_may_be_a_custom_one(s):
    shown = s.append(Custom(kind="x.y", blocks=[Text(text="mode: plan")]))
    s.user("one")
    s.compact([Ref(shown.seq), Message(role="user", blocks=[Text(text="sum")])])
    assert shape(s.context()) == ["u mode: plan", "u sum"]


def test_a_named_entry_reads_as_it_was_edited(talk):
    one = talk.messages()[0]
    talk.edit(one, "changed")
    talk.compact([Ref(one.seq)], keep=1)
    assert shape(talk.context()) == ["u changed", "a 3"]
    talk.edit(one, None)
    assert shape(talk.context()) == ["a 3"]


def test_what_a_compaction_named_does_not_bring_back_what_it_replaced(talk):
    one = talk.messages()[0]
    talk.compact([Ref(one.seq), Message(role="user", blocks=[Text(text="sum")])], keep=1)
    talk.compact("second", keep=99)
    assert shape(talk.context()) == ["u second", "a 3"]


def test_what_a_compaction_cost_is_spent(talk):
    talk.compact("sum", usage=Usage(input_tokens=900, output_tokens=50), model="m", request="r")
    assert talk.usage().own == Usage(input_tokens=900, output_tokens=50)
    talk.uncompact()
    assert talk.usage().models == {"m": Usage(input_tokens=900, output_tokens=50)}


def test_two_processes_compacting_at_once_is_a_conflict(talk, place):
    other = place.open().resume(talk.id)
    talk.compact("mine", keep=1)
    with pytest.raises(Conflict):
        other.compact("theirs", keep=1)
    assert shape(talk.context()) == ["u mine", "a 3"]


# ── edits ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_edit_changes_what_the_model_sees_and_nothing_else(talk, place):
    one = talk.messages()[0]
    before = talk.messages()
    talk.edit(one, "changed")
    assert shape(talk.context())[0] == "u changed"
    assert talk.messages() == before
    assert talk.find(one.id) == one
    assert shape(place.open().resume(talk.id).context())[0] == "u changed"


def test_the_newest_edit_counts(talk):
    seq = talk.messages()[0].seq
    talk.edit(seq, "first")
    talk.edit(seq, [Text(text="second")])
    assert shape(talk.context())[0] == "u second"


def test_an_edit_to_nothing_leaves_the_entry_out(talk):
    talk.edit(talk.messages()[0], None)
    assert shape(talk.context())[0] == "a 1"


def test_a_call_whose_result_was_edited_out_is_mended(talk):
    talk.edit(talk.messages()[4], None)
    assert shape(talk.context())[3:5] == ["a call c", "t result c"]
    assert talk.context()[4].blocks[0].is_error


def test_an_edit_holds_on_its_path_only(talk):
    one = talk.messages()[0]
    last = talk.messages()[-1]
    talk.edit(one, "changed")
    talk.rewind(to=last)
    assert shape(talk.context())[0] == "u one"
    talk.undo()
    assert shape(talk.context())[0] == "u changed"


def test_a_kept_message_reads_as_it_was_edited(talk):
    three = talk.messages()[-2]
    talk.edit(three, "changed")
    talk.compact("sum", keep=2)
    assert shape(talk.context()) == ["u sum", "u changed", "a 3"]
    talk.edit(three, None)
    assert shape(talk.context()) == ["u sum", "a 3"]


def test_an_edited_system_prompt_stays_edited_after_a_compaction(s):
    system = s.system("be brief")
    s.user("one")
    s.edit(system, "be long")
    assert s.context().system == "be long"
    s.compact("sum")
    assert s.context().system == "be long"
    s.edit(system, None)
    assert s.context().system == ""


def test_a_custom_entry_can_be_edited(s):
    entry = s.append(Custom(kind="x.y", blocks=[Text(text="a")]))
    s.edit(entry, "b")
    assert shape(s.context()) == ["u b"]


def test_only_a_message_of_this_conversation_can_be_edited(talk):
    note = talk.note("n")
    gone = talk.user("gone")
    talk.rewind(before=gone)
    for target in (note, gone, 0, 999):
        with pytest.raises(NotFound):
            talk.edit(target, "x")


# ── what a summary never saw ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("keep", [0, 1, 2, 5])
@pytest.mark.parametrize("is_named", [True, False])
def test_what_came_after_the_context_that_was_summarised_stays(talk, place, keep, is_named):
    context = talk.context()
    for text in ("four", "five", "six"):
        talk.user(text)
    talk.compact("so far", keep=keep, **({"of": context} if is_named else {}))
    kept = shape(talk.messages())[-max(3, keep) :]
    assert shape(talk.context()) == ["u so far", *kept]
    assert shape(place.open().resume(talk.id).context()) == ["u so far", *kept]


def test_who_never_gave_out_a_context_keeps_what_is_asked(talk, place):
    talk.context()
    talk.user("four")
    other = place.open().resume(talk.id)
    other.compact("so far", keep=0)
    assert shape(other.context()) == ["u so far"]


def test_the_last_context_that_was_given_out_counts(talk):
    old = talk.context()
    talk.user("four")
    talk.context()
    talk.user("five")
    talk.compact("so far")
    assert shape(talk.context()) == ["u so far", "u five"]
    talk.uncompact()
    talk.compact("so far", of=old)
    assert shape(talk.context()) == ["u so far", "u four", "u five"]


def test_a_result_that_came_after_the_context_keeps_its_call(s):
    s.user("go")
    s.assistant([ToolCall(id="a", name="x")])
    context = s.context()
    s.tool_result("a", "A")
    s.user("next")
    s.compact("so far", of=context)
    assert shape(s.context()) == ["u so far", "a call a", "t result a", "u next"]


def test_what_another_compaction_hid_is_seen_again_if_the_context_never_had_it(talk):
    context = talk.context()
    talk.user("four")
    talk.context()
    talk.compact("another one", keep=0)
    talk.user("five")
    talk.compact("so far", of=context)
    assert shape(talk.context()) == ["u so far", "u four", "u five"]


def test_a_context_of_another_branch_has_seen_what_both_have(talk):
    first = talk.messages()[1]
    other = talk.context()
    talk.rewind(to=first)
    talk.user("again")
    talk.compact("so far", of=other)
    assert shape(talk.context()) == ["u so far", "u again"]
    talk.uncompact()
    back = talk.context()
    talk.rewind(to=other.head)
    talk.compact("so far", of=back)
    assert shape(talk.context()) == ["u so far", *shape(talk.messages())[2:]]


def test_a_context_of_before_a_compaction_on_another_branch(talk):
    first = talk.compact("first")
    talk.user("here")
    other = talk.context()
    talk.rewind(to=first)
    talk.user("there")
    talk.compact("so far", of=other)
    assert shape(talk.context()) == ["u so far", "u there"]


def test_a_context_of_a_fork_has_seen_what_both_have(talk):
    fork = talk.fork()
    fork.user("mine")
    talk.user("four")
    talk.user("five")
    fork.compact("so far", of=talk.context())
    assert shape(fork.context()) == ["u so far", "u mine"]
    talk.compact("so far", of=fork.context())
    assert shape(talk.context()) == ["u so far", *shape(talk.messages())]  # of these it had the summary only


def test_an_empty_context_has_seen_nothing(s):
    context = s.context()
    s.system("be brief")
    s.user("one")
    s.compact("so far", of=context)
    assert (s.context().system, shape(s.context())) == ("be brief", ["u so far", "u one"])


def test_an_edit_and_a_custom_entry_after_the_context_hold(talk):
    context = talk.context()
    shown = talk.append(Custom(kind="x.y", blocks=[Text(text="mode: plan")]))
    four = talk.user("four")
    talk.edit(four, "fourth")
    talk.compact("so far", of=context)
    assert shape(talk.context()) == ["u so far", "u mode: plan", "u fourth"]
    assert talk.find(shown.id) == shown


def test_an_export_is_no_context_that_was_given_out(talk, tmp_path):
    talk.context()
    talk.user("four")
    talk.export("pi", tmp_path / "out.jsonl")
    talk.compact("so far")
    assert shape(talk.context()) == ["u so far", "u four"]


def test_a_compaction_of_something_else_is_refused(talk):
    with pytest.raises(Invalid):
        talk.compact("so far", of=talk.messages())


def test_a_summary_that_is_made_here_knows_everything(talk):
    context = talk.context()
    talk.user("four")
    talk.compact(keep=0)
    assert len(talk.context()) == 1
    talk.compact(keep=0, of=context)
    assert shape(talk.context())[1:] == ["u four"]
