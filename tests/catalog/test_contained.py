"""What one damaged or odd file may do: be listed by its name. All others are listed, read and counted."""

import json
import sqlite3
import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from turnlog.catalog import Catalog
from turnlog.catalog.glance import heading
from turnlog.catalog.glance.index import GlanceIndex
from turnlog.catalog.glance.survey import QUICK, FileSurvey, FoundFile, row_at
from turnlog.catalog.index.columns import LATEST
from turnlog.catalog.index.sqlite.ledger import Ledger
from turnlog.catalog.read import own


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


# ── glances ───────────────────────────────────────────────────────────────────────────────────────

LINES = {
    "claude-code": [
        {"type": "user", "uuid": "u", "parentUuid": None, "sessionId": "s", "cwd": "/w", "timestamp": "TIME",
         "message": {"role": "user", "content": "hello"}},
        {"type": "ai-title", "aiTitle": "A title"},
    ],
    "codex": [
        {"type": "session_meta", "timestamp": "TIME", "payload": {"id": "s", "cwd": "/w"}},
        {"type": "response_item", "timestamp": "TIME",
         "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}},
    ],
    "gemini-cli": [
        {"sessionId": "s", "projectHash": "p", "startTime": "TIME", "lastUpdated": "TIME"},
        {"type": "user", "timestamp": "TIME", "content": "hello"},
        {"$set": {"summary": "A title"}},
    ],
}  # fmt: skip
TIMES = (
    "2026-03-01T09:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59Z",
    "1969-12-31T23:59:59Z", "2026-03-01", "20260301T090000.123456789Z", "yesterday",
)  # fmt: skip


@st.composite
def files(draw: st.DrawFn, agent: str) -> bytes:
    """A file as the agent writes it, in one document or in lines, with some bytes changed; or any bytes."""
    time = draw(st.sampled_from(TIMES))
    is_document = draw(st.booleans())
    rows = LINES[agent]
    if is_document:
        text = json.dumps(
            {**rows[0], "messages": rows[1:], "summary": "A title"}, indent=draw(st.sampled_from((None, 1)))
        )
    else:
        text = "\n".join(map(json.dumps, rows)) + "\n"
    data = bytearray(text.replace("TIME", time).encode())
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from((b"\\", b"\\q", b'"', b"\xff", b"\0", b"{", b"]", b""))
        )
    return draw(st.sampled_from((bytes(data), bytes(data)[: draw(st.integers(0, len(data)))]))) or draw(st.binary())


@pytest.mark.parametrize("agent", sorted(QUICK))
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_glance_at_any_bytes_is_a_row_or_none(tmp_path: Path, agent: str, data: st.DataObject):
    path = tmp_path / f"session.{data.draw(st.sampled_from(('json', 'jsonl')))}"
    content = data.draw(files(agent))
    path.write_bytes(content)
    row = row_at(FoundFile(1_772_355_600_000_000_000, agent, str(path), len(content)))
    if row is not None:
        assert row.created is not None
        assert 0 <= row.created <= LATEST
        assert 0 <= row.updated <= LATEST


def _gemini(machine: Machine) -> Path:
    """A document of Gemini CLI with an escape that JSON does not have."""
    path = machine.user / ".gemini" / "tmp" / "0f00" / "chats" / "session-2026-03-01T09-00-aaaa.json"
    path.parent.mkdir(parents=True)
    at = "2026-03-01T09:00:00.000Z"
    prompt = {"id": "1", "timestamp": at, "type": "user", "content": "hello WRONG there"}
    about = {"sessionId": "0f0f", "projectHash": "0f00", "startTime": at, "lastUpdated": at, "summary": "a WRONG title"}
    path.write_text(json.dumps({**about, "messages": [prompt]}).replace("WRONG", "\\q"))
    return path


def test_a_document_with_a_wrong_escape_stops_nobody(machine: Machine):
    _gemini(machine)
    machine.claude("aaaa")
    with machine.catalog() as catalog:
        catalog.complete()
        assert {card.name for card in catalog.cards()} >= {"claude-code:aaaa"}
        assert catalog.standing().pending == 0
        assert len(catalog.cards()) == 2


