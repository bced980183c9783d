"""Filters as conditions on sessions and entries.

Patterns in ASCII use LIKE, which ignores case; everything else uses a regular expression. Most filters read nothing,
but `commit:` reads git and the checkpoints of the home, `is:` with a state reads every session and its processes, and a
relative path begins in the current folder.
"""

from __future__ import annotations

import re
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING

from turnlog.catalog.ask.moment import moment
from turnlog.catalog.ask.query import STATES, Filter, Query, cost_of
from turnlog.catalog.index.columns import EPOCH
from turnlog.catalog.index.conditions import Condition, either
from turnlog.catalog.index.lookup import TimeSpan
from turnlog.catalog.index.terms import Term
from turnlog.errors import Invalid

if TYPE_CHECKING:
    from turnlog.catalog.index.index import Index

_KINDS = {
    "damaged": Condition(">", "sessions.damage", 0).or_(Condition("<>", "sessions.problem", "")),
    "fork": Condition("known", "sessions.fork"),
    "subagent": Condition("known", "sessions.parent"),
    "imported": Condition("is", "sessions.is_ours").and_(Condition("known", "sessions.copy_of")),
    "archived": Condition("is", "sessions.is_archived"),
    "starred": Condition("like", "sessions.tags", ("%\nstar\n%",)),
    "hidden": Condition("is", "sessions.is_hidden"),
}
_OF_ENTRIES = ("role", "tool", "file")
_OF_TIME = ("since", "until")
_LEAST_NAME = 4
"""Shorter words are not taken for the beginning of a name."""


