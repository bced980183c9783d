"""Tool calls and their results: which belong together, what is missing, and where a conversation may be cut."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from turnlog.log.block import AnyBlock, ToolCall, ToolResult, answered_by, calls_in
from turnlog.log.entry import Message
from turnlog.log.startup import NamedTuple

INTERRUPTED = "[no result: the tool call was interrupted]"


def _calls(message: Message) -> list[ToolCall]:
    return calls_in(message.blocks) if message.role == "assistant" else []


def unanswered(messages: Iterable[Message]) -> list[tuple[Message, ToolCall]]:
    """Return the tool calls without a result, oldest first, each with the message that it is in."""
    listed = list(messages)
    waiting: list[tuple[int, ToolCall]] = []
    for position, message in enumerate(listed):
        if message.role == "tool":
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    _answer(waiting, block.call)
        else:
            waiting.extend((position, call) for call in _calls(message))
    return [(listed[position], call) for position, call in waiting]


def pending(messages: Iterable[Message]) -> list[ToolCall]:
    """Return the tool calls without a result, oldest first."""
    return [call for _, call in unanswered(messages)]


def _answer(waiting: list[tuple[int, ToolCall]], call: str) -> tuple[int, ToolCall] | None:
    """Remove and return the waiting call that a result for `call` answers, with the position of its message."""
    index = answered_by(call, [(position, one.id) for position, one in waiting])
    return None if index is None else waiting.pop(index)


class _Matches(NamedTuple):
    """Which result answers which call."""

    results: dict[int, tuple[Message, ToolResult]]
    """The result of each call, and the message that it is in, by the `id()` of the call."""
    other_blocks: dict[int, Message]
    """What messages with results hold besides, as messages of a person, by the position of the message."""


def repair(messages: list[Message]) -> list[Message]:
    """Return messages in which exactly one result follows every tool call; messages without blocks are left out."""
    if _is_sound(messages):
        return [message for message in messages if message.blocks]
    return _with_results(messages, _match_results(messages))


def _match_results(messages: list[Message]) -> _Matches:
    """Find the result of each call, wherever it stands."""
    matches = _Matches({}, {})
    waiting: list[tuple[int, ToolCall]] = []
    for index, message in enumerate(messages):
        if message.role != "tool":
            waiting.extend((index, call) for call in _calls(message))
            continue
        others: list[AnyBlock] = []
        for block in message.blocks:
            if not isinstance(block, ToolResult):
                others.append(block)
            elif (answered := _answer(waiting, block.call)) is not None:
                matches.results[id(answered[1])] = (message, block)
        if others:
            matches.other_blocks[index] = replace(message, role="user", blocks=others)
    return matches


def _with_results(messages: list[Message], matches: _Matches) -> list[Message]:
    """Put the result of each call after the message that calls, and a stand-in where there is none."""
    repaired: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "tool":
            if index in matches.other_blocks:
                repaired.append(matches.other_blocks[index])
        elif message.blocks:
            repaired.append(message)
            repaired.extend(_result_message(message, call, matches) for call in _calls(message))
    return repaired


def _result_message(caller: Message, call: ToolCall, matches: _Matches) -> Message:
    match = matches.results.get(id(call))
    if match is None:
        result = ToolResult(call=call.id, content=INTERRUPTED, is_error=True, name=call.name)
        return Message(role="tool", blocks=[result], id=f"{caller.id}:{call.id}")
    message, result = match
    return message if message.blocks == [result] else replace(message, blocks=[result])


def _is_sound(messages: list[Message]) -> bool:
    """Whether every call is answered directly, in messages that hold only results: the usual case, left unchanged."""
    open_calls: set[str] = set()
    for message in messages:
        if message.role == "tool":
            for block in message.blocks:
                if not isinstance(block, ToolResult) or block.call not in open_calls:
                    return False
                open_calls.discard(block.call)
            continue
        if open_calls:
            return False
        calls = [call.id for call in _calls(message)]
        open_calls.update(calls)
        if len(open_calls) != len(calls):
            return False
    return not open_calls


def cut_for_keep(messages: list[Message], keep: int, *, seen: int | None = None) -> int:
    """Return the `seq` of the first message to keep when the last `keep` stay, without separating calls from results.

    Messages after entry `seen` stay as well. 0 if no message stays. Messages without a `seq` (a summary) are never
    kept: a new summary stands for them.
    """
    own = [message for message in messages if message.seq]
    index = max(0, len(own) - keep)
    if seen is not None:
        index = min(index, sum(message.seq <= seen for message in own))
    waiting: list[tuple[int, ToolCall]] = []
    pairs: list[tuple[int, int]] = []
    for position, message in enumerate(own):
        if message.role != "tool":
            waiting.extend((position, call) for call in _calls(message))
            continue
        for block in message.blocks:
            answered = _answer(waiting, block.call) if isinstance(block, ToolResult) else None
            if answered is not None:
                pairs.append((answered[0], position))
    speakers = [position for position, message in enumerate(own) if message.role != "tool"]
    # Calls of the newest message may still get a result; older open calls never will.
    pairs.extend((position, len(own)) for position, _ in waiting if position == speakers[-1])
    for call_at, result_at in sorted(pairs, reverse=True):
        if call_at < index <= result_at:
            index = call_at
    return own[index].seq if index < len(own) else 0
