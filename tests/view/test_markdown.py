"""Markdown as models write it."""

import pytest

from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message
from turnlog.view.markdown.parser import (
    Code,
    Heading,
    InlineSpan,
    ItemList,
    Paragraph,
    Quote,
    Rule,
    Table,
    parse,
    spans,
)
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import lines_of
from turnlog.view.terminal.typeset import LineStyle, _narrowed


@pytest.mark.parametrize("row", [r"x | y\|", r"| x | y\| |", r"|x|y\||"])
def test_a_cell_may_end_with_an_escaped_bar(row: str):
    assert parse(f"a | b\n--|--\n{row}") == [
        Table([[InlineSpan("a")], [InlineSpan("b")]], [[[InlineSpan("x")], [InlineSpan("y|")]]], [False, False])
    ]


def test_blocks():
    text = (
        "# One\npara\nof two lines\n\n- a\n  more\n  - inner\n    ```py\n    x = 1\n    ```\n- b\n\n3. three\n4. four\n"
        "\n"
        "> quoted\n> > twice\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 |\n\n***\n~~~\nopen ``` fence"
    )
    one, para, bullets, numbers, quote, table, rule, code = parse(text)
    assert one == Heading(1, [InlineSpan("One")])
    assert para == Paragraph([InlineSpan("para\nof two lines")])
    assert isinstance(bullets, ItemList)
    assert bullets.items[0] == [
        Paragraph([InlineSpan("a\nmore")]),
        ItemList(None, [[Paragraph([InlineSpan("inner")]), Code("py", "x = 1")]]),
    ]
    assert numbers == ItemList(3, [[Paragraph([InlineSpan("three")])], [Paragraph([InlineSpan("four")])]])
    assert quote == Quote([Paragraph([InlineSpan("quoted")]), Quote([Paragraph([InlineSpan("twice")])])])
    assert table == Table(
        [[InlineSpan("a")], [InlineSpan("b")]],
        [[[InlineSpan("1")], [InlineSpan("2")]], [[InlineSpan("3")], []]],
        [False, True],
    )
    assert rule == Rule()
    assert code == Code("", "open ``` fence")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and *it*", [InlineSpan("bold", ("bold",)), InlineSpan(" and "), InlineSpan("it", ("italic",))]),
        ("***both***,", [InlineSpan("both", ("bold", "italic")), InlineSpan(",")]),
        ("`a *b*` ``c`d``", [InlineSpan("a *b*", ("code",)), InlineSpan(" "), InlineSpan("c`d", ("code",))]),
        ("snake_case_name and 2 * 3 * 4", [InlineSpan("snake_case_name and 2 * 3 * 4")]),
        ("~~no~~ \\*yes\\*", [InlineSpan("no", ("strike",)), InlineSpan(" *yes*")]),
        ("**open and `open", [InlineSpan("**open and `open")]),
        ('[a](https://b.c/d_(e) "t")', [InlineSpan("a", url="https://b.c/d_(e)")]),
        ("![a](http://evil/x.png)", [InlineSpan("a", url="http://evil/x.png")]),
        (
            "see https://a.b/c_d.",
            [InlineSpan("see "), InlineSpan("https://a.b/c_d", url="https://a.b/c_d"), InlineSpan(".")],
        ),
        ("<b>[x]</b>", [InlineSpan("<b>[x]</b>")]),
    ],
)
def test_spans(text: str, expected: list[InlineSpan]):
    assert spans(text) == expected


@pytest.mark.parametrize(
    "bomb",
    ["*" * 50_000, "**a " * 20_000, "`" * 50_000, "` `` " * 10_000, "[" * 50_000, "[a](" * 20_000, "> " * 20_000,
     "- " * 20_000, "_a_" * 20_000, "|" * 20_000 + "\n" + "-|" * 20_000, "1. " * 10_000, "\n" * 50_000,
     "    " * 20_000, "#" * 20_000],
    ids=lambda bomb: bomb[:5],
)  # fmt: skip
def test_nothing_is_lost_of_what_nobody_would_write(bomb: str):
    """It ends, however deep it seems to go, and every letter is still there."""
    marked = f"{bomb}end"
    assert "end" in str(parse(marked))


def test_a_list_that_begins_at_zero_is_numbered():
    [found] = parse("0. none\n1. one")
    assert isinstance(found, ItemList)
    assert found.first == 0
    [bullets] = parse("- none\n- one")
    assert isinstance(bullets, ItemList)
    assert bullets.first is None


def test_columns_that_have_too_little_room_become_narrower_the_widest_first():
    assert _narrowed([3, 4], 10) == [3, 4]
    assert _narrowed([9, 4, 9], 14) == [5, 4, 5]
    assert _narrowed([9, 4, 9], 15) == [5, 4, 6]
    assert _narrowed([5_000_000, 3], 40) == [37, 3]
    for widths in ([1, 2, 3, 30], [7, 7, 7, 7], [40, 1, 39, 2]):
        for room in range(4, sum(widths) + 1):
            slowly = list(widths)
            while sum(slowly) > room:
                slowly[slowly.index(max(slowly))] -= 1
            assert _narrowed(widths, room) == slowly


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Using C#", "Using C#"),
        ("## F#", "F#"),
        ("# Closed #", "Closed"),
        ("## C# and F# ##", "C# and F#"),
        ("# ##", ""),
        ("# #1 and #", "#1 and"),
    ],
)
def test_only_marks_after_a_blank_close_a_heading(line: str, title: str):
    [heading] = parse(line)
    assert isinstance(heading, Heading)
    assert "".join(span.text for span in heading.spans) == title


@pytest.mark.parametrize("room", [0, 1, 2, 3, 5, 8])
def test_a_terminal_of_any_width_is_written_to(room: int):
    blocks: list[AnyBlock] = [
        Text("# Title\n\nSome *prose* 世界\n\n| a | b |\n|---|---|\n| c | d |"),
        Thinking("hm 世界"),
    ]
    said = Message(role="assistant", blocks=[*blocks, Image(name="a.png"), ToolCall(id="c", name="Bash")], seq=1)
    result = Message(role="tool", blocks=[ToolResult(call="d", content="out\n" * 30, child="k3f9")], seq=2)
    lines = list(lines_of(Rows().paired([said, result]), LineStyle(room=room)))
    assert "".join("".join(lines).split()).count("世") == 2
