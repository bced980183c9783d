"""A policy for compaction: when it asks, what it does first, and what becomes of a model that fails."""

import asyncio
import re

import pytest

import turnlog
from turnlog import Invalid, Message, Text, ToolCall, ToolResult, Usage, aio
from turnlog.compaction import CLEARED, CompactionPolicy, compact, compact_async
from turnlog.log.context import text_of

LONG = "a line of what the tool printed\n" * 200


def told(context):
    return [text_of(message.blocks) or message.blocks[0].content for message in context]


def summed(text="in short", **fields):
    fields = {"stop": "end", "usage": Usage(input_tokens=900, output_tokens=20), "model": "m", **fields}
    return Message(role="assistant", blocks=[Text(text)] if text else [], **fields)


def fill(session, result):
    for number in range(3):
        session.user(f"question {number}")
        session.assistant([Text(f"looking {number}"), ToolCall(id=f"c{number}", name="bash", input={})])
        session.tool_result(f"c{number}", result)
        session.assistant(f"answer {number}")


@pytest.fixture
def worked():
    with turnlog.open("memory:") as home, home.create() as session:
        fill(session, LONG)
        yield session


def refuse(asked):
    raise AssertionError("no model is asked here")


def test_what_fits_stays(worked):
    step = compact(worked, CompactionPolicy(budget=10**6), refuse)
    assert (step.does, worked.compactions()) == ("nothing", [])
    share = CompactionPolicy(budget=0.5, window=200)
    assert (share.limit, share.decide(worked.context()).does) == (100, "summarise")


def test_old_results_go_first_and_what_is_kept_is_whole(worked):
    before = int(worked.context().tokens)
    step = compact(worked, CompactionPolicy(budget=before - 100, keep_turns=1), refuse)
    assert step.does == "clear"
    found = told(worked.context())
    assert found.count(CLEARED) == 2 and found.count(LONG) == 1
    assert worked.context().tokens <= before - 100
    assert [message.blocks[0].content for message in worked.messages() if message.role == "tool"] == [LONG] * 3


def test_what_is_cleared_already_or_short_is_left_alone(worked):
    worked.user("question 3")
    worked.assistant([ToolCall(id="c3", name="bash", input={})])
    worked.tool_result("c3", "ok")
    fill(worked, LONG)
    for _ in range(3):
        policy = CompactionPolicy(budget=int(worked.context().tokens) - 100, keep_turns=1)
        compact(worked, policy, refuse)
        worked.user("and")
        worked.assistant([ToolCall(id="again", name="bash", input={})])
        worked.tool_result("again", LONG)
        worked.assistant("so")
    edited = [entry.entry for entry in worked.entries(kind="edit")]
    assert len(edited) == len(set(edited)) == 7
    blocks = [block for message in worked.context() for block in message.blocks]
    assert "ok" in [block.content for block in blocks if isinstance(block, ToolResult)]


@pytest.mark.parametrize("fields", [{"budget": 0.8, "window": 0}, {"budget": 100, "window": -1}, {"budget": 0}])
def test_a_budget_that_cannot_be_is_refused_with_a_hint(fields):
    with pytest.raises(Invalid) as refused:
        CompactionPolicy(**fields)
    assert refused.value.hint


def test_then_a_summary_that_is_paid_for(worked):
    asked = []
    policy = CompactionPolicy(budget=2_500, keep_turns=1, clears_results=False, ask="Sum up!")
    step = compact(worked, policy, lambda context: (asked.append(told(context)), summed())[1])
    assert step.does == "summarise"
    assert asked[0][-1] == "Sum up!"
    assert told(worked.context())[:2] == ["in short", "question 2"]
    [done] = worked.compactions()
    assert (done.entry.trigger, done.entry.tokens_before) == ("auto", step.tokens)
    assert worked.usage().own == Usage(input_tokens=900, output_tokens=20)
    again = policy.decide(worked.context())
    assert (again.does, again.why) == ("nothing", "it fits into 2500 tokens")


def test_what_is_kept_alone_may_be_too_much(worked):
    policy = CompactionPolicy(budget=50, keep_turns=9)
    assert policy.decide(worked.context()).why == "the part to be kept is already over 50 tokens"


