"""Checks every request before anything else sees it: Host, Origin and token. Adds security headers to every answer."""

from __future__ import annotations

import hashlib
import hmac
import re
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_HOST = re.compile(r"(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?", re.IGNORECASE)
_MOST_BYTES = 1 << 20
"""The largest body of a request that is accepted."""


def page_token_of(token: str) -> str:
    """The token that a page sends in a header to change something: no script can read the cookie."""
    return hmac.new(token.encode(), b"page", hashlib.sha256).hexdigest()


class Guard:
    """Passes on requests from pages of this server and from clients that have its token. Refuses all others."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, is_read_only: bool) -> None:
        self._app = app
        self._token = token
        self._page_token = page_token_of(token)
        self._cookie = f"turnlog-{port}"
        self._is_read_only = is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            return
        path = scope.get("raw_path") or scope["path"].encode()
        scope["path"] = unquote(path.replace(b"%2F", b"%252F").replace(b"%2f", b"%252F").decode("latin-1"))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message.setdefault("headers", []))
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, answer)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not _HOST.fullmatch(hosts[0]):
            return PlainTextResponse("this server answers to 127.0.0.1 and localhost only\n", 421)
        own = f"http://{hosts[0]}".lower()
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        method = scope["method"]
        token = query.pop("token", None) if method in ("GET", "HEAD") else None
        is_elsewhere = site not in (None, "same-origin", "none")
        if origin is None and token is not None and self._is_token(token):
            return self._welcome(scope, query, is_elsewhere=is_elsewhere)
        if (origin is not None and origin.lower() != own) or is_elsewhere:
            return PlainTextResponse("requests from other sites are refused\n", 403)
        if token is not None:
            return _token_required()
        if not self._is_token(self._cookie_token(headers)):
            return _token_required()
        if method in ("GET", "HEAD"):
            return None
        return self._may_write(method, headers, origin)

    def _may_write(self, method: str, headers: Headers, origin: str | None) -> ASGIApp | None:
        if self._is_read_only or method != "POST":
            return PlainTextResponse("nothing can be changed here\n", 405)
        if origin is None:
            return PlainTextResponse("the Origin header is missing\n", 403)
        if not hmac.compare_digest(headers.get("x-turnlog-token", "").encode(), self._page_token.encode()):
            return PlainTextResponse("the page token is missing or wrong: reload the page\n", 403)
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("only JSON is accepted\n", 415)
        length = headers.get("content-length", "")
        if not length.isdecimal():
            return PlainTextResponse("the Content-Length header is missing\n", 411)
        if int(length) > _MOST_BYTES:
            return PlainTextResponse("the request is too long\n", 413)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())

    def _cookie_token(self, headers: Headers) -> str:
        # All ports of this host share their cookies. The parser of Python gives up at the first one that it does not
        # understand, whichever program set it.
        return cookie_parser(headers.get("cookie", "")).get(self._cookie, "")

    def _welcome(self, scope: Scope, query: dict[str, str], *, is_elsewhere: bool) -> ASGIApp:
        """Set the token as a cookie and redirect to the address without it.

        If the link is elsewhere, such as in the file that opens the browser, a 303 would still count as a request from
        there, which gets no cookie: then a page of ours redirects.
        """
        raw = scope.get("raw_path") or scope["path"].encode()
        path = "/" + raw.decode("latin-1").lstrip("/\\")  # never another host: browsers take `\` for `/`
        address = path + (f"?{urlencode(query)}" if query else "")
        refresh = f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">\n'
        answer = HTMLResponse(refresh) if is_elsewhere else RedirectResponse(address, 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", max_age=400 * 86_400)
        return answer


def _token_required() -> PlainTextResponse:
    return PlainTextResponse("open the address that `turnlog web` printed: it has the token\n", 401)
