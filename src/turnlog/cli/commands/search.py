"""`turnlog search`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from turnlog.cli.draw.searchresult import print_flat, print_grouped
from turnlog.cli.fields.hit import HIT
from turnlog.cli.fields.session import CARD
from turnlog.cli.frame.command import WORKSPACE_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.request import JsonRequest
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.notes import hint, tell
from turnlog.cli.frame.terminal import screen_width
from turnlog.cli.pick.catalog import note_pending, open_catalog
from turnlog.cli.pick.query import filter_hint, in_folder, query_of
from turnlog.errors import Invalid
from turnlog.log.startup import NamedTuple
from turnlog.view.number import count
from turnlog.view.time import local_second
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from turnlog.catalog import Catalog
    from turnlog.catalog.answer import FoundPage, Hit

LIMIT, SESSIONS = 20, 10
SORTS = ("time", "relevance")
_CUT = "too much text: only the newest part was searched; add a word or since:"
GROUP = "Find", 2
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


class SearchRequest:
    """The words to search for, and the folder to search in."""

    def __init__(self, words: tuple[str, ...], *, here: bool, workspace: str | None) -> None:
        self.words = words
        self.typed = query_of(words)
        """The words as one query."""
        self.query = in_folder(self.typed, here=here, workspace=workspace)
        """The same in the folder that was asked for."""
        self._options = [*(["--here"] if here else []), *(["--workspace", workspace] if workspace is not None else [])]

    @property
    def is_narrow(self) -> bool:
        """Whether only one folder is searched."""
        return self.query != self.typed

    def command(self, options: list[str], words: tuple[str, ...] | None = None) -> str:
        """Return a command that searches the same with these options; with other words where these are given."""
        from shlex import join

        words = self.words if words is None else words
        more = [*self._options, *options]
        is_plain = not any(word.startswith("-") for word in words)
        return one_line(join(["turnlog", "search", *([*words, *more] if is_plain else [*more, "--", *words])]))


class SessionPage(NamedTuple):
    """Which sessions of the answer are shown."""

    limit: int
    page: int
    sort: str
    skipped: int = 0
    """How many places of the page were shown before."""


@declare(
    Argument("words", "WORDS...", required=False, takes_dashed_words=True),
    Option("--here", "Only in sessions of this folder."),
    WORKSPACE_OPTION,
    Option("--limit -n N", f"At most N sessions [{SESSIONS}]; in a pipe, N places [{LIMIT}].", least=1),
    Option("--sort", "Which sessions come first. [default: time]", choices=SORTS),
    Option("--page N", "The sessions after those that were shown.", least=1),
    Option("--before CURSOR", "In a pipe, the next page: places older than this.", least=0),
    exclusive=(("--here", "--workspace"), ("--before", "--page"), ("--before", "--sort")),
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
    """Find what was said and done in all sessions, the newest first.

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
    if not query_of(words).strip():
        raise Invalid("nothing to look for", hint="`turnlog search flaky test`; `turnlog search --help` has more")
    skipped = 0
    if JsonRequest.cursor is not None:
        from turnlog.cli.fields.hitlist import parse_cursor

        cursor = parse_cursor(JsonRequest.cursor, is_paged=page is not None or sort is not None)
        before, page, skipped = cursor.before, cursor.page or page, cursor.skipped
    request = SearchRequest(words, here=here, workspace=workspace)
    if before is None and (page is not None or sort is not None or (screen_width() is not None and not as_json)):
        _by_session(request, SessionPage(limit or SESSIONS, page or 1, sort or SORTS[0], skipped), as_json=as_json)
    else:
        _by_place(request, LIMIT if limit is None else limit, before, as_json=as_json)


def _by_place(request: SearchRequest, limit: int, before: int | None, *, as_json: bool) -> None:
    with open_catalog(home_location()) as catalog:
        hits = catalog.search(request.query, limit=limit, before=before)
        is_partial = note_pending(catalog, consequence="others are not searched yet")
        if as_json:
            _print_json(
                catalog, request, hits, lambda shown: hits[shown - 1].cursor if shown < len(hits) else hits.next,
                is_cut=hits.is_cut,
            )  # fmt: skip
            return
        if not hits and not hits.is_cut:
            _tell_nothing_found(
                catalog, request, is_narrow=request.is_narrow or before is not None, is_partial=is_partial
            )
            return
    print_flat(hits)
    if hits.is_cut:
        hint(_CUT)
    if hits.next is not None:
        options = ["--limit", str(limit)] if limit != LIMIT else []
        tell(f"… older ones: {request.command([*options, '--before', str(hits.next)])}", exact=True)