def test_what_is_said_while_the_model_is_asked_stays_visible(worked):
    def slow(context):
        worked.user("typed meanwhile")
        return "in short"

    compact(worked, CompactionPolicy(budget=100, keep_tokens=0), slow)
    assert told(worked.context()) == ["in short", "typed meanwhile"]


def test_another_process_may_speak_meanwhile(tmp_path):
    with turnlog.open(tmp_path) as home, turnlog.open(tmp_path) as theirs:
        session = home.create()
        fill(session, LONG)
        other = theirs.resume(session.id)
        compact(session, CompactionPolicy(budget=100, keep_tokens=0), lambda _: (other.user("me, too"), "in short")[1])
        assert told(session.context()) == ["in short", "me, too"]


@pytest.mark.parametrize("said", [summed(stop="length"), summed(stop="error"), summed(text="")])
def test_a_model_that_fails_leaves_everything_as_it_was(worked, said):
    before = told(worked.context())
    step = compact(worked, CompactionPolicy(budget=100), lambda _: said)
    assert (step.does, told(worked.context())) == ("nothing", before)
    assert worked.usage().own == said.usage
    with pytest.raises(ZeroDivisionError):
        compact(worked, CompactionPolicy(budget=100), lambda _: 1 // 0)
    assert told(worked.context()) == before


def test_the_same_with_await(tmp_path):
    async def summarise(asked):
        await asyncio.sleep(0)
        return summed()

    async def main():
        async with aio.open("memory:") as home:
            s = await home.create()
            fill(s._blocking, LONG)
            clear = CompactionPolicy(budget=int((await s.context()).tokens) - 100, keep_turns=1)
            assert (await compact_async(s, clear, summarise)).does == "clear"
            assert (await compact_async(s, CompactionPolicy(budget=100, keep_turns=1), summarise)).does == "summarise"
            assert told(await s.context())[0] == "in short"
            cut = await compact_async(s, CompactionPolicy(budget=100, keep_tokens=0), _cut)
            assert (cut.does, (await s.usage()).own.output_tokens) == ("nothing", 40)

    async def _cut(asked):
        return summed(stop="length")

    asyncio.run(main())


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"budget": 0.5}, "a budget of 0.5 is a share, and needs `window`"),
        ({"budget": 1.5, "window": 9}, "a budget of 1.5 is no share between 0 and 1"),
        ({"budget": float("nan"), "window": 9}, "a budget of nan is no share between 0 and 1"),
        ({"budget": 0}, "a budget of 0 tokens is too small"),
        ({"budget": 0.01, "window": 9}, "a budget of 0 tokens is too small"),
        ({"budget": "5"}, "a budget of '5' is no number of tokens"),
        ({"budget": True}, "a budget of True is no number of tokens"),
        ({"budget": 9, "window": 0}, "a window of 0 tokens is not possible"),
        ({"budget": 9, "window": 1.5}, "a window of 1.5 tokens is not possible"),
        ({"budget": 9, "keep_turns": 1, "keep_tokens": 1}, "keep_turns and keep_tokens each say how much is kept"),
        ({"budget": 9, "keep_turns": -1}, "cannot keep -1 turns"),
        ({"budget": 9, "keep_turns": 1.5}, "cannot keep 1.5 turns"),
        ({"budget": 9, "keep_tokens": -1}, "cannot keep -1 tokens"),
        ({"budget": 9, "keep_tokens": "a"}, "cannot keep 'a' tokens"),
    ],
)
def test_a_policy_that_cannot_be_meant_is_refused(wrong, why):
    with pytest.raises(Invalid, match=f"^{re.escape(why)}$"):
        CompactionPolicy(**wrong)


def test_a_result_that_is_kept_is_not_cleared_with_an_old_one_of_the_same_entry():
    with turnlog.open("memory:") as home, home.create() as session:
        for number in range(2):
            session.user(f"question {number}")
            session.assistant([ToolCall(id=f"c{number}", name="bash", input={})])
        results = [ToolResult(call="c0", content=LONG * 3), ToolResult(call="c1", content="the second result")]
        session.append(Message(role="tool", blocks=results))
        session.assistant("answer")
        step = compact(session, CompactionPolicy(budget=500, keep_turns=1), lambda asked: summed())
        blocks = [block for message in session.context() for block in message.blocks]
        assert "the second result" in [block.content for block in blocks if isinstance(block, ToolResult)]
        assert step.does == "summarise"
