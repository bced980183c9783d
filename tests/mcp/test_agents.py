"""Sessions of agents, as an agent at the server meets them: kept, hooked, and gone on under another id."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.mcp.desk import Desk
from turnlog.cli.program import run
from turnlog.exchange.turnlock import one_at_a_time
from turnlog.hooks import hooked_agent
from turnlog.live.event import LiveEvent
from turnlog.live.payload import Payload
from turnlog.live.transcript import import_new
from turnlog.log.entry import Alias, Note
from turnlog.session.interior import interior
from turnlog.thread.home.alias import append_alias

FIRST = "0a1b2c3d-1111-4222-8333-444444444444"
LATER = "9f8e7d6c-1111-4222-8333-555555555555"
OURS = f"claude-code-{FIRST}"


def hook(event: str, native: str = FIRST, turn: str = "t1", **more: Any) -> None:
    """What a hook of Claude Code does, without a process of its own."""
    where = str(Path.cwd())
    payload = {"session_id": native, "prompt_id": turn, "cwd": where, "prompt": "go", **more}
    data = Payload(json.dumps(payload).encode(), {"CLAUDE_PROJECT_DIR": where}, "CLAUDE_PROJECT_DIR")
    known = hooked_agent("claude-code").event(event)
    assert known is not None
    LiveEvent.open(hooked_agent("claude-code"), data, os.getppid()).apply(known.means)


@pytest.fixture
def hooked(person: Path) -> str:
    """A turn of Claude Code, told by its hooks: it wrote a file."""
    Path("a.txt").write_text("zero\n")
    path = claude_session(person, str(Path.cwd()), FIRST, "Why do vouchers vanish?")
    hook("UserPromptSubmit", transcript_path=str(path))
    Path("a.txt").write_text("one\n")
    hook("PostToolUse", tool_name="Edit", tool_input={"file_path": "a.txt"})
    hook("Stop", transcript_path=str(path))
    with turnlog.open() as home:
        import_new(interior(home).store, OURS)
    return OURS


@pytest.fixture
def aliased(hooked: str, person: Path) -> str:
    """The same, gone on under another id."""
    texts = ("Why do vouchers vanish?", "And the basket with them?")
    path = claude_session(person, str(Path.cwd()), LATER, *texts)
    with turnlog.open() as home:
        head = home.read(hooked).head
        alias = Alias(agent="claude-code", native=LATER, head=head, records=2, path=str(path))
        append_alias(interior(home).store, hooked, alias)
        assert import_new(interior(home).store, hooked) > 0
    return hooked


@pytest.fixture
def keeper(person: Path) -> Iterator[Desk]:
    opened = Desk(allow_rewind=True, client="claude-code")
    yield opened
    opened.close()


def test_a_session_that_its_agent_deleted_and_turnlog_keeps_is_found_and_read(
    desk: Desk, person: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TURNLOG_BACKGROUND", "off")
    path = claude_session(person, str(Path.cwd()), FIRST, "Why do vouchers vanish?", "And the basket?")
    assert run(["keep"]) == run(["keep", "--now"]) == 0
    path.unlink()
    assert run(["keep", "--now"]) == 0
    assert set(desk.sessions("vouchers vanish")) == {FIRST}
    for _ in range(2):  # the second page is of the same reading
        page = desk.data("read_session", session=FIRST)
        assert "vouchers" in page["entries"][0]["text"]
    there = desk.ask("resources/read", uri=f"turnlog://session/{FIRST}")
    assert "vouchers" in json.dumps(there)


def test_a_session_that_is_gone_is_said_to_be(desk: Desk, person: Path):
    path = claude_session(person, str(Path.cwd()), FIRST, "Why do vouchers vanish?")
    assert desk.data("read_session", session=FIRST)["entries"]
    path.unlink()
    assert FIRST in desk.error("read_session", session=FIRST)


def test_what_is_written_meanwhile_is_read(desk: Desk, person: Path):
    claude_session(person, str(Path.cwd()), FIRST, "Why do vouchers vanish?")
    assert len(desk.data("read_session", session=FIRST)["entries"]) == 2
    path = claude_session(person, str(Path.cwd()), LATER, "Why do vouchers vanish?", "And now?")
    first = path.with_name(f"{FIRST}.jsonl")
    first.write_text(path.read_text().replace(LATER, FIRST))
    assert len(desk.data("read_session", session=FIRST)["entries"]) == 4


def test_a_session_under_its_later_id_has_the_checkpoints_of_the_one_that_it_goes_on(keeper: Desk, aliased: str):
    for native in (FIRST, LATER):
        [change] = keeper.data("list_changes", session=native)["changes"]
        assert (change["action"], change["path"]) == ("modified", "a.txt")
    plan = keeper.data("rewind", session=LATER, to="turn:1")
    assert plan["session"] == aliased
    keeper.data("rewind", session=LATER, to="turn:1", confirm=plan["plan"])
    assert Path("a.txt").read_text() == "zero\n"


@pytest.mark.parametrize("native", [FIRST, LATER])
def test_the_session_that_asks_is_left_out_whichever_its_id_is(
    aliased: str, native: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", native)
    with turnlog.open(checkpoints=False) as home:
        other = home.create(workspace=".", agent="my-agent")
        other.user("Do vouchers vanish here, too?")
    desk = Desk(client="claude-code")
    assert desk.sessions("vouchers vanish") == [other.id]
    desk.close()


def test_a_rewind_says_who_asked_for_it(keeper: Desk, hooked: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", LATER)
    plan = keeper.data("rewind", session=hooked, to="turn:1")["plan"]
    keeper.data("rewind", session=hooked, to="turn:1", confirm=plan)
    with turnlog.open() as home:
        [note] = [entry for entry in home.read(hooked).entries() if isinstance(entry, Note)]
    assert note.data == {"asked_by": f"claude-code-{LATER}", "asked": "rewind"}


def test_nothing_is_brought_in_while_a_hooked_session_is_rewound(keeper: Desk, hooked: str):
    """Hooks and a rewind take turns: the rewind waits for who brings something in."""
    plan = keeper.data("rewind", session=hooked, to="turn:1")["plan"]
    done: list[dict[str, Any]] = []
    with turnlog.open() as home, one_at_a_time(interior(home).store, hooked):
        thread = threading.Thread(
            target=lambda: done.append(keeper.call("rewind", session=hooked, to="turn:1", confirm=plan)), daemon=True
        )
        thread.start()
        thread.join(0.5)
        assert not done
        assert Path("a.txt").read_text() == "one\n"
    thread.join(20)
    assert not done[0].get("isError"), done
    assert Path("a.txt").read_text() == "zero\n"
