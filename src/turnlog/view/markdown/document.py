"""Rows as Markdown that any renderer shows as text: no HTML passes, and no code fence ends early.

What is text for us stays text for whoever renders it: it is parsed, and written again with its marks escaped. Code and
output stand in fences longer than any inside. Pictures that a text refers to become links: nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import assert_never

from msgspec.structs import replace

from turnlog.view.markdown.parser import (
    Block,
    Code,
    Heading,
    InlineSpan,
    ItemList,
    Paragraph,
    Quote,
    Table,
    is_web,
    parse,
)
from turnlog.view.row import Attachment, Call, Event, Output, Preamble, Prose, Row, Speaker, Thought
from turnlog.view.time import minute
from turnlog.view.visible import one_line, readable, safe

_SPECIAL = re.compile(r"[\\`*\[\]<>&|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|!(?=\[)")
_LEADING = re.compile(r"^([ \t]{0,8})(#{1,6}(?=\s|$)|[-+=]|\d{1,9}[.)](?=\s|$))", re.MULTILINE)
_MARKS = {"bold": "**", "italic": "*", "strike": "~~"}


def head(title: str, facts: Iterable[str], notice: str) -> str:
    """The beginning of the document."""
    lines = "\n".join(f"- {text(one_line(fact))}" for fact in facts if fact)
    return f"# {text(one_line(title))}\n\n{lines}\n\n> {text(one_line(notice))}\n"


def parts(rows: Iterable[Row]) -> Iterator[str]:
    """The rows, a piece of Markdown each, an empty line before it."""
    for row in rows:
        piece = _row(row)
        if piece:
            yield f"\n{piece}\n"


def _row(row: Row) -> str:
    match row:
        case Speaker():
            return _speaker(row)
        case Prose():
            prose = readable(row.text)
            return _blocks(parse(prose)) if row.is_markdown else _typed(prose)
        case Thought():
            return _quoted(f"*Thinking:* {_typed(readable(row.text).strip())}")
        case Preamble():
            return _quoted(f"*Added by the agent:*\n\n{fenced(readable(row.text))}")
        case Call():
            return _call(row)
        case Output():
            return _output(row)
        case Attachment():
            return text(one_line(row.label))
        case Event():
            line = f"*{text(one_line(row.kind))}:* {text(one_line(row.text))}".rstrip()
            return f"---\n\n{line}" + (f"\n\n{fenced(readable(row.body))}" if row.body else "")
    assert_never(row)


def _speaker(row: Speaker) -> str:
    when = minute(row.at)
    facts = [
        row.agent or "",
        row.model or "",
        when,
        *row.facts(),
    ]
    line = text(one_line(" · ".join(filter(None, facts))))
    return f"## {text(one_line(row.role))}" + (f"\n\n*{line}*" if line else "")


def _call(row: Call) -> str:
    title = f"**{text(one_line(row.name))}** {code(one_line(row.main_argument))}".rstrip()
    if row.changes:
        bodies = [
            f"{code(one_line(change.path))} +{change.plus} -{change.minus}\n\n{fenced(_lines(change.lines), 'diff')}"
            for change in row.changes
        ]
        return "\n\n".join([f"**{text(one_line(row.name))}**", *bodies])
    body = readable(row.body)
    return f"{title}\n\n{fenced(body)}" if row.has_more else title


def _lines(lines: list[str]) -> str:
    return "\n".join(readable(line).replace("\n", " ") for line in lines)


def _output(row: Output) -> str:
    output = readable(row.text).rstrip()
    mark = "✗" if row.is_error else "✓"
    if not output:
        return f"{mark} {text(one_line(row.name))}: nothing"
    return f"{mark} {text(one_line(row.name))}:\n\n{fenced(output, 'diff' if row.is_diff else '')}"


def _quoted(markdown: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in markdown.split("\n"))


def _typed(typed: str) -> str:
    """What a person typed, with its line ends, its spaces, and code between backticks."""
    parts = re.split(r"(`[^`\n]{1,400}`)", typed)
    markdown = "".join(code(part[1:-1]) if index % 2 else _escaped(part) for index, part in enumerate(parts))
    return "\n".join(map(_typed_line, _LEADING.sub(_escaped_lead, markdown).split("\n")))


def _typed_line(line: str) -> str:
    bare = line.lstrip(" \t")
    spaces = len(line.expandtabs(4)) - len(bare.expandtabs(4))
    return "&nbsp;" * spaces + bare + ("  " if bare else "")


# ── safe pieces ───────────────────────────────────────────────────────────────────────────────────


def text(content: str) -> str:
    """Text that means nothing to Markdown or HTML."""
    return _LEADING.sub(_escaped_lead, _escaped(content))


def _escaped(content: str) -> str:
    return _SPECIAL.sub(lambda match: {"<": "&lt;", "&": "&amp;"}.get(match[0], "\\" + match[0]), safe(content))


def _escaped_lead(match: re.Match[str]) -> str:
    lead, mark = match[1], match[2]
    return f"{lead}{mark[:-1]}\\{mark[-1]}" if mark[0].isdigit() else f"{lead}\\{mark}"


def code(content: str) -> str:
    """A stretch of code: more backticks around it than there are inside."""
    if not content:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`+", content)), default=0))
    space = " " if content.startswith("`") or content.endswith("`") else ""
    return f"{ticks}{space}{safe(content)}{space}{ticks}"


def fenced(content: str, language: str = "") -> str:
    """A block of code: a fence longer than any run inside."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", content)), default=0))
    plain = re.sub(r"[^A-Za-z0-9+#._-]", "", language)[:30]
    return f"{ticks}{plain}\n{safe(content)}\n{ticks}"


