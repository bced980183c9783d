"""What is read in a shorter way, because there is so much of it, is what the long way gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from turnlog import Message, Thinking, ToolCall
from turnlog.formats import Record, Source, format_of
from turnlog.interop.json import MAX_DEPTH, is_deep
from turnlog.wire import gemini

_AT = "2026-01-01T00:00:00.000Z"


def entries(agent: str, path: Path) -> list[Any]:
    return [step.entry for step in format_of(agent).read(Source(agent, str(path))).steps if isinstance(step, Record)]


def answer(parts: list[dict[str, Any]], spent: Any) -> dict[str, Any]:
    about = {"uuid": "a", "parentUuid": None, "sessionId": "s", "timestamp": _AT, "type": "assistant", "model": "q"}
    return {**about, "message": {"role": "model", "parts": parts}, "usageMetadata": spent}


@pytest.mark.parametrize(
    "parts",
    [
        [{"text": "hm", "thought": True}, {"text": "so"}],
        [{"text": "so"}, {"functionCall": {"id": "c", "name": "ls", "args": {"p": [1]}}}],
        [{"functionCall": {"name": "ls"}}, {"text": "signed", "thoughtSignature": "s"}, {"text": ""}],
        [],
    ],
)
@pytest.mark.parametrize(
    "spent",
    [
        None,
        {"promptTokenCount": 9, "cachedContentTokenCount": 4, "candidatesTokenCount": 3, "thoughtsTokenCount": 1},
        {"promptTokenCount": 9.5, "candidatesTokenCount": -3},
        {"prompt_token_count": 9, "candidates_token_count": 3, "promptTokensDetails": [{"modality": "TEXT"}]},
    ],
)
def test_usual_answers_of_qwen_code(parts: list[dict[str, Any]], spent: Any, tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(answer(parts, spent)) + "\n")
    [short] = entries("qwen-code", path)
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    whole = gemini.draft({"candidates": [candidate], "responseId": "a", "usageMetadata": spent})
    blocks = [replace(block, provider="qwen") if isinstance(block, Thinking) else block for block in whole.blocks]
    assert isinstance(short, Message)
    assert (short.blocks, short.usage, short.stop) == (blocks, whole.usage, whole.stop)


def test_bytes_that_are_no_text_damage_nothing_where_nobody_looks(tmp_path: Path) -> None:
    path = tmp_path / "rollout-one.jsonl"
    call = {"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "c", "unread": "?"}
    line = json.dumps({"timestamp": _AT, "type": "response_item", "payload": call}).encode()
    path.write_bytes(line.replace(b"?", b"\xff") + b"\n" + line.replace(b"ls", b"\xff") + b"\n")
    reading = format_of("codex").read(Source("codex", str(path)))
    [made] = [step.entry for step in reading.steps if isinstance(step, Record)]
    assert isinstance(made, Message) and [type(block) for block in made.blocks] == [ToolCall]
    assert [(problem.what, problem.offset) for problem in reading.problems] == [("a damaged line", len(line) + 1)]


def test_a_flat_object_is_not_deep() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = {"a": deep}
    assert is_deep(deep) and is_deep([deep]) and is_deep({"x": 1, "y": deep})
    flat: list[Any] = [{}, [], {"a": 1}, {"a": [1]}, [{}], "x", None, deep["a"]]
    assert not any(is_deep(value) for value in flat)
