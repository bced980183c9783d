"""`turnlog search`."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from turnlog.cli.draw.listing import json_card
from turnlog.cli.draw.text import ago, clip, coloured, moment, one_line, plain, safe, screen_width, width
from turnlog.cli.frame.output import print_json
from turnlog.cli.frame.quick import Option, QuickCommand
from turnlog.cli.pick.catalog import catalog, query_of, tell_pending
from turnlog.errors import Invalid
from turnlog.reader.folder import tilde, within
from turnlog.reader.shortname import short_names
from turnlog.view.number import dollars

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog, Hit

LIMIT = 20
_WHO = {"assistant": "agent", "user": "you"}
_INDENT = "  "
_ODD = re.compile(r"[^ -~]")
FIELDS = {
    "query": "what was asked",
    "hits": "`session` as in `ls`, `entry` (empty where the session is called so), `seq`, `role` (also `title`), "
    "`tool`, `at`, `snippet`, `marks` (from and to in it), `resume` (the command), `cursor` (for --before)",
    "before": "for the next page: `--before`; null at the end",
    "is_cut": "whether it was too much to look through, and only what is newer than `before` was",
    "indexed": "how many sessions were searched",
    "pending": "how many are not indexed yet: `turnlog index` waits for them",
}


def work(
    *,
    words: tuple[str, ...],
    here: bool,
    workspace: str | None,
    limit: int | None,
    before: int | None,
    as_json: bool,
    home: str | None,
) -> None:
    """See `HELP`."""
    query = query_of(words)
    if not query.strip():
        raise Invalid("nothing to look for", hint="`turnlog search flaky test`; `turnlog search --help` has more")
    asked_for = query
    if here or workspace is not None:
        from turnlog.machine.folder import workspace_path
        from turnlog.reader.folder import project

        query = within(query, project() if workspace is None else workspace_path(workspace))
    limit = LIMIT if limit is None else limit
    with catalog(home) as asked:
        hits = asked.search(query, limit=limit, before=before)
        is_partial = tell_pending(asked, so="others are not searched yet")
        if as_json:
            indexed, pending, *_ = asked.standing()
            print_json({
                "query": query, "hits": [_for_programs(hit) for hit in hits], "before": hits.next,
                "is_cut": hits.is_cut, "indexed": indexed, "pending": pending,
            })  # fmt: skip
            return
        if not hits and not hits.is_cut:
            _nothing(asked, asked_for, is_narrow=query != asked_for or before is not None, is_partial=is_partial)
            return
        ids = asked.ids() if screen_width() is not None else []
    if screen_width() is None:
        _flat(hits)
    else:
        _grouped(hits, ids)
    if hits.is_cut:
        told = "that is a lot to look through, and only the newest of it was: another word or since: makes it less"
        print(f"hint: {told}", file=sys.stderr)
    if hits.next is not None:
        print(_next(words, here, workspace, limit, hits.next), file=sys.stderr)


def _for_programs(hit: Hit) -> dict[str, Any]:
    row = hit._asdict()
    row["session"] = json_card(row.pop("card"))
    row["resume"], row["marks"] = list(hit.resume), [list(mark) for mark in hit.marks]
    return row


def _nothing(asked: Catalog, query: str, *, is_narrow: bool, is_partial: bool) -> None:
    print(one_line(f"nothing found for {query}{' so far' if is_partial else ''}"), file=sys.stderr)
    if is_partial:
        return
    hints: list[str] = []
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
    from shlex import join

    more = ["--here"] if here else []
    more += ["--workspace", workspace] if workspace is not None else []
    more += ["--limit", str(limit)] if limit != LIMIT else []
    more += ["--before", str(cursor)]
    is_plain = not any(word.startswith("-") for word in words)
    all_words = [*words, *more] if is_plain else [*more, "--", *words]
    return one_line(f"… older ones: {join(['turnlog', 'search', *all_words])}")


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


def _grouped(hits: list[Hit], ids: list[str]) -> None:
    """The sessions, the newest hit first, and in each its hits, how to read the first of them, and how to go on."""
    groups: dict[tuple[str, str, str], list[Hit]] = {}
    for hit in hits:
        groups.setdefault((hit.card.name, hit.card.path, hit.card.key), []).append(hit)
    room = screen_width() or 80
    out = sys.stdout
    for name, found in zip(short_names([hits[0].card for hits in groups.values()], ids), groups.values(), strict=True):
        for line in _head(found[0].card, name, room):
            print(line)
        who = min(12, max(len(_who(hit)) for hit in found))
        for hit in found:
            lead = f"{_INDENT}{moment(hit.at)[5:16]:11}  {clip(_who(hit), who):{who}}  "
            snippet, marks = _cut(hit, room - len(lead))
            print(coloured(lead, "dim", out) + marked(snippet, marks, lambda text: coloured(text, "match", out)))
        for command in (_reading(found[0], name, room), _command(found[0], name)):
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
    first = all_marks[0][0] if all_marks else 0
    start = max(0, min(first - room // 3, len(text) - room)) if len(text) > room else 0
    end = start + room
    cut = text[start:end]
    marks = [(max(a, start) - start, min(b, end) - start) for a, b in all_marks if a < end and b > start]
    if start:
        cut = "…" + cut[1:]
        marks = [(max(a, 1), b) for a, b in marks if b > 1]
    if end < len(text):
        cut = cut[:-1] + "…"
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


HELP = """Find what was said and done, in every session of every agent: the newest first.

    Looks into prompts, answers, thinking, what tools were called with, what they answered, and names of files; and into
    titles, names and ids of sessions. Every word has to be there.

    \b
    turnlog search flaky test              both words, in one message
    turnlog search '"exact phrase"'        these words, one after the other
    turnlog search 'migrat* -draft'        words that begin so, and not that one
    turnlog search 'self._cache.get('      code, as it stands; '*ession_la*' also inside a word
    turnlog search timeout agent:codex since:7d role:tool
    \b
    Filters, which `turnlog ls` and `turnlog usage` take as well:
      agent:codex          workspace:api        role:user (assistant, tool, …)
      tool:bash            file:src/app.py      model:sonnet
      since:7d until:2h    also today, yesterday, 2026-11-01
      cost:>1.50           title:"login page"   tag:urgent      session:k3f9
      is:running           also waiting, idle, stopped, crashed
      is:fork              also subagent, imported, archived, hidden, damaged
    """

QUICK = QuickCommand(
    "search",
    work,
    (
        Option("here", ("--here",), "Only in sessions of this folder."),
        Option("workspace", ("--workspace", "-w"), "Only in sessions of that folder and those below it.", "PATH"),
        Option("limit", ("--limit", "-n"), f"At most N places. [default: {LIMIT}]", "N", 1),
        Option("before", ("--before",), "The next page: what is older than this.", "CURSOR", 0),
    ),
    words="WORDS...",
    help=HELP,
)
