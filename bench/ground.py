"""The homes that the measures work on: built once, quickly, and on the disk before anybody measures."""

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import turnlog
from bench import work
from turnlog import Message, Role, Session, Text, ToolCall, ToolResult, Usage

LONG = 100_000
USAGE = Usage(input_tokens=300, output_tokens=80, cache_read_tokens=900)
_BATCH = 10
_SINGLE = 400


class Ground:
    """A scratch folder and what lies in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._drafts = drafts()

    @cached_property
    def long(self) -> Path:
        """A home with sessions of 100,000 (`long`), 100 (`short`) and 10 entries (`ten`)."""
        folder = self.folder / "long"
        with self.building(folder) as home:
            for name, entries in (("long", LONG), ("short", 100), ("ten", 10)):
                self.fill(home.create(id=name, workspace=folder, title=name), entries - 2)  # session, writer
        return folder

    def fill(self, session: Session, count: int, *, single: int = _SINGLE) -> None:
        """Append `count` messages: the newest `single` of them one by one, those before in batches."""
        single = min(count, single)
        left = count - single
        while left > 0:
            size = min(_BATCH, left)
            session.append(*itertools.islice(self._drafts, size))
            left -= size
        for draft in itertools.islice(self._drafts, single):
            session.append(draft)

    @contextmanager
    def building(self, folder: Path) -> Iterator[turnlog.Home]:
        """A home that does not sync each append; all is synced when the building is done."""
        with turnlog.open(folder, durability="flush") as home:
            yield home
        os.sync()


def drafts() -> Iterator[Message]:
    """The messages of the shared workload, over and over."""
    made: list[tuple[Role, list[Any]]] = [(role, [*map(_block, parts)]) for role, parts in work.messages(1_000)]
    for role, blocks in itertools.cycle(made):
        if role == "assistant":
            yield Message(role=role, blocks=blocks, model="m", usage=USAGE)
        else:
            yield Message(role=role, blocks=blocks)


def _block(part: work.Part) -> Any:
    if part["type"] == "text":
        return Text(part["text"])
    if part["type"] == "tool_call":
        return ToolCall(id=part["id"], name=part["name"], input=part["input"])
    return ToolResult(call=part["id"], content=part["output"], name=part["name"])


def log_of(home: Path, session: str) -> Path:
    """The file of a session whose id is a plain word."""
    return home / "sessions" / f"{session}.jsonl"


def prose(size: int) -> str:
    """Text of that many bytes in JSON, escapes included."""
    parts = [part for _, parts in work.messages(60) for part in parts]
    text = "".join(string for part in parts for string in work.strings([part]))
    end = size
    while len(json.dumps(text[:end])) - 2 > size:
        end -= 1
    return text[:end]
