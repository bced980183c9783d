"""What reading and writing a checkpoint of owlen share: its keys, its fields, and its files as our checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from turnlog.formats import Record
from turnlog.formats._shared.compactedview import short_id
from turnlog.interop.folder import is_plain_path
from turnlog.interop.rusttime import time_record
from turnlog.interop.value import as_list, fields, items
from turnlog.log.entry import Checkpoint
from turnlog.log.part import Root
from turnlog.workspace.texttree import text_tree
from turnlog.workspace.tree import path_text

AGENT = "owlen"
STATS = ("start_time", "total_messages", "total_tool_calls", "total_duration", "estimated_tokens")


class Lists(Struct):
    """What was said by whom, and which tools were called: how owlen keeps a conversation."""

    prompts: list[str] = []
    responses: list[str] = []
    calls: list[dict[str, Any]] = []


def document(checkpoint: dict[str, Any], lists: Lists) -> dict[str, Any]:
    """A checkpoint as owlen writes it. `checkpoint` is the data of the note that stands for it."""
    kept, diffs = fields(checkpoint.get("stats")), map(fields, as_list(checkpoint.get("diffs")))
    spelt = {
        "start_time": time_record(kept.get("start_time")),
        "total_duration": time_record(kept.get("total_duration"), is_duration=True),
    }
    return {
        "id": checkpoint.get("id"),
        "timestamp": time_record(checkpoint.get("timestamp")),
        "stats": {name: spelt.get(name, kept.get(name)) for name in STATS},
        "user_prompts": lists.prompts,
        "assistant_responses": lists.responses,
        "tool_calls": lists.calls,
        "file_diffs": [{**diff, "timestamp": time_record(diff.get("timestamp"))} for diff in diffs],
    }


Texts = Mapping[str, str]
"""What each file says, by its absolute path."""
_WORKSPACE = "workspace"
_EMPTY = "owlen does not say whether it was empty, could not be read, or was not there"


def texts_of(raw: Any, side: str) -> dict[str, str]:
    """The files that a checkpoint holds, as they were before or after it; what is no plain path is left out."""
    pairs = ((diff.get("path"), diff.get(side)) for diff in items(raw))
    return {
        path: text for path, text in pairs if isinstance(path, str) and isinstance(text, str) and is_plain_path(path)
    }


def is_inside(path: str, workspace: str | None) -> bool:
    """Whether a file is in the workspace."""
    return workspace is not None and path.startswith(workspace.rstrip("/") + "/")


def checkpoint_of(files: Texts, workspace: str | None, key: str, **more: Any) -> Record:
    """The files that are known, as a checkpoint of ours that covers nothing else."""
    blobs: list[bytes] = []
    folders: dict[str, dict[str, str]] = {workspace: {}} if workspace is not None else {}
    for path, text in files.items():
        root = workspace if workspace is not None and is_inside(path, workspace) else os.path.dirname(path)
        folders.setdefault(root, {})[os.path.relpath(path, root)] = text
    roots: list[Root] = []
    for folder, inner in sorted(folders.items()):
        name = _WORKSPACE if folder == workspace else folder
        tree = text_tree(folder, {tuple(path.split("/")): text for path, text in inner.items()}, blobs, _EMPTY)
        roots.append(Root(name, path_text(os.fsencode(folder)), tree, is_partial=True))
    return Record(entry=Checkpoint(roots=roots, origin={"agent": AGENT}, **more), key=key, blobs=blobs)


name_of = partial(short_id, length=24)
"""A name that is always the same for these."""
