"""Calls that a strict type checker has to accept, with the types it has to find. Never run, only checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import turnlog
from turnlog import (
    AnyBlock,
    AnyEntry,
    Branch,
    Checkpoint,
    Clock,
    Compacted,
    Compaction,
    Context,
    Cost,
    CostReport,
    Custom,
    Damage,
    Edit,
    Entry,
    Image,
    Info,
    Message,
    Note,
    PendingCall,
    Ref,
    Session,
    Set,
    Spent,
    Stats,
    Text,
    Thinking,
    ToolCall,
    Usage,
    UsageReport,
    aio,
)
from turnlog.store import Store, memory
from turnlog.testing import StoreContract


def readme() -> None:
    """The README, with the types it promises."""
    with turnlog.open() as home:
        s = home.create(workspace=".", agent="my-agent", title="Fix the flaky test")
        assert_type(s, Session)
        with s.turn() as turn:
            assert_type(turn, str)
            ask = s.user("The test is flaky, fix it")
            assert_type(ask, Message)
            s.assistant(
                [Text("Looking."), ToolCall(id="c1", name="bash", input={"command": "pytest -x"})],
                model="claude-sonnet-4-5",
                usage=Usage(input_tokens=300, output_tokens=80, cache_read_tokens=900),
            )
            s.tool_result("c1", "1 failed", is_error=True)
        assert_type(s.context(), Context)
        assert_type(s.context()[0], Message)
        assert_type(s.context()[1:], list[Message])
        assert_type(s.context().system, str)
        assert_type(s.fork(name="another idea"), Session)
        s.fork(at=ask)
        s.fork(at=ask.seq)
        assert_type(s.compact("What happened so far …", keep=2), Compaction)
        s.compact([Ref(3), Message(role="user", blocks=[Text("sum")])])
        s.compact(keep=4)
        assert_type(s.compactions(), list[Compacted])
        assert_type(s.cost(), CostReport)
        assert_type(s.cost().total, Cost)
        assert_type(s.preview(), str)
        s.uncompact()
        s.rewind(to=ask)
        s.rewind(before=3)
        s.rewind(turns=1)
        s.rewind(to=ask, after=s.head)
        assert_type(s.path(last=3, to=ask), list[AnyEntry])
        assert_type(s.context(repair=False), Context)
        assert_type(s.append(Note(text="a"), to=ask, alone=True), Note)
        assert_type(s.set("listed", {}, exact=True), Set)
        assert_type(home.create(drafts=[Note(text="a")]), Session)
        assert_type(home.session_of(ask.id), str | None)
        assert_type(home.sessions()[0].listed, dict[str, Any])
        home.delete(s.id, after=s.seq)
        home.purge(s.id, after=ask)
        s.undo()
        s.redo()
        assert_type(s.set("tasks", [{"id": "1"}]), Set)
        s.get("tasks")
        s.unset("tasks")
        s = home.resume()
        assert_type(home.find("latest"), str)
        assert_type(home.exists(s.id), bool)
        assert_type(s.usage(), UsageReport)
        assert_type(s.usage().total, Usage)
        assert_type(s.stats(), Stats)
        assert_type([i.title for i in home.sessions(workspace=".")], list[str | None])


def appending(s: Session, call: ToolCall, blocks: list[AnyBlock]) -> None:
    """One draft gives an entry of its own type, several give a list."""
    assert_type(s.append(Message(role="user", blocks=[Text("a")])), Message)
    assert_type(s.append(Custom(kind="x.y", data={"any": ["json"]}), id="mine", once=True), Custom)
    assert_type(s.append(Note(text="a"), Message(role="user"), after=3, rebase=True), list[AnyEntry])
    s.user([Text("see"), Image(data=b"...", media_type="image/png")])
    s.assistant([Thinking(text="hm", provider="p", data={"signature": "x"}), *blocks])
    s.tool_result(call, b"bytes", details={"for": "people"}, duration_ms=3)
    s.tool_result("c1", [Text("a")])
    assert_type(s.note("n", data=[1]), Note)
    assert_type(s.spend(Usage(input_tokens=1), model="m", why="title"), Spent)
    assert_type(s.edit(3, "text"), Edit)
    s.edit(s.user("x"), None)


def reading(s: Session) -> None:
    """What can be asked."""
    assert_type(s.messages(last=50), list[Message])
    assert_type(s.entries(after=3, kind="set", reverse=True), Iterator[AnyEntry])
    assert_type(s.entries(kind=Note), Iterator[Note])
    assert_type([entry.text for entry in s.entries(kind=Note)], list[str])
    assert_type(next(s.entries()).to_json(), str)
    assert_type(s.follow(after=0), Iterator[AnyEntry])
    assert_type(s.find("id"), AnyEntry | None)
    assert_type(s.branches(), list[Branch])
    assert_type(s.pending(), list[PendingCall])
    assert_type(s.pending()[0].is_started, bool)
    assert_type(s.children(), list[Info])
    assert_type(s.child(ToolCall(id="c1", name="task")), Info | None)
    assert_type(s.damage, list[Damage])
    assert_type(s.facts, dict[str, Any])
    assert_type((s.id, s.handle, s.head, s.seq), tuple[str, str, int, int])
    assert_type(s.title, str | None)
    assert_type(turnlog.instructions("."), str | None)
    with s.spawn(agent="explorer", call="c1") as child:
        child.user("look")


def looking(home: turnlog.Home) -> None:
    """A session that is only read."""
    with home.read("id") as s:
        assert_type(s.messages(), list[Message])
        assert_type(s.usage(), UsageReport)
    with home.read(workspace=".") as s:
        assert_type(s.checkpoints(), list[Checkpoint])


async def asynchronous() -> None:
    """The same with `await`."""
    async with aio.open("memory:") as home:
        s = await home.create(title="t")
        async with s.turn():
            assert_type(await s.user("a"), Message)
        assert_type(await s.messages(last=2), list[Message])
        async for entry in s.entries(kind="message"):
            assert isinstance(entry, Entry)
        async for note in s.entries(kind=Note):
            assert_type(note, Note)
        other = await s.fork(name="n")
        await other.rewind(to=0)
        assert_type(await s.damage, list[Damage])
        assert_type(s.head, int)
        assert_type(await s.usage(), UsageReport)
        assert_type(await s.cost(), CostReport)
    home = await aio.open()
    await home.close()


class TestMine(StoreContract):
    """A store of somebody else's."""

    def connect(self, folder: object, clock: Clock) -> Store:
        """An empty store."""
        del folder
        return memory.connect(clock=clock)


def failing(home: turnlog.Home) -> None:
    """Every error is a TurnlogError and says what to do."""
    try:
        home.resume("nobody")
    except turnlog.Ambiguous as error:
        print(error.hint)
    except turnlog.NotFound as error:
        assert_type(error.hint, str | None)
    except turnlog.TurnlogError as error:
        assert_type(error.exit_code, int)
