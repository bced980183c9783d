"""A session in a list: its state, title, project and cost. What of a cost is unknown is said here for every page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from turnlog.view.number import count, dollars
from turnlog.web.address import address_of
from turnlog.web.element import esc, when

if TYPE_CHECKING:
    from turnlog.catalog import Card


def dot(state: str) -> str:
    """Whether it is running or waiting for somebody; anything else has no colour."""
    if state not in ("running", "waiting"):
        return '<span class="dot"></span>'
    return f'<span class="dot {state}" role="img" aria-label="{state}" title="{state}"></span>'


def cost_of(card: Card, micros: int) -> str:
    """A part of what a session cost; empty if nothing was spent. `$1.23+` or `?` if a model has no known price."""
    is_paid = card.is_indexed and (micros or card.unpriced)
    return dollars(micros, is_partial=bool(card.unpriced)) if is_paid else ""


def unpriced(models: Iterable[str]) -> str:
    """A note on the models whose cost is unknown; empty if there are none."""
    names = ", ".join(models)
    return f'<p class="note">Without a known price: {esc(names)}</p>' if names else ""


def session_row(card: Card, *, below: str = "", title: str = "") -> str:
    """One session of a list; `title` and `below` are HTML: the title with marks, and what was found in the session."""
    project = card.workspace.rstrip("/").rpartition("/")[2] if card.workspace else ""
    turns = count(card.turns, "turn") if card.turns else ""
    tags = "".join(f"<i>{esc(tag)}</i>" for tag in card.tags)
    name = title or esc(card.heading)
    return (
        f'<li data-testid="session" data-name="{esc(card.name)}" data-updated="{card.updated_ms or 0}">'
        f'{dot(card.state)}<a href="{esc(address_of(card.name))}">{name}</a>{tags}'
        f'<span class="agent">{esc(card.agent or "")}</span>'
        f'<span class="project" title="{esc(card.workspace or "")}">{esc(project)}</span>'
        f'<span class="turns">{turns}</span><span class="cost">{cost_of(card, card.cost_micros)}</span>'
        f'<span class="age">{when(card.updated_ms)}</span>{below}</li>\n'
    )


def marked(text: str, marks: Iterable[tuple[int, int]]) -> str:
    """A text with marks where something was found."""
    html, at = "", 0
    for start, end in marks:
        html += f"{esc(text[at:start])}<mark>{esc(text[start:end])}</mark>"
        at = end
    return html + esc(text[at:])
