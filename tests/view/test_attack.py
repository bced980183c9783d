"""Nothing that stands in a log may drive a terminal, run in a browser, or pass for something else in Markdown."""

import re
from html.parser import HTMLParser

import pytest

from turnlog import Compaction, File, Image, Message, Note, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import AnyEntry
from turnlog.view.html import page
from turnlog.view.markdown import document
from turnlog.view.rowmaker import Rows
from turnlog.view.terminal.line import lines_of
from turnlog.view.terminal.typeset import LineStyle

HTML = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "</pre></details></article><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "<!-- <script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    '[x](https://a.b/"onmouseover="alert(1))',
    "![x](https://evil.example/track.png)",
    "<https://a.b/><script>alert(1)</script>",
    "`<script>alert(1)</script>`",
    "```html\n</code></pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "| a | b |\n|---|---|\n| `x|<script>alert(1)</script>` | <b>y</b> |",
    "| a | b |\n|---|---|\n| `x\\|<script>alert(1)</script>` | y |",
    "````\n```\n<script>alert(1)</script>\n````",
    "~~~\n```\n<script>alert(1)</script>",
    "    <script>alert(1)</script>",
    "- <script>alert(1)</script>\n\n  <script>",
    "> <iframe src=//evil.example>",
    "[a]: javascript:alert(1)\n[a]",
    "text\n===\n<base href=//evil.example>",
    "<style>@import url(//evil.example)</style>",
    '<meta http-equiv="refresh" content="0;url=//evil.example">',
    "<a href=//evil.example>x</a> <form action=//evil.example><input>",
    "\u202e<script>\u2066",
    "a`b``c```d<script>alert(1)</script>",
    "**<script>alert(1)</script>**",
    "1. x\n2. <script>alert(1)</script>",
    "\\<script>alert(1)\\</script>",
    "```\n``` \n<script>alert(1)</script>",
]
TERMINAL = [
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]52;c;aGk=\x07",
    "\x1b]8;;file:///etc/passwd\x1b\\link\x1b]8;;\x1b\\",
    "\x9b2J",
    "\x1bP1$r\x1b\\",
    "a\rb",
    "a\x08\x08b",
    "\u202eevil\u2066",
    "\u2028line",
    "\x1b[31mred\x1b[0m\x1b[8mhidden",
    "\x00\x7f\x85",
    "\ud800",
]


def everywhere(evil: str) -> list[AnyEntry]:
    """A conversation that has it in every place that is shown."""
    result = ToolResult(call="c1", content=[Text(evil), Image(name=evil, media_type=evil)], is_error=True, child=evil)
    return [
        Message(role="user", blocks=[Text(evil), File(name=evil, url=evil)], agent=evil, seq=1),
        Message(
            role="assistant",
            blocks=[
                Thinking(text=evil),
                Text(evil),
                ToolCall(id="c1", name=evil, input={"command": evil, evil: evil}),
                ToolCall(id="c2", name="Edit", input={"path": evil, "old_text": evil, "new_text": f"{evil}\n+{evil}"}),
                ToolCall(id="c3", name="x", input=f"*** Begin Patch\n*** Add File: {evil}\n+{evil}\n*** End Patch"),
            ],
            model=evil,
            stop="error",
            error={"message": evil},
            seq=2,
        ),
        Message(role="tool", blocks=[result], seq=3),
        Message(role="tool", blocks=[ToolResult(call="c2", content=f"diff --git a b\n+{evil}\n-{evil}")], seq=4),
        Message(role=evil, blocks=[Text(evil)], seq=5),
        Note(text=evil, seq=6),
        Compaction(replacement=[Message(role="user", blocks=[Text(evil)])], trigger=evil, seq=7),
    ]


