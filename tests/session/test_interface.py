"""What a program that builds on sessions writes: results that are JSON, entries as JSON, who was faster, kinds."""

import inspect
import json
import sys
import typing
from collections.abc import Iterator
from datetime import datetime, tzinfo
from importlib import import_module

import pytest

import turnlog
from turnlog import Conflict, Invalid, Message, Note, Session, Set, Text, ToolCall, ToolResult
from turnlog.log.entry import Node

INNER = {"store", "creator", "hold", "history"}
"""Members that rooms above use; what they give is not for programs."""


@pytest.fixture
def here() -> Iterator[turnlog.Home]:
    """In memory: what is said here has nothing to do with stores."""
    with turnlog.open("memory:") as home:
        yield home


@pytest.fixture
def session(here: turnlog.Home) -> Session:
    return here.create()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"rows": [1, 2], "next": None}, '{"rows":[1,2],"next":null}'),
        ([{"id": 1}, "a"], '[{"id":1},"a"]'),
        (("a", 1), '["a",1]'),
        (3.5, "3.5"),
        (True, "true"),
        (None, "null"),
        ("plain", "plain"),
        (b"bytes", "bytes"),
    ],
)
def test_a_result_is_any_json_and_a_model_reads_it(session: Session, value, text):
    session.assistant([ToolCall(id="c", name="t")])
    session.tool_result("c", value)
    [result] = session.context()[-1].blocks
    assert isinstance(result, ToolResult)
    assert result.content == text


def test_blocks_stay_blocks(session: Session):
    said = session.tool_result("c", (Text("a"), Text("b")))
    assert isinstance(said.blocks[0], ToolResult)
    assert said.blocks[0].content == [Text("a"), Text("b")]
    empty = session.tool_result("c", [])
    assert isinstance(empty.blocks[0], ToolResult)
    assert empty.blocks[0].content == []


@pytest.mark.parametrize("value", [{1: "a"}, {"a": {2}}, float("nan"), [Text("a"), 1], {"a": "\ud800"}])
def test_a_result_that_is_no_json_is_refused_with_its_value(session: Session, value):
    with pytest.raises(Invalid, match=r"result|neither blocks nor JSON"):
        session.tool_result("c", value)
    assert session.messages() == []


def test_an_entry_as_json_is_the_line_of_the_log(tmp_path):
    with turnlog.open(tmp_path) as home, home.create() as session:
        said = session.user("hello", meta={"a": 1})
        note = session.note("n")
        [log] = tmp_path.glob("sessions/**/*.jsonl")
        lines = {line["id"]: line for line in map(json.loads, log.read_text().splitlines())}
    for entry in (said, note):
        line = lines[entry.id]
        told = json.loads(entry.to_json())
        assert datetime.fromisoformat(told.pop("at")) == datetime.fromisoformat(line.pop("at"))
        assert {**told, "c": line["c"]} == line


def test_what_is_not_unicode_and_what_nobody_knows_is_json_as_well():
    meta = {"n": [1, 2.5, None], "d": {"k": True}}
    torn = json.loads(Message(role="user", blocks=[Text("caf\udce9")], meta=meta).to_json())
    assert (ascii(torn["blocks"][0]["text"]), torn["meta"]) == (r"'caf\udce9'", meta)
    later = turnlog.Unknown(kind="later", json='{"type":"later","x":1}')
    assert later.to_json() == '{"type":"later","x":1}'
    block = turnlog.UnknownBlock(kind="later", json='{"type":"later","y":2}')
    assert json.loads(Message(role="user", blocks=[block, Text("\ud800")]).to_json())["blocks"][0]["y"] == 2


def test_entries_of_a_kind(session: Session):
    session.user("a")
    session.note("n")
    session.set("k", 1)
    assert [entry.text for entry in session.entries(kind=Note)] == ["n"]
    assert [entry.type for entry in session.entries(kind="set")] == ["set"]
    assert [entry.type for entry in session.entries(kind=Node)] == ["message"]
    assert len(list(session.entries(kind=turnlog.Entry))) == len(list(session.entries()))


