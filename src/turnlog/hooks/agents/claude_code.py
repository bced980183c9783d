"""Claude Code: entries in its settings."""

from __future__ import annotations

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, HookFile, HookSwitch

_READS = "Read|Glob|Grep|LS|NotebookRead|WebFetch|WebSearch|TodoWrite|TodoRead|ToolSearch|AskUserQuestion"
_TOOLS = f"^(?!({_READS})$)"
"""Every tool but those that only look: what another program or a later version brings may write."""
_ESC = b"[Request interrupted by user"
_MANAGED = ("/etc/claude-code/managed-settings.json", "/Library/Application Support/ClaudeCode/managed-settings.json")


def _says_interrupted(written: bytes, turn: str) -> bool:
    """Esc fires no hook; and what is answered to a shell command of the user then goes by the same id of a turn."""
    lines = [line for line in written.split(b"\n") if _ESC in line and turn.encode() in line]
    if not lines:
        return False
    import msgspec

    for line in lines:
        try:
            record = msgspec.json.decode(line)
            first = record["message"]["content"][0]
            is_said = first["type"] == "text" and first["text"].encode().startswith(_ESC)
        except (msgspec.DecodeError, LookupError, TypeError, AttributeError, UnicodeEncodeError):
            continue  # somebody only speaks of it
        if is_said and record.get("promptId") == turn:
            return True
    return False


_KINDS = {
    **dict.fromkeys(("env", "permissions", "statusLine", "sandbox", "attribution"), dict),
    **dict.fromkeys(("enabledPlugins", "extraKnownMarketplaces"), dict),
    **dict.fromkeys(("permissions.allow", "permissions.ask", "permissions.deny", "companyAnnouncements"), list),
    **dict.fromkeys(("model", "apiKeyHelper", "outputStyle", "awsAuthRefresh", "language"), str),
    **dict.fromkeys(("includeCoAuthoredBy", "alwaysThinkingEnabled", "spinnerTipsEnabled"), bool),
    **dict.fromkeys(("enableAllProjectMcpServers", "disableAllHooks"), bool),
    "cleanupPeriodDays": int,
}
"""What it checks before it reads any of a file: tried with each of these."""

AGENT = HookedAgent(
    "claude-code",
    "Claude Code",
    "2.1.197, 2.1.325",
    folder=AgentFolder(".claude", "CLAUDE_CONFIG_DIR"),
    file=HookFile("settings.json", ".claude/settings.json", kinds=_KINDS, takes_bom=True, is_strict=True),
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
    session_variable="CLAUDE_CODE_SESSION_ID",
    takes_context=True,
    says_interrupted=_says_interrupted,
)  # fmt: skip
