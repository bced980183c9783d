"""A session, `/s/NAME`: the outline beside the conversation, of which only what is near the screen is in the page."""

from __future__ import annotations

from bisect import bisect_left
from pathlib import PurePath
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnlog.catalog.ask import detail
from turnlog.errors import NotFound
from turnlog.reader.markable import MarkableSession
from turnlog.thread.reader import history_of
from turnlog.view.number import count, dollars, money, tokens
from turnlog.view.visible import quoted
from turnlog.web.drawn import articles
from turnlog.web.frame import address_of, button, esc, facts, link, page, tabs
from turnlog.web.pages.compare import compare_address
from turnlog.web.pages.sessions import dot
from turnlog.web.viewer import Viewer, name_in, viewer_of

if TYPE_CHECKING:
    from turnlog.catalog import Card
    from turnlog.reader.conversation import ConversationPieces
    from turnlog.reader.desk import LookedAt
    from turnlog.thread.outline import OutlineItem

WINDOW = 40
"""How many pieces are in a page at first."""
_BEFORE = 10
_NEAR = 60
"""How many lines of the outline are shown on either side of the current one."""


def show(request: Request) -> Response:
    """The page."""
    viewer, name = viewer_of(request), name_in(request)
    query = request.query_params.get("q", "")
    is_redacted = request.query_params.get("redact") == "1"
    looked = viewer.open(name)
    with looked.mutex:
        talk = talk_in(looked, request)
        at = request.query_params.get("at", "")
        mark = looked.find(at) if at else 0
        if mark and talk is looked.pieces and not talk.has(mark):
            talk = _branch_with(looked, mark)
        first = _first(request, talk, mark)
        card, title = looked.card, looked.title
        if is_redacted:
            title = looked.redactor().text(title)
        drawn = articles(
            looked, first, first + WINDOW, query=query, is_redacted=is_redacted, can_fork=can_write(viewer, card),
            is_full=request.query_params.get("full") == "1", mark=mark, pieces=talk,
        )  # fmt: skip
        nav = outline_around(viewer, looked, talk, first, is_redacted=is_redacted)
        version, total = looked.version, len(talk)
        body = (
            f"{_head(viewer, looked, title, is_redacted=is_redacted)}{tabs(card.name, '', is_ours=card.is_ours)}"
            f'<div class="columns">{nav}<div class="reading">{_problem(card)}'
            f"{_step(request, talk, first, later=False)}"
            f'<div data-testid="conversation" role="feed" aria-busy="false" aria-label="Conversation" '
            f'data-name="{esc(card.name)}" data-first="{first}" data-end="{min(total, first + WINDOW)}" '
            f'data-total="{total}" data-version="{version}" data-branch="{_branch_of(looked, talk)}" '
            f'data-at="{mark}" data-query="{esc(query)}" data-redact="{int(is_redacted)}">\n{drawn}</div>'
            f"{_nothing_said(total)}{_step(request, talk, first, later=True)}{_foot(card)}</div></div>"
        )
    return page(request, f"{title} · turnlog", body, query=query, kind="session")


def _branch_of(looked: LookedAt, talk: ConversationPieces) -> str:
    return "" if talk is looked.pieces else str(talk.head)


def talk_in(looked: LookedAt, request: Request) -> ConversationPieces:
    """The way to the head, or to that of the branch that is asked for."""
    word = request.query_params.get("branch", "")
    if not word:
        return looked.pieces
    if not word.isdecimal() or len(word) > 18 or looked.pieces.outline.find(int(word)) is None:
        raise NotFound(f"no branch {word!r:.80} in session {looked.card.name}", hint="its tree shows those there are")
    return looked.branch(int(word))


def _branch_with(looked: LookedAt, seq: int) -> ConversationPieces:
    """The newest way on which an entry lies that was left."""
    outline = looked.pieces.outline
    parents = set(outline.parents)
    for index in range(len(outline) - 1, -1, -1):
        end = outline.seqs[index]
        if outline.parents[index] < 0 or end in parents or end < seq or outline.kinds[index] == "head":
            continue
        found = looked.branch(end)
        if found.has(seq):
            return found
    return looked.pieces


def _first(request: Request, talk: ConversationPieces, mark: int) -> int:
    word = request.query_params.get("from", "")
    last = max(0, len(talk) - WINDOW)
    if word.isdecimal() and len(word) < 10:
        return min(int(word), last)
    return max(0, min(talk.position(mark) - _BEFORE, last)) if mark else last


