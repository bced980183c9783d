"""Two agents whose sessions are only read here, and go on there: Kimi Code and Cline."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agents.agent import Agent
from tests.agents.provider import Provider


class Kimi(Agent):
    name = "kimi"
    package = "@moonshot-ai/kimi-code"
    command = "kimi"
    model = "m"

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".kimi-code"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.toml").write_text(
            f'default_model = "{self.model}"\n'
            f'[providers.fake]\ntype = "openai"\nbase_url = "{provider.url}/v1"\napi_key = "x"\n'
            f'[models.{self.model}]\nprovider = "fake"\nmodel = "{self.model}"\nmax_context_size = 100000\n'
        )

    def run(self, prompt: str) -> list[str]:
        return ["-p", prompt]


class Cline(Agent):
    name = "cline"
    package = "cline"
    command = "cline"
    model = "m"

    def configure(self, home: Path, provider: Provider) -> None:
        folder = home / ".cline/data/settings"
        folder.mkdir(parents=True, exist_ok=True)
        about = {"provider": "openai-compatible", "apiKey": "x", "model": self.model, "baseUrl": f"{provider.url}/v1"}
        known = {"settings": about, "updatedAt": "2026-11-16T00:00:00.000Z", "tokenSource": "manual"}
        settings = {"version": 1, "lastUsedProvider": about["provider"], "providers": {about["provider"]: known}}
        (folder / "providers.json").write_text(json.dumps(settings))

    def run(self, prompt: str) -> list[str]:
        return [prompt]


GUESTS: dict[str, Agent] = {agent.name: agent for agent in (Kimi(), Cline())}
