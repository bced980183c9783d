"""`turnlog compare`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict

from turnlog.cli.draw.table import table
from turnlog.cli.fields.session import TOKENS
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.frame.terminal import coloured, screen_width
from turnlog.cli.pick.session import session_to_read
from turnlog.session.interior import interior
from turnlog.view.visible import clip, one_line, width

if TYPE_CHECKING:
    from turnlog.session.comparison import ComparedSide, ComparedTurn, Comparison

_FILE = {
    "path": shape.text(),
    "action": shape.text("`created`, `modified`, `deleted` or `mode`"),
    "added": shape.number("lines"),
    "removed": shape.number("lines"),
}
_TOOK = {
    "messages": shape.number(),
    "tool_calls": shape.number(),
    **TOKENS,
    "unpriced": shape.texts("models without a known price"),
    "seconds": shape.real("from the prompt to the last entry; the time between turns does not count"),
    "files": shape.each("null if no checkpoints were taken", _FILE, null=True),
}
_TURN = {
    "first": shape.number("the entry that it begins with"),
    "prompt": shape.text("its beginning"),
    "answer": shape.text("the beginning of the last one"),
    **_TOOK,
}
_SIDE = {
    "session": shape.text("its id, or `agent:id`"),
    "title": shape.text(),
    "agent": shape.text(null=True),
    "head": shape.number("the last entry of the branch"),
    **_TOOK,
    "turns": shape.each("the turns that are not in common", _TURN),
}
_PROMPTS = 5
GROUP = "Find", 10
CHANGES = shape.NOTHING
FIELDS = {
    "common": shape.one(
        "the common beginning",
        {
            "messages": shape.number(),
            "prompts": shape.texts("their beginnings"),
            "last_a": shape.number("its last entry in A; 0 for none"),
            "last_b": shape.number("the same in B"),
        },
    ),
    "a": shape.one("A after the common beginning", _SIDE),
    "b": shape.one("B after the common beginning", _SIDE),
}


@declare(
    Argument("a", kind="session"),
    Argument("b", kind="session"),
    Option("--branch-a N", "The branch of A that ends at entry N.", least=1),
    Option("--branch-b N", "The branch of B that ends at entry N.", least=1),
)
def command(a: str, b: str, branch_a: int | None, branch_b: int | None, as_json: bool) -> None:
    """Show side by side what two sessions did and cost, turn by turn.

    The common beginning is shown once: a fork shares it with its original, and two attempts at one task have the same
    prompt. All numbers are of what comes after it, subagents included. Time is that of the turns, from a prompt to the
    last entry before the next one. Files that turns changed are known only where checkpoints were taken. Sessions of
    other agents can be compared, too.

    \b
    turnlog compare k3f9 m2x8
    turnlog compare @ @-               this folder's newest, and the one before it
    turnlog compare @ @ --branch-b 42  with a branch that was left
    turnlog compare claude-code:1f0c codex:0199
    """
    from turnlog.session.comparison.sidebyside import comparable, compare

    with ExitStack() as stack:
        sides = [stack.enter_context(session_to_read(word)) for word in (a, b)]
        with progress_line():
            comparison = compare(*(
                comparable(part.session, interior(part.home).store, branch=branch, name=part.name)
                for part, branch in zip(sides, (branch_a, branch_b), strict=True)
            ))  # fmt: skip
    if as_json:
        print_json({"common": asdict(comparison.common), "a": _json_side(comparison.a), "b": _json_side(comparison.b)})
        return
    for line in _lines(comparison):
        print(line)


def _json_effort(part: ComparedSide | ComparedTurn) -> dict[str, Any]:
    """Return what a side or a turn took: messages, tool calls, tokens, money, time and files."""
    return {
        "messages": part.messages,
        "tool_calls": part.tool_calls,
        **{name: getattr(part.usage, name) for name in TOKENS},
        "cost_micros": part.cost.micros,
        "unpriced": sorted(part.cost.unpriced),
        "seconds": part.duration.total_seconds(),
        "files": None if part.files is None else [asdict(file) for file in part.files],
    }


def _json_side(side: ComparedSide) -> dict[str, Any]:
    turns = [
        {"first": turn.first, "prompt": turn.prompt, "answer": turn.answer, **_json_effort(turn)} for turn in side.turns
    ]
    about = {"session": side.session, "title": side.title, "agent": side.agent, "head": side.head}
    return {**about, **_json_effort(side), "turns": turns}


def _lines(comparison: Comparison) -> Iterator[str]:
    from turnlog.view import comparison as words

    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        about = " · ".join(filter(None, (side.session, side.agent)))
        yield _fitted(f"{letter}  {one_line(about)}  ", words.title_of(side))
    yield ""
    yield words.common_in_words(comparison)
    prompts = comparison.common.prompts
    if len(prompts) > _PROMPTS:
        yield f"   … {len(prompts) - _PROMPTS:,} before these"
    for prompt in prompts[-_PROMPTS:]:
        yield _fitted("   ", prompt or "(a picture)")
    if not comparison.a.turns and not comparison.b.turns:
        return
    for number, turns in enumerate(words.turn_pairs(comparison), 1):
        yield ""
        yield coloured(f"turn {number}", "bold", sys.stdout)
        for letter, turn in zip("AB", turns, strict=True):
            if turn is not None:
                yield _fitted(f"{letter}  ", turn.prompt or "(a picture)")
                yield _fitted("   ", turn.answer or "(no answer)")
                facts = _fitted("   ", " · ".join(filter(None, words.turn_facts(turn))))
                yield coloured(facts, "dim", sys.stdout)
    yield ""
    yield from table(("", "A", "B"), words.total_rows(comparison), right=(1, 2))
    if rows := words.path_rows(comparison):
        yield ""
        yield from table(("FILE", "A", "B"), rows, paths=0)


def _fitted(lead: str, text: str) -> str:
    """Return a line, cut to the width of the screen."""
    room = screen_width()
    return lead + (one_line(text) if room is None else clip(one_line(text), max(16, room - width(lead))))
