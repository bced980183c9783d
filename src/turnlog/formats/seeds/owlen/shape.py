"""What reading and writing a checkpoint of owlen share: its times, its keys, how it looks, and its files as ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from turnlog.formats._shared.value import EPOCH, fields, listed
from turnlog.formats._shared.view import short_id
from turnlog.log.entry import Checkpoint, Root
from turnlog.log.payload import digest
from turnlog.workspace.tree import FILE, FOLDER, UNKNOWN, Tree, TreeNode, encode_tree, path_text

AGENT = "owlen"
COUNTS = ("total_messages", "total_tool_calls", "estimated_tokens")
_SECONDS = {"secs_since_epoch": "nanos_since_epoch", "secs": "nanos"}

Time = list[int]
"""Seconds and nanoseconds; a time of ours has only milliseconds."""


def time_of(raw: Any) -> Time | None:
    """A time or duration as Rust writes it: an object, or a list of the same two numbers."""
    pair = listed(raw)
    if not pair:
        parts = fields(raw)
        name = next((name for name in _SECONDS if list(parts) == [name, _SECONDS[name]]), None)
        pair = list(parts.values()) if name else []
    if len(pair) != 2 or not all(type(number) is int and 0 <= number < 1 << 62 for number in pair):
        return None
    more, nanos = divmod(pair[1], 1_000_000_000)
    return [pair[0] + more, nanos]


def system_time(time: Time) -> dict[str, int]:
    """A point in time as Rust writes it."""
    return {"secs_since_epoch": time[0], "nanos_since_epoch": time[1]}


def duration(time: Time) -> dict[str, int]:
    """A length of time as Rust writes it."""
    return {"secs": time[0], "nanos": time[1]}


def moment(time: Time) -> datetime | None:
    """A point in time, as exactly as ours go."""
    try:
        return EPOCH + timedelta(seconds=time[0], microseconds=time[1] // 1000)
    except OverflowError:
        return None


def rust_time(at: datetime) -> Time:
    """A point in time for Rust, which knows none before 1970."""
    micros = max(0, (at - EPOCH) // timedelta(microseconds=1))
    return [micros // 1_000_000, micros % 1_000_000 * 1000]


def session_id(start: Time) -> str:
    """owlen gives sessions no id; when one began tells it from others."""
    return f"{start[0]}-{start[1]:09d}"


class Lists(Struct):
    """What was said by whom, and which tools were called: how owlen keeps a conversation."""

    prompts: list[str] = []
    responses: list[str] = []
    calls: list[dict[str, Any]] = []


def document(checkpoint: dict[str, Any], lists: Lists) -> dict[str, Any]:
    """A checkpoint as owlen writes it. `checkpoint` is the data of the note that stands for it."""
    stats = fields(checkpoint.get("stats"))
    return {
        "id": checkpoint.get("id"),
        "timestamp": system_time(_pair(checkpoint.get("timestamp"))),
        "stats": {
            "start_time": system_time(_pair(stats.get("start_time"))),
            "total_messages": stats.get("total_messages"),
            "total_tool_calls": stats.get("total_tool_calls"),
            "total_duration": duration(_pair(stats.get("total_duration"))),
            "estimated_tokens": stats.get("estimated_tokens"),
        },
        "user_prompts": lists.prompts,
        "assistant_responses": lists.responses,
        "tool_calls": lists.calls,
        "file_diffs": [
            {**fields(diff), "timestamp": system_time(_pair(fields(diff).get("timestamp")))}
            for diff in listed(checkpoint.get("diffs"))
        ],
    }


def _pair(value: Any) -> Time:
    return time_of(value) or [0, 0]


Texts = Mapping[str, str]
"""What each file says, by its absolute path."""
_WORKSPACE = "workspace"
_EMPTY = "owlen does not say whether it was empty, could not be read, or was not there"


def texts_of(raw: Any, side: str) -> dict[str, str]:
    """The files that a checkpoint holds, as they were before or after it; what is no plain path is left out."""
    texts: dict[str, str] = {}
    for item in listed(raw):
        diff = fields(item)
        path, text = diff.get("path"), diff.get(side)
        if isinstance(path, str) and isinstance(text, str) and _is_plain(path):
            texts[path] = text
    return texts


def _is_plain(path: str) -> bool:
    is_whole = path.startswith("/") and not path.startswith("//") and len(path) > 1 and "\0" not in path
    return is_whole and os.path.normpath(path) == path


def is_inside(path: str, workspace: str | None) -> bool:
    """Whether a file is in the workspace."""
    return workspace is not None and path.startswith(workspace.rstrip("/") + "/")


def checkpoint_of(
    files: Texts, workspace: str | None, at: datetime | None, **more: Any
) -> tuple[Checkpoint, list[bytes]]:
    """The files as a checkpoint that covers nothing else, and the blobs that it needs."""
    blobs: list[bytes] = []
    folders: dict[str, dict[str, str]] = {workspace: {}} if workspace is not None else {}
    for path, text in files.items():
        root = workspace if workspace is not None and is_inside(path, workspace) else os.path.dirname(path)
        folders.setdefault(root, {})[os.path.relpath(path, root)] = text
    roots: list[Root] = []
    for folder, inner in sorted(folders.items()):
        name = _WORKSPACE if folder == workspace else folder
        tree = _kept(folder, {tuple(path.split("/")): text for path, text in inner.items()}, blobs)
        roots.append(Root(name, path_text(os.fsencode(folder)), tree, is_partial=True))
    return Checkpoint(roots=roots, at=at, origin={"agent": AGENT}, **more), blobs


def _kept(folder: str, files: dict[tuple[str, ...], str], blobs: list[bytes]) -> str:
    """A folder of these files, and its digest."""
    tree: Tree = {}
    for name in dict.fromkeys(path[0] for path in files):
        path = os.path.join(folder, name)
        if (name,) in files:
            tree[os.fsencode(name)] = _node(path, files[name,], blobs)
        else:
            below = {inner[1:]: text for inner, text in files.items() if inner[0] == name}
            tree[os.fsencode(name)] = TreeNode(FOLDER, _mode(path, 0o755), _kept(path, below, blobs))
    return _blob(encode_tree(tree), blobs)


def _node(path: str, text: str, blobs: list[bytes]) -> TreeNode:
    if not text:
        return TreeNode(UNKNOWN, reason=_EMPTY)
    data = text.encode("utf-8", "surrogatepass")
    return TreeNode(FILE, _mode(path, 0o644), _blob(data, blobs), len(data))


def _mode(path: str, usual: int) -> int:
    """The permissions that it has now: owlen does not know them, and a file is not another for them."""
    try:
        return stat.S_IMODE(os.lstat(path).st_mode)
    except OSError:
        return usual


def _blob(data: bytes, blobs: list[bytes]) -> str:
    blobs.append(data)
    return digest(data)


def name_of(*parts: str) -> str:
    """A name that is always the same for these."""
    return short_id(*parts, length=24)


def first_seen(documents: Iterable[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """What each file said before it was first changed, and in which checkpoint that was."""
    first: dict[str, tuple[int, str]] = {}
    for number, raw in enumerate(documents):
        for path, text in texts_of(raw.get("file_diffs"), "before").items():
            first.setdefault(path, (number, text))
    return first
