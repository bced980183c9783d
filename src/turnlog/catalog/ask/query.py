"""What people type to find something, the same in every face. Pure: text in, a `Query` out, and back.

Everything typed has to hold; `HELP` is what people are told.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from turnlog.catalog.index.terms import Term
from turnlog.errors import Invalid

HELP = """\
error handling       both words, in any order; upper and lower case are the same
"exact phrase"       these words, one after the other
migrat*              words that begin so
-draft               not this word, phrase or filter
self._x.append(      code, as it stands, from the beginning of a word on
*ession_la*          also in the middle of a word
"key: value"         with blanks or quotes in it; \\" is a quote

agent:codex,claude   of one of these agents
workspace:api        in a folder of that name, the end of a path, or a path and what is below it
workspace:=~/notes   in that very folder
role:user            said by user, assistant, tool, system, or a note, or a summary
tool:bash            a call of that tool, or its answer
file:src/app.py      touches that file: the end of its path, a folder/, or with * and ?
model:sonnet         by a model with this in its name
since:7d until:2h    also today, yesterday, 2026-11, 2026-11-01, 09:30, 2026-11-01T09:30
cost:>1.50           sessions that cost more than so many dollars; also < >= <=
title:"login page"   has this in its title
tag:urgent           has this tag
session:k3f9         the session whose id or handle begins so; also id:k3f9
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
    "commit", "is",
)  # fmt: skip
_CHOICES = {"role": ROLES, "is": KINDS}
_SINGLE = ("since", "until", "cost", "commit")

MAX_LENGTH = 4096
MAX_PARTS = 100

# Scripts that put no blanks between words: what is typed is seldom what lies between two blanks there.
_UNSPACED = (
    ("\u0e00", "\u0eff"), ("\u1000", "\u109f"), ("\u1780", "\u17ff"), ("\u3040", "\u30ff"), ("\u3400", "\u9fff"),
    ("\uac00", "\ud7a3"), ("\uf900", "\ufaff"), ("\U00020000", "\U0003ffff"),
)  # fmt: skip
_WORD = re.compile(r"[^\W_]+")
_WORDS = re.compile(r"[^\W_]+(?:\s+[^\W_]+)*")
_NAME = re.compile(r"([a-z]+):(?!//|:|\s|$)")
_EMPTY = re.compile(rf"({'|'.join(FILTERS)}):(?=\s|$)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r"[^\s,]*")
_ITEM = re.compile(r"\S+")
_BLANKS = re.compile(r"\s+")
_COST = re.compile(r"(>=|<=|>|<)\$?(\d{0,12})(?:\.(\d{0,6}))?")
_AGO = re.compile(r"(\d{1,6})(min|m|h|d|w)")
_DAY = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?))?)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d")
_CLOCK = re.compile(r"\d\d?:\d\d")
_UNITS = {"min": "minutes", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Filter(NamedTuple):
    """What has to be so besides: one of the values, or, negated, none of them."""

    name: str
    values: tuple[str, ...]
    negated: bool = False


class Query(NamedTuple):
    """Everything in it has to hold."""

    terms: tuple[Term, ...] = ()
    filters: tuple[Filter, ...] = ()

    def __str__(self) -> str:
        return " ".join([*map(_show_term, self.terms), *map(_show_filter, self.filters)])


def parse(text: str) -> Query:
    """What was asked for. `Invalid` for everything that cannot be understood."""
    if len(text) > MAX_LENGTH:
        raise Invalid(f"a query of {len(text)} characters", hint=f"at most {MAX_LENGTH}")
    if not text.isascii():
        text = _sane(text)
    if "\0" in text:
        raise Invalid(f"the query {text!r:.80} has a NUL in it")
    terms: list[Term] = []
    filters: list[Filter] = []
    position, end = _skip(text, 0), len(text)
    while position < end:
        negated = _negates(text, position)
        if negated:
            position += 1
        name = _NAME.match(text, position)
        if name and (name[1] in FILTERS or not _is_agent(name[1])):
            found, position = _filter(name[1], text, name.end(), negated)
            filters.append(found)
        else:
            term, position = _term(text, position, negated)
            terms.append(term)
        position = _skip(text, position)
        if len(terms) + len(filters) > MAX_PARTS:
            raise Invalid(f"a query of more than {MAX_PARTS} parts", hint="say less, and narrow it down")
    if terms and all(term.negated for term in terms):
        raise Invalid(f"nothing to look for, only what must not be there: {text.strip()!r:.80}", hint="add a word")
    return Query(tuple(terms), tuple(filters))


def _is_agent(name: str) -> bool:
    """Whether `name:…` is what a session of that agent is called."""
    from turnlog.formats import is_known

    return is_known(name)


def moment(value: str, *, now: datetime, zone: tzinfo | None = None, is_end: bool = False) -> datetime:
    """The time that a value of `since:` or `until:` means, in a time zone (default: the local one).

    A day, a month or a year is meant whole: `until` ends with it.
    """
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        if value == "now":
            return now
        if value in ("today", "yesterday"):
            today = now.astimezone(zone).date()
            day = today if value == "today" else today - timedelta(days=1)
            return _midnight(day + timedelta(days=1) if is_end else day, zone)
        if _CLOCK.fullmatch(value):
            hour, minute = map(int, value.split(":"))
            return _local(datetime.combine(now.astimezone(zone).date(), time(hour, minute)), zone)
        whole = _DAY.fullmatch(value)
        if whole:
            return _midnight(_edge(whole, is_end), zone)
        if not _TIME.match(value):
            raise ValueError
        found = datetime.fromisoformat(value)
        return found if found.tzinfo else _local(found, zone)
    except (ValueError, OverflowError, OSError):
        hint = "7d, 2h, 30min, today, yesterday, 2026-11, 2026-11-01, 09:30 or 2026-11-01T09:30"
        raise Invalid(f"{value!r:.80} is not a time", hint=hint) from None


def cost_of(value: str) -> tuple[str, int]:
    """A value of `cost:`: the comparison, and micro-dollars."""
    found = _COST.fullmatch(value)
    if found is None or not (found[2] or found[3]):
        raise Invalid(f"cost:{value:.80} is not an amount", hint="cost:>1.50, cost:<0.1, cost:>=2 or cost:<=2")
    return found[1], int(found[2] or "0") * 1_000_000 + int((found[3] or "").ljust(6, "0"))


def _sane(text: str) -> str:
    from unicodedata import normalize

    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"the query {text!r:.80} is not Unicode") from None
    # Some keyboards send letters and their accents one by one.
    return normalize("NFC", text)


