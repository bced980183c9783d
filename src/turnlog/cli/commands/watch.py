"""`turnlog watch`."""

from __future__ import annotations

import sys

from turnlog.cli.draw.screen import header, this_screen
from turnlog.cli.fields.source import SOURCE
from turnlog.cli.frame.command import KEY_OPTION, SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.encoding import encode_json
from turnlog.cli.frame.document.entryshape import entry_fields
from turnlog.cli.frame.document.itemlist import item_line
from turnlog.cli.frame.document.jsonline import write_json, write_line
from turnlog.cli.frame.document.request import json_version
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import session_to_read
from turnlog.log.codec import body_text
from turnlog.reader.opening.follow import follow
from turnlog.reader.opening.opener import OpenedSession
from turnlog.reader.part import part_of

GROUP = "Find", 8
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "title": shape.text(null=True),
    "agent": shape.text(null=True),
    "seq": shape.number("the last entry before the first line"),
    "source": shape.one("where it is read, if it is another agent's", SOURCE, null=True),
    "[entries]": shape.each("the following lines: one entry each", entry_fields, role="lines"),
}


@declare(
    SESSION_ARGUMENT,
    Option("--last -n N", "Begin with the last N messages.", least=0, default=3),
    Option("--full", "All of every tool call and its output."),
    Option("--for SECONDS", "Stop after this time. [default: never]", name="seconds", number=float, least=0),
    Option("--jsonl", "The same as --json: both are one JSON object on a line each."),
    KEY_OPTION,
)
def command(
    session: str | None,
    last: int,
    full: bool,
    seconds: float | None,
    jsonl: bool,
    key: str | None,
    as_json: bool,
) -> None:
    """Follow a session while it grows, ours or another agent's. Ctrl-C ends it.

    With --json or --jsonl, the first line describes the session and its last entry, and every further line is a new
    entry as the log has it.

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
    from turnlog.view.row import Row
    from turnlog.view.rowmaker import Rows
    from turnlog.view.terminal.line import lines_of, row_lines

    reader, screen = opened.session, this_screen(is_full=is_full)
    rows = Rows(price=Costs(), size=opened.blob_size)
    for line in header(opened, screen, is_whole=False):
        print(line)
    begun = reader.seq
    before: Row | None = None
    part = part_of(reader, last=last or 1)
    rows.take(part.before(reader))
    if not last:
        for entry in part.entries(reader):
            rows.take(entry)
    else:
        first_rows = list(rows.paired(part.entries(reader)))
        before = first_rows[-1] if first_rows else None
        for line in lines_of(first_rows, screen):
            print(line)
    sys.stdout.flush()
    if sys.stderr.isatty() and seconds is None:
        tell("watching; Ctrl-C ends it", colour="dim")
    for entry in follow(opened, begun, seconds, _warn):
        for row in rows.of(entry):
            for line in row_lines(row, screen, before):
                print(line)
            before = row
        sys.stdout.flush()


def _stream(opened: OpenedSession, seconds: float | None) -> None:
    reader = opened.session
    about = {
        "version": json_version(),
        "session": reader.id,
        "title": reader.title,
        "agent": reader.agent,
        "seq": reader.seq,
    }
    write_json(encode_json({**about, "source": opened.source}))
    sys.stdout.flush()
    for entry in follow(opened, reader.seq, seconds, _warn):
        write_line(item_line(body_text(entry).encode()))
        sys.stdout.flush()


def _warn(text: str) -> None:
    tell(f"problem: {text}")
