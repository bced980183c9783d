"""owlen: its checkpoints are one conversation that grows, and each is written back to the byte."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.checkers import owlen as first_owlen
from turnlog import AlreadyExists, Image, Invalid, Note, Text, Thinking, ToolCall, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.formats import OutputFile, Places, Rendered, Source
from turnlog.formats.seeds import owlen
from turnlog.interop.rust import pretty
from turnlog.interop.rusttime import rust_time_in, rust_time_of
from turnlog.testing import FormatContract
from turnlog.testing.format.writing import sample_conversation, visible_parts

SEEDS = Path(__file__).parent / "seeds" / "owlen"
FOLDER = SEEDS / "workspace/.owlen/checkpoints"
FIRST = FOLDER / "checkpoint-1767225700.json"
SECOND = FOLDER / "checkpoint-1767225800.json"
LISTS = SEEDS / "alt/sequence_form.json"
TORN = SEEDS / "broken/truncated.json"
EXPECTED = json.loads((SEEDS.parent / "expected.json").read_text())["owlen"]


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Any, path: Path) -> Any:
    (done,) = home.import_sessions(path, agent="owlen")
    return done


def session_of(home: Any, path: Path) -> Any:
    return home.resume(bring(home, path).id)


def files_of(session: Any) -> dict[str, bytes]:
    return {output.path: output.data for output in render(session, "owlen").files}


def checkpoint(
    folder: Path,
    id: str,
    at: int,
    prompts: list[str],
    responses: list[str],
    calls: list[Any] | None = None,
    **more: Any,
) -> Path:
    """A checkpoint as owlen saves it."""
    time = {"secs_since_epoch": at, "nanos_since_epoch": 7}
    start = {"secs_since_epoch": 1767225600, "nanos_since_epoch": 1}
    stats = {
        "start_time": start, "total_messages": len(prompts), "total_tool_calls": len(calls or []),
        "total_duration": {"secs": 1, "nanos": 0}, "estimated_tokens": 10,
    }  # fmt: skip
    document = {
        "id": id, "timestamp": time, "stats": stats, "user_prompts": prompts, "assistant_responses": responses,
        "tool_calls": calls or [], "file_diffs": [], **more,
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{id}.json"
    path.write_bytes(pretty(document))
    return path


def call(name: str = "bash", arguments: str = "{}", result: str = "ok", success: bool = True) -> dict[str, Any]:
    return {"tool_name": name, "arguments": arguments, "result": result, "success": success}


def loads_in_owlen(data: bytes) -> dict[str, Any]:
    """Refuse whatever the loader of owlen would refuse: every field is required."""
    found = json.loads(data)
    stats = found["stats"]
    for time in (found["timestamp"], stats["start_time"], *(diff["timestamp"] for diff in found["file_diffs"])):
        assert list(time) == ["secs_since_epoch", "nanos_since_epoch"] and min(time.values()) >= 0
    assert list(stats["total_duration"]) == ["secs", "nanos"]
    assert all(isinstance(stats[name], int) for name in ("total_messages", "total_tool_calls", "estimated_tokens"))
    assert all(isinstance(text, str) for name in ("user_prompts", "assistant_responses") for text in found[name])
    for item in found["tool_calls"]:
        assert [type(item[name]) for name in ("tool_name", "arguments", "result", "success")] == [str, str, str, bool]
    assert isinstance(found["id"], str)
    return found


class TestContract(FormatContract):
    name = "owlen"
    samples = [SEEDS / "workspace", FIRST, LISTS, TORN]

    def test_a_session_of_ours_comes_back_as_it_was_said(self, home: Any, tmp_path: Path) -> None:
        """All of it, though not where: three lists cannot say what came between what. That is told as a loss."""
        with sample_conversation(home) as session:
            written = render(session, "owlen")
            assert "place of a tool call" in [loss.what for loss in written.lost]
            wanted = visible_parts(session)
        (found,) = self.import_sessions(home, Path(owlen.place(written, str(tmp_path))))
        with home.resume(found.id) as back:
            assert sorted(visible_parts(back)) == sorted(wanted)
            for kind in ("user", "assistant", "call", "result"):
                assert [text for who, text in visible_parts(back) if who == kind] == [
                    t for who, t in wanted if who == kind
                ]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────


def test_all_checkpoints_of_a_workspace_are_one_session(home: Any) -> None:
    done = bring(home, SEEDS / "workspace")
    session = home.resume(done.id)
    assert (done.id, done.problems) == ("owlen-1767225600-123456789", [])
    said = [(message.role, type(message.blocks[0]).__name__) for message in session.messages()]
    assert said == [
        ("user", "Text"), ("assistant", "ToolCall"), ("tool", "ToolResult"), ("assistant", "ToolCall"),
        ("tool", "ToolResult"), ("assistant", "Text"), ("user", "Text"), ("assistant", "Text"),
    ]  # fmt: skip
    assert session.workspace == str(SEEDS / "workspace")
    assert bring(home, SEEDS / "workspace").added == 0


def test_calls_have_their_arguments_and_whether_they_failed(home: Any) -> None:
    messages = session_of(home, FOLDER).messages()
    assert messages[1].blocks == [ToolCall(id="call-1", name="write", input={"path": "план.txt", "content": "• 一"})]
    wrote, failed = messages[2].blocks[0], messages[4].blocks[0]
    assert (wrote.content, wrote.is_error) == ("wrote план.txt", False)
    assert (failed.call, failed.is_error) == ("call-2", True)


def test_a_checkpoint_is_a_note_with_its_statistics_and_the_texts_of_files(home: Any) -> None:
    session = session_of(home, FOLDER)
    first, second = [entry for entry in session.entries() if isinstance(entry, Note)]
    assert first.text == "checkpoint checkpoint-1767225700"
    assert first.data["timestamp"] == [1767225700, 999999999]
    assert first.data["stats"]["total_duration"] == [12, 345000000]
    plan, readme = first.data["diffs"]
    assert (plan["path"], plan["before"], plan["after"]) == ("/home/anna/проект/план.txt", "", "• 一\n")
    assert readme["timestamp"] == [1767225700, 500]
    assert session.find(first.data["after"]).blocks[0].text.startswith("Готово")
    assert second.data["diffs"] == []


def test_an_estimate_of_tokens_is_never_counted_as_spent(home: Any) -> None:
    session = session_of(home, FOLDER)
    assert session.usage().own == Usage()
    notes = [entry.data["stats"]["estimated_tokens"] for entry in session.entries() if isinstance(entry, Note)]
    assert notes == [234, 301]


@pytest.mark.parametrize(
    ("raw", "time"),
    [
        ({"secs_since_epoch": 5, "nanos_since_epoch": 6}, [5, 6]),
        ({"secs": 5, "nanos": 6}, [5, 6]),
        ([5, 6], [5, 6]),
        ([5, 2_500_000_000], [7, 500_000_000]),
        ({"secs": 5}, None),
        ({"secs": 5, "nanos": 6, "more": 1}, None),
        ([5], None),
        ([5, -1], None),
        ([5, 6.0], None),
        ([True, 6], None),
        ("5", None),
    ],
)
def test_a_time_has_two_forms(raw: Any, time: Any) -> None:
    assert rust_time_in(raw) == time


def test_two_starts_are_two_sessions(home: Any, tmp_path: Path) -> None:
    folder = tmp_path / ".owlen" / "checkpoints"
    shutil.copytree(FOLDER, folder)
    checkpoint(folder, "other", 1767225900, ["hi"], ["ho"])
    ids = [done.id for done in home.import_sessions(tmp_path)]
    assert ids == ["owlen-1767225600-000000001", "owlen-1767225600-123456789"]


def test_checkpoints_come_by_time_and_not_by_name(home: Any, tmp_path: Path) -> None:
    """owlen lists them by name: …-9 after …-10."""
    for number in (8, 9, 10, 11):
        texts = [str(n) for n in range(8, number + 1)]
        checkpoint(tmp_path, f"checkpoint-{number}", 1767225600 + number, texts, texts)
    session = session_of(home, tmp_path)
    assert [entry.data["id"] for entry in session.entries() if isinstance(entry, Note)] == [
        "checkpoint-8", "checkpoint-9", "checkpoint-10", "checkpoint-11",
    ]  # fmt: skip
    assert [message.blocks[0].text for message in session.messages()] == ["8", "8", "9", "9", "10", "10", "11", "11"]
    assert len(session.branches()) <= 1


def test_no_response_comes_before_a_result_it_may_speak_of(home: Any, tmp_path: Path) -> None:
    """Three lists side by side lose the order between prompts, responses and tool calls."""
    checkpoint(tmp_path, "a", 1767225601, ["p1", "p2"], ["r1", "r2"], [call(), call("ls")])
    checkpoint(tmp_path, "b", 1767225602, ["p1", "p2", "p3"], ["r1", "r2", "r3"], [call(), call("ls"), call("cat")])
    said = [getattr(message.blocks[0], "text", message.role) for message in session_of(home, tmp_path).messages()]
    assert said == ["p1", "assistant", "tool", "assistant", "tool", "r1", "p2", "r2", "p3", "assistant", "tool", "r3"]


def test_where_owlen_was_rewound_there_is_a_branch(home: Any, tmp_path: Path) -> None:
    paths = [
        checkpoint(tmp_path, "zero", 1767225600, ["x", "y"], []),
        checkpoint(tmp_path, "one", 1767225601, ["a"], ["A"]),
        checkpoint(tmp_path, "two", 1767225602, ["a", "b"], ["A", "B"]),
        checkpoint(tmp_path, "three", 1767225603, ["a", "c"], ["A", "C"]),
        checkpoint(tmp_path, "four", 1767225604, ["x", "z"], []),
    ]
    session = session_of(home, tmp_path)
    assert [message.blocks[0].text for message in session.messages()] == ["x", "z"]
    assert files_of(session) == {path.name: path.read_bytes() for path in paths}
    assert next(iter(files_of(session))) == "four.json"
    assert bring(home, tmp_path).added == 0


def test_a_newer_checkpoint_adds_only_what_is_new(home: Any, tmp_path: Path) -> None:
    """Every checkpoint holds the whole conversation again."""
    shutil.copy(FIRST, tmp_path)
    assert bring(home, tmp_path).added == 7 + 4  # two files to track, and how they were before and after
    shutil.copy(SECOND, tmp_path)
    assert bring(home, tmp_path).added == 3 + 1
    assert files_of(session_of(home, tmp_path)) == {path.name: path.read_bytes() for path in (SECOND, FIRST)}


def test_of_a_checkpoint_that_was_saved_again_the_newest_is_written(home: Any, tmp_path: Path) -> None:
    """The same id silently overwrites in owlen; here both are kept, and a file can only be one of them."""
    bring(home, checkpoint(tmp_path, "same", 1767225601, ["a"], ["A"]))
    path = checkpoint(tmp_path, "same", 1767225602, ["a", "b"], ["A", "B"])
    shutil.copy(path, tmp_path / "copy.json")
    session = session_of(home, tmp_path)
    assert files_of(session) == {name: path.read_bytes() for name in ("same.json", "copy.json")}
    assert [loss.what for loss in render(session, "owlen").lost] == ["checkpoint that was saved over"]


def test_one_file_and_later_all_of_them_are_the_same_session(home: Any) -> None:
    alone = bring(home, SECOND)
    done = bring(home, FOLDER)
    session = home.resume(done.id)
    assert (alone.id, done.added) == (done.id, 1 + 4)
    assert len(session.messages()) == 8
    assert files_of(session) == {path.name: path.read_bytes() for path in (SECOND, FIRST)}


# ── what owlen loses ──────────────────────────────────────────────────────────────────────────────


def test_a_torn_checkpoint_is_told_and_costs_only_itself(home: Any, tmp_path: Path) -> None:
    """It is still listed by owlen, and cannot be loaded."""
    shutil.copytree(FOLDER, tmp_path / "c")
    shutil.copy(TORN, tmp_path / "c")
    done = bring(home, tmp_path / "c")
    told = [(problem.what.split(":")[0], problem.where) for problem in done.problems]
    assert told == [("the JSON breaks off", TORN.name), ("a checkpoint that owlen cannot load", TORN.name)]
    assert files_of(home.resume(done.id)) == {path.name: path.read_bytes() for path in (SECOND, FIRST)}
    assert "broken/truncated.json" in EXPECTED


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7, 0.85, 0.97])
def test_what_is_new_in_a_torn_checkpoint_is_not_lost(home: Any, tmp_path: Path, share: float) -> None:
    """A torn checkpoint is all that is left of what was said since the one before it."""
    checkpoint(tmp_path, "one", 1767225601, ["a"], ["A"], [call()])
    path = checkpoint(tmp_path, "two", 1767225602, ["a", "b", "c"], ["A", "B", "C"], [call(), call("ls")])
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    done = bring(home, tmp_path)
    said = [getattr(message.blocks[0], "text", message.role) for message in home.resume(done.id).messages()]
    assert said[:4] == ["a", "assistant", "tool", "A"]
    assert ("c" in said) == (b'"c"\n' in path.read_bytes())
    texts = [text for text in said if len(text) == 1]
    assert texts == [text for text in "aAbBcC" if text in texts]
    assert done.problems


def test_the_order_of_changed_files_is_kept(home: Any) -> None:
    """owlen writes them in the order of a hash map, another one each time."""
    session = session_of(home, FOLDER)
    written = loads_in_owlen(files_of(session)[FIRST.name])
    assert [diff["path"] for diff in written["file_diffs"]] == [
        "/home/anna/проект/план.txt",
        "/home/anna/проект/README.md",
    ]


def test_an_id_that_leads_elsewhere_is_not_followed(home: Any, tmp_path: Path) -> None:
    """owlen joins an id to its folder unchecked."""
    path = checkpoint(tmp_path / "from", "x", 1767225601, ["a"], ["A"])
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"../../esc"', 1))
    session = session_of(home, path)
    written = render(session, "owlen")
    target = Path(owlen.place(written, str(tmp_path / "a/b/c")))
    assert target == tmp_path / "a/b/c/x.json" and target.read_bytes() == path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "from"]


@pytest.mark.parametrize(
    "name", ["../../esc.json", "/", "\\", "", ".", "..", "x" * 300, "a\0b", "/etc/passwd", "a/../b"]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Invalid):
        owlen.place(Rendered(id=name, files=[OutputFile(name, b"{}")]), str(tmp_path / "c"))
    assert list(tmp_path.rglob("*")) == []


def test_a_checkpoint_is_never_overwritten_without_being_told_to(home: Any, tmp_path: Path) -> None:
    """The same id silently overwrites in owlen."""
    written = render(session_of(home, FOLDER), "owlen")
    first = Path(owlen.place(written, str(tmp_path)))
    assert first.name == SECOND.name
    owlen.place(written, str(tmp_path))  # the same bytes are there already
    (tmp_path / FIRST.name).write_bytes(b"mine")
    with pytest.raises(AlreadyExists, match=FIRST.name):
        owlen.place(written, str(tmp_path))
    assert (tmp_path / FIRST.name).read_bytes() == b"mine"
    owlen.place(written, str(tmp_path), force=True)
    assert (tmp_path / FIRST.name).read_bytes() == FIRST.read_bytes()


def test_a_link_in_the_place_of_a_checkpoint_is_not_followed(home: Any, tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / FIRST.name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AlreadyExists):
        owlen.place(render(session_of(home, FOLDER), "owlen"), str(tmp_path / "c"))
    assert not (tmp_path / "elsewhere").exists()


# ── writing ───────────────────────────────────────────────────────────────────────────────────────


def test_checkpoints_that_nobody_changed_are_written_to_the_byte(home: Any) -> None:
    identical = [name for name, said in EXPECTED.items() if said.get("byte_identical")]
    assert len(identical) == 2
    written = render(session_of(home, FOLDER), "owlen")
    assert {output.path: output.data for output in written.files} == {
        Path(name).name: (SEEDS / name).read_bytes() for name in identical
    }
    assert written.files[0].path == SECOND.name and written.lost == []


def test_times_as_lists_on_one_line_come_back_as_they_were(home: Any) -> None:
    assert files_of(session_of(home, LISTS)) == {LISTS.name: LISTS.read_bytes()}


def test_odd_files_come_back_to_the_byte(home: Any, tmp_path: Path) -> None:
    arguments = ['{"b":1,"a":2}', '{ "spaced": true }', "not json", "", '"text"', "1.50", "[1e16]", '{"a":1,"a":2}']
    path = checkpoint(
        tmp_path, "odd", 1767225601, ["", "again", "again"], ["\n"], [call(arguments=text) for text in arguments],
        added_later={"x": [1]},
    )  # fmt: skip
    assert files_of(session_of(home, path)) == {path.name: path.read_bytes()}


def test_texts_too_big_for_a_line_come_back_to_the_byte(tmp_path: Path) -> None:
    big, time = "й" * 100_000, {"secs_since_epoch": 1, "nanos_since_epoch": 2}
    diffs = [{"path": "p", "before": big, "after": big + "x", "timestamp": time}]
    calls = [call(arguments='{"a":"' + big + '"}', result=big)]
    path = checkpoint(tmp_path / "c", "big", 1767225601, [big], [big], calls, file_diffs=diffs)
    with turnlog.open(tmp_path / "home") as home:
        bring(home, path)
    with turnlog.open(tmp_path / "home") as home:
        assert files_of(session_of(home, path)) == {path.name: path.read_bytes()}


def test_after_one_more_turn_there_is_one_more_checkpoint(home: Any) -> None:
    session = session_of(home, FOLDER)
    session.user("и още")
    session.assistant([Thinking(text="hm"), Text(text="добре"), ToolCall(id="x", name="ls", input={"b": 1, "a": "й"})])
    session.tool_result("x", "план.txt")
    session.assistant("готово", usage=Usage(input_tokens=5))
    written = render(session, "owlen")
    new, second, first = written.files
    assert (second.data, first.data) == (SECOND.read_bytes(), FIRST.read_bytes())
    found, before = loads_in_owlen(new.data), json.loads(SECOND.read_bytes())
    assert found["id"] == new.path.removesuffix(".json") == written.id
    assert found["user_prompts"] == [*before["user_prompts"], "и още"]
    assert found["assistant_responses"] == [*before["assistant_responses"], "добре", "готово"]
    assert found["tool_calls"] == [*before["tool_calls"], call("ls", '{"b":1,"a":"й"}', "план.txt")]
    assert found["stats"]["start_time"] == before["stats"]["start_time"]
    assert (found["stats"]["total_messages"], found["stats"]["total_tool_calls"]) == (3, 3)
    assert found["stats"]["estimated_tokens"] > before["stats"]["estimated_tokens"]
    assert {loss.what: loss.count for loss in written.lost} == {
        "reasoning": 1, "usage": 1, "place of a tool call": 1, "place of a message": 1,
    }  # fmt: skip


def test_a_session_that_owlen_never_saw_is_written_so_that_it_loads(home: Any, tmp_path: Path) -> None:
    session = home.create(title="T")
    session.system("Be brief.")
    session.user([Text(text="look"), Image(media_type="image/png", data=b"x")])
    session.assistant([ToolCall(id="a", name="read", input={"p": 1}), ToolCall(id="b", name="run", input="ls")])
    session.tool_result("b", "boom", is_error=True)
    written = render(session, "owlen")
    (output,) = written.files
    found = loads_in_owlen(output.data)
    assert found["user_prompts"][0].startswith("look\n[image")
    assert [(c["tool_name"], c["arguments"], c["success"]) for c in found["tool_calls"]] == [
        ("read", '{"p":1}', False), ("run", '"ls"', False),
    ]  # fmt: skip
    assert found["tool_calls"][1]["result"] == "boom" and "interrupted" in found["tool_calls"][0]["result"]
    assert found["assistant_responses"] == []
    lost = {loss.what: loss.count for loss in written.lost}
    assert lost == {
        "title": 1, "image block": 1, "system message": 1, "place of a tool call": 2, "system prompt": 1,
        "separate texts": 1,
        "time of a message": 4,
    }  # fmt: skip
    again = session_of(home, Path(owlen.place(written, str(tmp_path))))
    assert files_of(again) == {output.path: output.data}


def test_a_session_read_back_has_what_both_can_say(home: Any, tmp_path: Path) -> None:
    session = home.create()
    session.user("do it")
    called = ToolCall(id="call-1", name="f", input={"a": 1})
    session.assistant([called])
    session.tool_result(called, "done")
    session.assistant("so it is")
    again = session_of(home, Path(owlen.place(render(session, "owlen"), str(tmp_path))))
    assert [(m.role, m.blocks) for m in again.messages()] == [(m.role, m.blocks) for m in session.messages()]


def test_rust_knows_no_time_before_1970() -> None:
    from datetime import UTC, datetime

    assert rust_time_of(datetime(1969, 1, 1, tzinfo=UTC)) == [0, 0]
    assert rust_time_of(datetime(1970, 1, 2, 0, 0, 0, 250, tzinfo=UTC)) == [86400, 250_000]


# ── where they lie ────────────────────────────────────────────────────────────────────────────────


def test_sessions_are_found_in_a_file_its_folder_a_workspace_and_above(tmp_path: Path) -> None:
    work = tmp_path / "code" / "project"
    shutil.copytree(SEEDS / "workspace", work)
    folder = work / ".owlen/checkpoints"
    (folder / "notes.txt").write_bytes(b"")
    found = [Source("owlen", str(folder), "1767225600-123456789")]
    for place in (folder, work / ".owlen", work, work.parent, tmp_path):
        assert list(owlen.find(str(place))) == found, place
    assert list(owlen.find(str(folder / FIRST.name))) == [Source("owlen", str(folder / FIRST.name))]
    assert list(owlen.find(str(tmp_path / "nothing"))) == []
    assert owlen.FORMAT.homes(Places(home="/h", workspace="/w")) == ["/w/.owlen/checkpoints"]
    assert owlen.FORMAT.homes(Places(home="/h")) == []


def test_a_file_of_which_nothing_is_left_is_told(home: Any, tmp_path: Path) -> None:
    folder = tmp_path / ".owlen" / "checkpoints"
    shutil.copytree(FOLDER, folder)
    (folder / "checkpoint-1.json").write_bytes(b"")
    good, empty = home.import_sessions(tmp_path)
    assert (good.id, good.problems) == ("owlen-1767225600-123456789", [])
    assert [problem.where for problem in empty.problems] == ["checkpoint-1.json"] * 2


def test_files_of_other_agents_are_not_taken() -> None:
    others = [path for path in SEEDS.parent.rglob("*") if path.is_file() and SEEDS not in path.parents]
    assert others
    assert [path for path in others if list(owlen.find(str(path)))] == []


# ── damage of every kind ──────────────────────────────────────────────────────────────────────────


def test_what_was_read_from_damaged_files_can_be_kept_and_written(tmp_path: Path) -> None:
    dice = random.Random(5)
    for number in range(25):
        folder = tmp_path / str(number) / ".owlen" / "checkpoints"
        shutil.copytree(FOLDER, folder)
        (folder / SECOND.name).write_bytes(damaged(SECOND.read_bytes(), dice))
        with turnlog.open("memory:") as home:
            for done in home.import_sessions(folder, agent="owlen"):
                for data in files_of(home.resume(done.id)).values():
                    json.loads(data)


def damaged(data: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.randrange(1, 5)):
        at = dice.randrange(len(made) + 1)
        kind = dice.randrange(6)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << dice.randrange(8)
        elif kind == 1:
            del made[at : at + dice.randrange(1, 100)]
        elif kind == 2:
            made[at:at] = bytes(dice.randrange(1, 64))
        elif kind == 3:
            made[at:at] = dice.choice(
                (b"1e999", b'"\\ud800"', b"\xff\xfe", b"null", b"[[[[", b'{"secs":', b"-1", b"true")
            )
        elif kind == 4:
            start = dice.randrange(len(made) + 1)
            made[at:at] = made[start : start + dice.randrange(200)]
        else:
            del made[at:]
    return bytes(made)


def test_sessions_of_every_other_agent_are_written_so_that_they_load(home: Any) -> None:
    for done in home.import_sessions(SEEDS.parent):
        with home.resume(done.id) as session:
            if session.agent != "owlen":
                for output in render(session, "owlen").files:
                    loads_in_owlen(output.data)


# ── the files of checkpoints ──────────────────────────────────────────────────────────────────────


def moment(second: int) -> dict[str, int]:
    return {"secs_since_epoch": 1767225600 + second, "nanos_since_epoch": 0}


def save(folder: Path, second: int, said: list[str], diffs: list[tuple[Path, str, str]]) -> None:
    """A checkpoint as owlen saves it."""
    folder.mkdir(parents=True, exist_ok=True)
    stats = {
        "start_time": moment(0), "total_messages": len(said), "total_tool_calls": 0,
        "total_duration": {"secs": 1, "nanos": 0}, "estimated_tokens": 3,
    }  # fmt: skip
    checkpoint = {
        "id": f"checkpoint-{second}", "timestamp": moment(second), "stats": stats, "user_prompts": said,
        "assistant_responses": [text.upper() for text in said], "tool_calls": [],
        "file_diffs": [
            {"path": str(path), "before": before, "after": after, "timestamp": moment(second)}
            for path, before, after in diffs
        ],
    }  # fmt: skip
    (folder / f"checkpoint-{second}.json").write_bytes(pretty(checkpoint))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace that owlen changed in two steps, and a file of somebody else's in it."""
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    saved = work / ".owlen" / "checkpoints"
    save(saved, 1, ["one"], [(work / "a.txt", "a1", "a2")])
    save(saved, 2, ["one", "two"], [
        (work / "a.txt", "a2", "a3"), (work / "sub/b.txt", "b1", "b2"), (work / "new.txt", "", "n"),
    ])  # fmt: skip
    for name, text in (("a.txt", "a3"), ("sub/b.txt", "b2"), ("new.txt", "n"), ("mine.txt", "m")):
        (work / name).write_text(text)
    (work / "a.txt").chmod(0o755)
    return work


