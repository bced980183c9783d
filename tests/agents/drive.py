"""The agents whose sessions are written and resumed: how each is configured and run, and where its sessions lie."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.agents.agent import Agent
from tests.agents.provider import Provider
from tests.agents.script import Block, Text


def _first(path: Path) -> dict[str, Any]:
    """The first record of a file."""
    with path.open("rb") as file:
        return json.loads(file.readline())


class ClaudeCode(Agent):
    name = "claude-code"
    package = "@anthropic-ai/claude-code"
    command = "claude"
    model = "claude-sonnet-4-5"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {
            "CLAUDE_CONFIG_DIR": str(home / ".claude"),
            "ANTHROPIC_BASE_URL": provider.url,
            "ANTHROPIC_API_KEY": "x",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            # Refused for root otherwise, and tests run in containers.
            "IS_SANDBOX": "1",
        }

    def is_noise(self, role: str, block: Block) -> bool:
        return role == "system" or (isinstance(block, Text) and block.text.startswith("<system-reminder>"))

    def _flags(self) -> list[str]:
        # Without its skills, whose list it would write into every session.
        return ["-p", "--model", self.model, "--dangerously-skip-permissions", "--disable-slash-commands"]

    def run(self, prompt: str) -> list[str]:
        return [*self._flags(), prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return [*self._flags(), "--resume", session, prompt]

    def fork(self, session: str, prompt: str) -> list[str] | None:
        return [*self._flags(), "--resume", session, "--fork-session", prompt]

    def branch(self, session: str, message: str, prompt: str) -> list[str]:
        """Go on after an earlier message of the same session."""
        return [*self._flags(), "--resume", session, "--resume-session-at", message, prompt]

    def answers(self, path: Path) -> list[str]:
        """The messages after which `branch` can go on."""
        records = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
        return [record["uuid"] for record in records if record["type"] == "assistant"]

    def compact(self, session: str) -> list[str]:
        flags = [flag for flag in self._flags() if flag != "--disable-slash-commands"]
        return [*flags, "--resume", session, "/compact"]

    def shell(self, command: str) -> tuple[str, Any]:
        return "Bash", {"command": command, "description": "Look around"}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        return "Edit", {"file_path": str(path), "old_string": old, "new_string": new}

    def read(self, path: Path) -> tuple[str, Any]:
        return "Read", {"file_path": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        return sorted((home / ".claude/projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_mtime_ns)

    def id_of(self, path: Path) -> str:
        return path.stem


class Codex(Agent):
    name = "codex"
    package = "@openai/codex"
    command = "codex"
    model = "gpt-5.5"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {"CODEX_HOME": str(home / ".codex"), "FAKE_KEY": "x"}

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".codex"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "instructions.md").write_text("You are a coding agent.\n")
        (folder / "config.toml").write_text(
            f"""model = "{self.model}"
model_instructions_file = "{folder}/instructions.md"
model_provider = "fake"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.fake]
name = "fake"
base_url = "{provider.url}/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false

[features]
apps = false
plugins = false

