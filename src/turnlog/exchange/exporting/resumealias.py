"""The alias of a session that continues in its own agent under another id, so that it stays one session here."""

from __future__ import annotations

from turnlog.exchange.exporting.handover import source_at
from turnlog.exchange.exporting.resumable import Resumable
from turnlog.exchange.origin import origin_of
from turnlog.exchange.source import mapped_read_errors
from turnlog.formats import format_of, is_known
from turnlog.log.entry import Alias
from turnlog.store import Store
from turnlog.thread.home.alias import append_alias
from turnlog.thread.reader import SessionReader, history_of


def alias_before_resume(store: Store, session: SessionReader, resumable: Resumable) -> None:
    """Record the id under which a session was handed over to its own agent, before the agent is started.

    Only if the agent's hooks report its turns. Another agent continues it as a session of its own.
    """
    state = history_of(session).state
    origin = origin_of(history_of(session))
    if (
        not state.is_relayed
        or resumable.path is None
        or resumable.agent != origin.agent
        or not is_known(resumable.agent)
    ):
        return
    if resumable.id == origin.id or f"{resumable.agent}\n{resumable.id}" in state.aliases:
        return
    form = format_of(resumable.agent)
    source = source_at(form, resumable.path, resumable.id)
    with mapped_read_errors(resumable.path):
        records = 0 if source is None else sum(1 for _ in form.read(source).steps)
    append_alias(
        store,
        session.id,
        Alias(agent=resumable.agent, native=resumable.id, head=session.head, records=records, path=resumable.path),
    )
