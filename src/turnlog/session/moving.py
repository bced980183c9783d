"""What a home can do with another one: push, pull, sync."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from turnlog.errors import Invalid, NotFound

if TYPE_CHECKING:
    from turnlog.session.home import Home
    from turnlog.transfer.mover import Tell, Transferred


class Moving:
    """The half of a home that knows of others. Both may be of any kind: a folder, a database, memory."""

    def push(
        self,
        other: Home,
        ids: Iterable[str] | None = None,
        *,
        dry_run: bool = False,
        include_ignored: bool = False,
        progress: Tell | None = None,
    ) -> list[Transferred]:
        """Bring sessions to another home (all of them, without `ids`): only what is missing, verified, and in such an
        order that it can be interrupted anywhere and done again.

        A session that went on there, too, becomes a fork of theirs. What it builds on and its subagents come with it.
        What is in ignored files that checkpoints cover stays here, unless `include_ignored`.
        """
        return _moved(cast("Home", self), other, ids, dry_run, include_ignored, progress)

    def pull(
        self,
        other: Home,
        ids: Iterable[str] | None = None,
        *,
        dry_run: bool = False,
        include_ignored: bool = False,
        progress: Tell | None = None,
    ) -> list[Transferred]:
        """The same, from another home to this one."""
        return _moved(other, cast("Home", self), ids, dry_run, include_ignored, progress)

    def sync(
        self,
        other: Home,
        ids: Iterable[str] | None = None,
        *,
        dry_run: bool = False,
        include_ignored: bool = False,
        progress: Tell | None = None,
    ) -> tuple[list[Transferred], list[Transferred]]:
        """Both: what was pushed, and what was pulled. Ids may be of sessions that only one side has."""
        home = cast("Home", self)
        here, there = (None, None) if ids is None else sides(home, other, ids)
        pushed = _moved(home, other, here, dry_run, include_ignored, progress)
        return pushed, _moved(other, home, there, dry_run, include_ignored, progress)


def sides(home: Home, other: Home, ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Which of these sessions the one has, and which the other; raises `NotFound` for one that nobody has."""
    wanted = list(ids)
    here, there = set(home.store.ids()), set(other.store.ids())
    for name in wanted:
        if name not in here and name not in there:
            raise NotFound(f"no session {name!r:.80} in either home", hint="home.find gives the id for a beginning")
    return [name for name in wanted if name in here], [name for name in wanted if name in there]


def _moved(
    source: Home,
    target: Home,
    ids: Iterable[str] | None,
    dry_run: bool,
    include_ignored: bool,
    progress: Tell | None,
) -> list[Transferred]:
    from turnlog.transfer.mover import Mover

    refuse_itself(source, target)
    wanted = None if ids is None else list(ids)
    for name in wanted or ():
        if not source.exists(name):
            raise NotFound(f"no session {name!r:.80}", hint="home.find gives the id for a beginning of one")
    return list(Mover(source, target, dry_run=dry_run, include_ignored=include_ignored).run(wanted, progress))


def refuse_itself(home: Home, other: Home) -> None:
    """A home has nothing to bring to itself."""
    if home.store is other.store or home.store.own_folders() & other.store.own_folders():
        raise Invalid("a home cannot be moved to itself", hint="give the location of another one")
