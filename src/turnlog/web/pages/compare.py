"""Two sessions or branches side by side, `/compare?a=NAME&b=NAME`: what both begin with once, then turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.routing import Route

from turnlog.catalog.waiter import while_wanted
from turnlog.errors import Invalid
from turnlog.reader.part import numbered
from turnlog.session.comparison import Comparable, ComparedSide, ComparedTurn, Comparison
from turnlog.session.comparison.sidebyside import comparable, compare
from turnlog.session.interior import interior
from turnlog.view import comparison as words
from turnlog.view.number import count
from turnlog.web.address import address_of, compare_address
from turnlog.web.element import esc, facts, link, table
from turnlog.web.frame import page
from turnlog.web.viewer import Viewer, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.log.entry import AnyEntry
    from turnlog.reader.viewing.viewedsession import ViewedSession

_TURNS = 200
_CHOICES = 50


def show(request: Request) -> Response:
    """The page about two sessions; without the second one, what there is to choose from."""
    viewer = viewer_of(request)
    asked = request.query_params
    a, b = asked.get("a", ""), asked.get("b", "")
    if not a:
        raise Invalid("which sessions?", hint="/compare?a=NAME&b=NAME")
    if not b:
        return _choose(request, viewer, a)
    branches = [_branch(asked.get(f"branch_{letter}", "")) for letter in "ab"]
    sides = [viewer.open(name) for name in (a, b)]
    with ExitStack() as stack:
        for viewed in sorted(sides, key=lambda one: one.card.name):  # in one order, or two would wait for each other
            if viewed.session is None:
                stack.enter_context(viewed.mutex)
        pairs = zip(sides, branches, strict=True)
        comparison = compare(*(_comparable(viewer, stack, viewed, branch) for viewed, branch in pairs))
    body = (
        f"<h1>Compare</h1>{_heads(comparison)}<h2>{esc(_capital(words.common_in_words(comparison)))}</h2>{_common(comparison)}"
        f"{_sums(comparison)}{_turns(comparison)}"
    )
    return page(
        request,
        f"Compare {words.title_of(comparison.a)} with {words.title_of(comparison.b)} · turnlog",
        body,
        kind="compare",
    )


def _branch(word: str) -> int | None:
    head = numbered(word)
    if word and head is None:
        raise Invalid(f"a branch is the number of its last entry, not {word!r:.40}", hint="see the tree of the session")
    return head


def _comparable(viewer: Viewer, stack: ExitStack, viewed: ViewedSession, branch: int | None) -> Comparable:
    card = viewed.card
    if viewed.session is not None:
        session = stack.enter_context(
            viewer.home.read(card.id)
        )  # one of its own, so that readers of the page do not wait
        side = comparable(session, interior(viewer.home).store, branch=branch, name=card.name)
        return side._replace(title=session.title or card.heading, forward=_wanted(side.forward))
    # It is read where it lies: what its subagents spent is not known there, nor what its turns changed.
    head = viewed.source.head if branch is None else branch
    return Comparable(card.name, viewed.title, card.agent, head, _wanted(viewed.source.forward))


def _wanted(forward: Callable[[int], Iterable[AnyEntry]]) -> Callable[[int], Iterable[AnyEntry]]:
    """Both logs are read whole, as long as somebody waits for it."""
    return lambda after: while_wanted(forward(after))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _heads(comparison: Comparison) -> str:
    lines = "".join(
        f"<li><b>{letter}</b> {link(address_of(side.session), words.title_of(side))}"
        f"<small>{esc(' · '.join(filter(None, (side.agent, side.session))))}</small></li>"
        for letter, side in (("A", comparison.a), ("B", comparison.b))
    )
    return f'<ul class="tree">{lines}</ul>'


def _common(comparison: Comparison) -> str:
    common = comparison.common
    if not common.messages:
        return ""
    left_out = max(0, len(common.prompts) - _TURNS)
    note = f'<p class="note">The first {count(left_out, "prompt")} are left out here.</p>' if left_out else ""
    start = f' start="{left_out + 1}"' if left_out else ""
    prompts = "".join(f"<li>{esc(prompt or '(a picture)')}</li>" for prompt in common.prompts[left_out:])
    end = link(address_of(comparison.a.session, at=common.last_a), "Go to where they part")
    return f'{note}<ol class="common" data-testid="common"{start}>{prompts}</ol><p>{end}</p>'


def _sums(comparison: Comparison) -> str:
    if not comparison.a.turns and not comparison.b.turns:
        return ""
    rows = [tuple(esc(cell) for cell in row) for row in words.total_rows(comparison)]
    html = f"<h2>After that</h2>{table(('What', 'A', 'B'), rows, caption='What each took', right=(1, 2))}"
    paths = words.path_rows(comparison)
    if paths:
        cells = [(f"<code>{esc(row.what)}</code>", esc(row.a), esc(row.b)) for row in paths]
        html += table(("File", "A", "B"), cells, caption="What each did to files")
    return html


def _turns(comparison: Comparison) -> str:
    sections: list[str] = []
    for number, (one, other) in enumerate(words.turn_pairs(comparison), 1):
        if number > _TURNS:
            sections.append(f'<p class="note">Only the first {_TURNS} turns are shown here.</p>')
            break
        cells = _turn("A", comparison.a, one) + _turn("B", comparison.b, other)
        sections.append(f'<section><h2>Turn {number}</h2><div class="pair">{cells}</div></section>')
    return "".join(sections)


def _turn(letter: str, side: ComparedSide, turn: ComparedTurn | None) -> str:
    if turn is None:
        return "<div></div>"
    address = address_of(side.session, at=turn.first)
    facts_html = facts(esc(item) for item in words.turn_facts(turn))
    answer = f"<p>{esc(turn.answer)}</p>" if turn.answer else '<p class="aside">No answer.</p>'
    prompt = link(address, turn.prompt or "(a picture)")
    return f'<div data-testid="turn"><p><b>{letter}</b> {prompt}</p>{answer}{facts_html}</div>'


def _choose(request: Request, viewer: Viewer, name: str) -> Response:
    """With which? Those that were forked from it, or it from them, come first, then those of its folder."""
    card = viewer.desk.card(name)
    others = [one for one in viewer.catalog.cards(everything=True) if one.name != card.name]
    kin = {card.id, card.fork, card.parent} - {None}

    def distance(number: int) -> tuple[bool, bool]:
        other = others[number]
        return not kin & {other.id, other.fork, other.parent}, other.workspace != card.workspace

    nearest = [others[number] for number in sorted(range(len(others)), key=distance)[:_CHOICES]]
    lines = "".join(
        f"<li>{link(compare_address(card.name, one.name), one.heading)}"
        f"<small>{esc(' · '.join(filter(None, (one.agent, one.name))))}</small></li>"
        for one in nearest
    )
    left_out = len(others) - len(nearest)
    lines += f"<li>… and {left_out:,} more: <code>turnlog compare A B</code> compares any two</li>" if left_out else ""
    choices = f'<ul class="tree">{lines}</ul>' if lines else '<p data-testid="empty">There is no other session.</p>'
    return page(request, f"Compare {card.heading} · turnlog", f"<h1>Compare {esc(card.heading)} with …</h1>{choices}")


ROUTES = [Route("/compare", show)]
