"""The dialect of Anthropic's Messages API.

request = anthropic.request(s.context(), model="claude-sonnet-4-5", max_tokens=4096)
s.append(anthropic.draft(client.messages.create(**request)))
s.append(*anthropic.messages(messages))                                 # a history that somebody else kept
"""

from __future__ import annotations

from turnlog.wire.anthropic.answer import AnthropicStream as Stream
from turnlog.wire.anthropic.answer import draft
from turnlog.wire.anthropic.ask import PROVIDER, request
from turnlog.wire.anthropic.item import messages

__all__ = ["PROVIDER", "Stream", "draft", "messages", "request"]
