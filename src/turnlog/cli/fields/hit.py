"""Hits in JSON. Imports nothing heavy; `hitlist` prints them."""

from __future__ import annotations

from turnlog.cli.frame.document import shape

HIT = {
    "session": shape.text("the id of the session: see `sessions`"),
    "place": shape.text("the value for `show --at`; empty if the title or name matched"),
    "entry": shape.text("the id of the entry"),
    "seq": shape.number("its number in a session of ours, otherwise 0"),
    "role": shape.text("also `title`"),
    "tool": shape.text(),
    "at": shape.time(null=True),
    "snippet": shape.text(),
    "marks": shape.anything("start and end of each match in the snippet"),
    "resume": shape.texts("the command"),
    "cursor": shape.number("pass it to --cursor to continue after this hit"),
}
"""A hit, as `--json` has it."""
