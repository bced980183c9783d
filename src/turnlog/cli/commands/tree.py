"""`turnlog tree`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from turnlog.cli.draw.screen import this_screen
from turnlog.cli.draw.text import clip, count, one_line, screen_width, width
from turnlog.cli.frame import shape
from turnlog.cli.frame.answer import print_json
from turnlog.cli.frame.command import KEY_OPTION, SESSION_ARGUMENT, declare
from turnlog.cli.frame.shape import SESSION
from turnlog.cli.pick.session import session_to_read
from turnlog.errors import NotFound
from turnlog.log.ids import handle_of
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.thread.report import Info
from turnlog.view.branch import Strand, stretches

if TYPE_CHECKING:
    from turnlog.view.typeset import Screen

_DEEPEST = 40
_MOST = 500
_BRANCH = {
    "after": shape.number("the entry that it continues"),
    "first": shape.number(),
    "last": shape.number(),
    "messages": shape.number(),
    "at": shape.time(null=True),
    "preview": shape.text(null=True),
    "is_current": shape.flag(),
    "is_path": shape.flag(),
    "children": shape.texts(),
}
_TREE = {
    "id": shape.text(),
    "handle": shape.text(),
    "title": shape.text(null=True),
    "agent": shape.text(null=True),
    "is_asked": shape.flag("whether it is the one that was asked for"),
    "[head]": shape.number(),
    "branches": shape.each("stretches of the conversation", _BRANCH),
    "forks": shape.each("the same for each, and the entry it was forked `at`"),
    "subagents": shape.each("the same for each"),
}
CHANGES = shape.NOTHING
FIELDS = {
    "session": SESSION,
    "tree": shape.one("the original session, with its forks and subagents", _TREE),
}


@declare(SESSION_ARGUMENT, KEY_OPTION)
def command(session: str | None, key: str | None, as_json: bool) -> None:
    """Show how a session branched: its conversation, its forks and its subagents.

    A line is a stretch of the conversation, from the entry where it begins to the one where it ends or splits; ● marks
    the head. `turnlog show --branch N` shows the path to entry N, on any branch. A fork is shown with the session it
    was forked from.

    With --json, `branches` are these stretches, and `after` is the entry that each one continues.

    \b
    turnlog tree
    turnlog tree k3f9
    turnlog show k3f9 --branch 42
    """
    with session_to_read(session, key=key) as opened:
        rows = {row.id: row for row in opened.home.sessions()}
        parents = _parents(opened.home, rows)
        data = _session(opened.home, _top(opened.session.id, parents), rows, parents, opened.session.id, set())
    if as_json:
        print_json({"session": opened.session.id, "tree": data})
        return
    if opened.source is not None and data["is_asked"]:
        data["handle"] = opened.name  # the id that it would have here is none yet
    screen = this_screen()
    for line in _lines(data, screen):
        print(line)


def _parents(home: Home, rows: dict[str, Info]) -> dict[str, str]:
    """Which session each fork is of; not one that is only called like that by now."""
    firsts = {one.id: one.first for one in interior(home).store.listing()}
    forks = ((row.id, row.fork) for row in rows.values())
    return {id: fork.session for id, fork in forks if fork is not None and firsts.get(fork.session) == fork.base}


def _top(name: str, parents: dict[str, str]) -> str:
    """The session that it was forked from in the end."""
    seen = {name}
    while (above := parents.get(name, name)) not in seen:
        seen.add(name := above)
    return name


def _session(
    home: Home, name: str, rows: dict[str, Info], parents: dict[str, str], asked: str, seen: set[str]
) -> dict[str, Any]:
    """One session with everything below it, as JSON has it."""
    seen.add(name)
    row = rows.get(name)
    data: dict[str, Any] = {
        "id": name,
        "handle": handle_of(name),
        "title": row.title if row else None,
        "agent": row.agent if row else None,
        "is_asked": name == asked,
        "branches": [],
        "forks": [],
        "subagents": [],
    }
    if len(seen) > _MOST or row is None:
        return data
    try:
        look = home.read(name)
    except NotFound:
        return data
    with look:
        first = row.fork.seq if row.fork is not None else 0
        own = (entry for entry in look.entries(after=first))
        data["title"] = data["title"] or look.preview() or None
        data["branches"] = _plain(stretches(own, look.head))
        data["head"] = look.head
    started = {child for item in data["branches"] for child in item["children"]}
    for other in rows.values():
        if other.id in seen:
            continue
        if other.fork is not None and parents.get(other.id) == name:
            inner = _session(home, other.id, rows, parents, asked, seen)
            data["forks"].append({"at": other.fork.seq, "name": other.fork.name, **inner})
        elif other.parent == name or other.id in started:
            data["subagents"].append(_session(home, other.id, rows, parents, asked, seen))
    return data


def _plain(strands: list[Strand]) -> list[dict[str, Any]]:
    """The stretches one after the other: a conversation that split a thousand times is no deep JSON."""
    waiting = [(0, stretch) for stretch in strands]
    rows: list[dict[str, Any]] = []
    for after, stretch in waiting:  # grows while it is gone through
        rows.append({
            "after": after, "first": stretch.first, "last": stretch.last, "messages": stretch.messages,
            "at": stretch.at, "preview": stretch.preview, "is_current": stretch.is_current,
            "is_path": stretch.is_path, "children": stretch.children,
        })  # fmt: skip
        waiting += [(stretch.last, inner) for inner in stretch.parts]
    return rows


# ── drawing ───────────────────────────────────────────────────────────────────────────────────────

_Piece = tuple[str, str]
"""Text that is safe, and its colour."""


def _lines(data: dict[str, Any], screen: Screen) -> Iterator[str]:
    yield _fitted("", _name(data), "", screen)
    waiting: list[tuple[str, list[_Item], str]] = [("", _inside(data), "")]
    while waiting:  # by hand, not by recursion: a conversation may split a thousand times
        lead, inner, line = waiting.pop()
        if line:
            yield line
        below: list[tuple[str, list[_Item], str]] = []
        for index, item in enumerate(inner):
            is_last = index == len(inner) - 1
            pieces, tail = _told(item.kind, item.data)
            deeper = lead + ("   " if is_last else "│  ")
            drawn = _fitted(lead + ("└─ " if is_last else "├─ "), pieces, tail, screen)
            below.append((deeper if len(deeper) < 3 * _DEEPEST else lead, item.inner(), drawn))
        waiting += reversed(below)


class _Item(NamedTuple):
    kind: str
    data: dict[str, Any]
    owner: dict[str, Any]
    """The session that a branch is of."""

    def inner(self) -> list[_Item]:
        """What hangs on it."""
        return _inside(self.data) if self.kind != "branch" else _branches(self.owner, self.data["last"])


def _branches(session: dict[str, Any], after: int) -> list[_Item]:
    return [_Item("branch", branch, session) for branch in session["branches"] if branch["after"] == after]


def _inside(session: dict[str, Any]) -> list[_Item]:
    items = _branches(session, 0)
    items += [_Item("fork", fork, fork) for fork in session["forks"]]
    return items + [_Item("subagent", other, other) for other in session["subagents"]]


def _told(kind: str, item: dict[str, Any]) -> tuple[list[_Piece], str]:
    if kind == "branch":
        first, last = item["first"], item["last"]
        span = str(first) if first == last else f"{first}–{last}"
        mark = ("● ", "green") if item["is_current"] else ("", "")
        text = one_line(item["preview"] or "(nothing said)")
        tail = count(item["messages"], "message") + (" ← now" if item["is_current"] else "")
        return [mark, (f"{span}  ", "cyan"), (text, "" if item["is_path"] else "dim")], tail
    if kind == "fork":
        name = f" “{one_line(item['name'])}”" if item["name"] else ""
        return [("fork", "yellow"), (f" at {item['at']}{name}  ", ""), *_name(item)], ""
    return [("subagent  ", "purple"), *_name(item)], ""


def _name(item: dict[str, Any]) -> list[_Piece]:
    facts = one_line(" · ".join(filter(None, (item["handle"], item["agent"]))))
    return [(f"{facts}  ", "dim"), (one_line(item["title"] or "(no title)"), "bold" if item["is_asked"] else "")]


def _fitted(lead: str, pieces: list[_Piece], tail: str, screen: Screen) -> str:
    """The line in the width there is: the text gives way, what stands at its end does not."""
    room = screen.room if screen.room is not None else screen_width()
    left = None if room is None else max(16, room - width(lead) - (width(tail) + 2 if tail else 0))
    line = lead
    for text, colour in pieces:
        fitted = text if left is None else clip(text, left)
        left = None if left is None else left - width(fitted)
        line += screen.paint(fitted, colour)
        if left is not None and left <= 0:
            break
    return line + (screen.paint(f"  {tail}", "dim") if tail else "")
