"""`turnlog watch`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from turnlog.cli.draw.screen import blob_size, header, this_screen
from turnlog.cli.draw.text import one_line
from turnlog.cli.frame.option import session_argument, shared
from turnlog.cli.frame.output import SESSION, VERSION, to_json, write_json
from turnlog.cli.pick.session import session_to_read
from turnlog.log.codec import body_text
from turnlog.log.entry import Note
from turnlog.reader.part import part_of
from turnlog.reader.reader import OpenedSession

if TYPE_CHECKING:
    from turnlog.log.entry import AnyEntry

_PAUSE_S = 0.25
_FILES = 2000
_Stamp = list[tuple[int, int, int]]
FIELDS = {
    "session": SESSION,
    "title": "or null",
    "agent": "or null",
    "seq": "the last entry that was there before; those that follow are a line each",
    "source": "where it is read, if it is another agent's",
}


@click.command()
@session_argument
@click.option(
    "--last", "-n", type=click.IntRange(min=0), default=3, metavar="N", help="Begin with the last N messages."
)
@click.option("--full", is_flag=True, help="All of every tool call and its output.")
@click.option(
    "--for", "seconds", type=click.FloatRange(min=0), metavar="SECONDS", help="Only so long. [default: for ever]"
)
@click.option("--jsonl", is_flag=True, help="The same as --json: both are one JSON object on a line each.")
@click.option("--key", metavar="KEY", help="Which session, where a file of another agent has several: a number or id.")
@shared
def command(
    session: str | None,
    last: int,
    full: bool,
    seconds: float | None,
    jsonl: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Follow a session while it goes on, ours or another agent's. Ctrl-C ends it.

    With --json or --jsonl, the first line says which session it is and where it stands, and every line after it is an
    entry as a log has it, as soon as it is there; without those that were there before.

    \b
    turnlog watch
    turnlog watch codex:0199
    turnlog watch k3f9 --jsonl | jq -r .type
    """
    with session_to_read(session, key=key) as opened:
        if as_json or jsonl:
            _stream(opened, seconds)
        else:
            _follow(opened, last, seconds, is_full=full)


def _follow(opened: OpenedSession, last: int, seconds: float | None, *, is_full: bool) -> None:
    from turnlog.view.cost import Costs
    from turnlog.view.plain import lines_of, row_lines
    from turnlog.view.row import Row, Rows

    found, screen = opened.session, this_screen(is_full=is_full)
    rows = Rows(price=Costs(), size=blob_size(opened.home))
    for line in header(opened, screen, is_whole=False):
        print(line)
    begun = found.seq
    before: Row | None = None
    part = part_of(found, last=last or 1, at=None, branch=None)
    rows.take(part.before(found))
    if last:
        shown = list(rows.paired(part.entries(found)))
        before = shown[-1] if shown else None
        for line in lines_of(shown, screen):
            print(line)
    sys.stdout.flush()
    if sys.stderr.isatty() and seconds is None:
        print(screen.paint("watching; Ctrl-C ends it", "dim"), file=sys.stderr)
    for entry in _arriving(opened, begun, seconds):
        for row in rows.of(entry):
            for line in row_lines(row, screen, before):
                print(line)
            before = row
        sys.stdout.flush()


def _stream(opened: OpenedSession, seconds: float | None) -> None:
    found = opened.session
    about = {"version": VERSION, "session": found.id, "title": found.title, "agent": found.agent, "seq": found.seq}
    write_json(to_json({**about, "source": opened.source}))
    sys.stdout.flush()
    for entry in _arriving(opened, found.seq, seconds):
        write_json(body_text(entry).encode())
        sys.stdout.flush()


def _arriving(opened: OpenedSession, last: int, seconds: float | None) -> Iterator[AnyEntry]:
    """What is appended from now on, until the time is over."""
    end = None if seconds is None else time.monotonic() + seconds
    seen: _Stamp | None = None  # it may have grown since it was read: so it is read once more
    while True:
        left = _PAUSE_S if end is None else min(_PAUSE_S, end - time.monotonic())
        if opened.source is None:
            new = opened.session.news(last, seconds=left)
        else:
            if left > 0:
                time.sleep(left)
            now = _stamp(opened)
            if now != seen:
                seen = now
                _read_again(opened)
            new = opened.session.news(last, seconds=0)
        for entry in new:
            last = entry.seq
            if not _is_about_reading(opened, entry):
                yield entry
        if end is not None and time.monotonic() >= end:
            return


def _is_about_reading(opened: OpenedSession, entry: AnyEntry) -> bool:
    """Whether it only says that a line could not be read: perhaps it is not written to its end yet."""
    return opened.source is not None and isinstance(entry, Note) and entry.text.startswith(opened.source.path)


def _stamp(opened: OpenedSession) -> _Stamp:
    """What changes when another agent has written: of its file, of a database's journal, of the files in a folder."""
    if opened.source is None:
        return []
    from pathlib import Path

    path = Path(opened.source.path)
    files = sorted(path.rglob("*"))[:_FILES] if path.is_dir() else [path, Path(f"{path}-wal")]
    stamps: _Stamp = []
    for file in files:
        try:
            found = file.stat()
        except OSError:
            continue  # gone, or not there yet
        stamps.append((found.st_ino, found.st_size, found.st_mtime_ns))
    return stamps


def _read_again(opened: OpenedSession) -> None:
    """Bring what we have of another agent's session up to date; what it has already stays."""
    from turnlog.exchange.source import bring_all

    assert opened.source is not None
    for done in bring_all(opened.home.creator, [opened.source]):
        if not done.id:
            print(one_line(f"problem: {done.source.path}: {done.problems[-1].what}"), file=sys.stderr)
    opened.session.refresh()