def named(session: Any) -> dict[str, Any]:
    found = {checkpoint.label: checkpoint for checkpoint in session.checkpoints()}
    return {label: checkpoint for label, checkpoint in found.items() if not label.startswith("before ")}


def test_imported_checkpoints_have_their_ids_as_labels_and_are_compared(tmp_path: Path, project: Path) -> None:
    with turnlog.open(tmp_path / "home") as home:
        (done,) = home.import_sessions(project)
        assert done.problems == []
        session = home.resume(done.id)
        first, second = named(session).values()
        assert list(named(session)) == ["checkpoint-1", "checkpoint-2"]
        assert [item.path for item in session.diff(first, second)] == ["a.txt", "new.txt", "sub/b.txt"]
        assert "-b1" in session.diff(first, second)[2].lines
        assert session.diff(second) == []  # what it does not hold is not compared
        assert [(item.path, item.action) for item in session.diff()] == [
            ("a.txt", "modified"), ("new.txt", "modified"), ("sub/b.txt", "modified"),
        ]  # fmt: skip
        (again,) = home.import_sessions(project)
        assert again.added == 0
        written = render(session, "owlen")
        assert files_of(session) == {p.name: p.read_bytes() for p in (project / ".owlen/checkpoints").iterdir()}
        assert written.lost == []


