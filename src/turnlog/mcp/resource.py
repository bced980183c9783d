"""Sessions as resources: all of one as a document, or one turn of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from turnlog.errors import NotFound
from turnlog.mcp.caller import left_out
from turnlog.mcp.page import READING_BYTES
from turnlog.mcp.passage import EntryTexts
from turnlog.mcp.protocol import encoded
from turnlog.mcp.quote import QUOTED
from turnlog.mcp.tools.list_sessions import listed as sessions
from turnlog.reader.part import Part
from turnlog.reader.place import entries_of_turn
from turnlog.view.number import count

if TYPE_CHECKING:
    from turnlog.mcp.library import Library

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
    """The newest sessions in the scope."""
    cards = sessions(library, "", left_out("", library.own({})))
    return [
        {
            "uri": f"turnlog://session/{quote(card.id, safe='')}",
            "name": library.quotes.title(card.title or card.preview) or card.id,
            "description": f"{card.agent or 'turnlog'}, {count(card.turns, 'turn')}",
            "mimeType": _KIND,
        }
        for card in cards[:_LISTED]
    ]


def read(library: Library, uri: str) -> list[dict[str, Any]]:
    """The content of a resource."""
    match = _URI.fullmatch(uri)
    if match is None:
        raise NotFound(f"no resource {uri!r:.200}: turnlog://session/ID or turnlog://session/ID/turn/N")
    name, turn = unquote(match[1]), match[2]
    with library.session(name) as (card, opened):
        session = opened.session
        texts = EntryTexts(library.quotes.of(session, card.id if card.is_ours else card.name))
        parts = [f"{QUOTED}\n\n# {library.quotes.title(card.title or card.preview) or card.id}"]
        size = len(encoded(parts[0]))
        if turn is None:
            entries = Part(session.head).entries(session)
        else:
            of_turn = entries_of_turn(session, int(turn))
            entries = of_turn.entries
            texts.take(of_turn.before)
        for text in filter(None, map(texts.of, entries)):
            passage = f"## [{text.seq}] {text.role} {text.at}\n\n{text.text()}"
            size += len(encoded(passage)) + 4
            if size > READING_BYTES - 200:
                parts.append(f'… the rest: read_session of {card.id} after "{text.seq - 1}"')
                break
            parts.append(passage)
    return [{"uri": uri, "mimeType": _KIND, "text": "\n\n".join(parts)}]
