"""What all tools share: the catalog, sessions open for reading, the caller, and the scope."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from turnlog.catalog import Card, Catalog
from turnlog.errors import NotFound, TurnlogError
from turnlog.log.startup import NamedTuple
from turnlog.mcp.quote import Quotes
from turnlog.session.interior import interior
from turnlog.thread.home.alias import session_of
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.formats import Source
    from turnlog.mcp.caller import Caller
    from turnlog.mcp.scope import Scope
    from turnlog.reader.opening.follow import FileStamps
    from turnlog.reader.opening.opener import OpenedSession
    from turnlog.session import ReadOnlySession

_PATIENCE_S = 3.0
"""The maximum time to wait for another process that writes the catalog."""
_FRESH_S = 2.5
"""How long a check of the disk is valid; while an agent asks, it is checked every two seconds."""


class _Held(NamedTuple):
    """Another agent's session that was read; it is valid until its file changes."""

    name: str
    source: Source
    stamps: FileStamps
    opened: OpenedSession
    stack: ExitStack


class Library:
    """What all tools of one server share. It writes only the catalog."""

    def __init__(self, location: str | None, scope: Scope, caller: Caller, check: Callable[[], None]) -> None:
        self.location = location
        self.scope = scope
        self.caller = caller
        self.quotes = Quotes()
        self.catalog = Catalog(
            location, agents=True, deferred=True, patience_s=_PATIENCE_S, fresh_for=_FRESH_S,
            progress=lambda what, done, total: check(),
        )  # fmt: skip
        self._held: _Held | None = None

    def own(self, meta: dict[str, Any]) -> list[str]:
        """The ids of the session that asks."""
        return self.caller.sessions(self.catalog, meta)

    def notes(self) -> list[str]:
        """Notes about how complete an answer is."""
        notes: list[str] = []
        if self.catalog.is_partial:
            standing = self.catalog.standing()
            if standing.pending:
                pending = count(standing.pending, "session is", "sessions are")
                notes.append(f"The index is being built: {pending} not read yet. Ask again for more.")
        if self.catalog.is_behind:
            notes.append("The index is being written by another program: the newest may be missing.")
        if self.catalog.path == ":memory:":
            notes.append("No disk has room for the index.")
        return notes

    @contextmanager
    def session(self, name: str) -> Generator[tuple[Card, OpenedSession]]:
        """The session of that name, open for reading: ours from its log, another agent's from its own file."""
        card = self.scope.session(self.catalog, name)
        if card.is_ours:
            from turnlog.reader.opening.opener import OpenedSession
            from turnlog.session import open_home

            with open_home(self.location) as home, home.read(card.id) as session:
                yield card, OpenedSession(home, session)
            return
        yield card, self._foreign(card)

    @contextmanager
    def covered(self, name: str) -> Generator[tuple[Card, ReadOnlySession]]:
        """The session with checkpoints: the named one if it is ours, or else the one that hooks or an import made."""
        from turnlog.session import open_home

        card = self.scope.session(self.catalog, name)
        with open_home(self.location) as home:
            own = (
                card.id if card.is_ours else session_of(interior(home).store, card.agent or "", card.id, remember=False)
            )
            if own is None:
                hint = "`turnlog hooks install` lets its agent report every turn from then on"
                raise NotFound(f"session {card.id} has no checkpoints of files", hint=hint)
            with home.read(own) as session:
                yield card, session

    def _foreign(self, card: Card) -> OpenedSession:
        """The session, which is read again only after its file changed: models read it page by page."""
        from turnlog.exchange.keeping.keptfile import KeptFiles
        from turnlog.formats import Source
        from turnlog.reader.naming.sessionref import SessionRef
        from turnlog.reader.opening.follow import stamp_of
        from turnlog.reader.opening.opener import SessionOpener

        source = Source(card.agent or "", card.path, card.key)
        stamps = stamp_of(KeptFiles(self.location).file_of(source))
        if self._held is not None and (self._held.source, self._held.stamps) == (source, stamps):
            return self._held.opened
        self._release()
        with ExitStack() as stack:
            ref = SessionRef(card.id, source, card.workspace)
            opened = stack.enter_context(SessionOpener(self.location).read_foreign(ref))
            self._held = _Held(card.name, source, stamps, opened, stack.pop_all())
        return opened

    def _release(self) -> None:
        if self._held is not None:
            held, self._held = self._held, None
            held.stack.close()
            self.quotes.forget(held.name)

    def keep_up(self) -> None:
        """Refresh the catalog while no request waits."""
        try:
            self.catalog.refresh(at_once=True)
        except TurnlogError:
            pass  # the next request looks again, and reports the error

    def close(self) -> None:
        """Close the catalog and the session that is held."""
        self._release()
        self.catalog.close()