def test_a_glance_that_fails_lists_the_file_by_its_name(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise RuntimeError("an unexpected fault")

    machine.claude("aaaa")
    machine.codex("0199aaaa")
    for fast in (monkeypatch.context(),):
        with fast as patch:
            patch.setattr(QUICK["claude-code"], "glance", fail)
            survey = FileSurvey(
                [("claude-code", str(machine.user / ".claude/projects")), ("codex", str(machine.user / ".codex"))]
            )
            index = GlanceIndex(survey, "/w", lambda: pytest.fail("not needed"), has_main_index=False).index
            assert {card.name for card in index.cards()} == {"claude-code:aaaa", "codex:0199aaaa"}
            with machine.catalog() as catalog:
                catalog.complete()
                assert {card.name for card in catalog.cards()} == {"claude-code:aaaa", "codex:0199aaaa"}


def test_a_time_at_the_end_of_the_calendar_is_in_a_list(machine: Machine):
    path = machine.claude("aaaa")
    path.write_text(path.read_text().replace("2026-03-01T09:01:00Z", "9999-12-31T23:59:59-14:00"))
    survey = FileSurvey([("claude-code", str(machine.user / ".claude" / "projects"))])
    index = GlanceIndex(survey, "/w", lambda: pytest.fail("not needed"), has_main_index=False).index
    assert [card.id for card in index.cards()] == ["aaaa"]


def test_an_agent_whose_format_is_gone_has_no_glance(tmp_path: Path):
    folder = tmp_path / "there"
    folder.mkdir()
    (folder / "a.session").write_text("{}")
    survey = FileSurvey([("an-agent-of-before", str(folder))])
    assert survey.others
    assert list(heading.rows(survey, lambda: False)) == []


# ── what is kept outside of the index ─────────────────────────────────────────────────────────────


def test_a_row_of_the_ledger_that_is_damaged_is_left_out_and_named(machine: Machine):
    gone, lost = machine.claude("aaaa"), machine.claude("bbbb")
    with machine.catalog() as catalog:
        before = {group.group: group.tokens for group in catalog.usage(by="agent")}
    for path in (gone, lost):
        path.unlink()
    ledger = Ledger(str(machine.home)).path
    db = sqlite3.connect(ledger)
    assert db.execute("UPDATE ledger SET spent = x'00' WHERE native = 'bbbb'").rowcount == 1
    db.commit()
    db.close()
    machine.index.unlink()
    with machine.catalog() as catalog, pytest.warns(turnlog.TurnlogWarning, match=r"what 1 deleted session spent"):
        after = {group.group: group.tokens for group in catalog.usage(by="agent")}
    assert 0 < after["total"].output_tokens < before["total"].output_tokens


def test_a_ledger_that_cannot_be_read_is_asked_again(machine: Machine):
    machine.claude("bbbb")
    gone = machine.claude("aaaa")
    with machine.catalog() as catalog:
        before = {group.group: group.tokens for group in catalog.usage(by="agent")}
    gone.unlink()
    ledger = Path(Ledger(str(machine.home)).path)
    whole = ledger.read_bytes()
    ledger.write_bytes(b"no database" * 100)
    machine.index.unlink()
    with machine.catalog() as catalog, pytest.warns(turnlog.TurnlogWarning, match="what deleted sessions spent"):
        assert {group.group: group.tokens for group in catalog.usage(by="agent")} != before
    ledger.write_bytes(whole)
    machine.claude("cccc")
    with machine.catalog() as catalog:
        names = {card.name for card in catalog.cards()}
        after = {group.group: group.tokens for group in catalog.usage(by="agent")}
    assert "claude-code:cccc" in names
    assert after["total"].output_tokens == before["total"].output_tokens * 3 / 2


def test_a_session_in_a_database_that_stumbles_stops_no_other(
    machine: Machine, postgres: Server, monkeypatch: pytest.MonkeyPatch
):
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location) as home:
        for name in ("one", "two", "three"):
            home.create(id=name).user("a needle")
    read_session = own.read_session

    def stumble(batch, store, native, *args, **more):
        if native == "two":
            raise AttributeError("an unexpected fault")
        return read_session(batch, store, native, *args, **more)

    monkeypatch.setattr(own, "read_session", stumble)
    with Catalog(location) as catalog:
        cards = {card.id: card.problem for card in catalog.cards()}
        assert cards == {"one": "", "two": "it cannot be read: AttributeError: an unexpected fault", "three": ""}
        assert {hit.card.id for hit in catalog.search("needle")} == {"one", "three"}
