"""The lines of a rollout, and the messages, calls and results that its response items are.

Lines of the kinds that most are decode into types with only the fields that are read; all others stay objects.
`turnlog.wire` knows the blocks of what a model answered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby
from typing import Any, Union

from msgspec import UNSET, Struct, ValidationError, convert, defstruct, to_builtins
from msgspec.json import Decoder
from msgspec.structs import force_setattr

from turnlog.formats._shared.blocks import linked, unknown
from turnlog.formats.codex.heading import NAME
from turnlog.formats.codex.usage import CodexInfo
from turnlog.interop.json import decoded
from turnlog.interop.records import Moment
from turnlog.interop.value import fields, items, json_text, text, token_count
from turnlog.log.block import AnyBlock, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.entry import Message, Stop
from turnlog.log.startup import pattern
from turnlog.wire._tool import input_of
from turnlog.wire.openai.part import REFUSAL
from turnlog.wire.openai.responses.answer import item_blocks, texts_of

QUIET = frozenset((
    "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "agent_message_delta",
    "agent_reasoning_section_break", "context_compacted", "mcp_tool_call_end", "mcp_tool_call_begin", "web_search_end",
    "web_search_begin", "image_generation_end", "exec_command_begin", "exec_command_end", "patch_apply_begin",
    "entered_review_mode", "exited_review_mode", "sub_agent_activity", "thread_settings_applied", "item_completed",
    "item_started", "guardian_assessment", "view_image_tool_call", "dynamic_tool_call_request",
    "dynamic_tool_call_response", "undo_completed", "undo_started", "collab_agent_spawn_end", "collab_waiting_end",
    "collab_close_end", "collab_agent_interaction_end", "codex/event/raw_item", "turn_diff", "background_event",
))  # fmt: skip
"""Events that repeat what response items say, or that only the screen needs."""
APART = (
    "token_usage_record", "world_state", "inter_agent_communication", "inter_agent_communication_metadata",
    "security_risk_score",
)  # fmt: skip
"""Records that are not read at all."""


class _Typed(Struct, tag_field="type", gc=False):
    pass


class FunctionCall(_Typed, tag="function_call"):
    """A call of a tool that Codex runs."""

    call_id: str | None = None
    id: str | None = None
    name: str | None = None
    arguments: Any = None
    namespace: Any = None


class MessageItem(_Typed, tag="message"):
    """A message of anybody's."""

    role: Any = None
    content: Any = None
    phase: Any = None


class Reasoning(_Typed, tag="reasoning", forbid_unknown_fields=True):
    """Reasoning: all of it goes back to the model, so that one with other fields stays an object."""

    id: Any = UNSET
    summary: Any = UNSET
    content: Any = UNSET
    encrypted_content: Any = UNSET
    internal_chat_message_metadata_passthrough: Any = UNSET
    status: Any = UNSET


class FunctionOutput(_Typed, tag="function_call_output"):
    """What a tool answered."""

    call_id: Any = None
    id: Any = None
    output: Any = None
    tools: Any = None


class _CustomOutput(FunctionOutput, tag="custom_tool_call_output"): ...


class _SearchOutput(FunctionOutput, tag="tool_search_output"): ...


class _ShellOutput(FunctionOutput, tag="local_shell_call_output"): ...


OUTPUTS = (FunctionOutput, _CustomOutput, _SearchOutput, _ShellOutput)


class TokenCount(_Typed, tag="token_count"):
    """The event that tells what the session used."""

    info: CodexInfo | None = None


class TaskStarted(_Typed, tag="task_started"):
    """The event that begins a turn."""

    turn_id: Any = None


class TaskComplete(_Typed, tag="task_complete"):
    """The event that ends a turn."""

    reason: Any = None


class _Unread(Struct, gc=False):
    pass


