"""What was looked for is marked in what is drawn; and every colour of the page can be read on its background."""

import itertools
import re

import pytest

from turnlog.catalog.ask.query import parse
from turnlog.catalog.index.terms import Needle
from turnlog.log.block import Image
from turnlog.log.entry import Message
from turnlog.view.html.row import HtmlRows
from turnlog.view.html.style import STYLE
from turnlog.view.row import Attachment, Call, Output, Prose, Row, Speaker, Thought
from turnlog.view.rowmaker import Rows
from turnlog.view.visible import safe


def drawn(row: Row, query: str) -> str:
    return HtmlRows([Needle(term) for term in parse(query).terms]).row(row)


def test_words_are_marked_and_nothing_else_is_let_through():
    made = drawn(Prose("a <b>Needle</b> in `needle` & needless", is_markdown=True), "needle")
    assert made.count("<mark>") == 2
    assert "&lt;b&gt;<mark>Needle</mark>&lt;/b&gt;" in made
    assert "needless" in made
    made = drawn(Prose("<mark>no</mark>", is_markdown=False), "yes")
    assert "<mark>" not in made


def test_overlapping_needles_are_one_mark():
    assert drawn(Prose("error handling", is_markdown=False), 'error "error handling"').count("<mark>") == 1


def test_a_link_is_not_broken_by_a_mark():
    made = drawn(Prose("see https://example.org/needle now"), "needle")
    assert 'href="https://example.org/needle"' in made


@pytest.mark.parametrize(
    "row",
    [
        Thought("one\nneedle"),
        Output(3, "c", "bash", "", "first\nsecond\nneedle"),
        Call("c", "bash", "ls", '{"command": "ls", "more": "needle"}'),
    ],
)
def test_what_is_folded_opens_where_it_has_one(row: Row):
    assert " open" in drawn(row, "needle")
    assert " open" not in drawn(row, "thread")


@pytest.mark.parametrize("lead", ["", "\n\n\n", "   "])
@pytest.mark.parametrize("characters", [150, 154, 157, 160])
def test_a_needle_that_the_first_line_cuts_opens_the_rest(lead: str, characters: int):
    """The first line of a folded output is shown up to its 160th character."""
    text = f"{lead}{'x' * (characters - 1)} needle\nmore"
    is_visible = characters + len("needle") <= 160
    piece = drawn(Output(3, "c", "bash", "", text), "needle")
    assert " open" in piece or (is_visible and "<mark>needle" in piece.partition("</summary>")[0])
    assert (" open" in piece) == (characters + len("needle") >= 160)
    assert " open" not in drawn(Output(3, "c", "bash", "", f"{lead}needle first\nmore"), "needle")


def test_a_picture_says_its_digest():
    message = Message(role="user", blocks=[Image(data=b"abc"), Image(blob="sha256:" + "0" * 64)])
    speaker, first, second = Rows().of(message)
    assert isinstance(speaker, Speaker)
    assert isinstance(first, Attachment)
    assert isinstance(second, Attachment)
    assert first.digest == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert second.digest == "sha256:" + "0" * 64


def luminance(colour: str) -> float:
    text = colour.lstrip("#")
    text = "".join(one * 2 for one in text) if len(text) == 3 else text
    values = [int(text[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_every_colour_can_be_read_on_every_background():
    for theme in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]+)", theme))
        grounds = ("paper", "box", "user", "plus", "minus")
        texts = ("ink", "pale", "blue", "green", "red", "yellow")
        for text, ground in itertools.product(texts, grounds):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


def test_a_text_is_made_safe_the_same_way_whatever_else_is_in_it():
    for code in range(128):
        plain = f"a{chr(code)}b"
        assert safe(plain) + "ä" == safe(plain + "ä")
