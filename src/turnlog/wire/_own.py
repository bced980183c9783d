"""What of a block only one provider may see again, and what a block is in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from turnlog.interop.value import fields
from turnlog.log.block import WRAPPED, Block, UnknownBlock
from turnlog.log.context.nativecompaction import compacted
from turnlog.log.entry import Message


def tagged(provider: str, values: Mapping[str, Any], account: str | None) -> dict[str, Any] | None:
    """The `meta` of a block that holds what only this provider can read; None for nothing."""
    kept = {key: value for key, value in values.items() if value not in (None, [], {})}
    if not kept:
        return None
    return {provider: kept if account is None else {**kept, "account": account}}


def is_same_account(theirs: Any, ours: str | None) -> bool:
    """Whether what one account may read belongs to the other; where either is not known, it does."""
    return theirs is None or ours is None or theirs == ours


def own(value: Block | Message, provider: str, account: str | None) -> dict[str, Any] | None:
    """What this provider tagged a block or message with; None if nothing, or if it belongs to another account."""
    meta = fields(value.meta).get(provider)
    if not isinstance(meta, dict):
        return None
    values = cast("dict[str, Any]", meta)
    return values if is_same_account(values.get("account"), account) else None


def kind_of(block: Block) -> str:
    """What a block is, in words."""
    if compacted(block):
        return "compaction"
    return str(block.__struct_config__.tag).replace("_", " ") if not isinstance(block, UnknownBlock) else block.kind


def unwrapped(value: Any) -> Any:
    """A call's input as the log has it."""
    data = fields(value)
    return data[WRAPPED] if len(data) == 1 and WRAPPED in data else value
