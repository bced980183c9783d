"""Claude Code: entries in its settings."""

from __future__ import annotations

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, HookFile, HookSwitch

_READS = "Read|Glob|Grep|LS|NotebookRead|WebFetch|WebSearch|TodoWrite|TodoRead|ToolSearch|AskUserQuestion"
_TOOLS = f"^(?!({_READS})$)"
"""Every tool but those that only look: what another program or a later version brings may write."""
_MANAGED = ("/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json")

AGENT = HookedAgent(
    "claude-code",
    "Claude Code",
    "2.1.197, 2.1.325",
    folder=AgentFolder(".claude", "CLAUDE_CONFIG_DIR"),
    file=HookFile("settings.json", ".claude/settings.json", takes_bom=True, is_strict=True),
    events=(
        HookEvent("UserPromptSubmit", "begin"),
        HookEvent("PostToolUse", "tool", _TOOLS),
        HookEvent("PostToolUseFailure", "tool", _TOOLS),
        HookEvent("Stop", "end"),
        HookEvent("StopFailure", "end"),
        HookEvent("SessionEnd", "leave"),
    ),
    switches=(
        HookSwitch(
            "disableAllHooks", True,
            "~/settings.json", "./.claude/settings.json", "./.claude/settings.local.json", *_MANAGED,
        ),
        HookSwitch("allowManagedHooksOnly", True, *_MANAGED),
    ),
    folder_variable="CLAUDE_PROJECT_DIR",
    shell_variable="CLAUDECODE",
    takes_context=True,
)  # fmt: skip