[skills.bundled]
enabled = false
"""
        )

    def is_noise(self, role: str, block: Block) -> bool:
        own = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
        return role == "system" or (isinstance(block, Text) and block.text.startswith(own))

    def run(self, prompt: str) -> list[str]:
        return ["exec", "--skip-git-repo-check", prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return ["exec", "--skip-git-repo-check", "resume", session, prompt]

    def fork(self, session: str, prompt: str) -> list[str] | None:
        return ["exec", "--skip-git-repo-check", "fork", session, prompt]

    def ask(
        self, home: Path, provider: Provider, workspace: Path, method: str, params: dict[str, Any]
    ) -> dict[str, Any]:
        """What its app server says: `thread/list` is the list people resume from, `thread/read` what they see then."""
        hello = {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "tests", "version": "0"}}}
        question = {"id": 2, "method": method, "params": params}
        messages = [hello, {"method": "initialized"}, question]
        return self.converse(home, provider, workspace, ["app-server"], messages)[1]["result"]

    def run_with_helpers(self, prompt: str) -> list[str]:
        # A model it does not know is offered its subagents right away; others have to look for the tool first.
        return ["exec", "--skip-git-repo-check", "--model", "gpt-5", prompt]

    def spawned(self, output: str) -> str:
        """The subagent that a tool's output says was started."""
        return json.loads(output)["agent_id"]

    def compacting(self, session: str, prompt: str, limit: int) -> list[str]:
        """Resume with so small a limit that it first compacts."""
        return ["-c", f"model_auto_compact_token_limit={limit}", *self.resume(session, prompt)]

    def with_image(self, prompt: str, image: str) -> list[str] | None:
        return ["exec", "--skip-git-repo-check", "--image", image, "--", prompt]

    def shell(self, command: str) -> tuple[str, Any]:
        return "exec_command", {"cmd": command, "login": False}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        lines = ["*** Begin Patch", f"*** Update File: {path}", "@@", f"-{old}", f"+{new}", "*** End Patch"]
        return "apply_patch", "\n".join(lines)

    def read(self, path: Path) -> tuple[str, Any]:
        return "exec_command", {"cmd": f"cat {path}", "login": False}

    def sessions(self, home: Path) -> list[Path]:
        found = (home / ".codex/sessions").glob("*/*/*/rollout-*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def latest(self, home: Path) -> str:
        main = [path for path in self.sessions(home) if not _first(path)["payload"].get("parent_thread_id")]
        return self.id_of(main[-1])

    def id_of(self, path: Path) -> str:
        return path.stem[-36:]


class Gemini(Agent):
    name = "gemini-cli"
    package = "@google/gemini-cli"
    command = "gemini"
    model = "gemini-2.5-pro"
    compression_threshold = 0.5
    """The share of the model's context after which it compacts."""

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "x",
            "GOOGLE_GEMINI_BASE_URL": provider.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        }

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".gemini"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            # On by default, and then a session that was resumed in another minute than it began is deleted by the
            # next start: the empty second file that resuming makes is taken for its remains.
            "general": {
                "enableAutoUpdate": False,
                "enableAutoUpdateNotification": False,
                "sessionRetention": {"enabled": False},
            },
            "model": {"name": self.model, "compressionThreshold": self.compression_threshold},
        }
        (folder / "settings.json").write_text(json.dumps(settings))

    def is_noise(self, role: str, block: Block) -> bool:
        return role == "system" or (isinstance(block, Text) and block.text.startswith("<session_context>"))

    def listing(self) -> list[str] | None:
        return ["--list-sessions"]

    def run(self, prompt: str) -> list[str]:
        return ["--yolo", "--model", self.model, "-p", prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return ["--yolo", "--model", self.model, "--resume", session, "-p", prompt]

    def with_image(self, prompt: str, image: str) -> list[str] | None:
        return self.run(f"{prompt} @{image}")

    def shell(self, command: str) -> tuple[str, Any]:
        return "run_shell_command", {"command": command, "description": "Look around"}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        said = {"instruction": "Say it better", "old_string": old, "new_string": new}
        return "replace", {"file_path": str(path), **said}

    def read(self, path: Path) -> tuple[str, Any]:
        return "read_file", {"file_path": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        # The empty second file (see above) is not where the session goes on.
        found = sorted((home / ".gemini/tmp").glob("*/chats/session-*.json*"), key=lambda path: path.stat().st_size)
        whole = {self.id_of(path): path for path in found}
        return sorted(whole.values(), key=lambda path: path.stat().st_mtime_ns)

    def id_of(self, path: Path) -> str:
        return _first(path)["sessionId"]


class Opencode(Agent):
    name = "opencode"
    package = "opencode-ai"
    command = "opencode"
    model = "fake/m"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".config/opencode"
        folder.mkdir(parents=True, exist_ok=True)
        model = {
            "name": "m",
            "attachment": True,
            "reasoning": True,
            "limit": {"context": 200_000, "output": 8_000},
            "modalities": {"input": ["text", "image"], "output": ["text"]},
            "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
        }
        settings = {
            "model": self.model,
            "small_model": self.model,
            "autoupdate": False,
            "share": "disabled",
            "permission": {"edit": "allow", "bash": "allow", "webfetch": "allow"},
            "provider": {
                "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "fake",
                    "options": {"baseURL": f"{provider.url}/v1", "apiKey": "x"},
                    "models": {"m": model},
                }
            },
        }
        (folder / "opencode.json").write_text(json.dumps(settings))

    def run(self, prompt: str) -> list[str]:
        # Word by word: an argument with a space in it arrives at the model in quotes.
        return ["run", "--", *prompt.split(" ")]

    def resume(self, session: str, prompt: str) -> list[str]:
        return ["run", "-s", session, "--", *prompt.split(" ")]

    def fork(self, session: str, prompt: str) -> list[str] | None:
        return ["run", "-s", session, "--fork", "--", *prompt.split(" ")]

    def with_image(self, prompt: str, image: str) -> list[str] | None:
        return ["run", "--file", image, "--", *prompt.split(" ")]

    def listing(self) -> list[str] | None:
        return ["session", "list", "--format", "json"]

    def export(self, session: str) -> list[str]:
        return ["export", session]

    def shell(self, command: str) -> tuple[str, Any]:
        return "bash", {"command": command}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        return "edit", {"filePath": str(path), "oldString": old, "newString": new}

    def read(self, path: Path) -> tuple[str, Any]:
        return "read", {"filePath": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        return [path for path in [home / ".local/share/opencode/opencode.db"] if path.exists()]

    def latest(self, home: Path) -> str:
        with closing(sqlite3.connect(f"file:{self.sessions(home)[0]}?mode=ro", uri=True)) as database:
            query = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC, id LIMIT 1"
            return database.execute(query).fetchone()[0]

    def take_in(self, home: Path, provider: Provider, workspace: Path, path: Path) -> str:
        self.invoke(home, provider, workspace, ["import", str(path)])
        return json.loads(path.read_text())["info"]["id"]


class Pi(Agent):
    name = "pi"
    package = "@earendil-works/pi-coding-agent"
    command = "pi"
    model = "m"

    def environment(self, home: Path, provider: Provider) -> dict[str, str]:
        return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".pi/agent"
        folder.mkdir(parents=True, exist_ok=True)
        model = {
            "id": self.model,
            "name": self.model,
            "reasoning": True,
            "input": ["text", "image"],
            "contextWindow": 200_000,
            "maxTokens": 8_000,
            "cost": {"input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75},
        }
        fake = {"baseUrl": f"{provider.url}/v1", "api": "openai-completions", "apiKey": "x", "models": [model]}
        (folder / "models.json").write_text(json.dumps({"providers": {"fake": fake}}))
        # Newer ones keep what is short, whatever the model says how much it was, and ask whether a project is trusted.
        settings = {"compaction": {"keepRecentTokens": 1}, "defaultProjectTrust": "always"}
        (folder / "settings.json").write_text(json.dumps(settings))

    def _flags(self) -> list[str]:
        return ["--provider", "fake", "--model", self.model]

    def run(self, prompt: str) -> list[str]:
        return [*self._flags(), "-p", prompt]

    def resume(self, session: str, prompt: str) -> list[str]:
        return [*self._flags(), "--session", session, "-p", prompt]

    def fork(self, session: str, prompt: str) -> list[str] | None:
        return [*self._flags(), "--fork", session, "-p", prompt]

    def with_image(self, prompt: str, image: str) -> list[str] | None:
        return [*self._flags(), "-p", f"@{image}", prompt]

    def shell(self, command: str) -> tuple[str, Any]:
        return "bash", {"command": command}

    def edit(self, path: Path, old: str, new: str) -> tuple[str, Any]:
        return "edit", {"path": str(path), "edits": [{"oldText": old, "newText": new}]}

    def read(self, path: Path) -> tuple[str, Any]:
        return "read", {"path": str(path)}

    def sessions(self, home: Path) -> list[Path]:
        found = (home / ".pi/agent/sessions").glob("*/*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def id_of(self, path: Path) -> str:
        return str(path)


AGENTS: dict[str, Agent] = {agent.name: agent for agent in (ClaudeCode(), Codex(), Gemini(), Opencode(), Pi())}
