"""A context as Gemini takes it: turns that alternate, a response for every call in their order, signatures in place."""

from __future__ import annotations

import re
from typing import Any

from turnlog.interop.value import fields
from turnlog.log.block import AnyBlock, File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.log.entry import Message
from turnlog.wire import Request, RequestBuilder, RequestMessage, own
from turnlog.wire._media import PDF, Unsendable, load
from turnlog.wire._tool import tool_choice_of, tools_of
from turnlog.wire._turns import AlternatingTurns

PROVIDER = "gemini"
ID_LIMIT = 64
NAME_LIMIT = 64
SKIP_SIGNATURE_CHECK = "skip_thought_signature_validator"
"""The signature that Google documents for calls which the model did not make itself."""
_PICTURES = frozenset(("image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"))
_IN_RESULTS = frozenset(("image/jpeg", "image/png", "image/webp", PDF, "text/plain"))
_OUTSIDE_GENERATION_CONFIG = {
    "system_instruction": "systemInstruction", "tools": "tools", "tool_config": "toolConfig",
    "safety_settings": "safetySettings", "cached_content": "cachedContent", "labels": "labels",
}  # fmt: skip
"""What of a config stands beside `generationConfig` in the JSON of REST, and how it is called there."""
_SDK_ONLY = ("automatic_function_calling", "http_options", "should_return_http_response")
"""What of a config is for the SDK, and never sent."""


def request(
    context: Context,
    *,
    model: str,
    max_tokens: int | None = None,
    tool_choice: str | None = None,
    account: str | None = None,
    **options: Any,
) -> Request:
    """The context for `client.models.generate_content(**request)`; `options` go into its config as they are.

    `tool_choice` is auto, none, required or a tool's name. Reasoning of another `account` is left out.
    """
    builder = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = tools_of(builder, limit=NAME_LIMIT)
    config: dict[str, Any] = {}
    if context.system.strip():
        config["system_instruction"] = context.system
    if tools.client:
        listed: list[dict[str, Any]] = []
        for tool in tools.client:
            description = {"description": tool.description} if tool.description else {}
            listed.append({"name": tool.name, **description, "parameters_json_schema": tool.schema})
        config["tools"] = [{"function_declarations": listed}, *tools.native]
    elif tools.native:
        config["tools"] = list(tools.native)
    choice = tool_choice_of(builder, tool_choice, tools, limit=NAME_LIMIT)
    if choice is not None:
        modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
        named = {} if choice in modes else {"allowed_function_names": [choice]}
        config["tool_config"] = {"function_calling_config": {"mode": modes.get(choice, "ANY"), **named}}
    if max_tokens is not None:
        config["max_output_tokens"] = max_tokens
    contents = _Contents(builder, is_old=_is_old(model)).contents()
    return Request({"model": model, "contents": contents, "config": {**config, **options}}, builder.report, context)


def body(request: Request) -> dict[str, Any]:
    """A request as the JSON that REST takes at `models/…:generateContent`."""
    rest_body: dict[str, Any] = {"contents": request["contents"]}
    generation: dict[str, Any] = {}
    for key, value in request["config"].items():
        if key == "system_instruction" and isinstance(value, str):
            rest_body["systemInstruction"] = {"parts": [{"text": value}]}
        elif key in _OUTSIDE_GENERATION_CONFIG:
            rest_body[_OUTSIDE_GENERATION_CONFIG[key]] = value
        elif key not in _SDK_ONLY:
            generation[re.sub(r"_([a-z])", lambda letter: letter[1].upper(), key)] = value
    if generation:
        rest_body["generationConfig"] = generation
    return rest_body


def _is_old(model: str) -> bool:
    """Whether it is a model before Gemini 3: pictures do not go into results there, and signatures are optional."""
    version = re.search(r"gemini-(\d+)", model)
    return version is not None and int(version[1]) < 3


