"""OpenAI's Chat Completions API, and what many other servers take: a conversation is a list of messages."""

from __future__ import annotations

from turnlog.wire.openai.chat.answer import cut_calls as cut_calls
from turnlog.wire.openai.chat.answer import draft as draft
from turnlog.wire.openai.chat.answer import said_blocks as said_blocks
from turnlog.wire.openai.chat.ask import request as request
