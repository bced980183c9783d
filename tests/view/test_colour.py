"""Code in colours: nothing of it is lost, and nothing in it is more than text."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnlog.catalog.index.terms import Needle
from turnlog.log.block import Text, ToolCall, ToolResult
from turnlog.log.entry import Message
from turnlog.view.html.highlight import coloured, family_of
from turnlog.view.html.row import HtmlRows
from turnlog.view.rowmaker import Rows

FAMILIES = ("python", "c", "shell", "sql", "ruby", "data")


def kinds(code: str, name: str) -> list[tuple[str, str]]:
    return [(kind, piece) for kind, piece in coloured(code, family_of(name)) if kind]


def test_keywords_strings_numbers_and_comments_are_told_apart():
    assert kinds("def f(x=1):  # why\n    return 'if' + self.inner", "a/b.py") == [
        ("kw", "def"), ("nu", "1"), ("cm", "# why"), ("kw", "return"), ("st", "'if'"), ("kw", "self"),
    ]  # fmt: skip
    assert kinds('const a = "x"; // 1\n/* b\nc */ let d', "ts") == [
        ("kw", "const"), ("st", '"x"'), ("cm", "// 1"), ("cm", "/* b\nc */"), ("kw", "let"),
    ]  # fmt: skip
    assert kinds("SELECT 1 -- one", "sql") == [("kw", "SELECT"), ("nu", "1"), ("cm", "-- one")]
    assert kinds('{"a": true, "b": 0x1F}', "x.json") == [
        ("st", '"a"'), ("kw", "true"), ("st", '"b"'), ("nu", "0x1F"),
    ]  # fmt: skip
    assert [family_of(name) for name in ("", "brainfuck", "no-ending", "notes.txt")] == [""] * 4


@pytest.mark.parametrize("family", FAMILIES)
@given(code=st.text(alphabet="abif \n\"'`\\/*#-<&0.1", max_size=80))
def test_the_pieces_are_the_code(family: str, code: str):
    assert "".join(piece for _, piece in coloured(code, family)) == code


def test_code_stays_text_whatever_is_in_it_and_is_marked_where_it_was_looked_for():
    evil = 'return "</span><script>alert(1)</script>" # <b>'
    made = HtmlRows().code(evil, "py")
    assert made == (
        '<span class="kw">return</span> <span class="st">&quot;&lt;/span&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;'
        '</span> <span class="cm"># &lt;b&gt;</span>'
    )
    from turnlog.catalog.ask.query import parse

    needles = [Needle(term) for term in parse("alert").terms]
    assert "<mark>alert</mark>" in HtmlRows(needles).code(evil, "py")


def test_what_was_read_and_changed_is_in_the_colours_of_its_file():
    edit = ToolCall(id="e", name="Edit", input={"file_path": "a.py", "old_string": "x = 1", "new_string": "return 2"})
    read = ToolCall(id="r", name="Read", input={"file_path": "/w/b.py"})
    run = ToolCall(id="s", name="Bash", input={"command": "python c.py"})
    said = "def one():\n    return 1\n"
    entries = [
        Message(id="1", seq=1, role="assistant", blocks=[edit, read, run, Text(text="```py\nimport this\n```")]),
        *(
            Message(id=call, seq=number, role="tool", blocks=[ToolResult(call=call, content=said)])
            for number, call in enumerate("ers", 2)
        ),
    ]
    made = "".join(HtmlRows().parts(Rows().paired(entries)))
    assert '<ins>+<span class="kw">return</span> <span class="nu">2</span></ins>' in made
    assert '<span class="kw">import</span> this' in made
    assert made.count('<span class="kw">def</span> one') == 1  # what was read; not what a command printed


@pytest.mark.parametrize("unclosed", ["\\'", '\\"', "\\`", "'\\"])
@pytest.mark.parametrize("family", FAMILIES)
def test_quotes_that_nothing_closes_take_time_that_grows_with_the_code(family: str, unclosed: str):
    def took(times: int) -> float:
        code = unclosed * times
        start = process_time()
        assert "".join(piece for _, piece in coloured(code, family)) == code
        return process_time() - start

    took(100)  # compiles the pattern
    assert took(10_000) < 0.4  # 20 KB, the most that is coloured; it was 1.5 s


def test_a_long_string_ends_where_it_ends():
    long = '"' + 'if \\" ' * 200 + '"'
    assert kinds(f'{long}, "b": true', "x.json") == [("st", long), ("st", '"b"'), ("kw", "true")]