class _Contents:
    """The turns of a request, as they are being made."""

    def __init__(self, builder: RequestBuilder, *, is_old: bool) -> None:
        self._builder = builder
        self._is_old = is_old
        self._turns = AlternatingTurns(builder, assistant="model", key="parts", text=lambda text: {"text": text})
        self._calls: dict[str, str] = {}
        """The calls that wait for their results, in order: id and name, as they are sent."""
        self._results: dict[str, list[dict[str, Any]]] = {}

    def contents(self) -> list[dict[str, Any]]:
        """The turns to send."""
        for turn in self._builder.turns():
            if turn.role == "tool":
                for block in turn.blocks:
                    if isinstance(block, ToolResult):
                        self._result(block, turn.message)
                continue
            self._settle()
            if turn.role == "assistant":
                self._turns.add("model", self._model(turn))
            elif turn.role == "system":
                self._turns.add_as_system(self._user(turn), turn.message)
            else:
                self._turns.add("user", self._user(turn))
        self._settle()
        self._turns.begin_at_least()
        self._turns.end_with_user()
        return self._turns.turns

    def _settle(self) -> None:
        """Answer the calls of the last turn, in the order they were made; pictures that cannot go along come behind."""
        answers = [self._results[call] for call in self._calls if call in self._results]
        self._turns.add("user", [parts[0] for parts in answers])
        self._turns.add("user", [part for parts in answers for part in parts[1:]])
        self._calls.clear()
        self._results.clear()

    def _user(self, turn: RequestMessage) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        for block in turn.blocks:
            if isinstance(block, Text):
                if block.text.strip():
                    parts.append({"text": block.text})
            elif isinstance(block, (Image, File)):
                parts.append(self._media(block, turn.message))
        return parts

    def _model(self, turn: RequestMessage) -> list[dict[str, Any]]:
        builder, message = self._builder, turn.message
        answered = {block.call for block in turn.blocks if isinstance(block, ToolResult)}
        complete = {block.id for block in turn.blocks if isinstance(block, ToolCall)} & answered
        parts = [part for block in turn.blocks if (part := self._part(block, message, complete)) is not None]
        first_call = next((part for part in parts if "function_call" in part), None)
        if first_call is not None and not self._is_old and "thought_signature" not in first_call:
            # Of several calls, only the first carries a signature.
            first_call["thought_signature"] = SKIP_SIGNATURE_CHECK
            builder.note("changed", "tool call", "it has no signature and is sent as not the model's own", message)
        if parts and all(part.get("thought") for part in parts):
            builder.note("left out", "thinking", "nothing was said after it", message)
            return []
        return parts

    def _part(self, block: AnyBlock, message: Message, complete: set[str]) -> dict[str, Any] | None:
        """A block of the model's as a part; `complete` are the calls of tools that Gemini ran and answered."""
        own_meta = own(block, PROVIDER, self._builder.account) or {}
        own_data = fields(block.data) if isinstance(block, Thinking) else own_meta
        signed = {"thought_signature": own_data["signature"]} if "signature" in own_data else {}
        if isinstance(block, Thinking):
            return {"text": block.text, "thought": True, **signed} if block.text or signed else None
        if isinstance(block, Text):
            return {"text": block.text, **signed} if block.text.strip() or signed else None
        if isinstance(block, ToolCall) and block.by is None:
            name = self._builder.tool_name(block.name, limit=NAME_LIMIT)
            id = self._builder.call_id(block, message)
            self._calls[id] = name
            return {
                "function_call": {"id": id, "name": name, "args": self._builder.object_of(block, message)},
                **signed,
            }
        if isinstance(block, (Image, File)):
            return {**self._media(block, message), **signed}
        if isinstance(block, (ToolCall, ToolResult)) and isinstance(own_meta.get("part"), dict):
            if (block.id if isinstance(block, ToolCall) else block.call) in complete:
                return own_meta["part"]
            self._builder.note("left out", "tool call", "the provider has not answered it", message)
        return None

    def _result(self, result: ToolResult, message: Message) -> None:
        id = self._builder.result_id(result)
        texts: list[str] = []
        inside: list[dict[str, Any]] = []
        behind: list[dict[str, Any]] = []
        for part in self._builder.result_parts(result, message):
            if isinstance(part, Text):
                texts.append(part.text)
                continue
            medium = self._media(part, message)
            source = fields(medium.get("inline_data"))
            if "text" in medium:
                texts.append(medium["text"])
            elif not self._is_old and source.get("mime_type") in _IN_RESULTS:
                inside.append(medium)
            else:
                behind.append(medium)
        form: dict[str, Any] = {"id": id, "name": self._calls.get(id) or result.name or "tool"}
        form["response"] = {"error" if result.is_error else "output": "\n".join(texts)}
        if inside:
            form["parts"] = inside
        self._results[id] = [{"function_response": form}, *behind]

    def _media(self, block: Image | File, message: Message) -> dict[str, Any]:
        media = load(block, self._builder.context, PROVIDER, schemes=("https://", "http://", "gs://"))
        if isinstance(media, Unsendable):
            return {"text": self._builder.left_out(block, media.why, message)}
        kind = media.media_type if media.text is None else "text/plain"
        fits = kind in _PICTURES or kind == PDF or kind.startswith(("audio/", "text/", "video/"))
        if media.file is not None or (fits and media.url is not None):
            typed = {"mime_type": kind} if kind else {}
            return {"file_data": {"file_uri": media.file or media.url, **typed}}
        if fits and media.data:
            return {"inline_data": {"mime_type": kind, "data": media.base64}}
        return {"text": self._builder.left_out(block, f"{kind or 'its kind'} is not accepted", message)}
