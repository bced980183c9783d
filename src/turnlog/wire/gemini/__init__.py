"""The dialect of Google's Gemini API, generateContent.

    request = gemini.request(s.context(), model="gemini-2.5-pro")
    s.append(gemini.draft(client.models.generate_content(**request)))
    s.append(*gemini.messages(contents))                                    # a history that somebody else kept

Bytes are base64 text, which the SDK takes as well as REST does; `body` is the request as REST wants it.
"""

from __future__ import annotations

from turnlog.wire.gemini.answer import GeminiStream as Stream
from turnlog.wire.gemini.answer import draft
from turnlog.wire.gemini.ask import PROVIDER, body, request
from turnlog.wire.gemini.item import messages

__all__ = ["PROVIDER", "Stream", "body", "draft", "messages", "request"]
