"""How a session is drawn on this terminal, and what is said about it above."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from turnlog.cli.frame.terminal import has_colour, screen_width
from turnlog.view.markdown.parser import InlineSpan
from turnlog.view.number import count, used
from turnlog.view.terminal.typeset import LineStyle, wrapped
from turnlog.view.time import local_second
from turnlog.view.visible import clip, one_line, quoted

if TYPE_CHECKING:
    from turnlog.reader.opening.opener import OpenedSession


def this_screen(*, is_full: bool = False, mark: int = 0) -> LineStyle:
    """As wide as this terminal, or as `COLUMNS` says, with colours if it has them; plain where there is none."""
    return LineStyle(screen_width(), has_colour(sys.stdout), is_full, mark, local_second)


def header(opened: OpenedSession, screen: LineStyle, *, is_whole: bool = True) -> list[str]:
    """Return the title of a session, and a line of facts about it."""
    session = opened.session
    stats, usage = session.stats(), session.usage().total
    facts = [
        opened.name,
        (session.agent or "") if opened.source is None else "",
        count(stats.messages, "message"),
        count(stats.turns, "turn"),
        used(usage) if usage.all_input_tokens or usage.output_tokens else "",
        opened.spent(),
        session.workspace or "",
    ]
    title = one_line(session.title or session.preview() or "(no title)")
    about = [one_line(" · ".join(filter(None, facts)))]
    if screen.room is not None:
        title, about = clip(title, screen.room), list(wrapped([InlineSpan(about[0])], screen, screen.room))
    lines = [screen.paint(title, "bold"), *(screen.paint(line, "dim") for line in about)]
    if is_whole:
        others = len(session.branches()) - 1
        if others > 0:
            name = quoted(session.handle if opened.source is None else opened.name)
            about = f"{count(others, 'other branch', 'other branches')}: `turnlog tree {name}`"
            lines.append(screen.paint(about, "dim"))
    return lines
