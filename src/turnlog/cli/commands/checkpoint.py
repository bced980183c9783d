"""`turnlog checkpoint`."""

from __future__ import annotations

from turnlog.cli.frame.command import HERE_OPTION, SESSION_OPTION, Argument, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import SESSION
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import this_home
from turnlog.cli.frame.progress import progress_line
from turnlog.cli.pick.session import refuse_interrupted, session_to_change
from turnlog.cli.safetynet.checkpointing import new_session, own_session, tell_skipped
from turnlog.cli.safetynet.checkpointtrees import Trees, Weight
from turnlog.session import Home, Session
from turnlog.session.interior import interior
from turnlog.view.number import count, size
from turnlog.view.visible import one_line

GROUP = "Safety net", 4
CHANGES = shape.LOG
FIELDS = {
    "session": SESSION,
    "is_new": shape.flag("whether the session is new"),
    "workspace": shape.text("the folder", null=True),
    "entry": shape.number("the number of the checkpoint"),
    "label": shape.text("its name", null=True),
    "files": shape.number("how many files are in it"),
    "size_bytes": shape.number("their size"),
    "skipped": shape.each("paths that are not covered, and why"),
}


@declare(Argument("label", "[LABEL]"), HERE_OPTION, SESSION_OPTION, exclusive=(("--here", "--session"),))
def command(label: str | None, here: bool, session: str | None, as_json: bool) -> None:
    """Save the current files of this project, to return to them later.

    It covers the repository around the current folder, otherwise the folder; with --here, only the folder. It is added
    to the newest session there, or to a new one. Very large files are left out and listed.

    \b
    turnlog checkpoint               one without a name
    turnlog checkpoint before-lunch  to come back to: `turnlog rewind NAME`
    """
    with this_home() as home:
        target, is_new = _session(home, session, is_here=here)
        refuse_interrupted(target)
        with progress_line():
            checkpoint = target.checkpoint(label)
        weight = Trees(interior(home).store).weight(checkpoint) or Weight(0, 0)
        if as_json:
            data = {"session": target.id, "is_new": is_new, "workspace": target.workspace, "entry": checkpoint.seq}
            print_json({**data, "label": label, **weight._asdict(), "skipped": checkpoint.skipped})
            return
        name = f" “{one_line(label)}”" if label else ""
        which = (
            f"{'new session' if is_new else 'session'} {one_line(target.handle)}, {one_line(target.workspace or '')}"
        )
        what = f"{count(weight.files, 'file')}, {size(weight.size_bytes)} ({which})"
        print(f"checkpoint{name}, entry {checkpoint.seq}: {what}")
        tell_skipped(target, checkpoint)


def _session(home: Home, name: str | None, *, is_here: bool) -> tuple[Session, bool]:
    """Return the session that a checkpoint of this project goes into, and whether it is a new one."""
    if name is not None:
        return session_to_change(home, name), False
    newest = own_session(home, is_here=is_here)
    return (new_session(home, is_here=is_here), True) if newest is None else (home.resume(newest), False)
