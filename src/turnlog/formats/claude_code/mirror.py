"""A line of a transcript as one entry, and the line again, for a caller that has to give back exactly what it got.

An entry is what a reading of the file would make of the line, with the line beside its blocks. Unlike there, an API
message of several lines is several messages, because a line that was handed over cannot be taken back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.formats.claude_code.blocks import block, parts_of, result
from turnlog.formats.claude_code.blocks import cleared as blocks_cleared
from turnlog.formats.claude_code.heading import cleared_calls as cleared_calls
from turnlog.interop.value import fields, moment, text
from turnlog.log.block import AnyBlock, Text, ToolCall, ToolResult, UnknownBlock
from turnlog.log.draft import MAX_ID
from turnlog.log.entry import AnyEntry, Compaction, Custom, Edit, Head, Message
from turnlog.log.ids import new_id
from turnlog.log.item import GetBlob, Mismatch, encoded, expand, squeeze
from turnlog.log.usage import Usage
from turnlog.wire import anthropic

LINE = "claude-sdk"
"""Under which the line is in the `meta` of its entry; None beside an entry that is a part of the line behind it."""
_MOVED = "/to"


def drafted(line: Mapping[str, Any], *, is_side: bool) -> list[AnyEntry]:
    """What a line becomes: one entry, and before it the results of tools if it has more to say than those.

    `is_side`: the whole transcript is a subagent's. `Invalid` for what is no line.
    """
    whole, at = dict(line), moment(line.get("timestamp"))
    is_said = whole.get("type") in ("user", "assistant") and isinstance(_content(whole), (str, list))
    is_other = whole.get("isSidechain") is True and not is_side  # a subagent's, which early versions kept here
    entries: list[AnyEntry]
    if is_said and not is_other and not whole.get("isApiErrorMessage"):
        entries = _said(whole)
    else:
        kind = f"claude-code.{whole.get('type') or 'line'}"
        entries = [Custom(id=_id(whole), kind=kind, meta=_beside(whole, []))]
    return entries if at is None else [replace(entry, at=at) for entry in entries]


def kept_line(entry: AnyEntry, get_blob: GetBlob | None = None, *, edited: bool = False) -> dict[str, Any] | None:
    """The line that an entry was made from; None where it was made by somebody else, or says something else by now."""
    if not is_mirrored(entry) or fields(entry.meta)[LINE] is None:
        return None
    blocks: Sequence[AnyBlock] = entry.blocks if isinstance(entry, Message) else ()
    if isinstance(entry, Compaction):
        blocks = [part for one in entry.replacement if isinstance(one, Message) for part in one.blocks]
    try:
        return fields(expand(fields(entry.meta)[LINE], blocks, get_blob, edited=edited))
    except Mismatch:
        return None


def is_mirrored(entry: AnyEntry) -> bool:
    """Whether it was made from a line."""
    return LINE in fields(entry.meta)


def is_elsewhere(entry: AnyEntry) -> bool:
    """Whether it is somebody else's and changes the conversation, so that the lines alone no longer tell it."""
    if isinstance(entry, Head):
        return not entry.id.endswith(_MOVED)
    return entry.is_node and not is_mirrored(entry)


def usage_of(line: Mapping[str, Any]) -> tuple[str, Usage] | None:
    """The API message that a line is a part of, and what that one cost as far as the line knows."""
    message = fields(line.get("message"))
    request, spent = text(message.get("id")), message.get("usage")
    if line.get("type") != "assistant" or request is None or not isinstance(spent, dict):
        return None
    return request, anthropic.draft({"usage": spent}).usage or Usage()


def cleared(message: Message, calls: Sequence[str], line: Mapping[str, Any]) -> Edit | None:
    """A message as the model sees it without the results of these calls; None if it has none of them."""
    blocks = blocks_cleared(message.blocks, calls)
    if blocks == message.blocks:
        return None
    # Sent again, it counts once.
    id = f"{_id(dict(line))}#{message.seq}"
    return Edit(id=id, entry=message.seq, blocks=blocks, at=moment(line.get("timestamp")), meta={LINE: None})


def _content(line: dict[str, Any]) -> Any:
    return fields(line.get("message")).get("content")


def _id(line: dict[str, Any]) -> str:
    uuid = line.get("uuid")
    return uuid if isinstance(uuid, str) and 0 < len(uuid) <= MAX_ID and uuid.isprintable() else new_id()


def _beside(line: dict[str, Any], blocks: list[AnyBlock]) -> dict[str, Any]:
    try:
        return {LINE: squeeze(line, blocks)}
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"a line that is not JSON: {error}", hint="a line is a dict, as the SDK reads it") from None


def _said(whole: dict[str, Any]) -> list[AnyEntry]:
    parts, id = parts_of(_content(whole)), _id(whole)
    if whole["type"] == "assistant":
        return [_answer(whole, id, parts)]
    results = [part for part in parts if part.get("type") == "tool_result"]
    blocks = _known([block(part) for part in parts if part.get("type") != "tool_result"])
    if whole.get("isCompactSummary"):
        summary = Message(role="user", blocks=blocks)
        return [Compaction(id=id, replacement=[summary], meta=_beside(whole, blocks))]
    display = False if whole.get("isMeta") or whole.get("isVisibleInTranscriptOnly") else None
    details = whole.get("toolUseResult")
    answers = _known([result(part, None if index else details) for index, part in enumerate(results)])
    if not results or blocks:
        entry: AnyEntry = Message(id=id, role="user", blocks=blocks, display=display, meta=_beside(whole, blocks))
        if not results:
            return [entry]
        return [Message(id=f"{id}#results", role="tool", blocks=answers, display=display, meta={LINE: None}), entry]
    return [Message(id=id, role="tool", blocks=answers, display=display, meta=_beside(whole, answers))]


def _answer(whole: dict[str, Any], id: str, parts: list[dict[str, Any]]) -> Message:
    message = fields(whole["message"])
    answer = anthropic.draft({**message, "content": parts, "usage": None})
    blocks = _known(answer.blocks)
    return replace(
        answer,
        id=id,
        blocks=blocks,
        request=text(message.get("id")),
        model=None if answer.model == "<synthetic>" else text(answer.model),
        stop=answer.stop if text(message.get("stop_reason")) else None,
        meta=_beside(whole, blocks),
    )


def _known(blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
    """What a log can hold of these blocks; the rest is in the line."""
    return [_plain(one) for one in blocks if not isinstance(one, UnknownBlock)]


def _plain(one: AnyBlock) -> AnyBlock:
    if isinstance(one, ToolCall) and encoded(one.input) is None:
        return replace(one, input=json.dumps(one.input))
    if isinstance(one, ToolResult):
        content = one.content if isinstance(one.content, str) else _known(one.content)
        return replace(one, content=content, details=None if encoded(one.details) is None else one.details)
    if isinstance(one, Text) and one.meta is not None and encoded(one.meta) is None:
        return replace(one, meta=None)
    return one
