"""A summary without a model, and short texts for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog import Invalid, Message, Text, ToolCall, ToolResult
from turnlog.log.prompt import without_preamble
from turnlog.log.prompt.promptmessage import preview
from turnlog.log.text import cut, one_line
from turnlog.thread.summary import META, summarise


def said(role, text, seq=1, *blocks, **fields):
    return Message(role=role, blocks=[Text(text), *blocks], seq=seq, **fields)


def call(name, **arguments):
    return ToolCall(id="c", name=name, input=arguments)


def facts(message):
    return message.meta[META]


def text(message):
    return message.blocks[0].text


TALK = [
    said("user", "Read src/app/main.py, then the tests"),
    said("assistant", "Reading.", 2, call("read", path="README"), call("bash", command="cat tests/unit/test_a.py|wc")),
    Message(role="tool", blocks=[ToolResult(call="c", content="todo: /a/b.txt"), Text("next: /c/d.txt")], seq=3),
    said("assistant", "It is a race.\nNext I fix the lock.\nFine so far.", 4),
    said("user", "Good. Remaining: the docs", 5),
]  # fmt: skip


def test_it_says_what_happened():
    summary = summarise(TALK)
    assert summary.role == "user"
    assert text(summary).splitlines() == [
        "The earlier part of this conversation is left out here. What it was about, put together without a model:",
        "",
        "- Scope: 5 messages (2 user, 2 assistant, 1 tool)",
        "- Tools used: read, bash",
        "- Last requests:",
        "  - Read src/app/main.py, then the tests",
        "  - Good. Remaining: the docs",
        "- Pending work:",
        "  - Next I fix the lock.",
        "  - Good. Remaining: the docs",
        "- Key files: src/app/main.py, README, tests/unit/test_a.py",
        "- Current work: It is a race. Next I fix the lock. Fine so far.",
    ]


def test_the_same_messages_give_the_same_summary():
    assert (text(summarise(TALK)), facts(summarise(TALK))) == (text(summarise(TALK)), facts(summarise(TALK)))


@pytest.mark.parametrize("word", ["todo", "TODO", "next", "Pending", "follow up", "follow-up", "followup", "remaining"])
def test_every_word_for_what_is_left_is_heard(word):
    line = f"{word}: the rest"
    assert facts(summarise([said("assistant", f"Done.\n{line}\nBye.")]))["pending"] == [line]


@pytest.mark.parametrize("text", ["nextjs is fine", "the context", "appending", "todos are elsewhere"])
def test_other_words_are_not(text):
    assert "pending" not in facts(summarise([said("assistant", text)]))


def test_what_is_said_twice_is_there_once_where_it_was_last():
    files = [f"a/{number}.py" for number in range(10)]
    summary = summarise([said("user", " ".join([*files, "a/3.py", "a/9.py"])), said("assistant", "TODO: x\nTODO: x")])
    assert facts(summary)["files"] == [*(f"a/{number}.py" for number in (1, 2, 4, 5, 6, 7, 8)), "a/3.py", "a/9.py"][1:]
    assert facts(summary)["pending"] == ["TODO: x"]


def test_addresses_are_no_files():
    assert "files" not in facts(summarise([said("user", "see https://example.com/a/b.html and a/b and x.py")]))


def test_only_what_is_before_the_cut_is_summarised():
    assert facts(summarise(TALK, before=3)) == facts(summarise(TALK[:2]))


def test_an_earlier_summary_is_merged_and_not_quoted():
    first = summarise(TALK[:3])
    again = summarise([Message(role="user", blocks=first.blocks, meta=first.meta), *TALK[3:]])
    assert facts(again) == facts(summarise(TALK))
    assert text(again) == text(summarise(TALK))


def test_a_hundred_compactions_make_no_longer_summary_than_ten():
    summary = None
    sizes = []
    for number in range(100):
        new = [
            said("user", f"request {number:03} " + "x" * 500),
            said("assistant", f"next: {number:03} " + "y" * 500, 2, call(f"t{number:03}", path=f"a/{number:03}.py")),
        ]
        summary = summarise(new if summary is None else [summary, *new])
        sizes.append(len(text(summary)))
    assert max(sizes) - sizes[30] < 10, "only the numbers in it get longer"
    assert facts(summary)["user"] == facts(summary)["assistant"] == 100
    assert facts(summary)["requests"][-1].startswith("request 099")
    assert len(facts(summary)["files"]) == 8
    assert facts(summary)["files"][-1] == "a/099.py"


def test_a_summary_that_somebody_else_wrote_is_kept_word_for_word():
    theirs = Message(role="user", blocks=[Text("We are fixing the flaky test.")])
    one = summarise([theirs, said("user", "go on")])
    two = summarise([one, said("user", "and on", 2)])
    assert facts(two)["earlier"] == "We are fixing the flaky test."
    assert text(two).endswith("A summary of what came before that:\n\nWe are fixing the flaky test.")
    assert text(two).count("flaky") == 1
    assert facts(two)["user"] == 2


def test_a_very_long_foreign_summary_is_cut():
    theirs = Message(role="user", blocks=[Text("z" * 50_000)])
    assert len(facts(summarise([theirs]))["earlier"]) == 8_001


@pytest.mark.parametrize("meta", [None, 7, [], {}, {META: None}, {META: {"user": "many"}}, {META: [1]}])
def test_odd_meta_is_no_summary(meta):
    message = Message(role="user", blocks=[Text("hello")], meta=meta)
    assert facts(summarise([message]))["earlier"] == "hello"


def test_an_injected_preamble_is_nobodys_request():
    summary = summarise([said("user", "[SYSTEM: next you read AGENTS.md] Fix it")])
    assert facts(summary)["requests"] == ["Fix it"]
    assert "pending" not in facts(summary)


def test_nothing_to_summarise_is_refused():
    with pytest.raises(Invalid, match="nothing to summarise"):
        summarise([])
    with pytest.raises(Invalid):
        summarise(TALK, before=1)


# ── short texts ───────────────────────────────────────────────────────────────────────────────────


def test_a_preview_is_the_first_thing_a_person_said():
    assert (
        preview([said("system", "be brief"), said("assistant", "hello"), said("user", " Fix\n the  test ")])
        == "Fix the test"
    )
    assert preview([said("user", "  "), said("user", "second")]) == "second"
    assert preview([]) == ""


@pytest.mark.parametrize(
    "injected",
    [
        "[SYSTEM: plan mode is on]",
        "[SYSTEM: never closed",
        "<system-reminder>be nice</system-reminder>",
        "<environment_context>\n<cwd>/x</cwd>\n</environment_context>",
        "<ide_opened_file>The user opened the file /x.toml in the IDE.</ide_opened_file>",
        "<local-command-stdout>Reconnected.</local-command-stdout>",
        '<file name="/x/dot.png"></file>',
        '<image name=[Image #1] path="dot.png">\n</image>',
        "# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n\n## My request for Codex:",
    ],
)
def test_injected_preambles_are_skipped(injected):
    assert preview([said("user", injected), said("user", "Fix it")]) == "Fix it"
    if injected[-1] in "]>:":
        assert preview([said("user", f"{injected}\n\n{injected}Fix it")]) == "Fix it"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("<command-name>/review</command-name>\n<command-message>review</command-message>", "/review"),
        (
            "<command-message>plan is running…</command-message>\n<command-name>/plan</command-name>\n"
            "<command-args>the login\npage</command-args>",
            "/plan the login page",
        ),
        ("<command-name>/exit</command-name>\n<command-args></command-args>", "Fix it"),
        ("<command-name> is a tag", "<command-name> is a tag"),
    ],
)
def test_a_command_in_tags_is_shown_as_it_was_typed(written, seen):
    assert preview([said("user", written), said("user", "Fix it")]) == seen


def test_a_preview_shows_what_people_see():
    assert preview([said("user", "hidden", display=False), said("user", "long prompt", display="/fix")]) == "/fix"


@pytest.mark.parametrize("length", [119, 120, 121, 500])
def test_a_preview_is_cut_at_120_characters(length):
    text = "ü" * length
    assert preview([said("user", text)]) == (text if length <= 120 else "ü" * 120 + "…")


@pytest.mark.parametrize(
    "one", ["é", "👩‍👩‍👧", "👍🏽", "🇩🇪", "ก็", "❤️"], ids=["combining", "joined", "skin", "flag", "thai", "variation"]
)
def test_what_is_drawn_as_one_character_is_not_torn(one):
    for before in range(100, 121):
        text = cut("x" * before + one * 30, 120)
        assert text.endswith("…")
        rest = text[before:-1]
        assert rest == one * (len(rest) // len(one))
        assert 120 - len(one) < len(text) - 1 <= 120


def test_a_text_that_is_one_endless_character_is_cut_all_the_same():
    assert len(cut("e" + "\u0301" * 500, 120)) <= 121


@given(st.text(max_size=300), st.integers(1, 150))
def test_a_cut_text_is_a_beginning(text, limit):
    short = cut(text, limit)
    assert short == text or (short.endswith("…") and text.startswith(short[:-1]) and len(short) <= limit + 1)
    assert "\n" not in one_line(text, limit)


@given(st.text(alphabet="[]SYTEM: <>system-reminder/\n", max_size=200))
def test_preambles_always_end(text):
    assert text.endswith(without_preamble(text))
