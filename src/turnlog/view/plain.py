"""Rows as lines of text: for a terminal of some width with colours, or plain for a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from turnlog.log.text import pattern
from turnlog.log.usage import Usage
from turnlog.view.markdown import InlineSpan, parse
from turnlog.view.number import count, size, used
from turnlog.view.row import Aside, Attachment, Call, Event, Output, Prose, Row, Speaker, Thought
from turnlog.view.tool import FileChange
from turnlog.view.typeset import Screen, blocks_lines, diff_line, wrapped
from turnlog.view.visible import clip, one_line, readable, width

_ROLES = {"user": "cyan", "assistant": "green", "system": "yellow", "tool": "blue"}
_WIDEST = 110
"""Longer lines of prose are hard to read."""
_LONGEST = 320
"""A longer line of output is cut where no width is known."""
HEAD, TAIL = 8, 4
READERS = ("read", "view", "cat", "open_file", "notebookread")
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


def lines_of(rows: Iterable[Row], screen: Screen, day: str = "") -> Iterator[str]:
    """Every line, in order. All of it is safe to print. `day` is that of what is above."""
    before: Row | None = None
    for row in rows:
        if isinstance(row, Speaker) and screen.room is not None and row.at is not None:
            today = screen.moment(row.at)[:10]
            if today != day:
                yield ""
                yield screen.paint(f"── {today} ──", "dim")
            day = today
        yield from row_lines(row, screen, before)
        before = row


def row_lines(row: Row, screen: Screen, before: Row | None = None) -> Iterator[str]:
    """The lines of one row; `before` is the one above it."""
    if isinstance(row, Speaker):
        yield ""
        yield _speaker(row, screen)
    elif isinstance(row, Event):
        if not isinstance(before, Event):
            yield ""
        yield from _event(row, screen)
    elif isinstance(row, Prose):
        if before is not None and not isinstance(before, Speaker):
            yield ""
        yield from _indented(_prose(row, screen), "  ")
    elif isinstance(row, Thought):
        yield from _quiet(row.text, screen, "~ ")
    elif isinstance(row, Aside):
        yield from _quiet(row.text, screen, "# ")
    elif isinstance(row, Call):
        yield from _call(row, screen)
    elif isinstance(row, Output):
        is_below = isinstance(before, Call) and before.id == row.call
        if screen.mark and row.seq == screen.mark:
            screen = replace(screen, is_full=True)  # what was looked for may be anywhere in it
        yield from _output(row, screen, is_below=is_below)
    else:
        named = one_line(attachment(row))
        lines = [named] if screen.room is None else wrapped([InlineSpan(named)], screen, screen.room - 2)
        yield from (f"  {screen.paint(line, 'purple')}" for line in lines)


def _indented(lines: Iterable[str], indent: str) -> Iterator[str]:
    return (f"{indent}{line}".rstrip() for line in lines)


# ── headers ───────────────────────────────────────────────────────────────────────────────────────


def _speaker(row: Speaker, screen: Screen) -> str:
    when = screen.moment(row.at)
    facts = [
        row.agent or "",
        row.model or "",
        f"entry {row.seq}" if row.seq else "made for the model" if row.role != "system" else "",
        when if screen.room is None else when[11:16],
        *row.took(used if screen.room is None else _used),
    ]
    name, rest = one_line(row.role), one_line(" · ".join(filter(None, facts)))
    if screen.room is not None:
        rest = clip(rest, max(10, screen.room - width(name) - 3))
    told = screen.paint(name, "bold", _ROLES.get(row.role, "")) + (screen.paint(f" · {rest}", "dim") if rest else "")
    return _pointed(row.seq, screen) + told


def _pointed(seq: int, screen: Screen) -> str:
    return screen.paint("▶ ", "bold", "yellow") if seq and seq == screen.mark else ""


def _used(usage: Usage) -> str:
    return f"{usage.all_input_tokens:,} in, {usage.output_tokens:,} out"


def attachment(row: Attachment) -> str:
    """A picture or a file, in brackets."""
    heavy = "" if row.size_bytes is None else size(row.size_bytes)
    return f"[{' · '.join(filter(None, (row.what, row.name[:200], row.media_type, heavy)))}]"


def _event(row: Event, screen: Screen) -> Iterator[str]:
    text = _pointed(row.seq, screen) + one_line(f"{row.kind}: {row.text}" if row.text else row.kind)
    style = "red" if row.kind in ("error", "turn failed", "turn aborted") else "yellow"
    if screen.room is None or screen.is_full:
        yield screen.paint(f"── {text}", style)
    else:
        yield from (screen.paint(line, style) for line in wrapped([InlineSpan(f"── {text}")], screen, screen.room))
    if row.body and row.kind != "edited":
        lines = readable(row.body).split("\n")
        yield from _indented(_shown(lines, screen, "dim"), "   ")


# ── prose ─────────────────────────────────────────────────────────────────────────────────────────


def _prose(row: Prose, screen: Screen) -> Iterator[str]:
    text = readable(row.text)
    room = None if screen.room is None else min(screen.room - 2, _WIDEST)
    if room is None:
        lines = text.split("\n")
    elif row.is_markdown:
        lines = list(blocks_lines(parse(text), screen, room))
    else:
        lines = [part for line in text.expandtabs(4).split("\n") for part in wrapped([InlineSpan(line)], screen, room)]
    if screen.is_full or row.role == "assistant":
        yield from lines
    elif row.role == "system":
        yield from _fold_in(lines, screen)
    else:
        yield from _fold_in(lines, screen, _PROSE - 12, 12)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


def _call(row: Call, screen: Screen) -> Iterator[str]:
    counts = f" +{sum(c.plus for c in row.changes)} -{sum(c.minus for c in row.changes)}" if row.changes else ""
    about = one_line(row.about)
    name = one_line(row.name)
    if screen.room is not None and not screen.is_full:
        about = clip(about, max(10, screen.room - width(name) - len(counts) - 7))
    head = screen.paint(name, "bold") + (f"  {about}" if about else "") + screen.paint(counts, "dim")
    yield ""
    yield f"  {screen.paint('→', 'blue')} {head}"
    if row.changes:
        for change in row.changes:
            yield from _change(change, screen, is_named=len(row.changes) > 1)
    elif one_line(row.body) != one_line(row.telling) and (screen.is_full or not row.body.startswith(("{", "["))):
        lines = readable(row.body).rstrip().split("\n")
        is_told = one_line(f"{lines[0]} …") == one_line(row.telling)
        yield from _indented(_shown(lines[is_told:], screen, "cyan", head=6, tail=2), "    ")


def _change(change: FileChange, screen: Screen, *, is_named: bool) -> Iterator[str]:
    if is_named:
        yield f"    {screen.paint(one_line(change.path), 'bold')} +{change.plus} -{change.minus}"
    lines = [readable(line).replace("\n", " ") for line in change.lines]
    yield from _indented(_shown(lines, screen, diff=True, head=30, tail=6), "    ")


def _output(row: Output, screen: Screen, *, is_below: bool) -> Iterator[str]:
    mark = screen.paint("✗", "red") if row.is_error else screen.paint("✓", "green")
    if not is_below:
        yield ""
        about = f"{one_line(row.name)}  {one_line(row.telling)}"
        about = about if screen.room is None or screen.is_full else clip(about, screen.room - 6)
        yield f"  {screen.paint('←', 'blue')} {screen.paint(about, 'dim')}"
    text = readable(row.text).rstrip()
    lines = text.split("\n") if text else ["(nothing)"]
    if not row.seq:
        lines = [*lines, "(made for the model)"]
    is_read = row.name.lower().startswith(READERS) and not row.is_error  # what was in the file says little here
    head, tail = (3, 1) if is_read else (HEAD, TAIL)
    shown = list(_shown(lines, screen, "red" if row.is_error else "dim", diff=row.is_diff, head=head, tail=tail))
    for index, line in enumerate(shown):
        yield f"    {_pointed(row.seq, screen) + mark if index == 0 else ' '} {line}".rstrip()


def _quiet(text: str, screen: Screen, mark: str) -> Iterator[str]:
    lines = readable(text).strip("\n").split("\n")
    if screen.room is not None:
        room = min(screen.room - 4, _WIDEST)
        lines = [part for line in lines for part in wrapped([InlineSpan(line.expandtabs(4))], screen, room)]
    shown = lines if screen.is_full else list(_fold_in(lines, screen))
    yield from (screen.paint(f"  {mark}{line}".rstrip(), "dim") for line in shown if line)


def _shown(
    lines: list[str], screen: Screen, style: str = "", *, diff: bool = False, head: int = HEAD, tail: int = TAIL
) -> Iterator[str]:
    """Lines of output, folded and cut unless all of it is wanted."""

    def drawn(line: str) -> str:
        line = line.expandtabs(4)
        if not screen.is_full:
            line = clip(line[: 4 * _LONGEST], _LONGEST if screen.room is None else max(20, screen.room - 7))
        return diff_line(line, screen) if diff else screen.paint(line, style)

    return map(drawn, lines) if screen.is_full else _fold_in(lines, screen, head, tail, drawn)


def _fold_in(
    lines: list[str], screen: Screen, head: int = HEAD, tail: int = TAIL, drawn: Callable[[str], str] = str
) -> Iterator[str]:
    fold = folded(lines, head, tail)
    yield from map(drawn, fold.head)
    if fold.hidden:
        yield screen.paint(f"… {count(fold.hidden, 'more line')} ({screen.unfolding})", "yellow")
        yield from map(drawn, fold.tail)


_MARKUP = pattern(r"[*_`~#]+")


def texts_of(row: Row) -> tuple[str, ...]:
    """Every text in a row, for whoever searches in it."""
    if isinstance(row, Prose):
        return row.text, _MARKUP.sub("", row.text)  # as it was written, and as it is shown
    if isinstance(row, (Thought, Aside)):
        return (row.text,)
    if isinstance(row, Call):
        return row.name, row.about, row.body, *(line for change in row.changes for line in change.lines)
    if isinstance(row, Output):
        return (row.text,)
    if isinstance(row, Event):
        return row.kind, row.text, row.body
    if isinstance(row, Attachment):
        return (row.name,)
    return row.agent or "", row.model or ""
