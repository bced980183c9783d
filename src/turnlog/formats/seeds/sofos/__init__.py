"""sofos: one JSON document per session in `.sofos/sessions` of a workspace, rewritten whole at every save.

A message of sofos may mix results and text; here each is a message of its own, and `origin` says that they belong
together. The model's messages become entries. The display transcript, which goes its own way, is the fact
`sofos.display`; counters and times as they were in the file are in `sofos.file`. Both say how things stood when the
file was last read: what was said and spent since is added to them on writing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from turnlog.formats import Format, Resuming, Source, Writing
from turnlog.formats._shared.finding import homes_under, inside, is_plain_file
from turnlog.formats._shared.json import document, salvage
from turnlog.formats._shared.value import fields
from turnlog.formats.seeds.sofos.index import place, session_files, workspace_of
from turnlog.formats.seeds.sofos.reading import read
from turnlog.formats.seeds.sofos.shape import AGENT
from turnlog.formats.seeds.sofos.writing import write

_HEAD = 64 << 10


def find(path: str) -> Iterator[Source]:
    """The sessions in a file, in the folder of sessions, or in workspaces at most three folders down."""
    if os.path.isfile(path):
        if os.path.basename(path) != "index.json" and (_is_session(path) or _is_at_home(path)):
            yield Source(AGENT, path)
        return
    for folder in homes_under(path, ".sofos", "sessions"):
        for inner in (os.path.join(folder, name) for name in session_files(folder)):
            if is_plain_file(inner) and (_is_at_home(inner) or _is_session(inner)):
                yield Source(AGENT, inner)


def _is_at_home(path: str) -> bool:
    """Whether it lies where sofos keeps sessions, under a name it gives: a session, however damaged."""
    return workspace_of(path) is not None and os.path.basename(path).startswith("session_")


def _is_session(path: str) -> bool:
    """By its first keys: others keep sessions in JSON, too."""
    try:
        data, more = document(path, limit=_HEAD)
    except OSError:
        return False
    if b"messages" not in data:
        return False
    value, _ = salvage(data)
    head = fields(value)
    if "api_messages" in head:
        return True
    # The very first versions; a3s and claw have other keys before `messages`, or beside it.
    is_first = list(head)[:2] == ["id", "messages"]
    return is_first and ("system_prompt" in head or (bool(more) and len(head) == 2))


FORMAT = Format(
    "sofos 0.1 to 0.4.3",
    inside(".sofos/sessions"),
    find,
    read,
    # sofos itself does not number them.
    write=Writing(render=write, place=place, versions={1: "sofos 0.2.8 or newer", 2: "sofos 0.4.3 or newer"}),
    # It asks which; the newest comes first.
    resume=Resuming(command=lambda id, path, workspace: ["sofos", "--resume"]),
)
