"""What push, pull and sync share: opening the other home, transferring sessions, reporting the result."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.cli.draw.table import table
from turnlog.cli.frame.command import Option
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.shape import DRY_RUN
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import INTERRUPTED, Exit, UsageError
from turnlog.cli.frame.home import home_location, without_password
from turnlog.cli.frame.notes import note, tell, warn
from turnlog.cli.frame.progress import finish_before_interrupt, show_count
from turnlog.cli.pick.catalog import open_catalog
from turnlog.cli.pick.session import names
from turnlog.errors import Ambiguous, Corrupt, Invalid, NotFound, TurnlogError, Unavailable
from turnlog.log.ids import MARKS
from turnlog.machine.folder import expand
from turnlog.session import Home, open_home
from turnlog.session.interior import interior
from turnlog.view.number import count, size

if TYPE_CHECKING:
    from turnlog.transfer.report import Transferred

_SHOWN = 5
MOVED = {
    "sessions": shape.items(
        "those that differ",
        {
            "id": shape.text(),
            "outcome": shape.text(
                "`new`, `grown`, `merged`, `forked`, `erased`, `failed`, or `deleted`: in the trash of the target"
            ),
            "entries": shape.number(),
            "blobs": shape.number(),
            "blob_bytes": shape.number(),
            "into": shape.text("the fork with the new entries", null=True),
            "problems": shape.texts(),
            "erased": shape.number("how many entries were erased in the target, as in the source"),
            "without_ignored": shape.number("checkpoints that were sent without their ignored files"),
            "error": shape.anything("why it was not transferred, or null"),
        },
    ),
    "same": shape.number("how many sessions were the same on both sides"),
    "entries": shape.number("how many entries were transferred"),
}
TRANSFERRED = {"dry_run": DRY_RUN, **MOVED}
"""What push and pull say with `--json`."""

EVERYTHING_OPTION = Option("--all -a", "Every session there is.", name="everything")
IGNORED_OPTION = Option("--include-ignored", "Also send the contents of ignored files. [default: only their names]")


def other_home(url: str, *, must_exist: bool) -> Home:
    """Open the home at the other end."""
    if url == "memory:":
        raise Invalid("a home in memory is gone when this ends", hint="give a folder, or postgresql://…")
    if "://" not in url:
        folder = Path(expand(url))
        is_home = (folder / "home.json").exists()
        if must_exist and not is_home:
            raise NotFound(f"there is no home at {folder}", hint="give the folder of a home, or postgresql://…")
        if not is_home and folder.is_dir() and any(folder.iterdir()):
            raise Invalid(f"{folder} holds other things, and is no home", hint="give a home, or a folder to be made")
    return open_home(url)


def new_home(url: str) -> str:
    """Return the folder at which a home is going to be made; empty for one that is there, and for a database."""
    folder = Path(expand(url))
    return "" if "://" in url or (folder / "home.json").exists() else str(folder)


def sessions_and_url(words: tuple[str, ...], everything: bool, what: str) -> tuple[list[str], str]:
    """Return the sessions and the URL, which is the last word."""
    *chosen, url = words
    if bool(chosen) == everything:
        if chosen:
            raise UsageError("give sessions or --all, not both")
        raise UsageError("no sessions given", hint=f"name sessions, or `turnlog {what} --all`")
    return chosen, url


def in_either(home: Home, other: Home, words: list[str]) -> list[str]:
    """Return the ids of sessions that one of two homes knows by these names."""
    return [_in_either(home, other, word) for word in words]


def _in_either(home: Home, other: Home, name: str) -> str:
    if other.exists(name):
        return name
    try:
        return names(home).own_id(name, deleted=False)
    except Ambiguous:
        raise
    except (NotFound, Invalid) as error:
        try:
            return other.find(name)
        except NotFound:
            raise error from None


def count_not_ours() -> int:
    """Return how many sessions of other agents here no home moves, because they were never imported."""
    try:
        with open_catalog(home_location()) as catalog:
            cards = catalog.cards(everything=True)
    except Unavailable as error:
        warn(f"other agents' sessions are not counted: {error.message}")
        return 0
    return sum(not card.is_ours and card.copy_of is None and card.parent is None for card in cards)


class Wording(NamedTuple):
    """The words for one direction."""

    name: str
    doing: str
    done: str
    source: str
    target: str


PUSH = Wording("push", "pushing", "pushed", source="here", target="there")
PULL = Wording("pull", "pulling", "pulled", source="there", target="here")


class Direction:
    """One direction: what was done, and what stopped it."""

    def __init__(self, wording: Wording, *, url: str, dry_run: bool, include_ignored: bool) -> None:
        self.wording = wording
        self.url = url
        """The other home."""
        self.dry_run = dry_run
        self.include_ignored = include_ignored
        self.rows: list[Transferred] = []
        self.error: TurnlogError | None = None
        """What stopped it."""
        self.is_interrupted = False

    def run(self, source: Home, target: Home, ids: list[str] | None) -> bool:
        """Transfer the sessions; False if an error or Ctrl-C stopped it. What was transferred before that stays."""
        from turnlog.transfer.mover import Mover

        mover = Mover(
            interior(source).store, interior(target).store, dry_run=self.dry_run, include_ignored=self.include_ignored
        )
        with finish_before_interrupt("this session is finished first") as is_enough:
            try:
                for row in mover.run(ids, lambda number, total, _: show_count(self.wording.doing, number, total)):
                    self.rows.append(row)
                    if is_enough():
                        self.is_interrupted = True
                        break
            except TurnlogError as error:
                self.error = error
        return self.error is None and not self.is_interrupted

    @property
    def changed(self) -> list[Transferred]:
        """The rows that are listed: with something new, or with a problem."""
        return [row for row in self.rows if row.outcome != "same" or row.problems]

    @property
    def same(self) -> int:
        """The number of sessions that had nothing new. Marks of other agents' sessions are no session."""
        return sum(row.outcome == "same" and row.id != MARKS for row in self.rows)

    def json_fields(self) -> dict[str, Any]:
        """Return the fields of `MOVED`."""
        rows = [
            {
                "id": row.id, "outcome": row.outcome, "entries": row.entries, "blobs": row.blobs,
                "blob_bytes": row.blob_bytes, "into": row.into, "problems": row.problems,
                "erased": row.erased, "without_ignored": row.private,
                "error": None if row.error is None else {"code": row.error.code, "message": row.error.message},
            }
            for row in self.changed
        ]  # fmt: skip
        return {"sessions": rows, "same": self.same, "entries": sum(row.entries for row in self.rows)}

    def print(self) -> None:
        """Print a table of the sessions that differ, and what came of all of them."""
        if self.changed:
            head = ("SESSION", "WHAT", "ENTRIES", "BLOBS", "NOTE")
            cells = [
                (row.id, row.outcome, f"{row.entries:,}", f"{row.blobs:,}" if row.blobs else "", self._note(row))
                for row in self.changed
            ]
            for line in table(head, cells, right=(2, 3)):
                print(line)
        entries, blobs = sum(row.entries for row in self.rows), sum(row.blobs for row in self.rows)
        moved = [row for row in self.rows if row.entries and row.id != MARKS]
        big = "" if self.dry_run else f" ({size(sum(row.blob_bytes for row in self.rows))})"
        what = f"would be {self.wording.done}" if self.dry_run else self.wording.done
        print(
            f"{count(len(moved), 'session')} {what}: {count(entries, 'entry', 'entries')}, "
            f"{count(blobs, 'blob')}{big if blobs else ''}; {self.same:,} had nothing new"
        )
        erased = sum(row.erased for row in self.rows)
        if erased:
            print(f"{count(erased, 'entry', 'entries')} erased {self.wording.target}, as on the other side")
        private = sum(row.private for row in self.rows)
        if private:
            print(
                f"what is in ignored files stays {self.wording.source}: {count(private, 'checkpoint')} without it; "
                "--include-ignored sends it"
            )

    def _note(self, row: Transferred) -> str:
        if row.error is not None:
            return row.error.message
        if row.outcome == "deleted":
            return f"in the trash {self.wording.target}; left alone"
        if row.id == MARKS:
            return "marks of other agents' sessions"
        return f"as {row.into}: it continued {self.wording.target}, too" if row.outcome == "forked" else ""

    def raise_damage(self) -> None:
        """Raise `Corrupt` if parts of sessions are damaged where they came from."""
        damaged = [row.id for row in self.rows if row.problems]
        if not damaged:
            return
        words = ["turnlog", "doctor", damaged[0]]
        if self.wording is PULL:
            words[1:1] = ["--home", without_password(self.url)]
        raise Corrupt(
            f"damaged parts of {count(len(damaged), 'session')} were not transferred; the rest was",
            hint=f"look with `{shlex.join(words)}`",
        )

    def warn(self) -> None:
        """Warn of what is damaged."""
        for row in self.rows:
            for problem in row.problems[:_SHOWN]:
                warn(f"session {row.id}: {problem}")
            if len(row.problems) > _SHOWN:
                warn(f"session {row.id}: {len(row.problems) - _SHOWN:,} more")


