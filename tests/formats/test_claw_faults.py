"""What breaks claw: each fault named, and what happens here instead."""

from __future__ import annotations

import json
import random
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests import public
from tests.formats.test_claw import (
    BROKEN,
    CLEARED,
    COMPACTED,
    FORK,
    LEGACY,
    NEWEST,
    PLAIN,
    ROTATED,
    SEEDS,
    bring,
    data_of,
    loads_in_claw,
    meta,
    read,
    session_of,
    text,
    write_lines,
)
from turnlog import Message, ToolCall, ToolResult, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.formats import Problem, Record, Source
from turnlog.formats.seeds import claw


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def test_a_torn_last_line_costs_only_itself(home: Any) -> None:
    """In claw a torn last line makes the whole session unloadable."""
    done = bring(home, BROKEN / "torn_tail.jsonl")
    assert len(home.resume(done.id).messages()) == 3
    assert Problem("the last line was never finished", offset=869, length=61) in done.problems
    loads_in_claw(data_of(home.resume(done.id)))


def test_what_was_appended_to_a_torn_line_is_found(home: Any, tmp_path: Path) -> None:
    """In claw the next append after a crash is stuck to the torn line, and lost with it."""
    torn = (BROKEN / "torn_tail.jsonl").read_bytes()
    last = PLAIN.read_bytes().splitlines(keepends=True)[-1]
    path = tmp_path / "session-1775128446000-0.jsonl"
    path.write_bytes(torn + last + last)
    done = bring(home, path)
    messages = home.resume(done.id).messages()
    assert len(messages) == 5
    assert messages[3].blocks == messages[4].blocks
    assert [problem.offset for problem in done.problems] == [869]


def test_a_bad_line_in_the_middle_costs_only_itself(home: Any, tmp_path: Path) -> None:
    """In claw any bad line is an error for the whole file."""
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    lines[3] = b"\0" * 300 + b"\n"
    path = tmp_path / PLAIN.name
    path.write_bytes(b"".join(lines))
    done = bring(home, path)
    assert len(home.resume(done.id).messages()) == 5
    assert [problem.offset for problem in done.problems] == [sum(map(len, lines[:3]))]


def test_what_the_loader_refuses_is_read(home: Any) -> None:
    """claw refuses fractions and surrogate escapes anywhere in a file."""
    assert session_of(home, BROKEN / "surrogate_escape.jsonl").messages()[0].blocks[0].text == "🚀"
    reading, _ = read(BROKEN / "float_number.jsonl")
    assert reading.header.id == "s"
    assert "a number that is no 64-bit integer, which claw refuses" in [problem.what for problem in reading.problems]


def test_rotated_copies_are_copies(home: Any) -> None:
    """claw lists rotated copies as sessions, under the id of the session."""
    found = [Path(source.path).name for source in claw.find(str(PLAIN.parent))]
    assert ROTATED.name not in found
    assert PLAIN.name in found
    done = bring(home, ROTATED)
    assert done.id == "claw-session-1775128446000-0.rot-1775128400000"
    assert home.resume(done.id).labels == {"copy_of": "session-1775128446000-0"}
    assert bring(home, CLEARED).id == "claw-session-1786000000000-0.before-clear-1786000009999"


def test_a_session_is_found_while_it_has_no_file_of_its_own(home: Any, tmp_path: Path) -> None:
    """Between claw's two renames the session file does not exist; a crash there loses the session."""
    for number in (1775128400000, 1775128390000):
        shutil.copy(PLAIN if number == 1775128400000 else ROTATED, tmp_path / f"{PLAIN.stem}.rot-{number}.jsonl")
    done = bring(home, tmp_path)
    assert done.id == f"claw-{PLAIN.stem}"
    assert len(home.resume(done.id).messages()) == 6
    assert [problem.what for problem in done.problems] == ["the session's own file is gone: this is its newest copy"]
    shutil.copy(PLAIN, tmp_path)
    again = bring(home, tmp_path)
    assert (again.id, again.added) == (done.id, 0)


def test_a_copy_with_more_than_the_session_is_told(tmp_path: Path) -> None:
    """In claw the only copies of what a compaction removed disappear after three more saves."""
    write_lines(tmp_path / PLAIN.name, meta(), text("after"))
    shutil.copy(PLAIN, tmp_path / f"{PLAIN.stem}.rot-1775128400000.jsonl")
    reading, _ = read(tmp_path / PLAIN.name)
    (problem,) = reading.problems
    assert "6 records that the session no longer has" in problem.what
    assert problem.where == f"{PLAIN.stem}.rot-1775128400000.jsonl"