def test_imported_checkpoints_are_rewound_to_for_the_files_they_hold(tmp_path: Path, project: Path) -> None:
    with turnlog.open(tmp_path / "home") as home:
        (done,) = home.import_sessions(project)
        session = home.resume(done.id)
        first = named(session)["checkpoint-1"]
        (project / "sub/b.txt").write_text("by a person")
        steps = {step.raw: (step.action, step.reason) for step in session.plan_rewind(to=first).steps}
        assert steps[b"a.txt"][0] == "modify"
        assert steps[b"sub/b.txt"] == ("conflict", "somebody changed it since")
        assert steps[b"new.txt"][0] == "unknown"  # an empty text may be no file at all
        session.rewind(to=first)
        assert {p.name: p.read_text() for p in project.rglob("*.txt")} == {
            "a.txt": "a2", "b.txt": "by a person", "new.txt": "n", "mine.txt": "m",
        }  # fmt: skip
        assert (project / "a.txt").stat().st_mode & 0o777 == 0o755
        assert [m.blocks[0].text for m in session.messages()] == ["one", "ONE"]
        session.undo()
        assert (project / "a.txt").read_text() == "a3"
        begin = session.checkpoints()[0]
        assert begin.label == "before checkpoint-1"
        session.rewind(to=begin)
        assert (project / "a.txt").read_text() == "a1"


