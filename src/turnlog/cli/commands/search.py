"""`turnlog search`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from turnlog.cli.draw.listing import CARD, HIT
from turnlog.cli.draw.text import (
    ago,
    beginning,
    clip,
    coloured,
    ending,
    moment,
    one_line,
    plain,
    safe,
    screen_width,
    width,
)
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.output import JsonAsked
from turnlog.cli.pick.catalog import catalog, meant_filter, query_of, tell_pending
from turnlog.errors import Invalid
from turnlog.reader.folder import tilde, within
from turnlog.reader.shortname import short_names
from turnlog.view.number import count, dollars

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.catalog.answer import FoundPage, Hit

LIMIT, SESSIONS = 20, 10
SORTS = ("time", "relevance")
_CUT = "hint: that is a lot to look through, and only the newest of it was: another word or since: makes it less"
_WHO = {"assistant": "agent", "user": "you"}
_INDENT = "  "
_ODD = re.compile(r"[^ -~]")
CHANGES = shape.NOTHING
JSON_VERSION = 2
FIELDS = {
    "query": shape.text("the query"),
    "hits": shape.items("a place each", HIT),
    "sessions": shape.each("the sessions of the hits, as in `ls`", CARD, role="aside"),
    "is_cut": shape.flag("whether only the newest part was searched, because there was too much"),
    "indexed": shape.number("how many sessions were searched"),
    "pending": shape.number("how many are not indexed yet: `turnlog index` waits for them"),
    "[totals]": shape.one(
        "with --page or --sort, where at most three places of a session are listed: how many there are",
        {"places": shape.number(), "sessions": shape.number()},
    ),
    "[missing]": shape.texts("with --page or --sort, words that match nowhere together with the others"),
    "[instead]": shape.one("with --page or --sort, words that occur nowhere, with the word searched instead"),
}


class SearchRequest(NamedTuple):
    """Which page of sessions is asked for, and with which words."""

    words: tuple[str, ...]
    query: str
    """All of it, with the folder that was asked for."""
    typed: str
    here: bool
    workspace: str | None
    limit: int
    page: int
    sort: str
    skipped: int = 0
    """How many places of the page were shown before."""


@declare(
    Argument("words", "WORDS...", required=False, dashes=True),
    Option("--here", "Only in sessions of this folder."),
    Option("--workspace -w PATH", "Only in sessions of that folder and those below it."),
    Option("--limit -n N", f"At most N sessions [{SESSIONS}]; in a pipe, N places [{LIMIT}].", least=1),
    Option("--sort", "Which sessions come first. [default: time]", choices=SORTS),
    Option("--page N", "The sessions after those that were shown.", least=1),
    Option("--before CURSOR", "In a pipe, the next page: places older than this.", least=0),
)
def command(
    *,
    words: tuple[str, ...],
    here: bool,
    workspace: str | None,
    limit: int | None,
    before: int | None,
    page: int | None,
    sort: str | None,
    as_json: bool,
) -> None:
    """Find what was said and done, in every session of every agent: the newest first.

    Searches prompts, answers, thinking, arguments and results of tools, and names of files; and titles, names and ids
    of sessions. All words must match; if they match nowhere together, places with the rarest of them are shown, and a
    word that occurs nowhere is replaced by the most similar one. A page has ten sessions with at most three places
    each. --sort relevance puts titles first, then prompts, answers, and tools.

    \b
    turnlog search flaky test              both words, in one message
    turnlog search '"exact phrase"'        these words, one after the other
    turnlog search 'migrat* -draft'        words that begin so, and not that one
    turnlog search 'self._cache.get('      code, as it stands
    turnlog search 'agent:codex (timeout OR deadline)'
    turnlog search timeout agent:codex since:7d role:tool

    \b
    Filters, which `turnlog ls` and `turnlog usage` take as well:
      agent:codex          workspace:api        role:user (assistant, tool, …)
      tool:bash            file:src/app.py      model:sonnet
      since:7d until:2h    also today, yesterday, 2026-11-01
      cost:>1.50           title:"login page"   tag:urgent      session:k3f9
      branch:login         commit:main..HEAD    the sessions behind work in git
      is:running           also waiting, idle, stopped, crashed
      is:fork              also subagent, imported, damaged
      is:starred           also archived, hidden
    """
    home = home_location()
    if before is not None and (page is not None or sort is not None):
        raise Invalid("--before is for places, --page and --sort for sessions", hint="leave one of them out")
    query = query_of(words)
    if not query.strip():
        raise Invalid("nothing to look for", hint="`turnlog search flaky test`; `turnlog search --help` has more")
    asked_for, skipped = query, 0
    if JsonAsked.cursor is not None:
        from turnlog.cli.draw.hit import going_on

        before, page, skipped = going_on(JsonAsked.cursor, page, is_paged=page is not None or sort is not None)
    if here or workspace is not None:
        from turnlog.machine.folder import workspace_path
        from turnlog.reader.folder import project

        query = within(query, project() if workspace is None else workspace_path(workspace))
    if before is None and (page is not None or sort is not None or (screen_width() is not None and not as_json)):
        order = sort or SORTS[0]
        wanted = SearchRequest(words, query, asked_for, here, workspace, limit or SESSIONS, page or 1, order, skipped)
        _by_session(wanted, home, as_json=as_json)
        return
    limit = LIMIT if limit is None else limit
    with catalog(home) as asked:
        hits = asked.search(query, limit=limit, before=before)
        is_partial = tell_pending(asked, so="others are not searched yet")
        if as_json:
            from turnlog.cli.draw.hit import printed_hits

            indexed, pending, *_ = asked.standing()
            listed = printed_hits(hits, lambda printed: hits[printed - 1].cursor if printed < len(hits) else hits.next)
            print_json({"query": query, "hits": listed, "is_cut": hits.is_cut, "indexed": indexed, "pending": pending})
            return
        if not hits and not hits.is_cut:
            _nothing(asked, asked_for, is_narrow=query != asked_for or before is not None, is_partial=is_partial)
            return
    _flat(hits)
    if hits.is_cut:
        print(_CUT, file=sys.stderr)
    if hits.next is not None:
        print(_next(words, here, workspace, limit, hits.next), file=sys.stderr)


def _by_session(wanted: SearchRequest, home: str | None, *, as_json: bool) -> None:
    with catalog(home) as asked:
        page = asked.found(wanted.query, limit=wanted.limit, page=wanted.page, sort=wanted.sort)
        is_partial = tell_pending(asked, so="others are not searched yet")
        if as_json:
            from turnlog.cli.draw.hit import printed_hits

            indexed, pending, *_ = asked.standing()
            hits = [hit for one in page.sessions for hit in one.hits]

            def cursor(shown: int) -> str | None:
                if wanted.skipped + shown < len(hits):
                    return f"{wanted.page}.{wanted.skipped + shown}"
                return None if page.next is None else f"{page.next}.0"

            print_json({
                "query": wanted.query, "hits": printed_hits(hits[wanted.skipped :], cursor), "is_cut": page.is_cut,
                "indexed": indexed, "pending": pending, "totals": {"places": page.places, "sessions": page.total},
                "missing": list(page.missing), "instead": dict(page.instead),
            })  # fmt: skip
            return
        if not page.sessions and not page.is_cut:
            is_narrow = wanted.query != wanted.typed or wanted.page > 1
            _nothing(asked, wanted.typed, is_narrow=is_narrow, is_partial=is_partial)
            return
        ids = asked.ids() if screen_width() is not None else []
    _tell_near(page)
    if screen_width() is None:
        _flat([hit for one in page.sessions for hit in one.hits])
    else:
        _grouped(page, ids)
    _tell_totals(page, wanted)


def _tell_near(page: FoundPage) -> None:
    """What was looked for instead of what was typed, before anybody takes the one for the other."""
    for word, near in page.instead:
        print(one_line(f"{word} occurs nowhere; these results are for {near}"), file=sys.stderr)
    if page.missing:
        print(one_line(f"no place has all of the words; left out: {', '.join(page.missing)}"), file=sys.stderr)


def _tell_totals(page: FoundPage, wanted: SearchRequest) -> None:
    more = "more than " if page.is_more else ""
    totals = f"{more}{count(page.places, 'place')} in {more}{count(page.total, 'session')}"
    options = ["--limit", str(wanted.limit)] if wanted.limit != SESSIONS else []
    options += ["--sort", wanted.sort] if wanted.sort != SORTS[0] else []
    if page.next is not None:
        options += ["--page", str(page.next)]
        totals += f"; the next: {_command_line(wanted.words, wanted.here, wanted.workspace, options)}"
    elif page.reached is not None:
        from turnlog.catalog.ask.query import Filter, Query, parse

        until = Filter("until", (f"{moment(page.reached)[:10]}T{moment(page.reached)[11:16]}",))
        asked = parse(query_of(wanted.words))
        words = (str(asked.within(until)),) if asked.others else (*wanted.words, str(Query((), (until,))))
        totals += f"; older ones: {_command_line(words, wanted.here, wanted.workspace, options)}"
    print(coloured(totals, "dim", sys.stderr), file=sys.stderr)
    if page.is_cut:
        print(_CUT, file=sys.stderr)


def _nothing(asked: Catalog, query: str, *, is_narrow: bool, is_partial: bool) -> None:
    print(one_line(f"nothing found for {query}{' so far' if is_partial else ''}"), file=sys.stderr)
    if is_partial:
        return
    hints: list[str] = list(filter(None, [meant_filter(asked, query)]))
    bare = query.split()
    if is_narrow and asked.search(query, limit=1):
        hints.append("there is something in other folders, or newer: search without --here, --workspace and --before")
    elif len(bare) > 1 and not any(":" in word or '"' in word for word in bare):
        begun = next((f", or a beginning: {word[:6]}*" for word in bare if word.isalnum() and len(word) > 3), "")
        hints.append(f"all words have to be in one message; try fewer{begun}")
    elif any(":" in word for word in bare):
        hints.append("try it without the filters")
    elif len(query) > 3 and query.isalnum():
        hints.append(f"try a beginning, {query[: max(3, len(query) - 2)]}*, or a part of a word, *{query}*")
    if not hints:
        hints.append("`turnlog search --help` says what can be looked for")
    print(one_line(f"hint: {hints[0]}"), file=sys.stderr)


def _next(words: tuple[str, ...], here: bool, workspace: str | None, limit: int, cursor: int) -> str:
    options = ["--limit", str(limit)] if limit != LIMIT else []
    return f"… older ones: {_command_line(words, here, workspace, [*options, '--before', str(cursor)])}"


def _command_line(words: tuple[str, ...], here: bool, workspace: str | None, options: list[str]) -> str:
    from shlex import join

    more = ["--here"] if here else []
    more += ["--workspace", workspace] if workspace is not None else []
    more += options
    is_plain = not any(word.startswith("-") for word in words)
    all_words = [*words, *more] if is_plain else [*more, "--", *words]
    return one_line(join(["turnlog", "search", *all_words]))


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _who(hit: Hit) -> str:
    if hit.tool:
        return plain(hit.tool)
    return _WHO.get(hit.role, hit.role)


def _flat(hits: list[Hit]) -> None:
    """A line each, for other programs' eyes: grep, cut, less."""
    for hit in hits:
        text = marked(_body(hit)[0], (), str)
        print(f"{plain(hit.card.name)}  {moment(hit.at)[:16]:16}  {_who(hit)}  {text}")


