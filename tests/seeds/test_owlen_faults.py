"""What breaks Owlen does not break Turnlog."""

import os
import subprocess
import sys

import pytest

import turnlog
from tests.seeds.scene import everything_below, texts
from turnlog.workspace.restore import Restorer


@pytest.fixture
def s(home, project):
    return home.create(workspace=project)


def test_a_file_that_was_not_there_is_removed_and_not_emptied(s, project):
    """Owlen "restores" a file that did not exist as an empty one."""
    with s.turn():
        s.user("go")
        (project / "new.txt").write_text("new")
        (project / "deep/er").mkdir(parents=True)
        (project / "deep/er/x.txt").write_text("x")
    s.rewind(turns=1)
    assert sorted(path.name for path in project.rglob("*")) == ["a.txt", "b.txt"]


def test_binary_files_come_back_to_the_byte(s, project):
    """Owlen takes what it cannot read as text for empty: a binary file is rewound to 0 bytes."""
    binary = bytes(range(256)) * 20
    (project / "logo.png").write_bytes(binary)
    with s.turn():
        s.user("go")
        (project / "logo.png").write_text("now text")
    s.rewind(turns=1)
    assert (project / "logo.png").read_bytes() == binary


def test_a_change_from_binary_to_binary_is_seen(s, project):
    """Owlen does not see it at all: both are "" to it."""
    (project / "x.bin").write_bytes(b"\xff\xfe\x00one")
    before = s.checkpoint("before")
    (project / "x.bin").write_bytes(b"\xff\xfe\x00two")
    assert [(item.path, item.action) for item in s.diff(before)] == [("x.bin", "modified")]


def test_a_rewind_goes_to_the_checkpoint_and_not_before_it(s, project):
    """Owlen goes to what was there before the changes that the checkpoint holds, and forgets later ones."""
    with s.turn():
        s.user("one")
        (project / "a.txt").write_text("v2")
    named = s.checkpoint("v2")
    with s.turn():
        s.user("two")
        (project / "a.txt").write_text("v3")
        (project / "b.txt").write_text("changed later")
    with s.turn():
        s.user("three")
        (project / "a.txt").write_text("v4")
    s.rewind(to=named)
    assert ((project / "a.txt").read_text(), (project / "b.txt").read_text()) == ("v2", "two\n")


def test_what_the_user_edited_since_is_not_overwritten(s, project):
    """Owlen reverts a person's edits silently."""
    with s.turn():
        s.user("go")
        (project / "a.txt").write_text("v2 by the agent")
    (project / "a.txt").write_text("v3 by the user")
    plan = s.plan_rewind(turns=1)
    assert [(step.raw, step.action) for step in plan.steps] == [(b"a.txt", "conflict")]
    s.rewind(turns=1)
    assert (project / "a.txt").read_text() == "v3 by the user"


def test_a_rewind_can_be_looked_at_first_and_taken_back_later(s, project):
    """Owlen has neither preview nor undo."""
    with s.turn():
        s.user("go")
        (project / "a.txt").write_text("v2")
    assert [step.action for step in s.plan_rewind(turns=1).steps] == ["modify"]
    assert (project / "a.txt").read_text() == "v2"
    s.rewind(turns=1)
    assert (project / "a.txt").read_text() == "one\n"
    s.undo()
    assert ((project / "a.txt").read_text(), texts(s.messages())) == ("v2", ["go"])


def test_one_file_that_cannot_be_restored_does_not_stop_the_others(home, s, project, folder):
    """Owlen stops at the first error, half-way."""
    noise = os.urandom(3_000)
    (project / "m.bin").write_bytes(noise)
    with s.turn():
        s.user("go")
        for name in ("a.txt", "m.bin", "z.txt"):
            (project / name).write_text("v2")
    (pack,) = [path for path in (folder / "blobs").glob("*.pack") if noise in path.read_bytes()]
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes().replace(noise, bytes(3_000)))
    with turnlog.open(folder) as other:
        again = other.resume(s.id)
        again.rewind(turns=1)
        assert [problem.step.raw for problem in again.problems()] == [b"m.bin"]
    assert (project / "a.txt").read_text() == "one\n"
    assert (project / "m.bin").read_text() == "v2"
    assert not (project / "z.txt").exists()


