"""Which session an event is about: the one under the agent's id, one that went on under it, or a new one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import turnlog
from turnlog.errors import NotFound
from turnlog.hooks import hooked_agent
from turnlog.live.event import LiveEvent
from turnlog.live.payload import Payload
from turnlog.log.entry import Alias
from turnlog.session.interior import interior
from turnlog.store import Store
from turnlog.thread.home.alias import append_alias

AGENT = "gemini-cli"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    (tmp_path / "shop/.git").mkdir(parents=True)
    return tmp_path / "shop"


@pytest.fixture
def store(folder: Path) -> Store:
    """A home with a session `first` that went on under the id `later`."""
    begin(folder, "first")
    store = interior(turnlog.open(folder.parent / "home")).store
    append_alias(store, f"{AGENT}-first", Alias(agent=AGENT, native="later", head=0, records=0))
    return store


def begin(folder: Path, native: str) -> None:
    payload = {"session_id": native, "prompt_id": f"turn in {native}", "cwd": str(folder), "prompt": "go"}
    LiveEvent.open(hooked_agent(AGENT), Payload(json.dumps(payload).encode(), {}), os.getppid()).apply("begin")


def test_a_turn_under_another_id_is_a_turn_of_the_session_that_went_on(folder: Path, store: Store):
    begin(folder, "later")
    assert [row.id for row in store.listing()] == [f"{AGENT}-first"]


def test_a_turn_under_another_id_of_a_purged_session_begins_a_session_of_its_own(folder: Path, store: Store):
    store.purge(f"{AGENT}-first")  # and the table of aliases still names it
    begin(folder, "later")
    [row] = store.listing()
    assert row.start is not None
    assert isinstance(row.start.origin, dict)
    assert (row.id, row.start.id, row.start.origin["id"]) == (f"{AGENT}-later", f"{AGENT}-later", "later")


def test_a_turn_under_another_id_of_a_deleted_session_brings_nothing_back(folder: Path, store: Store):
    store.delete(f"{AGENT}-first")
    with pytest.raises(NotFound, match="was deleted here"):
        begin(folder, "later")
    assert list(store.listing()) == []
