"""A session as OpenTelemetry's spans: a trace for each turn, under the names of the conventions."""

from collections import Counter
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as conventions
from opentelemetry.semconv.attributes import error_attributes

import turnlog
from tests.collector import Received, parsed, spans_of
from turnlog import Compaction, Message, Spent, Text, ToolCall, ToolResult, Usage
from turnlog.exchange.importing.run import import_all
from turnlog.exchange.source import sources
from turnlog.reader.export.otel import telemetry
from turnlog.reader.opening.opener import OpenedSession, SessionOpener
from turnlog.session.interior import interior
from turnlog.thread.history import History
from turnlog.thread.reader import history_of
from turnlog.view.otel import genai

FORMATS = Path(__file__).resolve().parents[1] / "formats"
AGENTS = sorted({folder.name for folder in (FORMATS / "agents").iterdir() if folder.is_dir()} - {"__pycache__"})
SEEDS = [folder.name for folder in sorted((FORMATS / "seeds").iterdir()) if folder.is_dir()]
OLD = {
    "gen_ai.system", "gen_ai.prompt", "gen_ai.completion", "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.completion_tokens",
}  # fmt: skip
NAMES = {value for name, value in vars(conventions).items() if name.startswith("GEN_AI_")} - OLD
OURS = {
    "turnlog.compaction.trigger", "turnlog.compaction.tokens_before", "turnlog.compaction.tokens_after",
    "turnlog.spent.why", "turnlog.tool.unfinished", "turnlog.approval.allow", "turnlog.approval.by",
}  # fmt: skip
INTERNAL, CLIENT = 1, 3
START = datetime(2027, 1, 15, 8, tzinfo=UTC)
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def home():
    with turnlog.open("memory:", clock=count(1_800_000_000_000, 1000).__next__) as home:
        yield home


def spans(home: turnlog.Home, session: str = "s", **options: Any) -> list[Received]:
    return spans_of(turnlog.export(home, session, "otel", **options).data)


def one(found: list[Received], name: str) -> Received:
    return next(span for span in found if span.name == name)


def worked(home: turnlog.Home) -> turnlog.Session:
    s = home.create(id="s", agent="shopkeeper")
    with s.turn():
        s.user("Which files are there?")
        s.assistant(
            [Text("Looking."), ToolCall(id="c1", name="bash", input={"command": f"TOKEN={SECRET} ls"})],
            model="claude-sonnet-4-5-20250929", provider="anthropic", request="msg_1", stop="tool_use",
            options={"model": "claude-sonnet-4-5", "max_tokens": 1000, "temperature": 0, "stop_sequences": ["END"]},
            usage=Usage(
                input_tokens=10, cache_read_tokens=90, cache_write_tokens=5, output_tokens=7, reasoning_tokens=2
            ),
            duration_ms=700, first_token_ms=250,
        )  # fmt: skip
        asked = s.ask("c1")
        s.answer(asked, allow=True, by="anna")
        s.tool_start("c1")
        s.tool_result("c1", "No such token", is_error=True)
        s.assistant(
            "None.", model="claude-sonnet-4-5-20250929", stop="end", usage=Usage(input_tokens=3, output_tokens=1)
        )
    return s


def test_a_turn_is_a_trace(home: turnlog.Home):
    worked(home)
    found = spans(home)
    assert Counter(span.name for span in found) == {
        "invoke_agent shopkeeper": 1,
        "chat claude-sonnet-4-5": 1,
        "chat claude-sonnet-4-5-20250929": 1,
        "execute_tool bash": 1,
    }
    root = one(found, "invoke_agent shopkeeper")
    assert (root.parent, root.kind, root.status[0]) == ("", INTERNAL, 0)
    assert {span.parent for span in found if span is not root} == {root.id}
    assert {span.trace for span in found} == {root.trace}
    assert {span["gen_ai.conversation.id"] for span in found} == {"s"}
    for span in found:
        assert root.start_ms <= span.start_ms <= span.end_ms <= root.end_ms


def test_what_a_request_said_and_took(home: turnlog.Home):
    worked(home)
    chat = one(spans(home), "chat claude-sonnet-4-5")
    assert chat.kind == CLIENT
    assert chat.end_ms - chat.start_ms == 700
    assert chat.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.conversation.id": "s",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 1000,
        "gen_ai.request.stop_sequences": ["END"],
        "gen_ai.request.stream": True,
        "gen_ai.response.id": "msg_1",
        "gen_ai.response.model": "claude-sonnet-4-5-20250929",
        "gen_ai.response.finish_reasons": ["tool_call"],
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 105,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 90,
        "gen_ai.usage.cache_creation.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 2,
    }


