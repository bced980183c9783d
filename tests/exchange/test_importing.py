"""Which sessions of other agents are imported, in which order, and as which session here."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

import turnlog
from turnlog.exchange.exporting import handover
from turnlog.exchange.exporting.handover import hand_over
from turnlog.exchange.importing.run import OpenedSource, import_all, parents_first
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.exchange.source import source_of
from turnlog.formats import Forked, Reading, SessionHeader, Source
from turnlog.session.interior import interior


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


def forked(name: str, parent: str) -> OpenedSource:
    header = SessionHeader(id=name, fork=Forked(parent))
    return OpenedSource(Source("test", f"/{name}"), Reading(header=header, steps=iter(())))


def order(*opened: OpenedSource) -> str:
    return " ".join(reading.header.id for _, reading in parents_first(list(opened)))


def test_each_comes_once_and_after_its_parent():
    assert order(forked("c", "b"), forked("b", "a"), forked("d", "c"), forked("other", "gone")) == "b c d other"


def test_sessions_that_are_each_others_parents_come_all_the_same():
    assert sorted(order(forked("a", "b"), forked("b", "a"), forked("self", "self"), forked("c", "a")).split()) == [
        "a", "b", "c", "self",
    ]  # fmt: skip


def test_an_id_that_is_the_beginning_of_another_is_not_taken_for_it(person: Path):
    folder = person / ".claude/projects/-work"
    folder.mkdir(parents=True)
    for name in ("ses-12", "ses-1"):
        assert source_of("claude-code", "ses-1", "") is None
        line = {"type": "user", "uuid": "u", "sessionId": name, "message": {"role": "user", "content": "hello"}}
        (folder / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    assert source_of("claude-code", "ses-1", "") == Source("claude-code", str(folder / "ses-1.jsonl"))


def test_a_copy_that_its_agent_deleted_is_still_known_as_one(person: Path, tmp_path: Path):
    location = str(tmp_path / "home")
    with turnlog.open(location) as home, home.create(id="one", workspace=str(tmp_path)) as session:
        session.user("where is the needle?")
        session.assistant("in the haystack")
        path = hand_over(session, "codex").path
        assert path is not None
        kept = KeptFiles(location)
        kept.keep("codex", path)
        os.unlink(path)
        [item] = import_all(interior(home).creator, list(kept.gone("codex")))
        assert (item.copy_of, item.problems) == ("one", [])


def recorded(person: Path, name: str = "ses-1") -> Path:
    path = person / f".claude/projects/-work/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    line = {"type": "user", "uuid": "u", "sessionId": name, "message": {"role": "user", "content": "hello"}}
    path.write_text(json.dumps(line) + "\n")
    return path


def test_a_session_whose_first_line_is_damaged_is_not_imported_a_second_time(person: Path, tmp_path: Path):
    source = Source("claude-code", str(recorded(person)))
    with turnlog.open(str(tmp_path / "home")) as home:
        creator = interior(home).creator
        [imported] = import_all(creator, [source])
    log = next(path for path in (tmp_path / "home").rglob("*.jsonl") if imported.id in str(path))
    data = bytearray(log.read_bytes())
    data[10:14] = b"####"
    log.write_bytes(data)
    with turnlog.open(str(tmp_path / "home")) as home:
        [again] = import_all(interior(home).creator, [source])
        assert [problem.what for problem in again.problems] == [
            f"the first line of session {imported.id} cannot be read"
        ]
        assert [info.id for info in home.sessions()] == [imported.id]


def test_a_file_of_an_agent_that_cannot_be_read_is_reported_with_its_path(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def fail(path: str, mode: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    with turnlog.open(str(tmp_path / "home")) as home, home.create(id="one", workspace=str(tmp_path)) as session:
        session.user("where is the needle?")
        session.assistant("in the haystack")
        path = hand_over(session, "codex").path
        monkeypatch.setattr(handover, "open", fail, raising=False)
        with pytest.raises(turnlog.Unavailable, match=f"{path} cannot be read: Permission denied"):
            hand_over(session, "codex")
