"""Copilot CLI: a file of our own beside others in its folder of hooks."""

from __future__ import annotations

import json

from turnlog.hooks import TIMEOUT_S, AgentFolder, HookedAgent, HookEvent, HookFile
from turnlog.hooks.call import call

_NAME = "copilot-cli"
_EVENTS = (
    HookEvent("userPromptSubmitted", "begin"),
    HookEvent("postToolUse", "tool"),
    HookEvent("agentStop", "end"),
    HookEvent("sessionEnd", "leave"),
)


def _render(program: str, home: str) -> str:
    hooks = {
        event.name: [{"type": "command", "bash": call(program, _NAME, event.name, home), "timeoutSec": TIMEOUT_S}]
        for event in _EVENTS
    }
    return json.dumps({"version": 1, "hooks": hooks}, indent=2) + "\n"


AGENT = HookedAgent(
    _NAME,
    "Copilot CLI",
    "1.0.102",
    folder=AgentFolder(".copilot", "COPILOT_HOME"),
    file=HookFile("hooks/turnlog.json", None, render=_render),
    events=_EVENTS,
)
