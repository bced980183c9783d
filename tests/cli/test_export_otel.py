"""`turnlog export --to otel`: a session for a collector, or a file that one reads."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from tests.collector import Collector, collecting, spans_of

RECORDED = Path(__file__).resolve().parents[1] / "formats/agents/claude-code/recorded/projects"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


def test_a_session_is_sent(process: Cli, session: str, collector: Collector):
    done = process("export", session, "--to", "otel", "--endpoint", collector.url)
    assert (done.code, done.out) == (0, f"3 spans in 1 trace sent to {collector.url}/v1/traces\n")
    assert done.err.startswith("Looked through for keys")
    assert [span.name for span in collector.spans if span.parent] == ["chat claude-sonnet-4-5", "execute_tool bash"]
    assert list(Path.cwd().iterdir()) == []


def test_another_agents_session_goes_where_the_environment_says(
    cli: Cli, collector: Collector, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    path = next(RECORDED.glob("*/1a021422*.jsonl"))
    done = cli("export", str(path), "--to", "otel", "--json")
    assert done.code == 0, done.err
    told = {name: done.json[name] for name in ("form", "path", "endpoint", "spans", "traces", "redacted")}
    assert told == {
        "form": "otel", "path": None, "endpoint": f"{collector.url}/v1/traces", "spans": len(collector.spans),
        "traces": len({span.trace for span in collector.spans}), "redacted": {},
    }  # fmt: skip
    assert {span["gen_ai.conversation.id"] for span in collector.spans} == {path.stem}


def test_subagents_that_lie_elsewhere_come_along(cli: Cli, tmp_path: Path):
    shutil.copytree(RECORDED, tmp_path / "person" / ".claude" / "projects")
    found: list[set[tuple[str, str, str]]] = []
    for name in ("1a021422", "agent-af3f5fbcec913d6ec"):
        done = cli("export", f"claude-code:{name}", "--to", "otel", "-o", "-")
        assert done.code == 0, done.err
        spans = spans_of(done.out.encode())
        assert len({span.trace for span in spans}) == 1
        found.append({(span.id, span.parent, span.name) for span in spans})
    parents = {id: name for id, _, name in found[0]}
    assert [parents[parent] for _, parent, name in found[0] if name == "invoke_agent general-purpose"] == [
        "execute_tool Agent"
    ]
    assert found[1] < found[0]


def test_without_a_collector_it_is_a_file(cli: Cli, session: str):
    done = cli("export", session, "--to", "otel")
    assert done.code == 0, done.err
    path = Path(done.out.strip())
    assert path.name.endswith(".otlp.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"flaky" not in path.read_bytes()
    assert cli("export", session, "--to", "otel").code == 4
    assert cli("export", session, "--to", "otel", "-o", "said.jsonl", "--capture-message-content").code == 0
    found = spans_of(Path("said.jsonl").read_bytes())
    assert "The test is flaky" in found[1]["gen_ai.input.messages"]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--to", "html", "--endpoint", "http://a"], 2, "--endpoint is for otel, not for html"),
        (["--to", "json", "--capture-message-content"], 2, "--capture-message-content is for otel, not for json"),
        (["--to", "otel", "--endpoint", "http://a", "-o", "b"], 2, "--endpoint and --output do not go together"),
        (["--to", "otel", "--endpoint", "a:4318"], 2, "is no http:// or https:// address"),
        (["--to", "otel", "--endpoint", "http://127.0.0.1:1"], 8, "nobody takes spans at http://127.0.0.1:1/v1/traces"),
    ],
)
def test_what_cannot_be_done_is_told(cli: Cli, session: str, words: list[str], code: int, told: str):
    done = cli("export", session, *words)
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert list(Path.cwd().iterdir()) == []
