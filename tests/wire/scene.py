"""Conversations for the dialects: one with everything in it, and the four ways to ask."""

from __future__ import annotations

from typing import Any

import turnlog
from tests.wire import official
from turnlog import Context, File, Image, Message, Text, Thinking, ToolCall, ToolResult
from turnlog.wire import Request, anthropic, gemini, openai

KINDS = ("anthropic", "responses", "chat", "gemini")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(24)
PDF = b"%PDF-1.7\n" + bytes(24)
TOOLS: list[Any] = [
    {
        "name": "bash",
        "description": "Run a command.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    {"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}},
    {"name": "mcp.files/list", "inputSchema": {"type": "object"}, "description": "From an MCP server."},
]


def ask(kind: str, context: Context, **options: Any) -> Request:
    """A request in one of the four ways. None leaves here that the provider's own types do not take."""
    if kind == "anthropic":
        request = anthropic.request(context, **{"model": "claude-sonnet-5-5", "max_tokens": 4096, **options})
    elif kind == "gemini":
        request = gemini.request(context, **{"model": "gemini-2.5-pro", **options})
    else:
        request = openai.request(context, api=kind, **{"model": "gpt-5", **options})
    official.check(kind, {key: value for key, value in request.items() if key != "stream"})
    return request


def answer(kind: str, response: Any, **options: Any) -> Message:
    """A response in one of the four ways as a message."""
    return {"anthropic": anthropic, "gemini": gemini}.get(kind, openai).draft(response, **options)


def stream(kind: str, **more: Any) -> Any:
    if kind in ("responses", "chat"):
        return openai.Stream(api=kind, **more)
    return {"anthropic": anthropic, "gemini": gemini}[kind].Stream(**more)


def session() -> turnlog.Session:
    return turnlog.open("memory:").create()


def call(id: str, name: str = "bash", input: Any = None, **fields: Any) -> ToolCall:
    return ToolCall(id=id, name=name, input={"command": "ls"} if input is None else input, **fields)


def said(*blocks: Any, **fields: Any) -> Message:
    """An assistant's message."""
    return Message(role="assistant", blocks=[Text(text=b) if isinstance(b, str) else b for b in blocks], **fields)


def everything() -> turnlog.Session:
    """A session with a bit of all that a log can hold."""
    s = session()
    s.set("system", "You are a careful agent.")
    s.set("tools", TOOLS)
    s.user([Text(text="look at this"), Image(data=PNG), File(data=PDF, name="plan.pdf")])
    s.append(
        said(
            Thinking(text="hm", provider="anthropic", data={"signature": "sig"}),
            Thinking(provider="anthropic", data={"redacted": "secret"}),
            Thinking(
                text="so", provider="openai", data={"item": {"id": "rs_1", "summary": [], "encrypted_content": "gAAA"}}
            ),
            Thinking(text="well", provider="gemini", data={"signature": "c2ln"}),
            "let me see",
            call("toolu_1"),
            call("call:2", "mcp.files/list", {}),
        )
    )
    s.tool_result("call:2", [Text(text="a.py"), Image(data=PNG)])
    s.tool_result("toolu_1", "not found", is_error=True)
    s.append(
        said(
            call(
                "srvtoolu_1",
                "web_search",
                {"query": "x"},
                by="provider",
                meta={"anthropic": {"type": "server_tool_use"}},
            ),
            ToolResult(call="srvtoolu_1", content="found", meta={"anthropic": {"block": WEB_RESULT}}),
            call("ws_1", "web_search", by="provider", meta={"openai": {"item": WEB_CALL}}),
            Text(text="it says so", meta={"openai": {"phase": "commentary"}}),
        )
    )
    s.user("go on")
    s.user([Image(url="https://example.com/cat.jpg"), File(file="file-1", provider="openai"), Text(text="and this")])
    s.system("be brief from now on")
    s.append(said(call("x", "bash", {"command": "sleep 100"}), call("x", "read", "not an object")))
    s.user("stop that")
    return s


WEB_RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "title": "t",
            "url": "https://example.com",
            "encrypted_content": "e",
            "page_age": None,
        }
    ],
}
WEB_CALL = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "queries": ["x"]},
}
