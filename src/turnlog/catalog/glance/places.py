"""Where the agents keep their sessions: the same folders as in their formats, without loading those."""

from __future__ import annotations

import os
from collections.abc import Mapping


def places(home: str, environ: Mapping[str, str], workspace: str) -> list[tuple[str, str]]:
    """Agents and their folders, existing or not, for a user in this workspace."""

    def base(variable: str, *path: str) -> str:
        return environ.get(variable) or os.path.join(home, *path)

    data = base("XDG_DATA_HOME", ".local", "share")
    codex, copilot = base("CODEX_HOME", ".codex"), base("COPILOT_HOME", ".copilot")
    cline = environ.get("CLINE_DATA_DIR") or os.path.join(base("CLINE_DIR", ".cline"), "data")
    qwen = environ.get("QWEN_RUNTIME_DIR") or base("QWEN_HOME", ".qwen")
    goose = os.path.join(environ["GOOSE_PATH_ROOT"], "data") if environ.get("GOOSE_PATH_ROOT") else f"{data}/goose"
    config = base("XDG_CONFIG_HOME", ".config")
    cursors = [environ.get("CURSOR_DATA_DIR"), environ.get("CURSOR_CONFIG_DIR"), f"{home}/.cursor", f"{config}/cursor"]
    folders = [
        ("claude-code", os.path.join(base("CLAUDE_CONFIG_DIR", ".claude"), "projects")),
        ("codex", os.path.join(codex, "sessions")),
        ("codex", os.path.join(codex, "archived_sessions")),
        ("gemini-cli", os.path.join(environ.get("GEMINI_CLI_HOME") or home, ".gemini", "tmp")),
        ("a3s", os.path.join(workspace, ".a3s", "sessions")),
        ("a3s", os.path.join(home, ".a3s", "sessions")),
        ("aider", os.path.join(workspace, ".aider.chat.history.md")),
        ("claw", os.path.join(workspace, ".claw", "sessions")),
        ("claw", os.path.join(workspace, ".claude", "sessions")),
        ("claw", os.path.join(base("CLAW_CONFIG_HOME", ".claw"), "sessions")),
        ("cline", environ.get("CLINE_SESSION_DATA_DIR") or os.path.join(cline, "sessions")),
        *(("cline", os.path.join(home, place, "globalStorage/saoudrizwan.claude-dev/tasks")) for place in _EDITORS),
        ("copilot-cli", os.path.join(copilot, "session-state")),
        ("copilot-cli", os.path.join(copilot, "history-session-state")),
        ("crush", base("CRUSH_GLOBAL_DATA", os.path.join(data, "crush"))),
        ("crush", os.path.join(workspace, ".crush")),
        *(("cursor-cli", os.path.join(one, name)) for one in filter(None, cursors) for name in _CURSOR),
        ("droid", os.path.join(environ.get("FACTORY_HOME_OVERRIDE") or home, ".factory", "sessions")),
        ("goose", os.path.join(goose, "sessions")),
        ("kimi", os.path.join(base("KIMI_SHARE_DIR", ".kimi"), "sessions")),
        ("kimi", os.path.join(base("KIMI_CODE_HOME", ".kimi-code"), "sessions")),
        ("opencode", os.path.join(data, "opencode")),
        ("owlen", os.path.join(workspace, ".owlen", "checkpoints")),
        ("pi", os.path.join(base("PI_CODING_AGENT_DIR", ".pi", "agent"), "sessions")),
        ("qwen-code", os.path.join(qwen, "projects")),
        ("qwen-code", os.path.join(qwen, "tmp")),
        ("rho", os.path.join(base("RHO_HOME", ".rho"), "sessions")),
        ("sofos", os.path.join(workspace, ".sofos", "sessions")),
    ]
    if environ.get("APPDATA") and not environ.get("GOOSE_PATH_ROOT"):
        folders.append(("goose", os.path.join(environ["APPDATA"], "Block", "goose", "data", "sessions")))
    return list(dict.fromkeys(folders))


_CURSOR = ("chats", "acp-sessions", "projects")
_EDITORS = (
    ".config/Code/User",
    "Library/Application Support/Code/User",
    "AppData/Roaming/Code/User",
    ".vscode-server/data/User",
)
