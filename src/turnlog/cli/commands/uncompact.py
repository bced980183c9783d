"""`turnlog uncompact`."""

from __future__ import annotations

from turnlog.cli.frame.command import DRY_RUN_OPTION, SESSION_ARGUMENT, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN, SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.notes import tell
from turnlog.cli.pick.session import refuse_busy, session_to_change
from turnlog.errors import NotFound
from turnlog.view.number import count
from turnlog.view.visible import one_line, quoted

GROUP = "Care", 8
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "dry_run": DRY_RUN,
    "compaction": shape.number("the entry that no longer applies"),
    "entry": shape.number("the new entry; null if nothing was done", null=True),
    "messages_before": shape.number("how many messages the model saw before"),
    "messages": shape.number("how many it sees now; null if nothing was done", null=True),
}


@declare(
    SESSION_ARGUMENT,
    Option("--entry -e N", "Which one. [default: the newest]", least=1),
    DRY_RUN_OPTION,
)
def command(session: str | None, entry: int | None, dry_run: bool, as_json: bool) -> None:
    """Take back a compaction: a model sees again what it saw before.

    It takes back the newest one that applies to the conversation, or the one with that number. `turnlog log --kind
    compaction` lists them.

    \b
    turnlog uncompact
    turnlog uncompact k3f9 --entry 42
    """
    with this_home() as home:
        target = session_to_change(home, session)
        refuse_busy(target)
        before = len(target.context().messages)
        applying = [item for item in target.compactions() if not item.is_cancelled]
        chosen = [item for item in applying if entry in (None, item.entry.seq)][-1:]
        if not chosen:
            which = "compaction" if entry is None else f"compaction {entry}"
            hint = "`turnlog log --kind compaction` lists them"
            raise NotFound(f"no {which} applies to session {target.handle}", hint=hint)
        number = chosen[0].entry.seq
        seq = None if dry_run else target.uncompact(number).seq
        after = None if dry_run else len(target.context().messages)
    if as_json:
        data = {"session": target.id, "dry_run": dry_run, "compaction": number, "entry": seq}
        print_json({**data, "messages_before": before, "messages": after})
        return
    handle = one_line(target.handle)
    if after is None:
        removed = count(chosen[0].removed, "message")
        print(f"compaction {number} would no longer apply: {removed} would be seen again (session {handle})")
        return
    print(f"compaction {number} no longer applies: a model sees {count(after, 'message')} (session {handle})")
    tell(f"it saw {before:,}; `turnlog compact {quoted(target.handle)}` makes another summary")
