"""Files of other agents that tests put together, and what comes of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import turnlog
from turnlog import Compaction, Message, Text, ToolCall, ToolResult
from turnlog.exchange.exporting.writing import writing_of
from turnlog.exchange.importing.run import import_all
from turnlog.formats import Rendered, Source, format_of
from turnlog.session.interior import interior


def placed(agent: str, written: Rendered, folder: str) -> str:
    """Where a session lies that was written for an agent, in a folder of its."""
    return writing_of(format_of(agent), agent).place(written, folder)


def lines(path: Path, records: Iterable[Any]) -> Path:
    """One JSON line per record; bytes are written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    made = [
        one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in records
    ]
    path.write_bytes(b"".join(made))
    return path


def bring(agent: str, path: Path, home: Any = None) -> list[tuple[Any, Any]]:
    """Every session at a path, imported: what is told of it, and the session."""
    home = home or turnlog.open("memory:")
    found = list(import_all(interior(home).creator, list(format_of(agent).find(str(path)))))
    return [(item, home.resume(item.id)) for item in found]


def steps(agent: str, path: Path) -> tuple[Any, list[Any]]:
    reading = format_of(agent).read(Source(agent, str(path)))
    return reading, list(reading.steps)


def talk(messages: Iterable[Any]) -> list[str]:
    """Who said what, in short: `user: hi`, `call: name`, `result: text`, `error: text`."""
    found: list[str] = []
    for message in messages:
        if isinstance(message, Compaction):
            found.append("--- compaction")
        for block in message.blocks if isinstance(message, Message) else ():
            if isinstance(block, Text):
                found.append(f"{message.role}: {block.text}")
            elif isinstance(block, ToolCall):
                found.append(f"call: {block.name}")
            elif isinstance(block, ToolResult):
                told = (
                    block.content
                    if isinstance(block.content, str)
                    else "|".join(getattr(b, "text", "?") for b in block.content)
                )
                found.append(f"{'error' if block.is_error else 'result'}: {told}")
    return found


def what(problems: Iterable[Any]) -> str:
    return " / ".join(problem.what for problem in problems)


def grows_alike(agent: str, path: Path, records: list[Any]) -> None:
    """Fed record by record, a file becomes the session that it is at once."""
    whole = bring(agent, lines(path, records))[0][1]
    expected = (talk(whole.context()), whole.usage().own, whole.title)
    home = turnlog.open("memory:")
    for number in range(1, len(records) + 1):
        lines(path, records[:number])
        if list(format_of(agent).find(str(path))):
            for _, session in bring(agent, path, home):
                session.close()
    [(item, grown)] = bring(agent, path, home)[:1]
    assert item.added == 0
    assert (talk(grown.context()), grown.usage().own, grown.title) == expected
