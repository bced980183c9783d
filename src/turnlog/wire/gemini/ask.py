"""A context as Gemini takes it: turns that alternate, a response for every call in their order, signatures in place."""

from __future__ import annotations

import re
from typing import Any

from turnlog.log.block import File, Image, Text, Thinking, ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.log.entry import Message
from turnlog.wire import GO_ON, NOTHING_BEFORE, Request, RequestBuilder, RequestMessage, fields, kind_of, own
from turnlog.wire._media import PDF, load
from turnlog.wire._tool import chosen, declared

PROVIDER = "gemini"
ID_LIMIT = 64
NAME_LIMIT = 64
NOT_OURS = "skip_thought_signature_validator"
"""The signature that Google documents for calls which the model did not make itself."""
_PICTURES = frozenset(("image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"))
_IN_RESULTS = frozenset(("image/jpeg", "image/png", "image/webp", PDF, "text/plain"))
_REST = {"system_instruction": "systemInstruction", "tools": "tools", "tool_config": "toolConfig"}
_REST_TOO = {"safety_settings": "safetySettings", "cached_content": "cachedContent", "labels": "labels"}


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
    work = RequestBuilder(context, PROVIDER, account, limit=ID_LIMIT)
    tools = declared(work, limit=NAME_LIMIT)
    config: dict[str, Any] = {}
    if context.system.strip():
        config["system_instruction"] = context.system
    if tools.client:
        listed: list[dict[str, Any]] = []
        for tool in tools.client:
            about = {"description": tool.description} if tool.description else {}
            listed.append({"name": tool.name, **about, "parameters_json_schema": tool.schema})
        config["tools"] = [{"function_declarations": listed}, *tools.native]
    elif tools.native:
        config["tools"] = list(tools.native)
    choice = chosen(work, tool_choice, tools, limit=NAME_LIMIT)
    if choice is not None:
        modes = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
        named = {} if choice in modes else {"allowed_function_names": [choice]}
        config["tool_config"] = {"function_calling_config": {"mode": modes.get(choice, "ANY"), **named}}
    if max_tokens is not None:
        config["max_output_tokens"] = max_tokens
    contents = _Contents(work, is_old=_is_old(model)).made()
    return Request({"model": model, "contents": contents, "config": {**config, **options}}, work.report, context)


def body(request: Request) -> dict[str, Any]:
    """A request as the JSON that REST takes at `models/…:generateContent`."""
    made: dict[str, Any] = {"contents": request["contents"]}
    generation: dict[str, Any] = {}
    for key, value in request["config"].items():
        if key == "system_instruction" and isinstance(value, str):
            made["systemInstruction"] = {"parts": [{"text": value}]}
        elif key in _REST or key in _REST_TOO:
            made[(_REST | _REST_TOO)[key]] = value
        else:
            generation[re.sub(r"_([a-z])", lambda found: found[1].upper(), key)] = value
    if generation:
        made["generationConfig"] = generation
    return made


def _is_old(model: str) -> bool:
    """Whether it is a model before Gemini 3: pictures do not go into results there, and signatures are optional."""
    version = re.search(r"gemini-(\d+)", model)
    return version is not None and int(version[1]) < 3