def _grouped(page: FoundPage, ids: list[str]) -> None:
    """The sessions, and in each its newest places, how to read the first of them, and how to go on."""
    room = screen_width() or 80
    out = sys.stdout
    for name, session in zip(short_names([one.card for one in page.sessions], ids), page.sessions, strict=True):
        for line in _head(session.card, name, room):
            print(line)
        who = min(12, max(len(_who(hit)) for hit in session.hits))
        for hit in session.hits:
            lead = f"{_INDENT}{moment(hit.at)[5:16]:11}  {clip(_who(hit), who):{who}}  "
            snippet, marks = _cut(hit, room - len(lead))
            print(coloured(lead, "dim", out) + marked(snippet, marks, lambda text: coloured(text, "match", out)))
        if session.more:
            print(_INDENT + coloured(f"{session.more:,} more here", "dim", out))
        for command in (_reading(session.hits[0], name, room), _command(session.hits[0], name)):
            print(_INDENT + coloured(f"→ {command}", "dim", out))
        print()


def _head(card: Card, name: str, room: int) -> list[str]:
    """Name and title, and about it what fits: on the same line, or else on the next one."""
    parts = [card.agent or "", ago(_ms(card), time.time())]
    if card.workspace:
        parts.append(tilde(card.workspace) if room >= 100 else card.workspace.rstrip("/").rpartition("/")[2])
    micros = card.own.cost_micros + card.subagents.cost_micros
    if micros:
        parts.append(dollars(micros, is_partial=bool(card.unpriced)))
    about = " · ".join(filter(None, map(plain, parts)))
    title = plain(card.title or card.preview) or "(no title)"
    first = f"{coloured(plain(name), 'cyan', sys.stdout)}  "
    if len(name) + width(title) + width(about) + 4 <= room:
        return [f"{first}{coloured(title, 'bold', sys.stdout)}  {about}"]
    return [
        first + coloured(clip(title, room - len(name) - 2), "bold", sys.stdout),
        _INDENT + clip(about, room - len(_INDENT)),
    ]


