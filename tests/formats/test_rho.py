"""rho: four versions read, every record written back to the byte, and new turns in the way rho accepts them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.checkers import rho as first_rho
from tests.formats.rho_rules import Loaded, complete, seed
from turnlog import Image, Message, Note, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.errors import AlreadyExists, Conflict, Invalid
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.run import import_all
from turnlog.formats import OutputFile, Places, Rendered, format_of
from turnlog.formats.seeds import rho
from turnlog.formats.seeds.rho.layout import workspace_key
from turnlog.log.block import UnknownBlock
from turnlog.log.entry import Compaction
from turnlog.session.interior import interior
from turnlog.testing import FormatContract

SEEDS = Path(__file__).parent / "seeds" / "rho"
EXPECTED = json.loads((SEEDS.parent / "expected.json").read_text())["rho"]
KEY = "-home-anna----------a95db841bd411fbc"
CWD = "/home/anna/проект 🚀"
ID = "6f1d2c3b-4a59-4e87-9b1a-0c2d3e4f5a6b"
FIRST = SEEDS / "v1_1af5a5fb/home/.rho/sessions" / KEY
PLAIN = FIRST / f"1782031200_{ID}.jsonl"
CUT = FIRST / "1782031300_6f1d2c3b-aaaa-4e87-9b1a-0c2d3e4f5a6b.jsonl"
LATE = SEEDS / "v1_late" / f"1783500000_{ID}.jsonl"
NEWEST_HOME = SEEDS / "v4_head/home"
UNIT = NEWEST_HOME / ".rho/sessions" / KEY / f"1786000000_{ID}"
TREE = UNIT / "session.jsonl"
JOURNAL = UNIT / "workspace-checkpoints/checkpoints.jsonl"
IDENTICAL = [PLAIN, CUT, LATE, TREE]
MESSAGES = {PLAIN: 5, CUT: 2, LATE: 3, TREE: 7}
"""How many messages each holds; a compaction is none."""


@pytest.fixture
def home() -> Any:
    with turnlog.open("memory:") as home:
        yield home


def bring(home: Any, path: Path) -> Any:
    (done,) = home.import_sessions(path, agent="rho")
    return done


def session_of(home: Any, path: Path) -> Any:
    return home.resume(bring(home, path).id)


def written(session: Any, version: int | None = None) -> Any:
    return render(session, "rho", format_version=version)


def data_of(session: Any, version: int | None = None) -> bytes:
    return written(session, version).files[0].data


def name_of(files: Any) -> str:
    """The name that rho takes the id from."""
    return files.files[0].path.split("/")[1].removesuffix(".jsonl")


def load(session: Any, version: int | None = None) -> Loaded:
    files = written(session, version)
    return Loaded(files.files[0].data, name_of(files))


def said(session: Any) -> list[str]:
    return [turnlog_text(message) for message in session.context()]


def turnlog_text(message: Message) -> str:
    parts = []
    for block in message.blocks:
        if isinstance(block, Text):
            parts.append(block.text)
        elif isinstance(block, ToolResult):
            parts.append(str(block.content))
    return " ".join(parts)


def one_turn(session: Any) -> None:
    session.user("още нещо")
    session.assistant([Text("гледам"), ToolCall(id="n1", name="bash", input={"b": 1, "a": [2.5, None]})], model="m-1")
    session.tool_result("n1", "нищо", is_error=True)
    session.assistant("край")


class TestContract(FormatContract):
    name = "rho"
    samples = [PLAIN, CUT, LATE, UNIT, FIRST, NEWEST_HOME]


# ── read ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.parent.name[:10] + path.name[:10])
def test_every_version_is_read_whole(home, path):
    done = bring(home, path)
    assert done.problems == []
    session = home.resume(done.id)
    found = [entry for entry in session.entries() if isinstance(entry, Message)]
    assert len(found) == MESSAGES[path]
    assert session.workspace == CWD
    assert int(session.stats().first_at.timestamp()) == 1782031200


def test_what_the_real_program_shows_is_shown_here(home):
    expected = EXPECTED[f"v1_1af5a5fb/.../{PLAIN.name}"]
    assert expected == {"load": "ok", "messages": 5} == {"load": "ok", "messages": len(seed(PLAIN.read_bytes()))}
    assert len(session_of(home, PLAIN).messages()) == 5


def test_calls_and_results_of_version_1(home):
    session = session_of(home, PLAIN)
    user, asks, failed, done, answer = session.messages()
    assert [m.role for m in (user, asks, failed, done, answer)] == ["user", "assistant", "tool", "tool", "assistant"]
    first = ToolCall(id="call_1", name="bash", input={"command": "cat план.txt", "timeout_ms": 5000})
    assert asks.blocks[:2] == [Text("Пускам две команди."), first]
    assert failed.blocks == [
        ToolResult(call="call_1", content="cat: план.txt: No such file or directory", is_error=True)
    ]  # fmt: skip
    assert done.blocks[0].is_error is False
    assert int(user.at.timestamp()) == 1782031201


def test_pictures_display_and_a_replaced_history(home):
    session = session_of(home, LATE)
    messages = session.messages()
    assert messages[0].display == "/goal план"
    assert messages[-1].blocks[0] == Text("продължи")
    assert isinstance(messages[-1].blocks[1], Image)
    assert home.get_blob(messages[-1].blocks[1].blob) == b"\x89PNG\r\n\x1a\n"
    assert session.context().system == "You are Rho."
    assert said(session) == ["Summary of earlier work: план.txt written", "продължи"]
    (compaction,) = [entry for entry in session.entries() if isinstance(entry, Compaction)]
    assert int(compaction.at.timestamp()) == 1783500100


def test_the_tree_its_branches_and_its_compaction(home):
    session = session_of(home, TREE)
    assert session.context().system == "You are Rho."
    assert said(session)[-2:] == ["друг клон", "да"]
    assert len(session.branches()) == 2
    (compaction,) = [entry for entry in session.entries() if isinstance(entry, Compaction)]
    assert (compaction.tokens_before, compaction.tokens_after) == (1500, 600)
    assert compaction.usage == Usage(cost_micros=1200)
    assert [turnlog_text(message) for message in compaction.replacement] == ["Summary"]
    session.rewind(to=compaction)
    assert said(session) == ["Summary"]
    assert session.context().system == "You are Rho."


def test_responses_that_know_more_and_ones_that_were_broken_off(home):
    session = session_of(home, TREE)
    found = [entry for entry in session.entries() if isinstance(entry, Message) and entry.role == "assistant"]
    enriched, aborted, plain = found
    assert enriched.model == "gpt-5.6"
    assert enriched.blocks[0] == Thinking(text="кратко", provider="openai")
    assert aborted.stop == "aborted"
    assert aborted.usage == Usage(input_tokens=10, output_tokens=2, cost_micros=35)
    assert aborted.blocks[0] == Text("partial")
    assert isinstance(aborted.blocks[1], UnknownBlock)  # half a call is nothing that a model may see
    assert plain.blocks == [Text("да")]
    assert session.usage().total.cost_micros == 1235


def test_facts_and_the_title_that_only_the_index_has(home):
    session = session_of(home, TREE)
    assert session.title == "план"
    assert session.get("model") == "gpt-5.6"
    assert session.get("rho.provider") == {"provider": "openai", "api": "responses", "model": "gpt-5.6"}
    assert session.get("rho.agent_id") == "default"
    assert session_of(home, PLAIN).title is None


def test_a_checkpoint_of_files_is_a_note_with_all_that_was_in_it(home):
    session = session_of(home, TREE)
    (note,) = [entry for entry in session.entries() if isinstance(entry, Note)]
    assert note.text == "rho kept 3 files as they were: a.txt, created.txt, huge.bin"
    assert note.data == json.loads(JOURNAL.read_text())
    assert int(note.at.timestamp()) == 1786000005


# ── written back ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.parent.name[:10] + path.name[:10])
def test_an_unchanged_session_comes_back_to_the_byte_from_entries_alone(home, path):
    session = session_of(home, path)
    files = written(session)
    assert files.files[0].data == path.read_bytes()
    assert files.lost == []
    kept = [entry.origin for entry in session.entries() if isinstance(entry.origin, dict)]
    assert not any(name in origin for origin in kept for name in ("line", "message", "patch"))
    assert files.id == (path.parent.name if path == TREE else path.stem).rpartition("_")[2]


def test_names_folders_and_modes_are_rhos(home):
    files = written(session_of(home, TREE)).files
    base = f"{KEY}/1786000000_{ID}"
    assert [file.path for file in files] == [
        f"{base}/session.jsonl", f"{base}/workspace-checkpoints/checkpoints.jsonl",
    ]  # fmt: skip
    assert files[1].data == JOURNAL.read_bytes()
    assert {file.mode for file in files} == {0o600}
    assert written(session_of(home, CUT)).files[0].path == f"{KEY}/{CUT.name}"


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.parent.name[:10] + path.name[:10])
def test_after_one_more_turn_the_old_records_are_the_same_and_rho_loads_it_all(home, path):
    session = session_of(home, path)
    before = session.context()
    one_turn(session)
    files = written(session)
    old = path.read_bytes()
    assert files.files[0].data.startswith(old)
    loaded = Loaded(files.files[0].data, name_of(files))
    assert complete(loaded.model) == loaded.model
    assert complete(loaded.display) == loaded.display
    spoken = [message for message in loaded.model if "System" not in message]
    assert len(spoken) == len(session.context()) == len(before) + 4
    assert spoken[-1] == {"Assistant": [{"Text": "край"}]}
    assert spoken[-2] == {"ToolResult": {"id": "n1", "ok": False, "content": "нищо"}}


def test_the_first_rho_still_loads_a_session_of_its_own(home):
    """What it does not know is left out rather than the session lost: who gave a response."""
    session = session_of(home, PLAIN)
    one_turn(session)
    files = written(session)
    assert len(seed(files.files[0].data)) == 9
    assert [(loss.what, loss.count) for loss in files.lost] == [("model of a message", 1)]


def test_a_new_node_follows_the_rules_of_the_tree(home):
    session = session_of(home, TREE)
    one_turn(session)
    record = json.loads(data_of(session).splitlines()[-1])
    assert record["parent_id"] == "00000000-0000-4000-8000-000000000004"
    delta = record["transition"]["delta"]
    assert (delta["base_revision"], delta["revision"], delta["session_id"]) == (2, 3, ID)
    assert [next(iter(message)) for message in delta["appended_history"]] == [
        "User", "EnrichedAssistant", "ToolResult", "Assistant",
    ]  # fmt: skip
    assert delta["provider"]["model"] == "m-1"
    assert [shown["message"] for shown in record["display_messages"]] == delta["appended_history"]


def test_a_rewind_and_a_compaction_here_are_a_branch_and_a_compaction_there(home):
    session = session_of(home, TREE)
    one_turn(session)
    session.rewind(turns=1)
    assert load(session).leaf == "00000000-0000-4000-8000-000000000004"
    session.user("трети клон")
    session.compact("накратко")
    loaded = load(session)
    assert [next(iter(message.values())) for message in loaded.model] == ["You are Rho.", [{"Text": "накратко"}]]
    assert loaded.nodes[loaded.leaf]["compaction"]["completed_compactions"] == 1
    session.assistant("добре")
    assert len(load(session).model) == 3


def test_a_session_of_the_first_rho_stays_one_and_what_it_cannot_say_is_told(home):
    session = session_of(home, PLAIN)
    one_turn(session)
    session.compact("накратко", keep=2)
    session.rewind(turns=1)
    first = session.user([Text("друго"), Image(media_type="image/png", data=b"png", name="a.png")])
    session.edit(first, [Text("трето")])
    session.assistant([Thinking(text="само мисъл")])
    files = written(session)
    assert first_rho.faults(files.files[0].path, files.files[0].data) == []
    assert [message for message in seed(files.files[0].data)][-1] == {"User": [{"Text": "трето"}]}
    told = {loss.what for loss in files.lost}
    assert told >= {"edit", "reasoning", "message on another branch"}
    assert files.opens == ""


@pytest.mark.parametrize("path", [LATE, TREE], ids=["late", "tree"])
def test_a_newer_session_is_written_for_the_first_rho_if_asked(home, path):
    session = session_of(home, path)
    files = written(session, 1)
    assert [output.path.count("/") for output in files.files] == [1]
    assert first_rho.faults(files.files[0].path, files.files[0].data) == []
    assert {loss.what for loss in files.lost} & {"image", "message on another branch"}
    assert written(session).files[0].data == path.read_bytes()


@pytest.mark.parametrize(
    ("path", "opens"),
    [(PLAIN, ""), (LATE, "rho of 2026-07-13 or newer"), (TREE, "rho of 2026-07-21 or newer")],
    ids=["first", "late", "tree"],
)
def test_the_report_says_which_rho_opens_it(home, path, opens):
    assert written(session_of(home, path)).opens.partition(",")[0] == opens


def test_a_session_of_ours_is_a_tree_if_asked(home):
    session = home.create(workspace="/w")
    session.user([Text("виж"), Image(media_type="image/png", data=b"png")])
    session.assistant([Thinking(text="мисля"), Text("да")], model="m")
    files = written(session, 4)
    kinds = [json.loads(line)["type"] for line in files.files[0].data.splitlines()]
    assert (kinds, files.opens.partition(",")[0]) == (["session", "node"], "rho of 2026-07-21 or newer")
    assert json.loads(files.files[0].data.splitlines()[0])["version"] == 4
    assert [next(iter(said)) for said in load(session, 4).model] == ["User", "EnrichedAssistant"]


def test_version_1_becomes_a_tree_when_the_conversation_branches_and_that_is_asked_for(home):
    session = session_of(home, PLAIN)
    session.rewind(turns=1)
    session.user("друго")
    data = data_of(session, 4)
    assert data.startswith(PLAIN.read_bytes())
    kinds = [json.loads(line)["type"] for line in data.splitlines()]
    assert kinds[6:] == ["upgrade", "node"]
    assert load(session, 4).model == [{"User": [{"Text": "друго"}]}]


def test_files_beside_a_session_come_back(home, tmp_path):
    unit = shutil.copytree(UNIT, tmp_path / KEY / UNIT.name)
    for name, data in (("web/стр/a.html", "<p>да".encode()), ("subagents/r1/result.json", b"{}"), ("web/b", b"\xff\0")):
        (unit / name).parent.mkdir(parents=True, exist_ok=True)
        (unit / name).write_bytes(data)
    (unit / "web/secret").symlink_to("/etc/hostname")
    (unit / f".{ID}.active.lock").touch()
    session = session_of(home, unit)
    files = {file.path.removeprefix(f"{KEY}/{UNIT.name}/"): file.data for file in written(session).files}
    assert files.pop("session.jsonl") == TREE.read_bytes()
    assert files.pop("workspace-checkpoints/checkpoints.jsonl") == JOURNAL.read_bytes()
    assert files == {"web/стр/a.html": "<p>да".encode(), "subagents/r1/result.json": b"{}", "web/b": b"\xff\0"}
    assert bring(home, unit).added == 0


def test_the_web_folder_of_a_flat_session_comes_back(home, tmp_path):
    path = Path(shutil.copy(PLAIN, tmp_path))
    web = tmp_path / (path.stem + ".web")
    web.mkdir()
    (web / "page").write_bytes(b"x")
    assert [(f.path, f.data) for f in written(session_of(home, path)).files[1:]] == [
        (f"{KEY}/{path.stem}.web/page", b"x")
    ]


# ── brought up to date ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.parent.name[:10] + path.name[:10])
def test_reading_it_twice_adds_nothing(home, path):
    assert bring(home, path).added > 0
    assert bring(home, path).added == 0


@pytest.mark.parametrize("path", IDENTICAL, ids=lambda path: path.parent.name[:10] + path.name[:10])
def test_a_session_that_grew_brings_only_what_is_new(home, tmp_path, path):
    lines = path.read_bytes().splitlines(keepends=True)
    folder = tmp_path / UNIT.name
    folder.mkdir()
    copy = folder / "session.jsonl" if path == TREE else tmp_path / path.name
    for count in range(1, len(lines) + 1):
        copy.write_bytes(b"".join(lines[:count]))
        bring(home, copy)
    session = home.resume(bring(home, copy).id)
    assert len([entry for entry in session.entries() if isinstance(entry, Message)]) == MESSAGES[path]
    assert data_of(session) == path.read_bytes()


def test_one_session_flat_or_in_a_folder_is_the_same(home, tmp_path):
    first = bring(home, PLAIN)
    folder = tmp_path / PLAIN.stem
    folder.mkdir()
    shutil.copy(PLAIN, folder / "session.jsonl")
    again = bring(home, folder)
    assert (again.id, again.added) == (first.id, 0)


def test_what_went_on_here_and_there_is_both_there(home, tmp_path):
    path = Path(shutil.copy(PLAIN, tmp_path))
    session = session_of(home, path)
    one_turn(session)
    with path.open("ab") as file:
        file.write(b'{"type":"message","timestamp":"1782031300","message":{"User":[{"Text":"there"}]}}\n')
    session = session_of(home, path)
    assert said(session)[-1] == "край"
    loaded = load(session, 4)
    texts = [str(message) for node in loaded.nodes.values() for message in node["history"]]
    assert any("there" in text for text in texts)
    assert "край" in str(loaded.model)


# ── sessions of others ────────────────────────────────────────────────────────────────────────────


def test_a_session_that_never_was_in_rho_is_version_1_and_loads_everywhere(home):
    session = home.create(workspace="/home/anna/нов", title="заглавие")
    session.user("здравей")
    one_turn(session)
    files = written(session)
    head, *rest = [json.loads(line) for line in files.files[0].data.splitlines()]
    assert head["version"] == 1
    assert head["cwd"] == "/home/anna/нов"
    assert head["timestamp"].isdigit()
    assert {record["type"] for record in rest} == {"message"}
    assert files.files[0].path == f"{workspace_key('/home/anna/нов')}/{head['timestamp']}_{files.id}.jsonl"
    assert len(seed(files.files[0].data)) == len(load(session).model) == 5
    assert {loss.what for loss in files.lost} == {"title", "model of a message", "time of a message"}


def test_reasoning_pictures_display_and_broken_off_responses_survive_the_way_there_and_back(home, tmp_path):
    session = home.create(workspace="/w")
    session.user([Text("виж"), Image(media_type="image/png", data=b"png")], display="/виж")
    session.assistant([Thinking(text="мисля", provider="anthropic", data={"signature": "s=="}), Text("да")], model="m")
    session.user("стоп")
    session.assistant("полов", stop="aborted", usage=Usage(input_tokens=3, output_tokens=1))
    session.rewind(turns=1)  # a tree knows more
    session.user("пак")
    session.assistant("полов", stop="aborted", usage=Usage(input_tokens=3, output_tokens=1))
    load(session, 4)
    path = tmp_path / (name_of(written(session, 4)) + ".jsonl")
    path.write_bytes(data_of(session, 4))
    with turnlog.open("memory:") as other:
        again = session_of(other, path)
        user, thinks, _, aborted = again.messages()
        assert other.get_blob(user.blocks[1].blob) == b"png"
        assert user.display == "/виж"
        assert thinks.blocks[0] == Thinking(text="мисля", provider="anthropic", data={"signature": "s=="})
        assert thinks.model == "m"
        assert (aborted.stop, aborted.usage) == ("aborted", Usage(input_tokens=3, output_tokens=1))
        assert data_of(again) == path.read_bytes()


def test_every_loss_is_told_once_with_its_count(home):
    session = home.create()
    session.user([turnlog.File(name="a.pdf", media_type="application/pdf", data=b"%PDF"), Image(url="https://x/y.png")])
    session.assistant([ToolCall(id="s", name="web_search", by="provider"), Text("да")], usage=Usage(output_tokens=1))
    session.assistant([ToolCall(id="t", name="shot")])
    session.tool_result("t", [Text("тук"), Image(media_type="image/png", data=b"png")])
    session.note("за хора")
    session.assistant([ToolCall(id="u", name="never")])
    files = written(session)
    told = {(loss.what, loss.count) for loss in files.lost}
    assert told == {
        ("file", 1), ("image", 1), ("provider's tool call", 1), ("media in a tool result", 1), ("note", 1),
        ("missing tool result", 1), ("usage of a message", 1), ("workspace", 1),
        ("time of a message", 5),
    }  # fmt: skip
    model = load(session).model
    assert complete(model) == model
    assert model[-1]["ToolResult"] == {"id": "u", "ok": False, "content": "[no result: the tool call was interrupted]"}
    assert model[0] == {"User": [{"Text": "[file: a.pdf, 4 bytes]"}, {"Text": "[image: https://x/y.png]"}]}


def test_a_fork_of_a_session_of_rho_is_a_session_of_its_own(home):
    fork = session_of(home, TREE).fork()
    one_turn(fork)
    files = written(fork)
    assert files.id != ID
    model = load(fork).model
    assert complete(model) == model
    assert len(model) == 9


def test_edits_reach_the_model_and_leave_the_transcript(home):
    session = home.create(workspace="/w")
    first = session.user("тайна")
    session.assistant("добре")
    session.edit(first, [Text("***")])
    session.user("още")
    assert load(session).model[0] == {"User": [{"Text": "***"}]}
    loaded = load(session, 4)
    assert loaded.model[0] == {"User": [{"Text": "***"}]}
    assert loaded.display[0] == {"User": [{"Text": "тайна"}]}


def test_a_compaction_that_was_taken_back_is_taken_back_there(home):
    session = home.create(workspace="/w")
    session.user("едно")
    session.compact("накратко")
    session.uncompact()
    session.user("две")
    assert load(session).model == [{"User": [{"Text": "едно"}]}, {"User": [{"Text": "две"}]}]


@pytest.mark.parametrize("agent", ["sofos", "claw", "a3s"])
def test_what_both_can_say_survives_the_way_through_rho(home, tmp_path, agent):
    """From another agent to rho and back here: words, calls, results and their failures, pictures."""
    files = [path for path in sorted((SEEDS.parent / agent).rglob("*")) if path.is_file()]
    sources = [source for path in files for source in format_of(agent).find(str(path))]
    others = [done.id for done in import_all(interior(home).creator, list(dict.fromkeys(sources)))]
    assert others
    for number, name in enumerate(others):
        session = home.resume(name)
        files = written(session, 4)
        loaded = Loaded(files.files[0].data, name_of(files))
        assert complete(loaded.model) == loaded.model
        rho.place(files, str(tmp_path / str(number)))
        with turnlog.open("memory:") as there:
            back = session_of(there, tmp_path / str(number))
            assert spoken(back) == spoken(session)


def spoken(session: Any) -> list[Any]:
    """What a model sees, as far as rho can say it: without pictures in results, and what lies elsewhere."""
    found: list[Any] = []
    for message in session.context():
        for block in message.blocks:
            if isinstance(block, Text) and not block.text.startswith(("[image: ", "[file: ")):
                found.append((message.role, block.text))
            elif isinstance(block, Image) and block.url is None:
                found.append(("image", block.media_type, block.blob))
            elif isinstance(block, ToolCall) and block.by is None:
                found.append(("call", block.id, block.name, block.input))
            elif isinstance(block, ToolResult) and message.role == "tool":
                parts = block.content.split("\n") if isinstance(block.content, str) else [
                    line for part in block.content if isinstance(part, Text) for line in part.text.split("\n")
                ]  # fmt: skip
                said = [line for line in parts if not line.startswith(("[image: ", "[file: "))]
                found.append(("result", block.call, said, block.is_error))
    return found


# ── found and put in place ────────────────────────────────────────────────────────────────────────


def test_homes_are_where_rho_looks():
    assert rho.homes(Places(home="/home/anna")) == ["/home/anna/.rho/sessions"]
    assert rho.homes(Places(home="/home/anna", workspace=CWD)) == [f"/home/anna/.rho/sessions/{KEY}"]
    assert rho.homes(Places(home="/h", environ={"RHO_HOME": "/r"})) == ["/r/sessions"]


def test_the_workspace_key_is_rhos():
    told = dict(line.split(" = ") for line in (SEEDS / "v1_1af5a5fb/WORKSPACE_KEY.txt").read_text().splitlines()[:2])
    assert workspace_key(told["cwd"]) == told["key"] == KEY


@pytest.mark.parametrize(
    ("place", "count"),
    [(PLAIN, 1), (TREE, 1), (UNIT, 1), (UNIT.parent, 1), (FIRST, 2), (NEWEST_HOME, 1), (NEWEST_HOME / ".rho", 1),
     (NEWEST_HOME / ".rho/sessions", 1), (SEEDS / "broken", 4), (JOURNAL, 0), (SEEDS / "v1_late", 1)],
)  # fmt: skip
def test_sessions_are_found_wherever_one_points(place, count):
    found = list(rho.find(str(place)))
    assert len(found) == count
    assert all(os.path.isfile(source.path) for source in found)


@pytest.mark.parametrize("agent", ["sofos", "claw", "owlen", "a3s"])
def test_nobody_elses_files_are_taken(agent):
    files = [path for path in (SEEDS.parent / agent).rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if list(rho.find(str(path)))] == []


def test_links_are_not_followed_out(tmp_path):
    (tmp_path / KEY).symlink_to(FIRST)
    (tmp_path / "1_x.jsonl").symlink_to(PLAIN)
    assert list(rho.find(str(tmp_path))) == []


def test_a_session_is_put_where_rho_finds_it_and_nobody_else_sees_it(home, tmp_path):
    files = written(session_of(home, TREE))
    folder = tmp_path / "home/.rho/sessions"
    old = os.umask(0)
    try:
        path = Path(rho.place(files, str(folder)))
    finally:
        os.umask(old)
    assert path == folder / KEY / UNIT.name / "session.jsonl"
    assert path.read_bytes() == TREE.read_bytes()
    modes = {p.relative_to(folder): stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}
    assert {mode for p, mode in modes.items() if (folder / p).is_file()} == {0o600}
    assert {mode for p, mode in modes.items() if (folder / p).is_dir()} == {0o700}
    assert [source.path for source in rho.find(str(folder))] == [str(path)]


def test_nothing_is_overwritten_unless_asked(home, tmp_path):
    files = written(session_of(home, TREE))
    path = Path(rho.place(files, str(tmp_path)))
    path.write_bytes(b"mine")
    with pytest.raises(AlreadyExists, match=r"session\.jsonl is already there"):
        rho.place(files, str(tmp_path))
    assert path.read_bytes() == b"mine"
    rho.place(files, str(tmp_path), force=True)
    assert path.read_bytes() == TREE.read_bytes()


def test_a_session_that_rho_has_open_is_left_alone(home, tmp_path):
    files = written(session_of(home, TREE))
    rho.place(files, str(tmp_path))
    lock = tmp_path / KEY / f".{ID}.active.lock"
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        with pytest.raises(Conflict, match="rho has this session open"):
            rho.place(files, str(tmp_path), force=True)
        fcntl.flock(held, fcntl.LOCK_UN)
        rho.place(files, str(tmp_path), force=True)


def test_the_index_is_only_ever_read(home, tmp_path):
    folder = shutil.copytree(NEWEST_HOME, tmp_path / "home", copy_function=shutil.copyfile)
    index = folder / ".rho/sessions/index.sqlite3"
    before = index.read_bytes()
    session = session_of(home, folder)
    rho.place(written(session), str(folder / ".rho/sessions"), force=True)
    assert index.read_bytes() == before
    assert sorted(p.name for p in index.parent.iterdir()) == [KEY, "index.sqlite3"]


def test_an_index_that_somebody_writes_to_or_that_is_broken_costs_the_title_only(home, tmp_path):
    folder = shutil.copytree(NEWEST_HOME, tmp_path / "home", copy_function=shutil.copyfile)
    index = folder / ".rho/sessions/index.sqlite3"
    with sqlite3.connect(index) as busy:
        busy.execute("begin exclusive")
        done = bring(home, folder)
        assert [problem.where for problem in done.problems] == ["index.sqlite3"]
        assert home.resume(done.id).title is None
        busy.rollback()
        assert session_of(home, folder).title == "план"
        busy.execute("begin exclusive")
        assert session_of(home, folder).title == "план"
        busy.rollback()
    busy.close()
    index.write_bytes(b"not a database" * 100)
    with turnlog.open("memory:") as other:
        done = bring(other, folder)
        assert [problem.where for problem in done.problems] == ["index.sqlite3"]
        assert other.resume(done.id).title is None
        assert len(other.resume(done.id).messages()) == 5


def test_a_title_given_here_is_reported_as_lost(home):
    session = session_of(home, TREE)
    session.set("title", "друго")
    assert [loss.what for loss in written(session).lost] == ["title"]


@pytest.mark.parametrize("part", ["../../esc", "..", "", "a/../../b", "x\0y", "a\\b", "x" * 300])
def test_no_name_leads_out_of_the_folder(tmp_path, part):
    folder = tmp_path / "inner"
    with pytest.raises(Invalid):
        rho.place(Rendered(id="x", files=[OutputFile(f"{KEY}/{part}", b"x")]), str(folder))
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
