"""Two more agents that are hooked: their turns are looked at and taken back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.agents.agent import Agent
from tests.agents.provider import Provider


class Copilot(Agent):
    name = "copilot-cli"
    package = "@github/copilot"
    command = "copilot"
    model = "gpt-4.1"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {
            "COPILOT_HOME": str(home / ".copilot"),
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": f"{provider.url}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": self.model,
            "COPILOT_ALLOW_ALL": "true",
        }

    def configure(self, home: Path, provider: Provider) -> None:
        (home / ".copilot").mkdir(parents=True, exist_ok=True)

    def run(self, prompt: str) -> list[str]:
        return ["--allow-all-tools", "--allow-all-paths", "-p", prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return [f"--resume={session}", *self.run(prompt)]

    def shell(self, command: str) -> tuple[str, Any]:
        return "bash", {"command": command, "description": "Look around", "mode": "sync", "sessionId": "s1"}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        return "edit", {"path": str(path), "old_str": old, "new_str": new}

    def read(self, path: Path) -> tuple[str, Any]:
        return "view", {"path": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        found = (home / ".copilot/session-state").glob("*/events.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def id_of(self, path: Path) -> str:
        return path.parent.name


class Qwen(Agent):
    name = "qwen-code"
    package = "@qwen-code/qwen-code"
    command = "qwen"
    model = "qwen3-coder-plus"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_MODEL": self.model}

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".qwen"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "openai"}},
            "model": {"name": self.model},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False},
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def run(self, prompt: str) -> list[str]:
        return ["--yolo", "--auth-type", "openai", prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return ["--resume", session, *self.run(prompt)]

    def shell(self, command: str) -> tuple[str, Any]:
        return "run_shell_command", {"command": command, "description": "Look around", "is_background": False}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        return "edit", {"file_path": str(path), "old_string": old, "new_string": new}

    def read(self, path: Path) -> tuple[str, Any]:
        return "read_file", {"file_path": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        found = (home / ".qwen/projects").glob("*/chats/*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def id_of(self, path: Path) -> str:
        return path.stem


MORE: dict[str, Agent] = {agent.name: agent for agent in (Copilot(), Qwen())}
