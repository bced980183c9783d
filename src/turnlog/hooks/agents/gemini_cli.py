"""Gemini CLI: entries in its settings, which may have comments. It counts in milliseconds."""

from __future__ import annotations

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, HookFile, HookSwitch

_READS = (
    "read_file|read_many_files|list_directory|glob|grep_search|search_file_content|google_web_search|web_fetch"
    "|write_todos|ask_user|get_internal_docs|activate_skill"
)
_FILES = ("~/settings.json", "./.gemini/settings.json", "/etc/gemini-cli/settings.json")

AGENT = HookedAgent(
    "gemini-cli",
    "Gemini CLI",
    "0.61.0",
    folder=AgentFolder("", "GEMINI_CLI_HOME", ".gemini"),
    file=HookFile(
        "settings.json", ".gemini/settings.json", syntax="commented", timeout_unit="ms", hook_name="turnlog"
    ),
    events=(
        HookEvent("BeforeAgent", "begin"),
        HookEvent("AfterTool", "tool", f"^(?!({_READS})$)"),
        HookEvent("AfterAgent", "end"),
        HookEvent("SessionEnd", "leave"),
    ),
    switches=(
        HookSwitch("hooksConfig.enabled", False, *_FILES),
        HookSwitch("hooksConfig.disabled", "turnlog", *_FILES),
    ),
    shell_variable="GEMINI_CLI",
)  # fmt: skip
