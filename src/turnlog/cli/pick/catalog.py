"""The catalog, and what is told while it reads. Imports nothing heavy."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from turnlog.catalog import Catalog
from turnlog.cli.frame.progress import progress_line, show_share


@contextmanager
def open_catalog(home: str | None, *, is_whole: bool = False) -> Generator[Catalog]:
    """Open the catalog of that home, and of other agents on this machine.

    The first question reads what is new, and says how far it is if that takes a while; where it is much, a process of
    its own goes on with that, unless all of it is wanted.
    """
    with (
        Catalog(home, agents=True, progress=show_share, deferred=not is_whole, at_end=True) as catalog,
        progress_line(),
    ):
        try:
            yield catalog
            if catalog.path == ":memory:":
                from turnlog.cli.frame.notes import warn

                warn("no disk has room for the index: it is read into memory each time; free some space")
        except KeyboardInterrupt:
            if sys.stderr.isatty():
                from turnlog.cli.frame.notes import tell_in_place

                tell_in_place("stopped: what was read so far is kept, and the next command goes on")
            raise


def note_pending(catalog: Catalog, *, consequence: str) -> bool:
    """Note that an answer is not of everything yet, and what follows from that. Returns whether that is so."""
    standing = catalog.standing() if catalog.is_partial else None
    if standing is None or not standing.pending:
        return False
    from turnlog.cli.frame.notes import note

    indexed = f"{standing.indexed:,} of {standing.sessions:,} sessions are indexed so far, the newest first"
    note(f"{indexed}: {consequence}; `turnlog index` waits for the rest")
    return True


def forget_purged(home: str | None) -> None:
    """Remove what was removed for good from every index that this machine has of that home."""
    for agents in (True, False):
        with Catalog(home, agents=agents, progress=show_share) as catalog, progress_line():
            catalog.forget_purged()
