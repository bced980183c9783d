"""The synthetic coding-agent session that every benchmark appends and loads.

A turn is ten messages: the user asks, the assistant calls a tool four times and gets four
results, then it answers. The same `n` gives the same messages on every machine.
"""

import json
import random
from typing import Any, Literal

Part = dict[str, Any]
Message = tuple[Literal["user", "assistant", "tool"], list[Part]]

USER_BYTES = 200
ASSISTANT_BYTES = 800
CALL_BYTES = 300
RESULT_BYTES = 3_072
TURN = 10


def messages(n: int) -> list[Message]:
    """The first `n` messages of the session, as `(role, parts)`.

    Parts are plain JSON: `{"type": "text", "text"}`, `{"type": "tool_call", "id", "name", "input"}`
    and `{"type": "tool_result", "id", "name", "output"}`. Roles are user, assistant and tool.
    """
    rng = random.Random(20261115)
    words = _vocabulary(rng)
    return [_message(index, rng, words) for index in range(n)]


def strings(parts: list[Part]) -> list[str]:
    """Every string a store has to give back, in order; what a check compares."""
    found: list[str] = []
    for part in parts:
        if part["type"] == "text":
            found.append(part["text"])
        elif part["type"] == "tool_call":
            found.append(part["input"]["command"])
        else:
            found.append(part["output"])
    return found


def _message(index: int, rng: random.Random, words: list[str]) -> Message:
    step = index % TURN
    if step == 0:
        return "user", [_text(index, USER_BYTES, rng, words)]
    if step == TURN - 1:
        return "assistant", [_text(index, ASSISTANT_BYTES, rng, words)]
    if step % 2:
        return "assistant", [_text(index, ASSISTANT_BYTES, rng, words), _call(index, rng, words)]
    output = _prose(index, RESULT_BYTES, rng, words)
    return "tool", [{"type": "tool_result", "id": f"call_{index - 1}", "name": "bash", "output": output}]


def _text(index: int, size: int, rng: random.Random, words: list[str]) -> Part:
    return {"type": "text", "text": _prose(index, size, rng, words)}


def _call(index: int, rng: random.Random, words: list[str]) -> Part:
    room = CALL_BYTES - len(json.dumps({"command": ""}))
    command = " ".join(rng.choices(words, k=room // 3)).replace("\n", " ").replace('"', "'")
    return {
        "type": "tool_call",
        "id": f"call_{index}",
        "name": "bash",
        "input": {"command": f"{index}; {command}"[:room]},
    }


def _prose(index: int, size: int, rng: random.Random, words: list[str]) -> str:
    return f"[{index}] {' '.join(rng.choices(words, k=size // 3))}"[:size]


def _vocabulary(rng: random.Random) -> list[str]:
    # Newlines, quotes and hexadecimal, because tool output has them: they cost JSON escapes,
    # and text that compresses too well would flatter a store that compresses.
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    plain = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(2_000)]
    hexes = [f"0x{rng.getrandbits(32):08x}" for _ in range(400)]
    quoted = [f'"{word}"' for word in plain[:100]]
    lines = [f"{word}\n   " for word in plain[100:400]]
    return plain + hexes + quoted + lines
