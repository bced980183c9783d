"""Comparing two sessions: each is read twice, once to find where they part, once from there on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from turnlog.errors import NotFound
from turnlog.log.entry import AnyEntry
from turnlog.session.comparison import Comparable, Comparison, SubagentBill
from turnlog.session.comparison.beginning import beginning_of, common_nodes, path_of
from turnlog.session.comparison.side import read_side
from turnlog.thread.history import opened, subagents
from turnlog.thread.reader import history_of
from turnlog.thread.sessioncost import bill

if TYPE_CHECKING:
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.store import Store


def comparable(session: ReadOnlySession, store: Store, *, branch: int | None = None, name: str = "") -> Comparable:
    """An open session as one side of a comparison, at its head or at the end of another branch."""

    def forward(after: int) -> Iterator[AnyEntry]:
        return session.entries(after=after)

    def bill_of(child: str) -> SubagentBill:
        try:
            log = store.open(child, read_only=True)
        except NotFound:
            return SubagentBill()
        with opened(store, log) as history:
            report = bill(store, history)
            usage = sum((below.state.own for below in subagents(store, history)), history.state.own)
            return SubagentBill(usage, report.own + report.subagents)

    title = session.title or session.preview()
    head = history_of(session).original(session.head if branch is None else branch)
    return Comparable(name or session.id, title, session.agent, head, forward, session.changes, bill_of)


def compare(a: Comparable, b: Comparable) -> Comparison:
    """Compare two sessions, or branches."""
    path_a, path_b = path_of(a), path_of(b)
    common = common_nodes(path_a, path_b)
    beginning = beginning_of(common)
    last_a, last_b = common[-1] if common else (None, None)
    prompt = beginning.prompts[-1] if beginning.prompts else ""
    return Comparison(beginning, read_side(a, path_a, last_a, prompt), read_side(b, path_b, last_b, prompt))