def test_imported_checkpoints_are_not_given_up_for_space(tmp_path: Path, project: Path) -> None:
    with turnlog.open(tmp_path / "home") as home:
        session = home.resume(next(iter(home.import_sessions(project))).id)
        home.gc(quota_bytes=0)
        assert list(named(session)) == ["checkpoint-1", "checkpoint-2"]
        session.rewind(to=named(session)["checkpoint-1"])
        assert (project / "a.txt").read_text() == "a2"


def test_a_newer_checkpoint_is_one_more(tmp_path: Path, project: Path) -> None:
    with turnlog.open(tmp_path / "home") as home:
        home_id = next(iter(home.import_sessions(project))).id
        save(project / ".owlen/checkpoints", 3, ["one", "two", "three"], [(project / "a.txt", "a3", "a4")])
        (done,) = home.import_sessions(project)
        assert done.id == home_id
        session = home.resume(done.id)
        assert list(named(session)) == ["checkpoint-1", "checkpoint-2", "checkpoint-3"]
        (project / "a.txt").write_text("a4")
        session.rewind(to=named(session)["checkpoint-2"])
        assert (project / "a.txt").read_text() == "a3"


@pytest.mark.parametrize("path", ["a/../b", "relative", "/", "", "/x/\0y", "//double"])
def test_a_path_that_is_none_is_left_out_and_comes_back(tmp_path: Path, path: str) -> None:
    saved = tmp_path / ".owlen" / "checkpoints"
    save(saved, 1, ["one"], [])
    file = saved / "checkpoint-1.json"
    data = json.loads(file.read_bytes())
    data["file_diffs"] = [{"path": path, "before": "x", "after": "y", "timestamp": moment(1)}]
    file.write_bytes(pretty(data))
    with turnlog.open(tmp_path / "home") as home:
        (done,) = home.import_sessions(file)
        session = home.resume(done.id)
        assert session.diff(named(session)["checkpoint-1"]) == []
        assert render(session, "owlen").files[0].data == file.read_bytes()


