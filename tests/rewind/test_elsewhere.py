"""Sessions that work in folders of others: what they track there is as much theirs as what is in their workspace."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import turnlog
from tests.clock import tick
from tests.rewind.relaylab import Hook
from turnlog.blame.authorship import blame
from turnlog.log.entry import FORMAT, Start, Track
from turnlog.log.part import Fork
from turnlog.machine.process import process_of
from turnlog.session.interior import interior
from turnlog.transfer.renumber import line_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "all" / "project"
    (folder / "lib").mkdir(parents=True)
    for name in ("a", "b", "c", "lib/x"):
        (folder / name).write_text(f"{name}\n")
    return folder


@pytest.fixture
def home(tmp_path: Path):
    with turnlog.open(tmp_path / "home", durability="flush", clock=tick) as opened:
        yield opened


@pytest.fixture
def mine(home, place: Path):
    return home.create(workspace=place, id="mine")


@pytest.fixture
def theirs(home, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    return home.create(workspace=tmp_path / "elsewhere", id="theirs")


def plan(session) -> dict[str, str]:
    return {step.path: step.action for step in session.plan_rewind(turns=1).steps}


def diff(session) -> list[str]:
    return sorted(item.path for item in session.diff(turn=1))


@pytest.mark.parametrize("tracked", ["lib", ".", ".."])
@pytest.mark.parametrize("tracks", ["before its turn", "in its turn", "after its changes"])
def test_what_changed_in_a_folder_that_a_session_elsewhere_tracks_is_not_taken_for_ones_own(
    mine, theirs, place: Path, tracked: str, tracks: str
):
    """Either of the two may have changed it, so it stays."""
    with mine.turn():
        mine.user("go")
        if tracks == "before its turn":
            theirs.track(place / tracked)
        with theirs.turn():
            theirs.user("go, too")
            if tracks == "in its turn":
                theirs.track(place / tracked)
            (place / "lib/x").write_text("theirs\n")
            (place / "lib/new").write_text("theirs\n")
            if tracks == "after its changes":
                theirs.track(place / tracked)
    assert plan(mine) == {"lib/new": "conflict", "lib/x": "conflict"}
    mine.rewind(turns=1)
    assert (place / "lib/new").read_text() == (place / "lib/x").read_text() == "theirs\n"


@pytest.mark.parametrize("tracked", ["lib", ".", ".."])
@pytest.mark.parametrize("is_early", [True, False])
def test_what_a_session_elsewhere_declared_in_a_folder_that_it_tracks_is_its_own(
    mine, theirs, place: Path, tracked: str, is_early: bool
):
    if is_early:
        theirs.track(place / tracked)
    with mine.turn():
        mine.user("go")
        with theirs.turn():
            theirs.user("go, too")
            theirs.track(place / tracked)
            mine.checkpoint()
            (place / "lib/x").write_text("theirs\n")
            theirs.changed(place / "lib/x")
        (place / "a").write_text("mine\n")
    assert plan(mine) == {"a": "modify"}
    assert diff(mine) == ["a"]


def test_every_file_that_a_session_elsewhere_edited_is_left_alone_and_not_only_the_first(mine, theirs, place: Path):
    with theirs.turn():
        theirs.user("first")
        theirs.track(place / "b")
        (place / "b").write_text("theirs\n")
        theirs.changed(place / "b")
    with mine.turn():
        mine.user("go")
        (place / "a").write_text("mine\n")
        with theirs.turn():
            theirs.user("second")
            theirs.track(place / "c")
            mine.checkpoint()
            (place / "c").write_text("theirs\n")
            theirs.changed(place / "c")
    assert plan(mine) == {"a": "modify"}
    assert diff(mine) == ["a"]


def test_the_same_where_hooks_report_it(home, mine, theirs, place: Path):
    hook = Hook(home, theirs, process_of(1))
    with mine.turn():
        mine.user("go")
        (place / "a").write_text("mine\n")
        hook("begin", "t1")
        for name in ("b", "c"):
            mine.checkpoint()
            (place / name).write_text("theirs\n")
            hook("record_tool", None, [str(place / name)], [str(place / name)])
    assert plan(mine) == {"a": "modify"}
    hook("end", "t1")
    assert plan(mine) == {"a": "modify"}


def test_what_a_session_changed_in_an_open_turn_in_a_folder_that_it_tracks_by_now_stays(mine, theirs, place: Path):
    with theirs.turn():
        theirs.user("go, too")
        with mine.turn():
            mine.user("go")
            theirs.track(place / "lib")
            theirs.checkpoint()
            (place / "lib/x").write_text("theirs\n")
        assert plan(mine) == {"lib/x": "conflict"}
        theirs.checkpoint()
        assert plan(mine) == {"lib/x": "conflict"}


def test_a_folder_that_two_sessions_track_outside_of_both(home, place: Path, tmp_path: Path):
    sessions = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        sessions.append(home.create(workspace=tmp_path / name, id=name))
        sessions[-1].track(place)
    one, two = sessions
    with one.turn():
        one.user("go")
        with two.turn():
            two.user("go, too")
            (place / "b").write_text("two\n")
            two.changed(place / "b")
        (place / "a").write_text("one\n")
        one.changed(place / "a")
        (place / "c").write_text("whose is it?\n")
    shown = {path.rpartition("/")[2]: action for path, action in plan(one).items()}
    assert shown == {"a": "modify", "c": "modify"}


def test_what_was_declared_as_a_folder_between_turns_is_left_alone(mine, theirs, place: Path):
    theirs.track(place / "lib")
    with mine.turn():
        mine.user("go")
        theirs.checkpoint()
        (place / "lib/x").write_text("theirs\n")
        theirs.changed(place / "lib")
        theirs.checkpoint()
    assert plan(mine) == {"lib/x": "conflict"}


def test_a_rewind_of_a_session_elsewhere_is_left_alone(mine, theirs, place: Path):
    theirs.track(place / "lib")
    with theirs.turn():
        theirs.user("go")
        (place / "lib/x").write_text("theirs\n")
    with mine.turn():
        mine.user("go")
        theirs.rewind(turns=1)
    assert plan(mine) == {"lib/x": "conflict"}


def test_a_session_elsewhere_has_no_part_in_what_is_beside_the_folder_that_it_tracks(mine, theirs, place: Path):
    theirs.track(place / "lib")
    with mine.turn():
        mine.user("go")
        with theirs.turn():
            theirs.user("go, too")
            (place / "library").write_text("mine\n")
            (place / "a").write_text("mine\n")
    assert plan(mine) == {"a": "modify", "library": "delete"}


def test_a_session_without_a_workspace_tracks_as_well(home, mine, place: Path):
    theirs = home.create(id="theirs")
    theirs.track(place / "lib")
    with mine.turn():
        mine.user("go")
        with theirs.turn():
            (place / "lib/x").write_text("theirs\n")
    assert plan(mine) == {"lib/x": "conflict"}


@pytest.mark.parametrize("is_killed", [False, True])
def test_the_first_turn_of_another_session_counts_though_it_began_without_a_checkpoint(
    home, mine, place: Path, is_killed: bool
):
    """The first scan of a large folder takes longer than a hook may."""
    theirs = home.create(workspace=place, id="theirs")
    hook = Hook(home, theirs, process_of(1))
    with mine.turn():
        mine.user("go")
        hook("begin", "t1", refused="it took too long")
        (place / "b").write_text("theirs\n")
        if not is_killed:
            hook("end", "t1")
    if is_killed:
        hook("begin", "t2")
    assert plan(mine) == {"b": "conflict"}


@pytest.mark.parametrize("tracked", ["lib", "."])
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("tracks", ["before its turn", "in its turn"])
def test_a_folder_that_others_have_replaced_since_counts_for_the_time_when_it_was_tracked(
    mine, theirs, place: Path, tmp_path: Path, tracked: str, is_open: bool, tracks: str
):
    """A session remembers the last few folders that it worked in."""
    folders = [place / tracked, *(tmp_path / f"worktree{number}" for number in range(4))]
    entries = [Track(path=str(folder), is_folder=True) for folder in folders]
    with mine.turn():
        mine.user("go")
        if tracks == "before its turn":
            theirs.append(entries.pop(0))
        with theirs.turn():
            theirs.user("go, too")
            if tracks == "in its turn":
                theirs.append(entries.pop(0))
            (place / "lib/x").write_text("theirs\n")
            for entry in entries:
                theirs.append(entry)
            if is_open:
                assert plan(mine) == {"lib/x": "conflict"}
    assert plan(mine) == {"lib/x": "conflict"}
    assert diff(mine) == ["lib/x"]


@pytest.mark.parametrize("is_orphan", [False, True])
def test_a_session_elsewhere_that_cannot_be_read_stops_no_rewind_and_no_blame(home, mine, place: Path, is_orphan: bool):
    """It is of a newer version, or a fork of a session that is gone."""
    store = interior(home).store
    start = Start(session="theirs", workspace=str(place.parent.parent / "elsewhere"), format=FORMAT + (not is_orphan))
    with mine.turn():
        mine.user("go")
        if is_orphan:
            start = replace(start, fork=Fork("gone", 1, "nobody"), seq=2)
        store.adopt("theirs", [line_of(replace(start, seq=start.seq or 1, at=mine.checkpoint().at))], after=0)
        (place / "a").write_text("mine\n")
    assert plan(mine) == {"a": "modify"}
    assert [line.author.session for line in blame(store, place / "a").lines] == ["mine"]
