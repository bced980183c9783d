"""Files of our own that run inside an agent: small, without a throw, and marked, so that we know them again."""

from __future__ import annotations

import json
import re
from typing import Any

from turnlog.hooks import TIMEOUT_S
from turnlog.hooks.call import home_in, program_in
from turnlog.log.digest import sha256

TELL = """
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"

// Waits for the program, but not for long; whatever goes wrong is nobody's business here.
const tell = (event, payload) =>
  new Promise((resolve) => {
    try {
      if (!existsSync(program)) return resolve()
      const clean = { PYTHONPATH: "", PYTHONHOME: "", PYTHONSAFEPATH: "1" }
      const child = spawn(program, ["hook", agent, event], {
        detached: true,
        stdio: ["pipe", "ignore", "ignore"],
        env: { ...process.env, ...clean, ...(home ? { TURNLOG_HOME: home } : {}) },
      })
      const timer = setTimeout(() => resolve(), timeout)
      const done = () => {
        clearTimeout(timer)
        resolve()
      }
      child.on("error", done)
      child.on("exit", done)
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify({ ...payload(), pid: process.pid }))
      child.unref()
    } catch {
      resolve()
    }
  })
"""
_MARK = re.compile(r"// Written by `turnlog hooks install`; `turnlog hooks uninstall` removes it\. ([0-9a-f]{16})\n")
_PROGRAM = re.compile(r"^const program = (\".*\")$", re.MULTILINE)
_HOME = re.compile(r"^const home = (\".*\")$", re.MULTILINE)


def marked(text: str) -> str:
    """The text with a first line that says whose it is, and by which we see whether anybody changed it since."""
    return f"// Written by `turnlog hooks install`; `turnlog hooks uninstall` removes it. {_digest(text)}\n{text}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def header(program: str, agent: str, home: str) -> list[str]:
    """What such a file needs to know."""
    values = {"program": program, "agent": agent, "home": home, "timeout": TIMEOUT_S * 1000}
    return [f"const {name} = {json.dumps(value)}" for name, value in values.items()]


def home_of(text: str) -> str:
    """The home that a file of ours fills; empty for the usual one."""
    if text.startswith("{"):
        return home_in(next(hook["bash"] for event in json.loads(text)["hooks"].values() for hook in event))
    match = _HOME.search(text)
    return json.loads(match[1]) if match is not None else ""


def program_of(text: str, agent: str) -> str | None:
    """The program that a file calls which any version of ours wrote, and nobody changed; None for any other file."""
    if not text.startswith("{"):
        mark, program = _MARK.match(text), _PROGRAM.search(text)
        is_whole = mark is not None and _digest(text[mark.end() :]) == mark[1]
        return json.loads(program[1]) if is_whole and program is not None else None
    try:
        settings: Any = json.loads(text)
        hooks = [hook for event in settings["hooks"].values() for hook in event]
        programs = {program_in(hook["bash"], agent) for hook in hooks}
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    is_whole = set(settings) == {"version", "hooks"} and all(
        set(hook) == {"type", "bash", "timeoutSec"} for hook in hooks
    )
    return programs.pop() if is_whole and len(programs) == 1 else None