def _by_session(request: SearchRequest, shown: SessionPage, *, as_json: bool) -> None:
    with open_catalog(home_location()) as catalog:
        page = catalog.found(request.query, limit=shown.limit, page=shown.page, sort=shown.sort)
        is_partial = note_pending(catalog, consequence="others are not searched yet")
        hits = [hit for session in page.sessions for hit in session.hits]
        if as_json:
            totals = {"places": page.places, "sessions": page.total}
            _print_json(
                catalog, request, hits[shown.skipped :], partial(_page_cursor, shown, page, len(hits)),
                is_cut=page.is_cut, totals=totals, missing=list(page.missing), instead=dict(page.instead),
            )  # fmt: skip
            return
        if not page.sessions and not page.is_cut:
            _tell_nothing_found(catalog, request, is_narrow=request.is_narrow or shown.page > 1, is_partial=is_partial)
            return
        ids = catalog.ids() if screen_width() is not None else []
    _tell_near(page)
    if screen_width() is None:
        print_flat(hits)
    else:
        print_grouped(page, ids)
    _tell_totals(page, request, shown)


def _page_cursor(shown: SessionPage, page: FoundPage, hits: int, printed: int) -> str | None:
    """Return the cursor after this many printed hits of a page that has `hits`."""
    if shown.skipped + printed < hits:
        return f"{shown.page}.{shown.skipped + printed}"
    return None if page.next is None else f"{page.next}.0"


def _print_json(
    catalog: Catalog, request: SearchRequest, hits: list[Hit], cursor: Callable[[int], int | str | None], **more: object
) -> None:
    from turnlog.cli.fields.hitlist import HitList

    standing = catalog.standing()
    document = {"query": request.query, "hits": HitList(hits, cursor)}
    print_json({**document, "indexed": standing.indexed, "pending": standing.pending, **more})


def _tell_near(page: FoundPage) -> None:
    """Tell which words were replaced or left out, before the results."""
    for word, near in page.instead:
        tell(f"{word} occurs nowhere; these results are for {near}")
    if page.missing:
        tell(f"no place has all of the words; left out: {', '.join(page.missing)}")


def _tell_totals(page: FoundPage, request: SearchRequest, shown: SessionPage) -> None:
    more = "more than " if page.is_more else ""
    totals = f"{more}{count(page.places, 'place')} in {more}{count(page.total, 'session')}"
    options = ["--limit", str(shown.limit)] if shown.limit != SESSIONS else []
    options += ["--sort", shown.sort] if shown.sort != SORTS[0] else []
    if page.next is not None:
        totals += f"; the next: {request.command([*options, '--page', str(page.next)])}"
    elif page.reached is not None:
        totals += f"; older ones: {request.command(options, _words_until(request, page.reached))}"
    tell(totals, colour="dim", exact=True)
    if page.is_cut:
        hint(_CUT)


def _words_until(request: SearchRequest, end: datetime) -> tuple[str, ...]:
    """Return the words that search what came before a moment."""
    from turnlog.catalog.ask.query import Filter, Query, parse

    until = Filter("until", (f"{local_second(end)[:10]}T{local_second(end)[11:16]}",))
    query = parse(request.typed)
    return (str(query.within(until)),) if query.others else (*request.words, str(Query((), (until,))))


def _tell_nothing_found(catalog: Catalog, request: SearchRequest, *, is_narrow: bool, is_partial: bool) -> None:
    query = request.typed
    tell(f"nothing found for {query}{' so far' if is_partial else ''}")
    if is_partial:
        return
    hints: list[str] = list(filter(None, [filter_hint(catalog, query)]))
    bare = query.split()
    if is_narrow and catalog.search(query, limit=1):
        hints.append("there are matches elsewhere, or newer ones: search without --here, --workspace and --before")
    elif len(bare) > 1 and not any(":" in word or '"' in word for word in bare):
        begun = next((f", or a beginning: {word[:6]}*" for word in bare if word.isalnum() and len(word) > 3), "")
        hints.append(f"all words have to be in one message; try fewer{begun}")
    elif any(":" in word for word in bare):
        hints.append("try it without the filters")
    elif len(query) > 3 and query.isalnum():
        hints.append(f"try a beginning, {query[: max(3, len(query) - 2)]}*, or a part of a word, *{query}*")
    if not hints:
        hints.append("`turnlog search --help` says what can be looked for")
    hint(hints[0])
