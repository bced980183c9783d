"""Every format keeps the contract, over files of its agent: those in this folder, and public ones that are at hand."""

from __future__ import annotations

from pathlib import Path

from tests.public import public
from turnlog.testing import FormatContract

HERE = Path(__file__).parent


def ours(*names: str) -> list[Path]:
    """Files that agents wrote for this, and composed ones of what cannot be found in public."""
    return [HERE / "agents" / name for name in names]


class TestClaudeCode(FormatContract):
    name = "claude-code"
    samples = [
        *ours("claude-code/recorded/projects", "claude-code/recorded-2.1.325/projects"),
        *public("claude-code/*.jsonl", "claude-code/subagent-layout"),
    ]


class TestCodex(FormatContract):
    name = "codex"
    samples = [*ours("codex/recorded/sessions"), *public("codex/*.jsonl", "codex/codexbar-fork/*")]


class TestGeminiCli(FormatContract):
    name = "gemini-cli"
    samples = [*ours("gemini-cli/recorded/tmp"), *public("gemini-cli/*.json", "gemini-cli/*.jsonl")]


class TestOpencode(FormatContract):
    name = "opencode"
    samples = [
        *ours("opencode/recorded"),
        *public("opencode/*.json", "opencode/*.jsonl", "opencode/agentsessions-storage/*"),
    ]


class TestPi(FormatContract):
    name = "pi"
    samples = [*ours("pi/recorded/sessions"), *public("pi/*.jsonl")]


class TestA3s(FormatContract):
    name = "a3s"
    samples = sorted((HERE / "seeds" / "a3s").iterdir())


class TestClaw(FormatContract):
    name = "claw"
    samples = [*sorted((HERE / "seeds" / "claw").glob("*/workspace")), HERE / "seeds" / "claw" / "legacy"]


class TestQwenCode(FormatContract):
    name = "qwen-code"
    writes = False
    samples = [*public("qwen-code/*.jsonl"), *ours("qwen-code/orchard.jsonl", "qwen-code/damaged.jsonl")]


class TestCopilotCli(FormatContract):
    name = "copilot-cli"
    writes = False
    samples = [
        *public("copilot-cli/*.jsonl", "copilot-cli/*/*"),
        *ours("copilot-cli/session-state", "copilot-cli/damaged.jsonl"),
    ]


class TestKimi(FormatContract):
    name = "kimi"
    writes = False
    samples = [
        *public("kimi-cli/*", "kimi-code/*.jsonl"),
        *ours("kimi/dot-kimi", "kimi/dot-kimi-code", "kimi/only-wire", "kimi/damaged.jsonl"),
    ]


class TestGoose(FormatContract):
    name = "goose"
    writes = False
    samples = [*public("goose/*.jsonl"), *ours("goose/20250615_3.jsonl", "goose/export.json")]


class TestCrush(FormatContract):
    name = "crush"
    writes = False
    samples = ours("crush/.crush/crush.db")


class TestCursorCli(FormatContract):
    name = "cursor-cli"
    writes = False
    samples = ours("cursor-cli/chats", "cursor-cli/projects")


class TestDroid(FormatContract):
    name = "droid"
    writes = False
    samples = [*public("droid/sessions"), *ours("droid/-home-ada-orchard")]


class TestCline(FormatContract):
    name = "cline"
    writes = False
    samples = [*public("cline"), *ours("cline/data", "cline/globalStorage")]


class TestAider(FormatContract):
    name = "aider"
    writes = False
    samples = [*ours("aider/shop")]
