"""Any sequence of calls, in files, memory and PostgreSQL: the same answers, live or resumed, with folds or without."""

import shutil
import tempfile
import uuid
import zlib
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import turnlog
from tests.pgserver import Server
from turnlog import Compaction, Custom, Message, Note, Ref, Set, Text, ToolCall, TurnlogError, Usage
from turnlog.thread import appender

words = st.sampled_from(["alpha", "beta ☃", "", "x" * 300, "gamma"])
values = st.one_of(
    st.none(), st.integers(-5, 5), words, st.lists(st.integers(0, 3), max_size=3), st.just({"a": {"b": 1}})
)
keys = st.sampled_from(["k", "l", "system", "tools", "title", "tags", "archived"])
counts = st.integers(0, 9)
usages = st.builds(Usage, input_tokens=counts, output_tokens=counts, cost_micros=st.one_of(st.none(), counts))
requests = st.sampled_from([None, "r1", "r2"])
places = st.integers(0, 10**6)


def plain(value: Any, turns: dict[str, int]) -> Any:
    """A value without what is random (ids) or only a hint (offsets)."""
    if isinstance(value, msgspec.Struct):
        fields = {name: getattr(value, name) for name in value.__struct_fields__}
        for name in (
            "id",
            "wide",
            "blobs",
            "state",
            "more",
            "batch",
            "offset",
            "first",
            "size_bytes",
            "word",
            "pid",
            "started",
        ):
            if not (name == "id" and isinstance(value, (turnlog.ToolCall, turnlog.thread.report.Info))):
                fields.pop(name, None)
        if isinstance(fields.get("turn"), str):
            fields["turn"] = turns.setdefault(fields["turn"], len(turns))
        fields = {name: plain(item, turns) for name, item in fields.items()}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, (list, tuple, turnlog.Context)):
        return [plain(item, turns) for item in value]
    if isinstance(value, dict):
        return {key: plain(item, turns) for key, item in value.items()}
    return value


