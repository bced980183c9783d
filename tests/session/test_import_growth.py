"""A session that is brought in again and again, as its file grows, is the one that is brought in at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import turnlog
from turnlog.exchange.importing import resumestate
from turnlog.exchange.importing.sourceindex import SourceIndex
from turnlog.formats import Source, format_of
from turnlog.formats._shared import growth
from turnlog.log.ids import is_ours as is_own
from turnlog.session.interior import interior
from turnlog.thread.history import opened

AGENTS = Path(__file__).parent.parent / "formats/agents"


def folder(agent: str) -> Path:
    recorded = AGENTS / agent / "recorded"
    return recorded if recorded.is_dir() else AGENTS / agent


def longest(agent: str) -> Path:
    files = folder(agent).rglob("*.jsonl")
    sessions = [path for path in files if next(format_of(agent).find(str(path)), None)]
    return max(sessions, key=lambda path: path.stat().st_size)


def said(session) -> list[tuple]:
    return [(message.role, message.blocks, message.model) for message in session.context()]


def facts(home) -> dict:
    row = min(home.sessions(), key=lambda row: len(row.id))  # not one of its subagents
    with home.read(row.id) as session:
        usage = session.usage()
        spent = [e for e in session.entries() if e.type == "usage" and e.why != "late"]
        stats = session.stats()
        return {
            "id": row.id, "title": row.title, "said": said(session), "usage": usage.own, "facts": session.facts,
            "entries": [(e.type, e.id, e.parent, e.turn) for e in session.entries() if not is_own(e.id)],
            "turns": stats.turns, "calls": stats.tool_calls, "users": stats.user_messages, "spent": len(spent),
        }  # fmt: skip


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini-cli", "pi", "qwen-code", "copilot-cli"])
def test_line_by_line_is_as_at_once(agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(growth, "APART", 1)
    whole = longest(agent)
    lines = whole.read_bytes().splitlines(keepends=True)
    # Some of these tell by their path what they are.
    place = tmp_path / whole.relative_to(folder(agent))
    place.parent.mkdir(parents=True, exist_ok=True)
    for sidecar in whole.parent.iterdir():
        if sidecar.is_file() and sidecar != whole and sidecar.suffix == ".json":
            (place.parent / sidecar.name).write_bytes(sidecar.read_bytes())
    found = {}
    for way in ("carried over", "all of it again"):
        with turnlog.open(tmp_path / way, durability="flush") as home:
            step = max(1, len(lines) // 12)
            for end in [*range(4, len(lines), step), len(lines)]:
                place.write_bytes(b"".join(lines[:end]))
                home.import_sessions(place, agent=agent)
                for kept in (tmp_path / way).rglob("import-*") if way == "all of it again" else ():
                    kept.unlink()
            found[way] = facts(home)
            assert home.import_sessions(place, agent=agent)[0].added == 0
    assert found["carried over"] == found["all of it again"]


def test_what_was_brought_in_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = longest("claude-code")
    lines = whole.read_bytes().splitlines(keepends=True)
    place = tmp_path / "projects/-p" / whole.name
    place.parent.mkdir(parents=True)
    seen: list[int] = []
    take_in = SourceIndex.take_in
    monkeypatch.setattr(SourceIndex, "take_in", lambda self, entry: (seen.append(entry.seq), take_in(self, entry)))
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        place.write_bytes(b"".join(lines[:-3]))
        first = home.import_sessions(place, agent="claude-code")[0]
        seen.clear()
        place.write_bytes(b"".join(lines))
        home.import_sessions(place, agent="claude-code")
        assert first.added > 5
        assert seen == []


def test_without_what_was_carried_over_all_is_read_and_nothing_comes_twice(tmp_path: Path):
    whole = longest("claude-code")
    place = tmp_path / "projects/-p" / whole.name
    place.parent.mkdir(parents=True)
    place.write_bytes(whole.read_bytes())
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        home.import_sessions(place, agent="claude-code")
        for kept in (tmp_path / "home").rglob("import-*"):
            kept.write_bytes(b"\xff")
        assert home.import_sessions(place, agent="claude-code")[0].added == 0
        place.write_bytes(whole.read_bytes()[:-1] + b" \n")
        assert home.import_sessions(place, agent="claude-code")[0].added == 0


def test_a_source_that_was_rewritten_is_read_from_its_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole = longest("claude-code")
    place = tmp_path / "projects/-p" / whole.name
    place.parent.mkdir(parents=True)
    place.write_bytes(whole.read_bytes())
    results: list[bool] = []
    resumed = resumestate.resumed_reading
    import turnlog.exchange.importing.sessionimport as module

    monkeypatch.setattr(
        module, "resumed_reading", lambda *given: (results.append((r := resumed(*given)) is not None), r)[1]
    )
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        home.import_sessions(place, agent="claude-code")
        home.import_sessions(place, agent="claude-code")
        place.write_bytes(whole.read_bytes().replace(b'"sessionId":"', b'"sessionid":"', 1))
        assert home.import_sessions(place, agent="claude-code")[0].added == 0
    assert results == [False, True, False]


def test_a_title_that_is_given_beside_a_session_is_noticed(tmp_path: Path):
    place = tmp_path / "events.jsonl"
    place.write_bytes(longest("copilot-cli").read_bytes())
    source = Source("copilot-cli", str(place))
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        name = home.import_sessions(place, agent="copilot-cli")[0].id
        with opened(interior(home).creator.store, interior(home).creator.store.open(name, read_only=True)) as history:
            assert resumestate.is_up_to_date(interior(home).creator.store, history, source)
            (tmp_path / "workspace.yaml").write_text("name: Weeds\n")
            assert not resumestate.is_up_to_date(interior(home).creator.store, history, source)
