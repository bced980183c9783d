"""Rows as one HTML file: no script, nothing fetched, readable on a phone, in the light and in the dark.

Everything that comes out of a log goes through `_text`: characters that are not plainly visible are shown as what they
are, and then what HTML would take for its own is escaped. Links lead to the web or to nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from turnlog.view.markdown import Block, Code, Heading, InlineSpan, ItemList, Paragraph, Quote, Table, parse
from turnlog.view.number import count
from turnlog.view.plain import attachment
from turnlog.view.row import Aside, Attachment, Call, Event, Output, Prose, Row, Speaker, Thought
from turnlog.view.style import STYLE
from turnlog.view.tool import FileChange
from turnlog.view.visible import readable, safe

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_OPEN_LINES = 40
"""A longer change is folded at first, and so is every output."""
_SHORT = 160
_TAGS = {"bold": "strong", "italic": "em", "strike": "s", "code": "code"}


def _text(text: str) -> str:
    return escape(safe(text), quote=True)


def head(title: str, facts: Iterable[str], notice: str) -> str:
    """The beginning of the file, up to where the rows go."""
    told = "".join(f"<li>{_text(fact)}</li>" for fact in facts if fact)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><h1>{_text(title)}</h1><ul class="facts">{told}</ul>'
        f'<p class="notice">{_text(notice)}</p></header>\n<main>\n'
    )


FOOT = "</main>\n</body>\n</html>\n"


def parts(rows: Iterable[Row]) -> Iterator[str]:
    """The rows, a piece of HTML each. A message is an article; what happens between them stands alone."""
    is_open = False
    for row in rows:
        if isinstance(row, (Speaker, Event)) and is_open:
            is_inside = isinstance(row, Event) and row.kind in ("error", "subagent")
            if not is_inside:
                yield "</article>\n"
                is_open = False
        if isinstance(row, Speaker):
            yield _speaker(row)
            is_open = True
        else:
            yield _row(row)
    if is_open:
        yield "</article>\n"


def _row(row: Row) -> str:
    if isinstance(row, Prose):
        text = readable(row.text)
        return _blocks(parse(text)) if row.is_markdown else f'<div class="said">{_typed(text)}</div>\n'
    if isinstance(row, Thought):
        return _details("Thinking", readable(row.text), "thought")
    if isinstance(row, Aside):
        return _details("Added by the agent", readable(row.text), "aside")
    if isinstance(row, Call):
        return _call(row)
    if isinstance(row, Output):
        return _output(row)
    if isinstance(row, Attachment):
        return f'<p class="attachment">{_text(attachment(row))}</p>\n'
    assert isinstance(row, Event)
    return _event(row)


def _typed(text: str) -> str:
    """What a person typed: code between backticks, and nothing else."""
    parts = re.split(r"`([^`\n]{1,400})`", text)
    return "".join(f"<code>{_text(part)}</code>" if index % 2 else _text(part) for index, part in enumerate(parts))


def _speaker(row: Speaker) -> str:
    role = row.role if row.role in ("user", "assistant", "system", "tool") else "other"
    when = "" if row.at is None else row.at.strftime("%Y-%m-%d %H:%M")
    facts = [
        row.agent or "",
        row.model or "",
        *row.took(),
    ]
    told = "".join(f"<span>{_text(fact)}</span>" for fact in facts if fact)
    place = f' id="e{row.seq}"' if row.seq else ""
    stamp = f'<a href="#e{row.seq}">{_text(when) or row.seq}</a>' if row.seq else _text(when)
    return f'<article class="{role}"{place}><h2><b>{_text(row.role)}</b> {stamp} {told}</h2>\n'


def _details(summary: str, text: str, kind: str) -> str:
    return (
        f'<details class="{kind}"><summary>{_text(summary)} <span>{_lines(text)}</span></summary>'
        f"<pre>{_text(text)}</pre></details>\n"
    )


def _lines(text: str) -> str:
    return count(text.count("\n") + 1, "line")


def _call(row: Call) -> str:
    plus, minus = sum(change.plus for change in row.changes), sum(change.minus for change in row.changes)
    counts = f" <ins>+{plus}</ins> <del>-{minus}</del>" if row.changes else ""
    title = f"<b>{_text(row.name)}</b> <code>{_text(row.about)}</code>{counts}"
    body = readable(row.body)
    if row.changes:
        size = sum(len(change.lines) for change in row.changes)
        inner = "".join(_change(change, is_named=len(row.changes) > 1) for change in row.changes)
        is_open = " open" if size <= _OPEN_LINES else ""
        return f'<details class="call"{is_open}><summary>{title}</summary>{inner}</details>\n'
    if not body or body == row.telling:
        return f'<p class="call">{title}</p>\n'
    return f'<details class="call"><summary>{title}</summary><pre>{_text(body)}</pre></details>\n'


def _change(change: FileChange, *, is_named: bool) -> str:
    name = f"<p><code>{_text(change.path)}</code></p>" if is_named else ""
    return f'{name}<pre class="diff">{_diff(change.lines)}</pre>'


def _diff(lines: Iterable[str]) -> str:
    tags = {"+": "ins", "-": "del", "@": "i"}
    made: list[str] = []
    for line in lines:
        tag, text = tags.get(line[:1], ""), _text(readable(line))
        made.append(f"<{tag}>{text}</{tag}>" if tag else text)
    return "\n".join(made)


def _output(row: Output) -> str:
    text = readable(row.text).rstrip()
    mark = "✗" if row.is_error else "✓"
    kind = "output error" if row.is_error else "output"
    if not text:
        return f'<p class="{kind}">{mark} {_text(row.name)}: nothing</p>\n'
    if "\n" not in text and len(text) <= _SHORT:
        return f'<p class="{kind}">{mark} <code>{_text(text)}</code></p>\n'
    body = _diff(text.split("\n")) if row.is_diff else _text(text)
    preview = next((line.strip() for line in text.split("\n") if line.strip()), "")[:_SHORT]
    return (
        f'<details class="{kind}"><summary>{mark} <code>{_text(preview)}</code> <span>{_lines(text)}</span></summary>'
        f'<pre class="diff">{body}</pre></details>\n'
    )


def _event(row: Event) -> str:
    told = f"<b>{_text(row.kind)}</b> {_text(readable(row.text))}"
    place = f' id="e{row.seq}"' if row.seq and row.kind not in ("error", "subagent", "spent") else ""
    kind = "event error" if row.kind in ("error", "turn failed", "turn aborted") else "event"
    if not row.body:
        return f'<p class="{kind}"{place}>{told}</p>\n'
    return f'<details class="{kind}"{place}><summary>{told}</summary><pre>{_text(readable(row.body))}</pre></details>\n'


# ── Markdown ──────────────────────────────────────────────────────────────────────────────────────


def _blocks(blocks: list[Block]) -> str:
    return "".join(map(_block, blocks))


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        level = min(6, block.level + 2)  # the page has its own first two
        return f"<h{level}>{_spans(block.spans)}</h{level}>\n"
    if isinstance(block, Paragraph):
        return f"<p>{_spans(block.spans)}</p>\n"
    if isinstance(block, Code):
        is_change = block.language in ("diff", "patch")
        body = _diff(block.text.split("\n")) if is_change else _text(block.text)
        return f"<pre{' class=diff' if is_change else ''}><code>{body}</code></pre>\n"
    if isinstance(block, Quote):
        return f"<blockquote>{_blocks(block.blocks)}</blockquote>\n"
    if isinstance(block, ItemList):
        tag = "ol" if block.first else "ul"
        start = f' start="{block.first}"' if block.first > 1 else ""
        items = "".join(f"<li>{_item(item)}</li>\n" for item in block.items)
        return f"<{tag}{start}>\n{items}</{tag}>\n"
    if isinstance(block, Table):
        return _table(block)
    return "<hr>\n"


def _item(blocks: list[Block]) -> str:
    if blocks and isinstance(blocks[0], Paragraph):
        return _spans(blocks[0].spans) + _blocks(blocks[1:])
    return _blocks(blocks)


def _table(block: Table) -> str:
    sides = [' class="right"' if is_right else "" for is_right in block.right]
    top = "".join(f"<th{side}>{_spans(cell)}</th>" for side, cell in zip(sides, block.head, strict=True))
    rows = (
        "".join(f"<td{side}>{_spans(cell)}</td>" for side, cell in zip(sides, row, strict=True)) for row in block.rows
    )
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{top}</tr>\n{body}</table></div>\n'


def _spans(spans: list[InlineSpan]) -> str:
    return "".join(map(_span, spans))


def _span(span: InlineSpan) -> str:
    made = _text(span.text).replace("\n", "<br>\n")
    for mark in reversed(span.marks):
        made = f"<{_TAGS[mark]}>{made}</{_TAGS[mark]}>"
    if is_web(span.url):
        return f'<a href="{_text(span.url)}" rel="noreferrer noopener nofollow">{made}</a>'
    return f"{made} ({_text(span.url)})" if span.url else made


def is_web(url: str) -> bool:
    """Whether a link may lead there."""
    return url.lower().startswith(("https://", "http://", "mailto:"))
