"""Where spans are sent to: an endpoint of OTLP over HTTP, as OpenTelemetry's variables of the environment name one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from itertools import count
from typing import Any, cast
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
from msgspec import Struct

from turnlog.errors import Invalid, Unavailable, Unsupported
from turnlog.reader.part import numbered
from turnlog.version import __version__

PATH = "/v1/traces"
_PREFIX = "OTEL_EXPORTER_OTLP_"
_BUSY = (429, 502, 503, 504)
"""What the protocol says may be tried again; nothing else may."""
_TRIES = 5
_LONGEST_WAIT_S = 60.0
_ANSWER_BYTES = 1 << 20


class Endpoint(Struct, frozen=True):
    """A collector: where it listens, and how it is asked."""

    url: str
    headers: dict[str, str] = {}
    timeout_s: float = 10.0
    certificate: str | None = None
    is_compressed: bool = False


class _Reply(Struct, frozen=True):
    """What a collector answers; `pause_s` is how long it asks to wait."""

    status: int
    reason: str
    pause_s: float | None
    body: bytes


def endpoint_of(environment: Mapping[str, str], url: str | None = None) -> Endpoint | None:
    """The one that is named, or that the environment names; None where neither does."""

    def setting(name: str) -> str | None:
        return environment.get(f"{_PREFIX}TRACES_{name}") or environment.get(_PREFIX + name) or None

    if url is None:
        url = environment.get(f"{_PREFIX}TRACES_ENDPOINT") or None
        if url is None:
            base = environment.get(f"{_PREFIX}ENDPOINT") or None
            url = None if base is None else _below(base)
        if url is None:
            return None
        if setting("PROTOCOL") == "grpc":
            raise Unsupported(
                f"{_PREFIX}PROTOCOL is grpc, and spans are sent over HTTP",
                hint="--endpoint http://HOST:4318 names the collector's other port",
            )
    else:
        url = _below(url)
    _split(url)
    return Endpoint(
        url,
        _headers(setting("HEADERS") or ""),
        _seconds(setting("TIMEOUT")),
        setting("CERTIFICATE"),
        setting("COMPRESSION") == "gzip",
    )


def _below(base: str) -> str:
    """Where a collector takes traces."""
    return base if base.rstrip("/").endswith(PATH) else base.rstrip("/") + PATH


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            parts.hostname.encode("idna")  # as the connection does: an empty or a long label has no address
            if parts.username is None and not parts.query and not parts.fragment and url.isascii():
                return parts
            raise Invalid(
                f"endpoint {_plain(parts)!r:.120} has more than a host and a path",
                hint=f"what is secret goes into {_PREFIX}HEADERS: Authorization=Basic%20…",
            )
    except ValueError:
        pass
    address = "" if any(mark in url for mark in "@?#") else f" {url!r:.120}"  # a password or a key may be in it
    raise Invalid(f"endpoint{address} is no http:// or https:// address", hint="such as http://localhost:4318")


def _plain(parts: SplitResult) -> str:
    """An address without what may be secret in it."""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _headers(text: str) -> dict[str, str]:
    """`name=value,name=value`, as the W3C's baggage writes it. What is in it is never repeated: it may be a key."""
    headers: dict[str, str] = {}
    for number, pair in enumerate([pair for pair in text.split(",") if pair.strip()], 1):
        name, equals, value = (part.strip() for part in pair.partition("="))
        name, value = unquote(name), unquote(value)
        if not equals or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            raise Invalid(f"{_PREFIX}HEADERS: header {number} is no name=value", hint="such as api-key=…,x-team=web")
        if not value.isprintable() or not value.isascii():
            raise Invalid(f"{_PREFIX}HEADERS: the value of {name!r:.40} has characters that no header may have")
        headers[name] = value
    return headers


def _seconds(milliseconds: str | None) -> float:
    if milliseconds is None:
        return 10.0
    number = numbered(milliseconds)
    if number is None or not 0 < number <= 86_400_000:
        raise Invalid(f"{_PREFIX}TIMEOUT is {milliseconds!r:.40}", hint="it is a number of milliseconds, such as 10000")
    return number / 1000


# ── sending ───────────────────────────────────────────────────────────────────────────────────────