def test_what_a_compaction_removed_stays_with_its_usage(home: Any, tmp_path: Path) -> None:
    """In claw compaction deletes messages with their usage, so that costs shrink after a resume."""
    path = tmp_path / PLAIN.name
    shutil.copy(PLAIN, path)
    session = session_of(home, path)
    before = session.usage().own
    lines = [json.loads(line) for line in PLAIN.read_bytes().splitlines()]
    record = {"type": "compaction", "count": 1, "removed_message_count": 4, "summary": "s"}
    write_lines(path, lines[0], record, text("the summary", "system"), *lines[5:], text("go on"))
    again = session_of(home, path)
    assert again.id == session.id
    assert len(again.messages()) == 7
    assert again.usage().own == before
    assert [message.blocks[0] for message in again.context()][-1].text == "go on"
    assert data_of(again) == path.read_bytes()


def test_a_log_that_grows_needs_no_rotation(tmp_path: Path) -> None:
    """Above 256 KiB every save of claw writes a whole copy: four times the disk, and each turn costs all before."""
    with turnlog.open(tmp_path / "home", checkpoints=False) as home:
        session = home.create()
        sizes: list[int] = []
        for _ in range(12):
            session.user("x" * 50_000)
            sizes.append(sum(path.stat().st_size for path in (tmp_path / "home").rglob("*") if path.is_file()))
        assert len(list((tmp_path / "home").rglob("*.jsonl"))) == 1
        assert sizes[-1] < 12 * 50_000 * 1.2
        assert max(b - a for a, b in pairwise(sizes)) < 60_000


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    """claw has no locks: of five concurrent savers some fail, and they overwrite each other's turns."""
    with turnlog.open(tmp_path) as home:
        id = home.create().id

    def work(name: int) -> None:
        with turnlog.open(tmp_path) as mine:
            session = mine.resume(id)
            for index in range(6):
                session.append(Message(role="user", blocks=[turnlog.Text(f"{name}.{index}")]), rebase=True)

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(work, range(5)))
    with turnlog.open(tmp_path) as home:
        found = sorted(message.blocks[0].text for message in home.resume(id).messages())
    assert found == sorted(f"{name}.{index}" for name in range(5) for index in range(6))