TypedItem = FunctionCall | MessageItem | Reasoning | FunctionOutput | _CustomOutput | _SearchOutput | _ShellOutput
Item = TypedItem | dict[str, Any]
"""A response item: of a usual kind, or any other as it stands in the file."""


class _ItemLine(Struct, tag_field="type", tag="response_item", gc=False):
    timestamp: Moment
    payload: TypedItem


_quiet = [defstruct(kind, [], bases=(_Typed,), tag=kind, gc=False) for kind in sorted(QUIET)]
_Event: Any = Union[(TokenCount, TaskStarted, TaskComplete, *_quiet)]
_event_line = defstruct("event_msg", [("timestamp", Any), ("payload", _Event)], tag=True, tag_field="type", gc=False)
_unread = [defstruct(kind, [("payload", _Unread)], tag=kind, tag_field="type", gc=False) for kind in APART]
decode_line: Callable[[bytes], Any] = Decoder(Union[(_ItemLine, _event_line, *_unread)]).decode


def as_typed(item: dict[str, Any]) -> Item:
    """An item as it would have been read from a usual line; itself where it is of another kind."""
    try:
        return convert(item, TypedItem)
    except ValidationError:
        return item


_ANSWERS = frozenset((
    "reasoning", "function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
    "image_generation_call", "compaction", "context_compaction",
))  # fmt: skip
_ASIDE = ("<environment_context>", "<user_instructions>", "<permissions instructions>", "# AGENTS.md instructions")
"""How messages begin that the program puts in for the model, and people do not see."""


def kind_of(item: Item) -> str:
    """The kind of an item: `message`, `output`, `answer` for all that the model said, or its own name for it."""
    if isinstance(item, dict):
        kind = str(item.get("type"))
        return "answer" if kind in _ANSWERS else kind
    if isinstance(item, FunctionOutput):
        return "output"
    return "message" if isinstance(item, MessageItem) and item.role != "assistant" else "answer"


def answer_blocks(item: Item) -> list[AnyBlock]:
    """The blocks of an item that the model said."""
    if isinstance(item, FunctionCall):
        return [tool_call(item)]
    if isinstance(item, Reasoning):
        return [reasoning(item)]
    return texts_of(item.content, item.phase, None) if isinstance(item, MessageItem) else _untyped_blocks(fields(item))


def tool_call(item: FunctionCall) -> ToolCall:
    """A call of the usual kind."""
    meta = None if item.namespace is None else _namespace_meta(item.namespace)
    return ToolCall(id=item.call_id or item.id or "", name=item.name or "", input=input_of(item.arguments), meta=meta)


def reasoning(item: Reasoning) -> Thinking:
    """Reasoning that the model alone can read, or also people."""
    kept = to_builtins(item)
    del kept["type"]
    kept.pop("status", None)
    summary, content, words = item.summary, item.content, ""
    if summary or content:  # mostly there is neither
        words = "\n\n".join([str(part.get("text") or "") for part in items(summary) or items(content)])
    return Thinking(text=words, provider="openai", data={"item": kept})


def _untyped_blocks(item: dict[str, Any]) -> list[AnyBlock]:
    if item.get("type") == "local_shell_call":  # the provider's own kind, which Codex runs: a call like any other
        id = str(item.get("call_id") or item.get("id") or "")
        return [ToolCall(id=id, name="local_shell", input=item.get("action"))]
    blocks = item_blocks(item, {}, None)
    if (meta := _namespace_meta(item.get("namespace"))) is not None and isinstance(blocks[0], ToolCall):
        force_setattr(blocks[0], "meta", meta)
    return blocks


def _namespace_meta(namespace: Any) -> dict[str, Any] | None:
    """The `meta` of a call whose tool has more than a name."""
    return {"openai": {"namespace": namespace}} if text(namespace) else None


