"""Rows as lines of text: for a terminal of some width with colours, or plain for a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.usage import Usage
from turnlog.view.filechange import FileChange
from turnlog.view.markdown.parser import InlineSpan, parse
from turnlog.view.number import count, used
from turnlog.view.row import Attachment, Call, Event, Output, Preamble, Prose, Row, Speaker, Thought
from turnlog.view.terminal.typeset import LineStyle, blocks_lines, diff_line, wrapped
from turnlog.view.visible import clip, one_line, readable, width

_ROLES = {"user": "cyan", "assistant": "green", "system": "yellow", "tool": "blue"}
_WIDEST = 110
"""Longer lines of prose are hard to read."""
_LONGEST = 320
"""A longer line of output is cut where no width is known."""
HEAD, TAIL = 8, 4
_PROSE = 60


class Folded(Struct, frozen=True):
    """Lines, and how many are left out after the first of them."""

    head: list[str]
    hidden: int
    tail: list[str]


def folded(lines: list[str], head: int = HEAD, tail: int = TAIL) -> Folded:
    """The first and last lines, if there are too many."""
    if len(lines) <= head + tail + 1:  # a line that says that one line is missing is no gain
        return Folded(lines, 0, [])
    return Folded(lines[:head], len(lines) - head - tail, lines[len(lines) - tail :])


def lines_of(rows: Iterable[Row], style: LineStyle, day: str = "") -> Iterator[str]:
    """Every line, in order. All of it is safe to print. `day` is that of what is above."""
    before: Row | None = None
    for row in rows:
        if isinstance(row, Speaker) and style.room is not None and row.at is not None:
            today = style.moment(row.at)[:10]
            if today != day:
                yield ""
                yield style.paint(f"── {today} ──", "dim")
            day = today
        yield from row_lines(row, style, before)
        before = row


def row_lines(row: Row, style: LineStyle, before: Row | None = None) -> Iterator[str]:
    """The lines of one row; `before` is the one above it."""
    match row:
        case Speaker():
            yield ""
            yield _speaker(row, style)
        case Event():
            if not isinstance(before, Event):
                yield ""
            yield from _event(row, style)
        case Prose():
            if before is not None and not isinstance(before, Speaker):
                yield ""
            yield from _indented(_prose(row, style), "  ")
        case Thought():
            yield from _dim_lines(row.text, style, "~ ")
        case Preamble():
            yield from _dim_lines(row.text, style, "# ")
        case Call():
            yield from _call(row, style)
        case Output():
            is_below = isinstance(before, Call) and before.id == row.call
            if style.mark and row.seq == style.mark:
                style = replace(style, is_full=True)  # what was looked for may be anywhere in it
            yield from _output(row, style, is_below=is_below)
        case Attachment():
            label = one_line(row.label)
            lines = [label] if style.room is None else wrapped([InlineSpan(label)], style, style.room - 2)
            yield from (f"  {style.paint(line, 'purple')}" for line in lines)
        case _:
            assert_never(row)


def _indented(lines: Iterable[str], indent: str) -> Iterator[str]:
    return (f"{indent}{line}".rstrip() for line in lines)


# ── headers ───────────────────────────────────────────────────────────────────────────────────────


def _speaker(row: Speaker, style: LineStyle) -> str:
    when = style.moment(row.at)
    facts = [
        row.agent or "",
        row.model or "",
        f"entry {row.seq}" if row.seq else "made for the model" if row.role != "system" else "",
        when if style.room is None else when[11:16],
        *row.facts(used if style.room is None else _used),
    ]
    name, rest = one_line(row.role), one_line(" · ".join(filter(None, facts)))
    if style.room is not None:
        rest = clip(rest, max(10, style.room - width(name) - 3))
    header = style.paint(name, "bold", _ROLES.get(row.role, "")) + (style.paint(f" · {rest}", "dim") if rest else "")
    return _pointer(row.seq, style) + header


def _pointer(seq: int, style: LineStyle) -> str:
    return style.paint("▶ ", "bold", "yellow") if seq and seq == style.mark else ""


def _used(usage: Usage) -> str:
    return f"{usage.all_input_tokens:,} in, {usage.output_tokens:,} out"


def _event(row: Event, style: LineStyle) -> Iterator[str]:
    text = _pointer(row.seq, style) + one_line(f"{row.kind}: {row.text}" if row.text else row.kind)
    colour = "red" if row.is_failure else "yellow"
    if style.room is None or style.is_full:
        yield style.paint(f"── {text}", colour)
    else:
        yield from (style.paint(line, colour) for line in wrapped([InlineSpan(f"── {text}")], style, style.room))
    if row.shows_body:
        lines = readable(row.body).split("\n")
        yield from _indented(_output_lines(lines, style, "dim"), "   ")


# ── prose ─────────────────────────────────────────────────────────────────────────────────────────


def _prose(row: Prose, style: LineStyle) -> Iterator[str]:
    text = readable(row.text)
    room = None if style.room is None else min(style.room - 2, _WIDEST)
    if room is None:
        lines = text.split("\n")
    elif row.is_markdown:
        lines = list(blocks_lines(parse(text), style, room))
    else:
        lines = [part for line in text.expandtabs(4).split("\n") for part in wrapped([InlineSpan(line)], style, room)]
    if style.is_full or row.role == "assistant":
        yield from lines
    elif row.role == "system":
        yield from _folded_lines(lines, style)
    else:
        yield from _folded_lines(lines, style, _PROSE - 12, 12)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _call(row: Call, style: LineStyle) -> Iterator[str]:
    counts = f" +{row.added} -{row.removed}" if row.changes else ""
    about = one_line(row.about)
    name = one_line(row.name)
    if style.room is not None and not style.is_full:
        about = _clipped(about, max(10, style.room - width(name) - len(counts) - 7), style)
    head = style.paint(name, "bold") + (f"  {about}" if about else "") + style.paint(counts, "dim")
    yield ""
    yield f"  {style.paint('→', 'blue')} {head}"
    if row.changes:
        for change in row.changes:
            yield from _change(change, style, is_named=len(row.changes) > 1)
    elif row.has_more and (style.is_full or not row.body.startswith(("{", "["))):
        lines = readable(row.body).rstrip().split("\n")
        yield from _indented(_output_lines(lines[row.shows_first_line :], style, "cyan", head=6, tail=2), "    ")


def _change(change: FileChange, style: LineStyle, *, is_named: bool) -> Iterator[str]:
    if is_named:
        yield f"    {style.paint(one_line(change.path), 'bold')} +{change.plus} -{change.minus}"
    lines = [readable(line).replace("\n", " ") for line in change.lines]
    yield from _indented(_output_lines(lines, style, diff=True, head=30, tail=6), "    ")


def _output(row: Output, style: LineStyle, *, is_below: bool) -> Iterator[str]:
    mark = style.paint("✗", "red") if row.is_error else style.paint("✓", "green")
    if not is_below:
        yield ""
        about = f"{one_line(row.name)}  {one_line(row.main_argument)}"
        about = about if style.room is None or style.is_full else _clipped(about, style.room - 6, style)
        yield f"  {style.paint('←', 'blue')} {style.paint(about, 'dim')}"
    text = readable(row.text).rstrip()
    lines = text.split("\n") if text else ["(nothing)"]
    if not row.seq:
        lines = [*lines, "(made for the model)"]
    head, tail = (3, 1) if row.is_file else (HEAD, TAIL)  # what was in the file says little here
    drawn = list(_output_lines(lines, style, "red" if row.is_error else "dim", diff=row.is_diff, head=head, tail=tail))
    for index, line in enumerate(drawn):
        yield f"    {_pointer(row.seq, style) + mark if index == 0 else ' '} {line}".rstrip()


def _dim_lines(text: str, style: LineStyle, mark: str) -> Iterator[str]:
    lines = readable(text).strip("\n").split("\n")
    if style.room is not None:
        room = min(style.room - 4, _WIDEST)
        lines = [part for line in lines for part in wrapped([InlineSpan(line.expandtabs(4))], style, room)]
    visible = lines if style.is_full else list(_folded_lines(lines, style))
    yield from (style.paint(f"  {mark}{line}".rstrip(), "dim") for line in visible if line)


def _output_lines(
    lines: list[str], style: LineStyle, colour: str = "", *, diff: bool = False, head: int = HEAD, tail: int = TAIL
) -> Iterator[str]:
    """Lines of output, folded and cut unless all of it is wanted."""

    def paint_line(line: str) -> str:
        line = line.expandtabs(4)
        if not style.is_full:
            line = _clipped(line, _LONGEST if style.room is None else max(20, style.room - 7), style)
        return diff_line(line, style) if diff else style.paint(line, colour)

    return map(paint_line, lines) if style.is_full else _folded_lines(lines, style, head, tail, paint_line)


def _clipped(line: str, room: int, style: LineStyle) -> str:
    short = clip(line[: 4 * _LONGEST], room)
    if short != line:
        style.on_shortened()
    return short


def _folded_lines(
    lines: list[str], style: LineStyle, head: int = HEAD, tail: int = TAIL, paint_line: Callable[[str], str] = str
) -> Iterator[str]:
    fold = folded(lines, head, tail)
    yield from map(paint_line, fold.head)
    if fold.hidden:
        style.on_shortened()
        yield style.paint(f"… {count(fold.hidden, 'more line')} ({style.unfolding})", "yellow")
        yield from map(paint_line, fold.tail)