def test_a_tool_takes_from_its_start_to_its_result(home: turnlog.Home):
    s = worked(home)
    tool = one(spans(home), "execute_tool bash")
    started, result = (next(e.at for e in s.entries() if wanted(e)) for wanted in (_is_started, _is_result))
    assert (tool.start_ms, tool.end_ms) == (started.timestamp() * 1000, result.timestamp() * 1000)
    assert (tool.kind, tool["error.type"], tool.status[0]) == (INTERNAL, "_OTHER", 2)
    assert (tool["gen_ai.tool.name"], tool["gen_ai.tool.call.id"]) == ("bash", "c1")
    assert tool.events == [
        ("turnlog.approval.asked", {}),
        ("turnlog.approval.answered", {"turnlog.approval.allow": True, "turnlog.approval.by": "anna"}),
    ]


def _is_started(entry: Any) -> bool:
    return entry.type == "started"


def _is_result(entry: Any) -> bool:
    return isinstance(entry, Message) and entry.role == "tool"


def test_what_was_said_is_left_out_unless_asked_for(home: turnlog.Home):
    worked(home)
    made = turnlog.export(home, "s", "otel", redact=False)
    for word in (b"Which files", b"Looking", b"ls", SECRET.encode(), b"No such token"):
        assert word not in made.data
    assert turnlog.export(home, "s", "otel").redacted == {}
    told = turnlog.export(home, "s", "otel", content=True)
    assert SECRET.encode() not in told.data
    assert sum((told.redacted or {}).values()) == 1
    found = spans_of(told.data)
    _check_names(found)
    chat, tool = one(found, "chat claude-sonnet-4-5"), one(found, "execute_tool bash")
    assert chat["gen_ai.input.messages"] == (
        '[{"role":"user","parts":[{"type":"text","content":"Which files are there?"}]}]'
    )
    assert '"type":"tool_call","id":"c1","name":"bash"' in chat["gen_ai.output.messages"]
    assert '"finish_reason":"tool_call"' in chat["gen_ai.output.messages"]
    assert "[redacted:" in tool["gen_ai.tool.call.arguments"]
    assert tool["gen_ai.tool.call.result"] == '"No such token"'
    later = one(found, "chat claude-sonnet-4-5-20250929")
    assert "Which files" not in later["gen_ai.input.messages"]  # it was told with the request before
    assert "tool_call_response" in later["gen_ai.input.messages"]


def test_a_secret_in_an_error_is_taken_out_without_content_too(home: turnlog.Home):
    s = home.create(id="s")
    s.user("go")
    s.assistant([], model="gpt-5", stop="error", error={"type": "authentication_error", "message": f"bad key {SECRET}"})
    made = turnlog.export(home, "s", "otel")
    assert SECRET.encode() not in made.data
    assert sum((made.redacted or {}).values()) == 1
    root, chat = spans_of(made.data)
    assert (chat["error.type"], chat.status) == ("authentication_error", (2, "bad key [redacted: token]"))
    assert (root["error.type"], root.status) == (chat["error.type"], chat.status)
    assert chat["gen_ai.provider.name"] == "openai"


@pytest.mark.parametrize("agent", [*AGENTS, *SEEDS])
def test_the_sums_are_those_of_the_usage(agent: str):
    """And names are those of the conventions, ids the same at every reading, for whatever was recorded of an agent."""
    place = FORMATS / ("seeds" if agent in SEEDS else "agents") / agent
    readings: list[dict[str, bytes]] = []
    for _ in range(2):
        with turnlog.open("memory:") as home:
            done = import_all(interior(home).creator, sources(str(place)), lambda *_: None)
            names = [item.id for item in done if item.id]
            readings.append({name: turnlog.export(home, name, "otel", redact=False).data for name in names})
            for name in names if len(readings) == 1 else ():
                with home.read(name) as s:
                    _check_sums(spans_of(readings[0][name]), s)
    assert readings[0]
    assert readings[0] == readings[1]


def _check_sums(found: list[Received], session: turnlog.ReadOnlySession) -> None:
    _check_names(found)
    usage = session.usage().own + session.usage().subagents
    assert sum(span["gen_ai.usage.input_tokens"] or 0 for span in found) == usage.all_input_tokens
    assert sum(span["gen_ai.usage.output_tokens"] or 0 for span in found) == usage.output_tokens
    ids = {span.id for span in found}
    assert len(ids) == len(found)
    is_subagent = "spawned" in history_of(session).state.start
    assert is_subagent or all(span.parent in ids or not span.parent for span in found)


