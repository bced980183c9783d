"""Every format keeps the contract, over files of its agent."""

from __future__ import annotations

from pathlib import Path

from turnlog.testing import FormatContract

HERE = Path(__file__).parent
SHARED = HERE.parents[2] / "shared" / "fixtures" / "agents"


def shared(*patterns: str) -> list[Path]:
    """Public files of real agents, where they are at hand."""
    return sorted(path for pattern in patterns for path in SHARED.glob(pattern))


class TestClaudeCode(FormatContract):
    name = "claude-code"
    samples = shared("claude-code/*.jsonl", "claude-code/subagent-layout")


class TestCodex(FormatContract):
    name = "codex"
    samples = shared("codex/*.jsonl", "codex/codexbar-fork/*")


class TestGeminiCli(FormatContract):
    name = "gemini-cli"
    samples = shared("gemini-cli/*.json", "gemini-cli/*.jsonl")


class TestOpencode(FormatContract):
    name = "opencode"
    samples = shared("opencode/*.json", "opencode/*.jsonl", "opencode/agentsessions-storage/*")


class TestPi(FormatContract):
    name = "pi"
    samples = shared("pi/*.jsonl")


def ours(*names: str) -> list[Path]:
    """Files composed for this, of what cannot be found in public."""
    return [HERE / "agents" / name for name in names]


class TestQwenCode(FormatContract):
    name = "qwen-code"
    writes = False
    samples = [*shared("qwen-code/*.jsonl"), *ours("qwen-code/orchard.jsonl", "qwen-code/damaged.jsonl")]


class TestCopilotCli(FormatContract):
    name = "copilot-cli"
    writes = False
    samples = [
        *shared("copilot-cli/*.jsonl", "copilot-cli/*/*"),
        *ours("copilot-cli/session-state", "copilot-cli/damaged.jsonl"),
    ]


class TestKimi(FormatContract):
    name = "kimi"
    writes = False
    samples = [
        *shared("kimi-cli/*", "kimi-code/*.jsonl"),
        *ours("kimi/dot-kimi", "kimi/dot-kimi-code", "kimi/only-wire", "kimi/damaged.jsonl"),
    ]


class TestGoose(FormatContract):
    name = "goose"
    writes = False
    samples = [*shared("goose/*.jsonl"), *ours("goose/20250615_3.jsonl", "goose/export.json")]


class TestCline(FormatContract):
    name = "cline"
    writes = False
    samples = [*shared("cline"), *ours("cline/data", "cline/globalStorage")]