def test_a_rewind_that_is_interrupted_is_finished(home, s, project, monkeypatch):
    """Whatever stops Owlen half-way leaves the files half-way."""
    with s.turn():
        s.user("go")
        (project / "a.txt").write_text("v2")
        (project / "b.txt").write_text("v2")

    def stop_after_one(self, todo, whole=Restorer.run):
        for outcome in whole(self, todo):
            yield outcome
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Restorer, "run", stop_after_one)
        with pytest.raises(KeyboardInterrupt):
            s.rewind(turns=1)
    again = home.resume(s.id)
    assert again.interrupted()
    again.finish_rewind()
    assert [(project / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "two\n"]


def test_folders_that_are_gone_are_made_again(s, project):
    """Owlen cannot write a file whose folder was removed."""
    (project / "deep/er").mkdir(parents=True)
    (project / "deep/er/x.txt").write_text("x")
    with s.turn():
        s.user("go")
        subprocess.run(["rm", "-r", project / "deep"], check=True)
    s.rewind(turns=1)
    assert (project / "deep/er/x.txt").read_text() == "x"


def test_a_link_that_the_agent_made_is_not_followed(s, project, tmp_path):
    """Owlen writes through links, to wherever they lead."""
    outside = tmp_path / "outside.txt"
    outside.write_text("not yours")
    with s.turn():
        s.user("go")
        (project / "a.txt").unlink()
        (project / "a.txt").symlink_to(outside)
    s.rewind(turns=1)
    assert outside.read_text() == "not yours"
    assert not (project / "a.txt").is_symlink()
    assert (project / "a.txt").read_text() == "one\n"


def test_modes_come_back(s, project):
    """Owlen knows nothing of modes."""
    (project / "a.txt").chmod(0o755)
    with s.turn():
        s.user("go")
        (project / "a.txt").write_text("v2")
        (project / "a.txt").chmod(0o644)
    s.rewind(turns=1)
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o755


def test_a_checkpoint_that_is_listed_can_be_restored_after_a_crash(folder, project):
    """Owlen writes a checkpoint in place: a torn one is listed and cannot be loaded."""
    code = (
        "import os, signal, sys, turnlog\n"
        "home, project = sys.argv[1:]\n"
        "s = turnlog.open(home).create(id='one', workspace=project)\n"
        "s.checkpoint('before')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, folder, project])
    assert done.returncode == -9
    (project / "a.txt").write_text("changed")
    with turnlog.open(folder) as home:
        again = home.resume("one")
        (named,) = again.checkpoints()
        again.rewind(to=named)
    assert (project / "a.txt").read_text() == "one\n"


def test_two_checkpoints_of_one_name_are_two(s, project):
    """With Owlen the second silently overwrites the first."""
    first = s.checkpoint("same")
    (project / "a.txt").write_text("v2")
    second = s.checkpoint("same")
    assert [checkpoint.id for checkpoint in s.checkpoints()] == [first.id, second.id]
    s.rewind(to=first)
    assert (project / "a.txt").read_text() == "one\n"


def test_a_name_is_only_a_name(s, folder, tmp_path):
    """Owlen makes a path of it: `../../x` is written elsewhere."""
    before = {path for path in tmp_path.rglob("*") if folder not in path.parents}
    s.checkpoint("../../../esc")
    assert [checkpoint.label for checkpoint in s.checkpoints()] == ["../../../esc"]
    assert {path for path in tmp_path.rglob("*") if folder not in path.parents} == before


def test_the_order_is_that_of_time(s):
    """Owlen sorts names as text: 9 comes after 10."""
    labels = [f"checkpoint-{number}" for number in (8, 9, 10, 11)]
    for label in labels:
        s.checkpoint(label)
    assert [checkpoint.label for checkpoint in s.checkpoints()] == labels


def test_a_diff_has_the_same_order_every_time(s, project):
    """The order of Owlen's diffs is random."""
    before = s.checkpoint("before")
    for number in range(30):
        (project / f"{number:02}.txt").write_text("x")
    after = s.checkpoint("after")
    paths = [item.path for item in s.diff(before, after)]
    assert paths == sorted(paths)
    assert [item.path for item in s.diff(before, after)] == paths


def test_order_roles_ids_and_times_are_kept(home, s):
    """Three lists side by side, without ids or times: who said what when is lost in Owlen's checkpoints."""
    said = [s.user("one"), s.assistant("1"), s.user("two"), s.note("for people"), s.assistant("2")]
    kept = [entry for entry in home.resume(s.id).entries() if entry.id in {e.id for e in said}]
    assert kept == said


def test_changes_nobody_announced_are_covered(s, project):
    """Owlen must be told of a file before it is changed, and forgets that when it saves."""
    s.checkpoint("one")
    with s.turn():
        s.user("go")
        subprocess.run("echo shell > a.txt; echo more > untold.txt", shell=True, check=True, cwd=project)
    s.rewind(turns=1)
    assert (project / "a.txt").read_text() == "one\n"
    assert not (project / "untold.txt").exists()


def test_a_content_is_kept_once_and_what_is_ignored_not_at_all_if_nobody_wants_it(project, folder):
    """Owlen keeps every content twice in every checkpoint, secrets included."""
    s = turnlog.open(folder, covers_ignored=False).create(workspace=project)
    big = os.urandom(40_000)
    (project / "big.bin").write_bytes(big)
    (project / ".gitignore").write_text(".env\n")
    (project / ".env").write_text("PASSWORD=do-not-keep-me")
    for number in range(5):
        (project / "a.txt").write_text(f"{number}")
        s.checkpoint(f"{number}")
    stored = everything_below(folder)
    assert stored.count(big[:1000]) == 1
    assert len(stored) < 80_000
    assert b"do-not-keep-me" not in stored


def test_a_crash_before_any_checkpoint_loses_nothing(folder):
    """What Owlen has not put into a checkpoint is in memory only."""
    code = (
        "import os, signal, sys, turnlog\n"
        "s = turnlog.open(sys.argv[1]).create(id='one')\n"
        "s.user('said'); s.assistant('answered')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, folder]).returncode == -9
    with turnlog.open(folder) as home:
        assert texts(home.resume("one").messages()) == ["said", "answered"]