def can_write(viewer: Viewer, card: Card) -> bool:
    """Whether it can be changed from here."""
    return card.is_ours and not viewer.is_read_only


# ── above ─────────────────────────────────────────────────────────────────────────────────────────


def _head(viewer: Viewer, looked: LookedAt, title: str, *, is_redacted: bool) -> str:
    edit = ""
    if not viewer.is_read_only:
        edit = button("rename", "title", testid="title-edit") + (
            f'<input data-testid="title-input" aria-label="Title" maxlength="500" value="{esc(title)}" hidden>'
        )
    told = facts(_facts(viewer, looked)) + ("" if is_redacted else _notes(viewer, looked.card))
    return (
        f'<div class="head"><h1>{esc(title)}</h1>{edit}</div>{told}{_actions(viewer, looked, is_redacted=is_redacted)}'
    )


def _notes(viewer: Viewer, card: Card) -> str:
    """What was noted on another agent's session; in one of ours it stands where it was said."""
    notes = [] if card.is_ours else MarkableSession(viewer.home, None, card).notes
    return "".join(f'<p data-testid="note">{esc(note.text)}</p>' for note in notes)


def _facts(viewer: Viewer, looked: LookedAt) -> list[str]:
    card = looked.card
    total = [sum(pair) for pair in zip(card.own, card.subagents, strict=True)]
    read, written = sum(total[:4]), total[4]
    peak = viewer.catalog.ask(detail.fullest, card) if card.messages < 5_000 else _peak(looked)
    compactions = looked.pieces.outline.kinds.count("compaction")
    return [
        f"{dot(card.state)} {esc(card.state)}" if card.state in ("running", "waiting") else "",
        esc(card.agent or ""),
        esc(card.model or ""),
        f'<span title="{esc(card.workspace)}">{esc(PurePath(card.workspace).name)}</span>' if card.workspace else "",
        count(card.turns, "turn"),
        f"{tokens(read)} tokens in, {tokens(written)} out" if read or written else "",
        dollars(card.own.cost_micros + card.subagents.cost_micros, is_partial=bool(card.unpriced))
        if card.own.cost_micros or card.subagents.cost_micros
        else "",
        f"context at most {tokens(peak)}" if peak else "",
        count(compactions, "compaction") if compactions else "",
        *(esc(f"#{tag}") for tag in card.tags),
        f"{esc(card.name)}",
    ]


def _peak(looked: LookedAt) -> int:
    return 0 if looked.session is None else history_of(looked.session).state.peak


def _actions(viewer: Viewer, looked: LookedAt, *, is_redacted: bool) -> str:
    card = looked.card
    command = f"turnlog resume {quoted(card.name)} --exec"
    exports = "".join(
        f"<li>{link(address_of(card.name, 'export', to=form), text)}</li>"
        for form, text in (("html", "HTML"), ("markdown", "Markdown"), ("json", "JSON"), ("jsonl", "JSON lines"))
    )
    more = [link(address_of(card.name, redact="" if is_redacted else 1),
                 "Show as it is" if is_redacted else "Show without secrets")]  # fmt: skip
    if can_write(viewer, card):
        more += [button("Fork at its end", "fork", at=looked.pieces.head)] if looked.pieces.head else []
        more.append(button("Delete, to the trash", "delete"))
    copy = button("Copy resume command", "copy", command=command, testid="copy-resume")
    return (
        f'<div class="actions">{copy}<noscript><code>{esc(command)}</code></noscript>'
        f'<details class="needs-script"><summary>Go on in</summary><ul data-from="agents"></ul></details>'
        f"<details><summary>Export</summary><ul>{exports}</ul></details>"
        f"{link(compare_address(card.name), 'Compare')}"
        f"<details><summary>More</summary><ul>{''.join(f'<li>{one}</li>' for one in more)}</ul></details></div>"
    )


def _problem(card: Card) -> str:
    told = [
        card.problem,
        f"{count(card.damage, 'place')} in it cannot be read: see `turnlog doctor`" if card.damage else "",
    ]
    return "".join(f'<p class="note" role="alert">{esc(one)}</p>' for one in told if one)


def _nothing_said(total: int) -> str:
    return "" if total else '<p data-testid="empty">Nothing was said in it yet.</p>'


def _foot(card: Card) -> str:
    state = "live" if card.state in ("running", "waiting") else "ended"
    return (
        f'<p class="foot"><span data-testid="live" data-state="{state}" role="status"></span> '
        '<button type="button" data-testid="new" data-action="end" hidden></button></p>'
    )