def span_of(query: Query, *, now_ms: int, zone: tzinfo | None = None) -> TimeSpan:
    """The time span that `since:` and `until:` mean now."""
    since: list[int] = []
    until: list[int] = []
    now = EPOCH + timedelta(milliseconds=now_ms)
    for clause in query.filters:
        if clause.name in _OF_TIME:
            is_until = clause.name == "until"
            at = moment(clause.values[0], now=now, zone=zone, is_end=is_until)
            (until if is_until != clause.negated else since).append(-((EPOCH - at) // timedelta(milliseconds=1)))
    return TimeSpan(max(since, default=None), min(until, default=None))


def active(span: TimeSpan) -> Condition:
    """Sessions that were active in this time."""
    condition = Condition()
    if span.since is not None:
        condition = condition.and_(Condition(">=", "sessions.updated", span.since))
    if span.until is not None:
        condition = condition.and_(Condition("<", "sessions.began", span.until))
    return condition


def of_spending(query: Query) -> Query:
    """A query for spending. Raises `Invalid` if the sides of an `OR` have different times or models."""
    names = (*_OF_TIME, "model")
    kept = {frozenset(clause for clause in side.filters if clause.name in names) for side in query.sides}
    if len(kept) > 1:
        hint = "several models are model:sonnet,opus; a time for both sides is (agent:codex OR tag:shop) since:7d"
        raise Invalid(
            f"a sum has one time and one choice of models, and OR asks for several: {str(query)!r:.80}", hint=hint
        )
    return query


def is_of_entries(query: Query) -> bool:
    """Whether a query needs entries, and not only data about sessions."""
    return bool(query.terms) or any(clause.name in _OF_ENTRIES and not clause.negated for clause in query.filters)


def title_condition(query: Query) -> Condition:
    """Sessions whose name or title has all of the words."""
    condition = Condition()
    for term in query.terms:
        titled = Condition("regexp", "sessions.title", _pattern(term))
        longest = max(term.text.split(), key=len)
        if longest.isascii():  # most titles do not match, and this check is many times faster
            titled = _like("sessions.title", longest, ("*", "*"), is_glob=False).and_(titled)
        if term.negated:
            condition = condition.but_not(titled)
        else:
            condition = condition.and_(either(titled, *_name_begins(term.text)))
    return condition


def _pattern(term: Term) -> str:
    """The regular expression of a term, with word boundaries if its kind requires them."""
    body = r"\W+".join(map(re.escape, term.text.split()))
    before = r"(^|\W|_)" if term.kind != "part" and term.text[0].isalnum() else ""
    return before + body + (r"($|\W|_)" if term.kind in ("word", "phrase") else "")


def _name_begins(text: str) -> list[Condition]:
    """Sessions whose handle, foreign id or `agent:id` begins with `text`; not by the date that our ids begin with."""
    if len(text) < _LEAST_NAME:
        return []
    name, native = (_like(column, text, ("", "*"), is_glob=False) for column in ("sessions.name", "sessions.native"))
    if ":" in text:
        return [name]
    if "-" in text:
        return [native]
    return [Condition("is", "sessions.is_ours").and_(name), Condition("not", "sessions.is_ours").and_(native)]


def of_sessions(query: Query, index: Index, *, without: tuple[str, ...] = ()) -> Condition:
    """The condition of a query on sessions."""
    condition = Condition()
    for clause in query.filters:
        if clause.name not in (*_OF_ENTRIES, *_OF_TIME, *without):
            condition = _add(condition, clause, _of_session(clause, index))
    return condition


def of_entries(query: Query, *, negated: bool | None = None) -> Condition:
    """The condition on entries of all filters, or of the negated or other ones alone, then without negation."""
    condition = Condition()
    for clause in query.filters:
        if clause.name in _OF_ENTRIES:
            if negated is None:
                condition = _add(condition, clause, _of_entry(clause))
            elif negated == clause.negated:
                condition = condition.or_(_of_entry(clause)) if negated else condition.and_(_of_entry(clause))
    return condition


def of_model(query: Query, column: str) -> Condition:
    """The condition of `model:` on a column with one model."""
    condition = Condition()
    for clause in query.filters:
        if clause.name == "model":
            models = either(*(_like(column, value, ("*", "*")) for value in clause.values))
            condition = _add(condition, clause, models)
    return condition


def _add(whole: Condition, clause: Filter, condition: Condition) -> Condition:
    return whole.but_not(condition) if clause.negated else whole.and_(condition)


def _of_session(clause: Filter, index: Index) -> Condition:
    values = clause.values
    match clause.name:
        case "agent":
            ends = ("", "-*", "_*", " *")
            return either(*(_like("sessions.agent", value, *(("", end) for end in ends)) for value in values))
        case "workspace":
            return either(*(_workspace(form) for value in values for form in _forms(value)))
        case "model":
            return either(*(_like("sessions.models", value, ("*", "*")) for value in values))
        case "title":
            return either(*(_like("sessions.shown", value, ("*", "*")) for value in values))
        case "tag":
            return either(*(_has_value("sessions.tags", value) for value in values))
        case "session" | "id":
            return either(*map(_session_condition, values))
        case "branch":
            found_in = (_has_value("sessions.git_branches", end + value) for value in values for end in ("", "*/"))
            return either(*found_in)
        case "commit":
            return Condition("among", "sessions.id", tuple(index.behind_commits(values[0])))
        case "cost":
            sign, micros = cost_of(values[0])
            return Condition(sign, "sessions.all_cost", micros)
        case _:
            kinds = either(*(_KINDS[value] for value in values if value in _KINDS))
            states = frozenset(values).intersection(STATES)
            if not states:
                return kinds
            return kinds.or_(Condition("among", "sessions.id", tuple(index.in_state(states))))


def _of_entry(clause: Filter) -> Condition:
    if clause.name == "role":
        return Condition("in", "docs.role", clause.values)
    if clause.name == "tool":
        return either(*(_has_value("docs.tool", value) for value in clause.values))
    return Condition("touches", value=either(*(_file(form) for value in clause.values for form in _forms(value))))


def _forms(path: str) -> list[str]:
    """A path as typed, and with accents joined and apart: file systems differ in which of these they keep."""
    if path.isascii():
        return [path]
    from unicodedata import normalize

    return list(dict.fromkeys((path, normalize("NFC", path), normalize("NFD", path))))


def _workspace(value: str) -> Condition:
    is_alone = value[0] == "=" and len(value) > 1
    if is_alone or value[0] in "~./":
        from turnlog.machine.folder import expand, workspace_path

        path = workspace_path(expand(value.removeprefix("=") if is_alone else value))
        if is_alone:
            return Condition("=", "sessions.workspace", path)
        # The folder itself, with links resolved, and everything below it. Case matters.
        below = Condition("begins", "sessions.workspace", path.rstrip("/") + "/")
        return Condition("=", "sessions.workspace", path).or_(below)
    name = value.strip("/") or value
    return _like("sessions.workspace", name, ("", ""), ("*/", ""))


def _session_condition(value: str) -> Condition:
    if value[0] == "=" and len(value) > 1:
        whole_id = Condition("=", "sessions.native", value[1:]).and_(Condition("is", "sessions.is_ours"))
        return Condition("=", "sessions.name", value[1:]).or_(whole_id)
    return either(*(_like(column, value, ("", "*")) for column in ("sessions.name", "sessions.native")))


def _file(value: str) -> Condition:
    if value.startswith("~"):
        from turnlog.machine.folder import expand

        value = expand(value)
    path = value.removeprefix("./") or value
    after = "*" if path.endswith("/") else ""
    ends = [("", after)] if path.startswith("/") else [("", after), ("*/", after)]
    return _like("paths.path", path, *ends)


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────


def _like(column: str, value: str, *around: tuple[str, str], is_glob: bool = True) -> Condition:
    """Whether a column matches the value between one of these pairs of texts. `*` is any text, `?` one character."""
    if not value.isascii():
        middle = _regex(value) if is_glob else re.escape(value)
        body = "|".join(_regex(before) + middle + _regex(after) for before, after in around)
        return Condition("regexp", column, f"^({body})$")
    middle = _escaped(value)
    if is_glob:
        middle = middle.replace("*", "%").replace("?", "_")
    patterns = tuple(
        _escaped(before).replace("*", "%") + middle + _escaped(after).replace("*", "%") for before, after in around
    )
    return Condition("like", column, patterns)


def _has_value(column: str, value: str) -> Condition:
    """Whether a column of several values, each between line feeds, has one that matches."""
    if not value.isascii() or "*" in value or "?" in value:
        return Condition("regexp", column, "\n" + _regex(value, one="[^\n]") + "\n")
    return _like(column, "\n" + value + "\n", ("*", "*"))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _regex(text: str, one: str = ".") -> str:
    """A pattern as a regular expression; `one` is what `?` stands for."""
    text = re.sub(r"\*{2,}", "*", text)  # each further star would multiply the time to match
    return "".join(f"{one}*" if char == "*" else one if char == "?" else re.escape(char) for char in text)