def ending_of(blocks: list[AnyBlock]) -> tuple[Stop, dict[str, str] | None, ToolCall | None]:
    """How a response of these blocks ended, its error, and the last of the tools that it called and Codex runs."""
    call, error = None, None
    for block in blocks:
        if type(block) is ToolCall:
            if block.by is None:
                call = block
        elif block.meta is not None and fields(fields(block.meta).get("openai")).get(REFUSAL):
            error = {"type": REFUSAL}
    return "error" if error else "tool_use" if call is not None else "end", error, call


def input_message(item: MessageItem) -> Message:
    """A message that did not come from the model, and whether people see it."""
    content = item.content
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else items(content)
    blocks = [_input_block(part) for part in parts]
    first = blocks[0].text if blocks and isinstance(blocks[0], Text) else ""
    if item.role != "user":
        return Message(id="-", role="system", blocks=blocks)
    return Message(id="-", role="user", blocks=blocks, display=False if is_aside(first) else None)


def is_aside(text: str) -> bool:
    """Whether a message in the user's place came from the program, and people do not see it."""
    return text.lstrip().startswith(_ASIDE)


def _input_block(part: dict[str, Any]) -> AnyBlock:
    kind, words, url = part.get("type"), part.get("text"), part.get("image_url")
    if isinstance(words, str) and kind in ("input_text", "output_text", "text"):
        return Text(text=words)
    picture = linked(Image, url) if kind == "input_image" and isinstance(url, str) else None
    return picture or unknown(NAME, part)


def tool_result(item: FunctionOutput) -> ToolResult:
    """What a tool answered."""
    call, output = str(item.call_id or item.id or ""), item.output
    if output is None:
        output = item.tools
    if type(output) is str:
        return ToolResult(call=call, content=output, is_error=is_failed_output(output))
    if isinstance(output, dict):  # {"content": …, "success": …}
        inner = fields(output).get("content")
        content = inner if isinstance(inner, str) else json_text(inner)
        return ToolResult(call=call, content=content, is_error=fields(output).get("success") is False)
    if isinstance(item, (_SearchOutput, _ShellOutput)):
        return ToolResult(call=call, content=json_text(output))
    return ToolResult(call=call, content=[_input_block(part) for part in items(output)])


_EXIT_MARKS = ('{"output":', '{"metadata":', "Chunk ID: ", "Exit code: ")
_EXITED = pattern(r"^Process exited with code (\d+)$", re.MULTILINE)


def is_failed_output(output: str) -> bool:
    """The shell's results are JSON with an exit code, or begin with a line that tells it."""
    if not output.startswith(_EXIT_MARKS):
        return False
    if output[0] == "{":
        return bool(token_count(decoded(output.encode("utf-8", "replace")), "metadata", "exit_code"))
    if output.startswith("Exit code: "):
        return not output.startswith("Exit code: 0")
    code = _EXITED.search(output, 0, 300)
    return code is not None and code[1] != "0"


def native_compaction(history: list[dict[str, Any]], summary: str) -> Message | None:
    """What OpenAI made of a conversation and alone can read; None where the program summed it up itself."""
    if not any(item.get("type") == "compaction" and item.get("encrypted_content") for item in history):
        return None
    window = [item for item in history if item.get("type") != "ghost_snapshot"]
    block = Thinking(text=summary, provider="openai", data={"compaction": window})
    return Message(id="-", role="assistant", blocks=[block])


def messages(history: list[dict[str, Any]]) -> list[Message]:
    """Response items as messages: those in a row that the model said are one."""
    messages: list[Message] = []
    for kind, group in groupby(map(as_typed, history), kind_of):
        if kind == "answer":
            blocks = [block for item in group for block in answer_blocks(item)]
            stop, error, _ = ending_of(blocks)
            messages.append(Message(id="-", role="assistant", blocks=blocks, stop=stop, error=error))
            continue
        for item in group:
            if isinstance(item, MessageItem):
                messages.append(input_message(item))
            elif isinstance(item, FunctionOutput):
                messages.append(Message(id="-", role="tool", blocks=[tool_result(item)]))
    return messages
