"""Entries as rows, and rows as lines."""

import re

import pytest

from turnlog import Compaction, Edit, Image, Message, Note, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.log.entry import AnyEntry, Child, Head
from turnlog.view.cost import Costs
from turnlog.view.markdown.parser import spans
from turnlog.view.row import Attachment, Call, Output, Prose, Speaker
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import folded, lines_of
from turnlog.view.terminal.typeset import LineStyle, wrapped
from turnlog.view.visible import width

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def call(name: str, number: str = "1", **more: object) -> ToolCall:
    return ToolCall(id=f"c{number}", name=name, input=more)


def answer(number: str, text: str, **more: object) -> Message:
    return Message(role="tool", blocks=[ToolResult(call=f"c{number}", content=text, **more)], seq=int(number) + 10)  # type: ignore[arg-type]


def drawn(*entries: AnyEntry, **screen: object) -> str:
    return "\n".join(lines_of(Rows(price=Costs()).paired(entries), LineStyle(**screen)))  # type: ignore[arg-type]


def test_each_result_stands_behind_its_call():
    entries = [
        Message(role="assistant", blocks=[call("Read", "1", path="a"), call("Bash", "2", command="ls")]),
        answer("2", "second"),
        answer("1", "first"),
        Message(role="assistant", blocks=[Text("done")]),
        answer("9", "of nobody"),
    ]
    rows = list(Rows().paired(entries))
    kinds = [(type(row), getattr(row, "call", getattr(row, "id", ""))) for row in rows]
    assert kinds[1:5] == [(Call, "c1"), (Output, "c1"), (Call, "c2"), (Output, "c2")]
    assert isinstance(rows[5], Speaker)
    assert isinstance(rows[-1], Output)
    assert rows[-1].name == "tool"


def test_what_an_agent_put_in_front_is_told_apart():
    said = "<system-reminder>\nbe nice\n</system-reminder>\nFix it"
    _, aside, prose = Rows().of(Message(role="user", blocks=[Text(said)]))
    assert isinstance(prose, Prose)
    assert prose.text == "Fix it"
    assert not prose.is_markdown
    assert "be nice" in str(aside)


def test_a_message_for_nobody_is_not_shown_and_one_with_a_display_is_what_that_says():
    assert list(Rows().of(Message(role="user", blocks=[Text("x")], display=False))) == []
    assert "shown" in str(list(Rows().of(Message(role="user", blocks=[Text("x")], display="shown"))))


def test_pictures_have_a_name_and_a_size():
    rows = Rows(size=lambda digest: 2048).of(
        Message(role="user", blocks=[Image(blob="sha256:x", name="a.png", media_type="image/png")])
    )
    assert list(rows)[1] == Attachment("image", "a.png", "image/png", 2048, "sha256:x")


def test_a_conversation_as_lines():
    text = drawn(
        Message(role="user", blocks=[Text("The test is flaky")], seq=3),
        Message(
            role="assistant",
            blocks=[Thinking(text="hm"), Text("**Looking.**"), call("Edit", path="a.py", oldText="1", newText="2")],
            model="m",
            usage=Usage(input_tokens=1000, output_tokens=20, cost_micros=12_345),
            seq=4,
        ),
        answer("1", "it failed", is_error=True),
        Note(text="a note", seq=12),
        Compaction(replacement=[Message(role="user", blocks=[Text("in short")])], keep=4, seq=13),
        Edit(entry=3, seq=14),
        Head(to=4, asof=4, why="rewind", left=13, seq=15),
        Child(session="sub", agent="explore", seq=16),
    )
    assert text == (
        "\nuser · entry 3\n"
        "  The test is flaky\n"
        "\nassistant · m · entry 4 · $0.012 · 1,000 tokens in, 20 out\n"
        "  ~ hm\n"
        "\n  **Looking.**\n"
        "\n  → Edit  a.py +1 -1\n    @@ -1 +1 @@\n    -1\n    +2\n"
        "    ✗ it failed\n"
        "\n── note: a note\n"
        "\n── compacted: the model sees a summary of what came before and everything from entry 4\n   in short\n"
        "── edited: entry 3 is left out for the model\n"
        "── rewind: to entry 4; what was left is branch 13\n"
        "── subagent: explore sub"
    ).replace("\n\n── compacted", "\n── compacted")


@pytest.mark.parametrize("room", [40, 60, 80, 120])
@pytest.mark.parametrize("has_colour", [False, True])
def test_lines_fit(room: int, has_colour: bool):
    long = "a word and another one, 漢字かな and so on, " * 12
    text = drawn(
        Message(role="user", blocks=[Text(long), Text("x" * 300)], model="m" * 90),
        Message(
            role="assistant",
            blocks=[
                Text(f"# {long}\n\n- {long}\n  1. {long}\n\n> {long}\n\n| a | b |\n|---|---|\n| {long} | {long} |\n"),
                call("Bash", command=long),
            ],
        ),
        answer("1", f"{long}\n\t{long}"),
        room=room,
        has_colour=has_colour,
    )
    for line in COLOUR.sub("", text).split("\n"):
        assert width(line) <= room, line
    assert has_colour == bool(COLOUR.search(text))


def test_output_is_folded_in_the_middle():
    text = "\n".join(f"line {n}" for n in range(100))
    short = drawn(Message(role="assistant", blocks=[call("Bash", command="x")]), answer("1", text))
    assert "line 7\n      … 88 more lines (--full)\n      line 96" in short
    full = drawn(Message(role="assistant", blocks=[call("Bash", command="x")]), answer("1", text), is_full=True)
    assert all(f"line {n}" in full for n in range(100))
    assert folded(["x"] * 13).hidden == 0, "one line is not replaced by a line that says so"


def test_the_entry_that_was_asked_for_is_pointed_at():
    text = drawn(Message(role="user", blocks=[Text("here")], seq=3), mark=3)
    assert "▶ user" in text


def test_output_that_was_asked_for_is_not_folded():
    entries = (
        Message(role="assistant", blocks=[call("Bash", command="x")]),
        answer("1", "\n".join("abcdefghijklmnopqrstuvwxyz")),
    )
    assert "m\n" not in drawn(*entries)
    assert "m\n" in drawn(*entries, mark=11)


def test_a_table_says_everything_however_narrow_it_is():
    words = [f"word{n}" for n in range(30)]
    table = (
        f"| a | b | c |\n|---|---|--:|\n| {' '.join(words[:10])} | {' '.join(words[10:20])} | {' '.join(words[20:])} |"
    )
    for room in (25, 40, 100):
        text = drawn(Message(role="assistant", blocks=[Text(table)]), room=room)
        assert all(word in text for word in words)
        assert max(map(width, text.split("\n"))) <= room


def test_wrapping_keeps_every_word():
    text = "one **two three** `four` five"
    assert " ".join(wrapped(spans(text), LineStyle(room=12), 12)).split() == text.split()
    assert list(wrapped(spans("abcdefghij"), LineStyle(room=4), 4)) == ["abcd", "efgh", "ij"]


def test_a_request_is_paid_once():
    costs = Costs()
    first = Message(role="assistant", request="r1", usage=Usage(cost_micros=5))
    assert costs(first) == 5
    assert costs(first) is None
    assert costs(Message(role="user")) is None
