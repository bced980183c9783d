"""Lines and who wrote them in JSON."""

from __future__ import annotations

from typing import Any

from turnlog.blame.authorship import BlamedLine, LineAuthor
from turnlog.cli.frame.document import shape

AUTHOR = {
    "session": shape.text(null=True),
    "turn": shape.number(null=True),
    "agent": shape.text(null=True),
    "model": shape.text(null=True),
    "at": shape.time(null=True),
    "prompt": shape.text(null=True),
    "entry": shape.number(null=True),
}
"""A turn that wrote a line, as `--json` has it."""
LINE = {
    "line": shape.number(),
    "text": shape.text(),
    **AUTHOR,
    "why": shape.text("null if one turn wrote it; otherwise `before`, `between`, `since`, `git`, `several`", null=True),
    "commit": shape.text("for `git`", null=True),
    "turns": shape.each("for `several`", AUTHOR),
}


def json_author(author: LineAuthor | None) -> dict[str, Any]:
    """Return the fields of `AUTHOR`; nothing but nulls where there is none."""
    names = ("session", "turn", "agent", "model", "at", "prompt", "entry")
    return {name: getattr(author, name, None) for name in names}


def json_line(line: BlamedLine) -> dict[str, Any]:
    """Return the fields of `LINE`."""
    fields: dict[str, Any] = {"line": line.line, "text": line.text, **json_author(line.author), "why": line.why}
    if line.author is None:
        fields["at"] = line.at
    return {**fields, "commit": line.commit, "turns": [json_author(one) for one in line.authors]}
