"""`turnlog ls`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.listing import CARD, json_card, listing
from turnlog.cli.draw.text import coloured, one_line, screen_width
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.home import home_location
from turnlog.cli.pick.catalog import catalog, meant_filter, query_of, tell_pending
from turnlog.machine.folder import workspace_path
from turnlog.reader.folder import ask_here, tilde, within
from turnlog.view.number import count

if TYPE_CHECKING:
    from collections.abc import Callable

    from turnlog.catalog import Card, Catalog

_FLOOR = 10
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
    Argument("words", "[WORDS]...", dashes=True),
    Option("--all -a", "Of every folder.", name="everywhere"),
    Option("--workspace -w PATH", "Of that folder and those below it."),
    Option("--hidden", "Hidden sessions and those of subagents as well."),
    Option("--deleted", "List the trash instead."),
    Option("--limit -n N", "Only the N newest; 0 for all. [default: what fits the screen]", least=0),
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
    """List the sessions of this folder, the newest first: Turnlog's own and those of other agents.

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
    with catalog(home) as asked:
        ask: Callable[..., list[Any]] = asked.cards if as_json else asked.lines
        more: dict[str, Any] = {"everything": hidden, "deleted": deleted}
        if workspace is not None:
            where = workspace_path(workspace)
            cards = ask(within(query, where), **more)
        elif everywhere or deleted or "workspace:" in query:
            cards = ask(query, **more)
        else:
            cards, where = ask_here(ask, query, **more)
        if not cards and not as_json:
            _nothing(asked, words, query, where, deleted)
            return
        ids = asked.ids() if screen_width() is not None else []
        tell_pending(asked, so="of the others, turns, cost and state are not known yet")
        indexed, pending, *_ = asked.standing() if as_json else (0, 0)
    if limit is None and not as_json and sys.stdout.isatty():
        limit = max(_FLOOR, os.get_terminal_size(sys.stdout.fileno()).lines - 4)
    if as_json:
        from turnlog.cli.frame.itemlist import PrintedList

        listed = PrintedList(cards, key=lambda card: card.name, limit=limit, time=_updated_ms)
        listed.items = _for_programs(list(listed.items), home, deleted)
        print_json({"sessions": listed, "indexed": indexed, "pending": pending})
        return
    page = cards[: limit or None]
    is_mixed = where is None or len({line.workspace for line in page}) > 1
    sys.stdout.write("\n".join([*listing(page, is_mixed=is_mixed, ids=ids), ""]))
    if sys.stdout.isatty():
        _footer(len(cards), len(page), where)


def _updated_ms(card: Card) -> int:
    return 0 if card.updated_at is None else max(0, int(card.updated_at.timestamp() * 1000))


def _nothing(asked: Catalog, words: tuple[str, ...], query: str, where: str | None, deleted: bool) -> None:
    what = "deleted sessions" if deleted else "sessions"
    fits = f" for {query!r}" if query else ""
    in_folder = f" in {tilde(where)}" if where is not None else ""
    so_far = " so far" if asked.is_partial else ""
    print(one_line(f"no {what}{fits}{in_folder}{so_far}"), file=sys.stderr)
    meant = meant_filter(asked, query)
    if meant:
        print(one_line(f"hint: {meant}"), file=sys.stderr)
        return
    if where is not None and not deleted:
        others = len(asked.lines(query))
        if others:
            from shlex import join

            command = join(["turnlog", "ls", "--all", *words])
            print(one_line(f"hint: {count(others, 'session')}{so_far} in other folders: `{command}`"), file=sys.stderr)


def _footer(total: int, listed: int, where: str | None) -> None:
    parts: list[str] = []
    if listed < total:
        parts.append(f"… {total - listed:,} more: --limit 0")
    if where is not None:
        parts.append(f"sessions of {one_line(tilde(where))}; --all for every folder")
    if parts:
        print(coloured("  ".join(parts), "dim", sys.stderr), file=sys.stderr)


def _for_programs(cards: list[Card], home: str | None, deleted: bool) -> list[dict[str, Any]]:
    """What the catalog knows, and for ours what only their logs know: labels, seq, where exactly they were forked."""
    infos: dict[str, dict[str, Any]] = {}
    if any(card.is_ours for card in cards):
        import msgspec

        from turnlog.session import open_home

        with open_home(home) as opened:
            infos = {info.id: msgspec.to_builtins(info) for info in opened.sessions(deleted=deleted)}
    return [{**json_card(card), **(infos.get(card.id, {}) if card.is_ours else {})} for card in cards]
