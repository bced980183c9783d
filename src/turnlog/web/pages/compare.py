"""Two sessions or branches side by side, `/compare?a=NAME&b=NAME`: what both begin with once, then turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.routing import Route

from turnlog.catalog.waiter import while_wanted
from turnlog.errors import Invalid
from turnlog.session.comparison import Comparable, ComparedSide, ComparedTurn, Comparison, comparable, compare
from turnlog.session.interior import interior
from turnlog.view import comparison as words
from turnlog.web.frame import address_of, esc, facts, link, page, table
from turnlog.web.viewer import Viewer, viewer_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from turnlog.log.entry import AnyEntry
    from turnlog.reader.desk import LookedAt

_TURNS = 200
_CHOICES = 50


def show(request: Request) -> Response:
    """The page; without the second one, what there is to choose from."""
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
        for looked in sorted(sides, key=lambda one: one.card.name):  # in one order, or two would wait for each other
            stack.enter_context(looked.mutex)
        found = compare(*(_comparable(viewer, one, branch) for one, branch in zip(sides, branches, strict=True)))
    body = (
        f"<h1>Compare</h1>{_heads(found)}<h2>{esc(_capital(words.common_in_words(found)))}</h2>{_common(found)}"
        f"{_sums(found)}{_turns(found)}"
    )
    return page(request, f"Compare {words.name(found.a)} with {words.name(found.b)} · turnlog", body, kind="compare")


def compare_address(a: str, b: str = "", **branches: int) -> str:
    """The address of this page."""
    return f"/compare?{urlencode({'a': a, **({'b': b} if b else {}), **branches})}"


def _branch(word: str) -> int | None:
    if word and (not word.isdecimal() or len(word) > 18):
        raise Invalid(f"a branch is the number of its last entry, not {word!r:.40}", hint="see the tree of the session")
    return int(word) if word else None


def _comparable(viewer: Viewer, looked: LookedAt, branch: int | None) -> Comparable:
    card = looked.card
    if looked.session is not None:
        found = comparable(looked.session, interior(viewer.home).store, branch=branch, name=card.name)
        return found._replace(title=looked.title, forward=_wanted(found.forward))
    assert looked.foreign is not None
    # It is read where it lies: what its subagents spent is not known there, nor what its turns changed.
    head = looked.foreign.head if branch is None else branch
    return Comparable(card.name, looked.title, card.agent, head, _wanted(looked.foreign.forward))


def _wanted(forward: Callable[[int], Iterable[AnyEntry]]) -> Callable[[int], Iterable[AnyEntry]]:
    """Both logs are read whole, as long as somebody waits for it."""
    return lambda after: while_wanted(forward(after))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _heads(found: Comparison) -> str:
    lines = "".join(
        f"<li><b>{letter}</b> {link(address_of(side.session), words.name(side))}"
        f"<small>{esc(' · '.join(filter(None, (side.agent, side.session))))}</small></li>"
        for letter, side in (("A", found.a), ("B", found.b))
    )
    return f'<ul class="tree">{lines}</ul>'


def _common(found: Comparison) -> str:
    common = found.common
    if not common.messages:
        return ""
    prompts = "".join(f"<li>{esc(prompt or '(a picture)')}</li>" for prompt in common.prompts[-_TURNS:])
    end = link(address_of(found.a.session, at=common.last_a), "Go to where they part")
    return f'<ol class="common" data-testid="common">{prompts}</ol><p>{end}</p>'


def _sums(found: Comparison) -> str:
    if not found.a.turns and not found.b.turns:
        return ""
    rows = [tuple(esc(cell) for cell in row) for row in words.sums(found)]
    made = f"<h2>After that</h2>{table(('What', 'A', 'B'), rows, caption='What each took', right=(1, 2))}"
    paths = words.paths(found)
    if paths:
        cells = [(f"<code>{esc(row.what)}</code>", esc(row.a), esc(row.b)) for row in paths]
        made += table(("File", "A", "B"), cells, caption="What each did to files")
    return made


def _turns(found: Comparison) -> str:
    made: list[str] = []
    for number, (one, other) in enumerate(words.pairs(found), 1):
        if number > _TURNS:
            made.append(f'<p class="note">Only the first {_TURNS} turns are shown here.</p>')
            break
        cells = _turn("A", found.a, one) + _turn("B", found.b, other)
        made.append(f'<section><h2>Turn {number}</h2><div class="pair">{cells}</div></section>')
    return "".join(made)


def _turn(letter: str, side: ComparedSide, turn: ComparedTurn | None) -> str:
    if turn is None:
        return "<div></div>"
    place = address_of(side.session, at=turn.first)
    told = facts(esc(item) for item in words.facts(turn))
    answer = f"<p>{esc(turn.answer)}</p>" if turn.answer else '<p class="aside">No answer.</p>'
    prompt = link(place, turn.prompt or "(a picture)")
    return f'<div data-testid="turn"><p><b>{letter}</b> {prompt}</p>{answer}{told}</div>'


def _choose(request: Request, viewer: Viewer, name: str) -> Response:
    """With which? Those that were forked from it, or it from them, come first, then those of its folder."""
    card = viewer.card(name)
    others = [one for one in viewer.catalog.cards(everything=True) if one.name != card.name]
    kin = {card.id, card.fork, card.parent} - {None}

    def distance(number: int) -> tuple[bool, bool]:
        one = others[number]
        return not kin & {one.id, one.fork, one.parent}, one.workspace != card.workspace

    nearest = [others[number] for number in sorted(range(len(others)), key=distance)[:_CHOICES]]
    lines = "".join(
        f"<li>{link(compare_address(card.name, one.name), one.title or one.preview or '(no title)')}"
        f"<small>{esc(' · '.join(filter(None, (one.agent, one.name))))}</small></li>"
        for one in nearest
    )
    title = card.title or card.preview or "(no title)"
    told = f'<ul class="tree">{lines}</ul>' if lines else '<p data-testid="empty">There is no other session.</p>'
    return page(request, f"Compare {title} · turnlog", f"<h1>Compare {esc(title)} with …</h1>{told}")


ROUTES = [Route("/compare", show)]
