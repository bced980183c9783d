"""Blame as an Agent Trace record, version 0.1.0: https://agent-trace.dev."""

from __future__ import annotations

import os
import uuid
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from turnlog.blame.authorship import Blame, BlamedLine
from turnlog.log.digest import sha256
from turnlog.version import __version__
from turnlog.workspace.git import worktree_of
from turnlog.workspace.tree import path_bytes, path_text

VERSION = "0.1.0"
_LONGEST_MODEL = 250
_PROVIDERS = (("claude", "anthropic"), ("gpt", "openai"), ("o1", "openai"), ("o3", "openai"), ("o4", "openai"),
              ("codex", "openai"), ("gemini", "google"), ("qwen", "alibaba"), ("grok", "xai"))  # fmt: skip
"""The beginning of a model's name, and its provider in models.dev."""


def trace_record(files: list[Blame], top: str, revision: str | None, now: datetime | None = None) -> dict[str, Any]:
    """The record of these files, with paths relative to `top`.

    `revision` is the commit that contains all of them like this.
    """
    record: dict[str, Any] = {
        "version": VERSION,
        "id": str(uuid.uuid4()),
        "timestamp": (now or datetime.now(UTC))
        .astimezone(UTC)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z"),
    }
    if revision is not None:
        record["vcs"] = {"type": "git", "revision": revision}
    record["tool"] = {"name": "turnlog", "version": __version__}
    record["files"] = [
        {"path": _path(file, top), "conversations": _conversations(file)} for file in files if file.lines
    ]
    return record


def project_of(path: str) -> str:
    """The folder that paths are relative to: the top of the repository, or else the file's own folder."""
    folder = os.path.dirname(os.fsdecode(path_bytes(path)))
    return path_text(os.fsencode(worktree_of(folder) or folder))


def _path(file: Blame, top: str) -> str:
    return path_text(os.path.relpath(path_bytes(file.path), path_bytes(top)))


def _conversations(file: Blame) -> list[dict[str, Any]]:
    """One conversation for each turn, in the order of first lines; lines without an author are `unknown`."""
    conversations: dict[Any, dict[str, Any]] = {}
    for (authors, _), block in groupby(
        enumerate(file.lines), key=lambda pair: (_authors_key(pair[1]), pair[1].line - pair[0])
    ):
        lines = [line for _, line in block]
        conversation = conversations.setdefault(authors, {**_head(lines[0]), "ranges": []})
        text = "".join(f"{line.text}\n" for line in lines).encode("utf-8", "surrogatepass")
        hashed = sha256(text).hexdigest()
        conversation["ranges"].append(
            {"start_line": lines[0].line, "end_line": lines[-1].line, "content_hash": f"sha256:{hashed}"}
        )
    return list(conversations.values())


def _authors_key(line: BlamedLine) -> tuple[Any, ...]:
    """Equal for lines of the same turns, and for lines without an author for the same reason."""
    authors = (line.author,) if line.author is not None else line.authors
    return (*((author.session, author.turn) for author in authors), line.why)


def _head(line: BlamedLine) -> dict[str, Any]:
    """The contributor of a conversation, and its URL."""
    if line.author is None:
        kind = "ai" if line.authors else "unknown"  # concurrent turns are all of agents
        return {"contributor": {"type": kind}}
    author = line.author
    contributor = {"type": "ai"}
    if author.model:
        contributor["model_id"] = _model(author.model)
    return {"url": f"turnlog:{author.session}#turn={author.turn}", "contributor": contributor}


def _model(name: str) -> str:
    """The model's name in models.dev: with the provider in front, if the name shows it."""
    provider = next((provider for start, provider in _PROVIDERS if name.startswith(start)), "")
    return (f"{provider}/{name}" if provider and "/" not in name else name)[:_LONGEST_MODEL]
