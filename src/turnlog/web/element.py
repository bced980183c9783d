"""Small pieces that pages are made of. All text goes through `esc`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from turnlog.view.html.row import HtmlRows
from turnlog.view.time import local_minute

_plain = HtmlRows().plain


@lru_cache(maxsize=20_000)
def esc(text: str) -> str:
    """Escape text for the content and the attributes of HTML. Cached, because names and titles repeat."""
    return _plain(text)


def link(address: str, text: str, *, current: bool = False, kind: str = "", testid: str = "") -> str:
    """A link whose text is made safe."""
    more = ' aria-current="page"' if current else ""
    more += f' data-testid="{testid}"' if testid else ""
    more += f' class="{kind}"' if kind else ""
    return f'<a href="{esc(address)}"{more}>{esc(text)}</a>'


def button(
    text: str, action: str, *, command: str = "", plan: str = "", at: int = 0, testid: str = "", kind: str = ""
) -> str:
    """A button for the script; hidden without it."""
    more = f' data-testid="{testid}"' if testid else ""
    more += f' data-command="{esc(command)}"' if command else ""
    more += f' data-plan="{esc(plan)}"' if plan else ""
    more += f' data-at="{at}"' if at else ""
    kinds = f"needs-script {kind}".rstrip()
    return f'<button type="button" class="{kinds}" data-action="{action}"{more}>{esc(text)}</button>'


def facts(items: Iterable[str]) -> str:
    """A line of facts, each of them HTML."""
    items_html = "".join(f"<li>{item}</li>" for item in items if item)
    return f'<ul class="facts">{items_html}</ul>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str, right: Sequence[int] = ()) -> str:
    """A table of cells that are HTML; `right` are the columns of numbers."""
    sides = [' class="right"' if number in right else "" for number in range(len(head))]
    top = "".join(f'<th scope="col"{side}>{esc(cell)}</th>' for side, cell in zip(sides, head, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for side, cell in zip(sides, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    return (
        f'<div class="table" tabindex="0" role="group" aria-label="{esc(caption)}"><table><caption>{esc(caption)}'
        f"</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _age(ms: int) -> str:
    """How long ago, in two characters or three; of a time in the future, the day."""
    seconds = time.time() - ms / 1000
    if seconds < -60:
        return moment(ms)[:10]
    for size, unit in ((60, "s"), (60, "m"), (24, "h"), (7, "d")):
        if seconds < size:
            return "now" if unit == "s" else f"{int(seconds)}{unit}"
        seconds /= size
    return f"{int(seconds)}w" if seconds < 9 else moment(ms)[:10]


@lru_cache(maxsize=5_000)
def moment(ms: int | None) -> str:
    """A time, for people here."""
    return local_minute(datetime.fromtimestamp(ms / 1000, UTC) if ms else None)


def when(ms: int | None) -> str:
    """How long ago, with the time beside it for who points at it."""
    if not ms:
        return ""
    return f'<time datetime="{_iso(ms)}" title="{moment(ms)}">{_age(ms)}</time>'


@lru_cache(maxsize=5_000)
def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")