def test_a_bare_file_name_is_a_place(home: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """claw writes to a bare relative name and then fails, because it reads the directory ""."""
    monkeypatch.chdir(tmp_path)
    session_of(home, PLAIN).export("claw", "x.jsonl")
    assert (tmp_path / "x.jsonl").read_bytes() == PLAIN.read_bytes()


def test_an_empty_file_and_an_old_one_keep_their_id(home: Any, tmp_path: Path) -> None:
    """claw invents an id for an empty file, and another one for an old file on each load."""
    path = tmp_path / "session-1775128446000-0.jsonl"
    path.touch()
    done = bring(home, path)
    assert done.id == "claw-session-1775128446000-0"
    assert [problem.what for problem in done.problems] == ["an empty file: claw would give it another id each time"]
    old = LEGACY / "session-1774998936453.json"
    assert bring(home, old).id == bring(home, old).id == "claw-session-1774998936453"
    created = json.loads(data_of(session_of(home, old)).splitlines()[0])["created_at_ms"]
    assert created == 1774998936453


def test_the_time_of_the_last_change_is_that(home: Any) -> None:
    """In claw the time in the header is stale after appends."""
    session = session_of(home, PLAIN)
    last = session.user("more")
    header = json.loads(data_of(session).splitlines()[0])
    assert header["updated_at_ms"] == round(last.at.timestamp() * 1000)


def test_a_call_is_never_parted_from_its_result(home: Any) -> None:
    """claw's compaction can cut between a tool call and its result, which the provider refuses."""
    session = session_of(home, PLAIN)
    session.compact("short", keep=2)
    messages = loads_in_claw(data_of(session))
    called: set[str] = set()
    for message in messages:
        for block in message["blocks"]:
            if block["type"] == "tool_use":
                called.add(block["id"])
            elif block["type"] == "tool_result":
                assert block["tool_use_id"] in called
    assert called == {"toolu_2"}


def test_nothing_is_cut_or_blacked_out_in_silence(home: Any, tmp_path: Path) -> None:
    """The newest claw cuts text at 16384 characters and blacks out keys: files do not come back as they were."""
    long = "ж" * 20_000 + " ANTHROPIC_API_KEY=sk-ant-not-a-key end"
    path = write_lines(tmp_path / PLAIN.name, meta(), text(long))
    session = session_of(home, path)
    assert session.messages()[0].blocks[0].text == long
    assert data_of(session) == path.read_bytes()


def test_equal_ids_of_two_workspaces_are_two_sessions(home: Any, tmp_path: Path) -> None:
    """Two processes of the same millisecond give their sessions the same id in claw."""
    one = write_lines(tmp_path / "1" / PLAIN.name, meta(workspace_root="/one"), text("one"))
    two = write_lines(tmp_path / "2" / PLAIN.name, meta(workspace_root="/two"), text("two"))
    ids = {bring(home, path).id for path in (one, two, one, two)}
    assert len(ids) == 2
    assert sorted(home.resume(id).messages()[0].blocks[0].text for id in ids) == ["one", "two"]


def test_a_file_with_another_id_than_its_name_is_read_under_its_id(home: Any) -> None:
    """claw's `/clear` once changed the id inside a file that kept its name."""
    done = bring(home, BROKEN / "id_differs_from_filename.jsonl")
    assert done.id == "claw-session-1775777421902-1"
    assert "the file is called 'id_differs_from_filename.jsonl'" in done.problems[0].what
    assert render(home.resume(done.id), "claw").files[0].path == "id_differs_from_filename.jsonl"


def test_only_sessions_are_opened(tmp_path: Path) -> None:
    """`claw --resume <path>` opens any file that can be read, through links, too."""
    (tmp_path / "id_rsa").write_text("-----BEGIN")
    (tmp_path / "passwd.jsonl").write_text("root:x:0:0")
    (tmp_path / "session-1.jsonl").symlink_to(PLAIN)
    assert list(claw.find(str(tmp_path))) == []
    assert list(claw.find(str(tmp_path / "id_rsa"))) == []


def test_a_call_that_was_never_answered_does_not_stop_the_session(home: Any, tmp_path: Path) -> None:
    """A crash between a call and its result leaves a session that providers refuse."""
    lines = PLAIN.read_bytes().splitlines(keepends=True)
    path = tmp_path / PLAIN.name
    path.write_bytes(b"".join(lines[:3]))
    session = session_of(home, path)
    assert data_of(session) == path.read_bytes()
    session.user("go on")
    messages = loads_in_claw(data_of(session))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[2]["blocks"][0]["is_error"] is True


def test_results_that_a_user_gave_are_a_tools(home: Any, tmp_path: Path) -> None:
    """claw does not mind which role a tool result has."""
    block = {"type": "tool_result", "tool_use_id": "t", "tool_name": "n", "output": "o", "is_error": False}
    path = write_lines(
        tmp_path / PLAIN.name, meta(), {"type": "message", "message": {"role": "user", "blocks": [block]}}
    )
    session = session_of(home, path)
    assert session.messages()[0].role == "tool"
    assert data_of(session) == path.read_bytes()


def test_answers_to_calls_before_the_import_find_them(home: Any, tmp_path: Path) -> None:
    """A call that claw left open can be answered here; nothing is made up then."""
    path = tmp_path / PLAIN.name
    path.write_bytes(b"".join(PLAIN.read_bytes().splitlines(keepends=True)[:3]))
    session = session_of(home, path)
    session.append(Message(role="tool", blocks=[ToolResult(call="toolu_1", content="done")]))
    session.assistant([ToolCall(id="x", name="bash", input={})], usage=Usage(1))
    messages = loads_in_claw(data_of(session))
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert messages[2]["blocks"][0]["output"] == "done"


# ── damage of any kind ────────────────────────────────────────────────────────────────────────────

WHOLE = [PLAIN, FORK, COMPACTED, NEWEST, *sorted(LEGACY.iterdir())]


def damaged(data: bytes, luck: random.Random) -> bytes:
    result = bytearray(data)
    for _ in range(luck.randint(1, 4)):
        at, size = luck.randrange(len(result) + 1), luck.randint(1, 40)
        match luck.randrange(6):
            case 0 if result:
                result[min(at, len(result) - 1)] ^= 1 << luck.randrange(8)
            case 1:
                del result[at : at + size]
            case 2:
                result[at:at] = b"\0" * size
            case 3:
                result[at:at] = luck.choice([b"[" * 300, b"\xff\xfe", b"\n", b"\\ud800", b"1e999", b"-", b'"', b"{}"])
            case 4:
                start = luck.randrange(len(data))
                result[at:at] = data[start : start + size * 10]
            case _:
                del result[at:]
    return bytes(result)


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.name)
def test_damage_gives_problems_and_nothing_else(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    luck = random.Random(path.name)
    target = tmp_path / path.name
    for _ in range(120):
        target.write_bytes(damaged(data, luck))
        reading = claw.read(Source("claw", str(target)))
        steps = list(reading.steps)
        assert all(isinstance(step, Record) for step in steps)
        assert len(steps) < 1000
        assert all(isinstance(problem, Problem) for problem in reading.problems)
        assert len(reading.problems) <= 201


def test_damaged_sessions_can_be_kept_and_written_again(home: Any, tmp_path: Path) -> None:
    luck = random.Random(7)
    for number in range(60):
        path = tmp_path / f"session-{1775128446000 + number}-0.jsonl"
        path.write_bytes(damaged(luck.choice(WHOLE).read_bytes(), luck))
        for done in home.import_sessions(tmp_path, agent="claw") if list(claw.find(str(path))) else ():
            for line in data_of(home.resume(done.id)).splitlines():
                json.loads(line)
        path.unlink()


@pytest.mark.parametrize(
    ("name", "value"),
    [("session_id", ["hi"]), ("created_at_ms", "today"), ("updated_at_ms", {"at": 1}), ("workspace_root", ["hi"]),
     ("fork", "hi"), ("model", 7), ("created_at_ms", 1 << 60), ("updated_at_ms", False)],
)  # fmt: skip
def test_a_value_of_another_type_in_the_header_is_told(home: Any, tmp_path: Path, name: str, value: Any) -> None:
    path = write_lines(tmp_path / "session-1775128446000-0.jsonl", meta(**{name: value}), text("hi"))
    done = bring(home, path)
    assert [problem.what for problem in done.problems] == [f"{name} is {value!r}"]
    head = json.loads(data_of(home.resume(done.id)).splitlines()[0])
    assert head[name] == value or name in ("session_id", "created_at_ms", "updated_at_ms")


@pytest.mark.parametrize(("name", "value"), [("tool_name", ["hi"]), ("is_error", "no"), ("input", {"a": 1})])
def test_a_value_of_another_type_in_a_block_is_told(home: Any, tmp_path: Path, name: str, value: Any) -> None:
    call = {"type": "tool_use", "id": "c", "name": "bash", "input": "{}"}
    result = {"type": "tool_result", "tool_use_id": "c", "tool_name": "bash", "output": "", "is_error": False}
    blocks = [{**block, name: value} if name in block else block for block in (call, result)]
    records = [{"type": "message", "message": {"role": "assistant", "blocks": blocks}}]
    done = bring(home, write_lines(tmp_path / "session-1775128446000-0.jsonl", meta(), *records))
    (problem,) = done.problems
    assert repr(value) in problem.what and "which claw refuses" in problem.what


def test_a_compaction_that_is_no_object_is_kept(home: Any, tmp_path: Path) -> None:
    path = tmp_path / "session-1775128446000.json"
    said = {"role": "user", "blocks": [{"type": "text", "text": "hi"}]}
    path.write_text(json.dumps({"version": 1, "messages": [said], "compaction": "what was said"}))
    assert b'"compaction":"what was said"' in data_of(session_of(home, path))


def test_counters_that_no_program_counts_to_are_told_and_not_counted(home: Any, tmp_path: Path) -> None:
    usage = dict.fromkeys(("input_tokens", "output_tokens"), (1 << 63) - 1)
    usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    answer = {"type": "message", "message": {**text("hi", "assistant")["message"], "usage": usage}}
    done = bring(home, write_lines(tmp_path / "session-1775128446000-0.jsonl", meta(), answer))
    assert [problem.what for problem in done.problems] == ["a usage that is none: not counted"]
    assert home.resume(done.id).usage().own.output_tokens == 0


def test_a_model_that_the_header_no_longer_names_is_gone(home: Any, tmp_path: Path) -> None:
    """An older claw drops the model when it saves."""
    path = tmp_path / "session-1775128446000-0.jsonl"
    bring(home, write_lines(path, meta(model="m"), text("hi")))
    session = session_of(home, write_lines(path, meta(), text("hi"), text("more")))
    assert data_of(session) == path.read_bytes()


def test_nesting_and_long_lines_are_bounded(tmp_path: Path) -> None:
    path = tmp_path / PLAIN.name
    path.write_bytes(PLAIN.read_bytes() + b"[" * 2_000_000 + b"\n" + b"\0" * 2_000_000 + b"\n" + b"9" * 1_000_000)
    reading, entries = read(path)
    assert len(entries) == 6
    assert len(reading.problems) == 3


if (SPECIFIED := public.SEEDS / "claw").is_dir():

    def test_the_fixtures_are_those_of_the_specification() -> None:
        files = [path for path in SPECIFIED.rglob("*") if path.is_file()]
        assert files
        for path in files:
            assert (SEEDS / path.relative_to(SPECIFIED)).read_bytes() == path.read_bytes()