# ── Markdown again ────────────────────────────────────────────────────────────────────────────────


def _blocks(blocks: list[Block]) -> str:
    return "\n\n".join(map(_block, blocks))


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * min(6, block.level + 2)} {_spans(block.spans)}"
    if isinstance(block, Paragraph):
        return _LEADING.sub(_escaped_lead, _spans(block.spans)).replace("\n", "  \n")
    if isinstance(block, Code):
        return fenced(block.text, block.language)
    if isinstance(block, Quote):
        return _quoted(_blocks(block.blocks))
    if isinstance(block, ItemList):
        items: list[str] = []
        for number, item in enumerate(block.items):
            mark = f"{block.first + number}. " if block.first is not None else "- "
            first, *rest = "\n\n".join(map(_block, item)).split("\n")
            items.append("\n".join([mark + first, *(" " * len(mark) + line if line else "" for line in rest)]))
        return "\n".join(items)
    if isinstance(block, Table):
        rows = [block.head, *block.rows]
        cells = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
        marks = "| " + " | ".join("---:" if is_right else "---" for is_right in block.right) + " |"
        return "\n".join([cells[0], marks, *cells[1:]])
    return "---"


def _cell(spans: list[InlineSpan]) -> str:
    """A cell of a table: a bar in code would end it, and the code with it."""
    inner = [replace(span, text=span.text.replace("|", "\\|")) if "code" in span.marks else span for span in spans]
    return _spans(inner).replace("\n", " ")


def _spans(spans: list[InlineSpan]) -> str:
    return "".join(map(_span, spans))


def _span(span: InlineSpan) -> str:
    markdown = code(span.text) if "code" in span.marks else _escaped(span.text)
    for mark in reversed([mark for mark in span.marks if mark != "code"]):
        bare = markdown.strip()
        if bare:
            markdown = markdown.replace(bare, f"{_MARKS[mark]}{bare}{_MARKS[mark]}", 1)
    if is_web(span.url):
        url = re.sub(r"[\s<>()\\\"'`|]", lambda match: f"%{ord(match[0]):02X}", safe(span.url))
        return f"<{url}>" if span.text == span.url and "%" not in url else f"[{markdown}]({url})"
    return f"{markdown} ({text(span.url)})" if span.url else markdown
