"""What is drawn again of a line, and how it is painted."""

from __future__ import annotations

import re

from turnlog.tui.canvas import changed_until, strip_of
from turnlog.tui.style import STYLE, bare, split_painted
from turnlog.tui.terminal import short_moves


def test_a_line_is_drawn_again_as_far_as_it_differs():
    assert changed_until("one line", "one lane", 20) == 6
    assert changed_until("short", "", 20) == 5
    assert changed_until("same", STYLE.paint("same", "bold"), 20) == 4
    assert changed_until("same", "same  ", 20) == 0
    assert changed_until("漢字", "漢子", 20) == 20


def test_a_match_is_marked_over_what_is_painted_differently():
    strip = strip_of("a " + STYLE.paint("need", "bold") + "le in", 20, re.compile("needle"))
    marked = "".join(segment.text for segment in strip if segment.style is not None and segment.style.reverse)
    assert (marked, strip.cell_length) == ("needle", 20)


def test_the_next_line_needs_no_place_and_any_other_does():
    assert short_moves("\x1b[2;1Ha\n\x1b[3;1Hb\n\x1b[4;1Hc\x1b[1;5H") == "\x1b[2;1Ha\r\nb\r\nc\x1b[1;5H"
    assert short_moves("\x1b[2;1Ha\n\x1b[5;1Hb\n\x1b[6;9Hc") == "\x1b[2;1Ha\x1b[5;1Hb\x1b[6;9Hc"
    assert short_moves("a\n\x1b[1;1Hb\nc") == "a\x1b[1;1Hb\nc"


def test_a_long_line_goes_on_below_where_it_begins_and_in_its_colour():
    line = "    " + STYLE.paint("abcdefghij", "dim") + "漢字漢"
    assert split_painted(line, 10) == ["    \x1b[2mabcdef\x1b[0m", "    \x1b[2mghij\x1b[0m漢", "    字漢"]
    assert split_painted("short", 10) == ["short"]
    for room in (1, 2, 3):
        assert "".join(bare(part).strip() for part in split_painted(line, room)) == "abcdefghij漢字漢"
