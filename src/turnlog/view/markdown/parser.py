"""Markdown as models write it: text to blocks and spans. Small, lenient, and linear in the length of the text.

What it does not know stays text: HTML above all. Line ends inside a paragraph stay, as in a chat.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.startup import pattern

_DEEPEST = 8
_FENCE = pattern(r" {0,3}(`{3,40}|~{3,40})[ \t]{0,8}([^`\n]{0,200})\Z")
_HEADING = pattern(r" {0,3}(#{1,6})[ \t]+(.*)")
_CLOSING = pattern(r"(?:\A|(?<=[ \t]))#+\Z")
"""The marks that may close a heading: `## Title ##`, but not the last letter of `# C#`."""
_ITEM = pattern(r"( {0,12})([-*+•]|\d{1,9}[.)])( {1,4}|\t|\Z)")
_CELL = pattern(r":?-{1,200}:?")
_LINK = pattern(
    r"!?\[(?P<text>[^\[\]\n]{0,400})\]\((?P<url>[^()\s]{0,1000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?)"
    r"(?:[ \t]\"[^\"\n]{0,200}\")?\)"
)
_BARE = pattern(r"https?://[^\s<>\"'`\])}]{1,1000}")
_MARK = pattern(r"\\[!-/:-@\[-`{-~]|`{1,40}|\*{1,8}|_{1,8}|~~|!?\[|https?://")
_NAMES = {"**": "bold", "__": "bold", "*": "italic", "_": "italic", "~~": "strike"}


class InlineSpan(Struct, frozen=True):
    """A stretch of text, how it is marked (bold, italic, strike, code), and where it leads."""

    text: str
    marks: tuple[str, ...] = ()
    url: str = ""


def is_web(url: str) -> bool:
    """Whether the `url` of a span may become a link."""
    return url.lower().startswith(("https://", "http://", "mailto:"))


class Heading(Struct, frozen=True):
    """A heading of level 1 to 6."""

    level: int
    spans: list[InlineSpan]


class Paragraph(Struct, frozen=True):
    """Text; its line ends are meant."""

    spans: list[InlineSpan]


class Code(Struct, frozen=True):
    """A block of code."""

    language: str
    text: str


class Quote(Struct, frozen=True):
    """Something quoted."""

    blocks: list[Block]


class ItemList(Struct, frozen=True):
    """A list; `first` is the number of its first item, None for one with bullets."""

    first: int | None
    items: list[list[Block]]


class Table(Struct, frozen=True):
    """A table: its head, and its rows."""

    head: list[list[InlineSpan]]
    rows: list[list[list[InlineSpan]]]
    right: list[bool]


class Rule(Struct, frozen=True):
    """A line across."""


Block = Heading | Paragraph | Code | Quote | ItemList | Table | Rule


def parse(text: str) -> list[Block]:
    """The blocks of a text."""
    return list(_blocks(text.split("\n"), 0))


# ── blocks ────────────────────────────────────────────────────────────────────────────────────────


def _blocks(lines: list[str], depth: int) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            end, code = _fenced(lines, at, fence)
            yield code
            at = end
        elif heading := _HEADING.match(line):
            yield Heading(len(heading[1]), spans(_CLOSING.sub("", heading[2].strip()).rstrip()))
            at += 1
        elif _is_rule(line):
            yield Rule()
            at += 1
        elif line.lstrip().startswith(">") and depth < _DEEPEST:
            end = at
            while end < len(lines) and lines[end].lstrip().startswith(">"):
                end += 1
            inner = [quoted.lstrip()[1:].removeprefix(" ") for quoted in lines[at:end]]
            yield Quote(list(_blocks(inner, depth + 1)))
            at = end
        elif _ITEM.match(line) and depth < _DEEPEST:
            at, listing = _listing(lines, at, depth)
            yield listing
        elif _is_table(lines, at):
            at, table = _table(lines, at)
            yield table
        else:
            end = at + 1
            while end < len(lines) and lines[end].strip() and not _begins(lines, end, depth):
                end += 1
            yield Paragraph(spans("\n".join(part.strip() for part in lines[at:end])))
            at = end


def _begins(lines: list[str], at: int, depth: int) -> bool:
    """Whether another block begins there, right below a paragraph."""
    line = lines[at]
    starts = (_FENCE.match(line), _HEADING.match(line), depth < _DEEPEST and _ITEM.match(line))
    return any(starts) or _is_rule(line) or (line.lstrip().startswith(">") and depth < _DEEPEST) or _is_table(lines, at)


def _fenced(lines: list[str], at: int, fence: re.Match[str]) -> tuple[int, Code]:
    mark, indent = fence[1], len(lines[at]) - len(lines[at].lstrip(" "))
    inner: list[str] = []
    end = at + 1
    while end < len(lines):
        stripped = lines[end].strip()
        if stripped.startswith(mark) and not stripped.strip(mark[0]):
            return end + 1, Code(_language(fence[2]), "\n".join(inner))
        line = lines[end]
        inner.append(line[indent:] if not line[:indent].strip() else line)
        end += 1
    return end, Code(_language(fence[2]), "\n".join(inner))


def _language(info: str) -> str:
    return info.strip().split(" ")[0][:40]


def _is_rule(line: str) -> bool:
    plain = line.replace(" ", "").replace("\t", "")
    return len(plain) >= 3 and plain[0] in "-*_" and not plain.strip(plain[0])


def _listing(lines: list[str], at: int, depth: int) -> tuple[int, ItemList]:
    first = _ITEM.match(lines[at])
    assert first is not None
    margin, is_numbered = len(first[1]), first[2][0].isdigit()
    items: list[list[Block]] = []
    while at < len(lines):
        match = _ITEM.match(lines[at])
        if match is None or not margin <= len(match[1]) < margin + 2 or match[2][0].isdigit() != is_numbered:
            break
        if _is_rule(lines[at]):
            break
        inner = [lines[at][match.end() :]]
        indent = len(match[1]) + 2
        at += 1
        while at < len(lines):
            line = lines[at]
            if not line.strip():
                after = next((n for n in range(at, min(at + 3, len(lines))) if lines[n].strip()), None)
                if after is None or not lines[after].startswith(" " * indent):
                    break
                inner += lines[at:after]
                at = after
            elif line.startswith(" " * indent):
                inner.append(line[min(match.end(), len(line) - len(line.lstrip(" "))) :])
                at += 1
            elif _begins(lines, at, 0):
                break
            else:
                inner.append(line)  # a paragraph that goes on without being indented
                at += 1
        items.append(list(_blocks(inner, depth + 1)))
        gap = at
        while gap < len(lines) and not lines[gap].strip():
            gap += 1
        if gap < len(lines) and gap > at and _ITEM.match(lines[gap]):
            at = gap
    return at, ItemList(int(first[2][:-1]) if is_numbered else None, items)


def _is_table(lines: list[str], at: int) -> bool:
    if at + 1 >= len(lines) or "|" not in lines[at] or "-" not in lines[at + 1]:
        return False
    cells = _cells(lines[at + 1])
    return len(cells) == len(_cells(lines[at])) and all(_CELL.fullmatch(cell) for cell in cells)


def _cells(line: str) -> list[str]:
    line = line.strip().replace("\\|", "\0").removeprefix("|").removesuffix("|")
    return [cell.strip() for cell in line.split("|")]


def _table(lines: list[str], at: int) -> tuple[int, Table]:
    head = [spans(cell.replace("\0", "|")) for cell in _cells(lines[at])]
    right = [cell.endswith(":") and not cell.startswith(":") for cell in _cells(lines[at + 1])]
    rows: list[list[list[InlineSpan]]] = []
    at += 2
    while at < len(lines) and "|" in lines[at] and lines[at].strip():
        cells = [spans(cell.replace("\0", "|")) for cell in _cells(lines[at])[: len(head)]]
        rows.append([*cells, *([] for _ in range(len(head) - len(cells)))])
        at += 1
    return at, Table(head, rows, right)


# ── spans ─────────────────────────────────────────────────────────────────────────────────────────


class _Piece(Struct, frozen=True):
    text: str
    delimiter: str = ""
    can_open: bool = False
    can_close: bool = False
    span: InlineSpan | None = None


def spans(text: str) -> list[InlineSpan]:
    """The stretches of a text without blocks in it."""
    pieces = list(_pieces(text))
    closes, opens = _pairs(pieces)
    active: list[str] = []
    merged: list[InlineSpan] = []
    for index, piece in enumerate(pieces):
        if index in opens:
            active.append(_NAMES[piece.delimiter])
        elif index in closes:
            active.remove(_NAMES[piece.delimiter])
        elif piece.span is not None:
            merged.append(replace(piece.span, marks=(*active, *piece.span.marks)))
        elif piece.text:
            if merged and merged[-1].marks == tuple(active) and not merged[-1].url:
                merged[-1] = InlineSpan(merged[-1].text + piece.text, merged[-1].marks)
            else:
                merged.append(InlineSpan(piece.text, tuple(active)))
    return merged


def _pieces(text: str) -> Iterator[_Piece]:
    ticks: dict[int, list[int]] = {}
    for run in re.finditer(r"`{1,40}", text):
        ticks.setdefault(len(run.group()), []).append(run.start())
    at = 0
    while match := _MARK.search(text, at):
        mark, start, end = match.group(), match.start(), match.end()
        if start > at:
            yield _Piece(text[at:start])
        at = end
        if mark[0] == "\\":
            yield _Piece(mark[1])
        elif mark[0] == "`":
            places = ticks.get(len(mark), [])
            index = bisect_left(places, end)
            close = places[index] if index < len(places) else -1
            if close < 0:
                yield _Piece(mark)
                continue
            inner = text[end:close].replace("\n", " ")
            is_padded = inner.startswith(" ") and inner.endswith(" ") and inner.strip()
            yield _Piece("", span=InlineSpan(inner[1:-1] if is_padded else inner, ("code",)))
            at = close + len(mark)
        elif mark[-1] == "[":
            link = _LINK.match(text, start)
            if link is None:
                yield _Piece(mark)
                continue
            yield _Piece("", span=InlineSpan(link["text"].replace("`", "") or link["url"], url=link["url"]))
            at = link.end()
        elif mark.startswith("http"):
            bare = _BARE.match(text, start)
            if bare is None:
                yield _Piece(mark)
                continue
            url = bare.group().rstrip(".,;:!?*_~")
            yield _Piece("", span=InlineSpan(url, url=url))
            at = start + len(url)
        else:
            yield from _delimiters(text, mark, start, end)
    if at < len(text):
        yield _Piece(text[at:])


def _delimiters(text: str, mark: str, start: int, end: int) -> Iterator[_Piece]:
    before, after = text[max(0, start - 1) : start], text[end : end + 1]
    can_open = bool(after.strip()) and (after.isalnum() or not before.isalnum())
    can_close = bool(before.strip()) and (before.isalnum() or not after.isalnum())
    if mark[0] == "_":
        can_open, can_close = can_open and not before.isalnum(), can_close and not after.isalnum()
    if mark == "~~":
        yield _Piece(mark, mark, can_open, can_close)
        return
    if len(mark) > 3:
        yield _Piece(mark)
        return
    parts = [mark] if len(mark) < 3 else [mark[0], mark[:2]] if can_close and not can_open else [mark[:2], mark[0]]
    for part in parts:
        yield _Piece(part, part, can_open, can_close)


def _pairs(pieces: list[_Piece]) -> tuple[set[int], set[int]]:
    """Which delimiters close, and which open."""
    closes: set[int] = set()
    opens: set[int] = set()
    stack: list[int] = []
    for index, piece in enumerate(pieces):
        if not piece.delimiter:
            continue
        opener = next((n for n in range(len(stack) - 1, -1, -1) if pieces[stack[n]].delimiter == piece.delimiter), None)
        if piece.can_close and opener is not None:
            opens.add(stack[opener])
            closes.add(index)
            del stack[opener:]
        elif piece.can_open:
            stack.append(index)
            del stack[:-16]
    return closes, opens
