"""A rewind through the server: the plan first, and then that plan or nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import turnlog
from tests.mcp.desk import Desk
from turnlog.errors import Conflict
from turnlog.session.interior import interior
from turnlog.session.session import Session


@pytest.fixture
def keeper(person: Path) -> Iterator[Desk]:
    opened = Desk(allow_rewind=True)
    yield opened
    opened.close()


@pytest.fixture
def session(person: Path) -> str:
    """Two turns, each of which changed a file."""
    Path("a.txt").write_text("zero\n")
    with turnlog.open() as home:
        session = home.create(workspace=".", agent="my-agent")
        for number, name in ((1, "a.txt"), (2, "b.txt")):
            with session.turn():
                session.user(f"prompt {number}")
                Path(name).write_text(f"{number}\n")
                session.assistant("done")
        return session.id


def files() -> dict[str, str]:
    return {path.name: path.read_text() for path in Path().iterdir() if path.is_file()}


def test_first_the_plan_then_the_rewind_and_how_to_undo_it(keeper: Desk, session: str):
    log = Path(interior(turnlog.open()).made.location or "") / "sessions" / f"{session}.jsonl"
    before, written = files(), log.read_bytes()
    plan = keeper.data("rewind", session=session)
    assert [(step["action"], step["path"]) for step in plan["steps"]] == [("delete", "b.txt")]
    assert (files(), log.read_bytes()) == (before, written)
    done = keeper.data("rewind", session=session, confirm=plan["plan"])
    assert files() == {"a.txt": "1\n"}
    assert done["undo"].startswith("turnlog undo -s ")
    with turnlog.open() as home, home.resume(session) as found:
        found.undo()
    assert files() == before


def test_what_changed_since_makes_it_another_plan(keeper: Desk, session: str):
    plan = keeper.data("rewind", session=session, to="turn:1")["plan"]
    for arguments in ({"to": "turn:2"}, {"to": "turn:1", "only": ["a.txt"]}):
        assert "not the plan" in keeper.error("rewind", session=session, confirm=plan, **arguments)
    assert "not the plan" in keeper.error("rewind", session=session, to="turn:1", confirm="0" * 24)
    Path("b.txt").write_text("somebody else\n")
    before = files()
    assert "not the plan" in keeper.error("rewind", session=session, to="turn:1", confirm=plan)
    assert files() == before


def test_what_changes_in_between_is_noticed_by_who_does_it(keeper: Desk, session: str, monkeypatch: pytest.MonkeyPatch):
    plan = keeper.data("rewind", session=session)["plan"]
    rewind = Session.rewind

    def late(*args: object, **more: object) -> object:
        Path("b.txt").write_text("just now\n")
        return rewind(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "rewind", late)
    assert Conflict.code in str(keeper.call("rewind", session=session, confirm=plan)["structuredContent"])
    assert files()["b.txt"] == "just now\n"


def test_only_some_paths_and_none_outside(keeper: Desk, session: str):
    plan = keeper.data("rewind", session=session, to="turn:1", only=["a.txt"])
    assert plan["messages_left_behind"] == 0
    keeper.data("rewind", session=session, to="turn:1", only=["a.txt"], confirm=plan["plan"])
    assert files() == {"a.txt": "zero\n", "b.txt": "2\n"}
    for path in ("../other", "/etc/passwd"):
        assert "is not in the workspace" in keeper.error("rewind", session=session, only=[path])


def test_a_session_of_elsewhere_stays(keeper: Desk, tmp_path: Path):
    (tmp_path / "other").mkdir()
    with turnlog.open() as home:
        other = home.create(workspace=tmp_path / "other", agent="my-agent")
        with other.turn():
            other.user("hi")
    assert "no session" in keeper.error("rewind", session=other.id)


def test_what_a_turn_changed_and_who_wrote_a_line(keeper: Desk, session: str):
    [change] = keeper.data("list_changes", session=session, turn=1, lines=True)["changes"]
    assert (change["action"], change["path"]) == ("modified", "a.txt")
    assert "-zero\n+1" in change["lines"]
    assert [row["path"] for row in keeper.data("list_changes", session=session)["changes"]] == ["b.txt"]
    assert "no turn 9" in keeper.error("list_changes", session=session, turn=9)
    [stretch] = keeper.data("list_changes", path="a.txt")["stretches"]
    assert (stretch["session"], stretch["turn"], stretch["prompt"]) == (session, 1, "prompt 1")
