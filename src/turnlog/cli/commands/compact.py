"""`turnlog compact`."""

from __future__ import annotations

import sys

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import refuse_busy, session_to_change
from turnlog.errors import Invalid
from turnlog.thread.compaction import KeptEnd, preview
from turnlog.thread.reader import history_of
from turnlog.view.number import count
from turnlog.view.visible import one_line, quoted, safe

_KEEP = 4
GROUP = "Care", 7
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "dry_run": DRY_RUN,
    "entry": shape.number("the number of the compaction; null if nothing was done", null=True),
    "removed": shape.number("how many messages the model no longer sees"),
    "kept": shape.number("how many it still sees"),
    "summary": shape.text("what the model sees instead"),
}


@declare(
    SESSION_ARGUMENT,
    Option(
        "--keep -k N",
        "How many of the last messages stay; more if a tool call would lose its result.",
        least=0,
        default=_KEEP,
    ),
    Option("--summary TEXT", "The summary; - reads it from stdin. [default: made from the messages]"),
    DRY_RUN_OPTION,
)
def command(session: str | None, keep: int, summary: str | None, dry_run: bool, as_json: bool) -> None:
    """Summarize the beginning of a conversation for the model.

    From now on the model sees the summary, then the last messages. Everything stays in the log: `turnlog show` still
    prints all of it, `turnlog show --context` what the model sees, and `turnlog uncompact` takes it back. Without
    --summary, a summary is made from the requests, tools and files; no model is asked.

    \b
    turnlog compact --dry-run                what it would say
    turnlog compact k3f9 --keep 10
    my-model "sum it up" | turnlog compact --summary -
    """
    if summary is not None:
        summary = _given(summary)
    with this_home() as home:
        target = session_to_change(home, session)
        refuse_busy(target)
        cut = preview(history_of(target), target.head, keep=KeptEnd(keep), summary=summary)
        entry = None if dry_run or not cut.removed else target.compact(summary, keep=keep).seq
        if as_json:
            data = {"session": target.id, "dry_run": dry_run, "entry": entry, "removed": cut.removed, "kept": cut.kept}
            print_json({**data, "summary": cut.summary})
            return
        if not cut.removed:
            print(f"nothing to do: a model sees {count(cut.kept, 'message')}, and all of them stay")
            return
        if dry_run:
            for line in safe(cut.summary).splitlines():
                print(f"  {line}".rstrip())
            print()
        handle = one_line(target.handle)
        rest = f" and the last {count(cut.kept, 'message')}" if cut.kept else ""
        would = "would be" if dry_run else "are now"
        where = "" if dry_run else f", entry {entry}"
        print(f"{count(cut.removed, 'message')} {would} a summary{rest} (session {handle}{where})")
        if not dry_run:
            name = quoted(target.handle)
            next_step = f"`turnlog show {name} --context` shows what a model sees"
            tell(f"{next_step}, `turnlog uncompact {name}` takes it back")


def _given(summary: str) -> str:
    """Return the summary that the option gives. Raises `Invalid` if it says nothing."""
    text, source = (_from_stdin(), "on stdin") if summary == "-" else (summary.strip(), "of --summary")
    if not text:
        raise Invalid(f"the summary {source} is empty", hint="without --summary, one is made")
    return text


def _from_stdin() -> str:
    if sys.stdin is None or sys.stdin.closed:
        raise Invalid("there is no stdin to read the summary from", hint="--summary TEXT")
    return sys.stdin.buffer.read().decode("utf-8", "replace").strip()
