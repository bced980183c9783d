"""Blocks: the parts of a message. Pure values.

A payload that is too big for a line is in a blob: `blob` is the digest of the whole block, and the field itself
holds a short readable stand-in until the session loads the blob. `raw` is the digest of original bytes
that are not Unicode; then the field holds what can be read as text.
"""

# Without `from __future__ import annotations`, as in `entry`: msgspec reads types faster than strings.
from collections.abc import Callable, Iterable, Sequence
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
    """The fields that every block may have. `meta` is the caller's; `unknown` keeps fields of later versions."""

    blob: BlobRef | None = None
    raw: BlobRef | None = None
    meta: Json = None
    unknown: dict[str, Raw] = {}


class Text(Block, tag="text", frozen=True):
    """Plain text, of a person, a model or a tool."""

    text: str


class Thinking(Block, tag="thinking", frozen=True):
    """A model's reasoning. `data` is opaque and only means something to `provider`.

    If the provider compacted the conversation itself, `data["compaction"]` is the result, and `text` its summary if
    that is readable.
    """

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
    content: "str | list[AnyBlock]" = ""
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
    """A block of a kind that this version does not know: its JSON text, kept verbatim."""

    kind: str
    json: str


WRAPPED = "~input"
"""The field that holds a tool's input where a provider takes objects only."""
AnyBlock = Text | Thinking | ToolCall | ToolResult | Image | File | UnknownBlock
BLOCKS: dict[str, type[Block]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(AnyBlock) if cls is not UnknownBlock
}


def calls_in(blocks: Iterable[AnyBlock]) -> list[ToolCall]:
    """Return the calls that the caller has to answer, not the provider."""
    return [block for block in blocks if isinstance(block, ToolCall) and block.by != "provider"]


def tool_names(blocks: Iterable[AnyBlock]) -> dict[str, str]:
    """Return the names of the called tools by the ids of their calls."""
    return {block.id: block.name for block in blocks if isinstance(block, ToolCall)}


def bytes_of(block: Image | File, get_blob: Callable[[str], bytes] | None) -> bytes | None:
    """Return the bytes of a picture or a document, from its blob if they are there; None if they are elsewhere."""
    if block.data is None and block.blob is not None and get_blob is not None:
        return get_blob(block.blob)
    return block.data


def answered_by(call: str, waiting: Sequence[tuple[int, str]]) -> int | None:
    """Return the index of the waiting call (message, id) that a result for `call` answers. They are given oldest first.

    The call is in the newest message with that id, because providers reuse ids after an interrupted turn. If several
    calls of that message share the id, it is the first of them.
    """
    answered = None
    for index in range(len(waiting) - 1, -1, -1):
        if waiting[index][1] == call:
            if answered is not None and waiting[index][0] != waiting[answered][0]:
                break
            answered = index
    return answered
