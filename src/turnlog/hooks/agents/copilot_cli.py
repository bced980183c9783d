"""Copilot CLI: a file of our own beside others in its folder of hooks."""

from __future__ import annotations

import json

from turnlog.hooks import TIMEOUT_S, AgentFolder, HookedAgent, HookEvent, OwnHookFile
from turnlog.hooks.call import hook_command

_NAME = "copilot-cli"
_EVENTS = (
    HookEvent("userPromptSubmitted", "begin"),
    HookEvent("postToolUse", "tool"),
    HookEvent("agentStop", "end"),
    HookEvent("sessionEnd", "leave"),
)


def _render(program: str, home: str) -> str:
    hooks = {
        event.name: [
            {"type": "command", "bash": hook_command(program, _NAME, event.name, home), "timeoutSec": TIMEOUT_S}
        ]
        for event in _EVENTS
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


AGENT = HookedAgent(
    _NAME,
    "Copilot CLI",
    "1.0.102",
    folder=AgentFolder(".copilot", "COPILOT_HOME"),
    file=OwnHookFile("hooks/turnlog.json", None, _render),
    events=_EVENTS,
)