def _ms(card: Card) -> int | None:
    return None if card.updated_at is None else round(card.updated_at.timestamp() * 1000)


def _body(hit: Hit) -> tuple[str, list[tuple[int, int]]]:
    """The snippet, without the name of the tool at its beginning: that stands beside it."""
    lead = f"{hit.tool} ⏎ "
    skipped = len(lead) if hit.tool and hit.snippet.startswith(lead) else 0
    marks = [(start - skipped, end - skipped) for start, end in hit.marks if start >= skipped]
    return (hit.snippet[skipped:], marks) if marks else (hit.snippet, list(hit.marks))


def _cut(hit: Hit, room: int) -> tuple[str, list[tuple[int, int]]]:
    """As much of the snippet as fits, with its first mark in it."""
    text, all_marks = _body(hit)
    if width(text) <= room:
        return text, all_marks
    first = all_marks[0][0] if all_marks else 0
    start = first - len(ending(text[:first], room // 3))
    end = start + len(beginning(text[start:], room))
    if end == len(text):  # there is room for more before it
        start = end - len(ending(text, room))
    cut = text[start:end]
    marks = [(max(a, start) - start, min(b, end) - start) for a, b in all_marks if a < end and b > start]
    if start:
        less = len(beginning(cut, 1) or beginning(cut, 2)) - 1
        cut = "…" + cut[less + 1 :]
        marks = [(max(a - less, 1), b - less) for a, b in marks if b - less > 1]
    if end < len(text):
        cut = cut[: -len(ending(cut, 1) or ending(cut, 2))] + "…"
        marks = [(a, min(b, len(cut) - 1)) for a, b in marks if a < len(cut) - 1]
    return cut, marks


def marked(text: str, marks: Sequence[tuple[int, int]], paint: Callable[[str], str]) -> str:
    """A text on one line and made safe, with what is between the marks painted."""
    parts: list[str] = []
    position = 0
    for start, end in marks:
        parts += [_inline(text[position:start]), paint(_inline(text[start:end]))]
        position = end
    parts.append(_inline(text[position:]))
    return "".join(parts).strip()


def _inline(text: str) -> str:
    """Blanks at the ends stay: there may be a mark."""
    if not _ODD.search(text) and "  " not in text:
        return text
    return safe(re.sub(r"\s+", " ", text))


def _reading(hit: Hit, name: str, room: int) -> str:
    """The command that shows the place; without the place, where an agent's name for it is too long for a line."""
    from shlex import join

    command = ["turnlog", "show", name]
    whole = join([*command, *(("--at", str(hit.seq or hit.entry)) if hit.entry else ())])
    return whole if whole.isprintable() and len(whole) + len(_INDENT) + 2 <= room else one_line(join(command))


def _command(hit: Hit, name: str) -> str:
    from shlex import join

    return one_line(join(name if word == hit.card.name else word for word in hit.resume))
