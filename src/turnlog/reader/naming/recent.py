"""The newest sessions, whosever they are: those of here, or of anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from turnlog.errors import NotFound, Unavailable
from turnlog.log.startup import pattern
from turnlog.machine.folder import workspace_path
from turnlog.reader.naming.here import newest_cards, sessions_here
from turnlog.reader.naming.sessionref import OpenCatalog, SessionRef, ref_of
from turnlog.session.interior import interior
from turnlog.session.lookup import is_net_in
from turnlog.store.capability import KeepFiles, ability

if TYPE_CHECKING:
    from datetime import datetime

    from turnlog.catalog import Card
    from turnlog.session import Home

_RECENT = pattern(r"@(?:-([1-9]\d{0,5})?)?")
Place = Literal["here", "anywhere"]


def is_recent(word: str) -> bool:
    """Whether a word counts back from the newest session: `latest`, `@`, `@-`, `@-2`."""
    return word == "latest" or _RECENT.fullmatch(word) is not None


class RecentSessions:
    """The sessions of one home and of the other agents on this machine, by when they were last written to."""

    def __init__(self, home: Home, catalog: OpenCatalog, warn: Callable[[str], None]) -> None:
        self._home = home
        self._catalog = catalog
        self._warn = warn

    def find(self, word: str) -> SessionRef:
        """The session that `latest`, `@` or one of those before it means. `latest` is of anywhere."""
        match = _RECENT.fullmatch(word)
        back = 0 if match is None or word == "@" else int(match[1] or 1)
        refs = self.newest(back + 1, ["anywhere" if match is None else "here"])
        if back < len(refs):
            return refs[back]
        where = "" if match is None else f" for {workspace_path('.')}"
        reason = (
            f"there are only {len(refs)}" if len(refs) > 1 else "there is only one" if refs else "there is none yet"
        )
        raise NotFound(f"no session {word!r}{where}: {reason}", hint="`turnlog ls --all` shows all there are")

    def newest(self, most: int, places: Sequence[Place]) -> list[SessionRef]:
        """The newest sessions of the first of these places that has any: so many of them at least, if there are."""
        cards = self._cards(most, places)
        has_files = ability(interior(self._home).store, KeepFiles) is not None
        for place in places:
            rows = [(card.updated_at, ref_of(card)) for card in cards.get(place, ())]
            if not rows or not has_files:  # the catalog is sure to know what is in files
                own_ids = {ref.id for _, ref in rows if ref.source is None}
                rows += [row for row in self._ours(place) if row[1].id not in own_ids]
                rows.sort(key=lambda row: (row[0] is not None, row[0]), reverse=True)
            if rows:
                return [ref for _, ref in rows]
        return []

    def _cards(self, most: int, places: Sequence[Place]) -> dict[Place, list[Card]]:
        """What the catalog has, up to the first place that has any."""
        by_place: dict[Place, list[Card]] = {}
        try:
            with self._catalog() as catalog:
                for place in places:
                    by_place[place] = newest_cards(catalog, most, anywhere=place == "anywhere")
                    if by_place[place]:
                        break
        except Unavailable as error:  # where nothing can be indexed, ours are still there
            self._warn(f"other agents' sessions are left out: {error.message}")
        return by_place

    def _ours(self, place: Place) -> list[tuple[datetime | None, SessionRef]]:
        rows = self._home.sessions()
        if place == "anywhere":
            rows = [row for row in rows if not row.hidden and row.parent is None]
            rows = [row for row in rows if row.seq > 1] or rows
        else:
            ids = set(sessions_here(self._home))
            rows = [row for row in rows if row.id in ids]
        chosen = [row for row in rows if not is_net_in(interior(self._home).store, row)] or rows
        return [(row.updated_at, SessionRef(row.id)) for row in chosen]
