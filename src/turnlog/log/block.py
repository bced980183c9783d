"""Blocks: what a message is made of. Pure values.

A payload that is too big for a line lies in a blob: `blob` is the digest of the whole, and the field itself
holds a short readable stand-in until the session puts the whole back. `raw` is the digest of original bytes
that are not Unicode; there the stand-in is all that text can say.
"""

# Without `from __future__ import annotations`, as in `entry`: msgspec reads types sooner than texts of them.
from collections.abc import Iterable, Sequence
from typing import Any, cast, get_args

import msgspec
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
    """A model's reasoning. `data` is opaque and only means something to `provider`.

    Where the provider made the conversation smaller itself, `data["compaction"]` is what it made of it, and `text` its
    summary if that can be read.
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
    """A block of a kind this version does not know: its JSON text, kept to the letter."""

    kind: str
    json: str


WRAPPED = "~input"
"""The field that holds a tool's input where a provider takes objects only."""
AnyBlock = Text | Thinking | ToolCall | ToolResult | Image | File | UnknownBlock
BLOCKS: dict[str, type[Block]] = {
    str(cls.__struct_config__.tag): cls for cls in get_args(AnyBlock) if cls is not UnknownBlock
}


def calls_in(blocks: Iterable[AnyBlock]) -> list[ToolCall]:
    """The calls that the caller has to answer, not the provider."""
    return [block for block in blocks if isinstance(block, ToolCall) and block.by != "provider"]


def answered_by(call: str, waiting: Sequence[tuple[int, str]]) -> int | None:
    """Which of the waiting calls (message, id), oldest first, a result for `call` answers.

    It is in the newest message with that id, because providers use ids again after an interrupted turn. If several
    calls of that message share the id, it is the first of them.
    """
    answered = None
    for index in range(len(waiting) - 1, -1, -1):
        if waiting[index][1] == call:
            if answered is not None and waiting[index][0] != waiting[answered][0]:
                break
            answered = index
    return answered


# ── what is made of them, as JSON ──────────────────────────────────────────────────────────────────


def _number(value: object) -> int:
    """A number that knows more about itself, such as an estimate of tokens, is a number."""
    if isinstance(value, int):
        return int(value)
    raise TypeError(f"a {type(value).__name__} in it")


encode = msgspec.json.Encoder(enc_hook=_number).encode
_FIELDS: dict[type, tuple[tuple[str, Any], ...]] = {}


def _fields(cls: type[Struct]) -> tuple[tuple[str, Any], ...]:
    defaults = _FIELDS.get(cls)
    if defaults is None:
        infos = [f for f in msgspec.structs.fields(cls) if f.name not in ("unknown", "unverified")]
        empty: dict[Any, Any] = {list: [], dict: {}}
        defaults = tuple((f.name, empty.get(f.default_factory, f.default)) for f in infos)
        _FIELDS[cls] = defaults
    return defaults


def flat(value: Any) -> Any:
    """A typed value as plain JSON, as a log would hold it."""
    if isinstance(value, UnknownBlock):
        return Raw(value.json.encode())
    if isinstance(value, list):
        return [flat(item) for item in cast("list[Any]", value)]
    if not isinstance(value, Struct):
        return value
    tag = value.__struct_config__.tag
    plain: dict[str, Any] = {} if tag is None else {"type": tag}
    for name, default in _fields(type(value)):
        item = getattr(value, name)
        if item != default or type(item) is not type(default):
            plain[name] = flat(item) if isinstance(item, (Struct, list)) else item
    plain.update(getattr(value, "unknown", {}))
    return plain


def json_text(value: Struct) -> str:
    """A typed value as the text of JSON. What is no Unicode in it is escaped, as JSON can say it."""
    plain = flat(value)
    try:
        return encode(plain).decode()
    except UnicodeEncodeError:
        import json  # text of a tool that was not Unicode: rare, and slow to load

        return json.dumps(_unwrapped(plain), separators=(",", ":"))


def _unwrapped(value: Any) -> Any:
    """What Python's own encoder takes."""
    if isinstance(value, dict):
        return {key: _unwrapped(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, (list, tuple)):
        return [_unwrapped(item) for item in cast("list[Any]", value)]
    return value if isinstance(value, str) else msgspec.json.decode(encode(value))
