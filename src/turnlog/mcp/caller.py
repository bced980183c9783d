"""The agent that asks. Its own session is left out: it must not find its own question, or an earlier answer of ours."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from turnlog.catalog.ask.query import Filter, parse
from turnlog.errors import NotFound
from turnlog.log.ids import handle_of, imported_id
from turnlog.log.startup import NamedTuple
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
"""Agents, by a part of the name that their client gives itself."""
_TAIL = 1 << 20
_NAME_CHARACTERS = 80
_NEWEST = 5
"""The number of newest sessions of an agent among which the asking one is looked for."""
_TOOLS = frozenset(tool["name"] for tool in offered(allow_rewind=True))
_OWN = frozenset(tool for tool in _TOOLS if "_" in tool)
"""Names that only our tools have; another server may have a `usage`. Codex logs a tool without its server."""


class Caller:
    """The agent at the other end, as far as it identifies itself."""

    def __init__(self, client: str) -> None:
        self.client = client
        self._folder = workspace_path(".")

    @property
    def agent(self) -> str:
        """The agent's name in our formats; "" if it is unknown."""
        name = self.client.lower()
        return next((agent for word, agent in _CLIENTS.items() if word in name), "")

    def sessions(self, catalog: Catalog, meta: dict[str, Any]) -> list[str]:
        """The ids of its own session: the agent's id, and ours."""
        natives = self._natives(catalog, meta)
        ours = {name for native in natives if self.agent for name in self._ours(catalog, native)}
        return sorted(natives | ours)

    def _natives(self, catalog: Catalog, meta: dict[str, Any]) -> set[str]:
        """The ids that the agent may have for its session."""
        natives = self._reported_ids(meta)
        call = meta.get("claudecode/toolUseId")
        if isinstance(call, str) and call and call.isprintable():
            natives |= {card.id for card in self._newest(catalog) if not card.is_ours and _has(card, call.encode())}
        if not natives and self.agent:
            natives = {card.id for card in self._newest(catalog) if card.state == "running"}
        return natives

    def asker(self, catalog: Catalog, meta: dict[str, Any]) -> str:
        """The name for a log: the session if it is certain, or else the agent, or the client."""
        ids = sorted(self._natives(catalog, meta))
        if self.agent and len(ids) == 1:
            return imported_id(self.agent, ids[0])
        return self.agent or self.client[:_NAME_CHARACTERS]

    def _ours(self, catalog: Catalog, native: str) -> list[str]:
        """The ids of our sessions for one of this agent: its import, and the session that it is a copy of."""
        names = [imported_id(self.agent, native)]
        try:
            card = catalog.find(f"{self.agent}:{native}")
        except NotFound:
            return names  # nothing is written yet
        return [*names, card.copy_of] if card.copy_of else names

    def _reported_ids(self, meta: dict[str, Any]) -> set[str]:
        ids = [meta.get("threadId"), meta.get("sessionId")]
        if self.agent in ("claude-code", ""):  # another agent may have been started in its shell
            ids.append(environment().get("CLAUDE_CODE_SESSION_ID"))
        return {id for id in ids if isinstance(id, str) and 8 <= len(id) <= 200 and id.isprintable()}

    def _newest(self, catalog: Catalog) -> list[Card]:
        """The newest sessions of this agent in this folder."""
        if not self.agent:
            return []
        cards = catalog.cards(f"agent:{self.agent}", workspace=self._folder, everything=True, limit=_NEWEST)
        return [card for card in cards if card.agent == self.agent]


def _has(card: Card, word: bytes) -> bool:
    """Whether a word is near the end of a session's file."""
    try:
        with open(card.path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            return word in file.read()
    except OSError:
        return False  # it is in no file, or was removed


def is_of_ours(tool: str) -> bool:
    """Whether a tool is one of ours, under any name that an agent gives it."""
    return tool in _OWN or (NAME in tool and tool.endswith(tuple(_TOOLS)))


class LeftOut(NamedTuple):
    """What an answer leaves out of what the caller did itself, unless its query asks for it."""

    sessions: tuple[str, ...]
    """The ids of the caller's own session."""
    calls: bool
    """Whether the calls of our tools are left out."""

    @property
    def filters(self) -> list[Filter]:
        """The filters that leave out the session."""
        return [Filter("session", self.sessions, negated=True)] if self.sessions else []

    def has(self, card: Card) -> bool:
        """Whether a session is the caller's own, or a subagent of it."""
        return card.id in self.sessions or card.parent in self.sessions


def left_out(query: str, own: list[str]) -> LeftOut:
    """What is left out of the answer to a query of the session with these ids."""
    asked = [clause for clause in parse(query).every_filter if not clause.negated]
    named = [value for clause in asked if clause.name in ("session", "id") for value in clause.values]
    begins = tuple(value.rpartition(":")[2].removeprefix("=").lower() for value in named)
    sessions = tuple(id for id in own if not any(name.lower().startswith(begins) for name in (id, handle_of(id))))
    tools = [value for clause in asked if clause.name == "tool" for value in clause.values]
    return LeftOut(sessions, not any(is_of_ours(value) or NAME in value for value in tools))


def is_call(match: EntryMatch) -> bool:
    """Whether an entry is a call of one of our tools, or its result."""
    return any(is_of_ours(tool) for tool in match.tools.split("\n") if tool)
