"""OpenAI's Responses API: a conversation is a list of items."""

from __future__ import annotations

from turnlog.wire.openai.responses.answer import draft as draft
from turnlog.wire.openai.responses.answer import item_blocks as item_blocks
from turnlog.wire.openai.responses.answer import texts_of as texts_of
from turnlog.wire.openai.responses.ask import request as request
