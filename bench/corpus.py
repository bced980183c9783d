"""A machine that agents have worked on for months: sessions of Claude Code and Codex, as those write them.

python -m bench.corpus FOLDER [SESSIONS [MB [WORDS]]]    makes a home folder with `.claude` and `.codex` in it

Sizes have a heavy tail, as real ones do: half of the sessions are small, and a few hold most of the bytes. Most bytes
are tool output. The texts repeat words as languages do (few very often, most seldom), with paths, numbers and hashes
between them: FEW different ones as one person uses, or MANY as logs and generated code bring. The same seed gives the
same sessions; times are counted back from now.
"""

import json
import math
import os
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

RARE = "zymurgic"
"""In the tool output of a few sessions."""
COMMON = "error"
"""In almost every session, most of all in tool output."""
FEW, MANY = 24_000, 400_000
"""Different words."""
DAYS = 150
MODELS = {
    "claude-code": ("claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001"),
    "codex": ("gpt-5-codex", "gpt-5"),
}
_CLAUDE_SHARE = 0.72
_RARE_EVERY = 499
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Corpus:
    """What was made, and where."""

    home: Path
    sessions: int
    size_bytes: int
    newest: Path
    """A session of Claude Code."""


def make(home: Path, *, sessions: int, mb: float, seed: int = 7, words: int = FEW) -> Corpus:
    """So many sessions of so many megabytes together."""
    maker = _Maker(seed, words)
    weights = [math.exp(maker.chance.gauss(0, 1.6)) for _ in range(sessions)]
    scale = mb * 1e6 / sum(weights)
    now = datetime.now(UTC)
    ages = sorted((maker.chance.random() ** 1.5 * DAYS * 86_400 + 7_200 for _ in range(sessions)), reverse=True)
    total, newest = 0, home
    for number, (weight, age) in enumerate(zip(weights, ages, strict=True)):
        agent = "claude-code" if maker.chance.random() < _CLAUDE_SHARE or number == sessions - 1 else "codex"
        path, size = maker.session(home, agent, now - timedelta(seconds=age), weight * scale, number % _RARE_EVERY == 5)
        total += size
        newest = path
    return Corpus(home, sessions, total, newest)


def multiplied(made: Corpus, home: Path, *, times: int) -> Corpus:
    """The same so many times, under other names: links, which take no room."""
    newest = home
    for path in made.home.glob(".c*/**/*.jsonl"):
        for number in range(times):
            newest = home / path.relative_to(made.home).with_stem(f"{path.stem[:-4]}{number:04x}")
            newest.parent.mkdir(parents=True, exist_ok=True)
            newest.hardlink_to(path)
    return Corpus(home, made.sessions * times, made.size_bytes * times, newest)


def grow(path: Path) -> None:
    """One more turn at the end of a session of Claude Code."""
    lines = path.read_bytes().splitlines()
    last = json.loads(lines[-1])
    talk = _Claude(
        _Maker(random.getrandbits(32), FEW), last["sessionId"], last["cwd"], last["message"].get("model", "m")
    )
    talk.parent = last["uuid"]
    with path.open("ab") as file:
        for record in talk.turn(datetime.now(UTC), is_rare=False, steps=2, number=random.getrandbits(32)):
            file.write(_encode(record) + b"\n")


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def _split(text: str) -> list[str]:
    return text.split()


_SYLLABLES = _split(
    "ba co di fu ga he jo ki lu ma ne po qui ra so te un ve wa xi yo za con per tra ver sta ing ion ent"
)
_EVERYDAY = _split("""
    the a to of in is it and for that this file test tests error errors failed passed line function return import from
    class def self value name path config server request response data user session token build run fix check update
    add remove change read write open close type string list dict number index None True False not with as if else
""")
_PROJECTS = _split("api webshop billing mobile infra docs search mailer scheduler dashboard gateway importer reports")


