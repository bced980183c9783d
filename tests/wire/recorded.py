"""Streams and responses as the providers' documentation shows them, written down by hand."""

from __future__ import annotations

from typing import Any


def _anthropic() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    usage = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 300,
        "cache_read_input_tokens": 1000,
        "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
        "output_tokens": 1,
    }
    start = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    citation = {
        "type": "web_search_result_location", "cited_text": "c", "encrypted_index": "i", "title": "t",
        "url": "https://example.com",
    }  # fmt: skip
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [
            {"type": "web_search_result", "title": "t", "url": "https://example.com", "encrypted_content": "e"}
        ],
    }

    def block(index: int, first: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"type": "content_block_start", "index": index, "content_block": first},
            *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
            {"type": "content_block_stop", "index": index},
        ]

    events = [
        {"type": "message_start", "message": start},
        *block(
            0,
            {"type": "thinking", "thinking": "", "signature": ""},
            {"type": "thinking_delta", "thinking": "Let me "},
            {"type": "thinking_delta", "thinking": "look."},
            {"type": "signature_delta", "signature": "EqQBCgIYAh"},
        ),
        *block(
            1,
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query": "wea'},
            {"type": "input_json_delta", "partial_json": 'ther"}'},
        ),
        *block(2, found),
        *block(
            3,
            {"type": "text", "text": ""},
            {"type": "text_delta", "text": "I will "},
            {"type": "citations_delta", "citation": citation},
            {"type": "text_delta", "text": "run it."},
        ),
        *block(
            4,
            {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}},
            {"type": "input_json_delta", "partial_json": ""},
            {"type": "input_json_delta", "partial_json": '{"command": "rm'},
            {"type": "input_json_delta", "partial_json": ' -rf build"}'},
        ),
        *block(5, {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}}),
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 89, "output_tokens_details": {"thinking_tokens": 40}},
        },
        {"type": "message_stop"},
    ]
    whole = {
        **start,
        "content": [
            {"type": "thinking", "thinking": "Let me look.", "signature": "EqQBCgIYAh"},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}},
            found,
            {"type": "text", "text": "I will run it.", "citations": [citation]},
            {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "rm -rf build"}},
            {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
        ],
        "stop_reason": "tool_use",
        "usage": {**usage, "output_tokens": 89, "output_tokens_details": {"thinking_tokens": 40}},
    }
    return events, whole


def _responses() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    base = {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-5", "output": [], "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress",
    }  # fmt: skip
    usage = {
        "input_tokens": 500,
        "input_tokens_details": {"cached_tokens": 384, "cache_write_tokens": 16},
        "output_tokens": 120,
        "output_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 620,
    }
    summary = [{"type": "summary_text", "text": "Thinking it over."}]
    items = [
        {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "gAAAAA", "status": "completed"},
        {
            "id": "ws_1",
            "type": "web_search_call",
            "status": "completed",
            "action": {"type": "search", "query": "x", "queries": ["x"]},
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "I will run it.", "annotations": []}],
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "bash",
            "arguments": '{"command":"rm -rf build"}',
            "status": "completed",
        },
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"},
    ]
    grown = [
        {**items[0], "summary": [], "encrypted_content": "gA", "status": "in_progress"},
        {**items[1], "status": "in_progress"},
        {**items[2], "content": [], "status": "in_progress"},
        {**items[3], "arguments": "", "status": "in_progress"},
        {**items[4], "input": ""},
    ]
    texts = [
        {"type": "response.reasoning_summary_part.added", "summary_index": 0, "item_id": "rs_1", "output_index": 0,
         "part": {"type": "summary_text", "text": ""}},
        *({"type": "response.reasoning_summary_text.delta", "summary_index": 0, "item_id": "rs_1", "output_index": 0,
           "delta": delta} for delta in ("Thinking ", "it over.")),
    ]  # fmt: skip
    words = [
        {"type": "response.content_part.added", "item_id": "msg_1", "output_index": 2, "content_index": 0,
         "part": {"type": "output_text", "text": "", "annotations": []}},
        *({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 2, "content_index": 0,
           "delta": delta, "logprobs": []} for delta in ("I will ", "run it.")),
    ]  # fmt: skip
    call = [
        *({"type": "response.function_call_arguments.delta", "item_id": "fc_1", "output_index": 3, "delta": delta}
          for delta in ('{"command":"rm', ' -rf build"}')),
        {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 3, "name": "bash",
         "arguments": '{"command":"rm -rf build"}'},
    ]  # fmt: skip
    custom = [
        {"type": "response.custom_tool_call_input.delta", "item_id": "ctc_1", "output_index": 4, "delta": delta}
        for delta in ("*** ", "Begin")
    ]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": base},
        {"type": "response.in_progress", "response": base},
    ]
    for index, deltas in enumerate([texts, [], words, call, custom]):
        events.append({"type": "response.output_item.added", "output_index": index, "item": grown[index]})
        events += deltas
        events.append({"type": "response.output_item.done", "output_index": index, "item": items[index]})
    whole = {**base, "status": "completed", "output": items, "usage": usage}
    events.append({"type": "response.completed", "response": whole})
    return [{**event, "sequence_number": number} for number, event in enumerate(events)], whole


