"""What turns did to files, `/s/NAME/changes`: turn by turn, whatever did it, and with a way back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.routing import Route

from turnlog.errors import Invalid, NotFound
from turnlog.reader.part import numbered
from turnlog.reader.place import checkpoint_at, place_of
from turnlog.reader.takeback import TurnRow, turns_in
from turnlog.view.html.row import HtmlRows
from turnlog.view.number import count
from turnlog.web.address import address_of
from turnlog.web.element import esc, link
from turnlog.web.frame import page, tabs
from turnlog.web.viewer import name_in, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.log.entry import Checkpoint
    from turnlog.session.readonly import ReadOnlySession
    from turnlog.workspace.diff import Difference

_LONGEST = 60_000
"""The maximum number of characters shown of one file's diff."""
_TURNS = 200


class AskedComparison(NamedTuple):
    """What an address wants to see: a turn, or what is between two checkpoints."""

    words: str
    """When the changes were made: `in turn 3`."""
    turn: int = 0
    """The number of the turn; 0 if it is not about one."""
    begin: str = ""
    end: str = ""
    """The places between which files are compared; empty for the beginning, and for now."""


def show(request: Request) -> Response:
    """The page about changes of files."""
    viewer = viewer_of(request)
    viewed = viewer.open(name_in(request))
    with viewed.mutex:
        card, is_ours = viewed.card, viewed.session is not None
        head = f"<h1>{esc(viewed.title)}</h1>{tabs(card.name, 'changes', is_ours=card.is_ours)}"
        title = f"Changes · {viewed.title} · turnlog"
        turns, checkpoints = (turns_in(viewed), viewed.checkpoints()) if is_ours else ([], [])
    if not is_ours:
        return page(
            request, title, head + _empty(f"{card.agent or 'It'} keeps no checkpoints.", "from the next turn on")
        )
    if not checkpoints:
        reason = "No checkpoint was taken in this session, so its changes are unknown."
        return page(request, title, head + _empty(reason, "around every turn"))
    asked = comparison_asked(request.query_params, turns, card.name)
    with viewer.home.read(card.id) as session:  # one of its own: to compare files takes long, and nobody waits for it
        differences = _compared(session, asked, checkpoints)
    body = _drawn(card.name, turns, asked, differences, can_rewind=not viewer.is_read_only)
    return page(request, title, f"{head}{body}")


def _empty(reason: str, when: str) -> str:
    return f'<p data-testid="empty">{esc(reason)} <code>turnlog hooks install</code> takes them {when}.</p>'


def comparison_asked(query: Mapping[str, str], turns: list[TurnRow], name: str) -> AskedComparison:
    """What the query of an address asks for: two places, the whole session, or a turn, the last one by default."""
    word, begin, end = query.get("turn", ""), query.get("from", ""), query.get("to", "")
    number = numbered(word) or 0
    if word and number not in (turn.number for turn in turns):
        raise NotFound(f"no turn {word!r:.40} with checkpoints in session {name}")
    if begin or end:
        return AskedComparison(f"from {begin or 'the beginning'} to {end or 'now'}", begin=begin, end=end)
    if query.get("all") == "1" or not turns:
        return AskedComparison("in the whole session")
    number = number or turns[-1].number
    return AskedComparison(f"in turn {number}", number)


def _compared(session: ReadOnlySession, asked: AskedComparison, checkpoints: list[Checkpoint]) -> list[Difference]:
    if asked.turn:
        return session.diff(turn=asked.turn)
    if asked.begin or asked.end:
        return session.diff(
            _checkpoint(session, asked.begin or "0"), _checkpoint(session, asked.end) if asked.end else None
        )
    return session.diff(checkpoints[0], checkpoints[-1])


def _drawn(
    name: str, turns: list[TurnRow], asked: AskedComparison, differences: list[Difference], *, can_rewind: bool
) -> str:
    nav = f'<nav class="outline" aria-label="Turns"><ol>{_turns(name, turns, asked.turn)}</ol></nav>'
    return (
        f'<div class="columns">{nav}<div>{_small_nav(name, turns, asked.turn)}{_between(name, turns, asked)}'
        f"{_result(name, differences, asked, can_rewind=can_rewind)}</div></div>"
    )


