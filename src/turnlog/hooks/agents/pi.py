"""pi: an extension of our own, which runs inside it."""

from __future__ import annotations

import json

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, OwnHookFile
from turnlog.hooks.ownfile import TELL, header, marked

_EXTENSION = """
const session = (ctx: any) => ({
  session_id: ctx.sessionManager.getSessionId(),
  transcript_path: ctx.sessionManager.getSessionFile(),
  cwd: ctx.cwd,
})

export default function (pi: any) {
  pi.on("before_agent_start", async (_event: any, ctx: any) => {
    await tell("before_agent_start", () => ({ ...session(ctx), parent_id: ctx.sessionManager.getLeafId() }))
  })
  pi.on("tool_result", async (event: any, ctx: any) => {
    if (reads.has(event?.toolName)) return
    await tell("tool_result", () => ({
      ...session(ctx),
      tool_name: event.toolName,
      tool_input: { file_path: event.input?.path },
      tool_response: { isError: event.isError },
    }))
  })
  pi.on("agent_end", async (event: any, ctx: any) => {
    const interrupted = event?.messages?.some?.((message: any) => message?.stopReason === "aborted")
    await tell("agent_end", () => ({ ...session(ctx), interrupted }))
  })
}
"""
_READS = ["read", "grep", "find", "ls"]


def _render(program: str, home: str) -> str:
    tell = TELL.replace("(event, payload)", "(event: string, payload: () => any): Promise<void>")
    reads = f"const reads = new Set({json.dumps(_READS)})"
    return marked("\n".join([*header(program, "pi", home), reads, tell.strip(), _EXTENSION]))


AGENT = HookedAgent(
    "pi",
    "pi",
    "0.74.2, 0.87.1",
    folder=AgentFolder(".pi/agent", "PI_CODING_AGENT_DIR"),
    file=OwnHookFile("extensions/turnlog.ts", ".pi/extensions/turnlog.ts", _render),
    events=(
        HookEvent("before_agent_start", "begin"),
        HookEvent("tool_result", "tool"),
        HookEvent("agent_end", "end"),
    ),
    shell_variable="PI_CODING_AGENT",
    project_needs="from 0.79 on it is loaded only in a project that you trust: say so when pi asks, or give --approve",
)