def send(
    endpoint: Endpoint,
    requests: list[bytes],
    *,
    tell: Callable[[str], None] = lambda text: None,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Send all of them, in order. Raises `Unavailable` where nobody answers, and `Unsupported` where it is refused.

    `tell` is told what the collector remarks on what it took.
    """
    for number, body in enumerate(requests):
        try:
            remark = _send_one(endpoint, body, wait)
        except (Unavailable, Unsupported) as error:
            if number:
                error.message += f"; {number} of {len(requests)} requests were taken before that"
                error.args = (error.message,)
            raise
        if remark:
            tell(f"{endpoint.url}: {remark}")


def _send_one(endpoint: Endpoint, body: bytes, wait: Callable[[float], None]) -> str:
    """What the collector remarks."""
    waited = 0.0
    for attempt in count(1):
        reply = _post(endpoint, body)
        if 200 <= reply.status < 300:
            return _taken(endpoint, reply)
        pause = random.uniform(0.5, 1) * 2**attempt if reply.pause_s is None else reply.pause_s
        waited += pause
        if reply.status not in _BUSY or attempt == _TRIES or waited > _LONGEST_WAIT_S:
            raise _refusal(endpoint, reply)
        wait(pause)
    raise AssertionError


def _post(endpoint: Endpoint, body: bytes) -> _Reply:
    parts = _split(endpoint.url)
    headers = {"Content-Type": "application/json", "User-Agent": f"turnlog/{__version__}", **endpoint.headers}
    if endpoint.is_compressed:
        import gzip

        body, headers = gzip.compress(body, 6), {**headers, "Content-Encoding": "gzip"}
    connection = _connection(endpoint, parts)
    try:
        connection.request("POST", parts.path or "/", body, headers)
        response = connection.getresponse()
        return _Reply(response.status, response.reason[:80], _retry_after(response), response.read(_ANSWER_BYTES))
    except (OSError, HTTPException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Unavailable(
            f"nobody takes spans at {endpoint.url}: {reason:.200}",
            hint="is a collector running there? -o FILE writes the same spans to a file",
        ) from None
    finally:
        connection.close()


def _connection(endpoint: Endpoint, parts: SplitResult) -> HTTPConnection:
    assert parts.hostname is not None
    if parts.scheme == "http":
        return HTTPConnection(parts.hostname, parts.port, timeout=endpoint.timeout_s)
    import ssl

    try:
        trusted = ssl.create_default_context(cafile=endpoint.certificate)
    except OSError as error:
        raise Invalid(f"{_PREFIX}CERTIFICATE {endpoint.certificate!r:.120}: {error.strerror or error}") from None
    return HTTPSConnection(parts.hostname, parts.port, timeout=endpoint.timeout_s, context=trusted)


def _retry_after(response: HTTPResponse) -> float | None:
    """How many seconds it asks to wait for: a number of them, or a date."""
    retry_after = (response.getheader("Retry-After") or "").strip()
    if retry_after.isdecimal():
        return float(retry_after[:9])
    try:
        return max(0.0, parsedate_to_datetime(retry_after).timestamp() - time.time()) if retry_after else None
    except ValueError:
        return None


def _taken(endpoint: Endpoint, reply: _Reply) -> str:
    """What was not taken of a request that was; a server may say less than the protocol asks for."""
    answer = _object(reply.body).get("partialSuccess")
    partial_success = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    rejected = str(partial_success.get("rejectedSpans") or 0)
    remark = str(partial_success.get("errorMessage") or "")
    if rejected != "0":
        raise Unsupported(f"{endpoint.url} left out {rejected:.20} spans: {remark or 'it does not say why':.200}")
    return remark[:200]


def _refusal(endpoint: Endpoint, reply: _Reply) -> Unsupported | Unavailable:
    server_message = _object(reply.body).get("message")
    message = f"{endpoint.url} answers {reply.status} {reply.reason}"
    if isinstance(server_message, str) and server_message:
        message += f": {server_message:.200}"
    if reply.status >= 500 or reply.status in _BUSY:
        when = "later" if reply.pause_s is None else f"in {reply.pause_s:.0f} s"
        return Unavailable(message, hint=f"try again {when}: what is sent twice has the same ids")
    hints = {
        401: f"what it wants to know of you goes into {_PREFIX}HEADERS",
        403: f"what it wants to know of you goes into {_PREFIX}HEADERS",
        404: f"spans go to the base address with {PATH} behind it, by HTTP; 4318 is the usual port",
        415: "it takes no JSON; a collector before it does, and passes spans on",
    }
    return Unsupported(message, hint=hints.get(reply.status, "-o FILE writes the same spans to a file"))


def _object(answer: bytes) -> dict[str, Any]:
    try:
        reply = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return {}
    return cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}
