"""Rows as pieces of HTML, safe wherever they are put.

Everything that comes out of a log goes through `text`: characters that are not plainly visible are shown as what they
are, and then what HTML would take for its own is escaped. Links lead to the web or to nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from turnlog.view.filechange import FileChange
from turnlog.view.html.highlight import coloured, family_of
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
from turnlog.view.number import count
from turnlog.view.row import Attachment, Call, Event, Output, Preamble, Prose, Row, Speaker, Thought
from turnlog.view.time import minute
from turnlog.view.visible import readable, safe

if TYPE_CHECKING:
    from turnlog.catalog.index.terms import Needle

_OPEN_LINES = 40
"""A longer change is folded at first, and so is every output."""
_SHORT = 160
_TAGS = {"bold": "strong", "italic": "em", "strike": "s", "code": "code"}
_MOST_MARKS = 1000
"""The maximum number of marks of a needle in one text."""


class HtmlRows:
    """Draws rows as HTML. Marks search terms, and opens folded parts that contain one."""

    def __init__(self, needles: Sequence[Needle] = ()) -> None:
        self._needles = needles

    def text(self, text: str) -> str:
        """Text with everything escaped that HTML would interpret."""
        visible = safe(text)
        marks = marks_in(visible, self._needles) if self._needles else []
        if not marks:
            return escape(visible, quote=True)
        pieces: list[str] = []
        at = 0
        for start, end in marks:
            pieces += [escape(visible[at:start]), "<mark>", escape(visible[start:end]), "</mark>"]
            at = end
        return "".join([*pieces, escape(visible[at:])])

    def code(self, text: str, name: str) -> str:
        """Highlighted code; code with a search term is only marked. `name` is a language or a file."""
        family = family_of(name)
        visible = safe(text)
        if not family or (self._needles and marks_in(visible, self._needles)):
            return self.text(text)
        pieces = ((kind, escape(piece)) for kind, piece in coloured(visible, family))
        return "".join(f'<span class="{kind}">{piece}</span>' if kind else piece for kind, piece in pieces)

    def plain(self, text: str) -> str:
        """Escape a text for an attribute, without marks."""
        return escape(safe(text), quote=True)

    def _open_attribute(self, *texts: str) -> str:
        """The attribute that unfolds an element, if a needle is in one of these texts."""
        return " open" if self._needles and any(marks_in(safe(text), self._needles) for text in texts) else ""

    def parts(self, rows: Iterable[Row]) -> Iterator[str]:
        """The rows, a piece of HTML each. A message is an article; what happens between them stands alone."""
        is_open = False
        for row in rows:
            is_part = isinstance(row, Event) and row.is_part_of_message
            if is_open and isinstance(row, (Speaker, Event)) and not is_part:
                yield "</article>\n"
                is_open = False
            is_open = is_open or isinstance(row, Speaker)
            yield self.row(row)
        if is_open:
            yield "</article>\n"

    def row(self, row: Row) -> str:
        """The HTML of a row; a message is left open."""
        match row:
            case Speaker():
                return self.speaker(row)
            case Prose():
                text = readable(row.text)
                if row.is_markdown:
                    return self._blocks(parse(text))
                return f'<div class="said">{self._typed(text)}</div>\n'
            case Thought():
                return self._details("Thinking", readable(row.text), "thought")
            case Preamble():
                return self._details("Added by the agent", readable(row.text), "aside")
            case Call():
                return self.call(row)
            case Output():
                return self.output(row)
            case Attachment():
                return self.attachment(row)
            case Event():
                return self.event(row)
        assert_never(row)

    def attachment(self, row: Attachment) -> str:
        """A picture or a file, by its name."""
        return f'<p class="attachment">{self.text(row.label)}</p>\n'

    def _typed(self, text: str) -> str:
        """What a person typed: code between backticks, and nothing else."""
        parts = re.split(r"`([^`\n]{1,400})`", text)
        return "".join(
            f"<code>{self.text(part)}</code>" if index % 2 else self.text(part) for index, part in enumerate(parts)
        )

    def speaker(self, row: Speaker) -> str:
        """The beginning of a message."""
        role = row.role if row.role in ("user", "assistant", "system", "tool") else "other"
        when = minute(row.at)
        facts = [
            row.agent or "",
            row.model or "",
            *row.facts(),
        ]
        spans = "".join(f"<span>{self.text(fact)}</span>" for fact in facts if fact)
        id_attribute = f' id="e{row.seq}"' if row.seq else ""
        time_link = f'<a href="#e{row.seq}">{self.text(when) or row.seq}</a>' if row.seq else self.text(when)
        return f'<article class="{role}"{id_attribute}><h2><b>{self.text(row.role)}</b> {time_link} {spans}</h2>\n'

    def _details(self, summary: str, text: str, kind: str) -> str:
        summary = f"{self.text(summary)} <span>{_lines(text)}</span>"
        return _fold(kind, self._open_attribute(text), summary, self._pre(text))

    def call(self, row: Call) -> str:
        """A call of a tool."""
        counts = f" <ins>+{row.added}</ins> <del>-{row.removed}</del>" if row.changes else ""
        title = f"<b>{self.text(row.name)}</b> <code>{self.text(row.about)}</code>{counts}"
        body = readable(row.body)
        if row.changes:
            size = sum(len(change.lines) for change in row.changes)
            inner = "".join(self._change(change, is_named=len(row.changes) > 1) for change in row.changes)
            lines = "\n".join(line for change in row.changes for line in change.lines)
            is_open = " open" if size <= _OPEN_LINES else self._open_attribute(lines)
            return _fold("call", is_open, title, inner)
        if not row.has_more:
            return f'<p class="call">{title}</p>\n'
        inner = f"<pre>{self.code(body, 'json' if body.startswith('{') else '')}</pre>"
        return _fold("call", self._open_attribute(body), title, inner)

    def _change(self, change: FileChange, *, is_named: bool) -> str:
        name = f"<p><code>{self.text(change.path)}</code></p>" if is_named else ""
        return f'{name}<pre class="diff">{self._diff(change.lines, change.path)}</pre>'

    def diff(self, lines: Iterable[str]) -> str:
        """Lines of a unified diff."""
        return f'<pre class="diff">{self._diff(lines)}</pre>'

    def _diff(self, lines: Iterable[str], path: str = "") -> str:
        tags = {"+": "ins", "-": "del", "@": "i"}
        tagged: list[str] = []
        for line in lines:
            tag, line = tags.get(line[:1], ""), readable(line)
            text = self.text(line[:1]) + self.code(line[1:], path) if path and tag != "i" else self.text(line)
            tagged.append(f"<{tag}>{text}</{tag}>" if tag else text)
        return "\n".join(tagged)

    def output(self, row: Output) -> str:
        """The result of a tool."""
        text = readable(row.text).rstrip()
        path = row.main_argument if row.is_file else ""
        mark = "✗" if row.is_error else "✓"
        kind = "output error" if row.is_error else "output"
        if not text:
            return f'<p class="{kind}">{mark} {self.text(row.name)}: nothing</p>\n'
        if "\n" not in text and len(text) <= _SHORT:
            return f'<p class="{kind}">{mark} <code>{self.text(text)}</code></p>\n'
        body = self._diff(text.split("\n")) if row.is_diff else self.code(text, path)
        first = next((line for line in text.split("\n") if line.strip()), "")
        preview = first.strip()[:_SHORT]
        end = text.index(first) + len(first) - len(first.lstrip()) + len(preview)
        summary = f"{mark} <code>{self.text(preview)}</code> <span>{_lines(text)}</span>"
        hidden = text[end - len(_cut_word(preview)) :]
        return _fold(kind, self._open_attribute(hidden), summary, f'<pre class="diff">{body}</pre>')

    def _pre(self, text: str) -> str:
        return f"<pre>{self.text(text)}</pre>"

    def event(self, row: Event) -> str:
        """What happened in between."""
        summary = f"<b>{self.text(row.kind)}</b> {self.text(readable(row.text))}"
        id_attribute = self.event_anchor(row)
        kind = "event error" if row.is_failure else "event"
        if not row.body:
            return f'<p class="{kind}"{id_attribute}>{summary}</p>\n'
        body = readable(row.body)
        return _fold(kind, id_attribute + self._open_attribute(body), summary, self._pre(body))

    def event_anchor(self, row: Event) -> str:
        """The attribute with the id of an event; empty if no link leads to it."""
        return f' id="e{row.seq}"' if row.has_anchor else ""

    # ── Markdown ──────────────────────────────────────────────────────────────────────────────────

    def _blocks(self, blocks: list[Block]) -> str:
        return "".join(map(self._block, blocks))

    def _block(self, block: Block) -> str:
        if isinstance(block, Heading):
            level = min(6, block.level + 2)  # the page has its own first two
            return f"<h{level}>{self._spans(block.spans)}</h{level}>\n"
        if isinstance(block, Paragraph):
            return f"<p>{self._spans(block.spans)}</p>\n"
        if isinstance(block, Code):
            is_change = block.language in ("diff", "patch")
            body = self._diff(block.text.split("\n")) if is_change else self.code(block.text, block.language)
            return f"<pre{' class=diff' if is_change else ''}><code>{body}</code></pre>\n"
        if isinstance(block, Quote):
            return f"<blockquote>{self._blocks(block.blocks)}</blockquote>\n"
        if isinstance(block, ItemList):
            tag = "ul" if block.first is None else "ol"
            start = "" if block.first in (None, 1) else f' start="{block.first}"'
            items = "".join(f"<li>{self._item(item)}</li>\n" for item in block.items)
            return f"<{tag}{start}>\n{items}</{tag}>\n"
        if isinstance(block, Table):
            return self._table(block)
        return "<hr>\n"

    def _item(self, blocks: list[Block]) -> str:
        if blocks and isinstance(blocks[0], Paragraph):
            return self._spans(blocks[0].spans) + self._blocks(blocks[1:])
        return self._blocks(blocks)

    def _table(self, block: Table) -> str:
        sides = [' class="right"' if is_right else "" for is_right in block.right]
        top = "".join(f"<th{side}>{self._spans(cell)}</th>" for side, cell in zip(sides, block.head, strict=True))
        rows = (
            "".join(f"<td{side}>{self._spans(cell)}</td>" for side, cell in zip(sides, row, strict=True))
            for row in block.rows
        )
        body = "\n".join(f"<tr>{row}</tr>" for row in rows)
        return f'<div class="table"><table><tr>{top}</tr>\n{body}</table></div>\n'

    def _spans(self, spans: list[InlineSpan]) -> str:
        return "".join(map(self._span, spans))

    def _span(self, span: InlineSpan) -> str:
        html = self.text(span.text).replace("\n", "<br>\n")
        for mark in reversed(span.marks):
            html = f"<{_TAGS[mark]}>{html}</{_TAGS[mark]}>"
        if is_web(span.url):
            return f'<a href="{self.plain(span.url)}" rel="noreferrer noopener nofollow">{html}</a>'
        return f"{html} ({self.text(span.url)})" if span.url else html


def marks_in(text: str, needles: Sequence[Needle]) -> list[tuple[int, int]]:
    """The positions of the needles; overlapping ones are merged."""
    from turnlog.catalog.index.terms import fold  # without needles the catalog is not needed

    folded = fold(text)
    marks: list[tuple[int, int]] = []
    for start, end in sorted(span for needle in needles for span in islice(needle.places(folded), _MOST_MARKS)):
        if marks and start <= marks[-1][1]:
            marks[-1] = (marks[-1][0], max(end, marks[-1][1]))
        else:
            marks.append((start, end))
    return marks


def _fold(kind: str, attributes: str, summary: str, inner: str) -> str:
    """What is folded, below its summary; all of it is HTML already."""
    return f'<details class="{kind}"{attributes}><summary>{summary}</summary>{inner}</details>\n'


def _cut_word(preview: str) -> str:
    """The word at the end of a preview that is as long as it may be: its rest may be hidden."""
    return preview.rpartition(" ")[2] if len(preview) == _SHORT else ""


def _lines(text: str) -> str:
    return count(text.count("\n") + 1, "line")
