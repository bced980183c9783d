"""Which session a word means, and in which state each one is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog.catalog.ask.completion import names_beginning
from turnlog.catalog.ask.query import STATES
from turnlog.catalog.index.cards import CardMaker
from turnlog.errors import Ambiguous, Invalid, NotFound
from turnlog.machine.process import this_process


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_names(machine: Machine):
    machine.claude("aaaa1111")
    machine.claude("aaaa2222")
    machine.codex("bbbb")
    machine.ours("20260301-090000-k3f9q2m7")
    machine.ours("20260301-090001-k4aaaaaa")
    with machine.catalog() as catalog:
        for name, wanted in {
            "aaaa1111": "claude-code:aaaa1111",
            "claude-code:aaaa2222": "claude-code:aaaa2222",
            "claude-code:aaaa2": "claude-code:aaaa2222",
            "aaaa1": "claude-code:aaaa1111",
            "codex:": "codex:bbbb",
            "k3f9q2m7": "k3f9q2m7",
            "k3": "k3f9q2m7",
            "20260301-090001": "k4aaaaaa",
            "latest": "k4aaaaaa",
            "@": "k4aaaaaa",
            "@-": "k3f9q2m7",
        }.items():
            assert catalog.find(name).name == wanted, name
        with pytest.raises(Ambiguous, match=r"'aaaa' fits 2 sessions: claude-code:aaaa\d{4}, claude-code:aaaa\d{4}"):
            catalog.find("aaaa")
        with pytest.raises(Ambiguous, match="'2026' fits 2 sessions"):
            catalog.find("2026")
        with pytest.raises(NotFound, match="no session 'zzzz'") as told:
            catalog.find("zzzz")
        assert told.value.hint == "`turnlog ls --all` shows the 5 there are"
        for wrong in ("", "a\0b"):
            with pytest.raises(Invalid):
                catalog.find(wrong)


def test_a_file_that_was_copied_is_named_by_its_path(machine: Machine):
    path = machine.claude("twin")
    copy = path.parents[1] / "-backup" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    with machine.catalog() as catalog, pytest.raises(Ambiguous) as failed:
        catalog.find("twin")
    assert failed.value.hint is not None and failed.value.hint.endswith((str(path), str(copy)))


def test_a_full_name_wins_over_a_beginning(machine: Machine):
    machine.ours("abc")
    machine.ours("abcdef")
    machine.claude("abc")
    with machine.catalog() as catalog:
        assert catalog.find("abc").is_ours
        assert catalog.find("claude-code:abc").agent == "claude-code"


def test_here_is_where_one_stands(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    machine.ours("cccc")
    monkeypatch.chdir(machine.user)
    with machine.catalog() as catalog:
        assert catalog.find("latest").id == "cccc"
        with pytest.raises(NotFound, match=f"there is no session for {machine.user}"):
            catalog.find("@")
    monkeypatch.chdir(machine.work)
    with machine.catalog() as catalog, pytest.raises(NotFound, match="there is only one session for"):
        catalog.find("@-")


def test_subagents_and_empty_sessions_are_not_the_newest(machine: Machine):
    machine.ours("cccc")
    with turnlog.open(str(machine.home)) as home:
        with home.resume("cccc") as session, session.spawn(id="helper") as helper:
            helper.append(turnlog.Message(role="user", blocks=[turnlog.Text(text="go")]))
        home.create(id="empty", workspace=machine.work).close()
    with machine.catalog() as catalog:
        assert catalog.find("latest").id == "cccc"
        assert catalog.find("@").id == "cccc"


def test_a_deleted_session_is_found_when_asked_for(machine: Machine):
    machine.ours("cccc")
    with turnlog.open(str(machine.home)) as home:
        home.delete("cccc")
    with machine.catalog() as catalog:
        with pytest.raises(NotFound):
            catalog.find("cccc")
        assert catalog.find("ccc", deleted=True).deleted


def test_an_imported_session_is_found_as_ours(machine: Machine):
    machine.claude("aaaa1111")
    with turnlog.open(str(machine.home)) as home:
        home.import_sessions()
    with machine.catalog() as catalog:
        assert catalog.find("claude-code-aaaa").is_ours
        assert not catalog.find("aaaa1").is_ours, "what is hidden is still there for who names it"


# ── states ────────────────────────────────────────────────────────────────────────────────────────

_TALK = """
import sys, turnlog
home = turnlog.open(sys.argv[1], checkpoints=False)
session = home.create(id="talk")
with session.turn():
    session.append(turnlog.Message(role="user", blocks=[turnlog.Text(text="hello")]))
    print("open", flush=True)
    sys.stdin.readline()