def test_checkpoints_without_a_workspace_are_of_their_files_alone(tmp_path: Path) -> None:
    file = tmp_path / "far" / "c.txt"
    file.parent.mkdir()
    file.write_text("c2")
    save(tmp_path / "loose", 1, ["one"], [(file, "c1", "c2")])
    with turnlog.open(tmp_path / "home") as home:
        (done,) = home.import_sessions(tmp_path / "loose" / "checkpoint-1.json")
        session = home.resume(done.id)
        assert session.workspace is None
        begin, end = session.checkpoints()
        assert [item.path for item in session.diff(begin, end)] == [str(file)]
        session.rewind(to=begin)
        assert file.read_text() == "c1"
        session.undo()
        assert file.read_text() == "c2"


def test_what_was_changed_here_goes_along_with_absolute_paths(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "x.txt").write_text("x1")
    (work / "bin").write_bytes(b"\xff\0")
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(workspace=work)
        with session.turn():
            session.user("go")
            (work / "x.txt").write_text("x2")
            (work / "y.txt").write_text("y")
            (work / "bin").write_bytes(b"\xff\1")
        written = render(session, "owlen")
        found = loads_in_owlen(written.files[0].data)["file_diffs"]
        assert [(diff["path"], diff["before"], diff["after"]) for diff in found] == [
            (str(work / "x.txt"), "x1", "x2"), (str(work / "y.txt"), "", "y"),
        ]  # fmt: skip
        assert first_owlen.faults(written.files[0].path, written.files[0].data) == []
        told = {loss.what: loss.count for loss in written.lost}
        assert (told["file that is no text"], told["file that was not there"]) == (1, 1)


