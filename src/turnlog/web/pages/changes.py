"""What turns did to files, `/s/NAME/changes`: turn by turn, whatever did it, and with a way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import Route

from turnlog.errors import Invalid, NotFound
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.reader.takeback import TurnRow, turns_in
from turnlog.view.html import HtmlRows
from turnlog.view.number import count
from turnlog.web.frame import address_of, esc, link, page, tabs
from turnlog.web.viewer import name_in, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.log.entry import Checkpoint
    from turnlog.reader.desk import LookedAt
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.workspace.diff import Difference

_LONGEST = 60_000
"""The maximum number of characters shown of one file's diff."""
_TURNS = 200


def show(request: Request) -> Response:
    """The page."""
    viewer = viewer_of(request)
    looked = viewer.open(name_in(request))
    with looked.mutex:
        card, session = looked.card, looked.session
        head = f"<h1>{esc(looked.title)}</h1>{tabs(card.name, 'changes', is_ours=card.is_ours)}"
        title = f"Changes · {looked.title} · turnlog"
        if session is None:
            told = (
                f'<p data-testid="empty">{esc(card.agent or "It")} keeps no checkpoints. '
                "<code>turnlog hooks install</code> takes them from the next turn on.</p>"
            )
            return page(request, title, head + told)
        turns = turns_in(looked)
        body = _chosen(request, looked, session, turns)
    return page(request, title, f"{head}{body}")


def _chosen(request: Request, looked: LookedAt, session: ReadOnlySession, turns: list[TurnRow]) -> str:
    asked = request.query_params
    name = looked.card.name
    if not turns and not looked.checkpoints():
        return (
            '<p data-testid="empty">No checkpoint was taken in this session, so its changes are unknown. '
            "<code>turnlog hooks install</code> takes them around every turn.</p>"
        )
    word = asked.get("turn", "")
    if word and (not word.isdecimal() or len(word) > 9 or not 0 < int(word) <= len(turns)):
        raise NotFound(f"no turn {word!r:.40} in session {name}: it has {len(turns)}")
    number = int(word) if word else 0
    if asked.get("from") or asked.get("to"):
        begin, end = asked.get("from") or "0", asked.get("to") or None
        found = session.diff(_checkpoint(session, begin), _checkpoint(session, end))
        what = f"from {asked.get('from') or 'the beginning'} to {asked.get('to') or 'now'}"
    elif asked.get("all") == "1" or not turns:
        checkpoints = looked.checkpoints()
        found, what = session.diff(checkpoints[0], checkpoints[-1]), "in the whole session"
    else:
        number = number or len(turns)
        found, what = session.diff(turn=number), f"in turn {number}"
    nav = f'<nav class="outline" aria-label="Turns"><ol>{_turns(name, turns, number)}</ol></nav>'
    result = _result(looked, found, what, number, can_rewind=_can_rewind(request, looked))
    places = (asked.get("from", ""), asked.get("to", ""))
    return (
        f'<div class="columns">{nav}<div>{_small_nav(name, turns, number)}{_between(name, turns, places)}'
        f"{result}</div></div>"
    )


def _can_rewind(request: Request, looked: LookedAt) -> bool:
    return looked.card.is_ours and not viewer_of(request).is_read_only


def _checkpoint(session: ReadOnlySession, text: str | None) -> Checkpoint | None:
    if text is None:
        return None
    found = checkpoint_at(session, place_of(session, text))
    if found is None:
        found = next(iter(session.checkpoints()), None)
    if found is None:
        raise Invalid(f"there is no checkpoint at or before {text!r:.40}")
    return found


def _turns(name: str, turns: list[TurnRow], number: int) -> str:
    lines = [
        f'<li class="{"here" if turn.number == number else ""}">'
        + link(
            address_of(name, "changes", turn=turn.number),
            f"{turn.number}. {turn.label}",
            current=turn.number == number,
        )
        + "</li>"
        for turn in turns[-_TURNS:]
    ]
    whole = link(address_of(name, "changes", all=1), "The whole session", current=not number)
    return "".join([*lines, f"<li>{whole}</li>"])


def _small_nav(name: str, turns: list[TurnRow], number: int) -> str:
    """The turns before and after, and the whole: also where there is no room for the list."""
    items = [
        link(address_of(name, "changes", turn=number - 1), "Turn before") if number > 1 else "",
        link(address_of(name, "changes", turn=number + 1), "Next turn") if 0 < number < len(turns) else "",
        link(address_of(name, "changes", all=1), "Whole session", current=not number),
    ]
    return f'<nav class="turns-nav" aria-label="Other turns">{"".join(filter(None, items))}</nav>'


def _between(name: str, turns: list[TurnRow], places: tuple[str, str]) -> str:
    """From one place to another: a form, so that it needs no script."""
    if not turns:
        return ""
    shown = [(f"turn:{turn.number}", f"before turn {turn.number}") for turn in turns[-_TURNS:]]
    begin, end = (
        f'<label>{label} <select name="{label}">{_options(options, chosen)}</select></label>'
        for label, options, chosen in (("from", shown, places[0]), ("to", [*shown[1:], ("", "now")], places[1]))
    )
    place = esc(address_of(name, "changes"))
    return f'<form class="inline" method="get" action="{place}">{begin} {end} <button>Show</button></form>'


def _options(options: list[tuple[str, str]], chosen: str) -> str:
    return "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{text}</option>' for value, text in options
    )


def _result(looked: LookedAt, found: list[Difference], what: str, number: int, *, can_rewind: bool) -> str:
    back = ""
    if number and can_rewind:
        place = address_of(looked.card.name, "rewind", to=f"turn:{number}")
        back = f"<p>{link(place, f'Take back turn {number} and what came after …')}</p>"
    if not found:
        return f"<h2>Nothing changed {esc(what)}.</h2>{back}"
    plus, minus = (sum(item.counts[index] for item in found) for index in (0, 1))
    told = f"{count(len(found), 'file')} {esc(what)}: <ins class='n'>+{plus:,}</ins> <del class='n'>−{minus:,}</del>"
    rows = "".join(_row(item) for item in found)
    return f'<h2>{told}</h2>{back}<ul class="changes">{rows}</ul>'


def _row(item: Difference) -> str:
    plus, minus = item.counts
    told = f"<ins class='n'>+{plus:,}</ins> <del class='n'>−{minus:,}</del>" if plus or minus else ""
    if item.is_private:
        body = "<p>It is ignored by git: what is in it is not shown.</p>"
        told = ""
    elif item.lines:
        lines = "\n".join(item.hunks)  # the path stands above
        cut = lines[:_LONGEST]
        more = f"<p>… {len(lines) - len(cut):,} more characters</p>" if len(cut) < len(lines) else ""
        body = HtmlRows().diff(cut.split("\n")) + more
    else:
        body = f"<p>{esc(_why_no_lines(item))}</p>"
    return (
        f'<li><details data-testid="change" data-path="{esc(item.path)}"><summary><code>{esc(item.path)}</code> '
        f"<span>{esc(item.action)}</span> {told}</summary>{body}</details></li>\n"
    )


def _why_no_lines(item: Difference) -> str:
    sizes = [f"{node.size:,} bytes" for node in (item.before, item.after) if node is not None]
    if item.action == "mode":
        modes = [f"{node.mode:o}" for node in (item.before, item.after) if node is not None]
        return f"Only its mode changed: {' → '.join(modes)}"
    return f"No lines to show: it is no text, or too large. {' → '.join(sizes)}"


ROUTES = [Route("/s/{name}/changes", show)]
