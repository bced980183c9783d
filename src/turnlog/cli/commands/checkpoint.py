"""`turnlog checkpoint`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from turnlog.cli.change import Trees
from turnlog.cli.name import session_here, session_to_change
from turnlog.cli.option import print_json, refuse_interrupted, session_option, shared, this_home
from turnlog.cli.place import refuse_folder
from turnlog.cli.progress import patience
from turnlog.cli.text import count, one_line, path_of, size
from turnlog.log.entry import AnyEntry, Checkpoint
from turnlog.session import Home, Session
from turnlog.workspace.found import REPOSITORY
from turnlog.workspace.tree import path_bytes

AGENT = "turnlog"
"""Who opens a session where there is none."""
_LISTED = 10


@click.command()
@click.argument("label", required=False)
@session_option
@shared
def command(label: str | None, session: str | None, as_json: bool) -> None:
    """Keep the files of this folder as they are now, to come back to.

    It goes into the newest session of this folder (or of one above it in the same repository); where there is none, a
    new one is opened. Files that git ignores are left out, and so are very large ones, which are listed.

    \b
    turnlog checkpoint                       one without a name
    turnlog checkpoint before-lunch          `turnlog rewind before-lunch` comes back to it
    """
    with this_home() as home:
        found, is_new = open_session(home, session)
        refuse_interrupted(found)
        with patience():
            done = found.checkpoint(label)
        weight = Trees(home.store).weight(done) or (0, 0)
        if as_json:
            data = {"session": found.id, "is_new": is_new, "workspace": found.workspace, "entry": done.seq}
            print_json({**data, "label": label, "files": weight[0], "size_bytes": weight[1], "skipped": done.skipped})
            return
        name = f" “{one_line(label)}”" if label else ""
        which = f"{'new session' if is_new else 'session'} {one_line(found.handle)}, {one_line(found.workspace or '')}"
        print(f"checkpoint{name}, entry {done.seq}: {count(weight[0], 'file')}, {size(weight[1])} ({which})")
        tell_skipped(found, done)


def open_session(home: Home, name: str | None) -> tuple[Session, bool]:
    """The session that a checkpoint of this folder goes into, and whether it is a new one."""
    if name is not None or session_here(home) is not None:
        return session_to_change(home, name), False
    return new_session(home), True


def new_session(home: Home) -> Session:
    """A session for this folder, if it may have checkpoints."""
    refuse_folder(".")
    return home.create(workspace=".", agent=AGENT, title=Path.cwd().name)


def tell_skipped(found: Session, done: Checkpoint) -> None:
    """What a checkpoint does not cover, where a person sees it; of repositories in the folder, only those new to it."""
    last = next((e for e in found.entries(kind="checkpoint", reverse=True) if _is_earlier(e, done)), None)
    known = [row for row in last.skipped if row["reason"] == REPOSITORY] if isinstance(last, Checkpoint) else []
    skipped = [row for row in done.skipped if row not in known]
    for row in skipped[:_LISTED]:
        print(f"not covered: {path_of(path_bytes(row['path']))}: {one_line(row['reason'])}", file=sys.stderr)
    if len(skipped) > _LISTED:
        print(f"not covered: {len(skipped) - _LISTED:,} more; `turnlog checkpoints --json` has them", file=sys.stderr)


def _is_earlier(entry: AnyEntry, done: Checkpoint) -> bool:
    return entry.seq < done.seq and (done.turn is None or entry.turn != done.turn)
