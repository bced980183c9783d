"""A collector on loopback: takes OTLP over HTTP, and reads it with OpenTelemetry's own classes."""

import base64
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Received:
    """A span, as a collector sees it."""

    def __init__(self, span: Any) -> None:
        self.name: str = span.name
        self.kind: int = span.kind
        self.trace: str = span.trace_id.hex()
        self.id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.start_ms: float = span.start_time_unix_nano / 1e6
        self.end_ms: float = span.end_time_unix_nano / 1e6
        self.attributes = _plain(span.attributes)
        self.events = [(event.name, _plain(event.attributes)) for event in span.events]
        self.status = (span.status.code, span.status.message)

    def __getitem__(self, name: str) -> Any:
        return self.attributes.get(name)

    def __repr__(self) -> str:
        return self.name


def _plain(attributes: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in attributes}


def _value(value: Any) -> Any:
    found = getattr(value, value.WhichOneof("value"))
    return [_value(item) for item in found.values] if value.HasField("array_value") else found


def parsed(line: str | bytes) -> ExportTraceServiceRequest:
    """OTLP has ids in hexadecimal digits where JSON of Protocol Buffers has base64; nothing unknown is let through."""
    data = json.loads(line)
    for resource in data["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return json_format.ParseDict(data, ExportTraceServiceRequest())


def spans_in(request: ExportTraceServiceRequest) -> list[Received]:
    return [Received(span) for found in request.resource_spans for scope in found.scope_spans for span in scope.spans]


def spans_of(data: bytes) -> list[Received]:
    """Those of a document."""
    return [span for line in data.splitlines() for span in spans_in(parsed(line))]


class Collector(HTTPServer):
    """What it was sent; `answers` are given before the usual one, each a status, headers and a body."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answers: list[tuple[int, dict[str, str], bytes]] = []

    @property
    def spans(self) -> list[Received]:
        return [span for request in self.requests for span in spans_in(request)]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        status, headers, answer = 200, {}, json_format.MessageToJson(ExportTraceServiceResponse()).encode()
        if self.server.answers:
            status, headers, answer = self.server.answers.pop(0)
        if status == 200:
            self.server.requests.append(parsed(body))
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(answer)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    with Collector() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
