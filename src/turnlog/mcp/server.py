"""The methods of the protocol, and what answers each."""

from __future__ import annotations

import os
from typing import Any, cast

from turnlog.mcp.offer import INSTRUCTIONS, NAME, offered, wrong_with
from turnlog.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, Client, Params, Refused
from turnlog.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from turnlog.mcp.library import Library

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""The versions of the protocol, the newest first."""
RESOURCE_NOT_FOUND = -32002


class ServerSettings:
    """The settings that the server was started with. No request changes them."""

    def __init__(
        self, location: str | None, workspace: str | None, *, everywhere: bool = False, allow_rewind: bool = False
    ) -> None:
        self.location = location
        self.workspace = workspace
        self.everywhere = everywhere
        self.allow_rewind = allow_rewind


class Server:
    """Answers one client."""

    def __init__(self, settings: ServerSettings, client: Client) -> None:
        self._settings = settings
        self._peer = client
        self._client_name = ""
        self._library: Library | None = None
        self._methods = {
            "initialize": self._initialize,
            "tools/list": self._tools,
            "tools/call": self._call,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
        }

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request. Raises `Refused`."""
        work = self._methods.get(method)
        if work is None:
            raise Refused(METHOD_NOT_FOUND, f"no method {method!r:.80}")
        return work(params)

    def keep_up(self) -> None:
        """Look for changes while no request waits."""
        if self._library is not None:
            self._library.keep_up()

    def close(self) -> None:
        """Close what was opened."""
        if self._library is not None:
            self._library.close()

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked: Any = params.get("protocolVersion")
        client: Any = params.get("clientInfo")
        name = cast("Params", client).get("name") if isinstance(client, dict) else ""
        self._client_name = name if isinstance(name, str) and name.isprintable() else ""
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": NAME, "title": "Turnlog", "version": __version__},
            "instructions": INSTRUCTIONS,
        }

    @property
    def library(self) -> Library:
        """The library, opened when it is first needed: `initialize` is answered before."""
        if self._library is None:
            from turnlog.mcp.caller import Caller
            from turnlog.mcp.library import Library
            from turnlog.mcp.scope import Scope

            settings = self._settings
            scope = Scope(settings.workspace, everywhere=settings.everywhere)
            self._library = Library(settings.location, scope, Caller(self._client_name), self._peer.check)
        return self._library

    # ── tools ─────────────────────────────────────────────────────────────────────────────────────

    def _tools(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": offered(allow_rewind=self._settings.allow_rewind)}

    def _call(self, params: dict[str, Any]) -> dict[str, Any]:
        name: Any = params.get("name")
        given: Any = params.get("arguments") or {}
        meta: Any = params.get("_meta")
        names = [tool["name"] for tool in offered(allow_rewind=self._settings.allow_rewind)]
        if name not in names:
            raise Refused(INVALID_PARAMS, f"no tool {name!r:.80}: {', '.join(names)}")
        if not isinstance(given, dict):
            raise Refused(INVALID_PARAMS, "arguments is no object")
        return self._answered(
            name, _sane(cast("Params", given)), cast("Params", meta) if isinstance(meta, dict) else {}
        )

    def _answered(self, name: str, arguments: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
        from importlib import import_module

        from turnlog.errors import Invalid, TurnlogError
        from turnlog.mcp.page import failed

        try:
            wrong = wrong_with(name, arguments)
            if wrong:
                raise Invalid(wrong)
            return import_module(f"turnlog.mcp.tools.{name}").call(self.library, arguments, meta)
        except TurnlogError as error:  # the model can do better the next time; the protocol is fine
            return failed(error)

    # ── resources and prompts ─────────────────────────────────────────────────────────────────────

    def _resources(self, params: dict[str, Any]) -> dict[str, Any]:
        from turnlog.mcp.resource import listed

        return {"resources": self._or_refused(lambda: listed(self.library))}

    def _templates(self, params: dict[str, Any]) -> dict[str, Any]:
        from turnlog.mcp.resource import TEMPLATES

        return {"resourceTemplates": TEMPLATES}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        from turnlog.mcp.resource import read

        uri = params.get("uri")
        if not isinstance(uri, str) or not uri.isprintable():
            raise Refused(INVALID_PARAMS, "uri is missing, or is none")
        return {"contents": self._or_refused(lambda: read(self.library, uri), RESOURCE_NOT_FOUND, {"uri": uri})}

    def _prompts(self, params: dict[str, Any]) -> dict[str, Any]:
        from turnlog.mcp.prompt import offered_prompts

        return {"prompts": offered_prompts()}

    def _prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        from turnlog.mcp.prompt import filled

        return self._or_refused(lambda: filled(params.get("name"), params.get("arguments") or {}))

    def _or_refused(self, ask: Any, missing: int = INVALID_PARAMS, data: Any = None) -> Any:
        """The result of `ask`; an error of ours becomes one of the protocol."""
        from turnlog.errors import Invalid, NotFound, TurnlogError

        try:
            return ask()
        except NotFound as error:
            raise Refused(missing, error.message, data) from None
        except Invalid as error:
            raise Refused(INVALID_PARAMS, error.message) from None
        except TurnlogError as error:
            raise Refused(INTERNAL_ERROR, error.message) from None


def _sane(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments without empty ones, and with whole numbers as integers: models and agents differ in that."""
    whole = {
        key: int(value) if isinstance(value, float) and value.is_integer() else value for key, value in given.items()
    }
    return {key: value for key, value in whole.items() if value is not None}


def serve(settings: ServerSettings) -> None:
    """Answer requests on stdin until it ends. Only answers go to stdout; everything else goes to stderr."""
    sink = os.dup(1)
    os.dup2(2, 1)  # whatever else is printed must not get between the answers
    with open(0, "rb", closefd=False) as source:
        client = Client(source, sink)
        server = Server(settings, client)
        try:
            client.serve(server.answer, server.keep_up)
        finally:
            server.close()
