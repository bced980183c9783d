"""What is refused, with a typed error and before anything is written; and odd values that are not."""

import pytest

import turnlog
from turnlog import (
    Compaction,
    Custom,
    Image,
    Invalid,
    Message,
    Note,
    NotFound,
    Ref,
    Set,
    Text,
    ToolCall,
    ToolResult,
    TurnlogError,
)  # fmt: skip


def nested(depth):
    value = None
    for _ in range(depth):
        value = [value]
    return value


def circle():
    value = []
    value.append(value)
    return value


BAD_JSON = {
    "nan": float("nan"),
    "infinity": float("inf"),
    "minus infinity": {"k": [float("-inf")]},
    "deep": nested(250),
    "very deep": nested(100_000),
    "circle": circle(),
    "object": object(),
    "set": {1, 2},
    "bytes": b"x",
    "number as key": {1: 2},
    "complex": 1j,
    "exception": ValueError("x"),
    "endless number": 10**5000,
}


@pytest.mark.parametrize("kind", BAD_JSON)
def test_what_json_cannot_say_is_refused_wherever_it_stands(s, kind):
    value = BAD_JSON[kind]
    before = s.seq
    attempts = [
        lambda: s.append(Custom(kind="x.y", data=value)),
        lambda: s.append(Message(role="user", meta={"m": value})),
        lambda: s.assistant([ToolCall(id="1", name="x", input=value)]),
        lambda: s.tool_result("1", "ok", details={"d": value}),
        lambda: s.user([Text(text="a", meta=value)]),
        lambda: s.note("n", data=value),
        lambda: s.set("k", value),
        lambda: s.set("title", value),
        lambda: s.append(Set(key="k", value={"deep": value})),
        lambda: s.append(Note(text="fine"), Custom(kind="x.y", data=value)),
        lambda: s.compact([Message(role="user", blocks=[ToolCall(id="1", name="x", input=value)])]),
        lambda: s.tool_result("1", [Text(text="a", meta=value)]),
    ]
    for attempt in attempts:
        with pytest.raises(Invalid):
            attempt()
    assert s.seq - before <= 1  # the writer may have introduced itself
    assert s.facts == {}
    assert s.user("still works").seq


def test_a_depth_that_everybody_can_read_is_accepted(s, place):
    s.append(Custom(kind="x.y", data=nested(199)))
    [entry] = place.open().resume(s.id).entries(kind="custom")
    assert entry.data == nested(199)


def test_a_fact_as_deep_as_a_value_may_be_survives_everything_that_carries_facts(s, place, monkeypatch):
    monkeypatch.setattr("turnlog.thread.appender._FOLD_ENTRIES", 2)
    one = s.user("one")
    s.set("k", nested(200))
    s.set("listed", nested(200))
    two = s.user("two")
    for index in range(6):
        s.note(str(index))
    s.rewind(to=one)
    s.rewind(to=two)
    child = s.fork()
    child.user("three")
    for session in (s, place.open().resume(s.id), place.open().resume(child.id)):
        assert session.get("k") == session.get("listed") == nested(200)


