"""`turnlog ls`."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.listing import listing
from turnlog.cli.fields.session import CARD, json_card
from turnlog.cli.frame.command import WORKSPACE_OPTION, Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.home import home_location
from turnlog.cli.frame.terminal import screen_rows, screen_width
from turnlog.cli.pick.catalog import note_pending, open_catalog
from turnlog.cli.pick.query import filter_hint, query_of
from turnlog.machine.folder import workspace_path
from turnlog.reader.naming.here import ask_here, in_folder, tilde
from turnlog.view.number import count
from turnlog.view.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog import Card, Catalog

_FLOOR = 10
GROUP = "Find", 1
CHANGES = shape.NOTHING
FIELDS = {
    "sessions": shape.items(
        "a session each",
        {
            **CARD,
            "[call]": shape.text("the tool call of its parent that started it, for our sessions", null=True),
            "[labels]": shape.one(),
            "[listed]": shape.one("data of the program that made it, for listings"),
            "[seq]": shape.number("its last entry, for our sessions"),
        },
    ),
    "indexed": shape.number("how many sessions have been indexed"),
    "pending": shape.number("how many are not indexed yet: `turnlog index` waits for them"),
}


@declare(
    Argument("words", "[WORDS]...", takes_dashed_words=True),
    Option("--all -a", "Of every folder.", name="everywhere"),
    WORKSPACE_OPTION,
    Option("--hidden", "Hidden sessions and those of subagents as well."),
    Option("--deleted", "List the trash instead."),
    Option("--limit -n N", "Only the N newest; 0 for all. [default: what fits the screen]", least=0),
    exclusive=(("--all", "--workspace"),),
)
def command(
    *,
    words: tuple[str, ...],
    workspace: str | None,
    everywhere: bool,
    hidden: bool,
    deleted: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """List the sessions of this folder, the newest first. It lists Turnlog's own and those of other agents.

    "This folder" is the repository you are in, otherwise the folder and its subfolders. WORDS filter as in `turnlog
    search`, which lists the filters; titles, names and ids match as well.

    \b
    turnlog ls                       this folder's
    turnlog ls --all                 of every folder
    turnlog ls --all agent:codex since:7d
    turnlog ls "login page" cost:>1  with the words, dearer than a dollar
    """
    query = query_of(words)
    where = None
    home = home_location()
    with open_catalog(home) as catalog:
        ask: Callable[..., list[Any]] = catalog.cards if as_json else catalog.lines
        more: dict[str, Any] = {"everything": hidden or deleted, "deleted": deleted}  # the trash hides nothing
        if workspace is not None:
            where = workspace_path(workspace)
            cards = ask(in_folder(query, where), **more)
        elif everywhere or deleted or "workspace:" in query:
            cards = ask(query, **more)
        else:
            cards, where = ask_here(lambda words, folder: ask(words, workspace=folder, **more), query)
        if not cards and not as_json:
            _tell_nothing_found(catalog, words, query, where, deleted)
            return
        ids = catalog.ids() if screen_width() is not None else []
        note_pending(catalog, consequence="of the others, turns, cost and state are not known yet")
        standing = catalog.standing() if as_json else None
    if standing is not None:
        from turnlog.cli.frame.document.itemlist import ItemPage

        render = partial(_json_cards, home=home, is_deleted=deleted)
        listed = ItemPage(cards, key=lambda card: card.name, limit=limit, time=_updated_ms, render=render)
        print_json({"sessions": listed, "indexed": standing.indexed, "pending": standing.pending})
        return
    if limit is None:
        limit = screen_rows(below=4, least=_FLOOR)
    page = cards[: limit or None]
    is_mixed = where is None or len({line.workspace for line in page}) > 1
    sys.stdout.write("\n".join([*listing(page, is_mixed=is_mixed, ids=ids), ""]))
    if sys.stdout.isatty():
        _footer(len(cards), len(page), where)


def _updated_ms(card: Card) -> int:
    return max(0, card.updated_ms or 0)


def _tell_nothing_found(catalog: Catalog, words: tuple[str, ...], query: str, where: str | None, deleted: bool) -> None:
    from turnlog.cli.frame.notes import hint, tell

    what = "deleted sessions" if deleted else "sessions"
    fits = f" for {query!r}" if query else ""
    in_folder = f" in {tilde(where)}" if where is not None else ""
    so_far = " so far" if catalog.is_partial else ""
    tell(f"no {what}{fits}{in_folder}{so_far}")
    meant = filter_hint(catalog, query)
    if meant:
        hint(meant)
        return
    if where is not None and not deleted:
        others = len(catalog.lines(query))
        if others:
            from shlex import join

            command = join(["turnlog", "ls", "--all", *words])
            hint(f"{count(others, 'session')}{so_far} in other folders: `{command}`")


def _footer(total: int, listed: int, where: str | None) -> None:
    parts: list[str] = []
    if listed < total:
        parts.append(f"… {total - listed:,} more: --limit 0")
    if where is not None:
        parts.append(f"sessions of {one_line(tilde(where))}; --all for every folder")
    if parts:
        from turnlog.cli.frame.notes import tell

        tell("  ".join(parts), colour="dim", exact=True)


def _json_cards(cards: list[Card], home: str | None, *, is_deleted: bool) -> list[dict[str, Any]]:
    """Return what the catalog knows, and for ours what only their logs know: labels, seq, where they were forked."""
    infos: dict[str, dict[str, Any]] = {}
    if any(card.is_ours for card in cards):
        import msgspec

        from turnlog.session import open_home

        with open_home(home) as opened:
            infos = {info.id: msgspec.to_builtins(info) for info in opened.sessions(deleted=is_deleted)}
    return [{**json_card(card), **(infos.get(card.id, {}) if card.is_ours else {})} for card in cards]
