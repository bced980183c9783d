"""A complete small coding agent on turnlog: tools bash, read and write, in a folder of your choice.

python examples/agent.py "make a greeting"                        # a scripted model: no key, no network
python examples/agent.py --provider anthropic "fix the tests"     # or openai, gemini: needs its SDK and a key
python examples/agent.py                                          # killed half-way? goes on where it was
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import turnlog
from turnlog.wire import dialect

PROVIDERS = {
    "anthropic": ("anthropic", "Anthropic", "messages.create", "claude-sonnet-5-5"),
    "openai": ("openai", "OpenAI", "responses.create", "gpt-5"),
    "gemini": ("google.genai", "Client", "models.generate_content", "gemini-2.5-pro"),
}
SYSTEM = "You are a careful coding agent. Work in the current folder with the tools, then say what you did."


def bash(folder: Path, command: str) -> str:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, timeout=120)
    return f"{done.stdout}{done.stderr}"[-20_000:] + (f"\n[exit code {done.returncode}]" if done.returncode else "")


TOOLS: dict[str, Callable[..., str]] = {
    "bash": bash,
    "read": lambda folder, path: (folder / path).read_text(),
    "write": lambda folder, path, text: f"wrote {(folder / path).write_text(text)} characters",
}
SCHEMAS = [
    {
        "name": name,
        "description": f"{name} in the working folder",
        "input_schema": {"type": "object", "properties": {key: {"type": "string"} for key in keys}, "required": keys},
    }
    for name, keys in {"bash": ["command"], "read": ["path"], "write": ["path", "text"]}.items()
]
SCRIPT = [
    ("write", {"path": "greet.py", "text": 'print("hello from", __file__.rsplit("/")[-1])\n'}),
    ("bash", {"command": "python3 greet.py > greeting.txt && sleep 0.2 && echo done"}),
    ("read", {"path": "greeting.txt"}),
]


def scripted(request: dict[str, Any]) -> dict[str, Any]:
    """A model that follows the script, and repeats a step that failed. It answers as Anthropic's would."""
    blocks = [block for message in request["messages"] for block in message["content"]]
    step = sum(block["type"] == "tool_result" and not block.get("is_error") for block in blocks)
    head = {"id": f"msg_{len(blocks)}", "usage": {"input_tokens": 50 * len(blocks), "output_tokens": 20}}
    if step >= len(SCRIPT):
        return {**head, "content": [{"type": "text", "text": "The greeting is ready."}], "stop_reason": "end_turn"}
    call = {"type": "tool_use", "id": f"toolu_{len(blocks)}", "name": SCRIPT[step][0], "input": SCRIPT[step][1]}
    return {**head, "content": [{"type": "text", "text": f"Step {step + 1}."}, call], "stop_reason": "tool_use"}


def model(provider: str, name: str | None) -> Callable[[turnlog.Context], turnlog.Message]:
    """A function from a context to the model's answer: the only place that knows a provider."""
    wire: Any = dialect(provider if provider in PROVIDERS else "anthropic")
    module, client_class, path, usual = PROVIDERS.get(provider, ("builtins", "object", "", "scripted"))
    client: Any = getattr(import_module(module), client_class)()

    def ask(context: turnlog.Context) -> turnlog.Message:
        request = wire.request(context, model=name or usual, max_tokens=8192)
        answer = attrgetter(path)(client)(**request) if path else scripted(request)
        return wire.draft(answer, context=context)

    return ask


def work(s: turnlog.Session, folder: Path, ask: Callable[[turnlog.Context], turnlog.Message], pause_s: float) -> str:
    """Answer what the model asks for until it has nothing more to ask. Every step is in the log before the next."""
    for call in s.pending():  # a process before us died here, and what it was doing may be half done
        s.tool_result(call, "interrupted: the agent was killed; look at what is there", is_error=True)
    while (last := s.messages(last=1)[0]).role != "assistant" or last.stop == "tool_use":
        s.append(ask(s.context()))
        for call in s.pending():
            print(f"{call.name} {call.input}", flush=True)
            time.sleep(pause_s)
            try:
                s.tool_result(call, TOOLS[call.name](folder, **call.input))
            except Exception as error:
                s.tool_result(call, f"{type(error).__name__}: {error}", is_error=True)
    return "\n".join(block.text for block in last.blocks if isinstance(block, turnlog.Text))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("task", nargs="?", help="what to do; left out, the last session of the folder goes on")
    options.add_argument("--folder", type=Path, default=Path(), help="where to work")
    options.add_argument("--provider", default="scripted", choices=["scripted", *PROVIDERS])
    options.add_argument("--model", help="another one than usual")
    options.add_argument("--pause", type=float, default=0, metavar="SECONDS", help="before each tool, to watch")
    given = options.parse_args()
    with turnlog.open() as home:
        if given.task is None:
            s = home.resume(workspace=given.folder)
        else:
            s = home.create(workspace=given.folder, agent="example", title=given.task)
            s.set("system", SYSTEM)
            s.set("tools", SCHEMAS)
            s.user(given.task)
        if not s.messages(last=1):
            raise SystemExit("there is nothing to go on with: give it a task")
        print(work(s, given.folder, model(given.provider, given.model), given.pause))


if __name__ == "__main__":
    main()