print("done", flush=True)
sys.stdin.readline()
"""


def _state(machine: Machine) -> str:
    with machine.catalog() as catalog:
        return catalog.find("talk").state


def test_a_session_of_ours_runs_waits_and_is_left(machine: Machine):
    command = [sys.executable, "-c", _TALK, str(machine.home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.readline()
    assert _state(machine) == "running"
    process.stdin.write("\n")
    process.stdin.flush()
    process.stdout.readline()
    states = {_state(machine)}
    process.communicate("\n")
    assert states | {_state(machine)} <= {"running", "waiting", "idle"}
    assert _state(machine) == "idle"


def test_a_session_whose_agent_was_killed_in_a_turn_has_crashed(machine: Machine):
    command = [sys.executable, "-c", _TALK, str(machine.home)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert _state(machine) == "crashed"


@pytest.mark.parametrize(
    ("ending", "lately", "long_ago", "gone"),
    [
        ("answer", "waiting", "idle", "idle"),
        ("", "waiting", "idle", "idle"),
        ("asked", "running", "stopped", "stopped"),
        ("call", "running", "stopped", "crashed"),
        ("result", "running", "stopped", "crashed"),
        ("turn", "running", "stopped", "crashed"),
    ],
)
def test_a_state_is_what_is_known(ending: str, lately: str, long_ago: str, gone: str):
    now = time.time_ns() // 1_000_000
    look = CardMaker(now).state
    me = this_process()
    mine, dead, far = (
        "\t".join(str(who[key] or "") for key in ("pid", "started", "host", "boot", "namespace"))
        for who in (me, me | {"started": "1"}, me | {"host": "far-away"})
    )
    # Another agent's: nobody knows more than when it was written.
    assert look(0, ending, "", now - 60_000) == lately
    assert look(0, ending, "", now - 600_000) == long_ago
    assert look(0, ending, "", None) == long_ago
    # Ours: the process is there, is gone, or is on another machine; and of what was imported there is none.
    assert look(1, ending, mine, now - 600_000) == lately
    assert look(1, ending, dead, now - 60_000) == gone
    assert look(1, ending, f"{dead}\n{mine}", now) == lately
    assert look(1, ending, far, now - 60_000) == lately
    assert look(1, ending, f"{dead}\n{far}", now - 600_000) == long_ago
    assert look(1, ending, "", now) == long_ago
    assert {lately, long_ago, gone} <= set(STATES)


CALL = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
ENDS: dict[str, tuple[list[tuple[str, Any, bool]], str]] = {
    "a call": ([("assistant", CALL, False)], "stopped"),
    "a prompt": ([("user", "go on", False)], "stopped"),
    "a prompt and what the agent adds": ([("user", "go on", False), ("user", "a caveat", True)], "stopped"),
    "an interruption": ([("user", "[Request interrupted by user]", False)], "idle"),
    "an interrupted tool": ([("assistant", CALL, False), ("user", "[Request interrupted by user for", False)], "idle"),
    "a farewell": ([("user", "<command-name>/exit</command-name><command-message>exit", False)], "idle"),
    "what a command said": ([("user", "<local-command-stdout>Bye!</local-command-stdout>", False)], "idle"),
}


@pytest.mark.parametrize("end", ENDS)
def test_another_agents_session_ends_inside_a_turn_or_not(machine: Machine, end: str):
    path = machine.claude("aaaa")
    rows, state = ENDS[end]
    last = json.loads(path.read_text().splitlines()[-1])
    with path.open("a") as file:
        for number, (role, content, is_meta) in enumerate(rows):
            message = {"role": role, "content": content, "id": f"m{number}"}
            more = {"uuid": f"end {number}", "parentUuid": last["uuid"], "isMeta": is_meta}
            last = last | {"type": role, "message": message} | more
            file.write(json.dumps(last) + "\n")
    with machine.catalog() as catalog:
        assert catalog.find("aaaa").state == state
        assert [line.state for line in catalog.lines()] == [state]
        assert [card.state for card in catalog.cards(f"is:{state}")] == [state]
        assert catalog.cards(f"-is:{state}") == []


def test_a_turn_that_was_ended_is_over_whatever_was_said_in_it(machine: Machine):
    machine.ours("talk")
    with turnlog.open(str(machine.home)) as home, home.resume("talk") as session:
        with pytest.raises(KeyError), session.turn():
            session.user("what is it?")
            raise KeyError("a bug in the agent")
        with session.turn() as turn:
            session.user("and now?")
            session.user("exited with 0")
        del turn
    with machine.catalog() as catalog:
        assert catalog.find("talk").state == "waiting"  # this process is still there
        assert catalog.find("talk").turns == 3


def test_an_unknown_state_is_an_error_that_names_the_five(machine: Machine):
    with machine.catalog() as catalog, pytest.raises(Invalid) as raised:
        catalog.cards("is:ended")
    assert "is:ended" in raised.value.message
    assert "running, waiting, idle, stopped, crashed" in (raised.value.hint or "")


def test_times_are_as_they_were(machine: Machine):
    machine.claude("aaaa", 2)
    with machine.catalog() as catalog:
        [card] = catalog.cards()
    began = datetime(2026, 3, 1, 9, 1, tzinfo=UTC)
    assert (card.created_at, card.updated_at) == (began, began + timedelta(minutes=1, seconds=4))


def test_the_latest_in_the_trash_is_deleted(machine: Machine):
    machine.ours("dead")
    machine.ours("alive")
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        home.delete("dead")
    with machine.catalog() as catalog:
        for name in ("latest", "@"):
            assert catalog.find(name).id == "alive"
            assert catalog.find(name, deleted=True).id == "dead"


def test_bytes_that_are_no_text_name_nothing(machine: Machine):
    machine.ours("one")
    with machine.catalog() as catalog:
        catalog.sync()
        with pytest.raises(Invalid, match="name of a session"):
            catalog.find("\udce4bc")
    assert names_beginning(str(machine.home), "\udce4bc") == []