class _Contents:
    """The turns of a request, as they are being made."""

    def __init__(self, work: RequestBuilder, *, is_old: bool) -> None:
        self._work = work
        self._is_old = is_old
        self._contents: list[dict[str, Any]] = []
        self._calls: dict[str, str] = {}
        """The calls that wait for their results, in order: id and name, as they are sent."""
        self._results: dict[str, list[dict[str, Any]]] = {}

    def made(self) -> list[dict[str, Any]]:
        """All of them."""
        for turn in self._work.turns():
            if turn.role == "tool":
                for block in turn.blocks:
                    if isinstance(block, ToolResult):
                        self._result(block, turn.message)
                continue
            self._settle()
            if turn.role == "assistant":
                self._say("model", self._model(turn))
            else:
                self._say("user", self._user(turn))
        self._settle()
        if not self._contents:
            self._say("user", [{"text": NOTHING_BEFORE}])
            self._work.note("added", "message", "nothing else is left to send")
        if self._contents[-1]["role"] == "model":
            self._say("user", [{"text": GO_ON}])
            self._work.note("added", "message", "the user has to speak last")
        return self._contents

    def _say(self, role: str, parts: list[dict[str, Any]]) -> None:
        if not parts:
            return
        if not self._contents and role == "model":
            self._contents.append({"role": "user", "parts": [{"text": NOTHING_BEFORE}]})
            self._work.note("added", "message", "the user has to speak first")
        if self._contents and self._contents[-1]["role"] == role:
            self._contents[-1]["parts"] += parts
        else:
            self._contents.append({"role": role, "parts": parts})

    def _settle(self) -> None:
        """Answer the calls of the last turn, in the order they were made; pictures that cannot go along come behind."""
        answers = [self._results[call] for call in self._calls if call in self._results]
        self._say("user", [parts[0] for parts in answers])
        self._say("user", [part for parts in answers for part in parts[1:]])
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
        if turn.role == "system" and parts:
            self._work.note("changed", "message", "a system message in between is sent as the user's", turn.message)
            return [{"text": "<system>"}, *parts, {"text": "</system>"}]
        return parts

    def _model(self, turn: RequestMessage) -> list[dict[str, Any]]:
        work, message = self._work, turn.message
        parts: list[dict[str, Any]] = []
        unsigned: dict[str, Any] | None = None
        """The first call, where it has no signature: only the first of several carries one."""
        whole = {b.id for b in turn.blocks if isinstance(b, ToolCall)} & {
            b.call for b in turn.blocks if isinstance(b, ToolResult)
        }
        for block in turn.blocks:
            mine = own(block, PROVIDER, work.account) or {}
            signed = {"thought_signature": mine["signature"]} if "signature" in mine else {}
            if isinstance(block, Thinking):
                data = fields(block.data)
                signed = {"thought_signature": data["signature"]} if "signature" in data else {}
                if block.text or signed:
                    parts.append({"text": block.text, "thought": True, **signed})
            elif isinstance(block, Text):
                if block.text.strip() or signed:
                    parts.append({"text": block.text, **signed})
            elif isinstance(block, ToolCall) and block.by is None:
                name = work.tool_name(block.name, limit=NAME_LIMIT)
                id = work.call_id(block, message)
                part = {"function_call": {"id": id, "name": name, "args": work.object_of(block, message)}, **signed}
                if not self._calls and not signed:
                    unsigned = part
                self._calls[id] = name
                parts.append(part)
            elif isinstance(block, (Image, File)):
                parts.append({**self._media(block, message), **signed})
            elif isinstance(block, (ToolCall, ToolResult)) and isinstance(mine.get("part"), dict):
                if (block.id if isinstance(block, ToolCall) else block.call) in whole:
                    parts.append(mine["part"])
                else:
                    work.note("left out", "tool call", "the provider has not answered it", message)
        if unsigned is not None and not self._is_old:
            unsigned["thought_signature"] = NOT_OURS
            work.note("changed", "tool call", "it has no signature and is sent as not the model's own", message)
        if parts and all(part.get("thought") for part in parts):
            work.note("left out", "thinking", "nothing was said after it", message)
            return []
        return parts

    def _result(self, result: ToolResult, message: Message) -> None:
        id = self._work.result_id(result)
        texts: list[str] = []
        inside: list[dict[str, Any]] = []
        behind: list[dict[str, Any]] = []
        for part in self._work.result_parts(result, message):
            if isinstance(part, Text):
                texts.append(part.text)
                continue
            made = self._media(part, message)
            source = fields(made.get("inline_data"))
            if "text" in made:
                texts.append(made["text"])
            elif not self._is_old and source.get("mime_type") in _IN_RESULTS:
                inside.append(made)
            else:
                behind.append(made)
        form: dict[str, Any] = {"id": id, "name": self._calls.get(id) or result.name or "tool"}
        form["response"] = {"error" if result.is_error else "output": "\n".join(texts)}
        if inside:
            form["parts"] = inside
        self._results[id] = [{"function_response": form}, *behind]

    def _media(self, block: Image | File, message: Message) -> dict[str, Any]:
        media = load(block, self._work.context, PROVIDER, schemes=("https://", "http://", "gs://"))
        if isinstance(media, str):
            why = media
        else:
            kind = media.media_type
            if media.text is not None:
                kind = "text/plain"
            fits = kind in _PICTURES or kind == PDF or kind.startswith(("audio/", "text/", "video/"))
            if media.file is not None or (fits and media.url is not None):
                typed = {"mime_type": kind} if kind else {}
                return {"file_data": {"file_uri": media.file or media.url, **typed}}
            if fits and media.data:
                return {"inline_data": {"mime_type": kind, "data": media.base64}}
            why = f"{kind or 'its kind'} is not accepted"
        name = kind_of(block)
        self._work.note("left out", name, why, message)
        return {"text": f"[{name} left out: {why}]"}