def _skip(text: str, position: int) -> int:
    blank = _BLANKS.match(text, position)
    return blank.end() if blank else position


def _negates(text: str, position: int) -> bool:
    """Whether there is a minus that means "not": `-v` yes, `--force` and `->` are code."""
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
        word = _BLANKS.sub(" ", word.strip())
        if not word:
            raise Invalid(f"nothing between the quotes at {text[position:]!r:.40}", hint='"an exact phrase"')
        return Term(_kind(word), word, negated), end
    found = _ITEM.match(text, position)
    assert found is not None
    word, end = found[0], found.end()
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
    found = _QUOTED.match(text, position)
    if found is None:
        raise Invalid(f"a quote that is never closed: {text[position:]!r:.40}", hint='"an exact phrase"')
    return re.sub(r"\\(.)", _unescape, found[1], flags=re.DOTALL), found.end()


def _unescape(found: re.Match[str]) -> str:
    # Only what has to be: people paste `"\d+"` and mean it.
    return found[1] if found[1] in '"\\' else found[0]


def _show_term(term: Term) -> str:
    sign = "-" if term.negated else ""
    if term.kind == "part" and not _is_unspaced(term.text):
        return f"{sign}*{term.text}*"
    if term.kind == "prefix":
        return f"{sign}{term.text}*"
    return sign + (term.text if term.kind == "word" else _quote(term.text))


# ── filters ───────────────────────────────────────────────────────────────────────────────────────


def _filter(name: str, text: str, position: int, negated: bool) -> tuple[Filter, int]:
    if name not in FILTERS:
        rest = _ITEM.match(text, position)
        whole = f"{name}:{rest[0] if rest else ''}"
        near = _nearest(name, FILTERS)
        meant = f"did you mean {near}:? " if near else ""
        hint = f'{meant}one of {", ".join(FILTERS)}; to look for it as text, "{whole:.60}"'
        raise Invalid(f"there is no filter {name}:", hint=hint)
    values: list[str] = []
    while True:
        if text.startswith('"', position):
            value, position = _quoted(text, position)
        else:
            # A comma in an amount is a slip, not a second one.
            found = (_ITEM if name in _SINGLE else _BARE).match(text, position)
            value, position = (found[0], found.end()) if found else ("", position)
        if not value:
            raise Invalid(f"{name}: has an empty value", hint=f"{name}:one,other; quotes around what has a comma")
        values.append(_checked(name, value))
        if not text.startswith(",", position):
            break
        position += 1
    if name in _SINGLE and len(values) > 1:
        raise Invalid(f"{name}:{','.join(values):.80} has several values", hint=f"{name}: takes one")
    return Filter(name, tuple(values), negated), position


def _nearest(word: str, words: Sequence[str]) -> str:
    """The one of these words that is most like this one; "" if none is."""
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
            meant = f"did you mean {name}:{near}? " if near else ""
            raise Invalid(f"there is no {name}:{value:.80}", hint=f"{meant}one of {', '.join(choices)}")
        return value.lower()
    return value


def _show_filter(found: Filter) -> str:
    values = ",".join(value if re.fullmatch(r'[^\s,"]+', value) else _quote(value) for value in found.values)
    return f"{'-' if found.negated else ''}{found.name}:{values}"


def _quote(text: str) -> str:
    escaped = re.sub(r'(\\(?=["\\]|$)|")', r"\\\1", text)
    return f'"{escaped}"'


# ── times ─────────────────────────────────────────────────────────────────────────────────────────


def _edge(whole: re.Match[str], is_end: bool) -> date:
    year, month, day = int(whole[1]), int(whole[2] or 1), int(whole[3] or 1)
    first = date(year, month, day)
    if not is_end:
        return first
    if whole[3]:
        return first + timedelta(days=1)
    if whole[2]:
        return date(year + month // 12, month % 12 + 1, 1)
    return date(year + 1, 1, 1)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    return _local(datetime.combine(day, time()), zone)


def _local(naive: datetime, zone: tzinfo | None) -> datetime:
    return naive.replace(tzinfo=zone) if zone else naive.astimezone()