def test_a_conflict_says_who_wrote_and_where_the_conversation_stands(s, place):
    s.user("a")
    other = place.open().resume(s.id)
    seen = other.seq
    mine = s.user("b")
    with pytest.raises(Conflict) as lost:
        other.user("c")
    assert (lost.value.head, lost.value.expected) == (mine.seq, seen)
    assert lost.value.by is not None and lost.value.by.startswith("process ")
    assert other.user("c", rebase=True).parent == mine.seq
    with pytest.raises(Conflict) as lost:
        other.append(Note(text="n"), after=mine.seq)
    assert (lost.value.head, lost.value.expected, lost.value.by) == (other.head, mine.seq, None)


def test_a_conflict_of_who_wants_to_be_alone_says_the_same(place, home):
    session = home.create()
    session.user("a")
    other = place.open().resume(session.id)
    session.set("k", 1)
    with pytest.raises(Conflict, match="set") as lost:
        other.append(Set(key="k", value=2), alone=True)
    assert (lost.value.head, lost.value.expected) == (session.head, other.seq)


def test_a_misspelt_field_is_refused(here: turnlog.Home, session: Session):
    for wrong in (
        lambda: session.user("a", mata=1),
        lambda: session.assistant("a", usge=None),
        lambda: session.tool_result("c", "a", is_eror=True),
        lambda: session.compact("a", tokens=3),
        lambda: session.fork(titel="a"),
        lambda: here.create(titel="a"),
    ):
        with pytest.raises(TypeError, match=r"mata|usge|is_eror|tokens|titel"):
            wrong()
    assert session.messages() == []


def test_every_type_that_is_given_back_can_be_imported_from_turnlog():
    """From what people hold: what its members give, what the fields of that are, and so on."""
    held = [turnlog.Home, turnlog.Session, turnlog.ReadOnlySession, turnlog.Catalog, turnlog.Context]
    missing, seen = set(), set()
    while held:
        cls = held.pop()
        if cls in seen or cls is turnlog.TreeNode:  # what a folder is made of stays in its room
            continue
        seen.add(cls)
        for found in _given(cls):
            if found.__module__.startswith("turnlog"):
                held.append(found)
                if getattr(turnlog, found.__name__, None) is not found:
                    missing.add(f"{found.__module__}.{found.__name__}")
    assert len(seen) > 60
    assert not missing


def _given(cls: type) -> Iterator[type]:
    hints = [_hints(cls)] if hasattr(cls, "__struct_fields__") or hasattr(cls, "_fields") else []
    for name, member in inspect.getmembers(cls):
        member = member.fget if isinstance(member, property) else member
        if inspect.isfunction(member) and not name.startswith("_") and name not in INNER:
            hints.append({"return": _hints(member).get("return")})
    for found in hints:
        for hint in found.values():
            yield from _classes(hint)


def _classes(hint: object) -> Iterator[type]:
    if isinstance(hint, type) and not typing.get_args(hint):
        yield hint
    for part in typing.get_args(hint):
        yield from _classes(part) if not isinstance(part, list) else (one for item in part for one in _classes(item))


def _hints(value: typing.Any) -> dict[str, object]:
    """The types of a function or class, also of those that its module imports for type checkers alone."""
    module = sys.modules[value.__module__]
    names = {**vars(typing), "tzinfo": tzinfo, **{name: getattr(turnlog, name) for name in turnlog.__all__}}
    names |= {name: object for name in ("Progress", "Tell", "Keep", "Query", "Index", "Feed", "_T")}
    names |= {"_P": typing.ParamSpec("_P")}
    for other in (
        "turnlog.rewind.files",
        "turnlog.store",
        "turnlog.formats",
        "turnlog.thread.report",
        "turnlog.thread.home.newsession",
    ):
        names |= {key: item for key, item in vars(import_module(other)).items() if isinstance(item, type)}
    for base in getattr(value, "__mro__", ()):
        names |= vars(sys.modules[base.__module__]) if base.__module__.startswith("turnlog") else {}
    return typing.get_type_hints(value, globalns={**names, **vars(module)})


def test_a_subagent_is_found_by_its_call(s, place):
    first = s.spawn(agent="explorer", call="c1")
    other = s.spawn(call="c2")
    again = s.spawn(call="c1")
    s.spawn()
    back = place.open().resume(s.id)
    assert [child.call for child in back.children()] == ["c1", "c2", "c1", None]
    assert back.child("c1").id == again.id != first.id
    assert back.child(ToolCall(id="c2", name="task")).id == other.id
    assert back.child("c3") is None
