"""Google ADK: `SqliteSessionService.append_event` once per message."""

from pathlib import Path
from typing import Any

from google.adk.events import Event
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from bench.contestants import sqlite_durability
from bench.work import TURN, Message

TEXT = {"type": "text", "text": "hi"}


class Store:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "adk.sqlite"
        self.key = {"app_name": "bench", "user_id": "bench", "session_id": "bench"}

    def open(self) -> Any:
        return SqliteSessionService(str(self.path))

    async def create(self) -> None:
        self.service = self.open()
        self.session = await self.service.create_session(**self.key)

    def native(self, index: int, message: Message) -> Any:
        role, parts = message
        content = types.Content(
            role="model" if role == "assistant" else "user",
            parts=[_part(part) for part in parts],
        )
        author = "user" if role == "user" else "agent"
        return Event(author=author, invocation_id=f"turn-{index // TURN}", content=content)

    async def append(self, item: Any) -> None:
        await self.service.append_event(self.session, item)

    async def close(self) -> None:
        await self.shut(self.service)

    async def shut(self, service: Any) -> None:
        await service.close()

    async def load(self) -> list[Any]:
        return await self._events(None)

    async def tail(self, count: int) -> list[Any]:
        return await self._events(GetSessionConfig(num_recent_events=count))

    async def fill(self, count: int) -> None:
        service = self.open()
        for number in range(count):
            made = await service.create_session(
                app_name="many", user_id="bench", session_id=f"s{number}", state={"n": 1}
            )
            await service.append_event(made, Event(author="user", content=types.Content(parts=[_part(TEXT)])))
        await self.shut(service)

    async def listing(self) -> list[Any]:
        service = self.open()
        try:
            return (await service.list_sessions(app_name="many", user_id="bench")).sessions
        finally:
            await self.shut(service)

    async def _events(self, config: Any) -> list[Any]:
        service = self.open()
        try:
            session = await service.get_session(**self.key, config=config)
            return session.events
        finally:
            await self.shut(service)

    def strings(self, items: list[Any]) -> list[str]:
        return [_string(part) for event in items for part in event.content.parts]

    def durability(self) -> str:
        return sqlite_durability(self.path)


def _part(part: dict[str, Any]) -> Any:
    if part["type"] == "text":
        return types.Part(text=part["text"])
    if part["type"] == "tool_call":
        call = types.FunctionCall(id=part["id"], name=part["name"], args=part["input"])
        return types.Part(function_call=call)
    response = {"result": part["output"]}
    answer = types.FunctionResponse(id=part["id"], name=part["name"], response=response)
    return types.Part(function_response=answer)


def _string(part: Any) -> str:
    if part.function_call:
        return part.function_call.args["command"]
    if part.function_response:
        return part.function_response.response["result"]
    return part.text
