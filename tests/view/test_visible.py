"""What is not plainly visible is found, however little of it there is among the rest."""

import random
import re

import wcwidth

from turnlog.cli.draw.text import clip_path
from turnlog.view import visible
from turnlog.view.markdown.parser import InlineSpan
from turnlog.view.terminal.typeset import LineStyle, wrapped

CHARACTERS = [
    *"ab \t\n\x00\x01\x0b\x1b\x1c\x7f\x85\xa0\xadé…漢👩", *"\u0301\u034f\u115f\u200b\u200c\u200d\u2028\u202e",
    *"\u3164\ud800\udfff\ufe00\ufe0f\ufeff\U000e0001",
]  # fmt: skip


def test_a_look_at_what_is_odd_tells_what_a_look_at_all_of_it_would():
    chance = random.Random(1)
    for _ in range(20_000):
        text = "".join(chance.choices(CHARACTERS, k=chance.randint(0, 6)))
        assert visible.is_safe(text) == (re.search(visible._UNSAFE, text) is None), ascii(text)
        assert visible.safe(text) == re.sub(visible._UNSAFE, visible._escaped, text), ascii(text)


def test_a_character_is_as_wide_as_a_terminal_draws_it():
    family, heart = "👨‍👩‍👧‍👦", "❤️"
    assert [visible.width(text) for text in (family, heart, "漢字", "é", "e\u0301", "naïve — ok…")] == [
        2,
        2,
        4,
        1,
        1,
        11,
    ]
    narrow = re.compile(visible._NARROW).fullmatch
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000 and narrow(chr(code)):
            assert wcwidth.wcwidth(chr(code)) == 1, hex(code)


def test_a_cut_parts_no_character():
    family = "👨‍👩‍👧‍👦"
    assert visible.clip(f"a{family}bcd", 4) == f"a{family}…"
    assert visible.clip(f"a{family}bcd", 3) == "a…"
    assert visible.clip("re\u0301sume\u0301", 4) == "re\u0301s…"
    assert visible.ending(f"abc{family}d", 3) == f"{family}d"
    assert visible.ending(f"abc{family}d", 2) == "d"
    assert visible.beginning(family, 1) == ""
    assert visible.clip("plain text", 6) == "plain…"
    assert visible.clip("plain text", 10) == "plain text"


def test_a_path_and_a_line_are_cut_between_characters():
    family = "👨‍👩‍👧‍👦"
    assert clip_path(f"/home/{family}/{family}{family}", 8) == f"/…/{family}{family}"
    lines = list(wrapped([InlineSpan(family * 3)], LineStyle(), 4))
    assert lines == [family * 2, family]
    assert next(wrapped([InlineSpan(family)], LineStyle(), 1)) == family  # no room for it: drawn all the same