def _checkpoint(session: ReadOnlySession, text: str) -> Checkpoint:
    checkpoint = checkpoint_at(session, place_of(session, text)) or next(iter(session.checkpoints()), None)
    if checkpoint is None:
        raise Invalid(f"there is no checkpoint at or before {text!r:.40}")
    return checkpoint


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
    earlier = turns[:-_TURNS][-1:]
    if earlier:
        text = f"{earlier[0].number}. and earlier"
        lines.insert(0, f'<li class="rest">{link(address_of(name, "changes", turn=earlier[0].number), text)}</li>')
    whole = link(address_of(name, "changes", all=1), "The whole session", current=not number)
    return "".join([*lines, f"<li>{whole}</li>"])


def _small_nav(name: str, turns: list[TurnRow], number: int) -> str:
    """The turns before and after, and the whole: also where there is no room for the list."""
    before = max((turn.number for turn in turns if turn.number < number), default=0)
    after = min((turn.number for turn in turns if turn.number > number), default=0) if number else 0
    items = [
        link(address_of(name, "changes", turn=before), "Turn before") if before else "",
        link(address_of(name, "changes", turn=after), "Next turn") if after else "",
        link(address_of(name, "changes", all=1), "Whole session", current=not number),
    ]
    return f'<nav class="turns-nav" aria-label="Other turns">{"".join(filter(None, items))}</nav>'


def _between(name: str, turns: list[TurnRow], asked: AskedComparison) -> str:
    """The choice of two places: a form, so that it needs no script."""
    if not turns:
        return ""
    choices = [(f"turn:{turn.number}", f"before turn {turn.number}") for turn in turns[-_TURNS:]]
    begin, end = (
        f'<label>{label} <select name="{label}">{_options(options, chosen)}</select></label>'
        for label, options, chosen in (("from", choices, asked.begin), ("to", [*choices[1:], ("", "now")], asked.end))
    )
    address = esc(address_of(name, "changes"))
    return f'<form class="inline" method="get" action="{address}">{begin} {end} <button>Show</button></form>'


def _options(options: list[tuple[str, str]], chosen: str) -> str:
    return "".join(
        f'<option value="{value}"{" selected" if value == chosen else ""}>{text}</option>' for value, text in options
    )


def _result(name: str, differences: list[Difference], asked: AskedComparison, *, can_rewind: bool) -> str:
    back = ""
    if asked.turn and can_rewind:
        address = address_of(name, "rewind", to=f"turn:{asked.turn}")
        back = f"<p>{link(address, f'Take back turn {asked.turn} and what came after …')}</p>"
    if not differences:
        return f"<h2>Nothing changed {esc(asked.words)}.</h2>{back}"
    plus, minus = (sum(item.counts[index] for item in differences) for index in (0, 1))
    heading = f"{count(len(differences), 'file')} {esc(asked.words)}: {_counts_html(plus, minus)}"
    rows = "".join(_row(item) for item in differences)
    return f'<h2>{heading}</h2>{back}<ul class="changes">{rows}</ul>'


def _counts_html(plus: int, minus: int) -> str:
    return f'<ins class="n">+{plus:,}</ins> <del class="n">−{minus:,}</del>'


def _row(item: Difference) -> str:
    plus, minus = item.counts
    counts = _counts_html(plus, minus) if (plus or minus) and not item.is_private else ""
    if item.is_private:
        body = "<p>It is ignored by git: what is in it is not shown.</p>"
    elif item.lines:
        lines = "\n".join(item.hunks)  # the path stands above
        cut = lines[:_LONGEST]
        more = f"<p>… {len(lines) - len(cut):,} more characters</p>" if len(cut) < len(lines) else ""
        body = HtmlRows().diff(cut.split("\n")) + more
    else:
        body = f"<p>{esc(_why_no_lines(item))}</p>"
    return (
        f'<li><details data-testid="change" data-path="{esc(item.path)}"><summary><code>{esc(item.path)}</code> '
        f"<span>{esc(item.action)}</span> {counts}</summary>{body}</details></li>\n"
    )


def _why_no_lines(item: Difference) -> str:
    sizes = [f"{node.size:,} bytes" for node in (item.before, item.after) if node is not None]
    if item.action == "mode":
        modes = [f"{node.mode:o}" for node in (item.before, item.after) if node is not None]
        return f"Only its mode changed: {' → '.join(modes)}"
    return f"No lines to show: it is no text, or too large. {' → '.join(sizes)}"


ROUTES = [Route("/s/{name}/changes", show)]
