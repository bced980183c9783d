"""Rows as one HTML file: no script, nothing fetched, readable on a phone, in the light and in the dark.

Browsers look for words in what is folded as well, and unfold it; for those that do not, all of it can be unfolded.
How a row is drawn, and made safe, is in `row`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from turnlog.view.html.row import HtmlRows
from turnlog.view.html.style import STYLE
from turnlog.view.row import Row

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_text = HtmlRows().text


def head(title: str, facts: Iterable[str], notice: str, prompts: Sequence[tuple[int, str]] = ()) -> str:
    """The beginning of the file, up to the rows. Prompts, each with the number of its entry, are linked."""
    fact_items = "".join(f"<li>{_text(fact)}</li>" for fact in facts if fact)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{_text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><h1>{_text(title)}</h1><ul class="facts">{fact_items}</ul>'
        f'<p class="notice">{_text(notice)}</p>{_UNFOLD}</header>\n{_listed(prompts)}<main>\n'
    )


_UNFOLD = '<p class="unfold"><input type="checkbox" id="unfold"> <label for="unfold">Unfold everything</label></p>'


def _listed(prompts: Sequence[tuple[int, str]]) -> str:
    items = "".join(f'<li><a href="#e{seq}">{_text(label) or "(a picture)"}</a></li>\n' for seq, label in prompts)
    return f'<nav class="prompts" aria-label="Prompts"><ol>\n{items}</ol></nav>\n' if len(prompts) > 1 else ""


FOOT = "</main>\n</body>\n</html>\n"


def parts(rows: Iterable[Row]) -> Iterator[str]:
    """The rows, a piece of HTML each. A message is an article; what happens between them stands alone."""
    return HtmlRows().parts(rows)
