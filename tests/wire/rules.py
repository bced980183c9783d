"""What the providers' documentation and error messages ask of a request beyond its types, each rule by itself.

Written apart from the code that keeps them: nothing here is imported from `turnlog.wire`.
"""

from __future__ import annotations

import re
from typing import Any

ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
ANTHROPIC_PICTURES = {"image/jpeg", "image/png", "image/gif", "image/webp"}
GEMINI_MEDIA = re.compile(r"image/(png|jpeg|webp|heic|heif)|application/pdf|text/.+|audio/.+|video/.+")


def follow(kind: str, request: dict[str, Any]) -> None:
    """Refuse a request that breaks a rule."""
    {"anthropic": anthropic, "responses": responses, "chat": chat, "gemini": gemini}[kind](request)


def _alternates(turns: list[dict[str, Any]], other: str) -> None:
    assert turns, "there has to be a message"
    if turns[0].get("content", [{}])[0].get("type") == "compaction":  # it stands for the user who spoke first
        turns = [{"role": "user"}, *turns]
    assert [turn["role"] for turn in turns] == ["user", other] * (len(turns) // 2) + ["user"] * (len(turns) % 2)
    assert turns[-1]["role"] == "user", "the user speaks last"


def anthropic(request: dict[str, Any]) -> None:
    messages = request["messages"]
    _alternates(messages, "assistant")
    used: list[str] = []
    waiting: list[str] = []
    marks = 0
    for message in messages:
        content = message["content"]
        assert content, "no message is empty"
        kinds = [block["type"] for block in content]
        results = [block for block in content if block["type"] == "tool_result"]
        assert kinds[: len(results)] == ["tool_result"] * len(results), "results come first"
        assert sorted(block["tool_use_id"] for block in results) == sorted(waiting), (
            "every call has one result, at once"
        )
        calls = [block for block in content if block["type"] == "tool_use"]
        waiting = [block["id"] for block in calls]
        used += waiting
        if message["role"] == "user":
            assert set(kinds) <= {"text", "image", "document", "tool_result"}
        else:
            assert not set(kinds) & {"image", "document", "tool_result"}
            assert kinds[-1] not in ("thinking", "redacted_thinking"), "an assistant's message does not end in thinking"
            server_calls = {block["id"] for block in content if block["type"] == "server_tool_use"}
            server_results = {block["tool_use_id"] for block in content if block["type"] == "web_search_tool_result"}
            assert server_calls == server_results
        for block in content:
            assert block["type"] != "compaction" or block is messages[0]["content"][0], "a compaction comes first, once"
            _anthropic_block(block)
            marks += "cache_control" in block
        for block in calls:
            assert ANTHROPIC_NAME.fullmatch(block["name"])
            assert isinstance(block["input"], dict)
    assert not waiting
    assert all(ID.fullmatch(id) for id in used)
    assert len(set(used)) == len(used), "ids are used once"
    marks += sum("cache_control" in block for block in request.get("system", []))
    marks += sum("cache_control" in tool for tool in request.get("tools", []))
    assert marks + ("cache_control" in request) <= 4, "at most four cache marks"
    assert not used or request.get("tools"), "calls need tools"
    assert "tool_choice" not in request or request.get("tools")
    names = [tool["name"] for tool in request.get("tools", [])]
    assert len(set(names)) == len(names)


def _anthropic_block(block: dict[str, Any]) -> None:
    if block["type"] == "text":
        assert block["text"].strip(), "text is not empty"
    elif block["type"] in ("image", "document"):
        source = block["source"]
        if source["type"] == "base64":
            assert source["media_type"] in (ANTHROPIC_PICTURES if block["type"] == "image" else {"application/pdf"})
            assert source["data"]
    elif block["type"] == "tool_result":
        content = block.get("content", [])
        assert content or not block.get("is_error"), "a failed result says something"
        for part in content:
            assert part["type"] == "text" or not block.get("is_error"), "a failed result holds text only"
            _anthropic_block(part)


def responses(request: dict[str, Any]) -> None:
    items = request["input"]
    assert items
    waiting: dict[str, str] = {}
    used: list[str] = []
    for index, item in enumerate(items):
        kind = item["type"]
        if kind in ("function_call", "custom_tool_call"):
            assert OPENAI_NAME.fullmatch(item["name"])
            assert ID.fullmatch(item["call_id"])
            used.append(item["call_id"])
            waiting[item["call_id"]] = f"{kind}_output"
            continue
        if kind in ("function_call_output", "custom_tool_call_output"):
            assert waiting.pop(item["call_id"]) == kind
            if isinstance(item["output"], list):
                _inputs(item["output"])
            continue
        if kind == "reasoning":
            assert item["encrypted_content"], "reasoning goes back encrypted"
            assert len(item["id"]) <= 64
            following = items[index + 1]
            spoken = following["type"] == "message" and following["role"] == "assistant"
            assert spoken or following["type"].endswith("_call") or following["type"] == "reasoning"
            continue
        if item.get("role") in ("user", "developer"):
            assert not waiting, "a call is answered before somebody speaks"
            _inputs(item["content"])
        elif item.get("role") == "assistant":
            assert item["content"].strip()
    assert not waiting
    assert len(set(used)) == len(used)


def _inputs(content: list[dict[str, Any]]) -> None:
    assert content
    for part in content:
        if part["type"] == "input_text":
            assert part["text"].strip()
        else:
            assert sum(key in part for key in ("image_url", "file_id", "file_url", "file_data")) == 1


def chat(request: dict[str, Any]) -> None:
    messages = request["messages"]
    assert any(message["role"] != "system" for message in messages)
    waiting: list[str] = []
    used: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not waiting, "the results follow their calls at once"
        assert message.get("content") or message.get("tool_calls")
        content = message.get("content") or []
        for part in [{"type": "text", "text": content}] if isinstance(content, str) and content else content:
            assert part["type"] != "text" or part["text"].strip()
            assert part["type"] in ("text", "refusal") or message["role"] == "user"
        for call in message.get("tool_calls", []):
            assert message["role"] == "assistant"
            assert OPENAI_NAME.fullmatch(call[call["type"]]["name"])
            assert ID.fullmatch(call["id"])
            used.append(call["id"])
            waiting.append(call["id"])
    assert not waiting
    assert len(set(used)) == len(used)


def gemini(request: dict[str, Any]) -> None:
    contents = request["contents"]
    _alternates(contents, "model")
    version = re.search(r"gemini-(\d+)", request["model"])
    waiting: list[tuple[str, str]] = []
    for content in contents:
        parts = content["parts"]
        assert parts
        answers = [part["function_response"] for part in parts if "function_response" in part]
        assert [(answer["id"], answer["name"]) for answer in answers] == waiting, "a response for every call, in order"
        assert all("function_response" in part for part in parts[: len(answers)]), "responses come first"
        calls = [part for part in parts if "function_call" in part]
        assert not calls or content["role"] == "model"
        waiting = [(part["function_call"]["id"], part["function_call"]["name"]) for part in calls]
        if calls and version is not None and int(version[1]) >= 3:
            assert calls[0].get("thought_signature"), "Gemini 3 wants a signature on the first call"
        assert not all(part.get("thought") for part in parts)
        for part in parts:
            assert len(set(part) - {"thought", "thought_signature"}) == 1, "a part is one thing"
            if "text" in part:
                assert part["text"].strip() or part.get("thought_signature")
            if "inline_data" in part:
                assert GEMINI_MEDIA.fullmatch(part["inline_data"]["mime_type"])
        for _, name in waiting:
            assert GEMINI_NAME.fullmatch(name)
    assert not waiting