def _chat() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    usage = {
        "prompt_tokens": 500,
        "prompt_tokens_details": {"cached_tokens": 384, "cache_write_tokens": 16},
        "completion_tokens": 120,
        "completion_tokens_details": {"reasoning_tokens": 64},
        "total_tokens": 620,
    }
    base = {"id": "chatcmpl-1", "created": 1, "model": "gpt-5"}

    def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {**base, "object": "chat.completion.chunk", "choices": [choice]}

    def part(index: int, arguments: str, **fields: Any) -> dict[str, Any]:
        name = fields.pop("name", None)
        function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
        return chunk({"tool_calls": [{"index": index, "function": function, **fields}]})

    events = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "I will "}),
        chunk({"content": "run it."}),
        part(0, "", id="call_1", type="function", name="bash"),
        part(0, '{"command":"rm'),
        part(0, ' -rf build"}'),
        part(1, "", id="call_2", type="function", name="now"),
        part(1, "{}"),
        chunk({}, "tool_calls"),
        {**base, "object": "chat.completion.chunk", "choices": [], "usage": usage},
    ]
    calls = [
        {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command":"rm -rf build"}'}},
        {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
    ]
    message = {"role": "assistant", "content": "I will run it.", "tool_calls": calls}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return events, {**base, "object": "chat.completion", "choices": [choice], "usage": usage}


def _gemini() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    base = {"responseId": "resp-1", "modelVersion": "gemini-3-pro"}
    usage = {
        "promptTokenCount": 500,
        "cachedContentTokenCount": 400,
        "candidatesTokenCount": 56,
        "thoughtsTokenCount": 64,
        "toolUsePromptTokenCount": 10,
        "totalTokenCount": 630,
    }
    code = {"executableCode": {"code": "print(1)", "language": "PYTHON"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    call = {
        "functionCall": {"id": "fc-1", "name": "bash", "args": {"command": "rm -rf build"}},
        "thoughtSignature": "c2ln",
    }
    other = {"functionCall": {"name": "now", "args": {}}}
    signed = {"text": "", "thoughtSignature": "ZW5k"}

    def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        candidate = {"index": 0, "content": {"role": "model", "parts": list(parts)}}
        if "finishReason" in more:
            candidate["finishReason"] = more.pop("finishReason")
        return {**base, "candidates": [candidate], **more}

    events = [
        chunk({"text": "Let me ", "thought": True}, usageMetadata={"promptTokenCount": 500, "totalTokenCount": 500}),
        chunk({"text": "look.", "thought": True}),
        chunk({"text": "I will "}),
        chunk({"text": "run it."}),
        chunk(signed),
        chunk(code),
        chunk(ran),
        chunk(call, other),
        chunk(finishReason="STOP", usageMetadata=usage),
    ]
    parts = [{"text": "Let me look.", "thought": True}, {"text": "I will run it."}, signed, code, ran, call, other]
    return events, chunk(*parts, finishReason="STOP", usageMetadata=usage)


RECORDED = {"anthropic": _anthropic(), "responses": _responses(), "chat": _chat(), "gemini": _gemini()}
