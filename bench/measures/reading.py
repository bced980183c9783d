"""Files of other agents, read into entries one by one, each with its key, beside bare decoding of their lines.

Nothing here waits for a disk: the file was just written, and is in memory. So what counts is the time of the processor,
which other programs on the machine disturb less than what a clock on the wall tells.

python -m bench.measures.reading AGENT MB    the same for one file of that size, which is deleted afterwards
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

from bench.ground import Ground
from bench.measures import Row, ratio, take_turns
from turnlog.formats import Source, format_of

TITLE = "reading another agent's file"
MB = 40
ROUNDS = 7
BAR, MEMORY_BAR = 2.0, 100.0
AGENTS = ("claude-code", "codex", "gemini-cli", "pi")
"""For whom there are bars; qwen-code can be measured by hand, and takes longer."""
_AT = "2026-01-01T00:00:00.000Z"

# A process of its own, and the high-water mark of its own memory. The one that getrusage tells is at least as high as
# the memory of the process that started it, which here is larger than what is to be measured.
_PEAK = r"""
import re, sys
from turnlog.formats import Source, format_of
form = format_of(sys.argv[1])
for _ in form.read(Source(sys.argv[1], sys.argv[2])).steps:
    pass
with open("/proc/self/status") as file:
    print(int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) / 1024)
