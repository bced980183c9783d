"""A format of another package: `notebook.txt` in a workspace, one line for each thing that was said."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from turnlog import Message, Text
from turnlog.formats import Format, Places, Problem, Reading, Record, SessionHeader, Source, Watching

_NAME, _FILE = "notebook", "notebook.txt"
_ROLES = {"user": "user", "notebook": "assistant"}


def homes(places: Places) -> list[str]:
    return [places.workspace] if places.workspace else []


def find(path: str) -> Iterator[Source]:
    if os.path.isfile(path):
        if os.path.basename(path) == _FILE:
            yield Source(_NAME, path)
        return
    for folder, folders, files in os.walk(path):
        folders.sort()
        if _FILE in files:
            yield Source(_NAME, os.path.join(folder, _FILE))


def read(source: Source) -> Reading:
    lines = Path(source.path).read_text(encoding="utf-8", errors="replace").split("\n")
    problems: list[Problem] = []

    def steps() -> Iterator[Record]:
        for number, line in enumerate(lines):
            who, _, said = line.partition(": ")
            if who in _ROLES:
                yield Record(entry=Message(role=_ROLES[who], blocks=[Text(text=said)]), key=str(number))
            elif line:
                problems.append(Problem(f"line {number + 1} says not who", offset=0))

    folder = os.path.dirname(os.path.abspath(source.path))
    header = SessionHeader(id=os.path.basename(folder), identity=folder, workspace=folder)
    return Reading(header=header, steps=steps(), problems=problems)


FORMAT = Format("notebooks of a test", homes, find, read, watch=Watching(by_file=True))
