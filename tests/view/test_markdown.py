"""Markdown as models write it."""

import pytest

from turnlog.view.markdown import Code, Heading, Listing, Paragraph, Quote, Rule, Span, Table, parse, spans


def test_blocks():
    text = (
        "# One\npara\nof two lines\n\n- a\n  more\n  - inner\n    ```py\n    x = 1\n    ```\n- b\n\n3. three\n4. four\n"
        "\n"
        "> quoted\n> > twice\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n| 3 |\n\n***\n~~~\nopen ``` fence"
    )
    one, para, bullets, numbers, quote, table, rule, code = parse(text)
    assert one == Heading(1, [Span("One")])
    assert para == Paragraph([Span("para\nof two lines")])
    assert isinstance(bullets, Listing)
    assert bullets.items[0] == [
        Paragraph([Span("a\nmore")]),
        Listing(0, [[Paragraph([Span("inner")]), Code("py", "x = 1")]]),
    ]
    assert numbers == Listing(3, [[Paragraph([Span("three")])], [Paragraph([Span("four")])]])
    assert quote == Quote([Paragraph([Span("quoted")]), Quote([Paragraph([Span("twice")])])])
    assert table == Table([[Span("a")], [Span("b")]], [[[Span("1")], [Span("2")]], [[Span("3")], []]], [False, True])
    assert rule == Rule()
    assert code == Code("", "open ``` fence")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("**bold** and *it*", [Span("bold", ("bold",)), Span(" and "), Span("it", ("italic",))]),
        ("***both***,", [Span("both", ("bold", "italic")), Span(",")]),
        ("`a *b*` ``c`d``", [Span("a *b*", ("code",)), Span(" "), Span("c`d", ("code",))]),
        ("snake_case_name and 2 * 3 * 4", [Span("snake_case_name and 2 * 3 * 4")]),
        ("~~no~~ \\*yes\\*", [Span("no", ("strike",)), Span(" *yes*")]),
        ("**open and `open", [Span("**open and `open")]),
        ('[a](https://b.c/d_(e) "t")', [Span("a", url="https://b.c/d_(e)")]),
        ("![a](http://evil/x.png)", [Span("a", url="http://evil/x.png")]),
        ("see https://a.b/c_d.", [Span("see "), Span("https://a.b/c_d", url="https://a.b/c_d"), Span(".")]),
        ("<b>[x]</b>", [Span("<b>[x]</b>")]),
    ],
)
def test_spans(text: str, expected: list[Span]):
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