def _check_names(found: list[Received]) -> None:
    operations = {value.value for value in conventions.GenAiOperationNameValues}
    for span in found:
        events = {name for _, told in span.events for name in told}
        assert span.attributes.keys() | events <= NAMES | {error_attributes.ERROR_TYPE} | OURS
        assert span["gen_ai.operation.name"] in operations
        assert span.name.startswith(span["gen_ai.operation.name"])
        assert len(span.trace) == 32
        assert len(span.id) == 16


def test_the_version_of_the_conventions_is_said(home: turnlog.Home):
    worked(home)
    for line in turnlog.export(home, "s", "otel").data.splitlines():
        (found,) = parsed(line).resource_spans
        assert found.schema_url == found.scope_spans[0].schema_url == "https://opentelemetry.io/schemas/1.41.1"
        assert found.scope_spans[0].scope.name == "turnlog"
        (service,) = found.resource.attributes
        assert (service.key, service.value.string_value) == ("service.name", "shopkeeper")


def test_a_session_that_went_on_repeats_what_was_sent(home: turnlog.Home):
    s = worked(home)
    before = turnlog.export(home, "s", "otel").data
    s.user("And now?")
    assert turnlog.export(home, "s", "otel").data == before  # nobody did anything yet
    s.assistant("Nothing.", model="gpt-5")
    after = spans(home)
    known = spans_of(before)
    assert [vars(span) for span in after[: len(known)]] == [vars(span) for span in known]
    assert len({span.trace for span in after}) == 2


def test_a_split_answer_is_one_request(home: turnlog.Home):
    s = home.create(id="s")
    s.user("go")
    usage = Usage(input_tokens=5, output_tokens=2)
    s.assistant("One,", model="m", request="r1", usage=usage)
    s.assistant("two.", model="m", request="r1", usage=usage, stop="end")
    chat = one(spans(home, content=True), "chat m")
    assert chat["gen_ai.usage.output_tokens"] == 2
    assert "One," in chat["gen_ai.output.messages"]
    assert "two." in chat["gen_ai.output.messages"]
    assert len(spans(home)) == 2


def test_a_subagent_is_in_the_trace_of_the_call_that_started_it(home: turnlog.Home):
    s = home.create(id="s", agent="boss")
    s.user("go")
    s.assistant([ToolCall(id="c1", name="task", input={})], model="m", usage=Usage(input_tokens=1))
    with s.spawn(id="sub", call="c1", role="explore") as sub:
        sub.user("look around")
        sub.assistant("done", model="m", usage=Usage(input_tokens=20))
    s.tool_result("c1", "done")
    found = spans(home)
    call, below = one(found, "execute_tool task"), one(found, "invoke_agent explore")
    assert below.parent == call.id
    assert len({span.trace for span in found}) == 1
    assert sum(span["gen_ai.usage.input_tokens"] or 0 for span in found) == 21
    alone = spans(home, "sub")
    assert {(span.trace, span.id, span.parent) for span in alone} < {
        (span.trace, span.id, span.parent) for span in found
    }
    assert below["gen_ai.conversation.id"] == "sub"


def test_a_fork_does_not_tell_what_it_inherited(home: turnlog.Home):
    s = worked(home)
    fork = s.fork(id="f")
    fork.user("another way")
    fork.assistant("ok", model="m", usage=Usage(output_tokens=4))
    found = spans(home, "f")
    assert [span.name for span in found] == ["invoke_agent shopkeeper", "chat m"]
    assert {span.id for span in found}.isdisjoint(span.id for span in spans(home))


def test_a_compaction_is_told_and_what_it_cost(home: turnlog.Home):
    s = worked(home)
    s.append(Compaction(replacement=[], trigger="auto", tokens_before=900, model="m", usage=Usage(output_tokens=50)))
    found = spans(home)
    told = {"turnlog.compaction.trigger": "auto", "turnlog.compaction.tokens_before": 900}
    assert one(found, "invoke_agent shopkeeper").events == [("turnlog.compaction", told)]
    chat = one(found, "chat m")
    assert (chat["turnlog.spent.why"], chat["gen_ai.usage.output_tokens"]) == ("compaction", 50)


