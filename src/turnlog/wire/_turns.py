"""The turns of a request to a provider that wants roles to alternate, and the user to speak first and last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from turnlog.log.entry import Message
from turnlog.wire import GO_ON, NOTHING_BEFORE, RequestBuilder


class AlternatingTurns:
    """The turns, as they are being made: `list` is what is sent.

    `assistant` is the provider's word for that role, `key` that for the content of a turn; `text` makes a part.
    """

    def __init__(
        self, builder: RequestBuilder, *, assistant: str, key: str, text: Callable[[str], dict[str, Any]]
    ) -> None:
        self._builder = builder
        self._assistant, self._key, self._text = assistant, key, text
        self.list: list[dict[str, Any]] = []

    def say(self, role: str, content: list[dict[str, Any]], *, may_begin: bool = False) -> None:
        """Add to the last turn, or a new one; the user speaks first, unless the other `may_begin`."""
        if not content:
            return
        if not self.list and role == self._assistant and not may_begin:
            self._add_user(NOTHING_BEFORE, "the user has to speak first")
        if self.list and self.list[-1]["role"] == role:
            self.list[-1][self._key] += content
        else:
            self.list.append({"role": role, self._key: content})

    def say_as_system(self, content: list[dict[str, Any]], message: Message) -> None:
        """What the system says in between is sent as the user's."""
        if content:
            self._builder.note("changed", "message", "a system message in between is sent as the user's", message)
            self.say("user", [self._text("<system>"), *content, self._text("</system>")])

    def begin_at_least(self) -> None:
        """A request has at least one turn."""
        if not self.list:
            self._add_user(NOTHING_BEFORE, "nothing else is left to send")

    def end_with_user(self) -> None:
        """The user speaks last."""
        if self.list[-1]["role"] == self._assistant:
            self._add_user(GO_ON, "the user has to speak last")

    def _add_user(self, text: str, why: str) -> None:
        self.list.append({"role": "user", self._key: [self._text(text)]})
        self._builder.note("added", "message", why)
