"""Spans on their way to a collector: what the environment says of it, and what becomes of its answers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

import turnlog
from tests.collector import Collector, collecting
from turnlog.reader.export.otel import telemetry
from turnlog.reader.export.otel.collector import Endpoint, endpoint_of, send

NAMED = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(scope="module")
def server() -> Iterator[Collector]:
    with collecting() as found:
        yield found


@pytest.fixture
def collector(server: Collector) -> Collector:
    for kept in (server.requests, server.headers, server.paths, server.answers):
        kept.clear()
    return server


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Two requests."""
    monkeypatch.setattr(telemetry, "_MOST_SPANS", 2)
    with turnlog.open("memory:") as home, home.create(id="s", agent="mine") as s:
        for number in range(2):
            s.user(f"question {number}")
            s.assistant("answer", model="claude-sonnet-4-5")
        return turnlog.export(home, "s", "otel").data.splitlines()


def test_a_collector_takes_a_session(collector: Collector, lines: list[bytes]):
    send(_endpoint(collector), lines)
    assert [span.name for span in collector.spans] == ["invoke_agent mine", "chat claude-sonnet-4-5"] * 2
    assert set(collector.paths) == {"/v1/traces"}
    assert collector.headers[0]["content-type"] == "application/json"
    assert collector.headers[0]["user-agent"].startswith("turnlog/")


def test_what_the_environment_says_is_done(collector: Collector, lines: list[bytes]):
    found = endpoint_of(
        {
            NAMED: f"{collector.url}/base/",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b%3D, x-team = web",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
        }
    )
    assert found is not None
    assert found.timeout_s == 2.5
    send(found, lines)
    assert collector.paths[0] == "/base/v1/traces"
    assert (collector.headers[0]["api-key"], collector.headers[0]["x-team"]) == ("a b=", "web")
    assert collector.headers[0]["content-encoding"] == "gzip"
    assert len(collector.spans) == 4


def test_what_is_said_of_traces_comes_first():
    everything = {NAMED: "http://all:4318", "OTEL_EXPORTER_OTLP_HEADERS": "a=1"}
    traces = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/x", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=2"}
    found = endpoint_of({**everything, **traces})
    assert found == Endpoint("http://t/x", {"b": "2"})
    assert endpoint_of({**everything, **traces}, "https://mine/v1/traces") == Endpoint(
        "https://mine/v1/traces", {"b": "2"}
    )
    assert endpoint_of({NAMED: ""}) is None
    assert endpoint_of({}) is None


@pytest.mark.parametrize(
    ("url", "environment", "told"),
    [
        ("localhost:4318", {}, "is no http:// or https:// address"),
        ("http://a:port", {}, "is no http:// or https:// address"),
        ("http://a..b:4318", {}, "endpoint 'http://a..b:4318/v1/traces' is no http:// or https:// address"),
        (f"http://{'a' * 64}.example", {}, "is no http:// or https:// address"),
        ("http://anna:s3cret@a:port", {}, "is no http:// or https:// address"),
        ("http://a..b/?key=s3cret", {}, "is no http:// or https:// address"),
        ("http://anna:s3cret@a", {}, "'http://a/v1/traces' has more than a host and a path"),
        ("http://a/?key=s3cret", {}, "has more than a host and a path"),
        ("http://a", {"OTEL_EXPORTER_OTLP_HEADERS": "s3cret"}, "header 1 is no name=value"),
        ("http://a", {"OTEL_EXPORTER_OTLP_HEADERS": "a=s3cret%0d%0aX: y"}, "characters that no header may have"),
        ("http://a", {"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "TIMEOUT is 'soon'"),
        ("http://a", {"OTEL_EXPORTER_OTLP_TIMEOUT": "9" * 5000}, "TIMEOUT is '999"),
    ],
)
def test_what_makes_no_sense_is_refused(url: str, environment: dict[str, str], told: str):
    with pytest.raises(turnlog.Invalid) as error:
        endpoint_of(environment, url)
    assert told in error.value.message
    assert "s3cret" not in f"{error.value.message} {error.value.hint}"


def test_another_protocol_is_not_ours():
    grpc = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    with pytest.raises(turnlog.Unsupported, match="grpc"):
        endpoint_of({**grpc, NAMED: "http://a:4317"})
    assert endpoint_of(grpc, "http://a:4318") is not None


def _endpoint(collector: Collector) -> Endpoint:
    found = endpoint_of({}, collector.url)
    assert found is not None
    return found


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_one_that_is_busy_is_asked_again(collector: Collector, lines: list[bytes], status: int):
    collector.answers += [(status, {"Retry-After": "7"}, b""), (status, {}, b"")]
    waited: list[float] = []
    send(_endpoint(collector), lines, wait=waited.append)
    assert waited[0] == 7
    assert 2 <= waited[1] <= 4
    assert len(collector.spans) == 4


def test_a_date_to_try_again_at(collector: Collector, lines: list[bytes]):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    collector.answers.append((503, {"Retry-After": later}, b""))
    waited: list[float] = []
    send(_endpoint(collector), lines, wait=waited.append)
    assert 0 < waited[0] <= 30


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "3600"}])
def test_one_that_stays_busy_is_left(collector: Collector, lines: list[bytes], headers: dict[str, str]):
    collector.answers += [(200, {}, b"{}")] + [(503, headers, b"")] * 9
    waited: list[float] = []
    with pytest.raises(
        turnlog.Unavailable, match=r"503 Service Unavailable; 1 of 2 requests were taken before"
    ) as told:
        send(_endpoint(collector), lines, wait=waited.append)
    assert len(waited) == (0 if headers else 4)
    assert ("in 3600 s" if headers else "later") in str(told.value.hint)


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (400, b'{"code":3,"message":"no span"}', turnlog.Unsupported, "answers 400 Bad Request: no span"),
        (401, b"", turnlog.Unsupported, "answers 401 Unauthorized"),
        (302, b"", turnlog.Unsupported, "answers 302 Found"),
        (500, b"<html>", turnlog.Unavailable, "answers 500 Internal Server Error"),
        (200, b'{"partialSuccess":{"rejectedSpans":"1","errorMessage":"too old"}}', turnlog.Unsupported,
         "left out 1 spans: too old"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_and_not_tried_again(
    collector: Collector, lines: list[bytes], status: int, body: bytes, kind: Any, told: str
):
    collector.answers.append((status, {"Location": "/elsewhere"} if status == 302 else {}, body))
    with pytest.raises(kind) as error:
        send(_endpoint(collector), lines, wait=pytest.fail)
    assert told in error.value.message
    assert len(collector.paths) == 1


def test_a_remark_is_passed_on(collector: Collector, lines: list[bytes]):
    collector.answers.append((200, {}, b'{"partialSuccess":{"errorMessage":"use less"}}'))
    told: list[str] = []
    send(_endpoint(collector), lines, tell=told.append)
    assert told == [f"{collector.url}/v1/traces: use less"]


def test_where_nobody_listens(lines: list[bytes]):
    with collecting() as gone:
        endpoint = _endpoint(gone)
    with pytest.raises(turnlog.Unavailable, match="nobody takes spans at http://127") as told:
        send(endpoint, lines)
    assert "-o FILE" in str(told.value.hint)


def test_a_certificate_that_is_not_there():
    endpoint = endpoint_of({"OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such.pem"}, "https://localhost:1")
    assert endpoint is not None
    with pytest.raises(turnlog.Invalid, match=r"CERTIFICATE '/no/such\.pem'"):
        send(endpoint, [b"{}"])
