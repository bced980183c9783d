"""The query language, the same in every front end. Pure: text to `Query`, and back.

Everything typed has to hold, or everything on one side of an `OR`. `HELP` is the text for people.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from turnlog.catalog.ask.moment import moment
from turnlog.catalog.index.terms import Term
from turnlog.errors import Invalid
from turnlog.log.startup import NamedTuple, pattern

HELP = """\
error handling       both words, in any order; upper and lower case are the same
"exact phrase"       these words, one after the other
migrat*              words that begin with this
-draft               not this word, phrase or filter
self._x.append(      code, as it stands, from the beginning of a word on
*ession_la*          also in the middle of a word
"key: value"         with blanks or quotes in it; \\" is a quote
error OR failure     one of them; without parentheses, all on one side of OR or all on the other
codex (a OR b)       codex, and a or b; AND is allowed and changes nothing

agent:codex,claude   of one of these agents
workspace:api        in a folder of that name, the end of a path, or a path and what is below it
workspace:=~/notes   in exactly that folder
role:user            a message of user, assistant, tool or system, a note or a summary
tool:bash            a call of that tool, or its answer
file:src/app.py      touches that file: the end of its path, a folder/, or with * and ?
model:sonnet         by a model with this in its name
since:7d until:2h    also today, yesterday, 2026-11, 2026-11-01, 09:30, 2026-11-01T09:30
cost:>1.50           sessions that cost more than this, in dollars; also < >= <=
title:"login page"   its title contains this
tag:urgent           has this tag
session:k3f9         the session whose id or handle begins with this; also id:k3f9
session:=k3f9        that session alone, by its whole name or id
branch:feature/*     worked on that branch of git: its name, or the end of it after a slash
commit:main..HEAD    sessions whose turns wrote lines of these commits, or of one, in this repository
is:running           also waiting, idle, stopped, crashed
is:fork              also subagent, imported, damaged
is:starred           also archived, hidden
"""

ROLES = ("user", "assistant", "tool", "system", "note", "summary")
STATES = ("running", "waiting", "idle", "stopped", "crashed")
KINDS = (*STATES, "damaged", "fork", "subagent", "imported", "archived", "starred", "hidden")
FILTERS = (
    "agent", "workspace", "role", "tool", "file", "model", "since", "until", "cost", "title", "tag", "session", "id",
    "branch", "commit", "is",
)  # fmt: skip
_SYNONYMS = {
    "project": "workspace", "folder": "workspace", "repo": "workspace", "dir": "workspace", "cwd": "workspace",
    "after": "since", "from": "since", "before": "until", "to": "until", "path": "file", "price": "cost",
    "label": "tag", "name": "title",
}  # fmt: skip
"""Names of filters in other programs."""
_CHOICES = {"role": ROLES, "is": KINDS}
_PATHS = ("workspace", "file")
"""Their values are kept as typed: a file system may keep accents apart."""
_SINGLE = ("since", "until", "cost", "commit")

MAX_LENGTH = 4096
MAX_PARTS = 100
MAX_SIDES = 32

# Scripts without spaces between words: what is typed is seldom a whole run between two spaces.
_UNSPACED = (
    ("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"),
    ("\uac00", "\ud7a3"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip
_WORD = pattern(r"[^\W_]+")
_WORDS = pattern(r"[^\W_]+(?:\s+[^\W_]+)*")
_NAME = pattern(r"([a-z]+):(?!//|:|\s|$)")
_EMPTY = pattern(rf"({'|'.join(FILTERS)}):(?=\s|$)")
_QUOTED = pattern(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = pattern(r"[^\s,]*")
_ITEM = pattern(r"\S+")
_JOIN = pattern(r"(?:AND|OR)(?!\S)")
_JOINED = pattern(r"(?<![^\s(])(?:AND|OR)(?!\S)")
_BRACKET = pattern(r'(?<![^\s(:,-])"(?:[^"\\]|\\.)*"|[()]', re.DOTALL)
_AS_TEXT = 'to look for code beside AND and OR, put it in quotes: "call("'
_BLANKS = pattern(r"\s+")
_PLAIN_VALUE = pattern(r'(?!:|//)[^\s,"()]+')
_COST = pattern(r"(>=|<=|>|<)\$?(\d{0,12})(?:\.(\d{0,6}))?")


class Filter(NamedTuple):
    """A filter: one of the values has to match, or, negated, none of them."""

    name: str
    values: tuple[str, ...]
    negated: bool = False


class Query(NamedTuple):
    """A query: everything in it has to hold, or everything in one of `others`."""

    terms: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()
    others: tuple[Query, ...] = ()
    """The other sides of an `OR`; these have no others themselves."""

    @property
    def sides(self) -> tuple[Query, ...]:
        """What stands between the `OR`s."""
        return (self._replace(others=()), *self.others)

    @property
    def every_term(self) -> tuple[Term, ...]:
        """The words on all sides of an `OR`."""
        return tuple(term for side in self.sides for term in side.terms)

    @property
    def every_filter(self) -> tuple[Filter, ...]:
        """The filters on all sides of an `OR`."""
        return tuple(clause for side in self.sides for clause in side.filters)

    def within(self, *filters: Filter) -> Query:
        """This query with more filters, on every side of an `OR`."""
        first, *rest = (side._replace(filters=(*side.filters, *filters)) for side in self.sides)
        return first._replace(others=tuple(rest))

    def without(self, chosen: Filter) -> Query:
        """This query without a filter, on any side of an `OR`."""
        first, *rest = dict.fromkeys(
            Query(side.terms, tuple(clause for clause in side.filters if clause != chosen)) for side in self.sides
        )
        return Query() if Query() in (first, *rest) else first._replace(others=tuple(rest))

    def __str__(self) -> str:
        return " OR ".join(
            " ".join([*map(_show_term, side.terms), *map(_show_filter, side.filters)]) for side in self.sides
        )


def parse(text: str | Query) -> Query:
    """Parse a query, unless that is done. Raises `Invalid` if it cannot be understood."""
    if isinstance(text, Query):
        return text
    if len(text) > MAX_LENGTH:
        raise Invalid(f"a query of {len(text)} characters", hint=f"at most {MAX_LENGTH}")
    _refuse_surrogates(text)
    if "\0" in text:
        raise Invalid(f"the query {text!r:.80} has a NUL in it")
    sides = _sides(text, with_groups=_JOINED.search(_QUOTED.sub('""', text)) is not None) or [Query()]
    for side in sides:
        if side.terms and all(term.negated for term in side.terms):
            raise Invalid(f"nothing to look for, only what must not be there: {str(side)!r:.80}", hint="add a word")
    return sides[0]._replace(others=tuple(sides[1:]))


def _sides(text: str, *, with_groups: bool) -> list[Query]:
    """The sides of the `OR`s, with parentheses expanded: `a (b OR c)` is `a b OR a c`."""
    finished: list[Query] = []
    open_sides = [Query()]
    """More than one if a group was multiplied out."""
    position, end = _skip(text, 0), len(text)
    while position < end:
        join = _JOIN.match(text, position)
        if join:
            position = _skip(text, join.end())
            if open_sides == [Query()] or position == end:
                hint = f'error {join[0]} failure; to look for the word, "{join[0]}"'
                raise Invalid(f"{join[0]} with nothing on one of its sides: {text.strip()!r:.80}", hint=hint)
            if join[0] == "OR":
                finished, open_sides = finished + open_sides, [Query()]
            continue
        if with_groups and text.startswith("(", position):
            inner, position = _group(text, position)
        else:
            part, position = _part(text, position, with_groups=with_groups)
            inner = [part]
        if len(open_sides) * len(inner) + len(finished) > MAX_SIDES:
            raise Invalid(f"a query with more than {MAX_SIDES} ways to be met", hint="say less, and narrow it down")
        open_sides = [Query(a.terms + b.terms, a.filters + b.filters) for a in open_sides for b in inner]
        if sum(len(side.terms) + len(side.filters) for side in finished + open_sides) > MAX_PARTS:
            raise Invalid(f"a query of more than {MAX_PARTS} parts", hint="say less, and narrow it down")
        position = _skip(text, position)
    return finished + open_sides if open_sides != [Query()] else finished


def _group(text: str, position: int) -> tuple[list[Query], int]:
    """The group in parentheses at a position, and the position after it."""
    depth = 0
    for bracket in _BRACKET.finditer(text, position):
        depth += {"(": 1, ")": -1}.get(bracket[0], 0)
        if depth == 0:
            inner = _sides(text[position + 1 : bracket.start()], with_groups=True)
            if not inner:
                raise Invalid(f"nothing between the parentheses: {text.strip()!r:.80}", hint="(error OR failure)")
            return inner, bracket.end()
    raise Invalid(f"a ( that is never closed: {text[position:]!r:.40}", hint=_AS_TEXT)


def _part(text: str, position: int, *, with_groups: bool) -> tuple[Query, int]:
    """One word, phrase or filter."""
    item = _ITEM.match(text, position)
    if with_groups and item and item[0].startswith("-("):
        raise Invalid(f"a minus before a group: {text[position:]!r:.40}", hint="one before each: -error -failure")
    if with_groups and item and '"' not in item[0] and item[0].count(")") > item[0].count("("):
        raise Invalid(f"a ) that was never opened: {item[0]!r:.40}", hint=_AS_TEXT)
    negated = _negates(text, position)
    if negated:
        position += 1
    name = _NAME.match(text, position)
    if name and (name[1] in FILTERS or not _is_agent(name[1])):
        clause, position = _filter(name[1], text, name.end(), negated)
        return Query((), (clause,)), position
    term, position = _term(text, position, negated)
    return Query((term,)), position


def _is_agent(name: str) -> bool:
    """Whether `name` is an agent, so that `name:…` is the name of a session."""
    from turnlog.formats import is_known

    return is_known(name)


def cost_of(value: str) -> tuple[str, int]:
    """The comparison and the micro-dollars of a value of `cost:`."""
    match = _COST.fullmatch(value)
    if match is None or not (match[2] or match[3]):
        raise Invalid(f"cost:{value:.80} is not an amount", hint="cost:>1.50, cost:<0.1, cost:>=2 or cost:<=2")
    return match[1], int(match[2] or "0") * 1_000_000 + int((match[3] or "").ljust(6, "0"))


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the query {text!r:.80} is not Unicode") from None


def _normalized(text: str) -> str:
    """The text with each letter and its accent as one character; some keyboards send them separately."""
    if text.isascii():
        return text
    from unicodedata import normalize

    return normalize("NFC", text)


def _skip(text: str, position: int) -> int:
    blank = _BLANKS.match(text, position)
    return blank.end() if blank else position


def _negates(text: str, position: int) -> bool:
    """Whether the minus at a position means "not": in `-v` it does, `--force` and `->` are code."""
    if text[position] != "-" or position + 1 == len(text):
        return False
    following = text[position + 1]
    return following.isalnum() or following in '_"*'


# ── terms ─────────────────────────────────────────────────────────────────────────────────────────


def _term(text: str, position: int, negated: bool) -> tuple[Term, int]:
    empty = _EMPTY.match(text, position)
    if empty:
        raise Invalid(f"{empty[0]} has no value", hint=f'{empty[0]}… or, to look for it as text, "{empty[0]}"')
    if text[position] == '"':
        word, end = _quoted(text, position)
        word = _normalized(word)
        word = _BLANKS.sub(" ", word.strip())
        if not word:
            raise Invalid(f"nothing between the quotes at {text[position:]!r:.40}", hint='"an exact phrase"')
        return Term(_kind(word), word, negated), end
    match = _ITEM.match(text, position)
    assert match is not None
    word, end = _normalized(match[0]), match.end()
    bare = word.strip("*")
    if not bare:
        raise Invalid(f"{word:.40} is everything", hint='word* finds words that begin so; "*" looks for a star')
    if word[0] == "*":
        return Term("part", bare, negated), end
    if word[-1] == "*":
        kind = _kind(bare)
        return Term("prefix" if kind == "word" else kind, bare, negated), end
    return Term(_kind(word), word, negated), end


def _kind(text: str) -> str:
    if _is_unspaced(text):
        return "part"
    if _WORD.fullmatch(text):
        return "word"
    return "phrase" if _WORDS.fullmatch(text) else "code"


def _is_unspaced(text: str) -> bool:
    return not text.isascii() and any(first <= one <= last for one in text for first, last in _UNSPACED)


def _quoted(text: str, position: int) -> tuple[str, int]:
    match = _QUOTED.match(text, position)
    if match is None:
        raise Invalid(f"a quote that is never closed: {text[position:]!r:.40}", hint='"an exact phrase"')
    return re.sub(r"\\(.)", _unescape, match[1], flags=re.DOTALL), match.end()


def _unescape(match: re.Match[str]) -> str:
    # Only if not negated: people paste `"\d+"` and mean it.
    return match[1] if match[1] in '"\\' else match[0]


def _show_term(term: Term) -> str:
    sign = "-" if term.negated else ""
    if term.kind == "part" and not _is_unspaced(term.text):
        return f"{sign}*{term.text}*"
    if term.kind == "prefix":
        return f"{sign}{term.text}*"
    return sign + (term.text if term.kind == "word" and term.text not in ("AND", "OR") else _quote(term.text))


# ── filters ───────────────────────────────────────────────────────────────────────────────────────


def _filter(name: str, text: str, position: int, negated: bool) -> tuple[Filter, int]:
    if name not in FILTERS:
        rest = _ITEM.match(text, position)
        whole = f"{name}:{rest[0] if rest else ''}"
        near = _SYNONYMS.get(name) or _nearest(name, FILTERS)
        by = f"`turnlog usage --by {name}` adds up by it; " if name in ("user", "machine") else ""
        suggestion = f"did you mean {near}:? " if near else by
        hint = f'{suggestion}one of {", ".join(FILTERS)}; to look for it as text, "{whole:.60}"'
        raise Invalid(f"there is no filter {name}:", hint=hint)
    values: list[str] = []
    while True:
        if text.startswith('"', position):
            value, position = _quoted(text, position)
        else:
            # A comma in an amount is a typing error, not a second value.
            match = (_ITEM if name in _SINGLE else _BARE).match(text, position)
            value, position = (match[0], match.end()) if match else ("", position)
        if not value:
            raise Invalid(f"{name}: has an empty value", hint=f"{name}:one,other; quotes around what has a comma")
        values.append(_checked(name, value if name in _PATHS else _normalized(value)))
        if not text.startswith(",", position):
            break
        position += 1
    if name in _SINGLE and len(values) > 1:
        raise Invalid(f"{name}:{','.join(values):.80} has several values", hint=f"{name}: takes one")
    return Filter(name, tuple(values), negated), position


def _nearest(word: str, words: Sequence[str]) -> str:
    """The most similar of these words; "" if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, words, n=1)), "")


def _checked(name: str, value: str) -> str:
    if name in ("since", "until"):
        moment(value, now=datetime.now(UTC), is_end=name == "until")
    elif name == "cost":
        cost_of(value)
    elif name in _CHOICES:
        choices = _CHOICES[name]
        if value.lower() not in choices:
            near = _nearest(value.lower(), choices)
            suggestion = f"did you mean {name}:{near}? " if near else ""
            raise Invalid(f"there is no {name}:{value:.80}", hint=f"{suggestion}one of {', '.join(choices)}")
        return value.lower()
    return value


def _show_filter(clause: Filter) -> str:
    values = ",".join(value if _PLAIN_VALUE.fullmatch(value) else _quote(value) for value in clause.values)
    return f"{'-' if clause.negated else ''}{clause.name}:{values}"


def _quote(text: str) -> str:
    escaped = re.sub(r'(\\(?=["\\]|$)|")', r"\\\1", text)
    return f'"{escaped}"'
