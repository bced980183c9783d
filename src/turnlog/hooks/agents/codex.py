"""Codex: entries in its file of hooks. It runs one only when its user trusts it, and knows it by its place."""

from __future__ import annotations

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, HookFile, HookSwitch

AGENT = HookedAgent(
    "codex",
    "Codex",
    "0.166.0",
    folder=AgentFolder(".codex", "CODEX_HOME"),
    file=HookFile(
        "hooks.json", ".codex/hooks.json", top_keys=frozenset({"description", "hooks"}), is_strict=True,
        keeps_places=True,
    ),
    events=(
        HookEvent("UserPromptSubmit", "begin"),
        HookEvent("PostToolUse", "tool"),
        HookEvent("Stop", "end"),
    ),
    switches=(
        HookSwitch("features.hooks", False, "~/config.toml", "./.codex/config.toml", "/etc/codex/managed_config.toml"),
        HookSwitch("allow_managed_hooks_only", True, "/etc/codex/requirements.toml"),
    ),
    trusts=True,
    shell_variable="CODEX_THREAD_ID",
    session_variable="CODEX_THREAD_ID",
    takes_context=True,
    has_turns=True,
    after="start it anew; it asks whether you trust the new hooks, or type `/hooks`",
)  # fmt: skip