@pytest.mark.parametrize(
    "attempt",
    {
        "role": lambda s: s.append(Message(role="robot")),
        "no role": lambda s: s.append(Message(role=None)),
        "stop": lambda s: s.assistant("a", stop="bored"),
        "text as number": lambda s: s.user([Text(text=7)]),
        "content nothing": lambda s: s.user(None),
        "content number": lambda s: s.user(7),
        "content of texts": lambda s: s.user(["a"]),
        "content dict": lambda s: s.user([{"type": "text", "text": "a"}]),
        "bytes to a user": lambda s: s.user(b"a"),
        "blocks text": lambda s: s.append(Message(role="user", blocks="abc")),
        "result in user": lambda s: s.user([ToolResult(call="1")]),
        "result of both": lambda s: s.tool_result("1", ["a", Text(text="b")]),  # text alone is JSON
        "call number": lambda s: s.tool_result(7, "a"),
        "call without name": lambda s: s.assistant([ToolCall(id="1", name=None)]),
        "model": lambda s: s.assistant("a", model=7),
        "no entry": lambda s: s.append("a"),
        "none": lambda s: s.append(None),
        "class": lambda s: s.append(Message),
        "note number": lambda s: s.note(7),
        "key": lambda s: s.set(7, 1),
        "no key": lambda s: s.set("", 1),
        "unset key": lambda s: s.unset(None),
        "summary": lambda s: s.compact(7),
        "summary of texts": lambda s: s.compact(["a"]),
        "summary of both": lambda s: s.compact([Ref(s.user("x").seq), "a"]),
        "keep": lambda s: s.compact("a", keep="2"),
        "rewind text": lambda s: s.rewind(to="3"),
        "rewind before text": lambda s: s.rewind(before="3"),
        "rewind turns text": lambda s: s.rewind(turns="3"),
        "rewind float": lambda s: s.rewind(to=1.5),
        "fork text": lambda s: s.fork(at="x"),
        "fork id": lambda s: s.fork(id=7),
        "edit text": lambda s: s.edit("x", None),
        "edit number": lambda s: s.edit(s.user("x"), 7),
        "uncompact text": lambda s: s.uncompact("x"),
        "image data": lambda s: s.user([Image(data="text")]),
        "replacement": lambda s: s.append(Compaction(replacement=[7])),
        "turn": lambda s: s.user("a", turn=7),
        "duration": lambda s: s.tool_result("1", "a", duration_ms="long"),
    }.items(),
    ids=lambda item: item[0],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_refused(s, attempt):
    notes = list(s.entries(kind="note"))
    with pytest.raises(Invalid):
        attempt[1](s)
    assert list(s.entries(kind="note")) == notes
    assert s.user("still works").seq


@pytest.mark.parametrize(
    "attempt",
    {
        "id number": lambda home: home.create(id=7),
        "id empty": lambda home: home.create(id=""),
        "id surrogate": lambda home: home.create(id="\ud800"),
        "id endless": lambda home: home.create(id="x" * 10_000),
        "title": lambda home: home.create(title=7),
        "agent": lambda home: home.create(agent=["x"]),
        "labels": lambda home: home.create(labels=7),
        "label": lambda home: home.create(labels={"a": 1}),
        "label key": lambda home: home.create(labels={1: "a"}),
        "workspace": lambda home: home.create(workspace=7),
        "blob": lambda home: home.put_blob("text"),
        "digest": lambda home: home.get_blob(7),
        "resume": lambda home: home.resume(7),
        "delete": lambda home: home.delete(None),
    }.items(),
    ids=lambda item: item[0],
)  # fmt: skip
def test_a_home_refuses_values_of_the_wrong_type(home, attempt):
    with pytest.raises((Invalid, NotFound)):
        attempt[1](home)
    assert home.sessions() == []


@pytest.mark.parametrize("where", ["ftp://x/y", "postgresql://nowhere/db"])
def test_a_location_without_a_store_is_an_error_of_ours(where):
    with pytest.raises(TurnlogError):
        turnlog.open(where)


def test_a_durability_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(Invalid):
        turnlog.open(tmp_path, durability="hope")


@pytest.mark.parametrize(
    "text",
    ["", " ", "\0", "\u2028\u2029\x85\x0b", "a\r\nb\n", "☃" * 1000, '{"c":"00000000"}', "\x1b[31m", "\U0010ffff"],
)
def test_any_unicode_text_comes_back_as_it_was(s, place, text):
    s.user(text)
    s.tool_result("1", text)
    s.set("k", {text or "empty": text})
    s.append(Custom(kind="x.y", data=text, meta=text))
    session = place.open().resume(s.id)
    user, tool = session.messages()
    assert (user.blocks[0].text, tool.blocks[0].content) == (text, text)
    assert session.get("k") == {text or "empty": text}
    [custom] = session.entries(kind="custom")
    assert (custom.data, custom.meta) == (text, text)


@pytest.mark.parametrize(
    "number", [0, -1, 2**63 - 1, -(2**63), 2**64 - 1, 10**40, 0.1, 1e308, 5e-324, -0.0, 10**15 + 0.5]
)
def test_any_number_comes_back_as_it_was(s, place, number):
    s.append(Custom(kind="x.y", data=[number]))
    [custom] = place.open().resume(s.id).entries(kind="custom")
    assert custom.data == [number]
    assert type(custom.data[0]) is type(number)


def test_values_are_frozen_when_they_are_appended(s):
    data = {"list": [1]}
    s.append(Custom(kind="x.y", data=data))
    data["list"].append(2)
    [entry] = s.entries(kind="custom")
    assert entry.data == {"list": [1]}


def test_only_the_store_gives_out_places_and_times(s):
    first = s.user("one")
    made_up = {
        "parent": 99,
        "more": 3,
        "batch": 7,
        "sealed": 5,
        "again": 2,
        "wide": 3,
        "unverified": True,
        "clock": first.at,
    }
    entry = s.append(Message(role="user", blocks=[Text(text="two")], seq=77, **made_up))
    assert (entry.seq, entry.parent, entry.clock, entry.unverified) == (first.seq + 1, first.seq, None, False)
    entry = s.append(Message(role="user", blocks=[Text(text="three")], **made_up))
    assert (entry.parent, entry.more, entry.batch) == (first.seq + 1, 0, 0)
    assert (entry.sealed, entry.again, entry.wide) == (0, 0, 0)
    note = s.append(Note(text="n", parent=1))
    assert note.parent is None
    assert s.head == entry.seq
    assert len(s.messages()) == 3


def test_a_draft_that_was_never_appended_is_no_place(s):
    s.user("one")
    draft = Message(role="user")
    for move in (s.rewind, s.fork, s.uncompact, lambda target: s.edit(target, None)):
        with pytest.raises(Invalid):
            move(draft)
    assert len(s.messages()) == 1


def test_a_tuple_is_a_list(s):
    s.set("k", (1, (2, 3)))
    assert s.get("k") == [1, [2, 3]]
