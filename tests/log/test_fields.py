"""Every field of every entry says by its type what it means, and whoever has to know asks that."""

from collections.abc import Iterator
from datetime import datetime
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

import msgspec
import pytest
from msgspec import Raw, Struct

from turnlog import Compaction, Custom, Edit, Invalid, Message, Note, Set, Text, ToolCall, ToolResult
from turnlog.log.block import BLOCKS, Block, Image, UnknownBlock
from turnlog.log.draft import prepare
from turnlog.log.entry import ENTRIES, AnyEntry, Changed, Checkpoint, Entry, Head, Intent, Node, Quiet, Ref, Start
from turnlog.log.field import AnyJson, Json, NamesEntry, NamesNone, change, field_types
from turnlog.log.part import Fork, Git, Root
from turnlog.log.payload import used_blobs
from turnlog.log.usage import Usage

NAN = float("nan")
PLAIN = (str, bool, bytes, datetime, NoneType, Raw, dict, list)


def subclasses(cls: type) -> Iterator[type]:
    for below in cls.__subclasses__():
        yield below
        yield from subclasses(below)


def parts(declared: Any) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Every type in a type that is not made of others, and what is said of it."""
    if get_origin(declared) is Annotated:
        inner, *said = get_args(declared)
        yield from ((part, (*said, *more)) for part, more in parts(inner))
    elif get_args(declared):
        for argument in get_args(declared):
            yield from parts(argument)
    else:
        yield declared, ()


def structs() -> set[type[Struct]]:
    """Everything that entries are made of."""
    found: set[type[Struct]] = set()
    todo: list[type[Struct]] = [*ENTRIES.values(), *BLOCKS.values()]
    while todo:
        cls = todo.pop()
        if cls in found:
            continue
        found.add(cls)
        held = (part for declared in field_types(cls).values() for part, _ in parts(declared))
        todo += [part for part in held if isinstance(part, type) and issubclass(part, Struct)]
    return found - {Usage}  # all of it is amounts


def problems(cls: type[Struct]) -> list[str]:
    """The fields of a class whose type does not say what they mean."""
    found: list[str] = []
    for name, declared in field_types(cls).items():
        for part, said in parts(declared):
            if part is Any and not any(isinstance(item, AnyJson) for item in said):
                found.append(f"{name} takes anything: say Json")
            elif part is int and not any(isinstance(item, (NamesEntry, NamesNone)) for item in said):
                found.append(f"{name} is a number: say EntryRef if it names an entry, Number if not")
            elif part not in (Any, int, float, *PLAIN) and not (isinstance(part, type) and issubclass(part, Struct)):
                found.append(f"{name} is a {part}, which nobody here knows")
            elif isinstance(part, type) and issubclass(part, (Block, Entry)) and list not in _origins(declared):
                found.append(f"{name} holds one block or message: make it a list")
    return found


def _origins(declared: Any) -> list[Any]:
    return [get_origin(declared), *(get_origin(argument) for argument in get_args(declared))]


def test_everything_that_entries_are_made_of_is_walked():
    assert {Message, Ref, Fork, Root, Git, ToolCall, Start, Image} <= structs()


@pytest.mark.parametrize("cls", sorted(structs(), key=lambda cls: cls.__name__), ids=lambda cls: cls.__name__)
def test_every_field_says_what_it_means(cls):
    assert problems(cls) == []


def test_a_field_that_does_not_say_it_is_found():
    cls = msgspec.defstruct(
        "Review", [("a", Any), ("b", int | None), ("c", list[int]), ("d", complex), ("e", Message), ("f", Json)]
    )
    assert [problem.split()[0] for problem in problems(cls)] == ["a", "b", "c", "d", "e"]


def test_every_kind_of_entry_and_block_is_known_to_readers():
    kinds = {cls for cls in subclasses(Entry) if cls.__struct_config__.tag} - {Node, Quiet}
    assert {cls for cls in kinds if cls.__module__ == Entry.__module__} == set(get_args(AnyEntry))
    assert {cls for cls in subclasses(Block) if cls.__module__ == Block.__module__} == {*BLOCKS.values(), UnknownBlock}


# ── what follows from it ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "entry",
    [
        Note(text="t", data={"a": [NAN]}),
        Message(role="user", blocks=[ToolCall(id="c", name="n", input={"x": NAN})]),
        Compaction(replacement=[Message(role="user", blocks=[Text(text="t")], meta={"x": NAN})]),
        Edit(entry=3, blocks=[Text(text="t", meta=NAN)]),
        Head(to=1, asof=1, why="rewind", facts={"k": float("inf")}),
        Checkpoint(skipped=[{"x": NAN}]),
        Intent(steps=[[NAN]]),
        Set(key="k", value={1: 2}),
        Start(labels={1: "a"}),
        Head(to=1, asof=1, why="rewind", files={1: 2}),
    ],
    ids=lambda entry: entry.type,
)
def test_what_json_cannot_say_is_refused_wherever_it_is(entry):
    with pytest.raises(Invalid):
        prepare(entry)


def plus_hundred(seq: int) -> int:
    return seq + 100 if seq else 0


def test_every_number_that_names_an_entry_is_found():
    edited = Message(role="user", seq=3)
    entry = Compaction(replacement=[Ref(2), edited], keep=4, seq=9, parent=8, again=7, id="i", tokens_before=5)
    expected = Compaction(
        replacement=[Ref(102), msgspec.structs.replace(edited, seq=103)],
        keep=104, seq=109, parent=108, again=107, id="i", tokens_before=5,
    )  # fmt: skip
    assert change(entry, NamesEntry, plus_hundred) == expected
    head = Head(to=1, asof=2, why="rewind", left=3, undoes=4, system={5: 6}, before=7, after=8, intent=9, id="i")
    assert change(head, NamesEntry, plus_hundred) == Head(
        to=101, asof=102, why="rewind", left=103, undoes=104, system={105: 106}, before=107, after=108, intent=109,
        id="i",
    )  # fmt: skip


def test_what_another_session_counts_is_no_number_of_this_one():
    start = Start(fork=Fork("s", 3, "i"), id="i")
    assert change(start, NamesEntry, plus_hundred) == start


def test_every_blob_is_found_however_deep():
    roots = [Root("r", "/r", "sha256:tree", "sha256:rules"), Root("q", "/q", "sha256:other")]
    assert used_blobs(Checkpoint(roots=roots)) == ["sha256:other", "sha256:rules", "sha256:tree"]
    inner = Message(role="user", blocks=[Image(blob="sha256:image"), Text(text="t", raw="sha256:raw")])
    assert used_blobs(Compaction(replacement=[inner, Ref(1)], blob="sha256:all")) == [
        "sha256:all", "sha256:image", "sha256:raw",
    ]  # fmt: skip


def test_facts_may_be_as_deep_where_they_are_carried_as_where_they_were_set():
    value: Any = 1
    for _ in range(200):
        value = [value]
    prepare(Set(key="k", value=value, all={"title": value}))
    with pytest.raises(Invalid):
        prepare(Set(key="k", value=[[value]]))


BYTES = b"a secret"


@pytest.mark.parametrize("data", [BYTES, bytearray(BYTES), memoryview(BYTES)], ids=["bytes", "bytearray", "memoryview"])
def test_bytes_in_the_place_of_text_are_refused(data):
    """The encoder would write them in base64, and nobody would notice."""
    for entry in (
        Message(role="user", blocks=[Text(text=data)]),
        Message(role="user", blocks=[Image(media_type=data)]),
        Message(role="tool", blocks=[ToolResult(call="c", content=[Text(text=data)])]),
        Message(role="assistant", model=data),
        Compaction(replacement=[Message(role="user", blocks=[Text(text=data)])]),
        Edit(entry=1, blocks=[Text(text=data)]),
        Note(text=data),
        Start(labels={"team": data}),
        Changed(paths=[data]),
        Checkpoint(roots=[Root(name="workspace", path=data, tree="sha256:0")]),
    ):
        with pytest.raises(Invalid, match=r"no text|not JSON"):
            prepare(entry)


@pytest.mark.parametrize(
    ("name", "raw"),
    [("seq", b"5"), ("role", b'"tool"'), ("type", b'"note"'), ("c", b'"0"'), ("x", b"{no"), ("x", b"1}{")],
)
def test_an_unknown_field_takes_the_place_of_no_other(name, raw):
    with pytest.raises(Invalid, match=r"later version|not JSON"):
        prepare(Message(role="user", unknown={name: Raw(raw)}))
    if name not in ("seq", "role", "c"):
        with pytest.raises(Invalid, match=r"later version|not JSON"):
            prepare(Message(role="user", blocks=[Text(text="x", unknown={name: Raw(raw)})]))


@pytest.mark.parametrize(
    "json", ["no", '{"type":"later"}],"seq":9,"x":[{"type":"text","text":"x"}', "[]", "5", '"\udcff"']
)
def test_a_block_of_a_later_version_is_an_object(json):
    with pytest.raises(Invalid):
        prepare(Message(role="user", blocks=[UnknownBlock(kind="later", json=json)]))


def test_a_custom_entry_has_a_role_that_there_is():
    with pytest.raises(Invalid, match="no role"):
        prepare(Custom(kind="k", role="nobody", blocks=[Text(text="x")]))


def test_a_blob_that_a_message_names_is_one_that_it_needs():
    entry, _ = prepare(Message(role="user", blob="sha256:" + "0" * 64, raw="sha256:" + "1" * 64))
    assert entry.blobs == ["sha256:" + "0" * 64, "sha256:" + "1" * 64]
