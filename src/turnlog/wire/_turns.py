"""The turns of a request to a provider that wants roles to alternate, and the user to speak first and last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnlog.log.entry import Message
from turnlog.wire import GO_ON, NOTHING_BEFORE, RequestBuilder


class AlternatingTurns:
    """Collects the turns of a request so that roles alternate. `turns` is what is sent.

    `assistant` is the provider's word for that role, `key` that for the content of a turn; `text` makes a part.
    """

    def __init__(
        self, builder: RequestBuilder, *, assistant: str, key: str, text: Callable[[str], dict[str, Any]]
    ) -> None:
        self._builder = builder
        self._assistant, self._key, self._text = assistant, key, text
        self.turns: list[dict[str, Any]] = []

    def add(self, role: str, content: list[dict[str, Any]], *, may_begin: bool = False) -> None:
        """Add to the last turn, or a new one; the user speaks first, unless the other `may_begin`."""
        if not content:
            return
        if not self.turns and role == self._assistant and not may_begin:
            self._add_user(NOTHING_BEFORE, "the user has to speak first")
        if self.turns and self.turns[-1]["role"] == role:
            self.turns[-1][self._key] += content
        else:
            self.turns.append({"role": role, self._key: content})

    def add_as_system(self, content: list[dict[str, Any]], message: Message) -> None:
        """Add a system message from within the conversation as the user's."""
        if content:
            self._builder.note("changed", "message", "a system message in between is sent as the user's", message)
            self.add("user", [self._text("<system>"), *content, self._text("</system>")])

    def begin_at_least(self) -> None:
        """Add a turn of the user's if there is none: a request has at least one."""
        if not self.turns:
            self._add_user(NOTHING_BEFORE, "nothing else is left to send")

    def end_with_user(self) -> None:
        """Add a turn of the user's behind one of the assistant's."""
        if self.turns[-1]["role"] == self._assistant:
            self._add_user(GO_ON, "the user has to speak last")

    def _add_user(self, text: str, why: str) -> None:
        self.turns.append({"role": "user", self._key: [self._text(text)]})
        self._builder.note("added", "message", why)
