"""How an address wants a conversation shown, and the addresses of its other places that keep that."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from turnlog.errors import NotFound
from turnlog.reader.part import numbered
from turnlog.web.address import address_of
from turnlog.web.viewer import name_in

if TYPE_CHECKING:
    from starlette.requests import Request

    from turnlog.reader.viewing.conversation import ConversationPieces
    from turnlog.reader.viewing.viewedsession import ViewedSession


class ConversationQuery(NamedTuple):
    """The query of an address of a conversation."""

    name: str
    """The session."""
    words: str = ""
    """What is searched for: it is marked."""
    is_redacted: bool = False
    """Whether secrets are left out."""
    branch: str = ""
    """The last entry of the branch that is shown; empty for the current one."""
    is_full: bool = False
    """Whether long outputs are shown as a whole."""

    def address(self, **more: object) -> str:
        """The address of another place in the conversation, shown in the same way."""
        kept = {"q": self.words, "redact": 1 if self.is_redacted else "", "branch": self.branch}
        return address_of(self.name, **{**kept, **more})

    def pieces_of(self, viewed: ViewedSession) -> ConversationPieces:
        """The pieces on the way to the branch that is asked for, or to the current head."""
        if not self.branch:
            return viewed.pieces
        head = numbered(self.branch)
        if head is None or viewed.pieces.outline.find(head) is None:
            hint = "its tree shows those there are"
            raise NotFound(f"no branch {self.branch!r:.80} in session {viewed.card.name}", hint=hint)
        return viewed.branch(head)


def query_of(request: Request) -> ConversationQuery:
    """What the address of this request asks for."""
    asked = request.query_params
    return ConversationQuery(
        name_in(request),
        asked.get("q", ""),
        asked.get("redact") == "1",
        asked.get("branch", ""),
        asked.get("full") == "1",
    )