"""


def measure(ground: Ground) -> list[Row]:
    folder = ground.folder / "reading"
    folder.mkdir()
    rows: list[Row] = []
    for agent in AGENTS:
        path = make(agent, folder / f"{agent}.jsonl", MB)
        jobs: dict[str, Callable[[], int]] = {
            agent: lambda agent=agent, path=path: read(agent, path),
            "bare decoding": lambda path=path: bare(path),
        }
        times = take_turns(jobs, rounds=ROUNDS, clock=time.process_time)
        lines = path.read_bytes().count(b"\n")
        rows.append(ratio(TITLE, times, agent, "bare decoding", bar=BAR, mb=MB, lines=lines))
        small = make(agent, folder / f"{agent}-small.jsonl", 1)
        peak, rest = peak_mb(agent, path), peak_mb(agent, small)
        more = (peak - rest) / MB * 1000
        subject, reference = f"{agent}, 1 GB by what {MB} MB take: {more:.0f} MB", f"1 MB: {rest:.0f} MB"
        rows.append(Row(f"{TITLE}: memory", subject, reference, more, "MB", MEMORY_BAR))
    return rows


def read(agent: str, path: Path) -> int:
    """As importing and the catalog do: they ask every record for its key."""
    return sum(step.key is not None for step in format_of(agent).read(Source(agent, str(path))).steps)


def bare(path: Path) -> int:
    decode, count = msgspec.json.Decoder().decode, 0
    with path.open("rb") as file:
        for line in file:
            decode(line)
            count += 1
    return count


def peak_mb(agent: str, path: Path) -> float:
    done = subprocess.run([sys.executable, "-c", _PEAK, agent, str(path)], capture_output=True, text=True, check=True)
    return float(done.stdout)


# ── files as the agents write them ────────────────────────────────────────────────────────────────

_chance = random.Random(1)
_words = [f"w{number}" * 2 for number in range(5_000)]


def _text(count: int) -> str:
    return " ".join(_chance.choices(_words, k=count))


def _claude_code() -> Iterator[dict[str, Any]]:
    parent: str | None = None
    usage = {"input_tokens": 10, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 5, "output_tokens": 50}

    def record(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
        nonlocal parent
        before, parent = parent, str(UUID(int=_chance.getrandbits(128)))
        return {
            "parentUuid": before, "isSidechain": False, "userType": "external", "cwd": "/p", "sessionId": "s",
            "version": "2.1.0", "gitBranch": "main", "type": kind, "message": message, "uuid": parent,
            "timestamp": _AT, **more,
        }  # fmt: skip

    def answer(id: str, block: dict[str, Any], stop: str | None) -> dict[str, Any]:
        message = {"id": id, "type": "message", "role": "assistant", "model": "claude", "content": [block]}
        return record("assistant", {**message, "stop_reason": stop, "usage": usage}, requestId="r")

    for turn in range(1 << 40):
        yield record("user", {"role": "user", "content": _text(40)})
        for step in range(5):
            id, call = f"msg_{turn}_{step}", f"toolu_{turn:012x}{step:012x}"
            yield answer(id, {"type": "text", "text": _text(60)}, None)
            given = {"command": _text(8)}
            yield answer(id, {"type": "tool_use", "id": call, "name": "Bash", "input": given}, "tool_use")
            told = _text(350)
            result = {"type": "tool_result", "tool_use_id": call, "content": told}
            yield record("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": told, "stderr": ""})


def _codex() -> Iterator[dict[str, Any]]:
    def record(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": _AT, "type": kind, "payload": payload}

    yield record("session_meta", {"id": str(UUID(int=1)), "timestamp": _AT, "cwd": "/p", "source": "cli"})
    total = 0
    for turn in range(1 << 40):
        yield record("event_msg", {"type": "task_started", "turn_id": f"t{turn}"})
        asked = _text(40)
        yield record("event_msg", {"type": "user_message", "message": asked})
        content = [{"type": "input_text", "text": asked}]
        yield record("response_item", {"type": "message", "role": "user", "content": content})
        for step in range(5):
            call = f"call_{turn:012x}{step:012x}"
            yield record("response_item", {"type": "reasoning", "summary": [], "encrypted_content": _text(100)})
            given = json.dumps({"command": ["ls", _text(5)]})
            item = {"type": "function_call", "name": "shell", "arguments": given, "call_id": call}
            yield record("response_item", item)
            total += 1000
            counts = {"input_tokens": total, "cached_input_tokens": total // 2, "output_tokens": total // 10}
            yield record("event_msg", {"type": "token_count", "info": {"total_token_usage": counts}})
            yield record("response_item", {"type": "function_call_output", "call_id": call, "output": _text(350)})
        yield record("event_msg", {"type": "task_complete", "turn_id": f"t{turn}"})


def _gemini_cli() -> Iterator[dict[str, Any]]:
    yield {
        "sessionId": str(UUID(int=1)),
        "projectHash": "ab" * 32,
        "startTime": _AT,
        "lastUpdated": _AT,
        "kind": "main",
    }
    for turn in range(1 << 40):
        yield {"id": f"u{turn}", "timestamp": _AT, "type": "user", "content": [{"text": _text(40)}]}
        for step in range(5):
            tokens = {"input": 1000, "output": 50, "cached": 10, "thoughts": 0, "tool": 0, "total": 1050}
            id = f"m{turn}_{step}"
            said = {"id": id, "timestamp": _AT, "type": "gemini", "content": _text(60), "tokens": tokens, "model": "g"}
            yield said
            answer = {"functionResponse": {"id": id, "name": "ls", "response": {"output": _text(350)}}}
            call = {"id": id, "name": "ls", "args": {"p": _text(8)}, "status": "success", "result": [answer]}
            yield {**said, "toolCalls": [call]}
            yield {"$set": {"lastUpdated": _AT}}


def _pi() -> Iterator[dict[str, Any]]:
    yield {"type": "session", "version": 3, "id": str(UUID(int=1)), "timestamp": _AT, "cwd": "/p"}
    number = 0

    def entry(message: dict[str, Any]) -> dict[str, Any]:
        nonlocal number
        number += 1
        parent = f"{number - 1:08x}" if number > 1 else None
        about = {"type": "message", "id": f"{number:08x}", "parentId": parent, "timestamp": _AT}
        return {**about, "message": {**message, "timestamp": 1_767_225_600_000 + number}}

    cost = {"input": 0.1, "output": 0.1, "cacheRead": 0, "cacheWrite": 0, "total": 0.2}
    usage = {"input": 10, "output": 50, "cacheRead": 1000, "cacheWrite": 5, "totalTokens": 1065, "cost": cost}
    for turn in range(1 << 40):
        yield entry({"role": "user", "content": [{"type": "text", "text": _text(40)}]})
        for step in range(5):
            call = f"toolu_{turn:012x}{step:012x}"
            content = [
                {"type": "text", "text": _text(60)},
                {"type": "toolCall", "id": call, "name": "bash", "arguments": {"command": _text(8)}},
            ]
            about = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude", "stopReason": "toolUse"}
            yield entry({"role": "assistant", "content": content, "usage": usage, **about})
            told = [{"type": "text", "text": _text(350)}]
            yield entry(
                {"role": "toolResult", "toolCallId": call, "toolName": "bash", "content": told, "isError": False}
            )


def _qwen_code() -> Iterator[dict[str, Any]]:
    parent: str | None = None

    def record(kind: str, role: str, part: dict[str, Any], **more: Any) -> dict[str, Any]:
        nonlocal parent
        before, parent = parent, str(UUID(int=_chance.getrandbits(128)))
        about = {"uuid": parent, "parentUuid": before, "sessionId": "s", "timestamp": _AT, "type": kind, "cwd": "/p"}
        return {**about, "version": "0.1", "message": {"role": role, "parts": [part]}, **more}

    spent = {"promptTokenCount": 1000, "candidatesTokenCount": 50, "cachedContentTokenCount": 10}
    for turn in range(1 << 40):
        yield record("user", "user", {"text": _text(40)})
        for step in range(5):
            call = f"call_{turn:012x}{step:012x}"
            yield record("assistant", "model", {"text": _text(60)}, model="q")
            asked = {"functionCall": {"id": call, "name": "ls", "args": {"p": _text(8)}}}
            yield record("assistant", "model", asked, model="q", usageMetadata=spent)
            told = {"functionResponse": {"id": call, "name": "ls", "response": {"output": _text(350)}}}
            yield record("tool_result", "user", told, toolCallResult={"callId": call, "status": "success"})


_MAKERS: dict[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini_cli,
    "pi": _pi,
    "qwen-code": _qwen_code,
}


def make(agent: str, path: Path, mb: int) -> Path:
    """A file of about that size, of records of the usual kinds."""
    encode, size = msgspec.json.Encoder().encode, 0
    with path.open("wb") as file:
        for record in _MAKERS[agent]():
            size += file.write(encode(record) + b"\n")
            if size >= mb * 1_000_000:
                return path
    return path


def main(agent: str, mb: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = make(agent, Path(folder) / "one.jsonl", mb)
        rest = peak_mb(agent, make(agent, Path(folder) / "small.jsonl", 1))
        ratios: list[float] = []
        for _ in range(3):
            start = time.process_time()
            bare(path)
            middle = time.process_time()
            read(agent, path)
            ratios.append((time.process_time() - middle) / (middle - start))
        times = statistics.median(ratios)
        more = peak_mb(agent, path) - rest
        print(f"{agent}, {mb} MB: {times:.2f} times as long as bare decoding, {more:.0f} MB more memory")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
