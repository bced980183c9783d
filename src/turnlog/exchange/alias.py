"""A session that goes on in its own agent under another id stays one session: known before the agent starts."""

from __future__ import annotations

from turnlog.exchange.handover import source_at
from turnlog.exchange.resumable import Resumable
from turnlog.exchange.sourceindex import origin_of
from turnlog.formats import format_of, is_known
from turnlog.log.entry import Alias
from turnlog.store import Store
from turnlog.thread.alias import go_on_under
from turnlog.thread.reader import SessionReader, history_of


def alias_before_resume(store: Store, session: SessionReader, way: Resumable) -> None:
    """What its agent says under the id that it was handed over with is said in this session.

    Only where the agent's hooks tell of its turns; to another agent it is handed as another session.
    """
    state = history_of(session).state
    origin = origin_of(history_of(session))
    if not state.is_relayed or way.path is None or way.agent != origin.get("agent") or not is_known(way.agent):
        return
    if way.id == origin.get("id") or f"{way.agent}\n{way.id}" in state.aliases:
        return
    form = format_of(way.agent)
    source = source_at(form, way.path, way.id)
    records = 0 if source is None else sum(1 for _ in form.read(source).steps)
    go_on_under(
        store,
        session.id,
        Alias(agent=way.agent, native=way.id, head=session.head, records=records, path=way.path),
    )
