"""Blocks: what a message is made of. Pure values.

A payload that is too big for a line lies in a blob: `blob` is the digest of the whole, and the field itself
holds a short readable stand-in until the session puts the whole back. `raw` is the digest of original bytes
that are not Unicode; there the stand-in is all that text can say.
"""

from __future__ import annotations

from typing import get_args

from msgspec import Raw, Struct

from turnlog.log.field import BlobRef, Json, Number


class Block(
    Struct,
    tag_field="type",
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    repr_omit_defaults=True,
    gc=False,
):
    """What every block may carry. `meta` is the caller's; `unknown` keeps fields of later versions."""

    blob: BlobRef | None = None
    raw: BlobRef | None = None
    meta: Json = None
    unknown: dict[str, Raw] = {}


class Text(Block, tag="text", frozen=True):
    """Plain text, of a person, a model or a tool."""

    text: str


class Thinking(Block, tag="thinking", frozen=True):
    """A model's reasoning. `data` is opaque and only means something to `provider`."""

    text: str = ""
    provider: str | None = None
    data: Json = None


class ToolCall(Block, tag="tool_call", frozen=True):
    """A model asks for a tool. `by="provider"` when the provider runs it itself."""

    id: str
    name: str
    input: Json = None
    by: str | None = None


class ToolResult(Block, tag="tool_result", frozen=True):
    """The answer to a tool call: text or blocks. `details` are for people, never for a model."""

    call: str
    content: str | list[AnyBlock] = ""
    is_error: bool = False
    name: str | None = None
    duration_ms: Number | None = None
    details: Json = None
    child: str | None = None


class Image(Block, tag="image", frozen=True):
    """A picture: a blob, a URL, or a file id of `provider`. `data` is for drafts; the log keeps a blob."""

    media_type: str | None = None
    url: str | None = None
    file: str | None = None
    provider: str | None = None
    name: str | None = None
    data: bytes | None = None


class File(Block, tag="file", frozen=True):
    """A document: a blob, a URL, or a file id of `provider`. `data` is for drafts; the log keeps a blob."""

    media_type: str | None = None
    url: str | None = None
    file: str | None = None
    provider: str | None = None
    name: str | None = None
    data: bytes | None = None


class UnknownBlock(Block, tag="?", frozen=True):
    """A block of a kind this version does not know: its JSON text, kept to the letter."""

    kind: str
    json: str


AnyBlock = Text | Thinking | ToolCall | ToolResult | Image | File | UnknownBlock
BLOCKS: dict[str, type[Block]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(AnyBlock) if cls is not UnknownBlock
}
