"""Every kind of row in every drawing: each says the same of it."""

import pytest

from turnlog.log.entry import Message
from turnlog.mcp.passage import EntryText
from turnlog.view.filechange import FileChange
from turnlog.view.html.row import HtmlRows
from turnlog.view.markdown import document
from turnlog.view.markdown.parser import InlineSpan
from turnlog.view.row import Attachment, Call, Event, Output, Preamble, Prose, Row, Speaker, Thought
from turnlog.view.terminal import typeset
from turnlog.view.terminal.line import lines_of
from turnlog.view.terminal.typeset import LineStyle
from turnlog.view.visible import width

CHANGES = [FileChange("a.txt", ["+xone", "+xtwo", "-xold"]), FileChange("b.txt", ["+xthree"])]
ROWS: list[tuple[Row, list[str]]] = [
    (Speaker(1, "user", agent="xagent", model="xmodel"), ["xagent", "xmodel"]),
    (Prose("xprose", role="user"), ["xprose"]),
    (Thought("xthought"), ["xthought"]),
    (Preamble("xaside"), ["xaside"]),
    (Call("c", "xtool", "xmain", '{"more": "xbody"}'), ["xtool", "xmain"]),
    (Call("c", "xtool", "xmain", "", CHANGES), ["xtool", "a.txt", "b.txt"]),
    (Output(2, "c", "xtool", "", "xoutput"), ["xoutput"]),
    (Attachment("image", "xname", "image/png", 1_500), ["xname", "image/png", "1.5 KB"]),
    (Event(3, "note", "xevent", body="xbody"), ["note", "xevent"]),
]


def drawings(row: Row) -> dict[str, str]:
    entry = Message(role="assistant", blocks=[], seq=1)
    return {
        "terminal": "\n".join(lines_of([row], LineStyle(is_full=True))),
        "html": HtmlRows().row(row),
        "markdown": "".join(document.parts([row])).replace("\\", ""),
        "model": EntryText(entry, [row]).text(is_full=True),
    }


@pytest.mark.parametrize(("row", "words"), ROWS, ids=lambda value: type(value).__name__)
def test_every_drawing_says_all_of_it(row: Row, words: list[str]):
    for name, text in drawings(row).items():
        if isinstance(row, Speaker) and name == "model":
            assert text == ""  # the head of the entry says it
        else:
            assert all(word in text for word in words), (name, text)


@pytest.mark.parametrize("body", ["xmain", "xmain\n"])
def test_a_body_that_says_no_more_is_left_out(body: str):
    row = Call("c", "xtool", "xmain", body)
    assert not row.has_more
    for name, text in drawings(row).items():
        assert text.count("xmain") == 1, (name, text)
    assert "<details" not in drawings(row)["html"]


def test_lines_that_come_and_go_are_counted_for_all_files():
    row = Call("c", "edit", "a.txt", "", CHANGES)
    assert (row.added, row.removed) == (3, 1)
    for name in ("terminal", "model"):
        assert "+3 -1" in drawings(row)[name]
    assert "<ins>+3</ins> <del>-1</del>" in drawings(row)["html"]


def test_failures_and_files_are_told_apart():
    assert Event(1, "turn failed", "").is_failure
    assert not Event(1, "note", "").is_failure
    assert Output(1, "c", "Read", "a.py", "x = 1").is_file
    assert not Output(1, "c", "Read", "a.py", "no such file", is_error=True).is_file


@pytest.mark.parametrize("character", ["漢", "e\u0301"])
def test_the_work_to_wrap_a_long_word_grows_with_its_length(monkeypatch: pytest.MonkeyPatch, character: str):
    measured: list[str] = []
    monkeypatch.setattr(typeset, "width", lambda text: measured.append(text) or width(text))  # pyright: ignore
    text = character * 20_000
    lines = list(typeset.wrapped([InlineSpan(text)], LineStyle(), 60))
    assert "".join(lines) == text
    assert {width(line) for line in lines[:-1]} == {60}
    assert sum(map(len, measured)) < 20 * len(text)