def test_spending_belongs_to_the_answer_before_it(home: turnlog.Home):
    s = home.create(id="s")
    s.user("go")
    s.assistant("done", model="m")
    s.append(Spent(usage=Usage(output_tokens=5)), Spent(usage=Usage(output_tokens=9), why="title", model="small"))
    found = spans(home)
    assert one(found, "chat m")["gen_ai.usage.output_tokens"] == 5
    title = one(found, "chat small")
    assert (title["gen_ai.usage.output_tokens"], title["turnlog.spent.why"]) == (9, "title")


def test_a_turn_that_failed_says_so(home: turnlog.Home):
    s = home.create(id="s")
    with pytest.raises(ZeroDivisionError), s.turn():
        s.user("go")
        s.assistant([ToolCall(id="c1", name="bash", input={}), ToolCall(id="c2", name="bash", input={})], model="m")
        s.tool_start("c1")
        _ = 1 / 0
    root, _, tool = spans(home)  # c2 was never run
    assert (root["error.type"], root.status[0]) == ("_OTHER", 2)
    assert (tool["gen_ai.tool.call.id"], tool["turnlog.tool.unfinished"]) == ("c1", True)


def test_a_long_session_is_several_requests(home: turnlog.Home, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(telemetry, "_MOST_SPANS", 3)
    worked(home)
    lines = turnlog.export(home, "s", "otel").data.splitlines()
    assert [len(spans_of(line)) for line in lines] == [3, 1]
    monkeypatch.setattr(telemetry, "_MOST_BYTES", 10)
    assert len(turnlog.export(home, "s", "otel").data.splitlines()) == 4


def test_no_entry_of_its_own_is_looked_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Within a batch, as an import writes it, each would cost reading that from its beginning."""
    looked: list[int] = []
    at = History.at
    monkeypatch.setattr(History, "at", lambda self, seq: (looked.append(seq), at(self, seq))[1])
    with turnlog.open(tmp_path) as home:
        s = home.create(id="s")
        drafts = [Message(role=role, blocks=[Text("a")]) for _ in range(50) for role in ("user", "assistant")]
        last = s.append(*drafts)[-1]
        fork = s.fork()
        fork.append(*(Message(role=one.role, blocks=one.blocks) for one in drafts))
        for id in ("s", fork.id):
            reader = home.read(id)
            del looked[:]
            reader.export("otel")
            assert set(looked) <= {last.seq}, id  # what a fork goes on from is another session's


def test_what_is_no_unicode_has_a_stand_in(home: turnlog.Home):
    s = home.create(id="s")
    s.user("go")
    s.assistant([ToolCall(id="c1", name="bash", input={"a": "\udcff"})], model="m")
    s.tool_result("c1", "\udcff")
    found = spans(home, content=True)
    assert one(found, "execute_tool bash")["gen_ai.tool.call.result"] == '"\N{REPLACEMENT CHARACTER}"'


def test_an_imported_session_has_the_ids_of_the_one_it_is(tmp_path: Path):
    place = next((FORMATS / "agents/claude-code/recorded/projects").glob("*/1a021422*.jsonl"))
    with turnlog.open("memory:") as home:
        (done,) = import_all(interior(home).creator, sources(str(place)), lambda *_: None)
        with home.read(done.id) as s:
            here = list(telemetry.lines(OpenedSession(home, s), None, has_content=False))
        with SessionOpener(str(tmp_path / "home")).read(str(place)) as opened:
            assert list(telemetry.lines(opened, None, has_content=False)) == here


def test_a_number_that_no_double_holds_is_left_out():
    attributes = genai.request(Message(role="assistant", options={"temperature": 10**400, "top_p": 1}))
    assert (attributes["gen_ai.request.temperature"], attributes["gen_ai.request.top_p"]) == (None, 1.0)


@pytest.mark.parametrize("duration_ms", [1 << 50, 1 << 70])
def test_a_corrupt_duration_leads_out_of_no_calendar(home: turnlog.Home, duration_ms: int):
    with home.create(id="s") as s:
        s.user("How long did it take?")
        s.assistant([ToolCall(id="c1", name="bash", input={})], duration_ms=duration_ms)
        s.append(Message(role="tool", blocks=[ToolResult(call="c1", content="long", duration_ms=duration_ms)]))
        s.append(Message(role="assistant", blocks=[Text("Ages.")], began_at=START, duration_ms=duration_ms))
        assert s.stats().messages == 4
    assert {"chat", "execute_tool bash"} <= {span.name for span in spans(home)}
    for form in ("html", "json"):
        assert turnlog.export(home, "s", form).data
