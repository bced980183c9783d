"""Who may ask, and what every answer says: Host, Origin, token, headers; before anything else is looked at."""

from __future__ import annotations

import hashlib
import hmac
import re
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse

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
    """What a page says in a header when it wants to change something: the cookie itself no script may read."""
    return hmac.new(token.encode(), b"page", hashlib.sha256).hexdigest()


class Guard:
    """Lets through what comes from a page of this server, or from whoever has its address with the token."""

    def __init__(self, app: ASGIApp, *, token: str, port: int, is_read_only: bool) -> None:
        self._app = app
        self._token = token
        self._page_token = page_token_of(token)
        self._cookie = f"turnlog-{port}"
        self._is_read_only = is_read_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
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
        if (origin is not None and origin.lower() != own) or site not in (None, "same-origin", "none"):
            return PlainTextResponse("another site asks: refused\n", 403)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        method = scope["method"]
        if method in ("GET", "HEAD") and "token" in query:
            if self._is_token(query.pop("token")):
                return self._welcome(scope, query)
            return _unknown()
        if not self._is_token(self._given(headers)):
            return _unknown()
        if method in ("GET", "HEAD"):
            return None
        return self._may_write(method, headers, origin)

    def _may_write(self, method: str, headers: Headers, origin: str | None) -> ASGIApp | None:
        if self._is_read_only or method != "POST":
            return PlainTextResponse("nothing can be changed here\n", 405)
        if origin is None:
            return PlainTextResponse("it does not say from which page it comes\n", 403)
        if not hmac.compare_digest(headers.get("x-turnlog-token", "").encode(), self._page_token.encode()):
            return PlainTextResponse("it lacks the token of its page: reload the page\n", 403)
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return PlainTextResponse("JSON is what this takes\n", 415)
        length = headers.get("content-length", "")
        if not length.isdecimal() or int(length) > _MOST_BYTES:
            return PlainTextResponse("too long\n", 413)
        return None

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._token.encode())

    def _given(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return ""
        return "" if found is None else found.value

    def _welcome(self, scope: Scope, query: dict[str, str]) -> ASGIApp:
        """The token becomes a cookie, and the address is without it."""
        path = "/" + scope["raw_path"].decode("latin-1").lstrip("/")  # never another host
        answer = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", max_age=400 * 86_400)
        return answer


def _unknown() -> PlainTextResponse:
    return PlainTextResponse("open the address that `turnlog web` printed: it has the token\n", 401)
