"""Sessions and their usage in JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from turnlog.cli.frame.document import shape

if TYPE_CHECKING:
    from turnlog.catalog import Card, TokenSums

TOKENS = {
    "input_tokens": shape.number(),
    "cache_read_tokens": shape.number(),
    "cache_write_tokens": shape.number(),
    "cache_write_1h_tokens": shape.number(),
    "output_tokens": shape.number(),
    "reasoning_tokens": shape.number(),
    "cost_micros": shape.number("in micro-dollars"),
}
CARD = {
    "name": shape.text("the name to use on the command line"),
    "id": shape.text(),
    "handle": shape.text(),
    "is_ours": shape.flag("false for another agent's session"),
    "agent": shape.text(null=True),
    "path": shape.text(),
    "key": shape.text("which session, if a file has several"),
    "workspace": shape.text(null=True),
    "title": shape.text(null=True),
    "preview": shape.text(null=True),
    "model": shape.text(null=True),
    "is_conversation": shape.flag(),
    "created_at": shape.time(null=True),
    "updated_at": shape.time(null=True),
    "messages": shape.number(),
    "turns": shape.number(),
    "tool_calls": shape.number(),
    "branches": shape.number(),
    "fork": shape.one("the `session` it was forked from", null=True),
    "parent": shape.text("the session whose subagent it is", null=True),
    "copy_of": shape.text(null=True),
    "hidden": shape.flag(),
    "archived": shape.flag(),
    "deleted": shape.flag(),
    "tags": shape.texts(),
    "state": shape.text("`running`, `waiting`, `idle`, `stopped` or `crashed`"),
    "damage": shape.number("places that cannot be read"),
    "problem": shape.text("why it cannot be read at all"),
    "is_readable": shape.flag(),
    "is_indexed": shape.flag("otherwise only its beginning and end were read"),
    "size_bytes": shape.number(),
    "own": shape.one("its own usage", TOKENS),
    "inherited": shape.one("usage before the fork", TOKENS),
    "subagents": shape.one("usage of its subagents", TOKENS),
    "unpriced": shape.texts("models without a known price"),
    "git_branches": shape.texts("the branches of git it worked on"),
}
"""A session, as `--json` has it."""


def json_card(card: Card) -> dict[str, Any]:
    """Return the fields of `CARD`."""
    row = card._asdict()
    row["handle"] = card.name
    row["is_readable"] = not card.problem
    row["fork"] = None if card.fork is None else {"session": card.fork}
    row["tags"], row["unpriced"] = list(card.tags), list(card.unpriced)
    row["git_branches"] = list(card.git_branches)
    for part_of in ("own", "inherited", "subagents"):
        row[part_of] = json_tokens(row[part_of])
    return row


def json_tokens(tokens: TokenSums) -> dict[str, int]:
    """Return the fields of `TOKENS`."""
    return tokens._asdict()
