"""A session that is only looked at: nothing is locked, nothing is settled, nothing is written."""

import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.nobody import as_nobody
from turnlog import Text, ToolCall, Usage
from turnlog.errors import Invalid, NotFound, TurnlogError
from turnlog.session import ReadOnlySession


def whole(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Every file and folder below a place: its bytes, its time, its mode."""
    found: dict[str, tuple[bytes, int, int]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        data = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = data, status.st_mtime_ns, status.st_mode
    return found


def talk(session: Any) -> Any:
    session.user("one")
    session.assistant(
        [Text("ONE"), ToolCall(id="c", name="read", input={"path": "a"})], model="m", usage=Usage(input_tokens=5)
    )
    session.tool_result("c", "a" * 100_000)
    session.set("title", "A title")
    session.set("mood", "good")
    return session


def everything(session: Any) -> list[Any]:
    """What anybody may ask of a session without changing it."""
    return [
        session.id,
        session.handle,
        session.head,
        session.title,
        session.workspace,
        session.agent,
        session.labels,
        session.facts,
        session.get("mood"),
        session.messages(),
        session.messages(last=1),
        session.path(),
        session.context().messages,
        session.context().system,
        session.pending(),
        list(session.entries()),
        session.find(session.messages()[0].id),
        session.branches(),
        session.usage(),
        session.cost(),
        session.stats(),
        session.preview(),
        session.compactions(),
        session.checkpoints(),
        session.children(),
        session.interrupted(),
        session.damage,
    ]


def test_it_says_what_the_session_says(home, s):
    talk(s)
    s.spawn(agent="helper").assistant("done", model="m", usage=Usage(output_tokens=3))
    s.compact("short", keep=1)
    s.rewind(before=s.messages()[-1])
    with home.read(s.id) as found:
        assert everything(found) == everything(s)


def test_it_can_only_be_looked_at(home, s):
    with home.read(s.id) as found:
        for name in ("append", "user", "set", "turn", "compact", "rewind", "undo", "checkpoint", "fork", "spawn"):
            assert hasattr(s, name)
            assert not hasattr(found, name)


def test_it_stays_as_it_was_until_it_looks_again(home, s):
    s.user("one")
    with home.read(s.id) as found:
        s.user("two")
        assert len(found.messages()) == 1
        found.refresh()
        assert len(found.messages()) == 2


def test_it_follows_whoever_writes(home, s):
    with home.read(s.id) as found:
        s.user("one")
        for entry in found.follow(after=0):
            if entry.type == "message":
                break


def test_the_newest_one_is_read_without_an_id(home, s):
    s.user("one")
    with home.read() as found:
        assert found.id == s.id
    with pytest.raises(Invalid):
        home.read(s.id, workspace="/somewhere")


def test_only_the_whole_id_will_do(home, s):
    s.user("one")
    for name in (s.id[:-1], "nobody", "", "../x"):
        with pytest.raises(NotFound):
            home.read(name)
    with pytest.raises(Invalid):
        home.read(5)


def test_a_deleted_session_can_be_read_and_a_purged_one_is_gone(home, s):
    s.user("one")
    s.fork()
    home.delete(s.id)
    with home.read(s.id) as found:
        assert len(found.messages()) == 1
    home.purge(s.id)
    with pytest.raises(NotFound):  # although what its fork needs is kept
        home.read(s.id)


def test_a_fork_whose_parents_were_purged_is_whole(home, s):
    talk(s)
    child = s.fork()
    child.user("child")
    grandchild = child.fork()
    grandchild.user("grandchild")
    before = everything(grandchild)
    for name in (s.id, child.id):
        home.purge(name)
    with home.read(grandchild.id) as found:
        assert everything(found) == before
        assert found.messages()[0].blocks[0].text == "one"


def test_it_is_closed_with_its_home(place):
    home = place.open()
    session = home.create()
    session.user("one")
    found = home.read(session.id)
    home.close()
    plain = found._target._blocking if place.face == "aio" else found
    assert plain.is_closed


# ── on a disk ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def project(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    return work


@pytest.fixture
def folder(tmp_path: Path, project: Path) -> Path:
    return fill(tmp_path / "home", project)


def fill(place: Path, project: Path) -> Path:
    """A home with a session that has turns, files, a large payload, a rewind, a fork and a subagent."""
    (project / "a.txt").write_text("one\n")
    with turnlog.open(place) as home:
        session = home.create(id="s", workspace=project)
        with session.turn():
            talk(session)
            (project / "a.txt").write_text("two\n")
        with session.turn():
            session.user("more")
            (project / "b.txt").write_text("new\n")
        session.rewind(turns=1)
        session.fork(id="fork").user("on")
        session.spawn(id="child").user("help")
    return place


def looked_at(session: ReadOnlySession, out: Path) -> list[Any]:
    found = [
        *everything(session),
        session.diff(turn=1),
        session.diff(*session.checkpoints()[:2]),
        session.diff(session.checkpoints()[0]),
        session.plan_rewind(to=0).steps,
        session.plan_undo().steps,
    ]
    for agent in ("claude-code", "codex"):
        session.export(agent, f"{out}/{agent}/")
    return found


def test_nothing_in_the_home_changes(folder: Path, tmp_path: Path):
    before = whole(folder)
    with turnlog.open(folder) as home:
        for name in ("s", "fork", "child"):
            with home.read(name) as session:
                everything(session)
        with home.read("s") as session:
            looked_at(session, tmp_path / "out")
    assert whole(folder) == before


def test_it_reads_beside_whoever_holds_the_lock(folder: Path):
    """A process holds the session's file, and the blobs, for itself alone."""
    program = (
        "import fcntl, os, sys\n"
        "for path in sys.argv[1:]:\n"
        "    fcntl.flock(os.open(path, os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    locked = [str(path) for path in [*(folder / "sessions").iterdir(), folder / ".blobs.lock"]]
    holder = subprocess.Popen(
        [sys.executable, "-c", program, *locked], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = whole(folder)
        with turnlog.open(folder) as home, home.read("s") as session:
            looked_at(session, folder.parent / "out")
        assert whole(folder) == before
    finally:
        holder.communicate("")


@pytest.mark.parametrize("tail", [b'{"type":"message","id":"x","seq":', b"\0" * 100, b"\n{}\n"])
def test_after_a_torn_write_it_shows_what_was_acknowledged_and_settles_nothing(folder: Path, tail: bytes):
    with turnlog.open(folder) as home, home.read("s") as session:
        known = session.messages()
        seqs = [entry.seq for entry in session.entries()]
    (path,) = (path for path in (folder / "sessions").iterdir() if path.name.startswith("s."))
    path.write_bytes(path.read_bytes() + tail)
    before = whole(folder)
    with turnlog.open(folder) as home, home.read("s") as session:
        assert session.messages() == known
        assert [entry.seq for entry in session.entries()] == seqs
    assert whole(folder) == before
    with turnlog.open(folder) as home, home.resume("s") as session:
        session.user("and on")
        assert session.messages()[:-1] == known


def test_it_works_where_nobody_may_write(tmp_path: Path):
    with tempfile.TemporaryDirectory() as place:
        folder, project, out = Path(place) / "home", Path(place) / "work", Path(place) / "out"
        project.mkdir()
        fill(folder, project)
        with turnlog.open(folder) as home, home.read("s") as session:
            known = looked_at(session, out)  # root loads here what nobody else may
        out.chmod(0o777)
        paths = [folder, *folder.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        for path in (Path(place), project):
            path.chmod(0o755)
        before = whole(folder)
        try:
            told = as_nobody(lambda: look_and_try_to_write(folder, out, known))
        finally:
            for path in paths:
                path.chmod(0o755)
        assert told == "all of it; not written"
        assert {path: data for path, (data, _, _) in whole(folder).items()} == {
            p: data for p, (data, _, _) in before.items()
        }


def look_and_try_to_write(folder: Path, out: Path, known: list[Any]) -> str:
    with turnlog.open(folder) as home:
        with home.read("s") as session:
            told = "all of it" if looked_at(session, out / "again") == known else "something else"
        try:
            home.resume("s").user("no")
        except TurnlogError:
            return f"{told}; not written"
    return f"{told}; written"


def test_the_program_in_the_guide_runs(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    guide = (Path(__file__).parents[2] / "docs" / "guide" / "reading.md").read_text()
    program = guide.split("```python\n")[1].split("```")[0].replace("home.read()", 'home.read("s")')
    monkeypatch.setenv("TURNLOG_HOME", str(folder))
    monkeypatch.chdir(tmp_path)
    before = whole(folder)
    exec(compile(program, "reading.md", "exec"), {})
    assert (tmp_path / "for-claude.jsonl").stat().st_size > 0
    assert whole(folder) == before
