"""Who asks. An agent that looks for something must not find its own question, nor what it was told the last time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.ask.query import Filter, parse
from turnlog.errors import NotFound
from turnlog.log.ids import imported_id
from turnlog.machine.environment import environment
from turnlog.machine.folder import workspace_path
from turnlog.mcp.offer import NAME, offered

if TYPE_CHECKING:
    from turnlog.catalog import Card, Catalog
    from turnlog.catalog.index.lookup import EntryMatch

_CLIENTS = {
    "claude-code": "claude-code", "codex": "codex", "gemini": "gemini-cli", "qwen": "qwen-code",
    "opencode": "opencode", "copilot": "copilot-cli",
}  # fmt: skip
"""What an agent calls itself begins with this or has it in it, and what its sessions are called."""
_TAIL = 1 << 20
_NAME_CHARACTERS = 80
_LATELY = 5
"""How many of the newest sessions of an agent may be the one that asks."""
_TOOLS = frozenset(tool["name"] for tool in offered(allow_rewind=True))
_OWN = frozenset(tool for tool in _TOOLS if "_" in tool)
"""Codex writes a tool down without saying whose it is. These are nobody else's; `usage` may be."""


class Caller:
    """The agent at the other end, as far as it says who it is."""

    def __init__(self, client: str) -> None:
        self.client = client
        self._folder = workspace_path(".")

    @property
    def agent(self) -> str:
        """The name of its sessions; empty where it is none that we know."""
        name = self.client.lower()
        return next((agent for word, agent in _CLIENTS.items() if word in name), "")

    def sessions(self, catalog: Catalog, meta: dict[str, Any]) -> list[str]:
        """The ids of its own session: with its agent, and with us."""
        natives = self._natives(catalog, meta)
        ours = {name for native in natives if self.agent for name in self._ours(catalog, native)}
        return sorted(natives | ours)

    def _natives(self, catalog: Catalog, meta: dict[str, Any]) -> set[str]:
        """What its agent calls its session, as far as that can be told."""
        natives = self._told(meta)
        call = meta.get("claudecode/toolUseId")
        if isinstance(call, str) and call and call.isprintable():
            natives |= {card.id for card in self._lately(catalog) if not card.is_ours and _has(card, call.encode())}
        if not natives and self.agent:
            natives = {card.id for card in self._lately(catalog) if card.state == "running"}
        return natives

    def asker(self, catalog: Catalog, meta: dict[str, Any]) -> str:
        """Who asks, as a log says it: the session if only one can be meant, or else the agent, or its client."""
        ids = sorted(self._natives(catalog, meta))
        if self.agent and len(ids) == 1:
            return imported_id(self.agent, ids[0])
        return self.agent or self.client[:_NAME_CHARACTERS]

    def _ours(self, catalog: Catalog, native: str) -> list[str]:
        """What a session of this agent is called here: by its id, or the one that goes on under that."""
        names = [imported_id(self.agent, native)]
        try:
            card = catalog.find(f"{self.agent}:{native}")
        except NotFound:
            return names  # nothing is written yet
        return [*names, card.copy_of] if card.copy_of else names

    def _told(self, meta: dict[str, Any]) -> set[str]:
        ids = [meta.get("threadId"), meta.get("sessionId")]
        if self.agent in ("claude-code", ""):  # another agent may have been started in its shell
            ids.append(environment().get("CLAUDE_CODE_SESSION_ID"))
        return {one for one in ids if isinstance(one, str) and 8 <= len(one) <= 200 and one.isprintable()}

    def _lately(self, catalog: Catalog) -> list[Card]:
        """The newest sessions of this agent in this folder."""
        if not self.agent:
            return []
        cards = catalog.cards(f"agent:{self.agent}", workspace=self._folder, everything=True, limit=_LATELY)
        return [card for card in cards if card.agent == self.agent]


def _has(card: Card, word: bytes) -> bool:
    """Whether the end of a session's file has that in it."""
    try:
        with open(card.path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return word in file.read()
    except OSError:
        return False  # it lies in no file, or is gone


def is_of_ours(tool: str) -> bool:
    """Whether that is one of these tools, as whichever agent calls it."""
    return tool in _OWN or (NAME in tool and tool.endswith(tuple(_TOOLS)))


def left_out(query: str, own: list[str]) -> tuple[list[Filter], bool]:
    """What keeps the caller's own session out, and whether calls of these tools are; unless they are asked for."""
    asked = parse(query).every_filter
    named = [value for one in asked if one.name == "session" and not one.negated for value in one.values]
    hidden = tuple(
        id for id in own if not any(id.startswith(value.rpartition(":")[2].removeprefix("=")) for value in named)
    )
    tools = [value for one in asked if one.name == "tool" and not one.negated for value in one.values]
    skips_calls = not any(is_of_ours(value) or NAME in value for value in tools)
    return [Filter("session", hidden, negated=True)] if hidden else [], skips_calls


def is_call(match: EntryMatch) -> bool:
    """Whether an entry calls one of these tools, or is its answer."""
    return any(is_of_ours(tool) for tool in match.tools.split("\n") if tool)
