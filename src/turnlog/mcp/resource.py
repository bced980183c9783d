"""Sessions as resources: all of one as a document, or one turn of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from turnlog.errors import NotFound
from turnlog.log.entry import Message
from turnlog.log.shown.promptmessage import is_prompt
from turnlog.mcp.page import READING_BYTES
from turnlog.mcp.passage import EntryTexts
from turnlog.mcp.protocol import encoded
from turnlog.mcp.quote import QUOTED
from turnlog.mcp.tools.list_sessions import listed as sessions
from turnlog.reader.part import Part
from turnlog.reader.place import turns_of

if TYPE_CHECKING:
    from turnlog.mcp.library import Library
    from turnlog.session import ReadOnlySession

_URI = re.compile(r"turnlog://session/([^/?#]{1,400})(?:/turn/([1-9]\d{0,8}))?")
_KIND = "text/markdown"
_LISTED = 20
TEMPLATES = [
    {
        "uriTemplate": "turnlog://session/{id}",
        "name": "session",
        "description": "A session: its first messages, and how to go on",
        "mimeType": _KIND,
    },
    {
        "uriTemplate": "turnlog://session/{id}/turn/{n}",
        "name": "turn",
        "description": "One turn of a session: what was asked, answered and done",
        "mimeType": _KIND,
    },
]


def listed(library: Library) -> list[dict[str, Any]]:
    """The newest sessions that may be told of."""
    own = library.own({})
    cards = [card for card in sessions(library, "", own, []) if card.id not in own]
    return [
        {
            "uri": f"turnlog://session/{quote(card.id, safe='')}",
            "name": library.quotes.title(card.title or card.preview) or card.id,
            "description": f"{card.agent or 'turnlog'}, {card.turns} turns",
            "mimeType": _KIND,
        }
        for card in cards[:_LISTED]
    ]


def read(library: Library, uri: str) -> list[dict[str, Any]]:
    """What a resource holds."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(f"no resource {uri!r:.200}: turnlog://session/ID or turnlog://session/ID/turn/N")
    name, turn = unquote(match[1]), match[2]
    with library.session(name) as (card, opened):
        session = opened.session
        texts = EntryTexts(library.quotes.of(session, f"{card.agent}:{card.id}"))
        parts = [f"{QUOTED}\n\n# {library.quotes.title(card.title or card.preview) or card.id}"]
        begin, end = (0, 0) if turn is None else _stretch(session, int(turn))
        size = len(encoded(parts[0]))
        part = Part(session.head, after=begin, until=end)
        texts.take(part.before(session))
        for text in filter(None, map(texts.of, part.entries(session))):
            passage = f"## [{text.seq}] {text.role} {text.at}\n\n{text.text()}"
            size += len(encoded(passage)) + 4
            if size > READING_BYTES - 200:
                parts.append(f'… the rest: read_session of {card.id} after "{text.seq - 1}"')
                break
            parts.append(passage)
    return [{"uri": uri, "mimeType": _KIND, "text": "\n\n".join(parts)}]


def _stretch(session: ReadOnlySession, turn: int) -> tuple[int, int]:
    """The entries of a turn, after one and up to another: as its checkpoints count turns, else by prompts."""
    begins = list(turns_of(session).begins.values())
    begins = begins or [entry.seq for entry in session.entries(kind=Message) if is_prompt(entry)]
    if turn > len(begins):
        raise NotFound(f"no turn {turn}: the session has {len(begins)}")
    return begins[turn - 1] - 1, begins[turn] - 1 if turn < len(begins) else 0
