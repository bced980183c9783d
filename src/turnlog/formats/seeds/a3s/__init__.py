"""a3s-code: one document per session, rewritten at every save; since 3.0 in a tree with a write-ahead log.

The flat layout names files so that several ids share one. We write the name that a3s looks for, but never over a file
that holds another session, forced or not. A key of a provider is read past and kept nowhere.
"""

from __future__ import annotations

from turnlog.formats import Format, Resuming, Writing
from turnlog.formats.seeds.a3s.layout import find, homes, place
from turnlog.formats.seeds.a3s.reading import read
from turnlog.formats.seeds.a3s.writing import write

_ID = r"[^-\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,199}"
FORMAT = Format(
    "a3s-code: session files of 1.x and 2.x, and the tree of 3.x to 9.0",
    homes,
    find,
    read,
    write=Writing(render=write, place=place, versions={1: "every a3s-code"}),
    resume=Resuming(command=lambda id, path, workspace: ["a3s", "code", "resume", id], ids=_ID),
)