def test_what_is_said_here_after_an_import_has_the_changes_since(tmp_path: Path, project: Path) -> None:
    with turnlog.open(tmp_path / "home") as home:
        session = home.resume(next(iter(home.import_sessions(project))).id)
        with session.turn():
            session.user("three")
            (project / "a.txt").write_text("a4")
        newest, *others = render(session, "owlen").files
        found = json.loads(newest.data)["file_diffs"]
        assert [(diff["path"], diff["before"], diff["after"]) for diff in found] == [
            (str(project / "a.txt"), "a3", "a4")
        ]
        assert len(others) == 2


def test_what_is_in_ignored_files_is_sent_only_if_that_is_asked_for(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / ".gitignore").write_text(".env\n")
    (work / ".env").write_text("WORD=before")
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(workspace=work)
        with session.turn():
            session.user("go")
            (work / ".env").write_text("WORD=after")
        done = session.export("owlen", tmp_path / "kept/")
        assert {loss.what: loss.count for loss in done.lost}["ignored file"] == 1
        assert not any(b"WORD" in path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file())
        sent = session.export("owlen", tmp_path / "sent/", include_ignored=True)
        assert "ignored file" not in {loss.what for loss in sent.lost}
        (diff,) = json.loads(Path(sent.path).read_bytes())["file_diffs"]
        assert (diff["path"], diff["before"], diff["after"]) == (str(work / ".env"), "WORD=before", "WORD=after")
