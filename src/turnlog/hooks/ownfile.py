"""Files of our own: code that runs inside an agent, small, without a throw, and marked, or a list of hooks."""

from __future__ import annotations

import json
import re
from typing import Any

from turnlog.errors import AlreadyExists
from turnlog.hooks import TIMEOUT_S, HookedAgent, OwnHookFile
from turnlog.hooks.call import HookCall, parse_hook_command
from turnlog.hooks.filehooks import InstalledHooks
from turnlog.hooks.places import HookPlaces
from turnlog.log.digest import sha256
from turnlog.machine.edit import FileEdit, imprint_of
from turnlog.machine.replace import read_bytes, text_of

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
_MARK = "// Written by `turnlog hooks install`; `turnlog hooks uninstall` removes it. "
_MARKED = re.compile(re.escape(_MARK) + r"([0-9a-f]{16})\n")
_PROGRAM = re.compile(r"^const program = (\".*\")$", re.MULTILINE)
_HOME = re.compile(r"^const home = (\".*\")$", re.MULTILINE)


def marked(text: str) -> str:
    """The text behind a line that says whose it is, with a digest that shows whether anybody changed the text."""
    return f"{_MARK}{_digest(text)}\n{text}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def header(program: str, agent: str, home: str) -> list[str]:
    """The constants that the code needs."""
    values = {"program": program, "agent": agent, "home": home, "timeout": TIMEOUT_S * 1000}
    return [f"const {name} = {json.dumps(value)}" for name, value in values.items()]


def call_in(text: str, agent: str) -> HookCall | None:
    """The call in a file which any version of ours wrote, and nobody changed; None for any other file."""
    return _call_in_list(text, agent) if text.startswith("{") else _call_in_code(text)


def _call_in_code(text: str) -> HookCall | None:
    mark, program, home = _MARKED.match(text), _PROGRAM.search(text), _HOME.search(text)
    if mark is None or program is None or _digest(text[mark.end() :]) != mark[1]:
        return None
    return HookCall(json.loads(program[1]), json.loads(home[1]) if home is not None else "")


def _call_in_list(text: str, agent: str) -> HookCall | None:
    """The call in a JSON file with nothing but our hooks, as `agents/copilot_cli.py` writes it."""
    try:
        settings: Any = json.loads(text)
        hooks = [hook for event in settings["hooks"].values() for hook in event]
        calls = {parse_hook_command(hook["bash"], agent) for hook in hooks}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_whole = set(settings) == {"version", "hooks"} and all(
        set(hook) == {"type", "bash", "timeoutSec"} for hook in hooks
    )
    return calls.pop() if is_whole and len(calls) == 1 else None


class OwnFileHooks:
    """Our hooks of an agent that runs a file of ours: see `FileHooks`."""

    def __init__(self, agent: HookedAgent, file: OwnHookFile, places: HookPlaces, scope: str) -> None:
        self.path = places.file(agent, scope)
        self._agent = agent
        self._file = file
        self._places = places

    def plan_install(self, program: str, *, trust: bool) -> list[FileEdit]:
        """See `FileHooks`. No agent asks for trust in a file of ours."""
        before = read_bytes(self.path)
        after = self._file.render(program, self._places.target_home)
        if before is not None and call_in(before.decode(errors="replace"), self._agent.name) is None:
            raise AlreadyExists(f"{self.path} is there, and not as we wrote it", hint="move it away, then again")
        imprint = imprint_of(self._places.imprints, self.path, None, after)
        return [FileEdit(self._agent.name, self.path, before, after.encode(), imprint)]

    def plan_uninstall(self) -> list[FileEdit]:
        """See `FileHooks`. A file that somebody changed stays."""
        before = read_bytes(self.path)
        if before is None or call_in(text_of(self.path, before), self._agent.name) is None:
            return []
        return [FileEdit(self._agent.name, self.path, before, None)]

    def installed(self) -> InstalledHooks:
        """See `FileHooks`."""
        text = text_of(self.path, read_bytes(self.path))
        call = call_in(text, self._agent.name)
        if call is None:
            return InstalledHooks()
        return InstalledHooks(call.program, call.home, self._file.render(call.program, call.home) == text)
