"""What push, pull and sync have in common: the other home, doing it, and what they say."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.table import table
from turnlog.cli.draw.text import count, one_line, size
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option
from turnlog.cli.frame.exitcode import INTERRUPTED, Left, Misused
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.progress import count as progress
from turnlog.cli.frame.progress import unhurried
from turnlog.cli.frame.shape import DRY_RUN
from turnlog.cli.pick.catalog import catalog
from turnlog.cli.pick.session import names
from turnlog.errors import Ambiguous, Corrupt, Invalid, NotFound, TurnlogError, Unavailable
from turnlog.log.ids import MARKS
from turnlog.machine.folder import expand
from turnlog.session import Home, open_home
from turnlog.session.interior import interior

if TYPE_CHECKING:
    from turnlog.transfer.report import Transferred

_SHOWN = 5
MOVED = {
    "sessions": shape.items(
        "those that differ",
        {
            "id": shape.text(),
            "outcome": shape.text("`new`, `grown`, `merged`, `forked`, `erased`, `deleted` there, or `failed`"),
            "entries": shape.number(),
            "blobs": shape.number(),
            "blob_bytes": shape.number(),
            "into": shape.text("the fork with the new entries", null=True),
            "problems": shape.texts(),
            "erased": shape.number("how many entries were erased there, because they were erased here"),
            "without_ignored": shape.number("checkpoints that were sent without their ignored files"),
            "error": shape.anything("why it was not transferred, or null"),
        },
    ),
    "same": shape.number("how many sessions were the same on both sides"),
    "entries": shape.number("how many entries were transferred"),
}
TRANSFERRED = {"dry_run": DRY_RUN, **MOVED}
"""What push and pull say with `--json`."""

LOCATIONS = Argument("words", "[SESSION]... URL")
EVERYTHING_OPTION = Option("--all -a", "Every session there is.", name="everything")
IGNORED_OPTION = Option("--include-ignored", "Also send the contents of ignored files. [default: only their names]")
DRY_RUN_OPTION = Option("--dry-run -n", "Only show what it would do.")


def other_home(url: str, *, must_exist: bool) -> Home:
    """The home at the other end."""
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


def split(words: tuple[str, ...], everything: bool, what: str) -> tuple[list[str], str]:
    """Which sessions, and where: the last word is the URL."""
    *chosen, url = words
    if bool(chosen) == everything:
        wrong = "give sessions or --all, not both" if chosen else f"which sessions? Name them, or {what} --all of them"
        raise Misused(wrong)
    return chosen, url


def in_either(home: Home, other: Home, words: list[str]) -> list[str]:
    """The ids of sessions that one of two homes knows by these names."""
    return [_in_either(home, other, word) for word in words]


def _in_either(home: Home, other: Home, name: str) -> str:
    if other.exists(name):
        return name
    try:
        return names(home).own(name, deleted=False)
    except Ambiguous:
        raise
    except (NotFound, Invalid) as error:
        try:
            return other.find(name)
        except NotFound:
            raise error from None


def not_ours() -> int:
    """How many sessions of other agents are on this machine that no home moves, because they were never imported."""
    try:
        with catalog(home_location()) as asked:
            cards = asked.cards(everything=True)
    except Unavailable as error:
        print(f"warning: other agents' sessions are not counted: {one_line(error.message)}", file=sys.stderr)
        return 0
    return sum(not card.is_ours and card.copy_of is None and card.parent is None for card in cards)


class Direction:
    """One direction: what was done, and what stopped it."""

    def __init__(self, what: str, *, dry_run: bool, include_ignored: bool) -> None:
        self.what = what
        self.dry_run = dry_run
        self.include_ignored = include_ignored
        self.rows: list[Transferred] = []
        self.failed: TurnlogError | None = None
        self.is_cut = False

    def go(self, source: Home, target: Home, ids: list[str] | None) -> bool:
        """Transfer the sessions; False if an error or Ctrl-C stopped it. What was transferred before that stays."""
        from turnlog.transfer.mover import Mover

        mover = Mover(
            interior(source).store, interior(target).store, dry_run=self.dry_run, include_ignored=self.include_ignored
        )
        doing = {"push": "pushing", "pull": "pulling"}[self.what]
        with unhurried("this session is finished first") as is_enough:
            try:
                for row in mover.run(ids, lambda number, total, _: progress(doing, number, total)):
                    self.rows.append(row)
                    if is_enough():
                        self.is_cut = True
                        break
            except TurnlogError as error:
                self.failed = error
        return self.failed is None and not self.is_cut

    @property
    def changed(self) -> list[Transferred]:
        """What is worth a line."""
        return [row for row in self.rows if row.outcome != "same" or row.problems]

    def to_json(self) -> dict[str, Any]:
        """For programs."""
        rows = [
            {
                "id": row.id, "outcome": row.outcome, "entries": row.entries, "blobs": row.blobs,
                "blob_bytes": row.blob_bytes, "into": row.into, "problems": row.problems,
                "erased": row.erased, "without_ignored": row.private,
                "error": None if row.error is None else {"code": row.error.code, "message": row.error.message},
            }
            for row in self.changed
        ]  # fmt: skip
        same = len(self.rows) - len(self.changed)
        return {"sessions": rows, "same": same, "entries": sum(row.entries for row in self.rows)}

    def show(self) -> None:
        """For people."""
        if self.changed:
            head = ("SESSION", "WHAT", "ENTRIES", "BLOBS", "NOTE")
            cells = [
                (row.id, row.outcome, f"{row.entries:,}", f"{row.blobs:,}" if row.blobs else "", _note(row))
                for row in self.changed
            ]
            for line in table(head, cells, right=(2, 3)):
                print(line)
        entries, blobs = sum(row.entries for row in self.rows), sum(row.blobs for row in self.rows)
        moved = [row for row in self.rows if row.entries and row.id != MARKS]
        big = "" if self.dry_run else f" ({size(sum(row.blob_bytes for row in self.rows))})"
        verb = {"push": "pushed", "pull": "pulled"}[self.what]
        what = f"would be {verb}" if self.dry_run else verb
        same = sum(row.outcome == "same" and row.id != MARKS for row in self.rows)
        print(
            f"{count(len(moved), 'session')} {what}: {count(entries, 'entry', 'entries')}, "
            f"{count(blobs, 'blob')}{big if blobs else ''}; {same:,} had nothing new"
        )
        erased = sum(row.erased for row in self.rows)
        if erased:
            where = {"push": "there", "pull": "here"}[self.what]
            print(f"{count(erased, 'entry', 'entries')} erased {where}, as on the other side")
        private = sum(row.private for row in self.rows)
        if private:
            where = {"push": "here", "pull": "there"}[self.what]
            print(
                f"what is in ignored files stays {where}: {count(private, 'checkpoint')} without it; "
                "--include-ignored sends it"
            )

    def warn(self) -> None:
        """What is damaged, where a person sees it."""
        for row in self.rows:
            for problem in row.problems[:_SHOWN]:
                print(f"warning: session {one_line(row.id)}: {one_line(problem)}", file=sys.stderr)
            if len(row.problems) > _SHOWN:
                print(f"warning: session {one_line(row.id)}: {len(row.problems) - _SHOWN:,} more", file=sys.stderr)


def _note(row: Transferred) -> str:
    if row.error is not None:
        return row.error.message
    if row.outcome == "deleted":
        return "in the trash there; left alone"
    if row.id == MARKS:
        return "marks of other agents' sessions"
    return f"as {row.into}: it continued there, too" if row.outcome == "forked" else ""


def tell(ways: list[Direction], *, dry_run: bool, as_json: bool, left: int | None = None) -> None:
    """Say what was done, and end as it ended. `left` is how many sessions of other agents stay."""
    if as_json:
        plain = {way.what: way.to_json() for way in ways}
        more = {} if left is None else {"not_ours": left}
        print_json({"dry_run": dry_run, **(plain if len(ways) > 1 else plain[ways[0].what]), **more})
    else:
        for way in ways:
            way.show()
        if left:
            print(
                f"{count(left, 'session')} of other agents {'stays' if left == 1 else 'stay'} here, not imported: "
                "`turnlog import --all` makes them ours"
            )
    for way in ways:
        way.warn()
    for way in ways:
        if way.failed is not None:
            way.failed.message += f"; {count(len(way.rows), 'session')} came before that"
            way.failed.hint = way.failed.hint or "do it again: it goes on where it stopped"
            raise way.failed
    if any(way.is_cut for way in ways):
        print("interrupted: do it again, and it goes on", file=sys.stderr)
        raise Left(INTERRUPTED)
    failed = [row for way in ways for row in way.rows if row.error is not None]
    for row in failed[:1]:
        assert row.error is not None
        more = f"; {len(failed) - 1:,} more failed" if len(failed) > 1 else ""
        row.error.message = f"session {row.id} stays where it is: {row.error.message}{more}"
        raise row.error
    damaged = [row.id for way in ways for row in way.rows if row.problems]
    if damaged:
        raise Corrupt(
            f"damage in {count(len(damaged), 'session')} did not move; what can be read is there",
            hint=f"look with `turnlog doctor {damaged[0]}`",
        )