class Reader(HTMLParser):
    """Takes a page as a browser would: which tags there are, and with which attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]")
TAGS = {
    "a", "article", "b", "blockquote", "body", "br", "code", "del", "details", "div", "em", "h1", "h2", "h3", "h4",
    "head", "header", "hr", "html", "i", "input", "ins", "label", "li", "main", "meta", "nav", "ol", "p", "pre", "s",
    "span", "strong", "style",
    "summary", "table", "td", "th", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "aria-label", "charset", "class", "content", "for", "href", "http-equiv", "id", "lang", "name", "open", "rel",
    "start", "type",
}  # fmt: skip


def as_page(evil: str) -> str:
    prompts = [(1, evil), (2, evil)]
    return (
        page.head(evil, [evil, evil], evil, prompts) + "".join(page.parts(Rows().paired(everywhere(evil)))) + page.FOOT
    )


@pytest.mark.parametrize("evil", [*HTML, *TERMINAL], ids=ascii)
def test_a_page_has_only_our_tags(evil: str):
    made = as_page(evil)
    reader = Reader()
    reader.feed(made)
    assert {tag for tag, _ in reader.tags} <= TAGS
    for tag, attributes in reader.tags:
        assert set(attributes) <= ATTRIBUTES, (tag, attributes)
        target = attributes.get("href") or "#"
        assert target.startswith(("#", "http://", "https://", "mailto:"))
    assert sum(tag == "style" for tag, _ in reader.tags) == 1
    assert [
        attributes["content"] for tag, attributes in reader.tags if tag == "meta" and "http-equiv" in attributes
    ] == [page.POLICY]
    assert not UNSEEN.search(made)


def test_a_page_fetches_nothing():
    made = as_page("hello")
    assert "default-src 'none'" in made
    assert not re.search(r"<(?:script|img|link|iframe|object|embed|video|audio|source|base|form)\b", made)
    assert re.findall(r"<input[^>]*>", made) == ['<input type="checkbox" id="unfold">']  # nothing can be sent
    assert "url(" not in made
    assert "@import" not in made


@pytest.mark.parametrize("evil", [*HTML, *TERMINAL], ids=ascii)
def test_markdown_is_only_text_to_a_renderer(evil: str):
    """markdown-it, with HTML allowed, as an independent judge."""
    renderer = pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable("table")
    made = document.head(evil, [evil], evil) + "".join(document.parts(Rows().paired(everywhere(evil))))
    reader = Reader()
    reader.feed(renderer.render(made))
    allowed = TAGS | {"h5", "h6", "thead", "tbody"}
    assert {tag for tag, _ in reader.tags} <= allowed
    for tag, attributes in reader.tags:
        assert set(attributes) <= {"href", "class", "start", "style", "title"}, (tag, attributes)
        assert str(attributes.get("href") or "http").startswith(("http", "mailto:"))
    assert not UNSEEN.search(made)


@pytest.mark.parametrize("has_colour", [False, True])
@pytest.mark.parametrize("room", [None, 60])
@pytest.mark.parametrize("is_full", [False, True])
@pytest.mark.parametrize("evil", TERMINAL, ids=ascii)
def test_no_line_drives_a_terminal(evil: str, is_full: bool, room: int | None, has_colour: bool):
    screen = LineStyle(room=room, has_colour=has_colour, is_full=is_full)
    for line in lines_of(Rows().paired(everywhere(f"x {evil} y")), screen):
        plain = re.sub(r"\x1b\[[0-9;]{1,12}m", "", line) if has_colour else line
        assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029\ud800-\udfff]", plain), ascii(
            line
        )


def test_colours_of_ours_end_with_their_line():
    screen = LineStyle(room=60, has_colour=True)
    for line in lines_of(Rows().paired(everywhere("**bold** and `code`")), screen):
        assert line.count("\x1b[0m") == len(re.findall(r"\x1b\[[1-9][0-9;]*m", line))


def test_a_page_in_a_browser_that_allows_everything_is_still_the_same_text():
    """What was said is all there, letter for letter."""
    reader = Reader()
    reader.feed(as_page("a < b && c > \"d\" 'e' &amp; <script>"))
    assert reader.text.count("a < b && c > \"d\" 'e' &amp; <script>") > 8


FRAMES = ['{"output":"a","output":1}', '{"output":"a","metadata":' + "[" * 5_000 + "]" * 5_000 + "}"]


@pytest.mark.parametrize("output", FRAMES)
def test_no_output_stops_a_viewer(output: str):
    entry = Message(role="tool", blocks=[ToolResult(call="c", content=output)], seq=1)
    rows = list(Rows().of(entry))
    assert output[:12] in "".join(document.parts(rows))
    assert list(page.parts(Rows().paired([entry])))
    assert list(lines_of(rows, LineStyle()))


def test_a_bar_in_a_link_ends_no_cell():
    evil = "| a | b |\n|---|---|\n| [x](http://h/p\\|q) | y |"
    entry = Message(role="assistant", blocks=[Text(evil)], seq=1)
    [row] = [line for line in "".join(document.parts(Rows().of(entry))).split("\n") if "http://h/p" in line]
    assert "(http://h/p%7Cq)" in row
