"""The estimate of a context's size, against what providers reported for real conversations."""

from itertools import pairwise

import pytest

from tests.public import AGENTS
from tests.wire import shared
from tests.wire.scene import TOOLS, call, said, session
from turnlog import Context, Image, Message, Text, Usage
from turnlog.log.context.tokens import tokens_in

REAL = {
    "pi/v1-large-session.jsonl",
    "claude-code/ccviewer-5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl",
    "claude-code/entire-2.0.76-compact.jsonl",
    "claude-code/entire-2.1.12-local-command-summary.jsonl",
    "claude-code/entire-2.1.14-compact-progress-queue.jsonl",
    "claude-code/entire-2.1.17-api-error.jsonl",
    "claude-code/vct-1.0.95-zh.jsonl",
    "codex/vct-0.39.0-vscode.jsonl",
    "gemini-cli/vct-jsonl-2026-04.jsonl",
}
"""Those of the fixtures that are recordings: what a provider reported there belongs to what was sent."""


@pytest.fixture(scope="module")
def real():
    found = {name: messages for name, messages in shared.conversations() if name in REAL}
    assert set(found) == REAL
    return found


def requests(messages):
    """Before each response with a usage: the messages so far, and how large the provider says that was."""
    for index, message in enumerate(messages):
        if message.role == "assistant" and message.usage is not None and message.usage.all_input_tokens:
            yield messages[:index], message.usage.all_input_tokens


if AGENTS.is_dir():

    def test_with_a_reported_usage_at_hand_the_estimate_is_within_15_percent(real):
        far, checked = [], 0
        for name, messages in real.items():
            before = 0
            for history, reported in requests(messages):
                if (
                    before and reported > before
                ):  # smaller than before: the agent compacted, which its log does not show
                    estimate = Context(history).tokens
                    assert estimate.method == "usage+text"
                    checked += 1
                    if abs(estimate - reported) > 0.15 * reported:
                        far.append((name, len(history), int(estimate), reported))
                before = reported
        assert checked > 500
        assert not far

    def test_from_text_alone_the_estimate_of_a_session_is_within_15_percent(real):
        """What came in between the first and the last request. The prompts of those agents are in no fixture."""
        off = {}
        for name, messages in real.items():
            reported = estimate = 0
            sizes = list(requests(messages))
            for (earlier, before), (later, after) in pairwise(sizes):
                if after > before:
                    reported += after - before
                    new = [Message(role=m.role, blocks=m.blocks) for m in later[len(earlier) :]]
                    estimate += Context(new).tokens
            off[name] = estimate / reported
        far = {name: round(ratio, 2) for name, ratio in off.items() if not 0.85 <= ratio <= 1.15}
        assert not far


def test_without_a_usage_everything_is_counted():
    text = Context([Message(role="user", blocks=[Text(text="hello world")])])
    assert text.tokens.method == "text"
    assert 0 < text.tokens < Context(text.messages, system="You are an agent.").tokens
    assert text.tokens < Context(text.messages, tools=TOOLS).tokens
    assert Context([*text.messages, said(call("1"))]).tokens > text.tokens + 50
    assert Context([Message(role="user", blocks=[Image(url="https://example.com/a.png")])]).tokens > 1_000
    assert Context([]).tokens == 0


def test_the_estimate_is_a_number_that_names_its_method():
    estimate = Context(
        [said("hi", usage=Usage(input_tokens=90, cache_read_tokens=9, output_tokens=5, reasoning_tokens=4))]
    )
    assert estimate.tokens == 90 + 9 + 1
    assert repr(estimate.tokens) == "Tokens(100, 'usage+text')"


def test_more_reasoning_than_output_is_no_negative_size():
    context = Context([said("hi", usage=Usage(input_tokens=90, output_tokens=5, reasoning_tokens=1000))])
    assert context.tokens == 90


def test_a_usage_reported_before_a_compaction_is_not_believed():
    s = session()
    s.user("a" * 4000)
    s.append(said("so much", usage=Usage(input_tokens=50_000, output_tokens=10)))
    s.user("thanks")
    assert s.context().tokens > 50_000
    compaction = s.compact("they talked", keep=2)
    assert (s.context().tokens.method, s.context().tokens < 100) == ("text", True)
    s.append(said("after", usage=Usage(input_tokens=70, output_tokens=5)))
    assert s.context().tokens == 75
    s.uncompact(compaction)
    assert s.context().tokens > 50_000


def test_a_usage_reported_before_an_edit_of_what_it_counted_is_not_believed():
    s = session()
    s.append(said("first", usage=Usage(input_tokens=100, output_tokens=1)))
    long = s.user("word " * 2000)
    s.append(said("second", usage=Usage(input_tokens=3000, output_tokens=1)))
    assert s.context().tokens == 3001
    s.edit(long, "short")
    assert 101 < s.context().tokens < 150


def test_every_script_counts():
    assert tokens_in("") == 0
    assert 80 <= tokens_in("word " * 80) <= 110
    assert 90 <= tokens_in("汉" * 100) <= 120
    assert tokens_in("12345678" * 10) > tokens_in("abcdefgh" * 10)
    assert tokens_in("\ud800") < 2
