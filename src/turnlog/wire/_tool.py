"""The tools of a context, in whichever of the usual forms the caller wrote them down."""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid
from turnlog.interop.json import MAX_DEPTH, is_deep
from turnlog.interop.value import fields, items, json_text
from turnlog.log.block import WRAPPED
from turnlog.log.startup import pattern
from turnlog.wire import RequestBuilder

CHOICES = ("auto", "none", "required")
_SCHEMAS = ("input_schema", "inputSchema", "parameters", "parameters_json_schema", "parametersJsonSchema")
_DATED = pattern(r".+_\d{8}")


class Tool(Struct, frozen=True):
    """A tool that the caller runs."""

    name: str
    """As it is sent."""
    description: str
    schema: dict[str, Any]
    strict: bool | None = None


def input_of(arguments: Any) -> Any:
    """The input of a call from its JSON. Models also write what is no JSON, or nests too deep: that stays text."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = _decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return arguments if arguments.strip() else {}
    return arguments if len(arguments) > 2 * MAX_DEPTH and is_deep(value) else value


_decode = msgspec.json.Decoder().decode


def unwrapped(value: Any) -> Any:
    """The input of a call as the log has it: an object that only wraps another value is that value."""
    data = fields(value)
    return data[WRAPPED] if len(data) == 1 and WRAPPED in data else value


def storable(value: Any) -> Any:
    """The input of a call that came as a value: its JSON where it nests deeper than a log takes."""
    return json_text(value) if is_deep(value) else value


class Tools(Struct, frozen=True):
    """The tools of a request: those the caller runs, and the provider's own, as it takes them."""

    client: list[Tool]
    native: list[dict[str, Any]]

    def __bool__(self) -> bool:
        return bool(self.client or self.native)


def tools_of(builder: RequestBuilder, *, limit: int) -> Tools:
    """The tools of a context. Those that only another provider can run are left out."""
    client: list[Tool] = []
    native: list[dict[str, Any]] = []
    for raw in _flat(builder.context.tools):
        tool = _client_tool(raw)
        if tool is None:
            owner, declaration = _native(raw)
            if owner == builder.provider:
                native.append(declaration)
            else:
                name = declaration.get("type") or declaration.get("name") or ", ".join(declaration)
                builder.note("left out", "tool", f"{name} is run by {owner}")
            continue
        sent = builder.tool_name(tool.name, limit=limit)
        if any(other.name == sent for other in client):
            builder.note("left out", "tool", f"there is another one named {tool.name}")
        else:
            client.append(Tool(sent, tool.description, tool.schema, tool.strict))
    return Tools(client, native)


def client_names(tools: list[Any]) -> list[str]:
    """The names of the tools that the caller runs, as the caller wrote them down."""
    return [tool.name for raw in _flat(tools) if (tool := _client_tool(raw)) is not None]


def _flat(tools: list[Any]) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    for raw in items(tools):
        grouped = raw.get("function_declarations") or raw.get("functionDeclarations")
        flat.extend(items(grouped) if grouped else [raw])
    return flat


def _client_tool(raw: dict[str, Any]) -> Tool | None:
    kind = raw.get("type")
    declaration = fields(raw.get("function")) if kind == "function" and "function" in raw else raw
    schema = next((declaration[key] for key in _SCHEMAS if isinstance(declaration.get(key), dict)), None)
    name = declaration.get("name")
    if not isinstance(name, str) or (schema is None and kind not in (None, "function")):
        return None
    whole = {"type": "object", **cast("dict[str, Any]", schema or {"properties": {}})}
    strict = declaration.get("strict")
    return Tool(name, str(declaration.get("description") or ""), whole, strict if isinstance(strict, bool) else None)


def _native(raw: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Whose tool it is: as the caller says with `{"provider": …, "tool": …}`, or as its form shows."""
    if isinstance(raw.get("provider"), str) and isinstance(raw.get("tool"), dict):
        return raw["provider"], raw["tool"]
    kind = raw.get("type")
    if not isinstance(kind, str):
        return "gemini", raw
    return "anthropic" if _DATED.fullmatch(kind) else "openai", raw


def tool_choice_of(builder: RequestBuilder, choice: str | None, tools: Tools, *, limit: int) -> str | None:
    """The tool choice: auto, none, required, or the name of a tool as it is sent. None where there is no choice."""
    if choice is None:
        return None
    if not tools:
        builder.note("left out", "tool choice", "there are no tools")
        return None
    if choice in CHOICES:
        return choice
    name = builder.tool_name(choice, limit=limit)
    if not any(tool.name == name for tool in tools.client):
        raise Invalid(f"no tool {choice!r} to choose", hint="auto, none, required, or the name of one of the tools")
    return name
