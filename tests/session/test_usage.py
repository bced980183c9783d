"""Usage counts once, in fields that do not overlap, and nothing unspends it."""

import pytest

from turnlog import Invalid, Message, Spent, Text, Usage

A = Usage(input_tokens=100, cache_read_tokens=900, cache_write_tokens=50, output_tokens=30, reasoning_tokens=10)
B = Usage(input_tokens=7, cache_write_1h_tokens=3, output_tokens=2, cost_micros=1234)


def test_a_session_that_never_spent_has_spent_nothing(s):
    usage = s.usage()
    assert usage.own == usage.inherited == usage.subagents == usage.total == Usage()
    assert (usage.models, usage.peak_input_tokens) == ({}, 0)


def test_every_field_is_summed(s, place):
    s.assistant("a", usage=A, model="m")
    s.assistant("b", usage=B, model="m")
    for session in (s, place.open().resume(s.id)):
        own = session.usage().own
        assert own == Usage(
            input_tokens=107, cache_read_tokens=900, cache_write_tokens=50, cache_write_1h_tokens=3, output_tokens=32,
            reasoning_tokens=10, cost_micros=1234,
        )  # fmt: skip


def test_a_cost_that_nobody_reported_stays_unknown(s):
    s.assistant("a", usage=A)
    assert s.usage().own.cost_micros is None
    s.assistant("b", usage=Usage(cost_micros=0))
    assert s.usage().own.cost_micros == 0
    s.assistant("c", usage=B)
    assert s.usage().own.cost_micros == 1234


def test_usage_is_told_apart_by_model(s):
    s.assistant("a", usage=A, model="big")
    s.assistant("b", usage=B, model="small")
    s.spend(B, model="small", why="title")
    s.spend(B)
    assert s.usage().models == {"big": A, "small": B + B, "": B}
    assert s.usage().own == A + B + B + B


def test_a_request_counts_once_however_many_messages_it_became(s, place):
    s.assistant("a", usage=A, request="r1", model="m")
    s.assistant("b", usage=A, request="r1", model="m")
    s.spend(A, request="r1")
    s.assistant("c", usage=B, request="r2", model="m")
    for session in (s, place.open().resume(s.id)):
        assert session.usage().own == A + B
    other = place.open().resume(s.id)
    other.spend(A, request="r1")
    assert other.usage().own == A + B


def test_messages_without_a_request_each_count(s):
    s.assistant("a", usage=B)
    s.assistant("b", usage=B)
    assert s.usage().own == B + B


def test_spending_without_a_message_says_why(s):
    entry = s.spend(B, model="small", why="title", request="r")
    assert (entry.usage, entry.model, entry.why, entry.request, entry.parent) == (B, "small", "title", "r", None)
    assert list(s.entries(kind=Spent)) == [entry]
    assert s.messages() == []


def test_rewind_edit_and_compaction_never_change_what_was_spent(s):
    ask = s.user("go")
    answer = s.assistant("a", usage=A, model="m")
    s.edit(answer, None)
    s.compact("sum")
    s.rewind(to=ask)
    s.assistant("b", usage=B, model="m")
    s.rewind(to=0)
    assert s.usage().own == A + B


def test_the_largest_prompt_of_a_single_request_is_kept(s, place):
    s.assistant("a", usage=A)
    s.assistant("b", usage=B)
    s.spend(Usage(input_tokens=5000), why="summary")
    s.assistant("c", usage=B)
    assert s.usage().peak_input_tokens == 5000
    assert place.open().resume(s.id).usage().peak_input_tokens == 5000
    assert A.all_input_tokens == 1050


def test_subagents_are_told_apart_and_summed_through(s, place):
    s.assistant("a", usage=A)
    child = s.spawn(agent="explorer", call="c1")
    child.assistant("b", usage=B)
    grandchild = child.spawn(agent="deeper")
    grandchild.spend(B)
    for session in (s, place.open().resume(s.id)):
        usage = session.usage()
        assert (usage.own, usage.subagents, usage.total) == (A, B + B, A + B + B)
    assert child.usage().own == B
    assert child.usage().subagents == B


def test_a_deleted_subagent_has_still_spent(s, home):
    child = s.spawn(agent="explorer")
    child.assistant("b", usage=B)
    home.delete(child.id)
    assert s.usage().subagents == B
    home.purge(child.id)
    assert s.usage().subagents == Usage()


def test_what_a_fork_of_a_subagent_inherited_is_not_the_parents(s):
    child = s.spawn(agent="explorer")
    child.assistant("b", usage=B)
    fork = child.fork()
    fork.assistant("c", usage=A)
    assert s.usage().subagents == B


@pytest.mark.parametrize(
    "usage",
    [
        Usage(input_tokens=-1),
        Usage(output_tokens=1.5),
        Usage(cost_micros=-3),
        Usage(input_tokens="7"),
        {"input_tokens": 1},
        7,
    ],
)
def test_a_usage_that_makes_no_sense_is_refused(s, usage):
    with pytest.raises(Invalid):
        s.assistant("a", usage=usage)
    with pytest.raises(Invalid):
        s.spend(usage)
    with pytest.raises(Invalid):
        s.compact("sum", usage=usage)
    assert s.usage().own == Usage()
    assert list(s.context()) == []


def test_a_usage_in_a_batch_counts(s):
    s.append(Message(role="assistant", blocks=[Text(text="a")], usage=A), Spent(usage=B))
    assert s.usage().own == A + B


def test_an_imported_total_counts_like_any_other(s):
    s.spend(Usage(input_tokens=10**12, cost_micros=10**12), why="imported")
    assert s.usage().own.input_tokens == 10**12
