"""Files go back to where they were, and nothing of anybody else's is touched."""

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

import turnlog
from tests.clock import tick
from tests.faces import location
from turnlog.errors import Conflict
from turnlog.rewind.rewinder import Rewinder
from turnlog.session.interior import interior
from turnlog.workspace.restore import Restorer


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "src").mkdir()
    (folder / "src/a.py").write_bytes(b"one\r\ntwo\n")
    (folder / "src/b.py").write_text("b\n")
    (folder / "src/b.py").chmod(0o755)
    (folder / "old").mkdir()
    (folder / "old/c.txt").write_text("c")
    (folder / ".gitignore").write_text("*.log\nbuild/\n")
    (folder / "mine.log").write_text("the user's log")
    return folder


@pytest.fixture(params=["files", "memory", "postgres"])
def home(request, tmp_path: Path):
    with turnlog.open(location(request, tmp_path / "home"), checkpoints=True, clock=tick) as opened:
        yield opened


def everything(folder: Path) -> dict[str, object]:
    """Every path below a folder: what it is, its mode, and what is in it."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", oct(path.stat().st_mode))
        else:
            found[name] = ("file", oct(path.stat().st_mode), path.read_bytes())
    return found


def work(folder: Path) -> None:
    """What an agent does in one turn, most of it by the shell."""
    (folder / "src/a.py").write_text("changed\n")
    subprocess.run(
        "rm -rf old && mv src/b.py src/bb.py && printf '\\000\\001' > bin && ln -s src/a.py link"
        " && mkdir -p new/deep empty && echo hi > new/deep/f && chmod 600 src/a.py",
        shell=True,
        check=True,
        cwd=folder,
    )


def test_a_turn_is_taken_back_to_the_byte_and_made_again(home, place: Path):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        work(place)
    after = everything(place)
    s.rewind(turns=1)
    assert everything(place) == before
    assert s.messages() == []
    s.undo()
    assert everything(place) == after
    assert len(s.messages()) == 1
    s.redo()
    assert everything(place) == before


def test_what_the_user_made_and_what_was_built_stays(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        work(place)
        (place / "mine.log").write_text("changed by the build")
        (place / "build.log").write_text("made by the build")
        (place / "build").mkdir()
        (place / "build/out").write_text("out")
    (place / "user.txt").write_text("mine")
    (place / "new/users.txt").write_text("in a folder of the agent's")
    s.rewind(turns=1)
    assert (place / "user.txt").read_text() == "mine"
    assert (place / "new/users.txt").read_text() == "in a folder of the agent's"
    assert (place / "mine.log").read_text() == "the user's log"
    assert not (place / "build.log").exists()
    assert (place / "build/out").exists()
    assert not (place / "new/deep").exists()


@pytest.mark.parametrize("when", ["since", "between"])
def test_what_somebody_else_changed_is_kept_unless_forced(home, place: Path, when: str):
    s = home.create(workspace=place)
    with s.turn():
        first = s.user("one")
        (place / "src/a.py").write_text("agent")
    (place / "src/a.py").write_text("user's edit")
    if when == "between":
        with s.turn():
            s.user("two")
            (place / "src/a.py").write_text("agent again")
    kept = (place / "src/a.py").read_text()
    plan = s.plan_rewind(before=first)
    assert [(step.raw, step.action) for step in plan.steps] == [(b"src/a.py", "conflict")]
    assert s.rewind(before=first).files == {"conflict": 1}
    assert (place / "src/a.py").read_text() == kept
    s.rewind(before=first, force=True)
    assert (place / "src/a.py").read_bytes() == b"one\r\ntwo\n"
    s.undo()
    assert (place / "src/a.py").read_text() == kept


def test_a_file_that_a_changed_rule_hid_is_unknown_and_stays(home, place: Path):
    """A `.gitignore` that the agent edited, put back first, made another tool delete what it had hidden."""
    interior(home).settings = replace(interior(home).settings, covers_ignored=False)
    s = home.create(workspace=place)
    (place / "secret.env").write_text("the user's")
    (place / ".gitignore").write_text("*.log\nbuild/\n*.env\n")
    with s.turn():
        s.user("go")
        (place / ".gitignore").write_text("*.log\n")
        (place / "secret.env").write_text("changed")
    plan = s.plan_rewind(turns=1)
    assert {step.raw: step.action for step in plan.steps} == {b".gitignore": "modify", b"secret.env": "unknown"}
    s.rewind(turns=1)
    assert (place / "secret.env").read_text() == "changed"


def test_a_file_over_the_limit_is_reported_and_never_touched(tmp_path: Path, place: Path):
    (place / "big").write_bytes(b"x" * 5000)
    with turnlog.open(tmp_path / "home", checkpoints=True, max_file_bytes=4000) as home:
        s = home.create(workspace=place)
        with s.turn():
            s.user("go")
            (place / "big").write_bytes(b"y" * 100)
        assert [item["path"] for item in s.checkpoints()[0].skipped] == ["big"]
        s.rewind(turns=1)
        assert (place / "big").read_bytes() == b"y" * 100


def test_who_never_brackets_owns_what_changed_since_the_checkpoint(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home") as home:
        s = home.create(workspace=place)
        before = everything(place)
        label = s.checkpoint("before the refactoring")
        work(place)
        plan = s.plan_rewind(to=label)
        assert "everything that changed counts" in plan.note
        s.rewind(to=label)
        assert everything(place) == before


def test_another_sessions_work_is_not_taken_back(home, place: Path):
    mine, other = home.create(workspace=place), home.create(workspace=place)
    with mine.turn():
        mine.user("mine")
        (place / "src/a.py").write_text("mine")
    with other.turn():
        other.user("other")
        (place / "src/b.py").write_text("other")
    mine.rewind(turns=1)
    assert (place / "src/a.py").read_bytes() == b"one\r\ntwo\n"
    assert (place / "src/b.py").read_text() == "other"


def test_a_path_that_two_overlapping_turns_saw_change_is_a_conflict(home, place: Path):
    mine, other = home.create(workspace=place), home.create(workspace=place)
    with mine.turn():
        mine.user("mine")
        with other.turn():
            (place / "src/a.py").write_text("whose is it?")
    plan = mine.plan_rewind(turns=1)
    assert [step.action for step in plan.steps] == ["conflict"]
    mine.rewind(turns=1)
    assert (place / "src/a.py").read_text() == "whose is it?"


def test_a_tracked_file_is_covered_although_it_is_ignored_or_elsewhere(home, place: Path, tmp_path: Path):
    outside = tmp_path / "elsewhere" / "settings.toml"
    outside.parent.mkdir()
    outside.write_text("old")
    (outside.parent / "other.toml").write_text("not ours")
    s = home.create(workspace=place)
    s.track("mine.log")
    s.track(outside)
    with s.turn():
        s.user("go")
        (place / "mine.log").write_text("new")
        outside.write_text("new")
        (outside.parent / "other.toml").write_text("changed")
    s.rewind(turns=1)
    assert (place / "mine.log").read_text() == "the user's log"
    assert outside.read_text() == "old"
    assert (outside.parent / "other.toml").read_text() == "changed"


def test_names_that_are_not_unicode_come_back(home, place: Path):
    odd = os.fsencode(place) + b"/odd-\xff"
    with open(odd, "wb") as file:
        file.write(b"odd")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        os.unlink(odd)
    s.rewind(turns=1)
    with open(odd, "rb") as file:
        assert file.read() == b"odd"


def test_files_and_conversation_can_go_back_alone(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        ask = s.user("go")
        (place / "src/a.py").write_text("changed")
    s.rewind(before=ask, conversation=False)
    assert (place / "src/a.py").read_bytes() == b"one\r\ntwo\n"
    assert len(s.messages()) == 1
    s.undo()
    s.rewind(before=ask, files=False)
    assert (place / "src/a.py").read_text() == "changed"
    assert s.messages() == []


def test_only_the_chosen_paths_go_back(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "src/a.py").write_text("changed")
        (place / "old/c.txt").write_text("changed")
    s.rewind(turns=1, only=["src"])
    assert (place / "src/a.py").read_bytes() == b"one\r\ntwo\n"
    assert (place / "old/c.txt").read_text() == "changed"


def test_the_diff_of_a_turn_shows_what_the_shell_did(home, place: Path):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        subprocess.run(
            "sed -i s/one/1/ src/a.py && rm old/c.txt && chmod 700 src/b.py", shell=True, check=True, cwd=place
        )
    found = {item.path: item for item in s.diff(turn=1)}
    assert {path: item.action for path, item in found.items()} == {
        "src/a.py": "modified", "old/c.txt": "deleted", "src/b.py": "mode",
    }  # fmt: skip
    assert "-one" in found["src/a.py"].lines
    assert "+1" in found["src/a.py"].lines


def test_a_link_on_the_way_is_not_followed(home, place: Path, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.txt").write_text("not yours")
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "old/c.txt").write_text("changed")
    (place / "old/c.txt").unlink()
    (place / "old").rmdir()
    (place / "old").symlink_to(outside)
    s.rewind(turns=1, force=True)
    assert (outside / "c.txt").read_text() == "not yours"


@pytest.mark.parametrize("abort", [False, True], ids=["continued", "aborted"])
def test_an_interrupted_rewind_is_finished_or_taken_back(home, place: Path, abort: bool, monkeypatch):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        s.user("go")
        work(place)
    after = everything(place)
    total = len(s.plan_rewind(turns=1).to_do)
    for steps in range(total + 1):
        session = home.resume(s.id)

        def stop_after(self, todo, steps=steps, whole=Restorer.run):
            for index, outcome in enumerate(whole(self, todo)):
                yield outcome
                if index + 1 >= steps:
                    raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Restorer, "run", stop_after)
            with pytest.raises(KeyboardInterrupt):
                session.rewind(turns=1)
        again = home.resume(s.id)
        assert again.interrupted()
        again.finish_rewind(abort=abort)
        assert everything(place) == (after if abort else before)
        assert not home.resume(s.id).interrupted()
        if not abort:
            again.undo()
            assert everything(place) == after


def test_what_the_user_did_to_an_interrupted_rewind_stays(home, place: Path, monkeypatch):
    s = home.create(workspace=place)
    with s.turn():
        s.user("go")
        (place / "src/a.py").write_text("agent")
        (place / "src/b.py").write_text("agent")
    monkeypatch.setattr(Rewinder, "_done", _die)
    with pytest.raises(KeyboardInterrupt):
        s.rewind(turns=1)
    monkeypatch.undo()
    (place / "src/a.py").write_text("the user went on")
    again = home.resume(s.id)
    again.finish_rewind()
    assert (place / "src/a.py").read_text() == "the user went on"
    assert (place / "src/b.py").read_text() == "b\n"


def _die(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_damaged_blob_is_refused_and_the_others_are_restored(tmp_path: Path, place: Path):
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        s = home.create(workspace=place)
        (place / "noise").write_bytes(os.urandom(200_000))
        with s.turn():
            s.user("go")
            (place / "noise").write_bytes(b"gone")
            (place / "src/a.py").write_text("changed")
        for pack in (tmp_path / "home/blobs").glob("*.pack"):
            data = bytearray(pack.read_bytes())
            if len(data) > 200_000:
                data[100_000] ^= 0xFF
                pack.write_bytes(data)
        head = s.rewind(turns=1)
        assert head.files == {"modify": 1, "kept": 1}
        assert (place / "noise").read_bytes() == b"gone"
        assert (place / "src/a.py").read_bytes() == b"one\r\ntwo\n"


def test_the_home_folder_is_never_scanned(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with turnlog.open(tmp_path / "home", checkpoints=True) as home:
        for folder in (tmp_path, tmp_path.parent, Path("/")):
            with pytest.raises(turnlog.Invalid):
                home.create(workspace=folder).checkpoint()


def test_a_fork_goes_back_to_a_checkpoint_of_its_parent(home, place: Path):
    s = home.create(workspace=place)
    before = everything(place)
    with s.turn():
        ask = s.user("go")
        work(place)
    fork = s.fork()
    fork.rewind(before=ask)
    assert everything(place) == before


def test_plans_and_differences_name_paths_alike(home: turnlog.Home, tmp_path: Path):
    place = tmp_path / "alike"
    place.mkdir()
    s = home.create(workspace=place)
    first = s.checkpoint()
    names = [b"plain", b"caf\xe9"]
    for name in names:
        (place / os.fsdecode(name)).write_text("x")
    steps, found = s.plan_rewind(to=first).steps, s.diff(first)
    assert {step.path for step in steps} == {item.path for item in found} == {"plain", "bytes:caf%E9"}
    assert {step.raw for step in steps} == set(names)


def test_what_is_done_is_the_plan_that_was_shown_or_nothing(home, place: Path):
    with home.create(workspace=place) as s:
        before = everything(place)
        with s.turn():
            work(place)
        after, target = everything(place), s.checkpoints()[0].seq
        shown = s.plan_rewind(target)
        assert shown.digest == s.plan_rewind(target).digest
        (place / "src/a.py").write_text("somebody else\n")
        changed, count = everything(place), s.seq
        with pytest.raises(Conflict, match="since the plan was shown"):
            s.rewind(target, plan=shown.digest)
        assert (everything(place), s.seq) == (changed, count)
        (place / "src/a.py").write_text("changed\n")
        (place / "src/a.py").chmod(0o600)
        assert everything(place) == after
        s.rewind(target, plan=s.plan_rewind(target).digest)
        assert everything(place) == before
        with pytest.raises(Conflict):
            s.undo(plan=shown.digest)
        s.undo(plan=s.plan_undo().digest)
        assert everything(place) == after
        s.redo(plan=s.plan_redo().digest)
        assert everything(place) == before