# ── beside ────────────────────────────────────────────────────────────────────────────────────────


def _step(request: Request, talk: ConversationPieces, first: int, *, later: bool) -> str:
    """The way to the pieces before these, or after: for who has no script, and while one loads."""
    begin = first + WINDOW if later else max(0, first - WINDOW)
    if (later and begin >= len(talk)) or (not later and not first):
        return f'<p class="step" data-step="{"later" if later else "earlier"}" hidden></p>'
    kept = {key: value for key, value in request.query_params.items() if key in ("q", "redact", "branch")}
    number = len(talk) - begin if later else first
    text = f"Later: {number:,} more" if later else f"Earlier: {number:,} more"
    place = address_of(name_in(request), **{**kept, "from": begin})
    return f'<p class="step" data-step="{"later" if later else "earlier"}">{link(place, text)}</p>'


def outline_around(viewer: Viewer, looked: LookedAt, talk: ConversationPieces, first: int, *, is_redacted: bool) -> str:
    """Prompts and what else tells, those near a piece."""
    marks = talk.landmarks()
    if not marks:
        return '<nav class="outline" aria-label="Outline"></nav>'
    low, high = _near(marks, first)
    shown = marks[low:high]
    costs = _costs(viewer, looked, marks, low, high)
    redactor = looked.redactor() if is_redacted else None
    name = looked.card.name
    lines: list[str] = []
    if low:
        lines.append(f'<li class="rest">{link(address_of(name, at=marks[0][1].seq), f"{low:,} before")}</li>')
    for _, item in shown:
        label = _label(item)
        label = label if redactor is None else redactor.text(label)
        cost = costs.get(item.seq, 0)
        facts = [looked.changed.get(item.turn, "") if item.is_prompt else "", money(cost) if cost else ""]
        told = "".join(f"<small>{fact}</small>" for fact in facts if fact)
        lines.append(
            f'<li class="{_kind(item)}"><a href="{esc(address_of(name, at=item.seq))}" data-seq="{item.seq}">'
            f"{esc(label)}</a>{told}</li>"
        )
    if high < len(marks):
        rest = f"{len(marks) - high:,} after"
        lines.append(f'<li class="rest">{link(address_of(name, at=marks[high][1].seq), rest)}</li>')
    more = ' data-more="1"' if unknown_turns(looked, talk, first) else ""
    return f'<nav class="outline" aria-label="Outline"{more}><ol>{"".join(lines)}</ol></nav>'


def _near(marks: list[tuple[int, OutlineItem]], first: int) -> tuple[int, int]:
    here = bisect_left(marks, first, key=lambda mark: mark[0])
    return max(0, here - _NEAR), min(len(marks), here + _NEAR)


def unknown_turns(looked: LookedAt, talk: ConversationPieces, first: int) -> set[str]:
    """The turns in the outline there of which nobody asked yet what they changed."""
    if looked.session is None:
        return set()
    marks = talk.landmarks()
    low, high = _near(marks, first)
    turns = {item.turn for _, item in marks[low:high] if item.is_prompt and item.turn}
    return turns - looked.changed.keys()


def _kind(item: OutlineItem) -> str:
    if item.is_prompt:
        return "prompt"
    return "error" if item.is_error else "event"


def _label(item: OutlineItem) -> str:
    if item.is_prompt:
        return item.label or "(a picture)"
    if item.is_error:
        return f"failed: {item.tool or item.kind}"
    what = {"compaction": "compacted", "child": "subagent", "head": item.label}.get(item.kind, item.kind)
    return f"{what} {item.label}".strip() if item.kind != "head" else what


def _costs(
    viewer: Viewer, looked: LookedAt, marks: list[tuple[int, OutlineItem]], low: int, high: int
) -> dict[int, int]:
    """What each prompt of these cost: all that was spent until the next one."""
    prompts = [item.seq for _, item in marks[low:] if item.is_prompt][: high - low + 1]
    if not prompts:
        return {}
    last = prompts[-1] if high < len(marks) else None
    sums: dict[int, int] = {}
    for seq, cost in viewer.catalog.ask(detail.spent_by_entry, looked.card, first=prompts[0], last=last):
        index = bisect_left(prompts, seq + 1) - 1
        if index >= 0:
            sums[prompts[index]] = sums.get(prompts[index], 0) + cost
    return sums


ROUTES = [Route("/s/{name}", show)]
