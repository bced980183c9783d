"""The hooks that Codex trusts: a hash of each, under the path of its file and its place there, in a file of its own."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from turnlog.errors import Invalid
from turnlog.hooks import HookedAgent
from turnlog.hooks.entries import hook_entries
from turnlog.interop.value import fields
from turnlog.log.digest import sha256
from turnlog.machine.settings.toml import table_at, toml_value, with_table, without_table


def config_path(folder: str) -> str:
    """The file with the trusted hooks of an agent, also of those of a project, which cannot trust itself."""
    return os.path.join(folder, "config.toml")


def trust_hashes(settings: Any, agent: HookedAgent, path: str) -> dict[str, str]:
    """The hash of each hook of ours in the settings, by the name under which Codex looks for it."""
    by_place: dict[str, str] = {}
    # Links to its folder are followed, one to the file is not.
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for entry in hook_entries(settings, agent):
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", entry.event).lower()
        group = settings["hooks"][entry.event][entry.group]
        hook = group["hooks"][entry.number]
        identity = {"event_name": event, "hooks": [{"async": False, **hook}]}
        if "matcher" in group:
            identity["matcher"] = group["matcher"]
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        by_place[f"{path}:{event}:{entry.group}:{entry.number}"] = f"sha256:{sha256(text.encode()).hexdigest()}"
    return by_place


def is_trusted(config: str, hashes: dict[str, str]) -> bool:
    """Whether the user trusts all hooks with these hashes."""
    state = fields(table_at(toml_value(config), ("hooks", "state")))
    return all(table_at(state, (key, "trusted_hash")) == digest for key, digest in hashes.items())


def with_trust(config: str, hashes: dict[str, str]) -> str:
    """The configuration in which the hooks with these hashes are trusted."""
    for key, digest in hashes.items():
        config = with_table(config, ("hooks", "state", key), {"trusted_hash": digest})
    return config


def without_trust(config: str, hashes: dict[str, str]) -> str:
    """The configuration without these hashes. One that is written in another way stays: it does no harm."""
    for key, digest in hashes.items():
        if table_at(toml_value(config), ("hooks", "state", key)) == {"trusted_hash": digest}:
            try:
                config = without_table(config, ("hooks", "state", key))
            except Invalid:
                continue
    return config
