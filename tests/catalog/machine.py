"""A machine with sessions of three kinds on it: ours, Claude Code's and Codex's; and all that a catalog can answer."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.clock import tick
from turnlog.catalog import Catalog
from turnlog.catalog.index.columns import path_of
from turnlog.catalog.index.notes import DIRTY, MAKING, MARKS, UNSCRUBBED
from turnlog.catalog.index.sqlite.bundle import Bundle
from turnlog.catalog.index.sqlite.database import Database
from turnlog.catalog.index.sqlite.engine import SqliteEngine
from turnlog.catalog.index.sqlite.outlines import outline_in
from turnlog.session.interior import interior
from turnlog.store import derived

BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
_OUTLINED = "SELECT DISTINCT session FROM outlines"
_NOTES = (DIRTY, MAKING, UNSCRUBBED, MARKS)
WORDS = ("needle", "haystack", "return", "ärger", "bash", "list")


class Machine:
    """Folders, and what lies in them."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.user = folder / "user"
        self.home = folder / "home"
        self.work = folder / "work"
        for place in (self.user, self.work):
            place.mkdir()
        for name in list(os.environ):
            if name.startswith(("XDG_", "CLAUDE", "CODEX", "TURNLOG")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(self.user))
        monkeypatch.chdir(self.work)
        self._number = 0

    def catalog(self, **more: Any) -> Catalog:
        return Catalog(str(self.home), **more)

    @property
    def index(self) -> Path:
        """The file of the catalog."""
        return Path(self.catalog().path)

    def fresh(self, **more: Any) -> Catalog:
        """A catalog of the same sessions that was never used before."""
        catalog = self.catalog(**more)
        place = self.folder / f"fresh-{self._next()}"
        place.mkdir()
        catalog._local.database = Database(str(place / "catalog.sqlite"))
        return catalog

    def _next(self) -> int:
        self._number += 1
        return self._number

    def settle(self) -> None:
        """Files and folders become old enough to be believed."""
        old = time.time_ns() - 10_000_000_000
        for folder, _, names in os.walk(self.folder):
            for path in [folder, *(os.path.join(folder, name) for name in names)]:
                if ".cache" not in path and not os.path.islink(path):
                    os.utime(path, ns=(old, old))

    # ── sessions of other agents ──────────────────────────────────────────────────────────────────

    def claude(self, name: str, turns: int = 1, *, project: str = "-work") -> Path:
        path = self.user / ".claude" / "projects" / project / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            for _ in range(turns):
                file.writelines(json.dumps(row) + "\n" for row in self._claude_turn(name))
        return path

    def _claude_turn(self, name: str) -> list[dict[str, Any]]:
        number = self._next()
        at = BEGAN + timedelta(minutes=number)
        rows: list[dict[str, Any]] = []

        def row(kind: str, message: dict[str, Any]) -> None:
            uuid = f"{name}-{number}-{len(rows)}"
            parent = rows[-1]["uuid"] if rows else None
            stamp = (at + timedelta(seconds=len(rows))).isoformat().replace("+00:00", "Z")
            rows.append({
                "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": str(self.work),
                "sessionId": name, "version": "2.1.0", "type": kind, "message": message, "uuid": uuid,
                "timestamp": stamp,
            })  # fmt: skip

        usage = {"input_tokens": number, "cache_read_input_tokens": 100, "output_tokens": 7}
        answer = {"id": f"msg_{name}_{number}", "role": "assistant", "model": "claude-sonnet-4-5", "usage": usage}
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": f"ls dir{number}"}}
        row("user", {"role": "user", "content": f"please find needle{number} in the haystack"})
        row("assistant", {**answer, "content": [{"type": "text", "text": "I look with bash"}], "stop_reason": None})
        row("assistant", {**answer, "content": [call], "stop_reason": "tool_use"})
        told = f"return list of Ärger {number}\n" * 5
        row("user", {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": told}]})  # fmt: skip
        done = {**answer, "id": f"msg_{name}_{number}_end"}
        row("assistant", {**done, "content": [{"type": "text", "text": "the needle is there"}],
                          "stop_reason": "end_turn"})  # fmt: skip
        return rows

    def codex(self, name: str, turns: int = 1) -> Path:
        path = self.user / ".codex" / "sessions" / "2026" / "03" / "01" / f"rollout-2026-03-01T09-00-00-{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        with path.open("a") as file:

            def row(kind: str, payload: dict[str, Any], at: datetime) -> None:
                stamp = at.isoformat().replace("+00:00", "Z")
                file.write(json.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + "\n")

            if is_new:
                row("session_meta", {"id": name, "timestamp": BEGAN.isoformat(), "cwd": str(self.work)}, BEGAN)
                row("turn_context", {"model": "gpt-5-codex"}, BEGAN)
            for _ in range(turns):
                number = self._next()
                at = BEGAN + timedelta(minutes=number)
                said = [{"type": "input_text", "text": f"codex, find needle{number}"}]
                row("response_item", {"type": "message", "role": "user", "content": said}, at)
                given = json.dumps({"command": ["ls", f"dir{number}"], "path": f"src/file{number}.py"})
                call = {"type": "function_call", "name": "shell", "arguments": given, "call_id": f"call_{number}"}
                row("response_item", call, at + timedelta(seconds=1))
                spent = {"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 10}
                info = {"last_token_usage": spent, "total_token_usage": spent}
                row("event_msg", {"type": "token_count", "info": info}, at + timedelta(seconds=2))
                told = {"type": "function_call_output", "call_id": f"call_{number}", "output": f"haystack {number}"}
                row("response_item", told, at + timedelta(seconds=3))
                answer = [{"type": "output_text", "text": "there it is, in the list"}]
                row("response_item", {"type": "message", "role": "assistant", "content": answer},
                    at + timedelta(seconds=4))  # fmt: skip
        return path

    # ── sessions of ours ──────────────────────────────────────────────────────────────────────────

    def ours(self, name: str, turns: int = 1) -> None:
        with turnlog.open(str(self.home), durability="flush", checkpoints=False, clock=tick) as home:
            session = (
                home.resume(name)
                if name in set(derived.ids(interior(home).store))
                else home.create(id=name, workspace=self.work)
            )
            with session:
                for _ in range(turns):
                    number = self._next()
                    session.append(turnlog.Message(role="user", blocks=[turnlog.Text(text=f"ours: needle{number}")]))
                    session.append(
                        turnlog.Message(
                            role="assistant",
                            blocks=[turnlog.Text(text="in the haystack")],
                            model="claude-sonnet-4-5",
                            request=f"req_{name}_{number}",
                            usage=turnlog.Usage(input_tokens=number, output_tokens=3),
                        )
                    )


# ── what a catalog answers ────────────────────────────────────────────────────────────────────────


def answers(catalog: Catalog) -> dict[str, Any]:
    """Everything it knows, in an order and under names that do not depend on how it came to know it."""
    catalog.refresh()
    db = sqlite3.connect(catalog.path)
    places = {id: (path_of(path), key) for id, path, key in db.execute("SELECT id, path, key FROM sessions")}
    places = {id: (Path(path).name, key) for id, (path, key) in places.items()}
    bundles = {id: Bundle(data) for id, data in db.execute("SELECT id, data FROM texts")}
    docs = {
        id: (places[session], step, entry, role, tool, at, bundles[bundle].text(number))
        for id, at, session, step, entry, role, tool, _, bundle, number in db.execute("SELECT * FROM docs")
    }
    assert bundles.keys() == {bundle for (bundle,) in db.execute("SELECT DISTINCT bundle FROM docs")}
    found = {
        word: sorted(docs[row[0]][:3] for row in db.execute("SELECT rowid FROM words WHERE words MATCH ?", (word,)))
        for word in WORDS
    }
    touched = db.execute("SELECT p.path, t.doc FROM touched t JOIN paths p ON p.id = t.path")
    columns = [row[1] for row in db.execute("PRAGMA table_info(spent)")][1:]
    spent = [(places[row[0]], *row[1:]) for row in db.execute(f"SELECT session, {', '.join(columns)} FROM spent")]
    cards = [
        # That a file was cut is known to who saw it before.
        card._replace(path=Path(card.path).name, problem="" if "it was cut" in card.problem else card.problem)
        for card in catalog.cards(everything=True) + catalog.cards(everything=True, deleted=True)
    ]
    return {
        "cards": sorted(cards, key=lambda card: (card.name, card.path, card.key)),
        "docs": sorted(docs.values()),
        "found": found,
        "touched": sorted((path, docs[doc][:3]) for path, doc in touched),
        "spent": sorted(spent, key=repr),
        **{table: _rows(db, table, places) for table in ("used", "quarters", "marked")},
        "outlines": {places[id]: outline_in(SqliteEngine(db), id).encode() for (id,) in db.execute(_OUTLINED)},
        "notes": {key: db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchall() for key in _NOTES},
        "usage": catalog.usage(by="model", timezone=UTC),
    }


def _rows(db: sqlite3.Connection, table: str, places: dict[int, tuple[str, str]]) -> list[tuple[Any, ...]]:
    """The rows of a table whose first column is a session."""
    return sorted(((places[session], *row) for session, *row in db.execute(f"SELECT * FROM {table}")), key=repr)


def same(catalog: Catalog, other: Catalog) -> None:
    """Both answer the same."""
    mine, theirs = answers(catalog), answers(other)
    for part, value in mine.items():
        other_value = theirs[part]
        if value != other_value:
            pytest.fail(f"{part}: {_only(value, other_value)} against {_only(other_value, value)}")


def _only(these: Any, others: Any) -> Any:
    if isinstance(these, dict):
        return {key: _only(value, others.get(key)) for key, value in these.items() if others.get(key) != value}
    return [item for item in these if item not in (others or ())]


def run(program: str, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A program of its own that may use turnlog."""
    return subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=False, **more)