def coarse(value: Any) -> Any:
    """The same with times to ten seconds: the stores look at their clocks a little differently."""
    if isinstance(value, list):
        return [coarse(item) for item in value]
    if isinstance(value, dict):
        return {key: coarse(item) for key, item in value.items()}
    if isinstance(value, datetime):
        return int(value.timestamp() // 10)
    return round(value.total_seconds() / 10) if isinstance(value, timedelta) else value


def answers(session: Any) -> dict[str, Any]:
    """Everything one can ask of a session."""
    turns: dict[str, int] = {}
    context = session.context()
    found = {
        "entries": [entry for entry in session.entries() if entry.type not in ("fold", "writer")],
        "messages": session.messages(),
        "last": session.messages(last=2),
        "context": list(context),
        "system": context.system,
        "tools": context.tools,
        "facts": session.facts,
        "usage": session.usage(),
        "total": session.usage().total,
        "stats": session.stats(),
        "branches": session.branches(),
        "pending": session.pending(),
        "children": [info.id for info in session.children()],
        "start": (session.id, session.title, session.agent, session.labels, session.workspace),
        "head": session.head,
    }
    return {name: plain(value, turns) for name, value in found.items()}


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Equal, answer by answer and entry by entry, so that a difference is small enough to read."""
    assert one.keys() == other.keys()
    for name, value in one.items():
        if isinstance(value, list) and isinstance(other[name], list):
            for index, (left, right) in enumerate(zip(value, other[name], strict=False)):
                assert left == right, f"{name}[{index}]"
            assert len(value) == len(other[name]), name
        assert value == other[name], name


class Side:
    """One home, and the live sessions in it. Every look at its clock finds it a little later."""

    def __init__(self, location: Any) -> None:
        self.now = 1_795_000_000_000
        self.home = turnlog.open(location, clock=self.clock, durability="flush")
        self.live: dict[str, Any] = {}

    def clock(self) -> int:
        self.now += 1
        return self.now

    def do(self, action: Any) -> Any:
        """What an action gives, or the error it raises."""
        try:
            return action(self)
        except TurnlogError as error:
            return type(error).__name__


class Agreement(RuleBasedStateMachine):
    """The file store and PostgreSQL have to agree with the memory store after every step."""

    server: Server

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="turnlog-"))
        self.database = f"{self.server.url}?tenant={uuid.uuid4()}"
        self.sides = [Side(self.folder / "home"), Side("memory:"), Side(self.database)]
        self.elsewhere = turnlog.open(self.database, durability="flush")
        self.names: list[str] = []
        self.trash: list[str] = []
        self.steps = 0
        self.name = ""
        self.all(lambda side: self.keep(side, side.home.create(id="s0", title="First", agent="a", labels={"l": "m"})))
        self.names.append("s0")
        self.name = "s0"

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.elsewhere.close()
            for side in self.sides:
                side.home.close()
            shutil.rmtree(self.folder)

    def keep(self, side: Side, session: Any) -> int:
        side.live[session.id] = session
        return session.head

    def all(self, action: Any) -> Any:
        """Do the same on all sides; they must answer alike."""
        self.steps += 1
        # Never twice the same moment, or a millisecond would decide whether a time had to be held back.
        now = max(side.now for side in self.sides) // 10_000 * 10_000 + 10_000 + self.steps * 40
        for side in self.sides:
            side.now = now
        first, second, third = (plain(side.do(action), {}) for side in self.sides)
        assert coarse(first) == coarse(second) == coarse(third)
        return first

    def on(self, action: Any) -> Any:
        """Do something with the current session."""
        return self.all(lambda side: action(side.live[self.name]))

    def seq(self, place: int) -> int:
        """Some place in the log, now and then one that is not there."""
        return place % (self.sides[1].live[self.name].seq + 2)

    # ── saying things ─────────────────────────────────────────────────────────────────────────────

    @rule(text=words, role=st.sampled_from(["user", "user", "assistant", "system"]), tick=st.integers(-3, 3))
    def say(self, text: str, role: str, tick: int) -> None:
        for side in self.sides:
            side.now += tick * 10_000
        self.on(lambda s: s.append(Message(role=role, blocks=[Text(text=text)])))

    @rule(usage=usages, model=st.sampled_from([None, "m"]), request=requests, calls=st.lists(st.sampled_from("abc")))
    def answer(self, usage: Usage, model: str | None, request: str | None, calls: list[str]) -> None:
        blocks = [Text(text="t"), *(ToolCall(id=call, name="bash") for call in calls)]
        self.on(lambda s: s.assistant(blocks, usage=usage, model=model, request=request))

    @rule(call=st.sampled_from("abcd"), text=words)
    def tool(self, call: str, text: str) -> None:
        self.on(lambda s: s.tool_result(call, text, is_error=not text))

    @rule(text=words, key=keys, value=values, node=st.booleans())
    def batch(self, text: str, key: str, value: Any, node: bool) -> None:
        drafts = [Note(text=text), Custom(kind="x.y", data=value, blocks=[Text(text=text)] if node else [])]
        if key not in ("title", "tags", "archived"):
            drafts.append(Set(key=key, value=value))
        self.on(lambda s: s.append(*drafts, Message(role="user", blocks=[Text(text=text)])))

    @rule(text=words)
    def note(self, text: str) -> None:
        self.on(lambda s: s.note(text))

    @rule(usage=usages, request=requests)
    def spend(self, usage: Usage, request: str | None) -> None:
        self.on(lambda s: s.spend(usage, why="x", request=request))

    @rule(text=words, fails=st.booleans())
    def turn(self, text: str, fails: bool) -> None:
        def work(s: Any) -> int:
            try:
                with s.turn():
                    s.user(text)
                    s.set("k", text)
                    if fails:
                        raise ZeroDivisionError
            except ZeroDivisionError:
                pass
            return s.head

        self.on(work)

    # ── facts ─────────────────────────────────────────────────────────────────────────────────────

    @rule(key=keys, value=values)
    def set(self, key: str, value: Any) -> None:
        self.on(lambda s: s.set(key, value))

    @rule(key=keys)
    def unset(self, key: str) -> None:
        self.on(lambda s: s.unset(key))

    # ── compaction, edits, moving ─────────────────────────────────────────────────────────────────

    @rule(keep=st.integers(0, 5), usage=st.one_of(st.none(), usages))
    def compact(self, keep: int, usage: Usage | None) -> None:
        self.on(lambda s: s.compact("sum", keep=keep, usage=usage))

    @rule(place=places, keep=st.integers(0, 3))
    def compact_with_reference(self, place: int, keep: int) -> None:
        seq = self.seq(place)
        self.on(lambda s: s.compact([Ref(seq), Message(role="user", blocks=[Text(text="sum")])], keep=keep))

    @rule()
    def uncompact(self) -> None:
        self.on(lambda s: s.uncompact())

    @rule(place=places)
    def uncompact_an_older_one(self, place: int) -> None:
        found = [entry.seq for entry in self.sides[1].live[self.name].entries(kind=Compaction)]
        if found:
            self.on(lambda s: s.uncompact(found[place % len(found)]))

    @rule(place=places, text=st.one_of(st.none(), words))
    def edit(self, place: int, text: str | None) -> None:
        seq = self.seq(place)
        self.on(lambda s: s.edit(seq, text))

    @rule(place=places)
    def rewind(self, place: int) -> None:
        seq = self.seq(place)
        self.on(lambda s: s.rewind(to=seq))

    @rule(place=places)
    def rewind_before(self, place: int) -> None:
        seq = self.seq(place)
        self.on(lambda s: s.rewind(before=seq))

    @rule(turns=st.integers(1, 3))
    def rewind_turns(self, turns: int) -> None:
        self.on(lambda s: s.rewind(turns=turns))

    @rule()
    def undo(self) -> None:
        self.on(lambda s: s.undo())

    @rule()
    def redo(self) -> None:
        self.on(lambda s: s.redo())

    # ── sessions ──────────────────────────────────────────────────────────────────────────────────

    def add(self, make: Any) -> None:
        """A new session, made from the current one."""
        name = self.free_name()
        done = self.all(lambda side: self.keep(side, make(side.live[self.name], name)))
        if not isinstance(done, str):
            self.names.append(name)
            self.name = name

    def free_name(self) -> str:
        """One that no session has: not seldom that of one that was deleted or purged."""
        return next(name for number in range(100) if (name := f"s{number}") not in self.names)

    @precondition(lambda self: len(self.names) < 5)
    @rule()
    def create(self) -> None:
        self.add(lambda s, name: s._home.create(id=name, title="Another"))

    @precondition(lambda self: len(self.names) < 5)
    @rule()
    def fork(self) -> None:
        self.add(lambda s, name: s.fork(id=name))

    @precondition(lambda self: len(self.names) < 5)
    @rule(place=places)
    def fork_at(self, place: int) -> None:
        seq = self.seq(place)
        self.add(lambda s, name: s.fork(at=seq, id=name, name="n"))

    @precondition(lambda self: len(self.names) < 5)
    @rule()
    def spawn(self) -> None:
        self.add(lambda s, name: s.spawn(id=name, agent="sub", call="a"))

    @rule(choice=places)
    def choose(self, choice: int) -> None:
        self.name = self.names[choice % len(self.names)]

    @rule()
    def reopen(self) -> None:
        def again(side: Side) -> int:
            side.live[self.name].close()
            return self.keep(side, side.home.resume(self.name))

        self.all(again)

    @rule(text=words, mark=st.booleans())
    def somebody_else_writes(self, text: str, mark: bool) -> None:
        """A second handle appends; ours learns of it by a conflict and a refresh."""

        def write(side: Side) -> Any:
            other = side.home.resume(self.name)
            done = other.set("k", text) if mark else other.user(text)
            other.close()
            return done

        self.all(write)
        if not mark:
            assert self.on(lambda s: s.user("too late")) in ("Conflict", "Unsupported")
        self.on(lambda s: s.refresh())

    @precondition(lambda self: len(self.names) > 1)
    @rule()
    def delete(self) -> None:
        def away(side: Side) -> None:
            side.home.delete(self.name)
            side.live.pop(self.name).close()

        done = self.all(away)
        assert (done == "AlreadyExists") is (self.name in self.trash)
        if done is None:
            self.names.remove(self.name)
            self.trash.append(self.name)
            self.name = self.names[0]

    @precondition(lambda self: self.trash)
    @rule(choice=places, is_renamed=st.booleans())
    def restore(self, choice: int, is_renamed: bool) -> None:
        name = self.trash[choice % len(self.trash)]
        new = self.free_name() if is_renamed else name

        def back(side: Side) -> int:
            side.home.restore(name, as_=new)
            return self.keep(side, side.home.resume(new))

        done = self.all(back)
        assert (done == "AlreadyExists") is (new in self.names)
        if not isinstance(done, str):
            self.trash.remove(name)
            self.names.append(new)
            self.name = new

    @precondition(lambda self: self.trash)
    @rule(choice=places)
    def purge(self, choice: int) -> None:
        name = self.trash[choice % len(self.trash)]
        done = self.all(lambda side: side.home.purge(name))
        assert (done == "Ambiguous") is (name in self.names)
        self.all(lambda side: side.home.purge(name, deleted=True))
        self.trash.remove(name)

    # ── what must hold ────────────────────────────────────────────────────────────────────────────

    @invariant()
    def all_give_the_same_answers(self) -> None:
        if not self.name:
            return
        files, memory, database = (answers(side.live[self.name]) for side in self.sides)
        assert_same(coarse(files), coarse(memory))
        assert_same(coarse(database), coarse(memory))
        lists = [[plain(info, {}) for info in side.home.sessions()] for side in self.sides]
        first, second, third = (sorted(coarse(infos), key=str) for infos in lists)
        assert first == second == third
        with self.elsewhere.resume(self.name) as session:
            assert_same(answers(session), database)
        with turnlog.open(self.folder / "home", durability="flush") as home:
            assert_same(answers(home.resume(self.name)), files)
        with turnlog.open(self.without_folds(), durability="flush") as home:
            assert_same(answers(home.resume(self.name)), files)

    def without_folds(self) -> Path:
        """A copy of the home in which nothing is left of any fold."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / "home", copy)
        for path in copy.glob("*/*.jsonl"):
            lines = path.read_bytes().splitlines(keepends=True)
            kept = [
                alone(line) if b'"batch":2' in line and has_fold(lines, index) else line
                for index, line in enumerate(lines)
            ]
            path.write_bytes(b"".join(line for line in kept if not line.startswith(b'{"type":"fold"')))
        return copy


def has_fold(lines: list[bytes], index: int) -> bool:
    """Whether the line after this one, of the same batch, is a fold."""
    return b'"more":1' in lines[index] and lines[index + 1].startswith(b'{"type":"fold"')


def alone(line: bytes) -> bytes:
    """The line of a batch of two as if it had been written alone."""
    body = line[: line.rindex(b',"c":"')].replace(b',"more":1,"batch":2', b"")
    return body + b',"c":"%08x"}\n' % zlib.crc32(body)


@pytest.fixture(autouse=True)
def on_server(postgres: Server) -> None:
    Agreement.server = postgres


@pytest.fixture(autouse=True)
def many_folds(monkeypatch):
    """By number, not by size, so that all sides fold at the same place."""
    monkeypatch.setattr(appender, "_FOLD_ENTRIES", 3)
    monkeypatch.setattr(appender, "_FOLD_BYTES", 1 << 40)


TestAgreement = Agreement.TestCase
TestAgreement.settings = settings(max_examples=max(10, settings().max_examples // 20), stateful_step_count=30)
