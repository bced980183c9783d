"""The usual lines of a rollout, as far as they matter. Any other line is decoded whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, defstruct, field
from msgspec.json import Decoder

from turnlog.formats._shared.records import Moment

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

INTERNAL = "internal_chat_message_metadata_passthrough"
_Count = Annotated[int, Meta(ge=0, lt=1 << 53)]


class _Object(Struct, gc=False):
    """Any object."""


class _Kind(Struct, tag_field="type", gc=False):
    """What names its kind."""


def _or_unread(types: Any, kinds: Iterable[str], **also: Any) -> Any:
    """Those types, or one of a kind that is not read: of each only that it is there."""
    for number, kind in enumerate(kinds):
        types |= defstruct(f"Unread{number}", list(also.items()), bases=(_Kind,), tag=kind)
    return types


class _Counts(Struct, gc=False):
    """Tokens, counted from the beginning of the session."""

    input_tokens: _Count
    cached_input_tokens: _Count = 0
    cache_write_input_tokens: _Count = 0
    output_tokens: _Count = 0
    reasoning_output_tokens: _Count = 0


class CodexInfo(Struct, gc=False):
    """What a count of tokens tells."""

    total_token_usage: _Counts
    last_token_usage: _Counts | None = None


class TokenCount(_Kind, tag="token_count"):
    """What was spent so far; without it, only of limits."""

    info: CodexInfo | None = None


class Begun(_Kind, tag="task_started"):
    """A turn begins."""

    turn_id: Any = None


class Done(_Kind, tag="task_complete"):
    """It ends as it should."""

    reason: Any = None


_Events: Any = _or_unread(TokenCount | Begun | Done, sorted(QUIET))


class _Event(Struct, tag_field="type", tag="event_msg", gc=False):
    timestamp: str
    payload: _Events  # pyright: ignore[reportInvalidTypeForm]


class CodexOutput(_Kind, tag="function_call_output"):
    """What a tool answered, as text."""

    call_id: str
    output: str
    id: Any = None


class CustomOutput(CodexOutput, tag="custom_tool_call_output"):
    """The same of a tool that takes text."""


class CodexCall(_Kind, tag="function_call"):
    """The model calls a tool."""

    call_id: str
    arguments: str
    name: str = ""
    namespace: Any = None


class Reasoning(_Kind, tag="reasoning", forbid_unknown_fields=True):
    """What the model thought. All of it goes back to the model, so one with other fields is decoded whole."""

    id: Any = UNSET
    summary: Any = UNSET
    content: Any = UNSET
    encrypted_content: Any = UNSET
    internal: Any = field(default=UNSET, name=INTERNAL)
    status: Any = UNSET


class _Part(_Kind, tag="input_text"):
    """Text of a message."""

    text: str
    annotations: Any = None
    refusal: None = None


class _OutputPart(_Part, tag="output_text"):
    """The same, of the model's."""


class CodexTalk(_Kind, tag="message"):
    """A message of nothing but text."""

    role: str
    content: list[_Part | _OutputPart]
    phase: Any = None


class Item(Struct, tag_field="type", tag="response_item", gc=False):
    """A part of the conversation."""

    timestamp: Moment
    payload: CodexOutput | CustomOutput | CodexCall | Reasoning | CodexTalk


decode_line: Callable[[bytes], Any] = Decoder(_or_unread(_Event | Item, APART, payload=_Object)).decode
