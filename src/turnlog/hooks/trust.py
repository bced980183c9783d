"""What Codex trusts: the hash of a hook under the place where it stands, in its configuration."""

from __future__ import annotations

import json
import os
import re
from typing import Any

from turnlog.errors import Invalid
from turnlog.hooks import HookedAgent
from turnlog.hooks.entries import entries
from turnlog.log.digest import sha256
from turnlog.machine.settings import as_object
from turnlog.machine.toml import table_at, toml_value, with_table, without_table

CONFIG = "config.toml"
"""In the folder of its user, also for hooks of a project: no project says by itself that it is trusted."""


def hashes(settings: Any, agent: HookedAgent, path: str) -> dict[str, str]:
    """What has to be trusted so that ours run: the hash of each, by the name under which Codex looks for it."""
    by_place: dict[str, str] = {}
    # Links to its folder are followed, one to the file is not.
    path = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    for one in entries(settings, agent):
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", one.event).lower()
        group = settings["hooks"][one.event][one.group]
        hook = group["hooks"][one.place]
        identity = {"event_name": event, "hooks": [{"async": False, **hook}]}
        if "matcher" in group:
            identity["matcher"] = group["matcher"]
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        by_place[f"{path}:{event}:{one.group}:{one.place}"] = f"sha256:{sha256(text.encode()).hexdigest()}"
    return by_place


def is_trusted(config: str, wanted: dict[str, str]) -> bool:
    """Whether its user has said so of all of them."""
    state = as_object(table_at(toml_value(config), ("hooks", "state")))
    return all(table_at(state, (key, "trusted_hash")) == digest for key, digest in wanted.items())


def trusted(config: str, wanted: dict[str, str]) -> str:
    """The configuration in which they are."""
    for key, digest in wanted.items():
        config = with_table(config, ("hooks", "state", key), {"trusted_hash": digest})
    return config


def untrusted(config: str, gone: dict[str, str]) -> str:
    """The configuration without a word of them. What stands there in another way stays: it does no harm."""
    for key, digest in gone.items():
        if table_at(toml_value(config), ("hooks", "state", key)) == {"trusted_hash": digest}:
            try:
                config = without_table(config, ("hooks", "state", key))
            except Invalid:
                continue
    return config
