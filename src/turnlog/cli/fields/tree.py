"""The tree of a session, with its branches, forks and subagents: as values, and in JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from turnlog.cli.frame.document import shape
from turnlog.view.branch import BranchStretch

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
TREE = {
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


class TreeBranch(Struct):
    """A stretch of the conversation, from where it begins to where it ends or splits."""

    after: int
    """The entry that it continues; 0 at the beginning."""
    first: int
    last: int
    messages: int
    at: datetime | None
    preview: str | None
    is_current: bool
    is_path: bool
    children: list[str]
    """Subagents that were started in it."""


class TreeSession(Struct):
    """A session with everything below it."""

    id: str
    handle: str
    title: str | None
    agent: str | None
    is_asked: bool
    head: int | None = None
    """None where it could not be read."""
    branches: list[TreeBranch] = field(default_factory=list)
    forks: list[TreeFork] = field(default_factory=list)
    subagents: list[TreeSession] = field(default_factory=list)


class TreeFork(Struct):
    """A fork, and where it left the session above it."""

    at: int
    name: str | None
    session: TreeSession


def branches(stretches: list[BranchStretch]) -> list[TreeBranch]:
    """Return the stretches one after the other: a conversation that split a thousand times is no deep tree."""
    waiting = [(0, stretch) for stretch in stretches]
    branches: list[TreeBranch] = []
    for after, stretch in waiting:  # grows during the iteration
        branches.append(
            TreeBranch(
                after=after,
                first=stretch.first,
                last=stretch.last,
                messages=stretch.messages,
                at=stretch.at,
                preview=stretch.preview,
                is_current=stretch.is_current,
                is_path=stretch.is_path,
                children=stretch.children,
            )
        )
        waiting += [(stretch.last, inner) for inner in stretch.continuations]
    return branches


def json_tree(tree: TreeSession) -> dict[str, Any]:
    """Return the tree with the fields of `TREE`; a fork has those of its session beside its own."""
    top: dict[str, Any] = {}
    waiting = [(tree, top)]
    for session, fields in waiting:  # grows during the iteration: there may be hundreds of forks of forks
        forks: list[dict[str, Any]] = [{"at": fork.at, "name": fork.name} for fork in session.forks]
        subagents: list[dict[str, Any]] = [{} for _ in session.subagents]
        waiting += zip((fork.session for fork in session.forks), forks, strict=True)
        waiting += zip(session.subagents, subagents, strict=True)
        fields |= {
            "id": session.id,
            "handle": session.handle,
            "title": session.title,
            "agent": session.agent,
            "is_asked": session.is_asked,
            "branches": [asdict(branch) for branch in session.branches],
            "forks": forks,
            "subagents": subagents,
            **({} if session.head is None else {"head": session.head}),
        }
    return top
