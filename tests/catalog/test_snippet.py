"""What is shown of a text that was found: one line, the words in it marked, nothing cut in half."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.catalog.ask.query import parse
from turnlog.catalog.ask.snippet import LINE, MORE, WIDTH, snippet
from turnlog.catalog.index.terms import Needle

FAMILY = "👩‍👩‍👧‍👦"
FLAGS = "🇩🇪🇫🇷🇯🇵"
PIECES = st.sampled_from(
    [
        "foo",
        "bar",
        "foobar",
        " ",
        "  ",
        "\n",
        "\n    ",
        "\t",
        "_",
        "(",
        "été",
        "e\u0301\u0302",
        FAMILY,
        FLAGS,
        "👍🏽",
        "x" * 50,
    ]
)
TEXTS = st.lists(PIECES, max_size=120).map("".join)
QUERIES = st.sampled_from(["foo", "foo bar", '"foo bar"', "ba*", "foo_", "*oob*", "ete", "nothing"])


def needles(query: str) -> list[Needle]:
    return [Needle(term) for term in parse(query).terms]


def marked(text: str, query: str, width: int = WIDTH) -> str:
    line, marks = snippet(text, needles(query), width)
    for start, end in reversed(marks):
        line = f"{line[:start]}[{line[start:end]}]{line[end:]}"
    return line


def test_a_short_text_is_shown_whole():
    assert marked("the build failed again", "failed") == "the build [failed] again"
    assert marked("", "failed") == ""


def test_lines_of_code_stay_apart():
    code = "def load(self):\n    return self._rows\n\n\nclass Next:\n"
    assert marked(code, "self._rows") == f"def load(self):{LINE}return [self._rows]{LINE}class Next:"


def test_the_place_in_a_long_text_is_in_the_middle_of_it():
    text = "word " * 500 + "the needle is here " + "word " * 500
    line = marked(text, "needle")
    assert line.startswith(f"{MORE}word") and line.endswith(MORE)
    assert "the [needle] is here" in line


def test_the_place_with_most_of_the_words_is_shown():
    text = "alpha " + "x " * 500 + "beta alpha gamma" + " x" * 500
    assert "[beta] [alpha] [gamma]" in marked(text, "alpha beta gamma")


def test_marks_are_whole_words_phrases_and_beginnings():
    assert marked("Foo foobar foo_x", "foo") == "[Foo] foobar [foo]_x"
    assert marked("foo, bar foobar", '"foo bar"') == "[foo, bar] foobar"
    assert marked("foobar xfoo", "foo*") == "[foobar] xfoo"
    assert marked("a.foo(1) x_foo(1)", "foo(1") == "a.[foo(1]) x_[foo(1])"
    assert marked("xfoo foo.b", "foo.") == "xfoo [foo.]b"
    assert marked("xfoob", "*oo*") == "xf[oo]b"
    assert marked("Été", "ete") == "[Été]"
    assert marked("key:   value", '"key: value"') == "[key: value]"


def test_a_character_is_never_cut_in_half():
    for width in range(20, 60):
        line, _ = snippet(FAMILY * 20, [], width)
        assert line.removesuffix(MORE).replace(FAMILY, "") == ""
        line, _ = snippet("🇩🇪" * 60, [], width)
        assert len(line.removesuffix(MORE)) % 2 == 0
        line, _ = snippet("e\u0301" * 60, [], width)
        assert line.removesuffix(MORE).endswith("\u0301")


@given(TEXTS, QUERIES, st.integers(20, 200))
def test_any_text_gives_one_line_that_is_in_it(text: str, query: str, width: int):
    line, marks = snippet(text, needles(query), width)
    assert len(line) <= width
    assert not re.search(r"[\n\t]", line)
    bare = line.removeprefix(MORE).removesuffix(MORE).replace(LINE, " ")
    assert " ".join(bare.split()) in " ".join(text.split())
    ends = [0, *(edge for mark in marks for edge in mark)]
    assert ends == sorted(ends) and ends[-1] <= len(line)
    assert all(start < end for start, end in marks)


@given(TEXTS, QUERIES)
def test_what_was_found_is_marked(text: str, query: str):
    found = [needle for needle in needles(query) if needle.is_in(text.lower())]
    _, marks = snippet(text, needles(query))
    assert bool(marks) >= bool(found)


@pytest.mark.parametrize("query", ["foo", "foo_", "*o*", '"a b"'])
def test_a_huge_text_is_no_trouble(query: str):
    line, _ = snippet(" " * 500_000 + "foo_ a b " * 100_000, needles(query))
    assert "foo_" in line
