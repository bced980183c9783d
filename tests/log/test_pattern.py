"""A pattern that is compiled when it is used is the one that `re` makes."""

from __future__ import annotations

import re
import subprocess
import sys

from turnlog.log.pattern import pattern


def test_it_is_the_pattern_that_re_makes():
    made = pattern(r"(?P<word>[a-z]+) (\d+)", re.IGNORECASE)
    plain = re.compile(r"(?P<word>[a-z]+) (\d+)", re.IGNORECASE)
    for _ in range(2):  # the second time, its methods are there
        match = made.fullmatch("Room 12")
        assert match is not None
        assert match.groupdict() == {"word": "Room"}
        assert made.sub("x", "a 1 b 2") == plain.sub("x", "a 1 b 2")
        assert (made.pattern, made.flags, made.groups) == (plain.pattern, plain.flags, plain.groups)
    assert pattern(rb"\s+").split(b"a  b") == [b"a", b"b"]


def test_nothing_is_compiled_before_it_is_used():
    code = (
        "import re\nfrom turnlog.log.pattern import pattern\n"
        "re.compile = lambda *said: print('compiled') or re._compile(*said)\n"
        "made = pattern('a+')\nprint('made')\nprint(made.match('aa')[0], made.match('a')[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["made", "compiled", "aa", "a"]
