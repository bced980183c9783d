"""Metadata of blocks that only one provider may see again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from turnlog.interop.value import fields
from turnlog.log.block import Block
from turnlog.log.entry import Message


def tagged(provider: str, values: Mapping[str, Any], account: str | None) -> dict[str, Any] | None:
    """The `meta` of a block that holds what only this provider can read; None for nothing."""
    kept = {key: value for key, value in values.items() if value not in (None, [], {})}
    if not kept:
        return None
    return {provider: kept if account is None else {**kept, "account": account}}


def is_same_account(account: Any, ours: str | None) -> bool:
    """Whether data of one account may be sent with the other; also where either is not known."""
    return account is None or ours is None or account == ours


def own(value: Block | Message, provider: str, account: str | None) -> dict[str, Any] | None:
    """The metadata that this provider gave a block or message; None for none, or for that of another account."""
    meta = fields(value.meta).get(provider)
    if not isinstance(meta, dict):
        return None
    values = cast("dict[str, Any]", meta)
    return values if is_same_account(values.get("account"), account) else None
