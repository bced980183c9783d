"""An agent that worked before it was hooked, and what a session that a hook made is written back as."""

from __future__ import annotations

import json
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import turnlog
from turnlog.errors import Unavailable
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Source, format_of
from turnlog.hooks import hooked_agent
from turnlog.live.event import LiveEvent, TooLate
from turnlog.live.payload import Payload
from turnlog.live.transcript import import_new
from turnlog.log.entry import Start, Turn
from turnlog.session.interior import interior
from turnlog.thread.appender import appending
from turnlog.thread.home.createdhere import CreatedHere
from turnlog.thread.home.creator import Creator

RECORDED = Path(__file__).parents[1] / "formats/agents"
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi")


def test_turns_of_before_are_counted_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    person, place = tmp_path / "person", tmp_path / "shop"
    place.mkdir()
    (place / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    shutil.copytree(RECORDED / "codex/recorded/sessions", person / ".codex/sessions")
    path = sorted((person / ".codex/sessions").rglob("rollout-*.jsonl"))[0]
    native = json.loads(path.read_text().splitlines()[0])["payload"]["id"]
    started = [line for line in path.read_text().splitlines() if '"task_started"' in line]
    payload = {"session_id": native, "turn_id": "new-turn", "cwd": str(place), "prompt": "go"}
    # It has written down that the turn begins before it tells of it.
    news = json.loads(started[-1])
    news["payload"]["turn_id"] = "new-turn"
    with path.open("a") as file:
        file.write(json.dumps(news) + "\n")
    for means, event in (("begin", "UserPromptSubmit"), ("end", "Stop")):
        told = Payload(json.dumps({**payload, "transcript_path": str(path)}).encode(), {})
        live = LiveEvent.open(hooked_agent("codex"), told, os.getppid())
        live.apply(means)
        (place / "a.py").write_text(f"after {event}\n")
    import_new(live.store, live.session, live.native)
    with turnlog.open(tmp_path / "home").read(f"codex-{native}") as session:
        begins = [entry for entry in session.entries(kind="turn") if entry.state == "begin"]
        assert [entry.native for entry in begins] == [None] * len(started) + ["new-turn"]
        assert [item.path for item in session.diff(turn=len(started) + 1)] == ["a.py"]


@pytest.mark.parametrize("error", [Unavailable("somebody has it"), OSError(5, "Input/output error"), TooLate()])
def test_what_goes_wrong_with_the_past_costs_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
):
    person, place = tmp_path / "person", tmp_path / "shop"
    place.mkdir()
    (place / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("HOME", str(person))
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CODEX_HOME", raising=False)
    shutil.copytree(RECORDED / "codex/recorded/sessions", person / ".codex/sessions")
    path = sorted((person / ".codex/sessions").rglob("rollout-*.jsonl"))[0]
    native = json.loads(path.read_text().splitlines()[0])["payload"]["id"]
    told = {"session_id": native, "turn_id": "new", "cwd": str(place), "prompt": "go", "transcript_path": str(path)}
    live = LiveEvent.open(hooked_agent("codex"), Payload(json.dumps(told).encode(), {}), os.getppid())

    def fails(*given, **named):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr("turnlog.live.earlier.import_source", fails)
        with pytest.raises(TooLate) if isinstance(error, TooLate) else nullcontext():
            live.apply("begin")
    with turnlog.open(tmp_path / "home").read(f"codex-{native}") as session:
        assert [entry.native for entry in session.entries(kind="turn")] == ["new"]
        if isinstance(error, TooLate):
            assert not session.checkpoints()
        else:
            assert session.checkpoints()
            assert "was not imported" in live.problem


def exported(source: Source, *, by_hook: bool) -> list[tuple[str, bytes]]:
    form = format_of(source.agent)
    with turnlog.open("memory:") as home:
        creator = Creator(interior(home).store, CreatedHere(None), None)
        if by_hook:  # as a hook makes it: before anybody could read the agent's file
            header = form.read(source).header
            name, known = f"{source.agent}-{header.id}", {"agent": source.agent, "id": header.id, "path": ""}
            origin = {**known, "identity": header.id}
            start = Start(id=name, session=name, agent=source.agent, workspace=header.workspace, origin=origin)
            creator.begin([start]).close()
            with appending(interior(home).store, interior(home).store.open(name)) as appender:
                turn = {"turn": "w-turn:n", "native": "n"}
                appender.append([Turn(state="begin", **turn), Turn(state="aborted", turn="w-turn:n")])
        brought = import_source(creator, source, form.read(source))
        with home.read(brought.id) as session:
            return [(file.path, file.data) for file in render(session, source.agent).files]


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_that_a_hook_made_is_written_back_as_one_that_was_imported(name: str):
    sources = list(format_of(name).find(str(RECORDED / name / "recorded")))[:4]
    assert sources
    for source in sources:
        imported, hooked = exported(source, by_hook=False), exported(source, by_hook=True)
        if name == "pi":  # its writer makes new ids of entries, from where they stand here
            ids = re.compile(rb'"(id|parentId|firstKeptEntryId)":"[0-9a-f]{8}"')
            imported, hooked = ([(path, ids.sub(b"", data)) for path, data in one] for one in (imported, hooked))
        assert hooked == imported
