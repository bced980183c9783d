"""Programs that a service is made of. Each line that is wrong says so: a checker that does not see it fails here."""

from __future__ import annotations

from typing import assert_type

import turnlog
from turnlog import (
    Conflict,
    Document,
    Durability,
    Exported,
    Home,
    Message,
    Role,
    Session,
    Stop,
    Text,
    ToolCall,
    TurnState,
    aio,
)  # fmt: skip
from turnlog.compaction import CompactionPolicy, CompactionStep, compact
from turnlog.wire import anthropic, openai


def handler(home: Home, session: str, text: str) -> str:
    """A message of a person, whoever else writes at that moment."""
    with home.resume(session) as s:
        said = s.user(text, rebase=True, id="from the browser", meta={"ip": "::1"})
        return said.to_json()


def tool(s: Session, call: ToolCall) -> None:
    """A result is text, blocks or JSON."""
    s.tool_result(call, {"rows": [1, 2], "next": None})
    s.tool_result(call, [{"id": 1}], duration_ms=12)
    s.tool_result(call, [Text("a")])
    s.tool_result(call, 3.5)
    s.tool_result(call, None, rebase=True)


def race(s: Session) -> str:
    """Who was faster, and where the conversation stands now."""
    try:
        s.user("mine")
    except Conflict as lost:
        assert_type(lost.head, int | None)
        assert_type(lost.expected, int | None)
        return lost.by or "somebody"
    return ""


def literal(role: Role, stop: Stop, state: TurnState, durability: Durability) -> Message:
    """What can be said is known."""
    turnlog.open("memory:", durability=durability)
    turnlog.Turn(state=state)
    return Message(role=role, blocks=[Text("a")], stop=stop)


async def documents(s: Session, a: aio.Session) -> None:
    """A document is given back; for an agent, files are written."""
    assert_type(s.export("html"), Document)
    assert_type(s.export("pi", "out.jsonl", force=True), Exported)
    assert_type(await a.export("json", redact=False), Document)
    assert_type(await a.export("codex", format_version=1), Exported)


def misspelt(home: Home, s: Session) -> None:
    """An editor shows each of these."""
    s.user("a", mata={"x": 1})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    s.assistant("a", stop="done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    s.compact("a", tokens=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    s.fork(titel="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    s.tool_result("c", {1, 2})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    s.export("html", place="x.html")  # pyright: ignore[reportCallIssue]
    home.create(labls={})  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Message(role="usr")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    turnlog.open(durability="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    anthropic.request(s.context(), model="m", max_tokens=1, cache="2h")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    openai.request(s.context(), model="m", api="completions")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def smaller(s: Session) -> str:
    """A policy, and a model that is asked."""
    policy = CompactionPolicy(budget=0.8, window=200_000, keep_turns=2)
    assert_type(policy.decide(s.context()), CompactionStep)
    s.compact("a", keep_turns=2, of=s.context(at=3).plus("Sum up"))
    return compact(s, policy, lambda asked: Message(role="assistant", blocks=[Text(str(len(asked)))])).does


async def awaited(home: aio.Home) -> None:
    """The same with `await`."""
    s = await home.create(title="t", labels={"user": "u1"})
    assert_type(await s.user("a", rebase=True), Message)
    assert_type(await s.tool_result("c", {"a": 1}), Message)
    await s.user("a", mata=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await home.create(titel="a")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
