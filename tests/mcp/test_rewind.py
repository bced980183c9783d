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
    log = Path(interior(turnlog.open()).created_here.location or "") / "sessions" / f"{session}.jsonl"
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


def test_a_tracked_file_elsewhere_is_shown_with_its_folder(keeper: Desk, session: str, tmp_path: Path):
    (tmp_path / "hosts").write_text("one\n")
    with turnlog.open() as home, home.resume(session) as opened:
        opened.track(tmp_path / "hosts")
        with opened.turn():
            opened.user("prompt 3")
            (tmp_path / "hosts").write_text("two\n")
    plan = keeper.data("rewind", session=session)
    assert [step["path"] for step in plan["steps"]] == [str(tmp_path / "hosts")]


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
    for path in ("../other", "/etc/passwd", "bytes:%2E%2E/other"):
        assert "is not in the workspace" in keeper.error("rewind", session=session, only=[path])


def test_a_name_that_is_not_text_is_taken_as_it_was_shown(keeper: Desk, session: str):
    with turnlog.open() as home, home.resume(session) as opened, opened.turn():
        opened.user("prompt 3")
        Path("caf\udce9.txt").write_text("3\n")
    [step] = keeper.data("rewind", session=session)["steps"]
    plan = keeper.data("rewind", session=session, only=[step["path"]])
    assert plan["steps"] == [step]


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


def test_a_label_of_a_checkpoint_is_redacted_and_drives_no_terminal(keeper: Desk, session: str):
    key = "sk-ant-api03-" + "Ab3dEf9hIj" * 9 + "AA"
    with turnlog.open() as home, home.resume(session) as opened:
        opened.checkpoint(f"key {key}\x1b[31m")
        Path("a.txt").write_text("later\n")
        label = opened.checkpoints()[-1].label
    plan = keeper.call("rewind", session=session, to=f"label:{label}")
    done = keeper.call("rewind", session=session, to=f"label:{label}", confirm=plan["structuredContent"]["plan"])
    for answer in map(str, (plan, done)):
        assert key[:24] not in answer
        assert "x1b" not in answer
    assert "redacted" in plan["structuredContent"]["target"]


def test_the_head_names_the_turn_whose_changes_are_listed(keeper: Desk, session: str):
    with turnlog.open(checkpoints=False) as home, home.resume(session) as opened, opened.turn():
        opened.user("prompt 3")
    data = keeper.data("list_changes", session=session)
    assert (data["turn"], [row["path"] for row in data["changes"]]) == (2, ["b.txt"])
    assert "turn 2: 1 change" in keeper.call("list_changes", session=session)["content"][0]["text"]


def test_of_a_long_line_the_beginning_is_shown_and_the_rest_counted(keeper: Desk, session: str):
    with turnlog.open() as home, home.resume(session) as opened, opened.turn():
        Path("min.js").write_text("x" * 9_000 + "\n")
    [change] = keeper.data("list_changes", session=session, lines=True)["changes"]
    shown, _, more = change["lines"].rpartition("\n… ")
    assert "x" * 1_000 in shown
    assert shown.count("x") + int(more.split(" ")[0].replace(",", "")) == 9_000
