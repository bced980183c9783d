"""opencode: a plugin of our own, which runs inside it. A throw there would lose the prompt."""

from __future__ import annotations

import json

from turnlog.hooks import AgentFolder, HookedAgent, HookEvent, OwnHookFile
from turnlog.hooks.ownfile import TELL, header, marked

_PLUGIN = """
const stopped = new Set()

export const Turnlog = async ({ directory }) => ({
  "chat.message": (input, output) =>
    tell("chat.message", () => ({
      session_id: input.sessionID,
      prompt_id: output.message.id,
      cwd: directory,
    })),
  "tool.execute.after": (input, output) =>
    reads.has(input.tool)
      ? undefined
      : tell("tool.execute.after", () => ({
          session_id: input.sessionID,
          cwd: directory,
          tool_name: input.tool,
          tool_input: { file_path: input.args?.filePath, patch: input.args?.patchText },
        })),
  event: ({ event }) => {
    const session = event?.properties?.sessionID
    if (event?.type === "session.error" && event.properties?.error?.name === "MessageAbortedError") stopped.add(session)
    if (event?.type !== "session.idle") return undefined
    const interrupted = stopped.delete(session)
    return tell("session.idle", () => ({ session_id: session, cwd: directory, interrupted }))
  },
})
"""
_READS = ["read", "glob", "grep", "list", "webfetch", "websearch", "codesearch", "todowrite", "todoread", "question"]


def _render(program: str, home: str) -> str:
    reads = f"const reads = new Set({json.dumps(_READS)})"
    return marked("\n".join([*header(program, "opencode", home), reads, TELL.strip(), _PLUGIN]))


AGENT = HookedAgent(
    "opencode",
    "opencode",
    "1.18.33",
    folder=AgentFolder(".config", "XDG_CONFIG_HOME", "opencode"),
    file=OwnHookFile("plugin/turnlog.js", ".opencode/plugin/turnlog.js", _render),
    events=(
        HookEvent("chat.message", "begin"),
        HookEvent("tool.execute.after", "tool"),
        HookEvent("session.idle", "end"),
    ),
    shell_variable="OPENCODE",
)
