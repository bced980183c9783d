"""Qwen Code: entries in its settings, as in Claude Code's. It counts in milliseconds."""

from __future__ import annotations

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, HookFile, HookSwitch

_READS = "read_file|read_many_files|list_directory|glob|grep_search|web_fetch|todo_write|ask_user_question|skill"

AGENT = HookedAgent(
    "qwen-code",
    "Qwen Code",
    "0.24.4",
    folder=AgentFolder(".qwen", "QWEN_HOME"),
    file=HookFile("settings.json", ".qwen/settings.json", syntax="commented", timeout_unit="ms"),
    events=(
        HookEvent("UserPromptSubmit", "begin"),
        HookEvent("PostToolUse", "tool", f"^(?!({_READS})$)"),
        HookEvent("Stop", "end"),
        HookEvent("SessionEnd", "leave"),
    ),
    switches=(HookSwitch("disableAllHooks", True, "~/settings.json", "./.qwen/settings.json"),),
    shell_variable="QWEN_CODE",
)
