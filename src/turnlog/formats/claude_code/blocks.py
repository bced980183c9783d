"""Blocks of Claude Code that people send: text, pictures, documents. What models answer, `turnlog.wire` knows."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from turnlog.formats._records import count, fields
from turnlog.formats._tally import unknown
from turnlog.log.block import AnyBlock, File, Image, Text


def block(raw: dict[str, Any]) -> AnyBlock:
    """One block of a user's message or of a tool's result."""
    kind = raw.get("type")
    if kind == "text" and isinstance(raw.get("text"), str):
        return Text(text=raw["text"])
    if kind in ("image", "document"):
        made = _media(raw, Image if kind == "image" else File)
        if made is not None:
            return made
    return unknown("claude-code", raw)


def _media(raw: dict[str, Any], make: type[Image | File]) -> AnyBlock | None:
    source = fields(raw.get("source"))
    media_type, name = source.get("media_type"), raw.get("title")
    about: dict[str, Any] = {
        "media_type": media_type if isinstance(media_type, str) else None,
        "name": name if isinstance(name, str) else None,
    }
    if source.get("type") == "base64" and isinstance(source.get("data"), str):
        try:
            return make(data=b64decode(source["data"], validate=True), **about)
        except (binascii.Error, ValueError):
            return None
    if source.get("type") == "url" and isinstance(source.get("url"), str):
        return make(url=source["url"], **about)
    if source.get("type") == "file" and isinstance(source.get("file_id"), str):
        return make(file=source["file_id"], provider="anthropic", **about)
    return None


_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def larger(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The usage of an API message of which several records tell: while it streams, its output grows."""
    if not one:
        return other
    if sum(count(other.get(name)) for name in _USAGE) >= sum(count(one.get(name)) for name in _USAGE):
        return other or one
    return one
