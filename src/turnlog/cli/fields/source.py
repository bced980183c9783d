"""Where sessions of other agents lie, and what could not be read of them, in JSON."""

from __future__ import annotations

from turnlog.cli.frame.document import shape

SOURCE = {"agent": shape.text(), "path": shape.text(), "key": shape.text("which session, if a file has several")}
"""Where a session of another agent lies, as `--json` has it."""
PROBLEM = {
    "what": shape.text(),
    "[where]": shape.text(),
    "[offset]": shape.number(null=True),
    "[length]": shape.number(null=True),
    "[is_news]": shape.flag("a record of an unknown type, not an error"),
}