def print_transfer(
    directions: list[Direction], *, dry_run: bool, as_json: bool, not_ours: int | None = None, new_folder: str = ""
) -> None:
    """Print what was done. `not_ours` is how many sessions of other agents stay.

    `new_folder` is where there was no home before.
    """
    if as_json:
        fields = {direction.wording.name: direction.json_fields() for direction in directions}
        more = {} if not_ours is None else {"not_ours": not_ours}
        only = fields[directions[0].wording.name]
        print_json({"dry_run": dry_run, **(fields if len(directions) > 1 else only), **more})
    else:
        for direction in directions:
            direction.print()
        if new_folder:
            became = "there is no home yet, and one would be made" if dry_run else "there was no home, and one was made"
            note(f"{became}: {new_folder}")
        if not_ours:
            print(
                f"{count(not_ours, 'session')} of other agents {'stays' if not_ours == 1 else 'stay'} here, "
                "not imported: `turnlog import --all` makes them ours"
            )
    for direction in directions:
        direction.warn()


def raise_outcome(directions: list[Direction]) -> None:
    """End as the transfer ended: raise what stopped it, what could not be transferred, or that parts are damaged."""
    for direction in directions:
        if direction.error is not None:
            finished = count(len(direction.rows), "session")
            direction.error.message += f"; {finished} {'was' if len(direction.rows) == 1 else 'were'} done before that"
            direction.error.hint = direction.error.hint or "run it again to continue"
            raise direction.error
    if any(direction.is_interrupted for direction in directions):
        tell("interrupted: run it again to continue")
        raise Exit(INTERRUPTED)
    rows = [row for direction in directions for row in direction.rows]
    errors = [(row.id, row.error) for row in rows if row.error is not None]
    if errors:
        session_id, error = errors[0]
        more = f"; {len(errors) - 1:,} more failed" if len(errors) > 1 else ""
        error.message = f"session {session_id} stays where it is: {error.message}{more}"
        raise error
    for direction in directions:
        direction.raise_damage()