class _Maker:
    def __init__(self, seed: int, words: int) -> None:
        self.chance = chance = random.Random(seed)
        longest = 4 if words <= FEW else 6
        made = {"".join(chance.choices(_SYLLABLES, k=chance.randint(2, longest))) for _ in range(words)}
        self.words = _EVERYDAY + sorted(made - {RARE})
        weights = [1 / (rank + 8) for rank in range(len(self.words))]
        self._pool = chance.choices(self.words, weights, k=max(200_000, 5 * words))
        self._lines = [self._line() for _ in range(max(30_000, words // 2))]
        self.folders = [f"/home/ada/{name}" for name in _PROJECTS]
        self.folders += [f"/home/ada/work/{name}-{number}" for number in range(3) for name in _PROJECTS]
        self._folder_weights = [1 / (rank + 2) for rank in range(len(self.folders))]

    def prose(self, count: int) -> str:
        start = self.chance.randrange(len(self._pool) - count)
        return " ".join(self._pool[start : start + count])

    def _line(self) -> str:
        """A line of tool output: code, a place, a log, a listing, words."""
        chance = self.chance
        a, b, *rest = (chance.choice(self._pool) for _ in range(8))
        kind, number, text = chance.random(), chance.randint(100, 99_999), " ".join(rest)
        if kind < 0.35:
            return f"{'    ' * (number % 4)}{a}_{b} = self.{rest[0]}({rest[1]}, {rest[2]}={rest[3]!r})"
        if kind < 0.55:
            return f"src/{a}/{b}.py:{number % 900}: {text}"
        if kind < 0.7:
            return f"2026-0{number % 9 + 1}-1{number % 7}T0{number % 10}:12:00Z {a.upper()} {text} id={number**3:x}"
        if kind < 0.8:
            return f"-rw-r--r-- 1 ada ada {number:>7} Mar {number % 28:>2} {a}_{b}.{('py', 'ts', 'go')[number % 3]}"
        return f"{a} {b} {text}"

    def output(self, size: int) -> str:
        """So many bytes of tool output, a few of them seen nowhere else."""
        lines, length = [f"commit {self.chance.getrandbits(160):040x}"], 50
        start = self.chance.randrange(len(self._lines))
        while length < size:
            line = self._lines[start]
            lines.append(line)
            length += len(line) + 1
            start = (start + 1) % len(self._lines)
        return "\n".join(lines)

    def folder(self) -> str:
        return self.chance.choices(self.folders, self._folder_weights)[0]

    def uuid(self) -> str:
        return str(UUID(int=self.chance.getrandbits(128), version=4))

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def session(self, home: Path, agent: str, at: datetime, size: float, is_rare: bool) -> tuple[Path, int]:
        folder, model, id = self.folder(), self.chance.choice(MODELS[agent]), self.uuid()
        talk = (_Claude if agent == "claude-code" else _Codex)(self, id, folder, model)
        path = talk.path(home, at)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [_encode(record) for record in talk.head(at)]
        written, number = sum(map(len, lines)), 0
        while number == 0 or written < size:
            steps = min(1 + int(self.chance.expovariate(0.3)), max(1, int((size - written) / 6_000)))
            at += timedelta(seconds=self.chance.randint(5, 300))
            fresh = [
                _encode(record) for record in talk.turn(at, is_rare=is_rare and not number, steps=steps, number=number)
            ]
            lines += fresh
            written += sum(map(len, fresh)) + len(fresh)
            number += 1
        data = b"\n".join(lines) + b"\n"
        path.write_bytes(data)
        os.utime(path, (at.timestamp(), at.timestamp()))
        return path, len(data)

    def tool_size(self) -> int:
        return min(200_000, int(math.exp(self.chance.gauss(6.9, 1.3))))


def _stamp(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Claude:
    def __init__(self, maker: _Maker, id: str, folder: str, model: str) -> None:
        self.maker, self.id, self.folder, self.model = maker, id, folder, model
        self.parent: str | None = None

    def path(self, home: Path, at: datetime) -> Path:
        return home / ".claude/projects" / re.sub(r"[^A-Za-z0-9]", "-", self.folder) / f"{self.id}.jsonl"

    def head(self, at: datetime) -> Iterator[dict[str, Any]]:
        yield {"type": "summary", "summary": self.maker.prose(6).capitalize(), "leafUuid": self.maker.uuid()}

    def turn(self, at: datetime, *, is_rare: bool, steps: int, number: int) -> Iterator[dict[str, Any]]:
        maker, chance = self.maker, self.maker.chance
        yield self._record(at, "user", {"role": "user", "content": maker.prose(chance.randint(6, 60))})
        for step in range(steps):
            at += timedelta(seconds=chance.randint(1, 20))
            call, name = f"toolu_{maker.uuid()[:18]}", chance.choice(("Bash", "Read", "Grep", "Edit"))
            id, request = f"msg_{self.id[:8]}_{number}_{step}", f"req_{self.id[:8]}_{number}_{step}"
            usage = {
                "input_tokens": chance.randint(3, 900), "cache_creation_input_tokens": chance.randint(0, 4_000),
                "cache_read_input_tokens": chance.randint(8_000, 90_000), "output_tokens": chance.randint(40, 1_500),
            }  # fmt: skip
            yield self._answer(
                at, id, request, {"type": "text", "text": maker.prose(chance.randint(8, 50))}, None, usage
            )
            given = {"command": f"{maker.prose(3)} src/{maker.prose(1)}.py", "description": maker.prose(5)}
            block = {"type": "tool_use", "id": call, "name": name, "input": given}
            yield self._answer(at, id, request, block, "tool_use", usage)
            told = maker.output(maker.tool_size()) + (f"\n{RARE} brew" if is_rare and not step else "")
            result = {"type": "tool_result", "tool_use_id": call, "content": told, "is_error": False}
            details = {"stdout": told, "stderr": "", "interrupted": False, "isImage": False}
            yield self._record(at, "user", {"role": "user", "content": [result]}, toolUseResult=details)
        id, request = f"msg_{self.id[:8]}_{number}_end", f"req_{self.id[:8]}_{number}_end"
        usage = {
            "input_tokens": 5,
            "cache_creation_input_tokens": 900,
            "cache_read_input_tokens": 20_000,
            "output_tokens": 300,
        }
        last = {"type": "text", "text": maker.prose(chance.randint(20, 120))}
        yield self._answer(at + timedelta(seconds=3), id, request, last, "end_turn", usage)

    def _answer(
        self, at: datetime, id: str, request: str, block: dict[str, Any], stop: str | None, usage: dict[str, int]
    ) -> dict[str, Any]:
        message = {"id": id, "type": "message", "role": "assistant", "model": self.model, "content": [block]}
        return self._record(at, "assistant", {**message, "stop_reason": stop, "usage": usage}, requestId=request)

    def _record(self, at: datetime, kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
        before, self.parent = self.parent, self.maker.uuid()
        return {
            "parentUuid": before, "isSidechain": False, "userType": "external", "cwd": self.folder,
            "sessionId": self.id, "version": "2.1.0", "gitBranch": "main", "type": kind, "message": message,
            "uuid": self.parent, "timestamp": _stamp(at), **more,
        }  # fmt: skip


class _Codex:
    def __init__(self, maker: _Maker, id: str, folder: str, model: str) -> None:
        self.maker, self.id, self.folder, self.model = maker, id, folder, model
        self.total = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}

    def path(self, home: Path, at: datetime) -> Path:
        name = f"rollout-{at.strftime('%Y-%m-%dT%H-%M-%S')}-{self.id}.jsonl"
        return home / ".codex/sessions" / at.strftime("%Y/%m/%d") / name

    def head(self, at: datetime) -> Iterator[dict[str, Any]]:
        about = {"id": self.id, "timestamp": _stamp(at), "cwd": self.folder, "originator": "codex_cli_rs"}
        about |= {"cli_version": "0.166.0", "source": "cli", "model_provider": "openai", "instructions": None}
        yield self._record(at, "session_meta", about)

    def turn(self, at: datetime, *, is_rare: bool, steps: int, number: int) -> Iterator[dict[str, Any]]:
        maker, chance = self.maker, self.maker.chance
        turn = f"turn-{number}"
        yield self._event(at, "task_started", turn_id=turn, model_context_window=272_000)
        about = {"turn_id": turn, "cwd": self.folder, "model": self.model, "approval_policy": "on-request"}
        yield self._record(at, "turn_context", {**about, "effort": "medium", "summary": "auto"})
        asked = maker.prose(chance.randint(6, 60))
        content = [{"type": "input_text", "text": asked}]
        yield self._record(at, "response_item", {"type": "message", "role": "user", "content": content})
        yield self._event(at, "user_message", message=asked, images=[])
        for step in range(steps):
            at += timedelta(seconds=chance.randint(1, 20))
            call = f"call_{number}_{step}"
            sealed = f"gAAAA{chance.getrandbits(1_600):x}"
            yield self._record(at, "response_item", {"type": "reasoning", "summary": [], "encrypted_content": sealed})
            given = json.dumps({"command": ["bash", "-lc", f"{maker.prose(3)} src/{maker.prose(1)}.py"]})
            item = {"type": "function_call", "name": "shell", "arguments": given, "call_id": call}
            yield self._record(at, "response_item", item)
            told = maker.output(maker.tool_size()) + (f"\n{RARE} brew" if is_rare and not step else "")
            output = json.dumps({"output": told, "metadata": {"exit_code": 0, "duration_seconds": 0.4}})
            yield self._record(at, "response_item", {"type": "function_call_output", "call_id": call, "output": output})
            yield self._tokens(at)
        said = maker.prose(chance.randint(20, 120))
        content = [{"type": "output_text", "text": said}]
        yield self._record(at, "response_item", {"type": "message", "role": "assistant", "content": content})
        yield self._event(at, "agent_message", message=said)
        yield self._tokens(at)
        yield self._event(at, "task_complete", turn_id=turn, last_agent_message=said)

    def _tokens(self, at: datetime) -> dict[str, Any]:
        chance = self.maker.chance
        last = {"input_tokens": chance.randint(9_000, 90_000), "output_tokens": chance.randint(40, 1_500)}
        last |= {"cached_input_tokens": last["input_tokens"] // 4 * 3, "reasoning_output_tokens": 32}
        self.total = {name: count + last[name] for name, count in self.total.items()}
        both = [
            {**counts, "total_tokens": counts["input_tokens"] + counts["output_tokens"]}
            for counts in (self.total, last)
        ]
        info = {"total_token_usage": both[0], "last_token_usage": both[1], "model_context_window": 272_000}
        return self._event(at, "token_count", info=info, rate_limits=None)

    def _event(self, at: datetime, kind: str, **more: Any) -> dict[str, Any]:
        return self._record(at, "event_msg", {"type": kind, **more})

    def _record(self, at: datetime, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        return {"timestamp": _stamp(at), "type": kind, "payload": payload}


if __name__ == "__main__":
    _folder, _sessions, _mb, _words = (*sys.argv[1:], *("1500", "400", str(FEW))[len(sys.argv) - 2 :])
    made = make(Path(_folder), sessions=int(_sessions), mb=float(_mb), words=int(_words))
    print(f"{made.sessions:,} sessions, {made.size_bytes / 1e6:.0f} MB in {made.home}")
