"""Files of other agents that are kept: to the byte, in a sixth of the room, whatever interrupts it."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from turnlog.errors import Corrupt, Unsupported
from turnlog.exchange.exporting.handover import hand_over
from turnlog.exchange.keeping import keptframe, run
from turnlog.exchange.keeping.keptfile import KeptFiles
from turnlog.exchange.keeping.run import Keeping
from turnlog.machine.keepstate import KeepState

RECORDED = Path(__file__).parent.parent / "formats/agents"


@pytest.fixture
def kept(tmp_path: Path) -> KeptFiles:
    return KeptFiles(str(tmp_path / "home"))


def said(kept: KeptFiles, path: Path) -> bytes:
    return b"".join(kept.data("a", str(path)))


def write(path: Path, data: bytes) -> None:
    """As another program does, at another time than before."""
    before = path.stat().st_mtime_ns if path.exists() else 0
    path.write_bytes(data)
    os.utime(path, ns=(before + 5_000_000_000, before + 5_000_000_000))


def test_what_grows_is_kept_piece_by_piece_and_takes_less_than_half_the_room(kept: KeptFiles, tmp_path: Path) -> None:
    whole = max(RECORDED.rglob("*.jsonl"), key=os.path.getsize).read_bytes()
    path = tmp_path / "s.jsonl"
    for part in range(1, 31):
        write(path, whole[: len(whole) * part // 30])
        assert kept.keep("a", str(path))
        assert not kept.keep("a", str(path))
        assert said(kept, path) == path.read_bytes()
    assert os.path.getsize(kept.path_of("a", str(path))) < len(whole) / 2
    assert Path(kept.path_of("a", str(path))).stat().st_mode & 0o777 == 0o600


def test_all_that_was_recorded_takes_less_than_half_the_room(kept: KeptFiles) -> None:
    files = [path for path in RECORDED.rglob("*.json*") if path.is_file()]
    for path in files:
        kept.keep("a", str(path))
    assert kept.bytes_of("a") < sum(map(os.path.getsize, files)) / 2
    assert len(list(kept.every("a"))) == len(files) > 50


@settings(max_examples=25)
@given(st.data())
def test_a_writing_that_is_cut_anywhere_costs_nothing_that_was_kept(tmp_path_factory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("kept")
    kept, path = KeptFiles(str(folder / "home")), folder / "s.jsonl"
    write(path, b"one line\n" * 40)
    kept.keep("a", str(path))
    place = Path(kept.path_of("a", str(path)))
    first = place.read_bytes()
    write(path, path.read_bytes() + b"another line\n" * 7)
    kept.keep("a", str(path))
    cut = data.draw(st.integers(len(first), place.stat().st_size - 1))
    lost = data.draw(st.booleans())
    whole = place.read_bytes()
    place.write_bytes(whole[:cut] + b"\0" * (len(whole) - cut) * lost)  # or the rest never reached the disk
    assert said(kept, path) == b"one line\n" * 40
    os.utime(path)
    assert kept.keep("a", str(path))
    assert said(kept, path) == path.read_bytes()


def test_what_was_kept_is_read_wherever_the_last_writing_stopped(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"one line\n" * 40)
    kept.keep("a", str(path))
    place = Path(kept.path_of("a", str(path)))
    begin = place.stat().st_size
    write(path, path.read_bytes() + b"another line\n" * 7)
    kept.keep("a", str(path))
    whole = place.read_bytes()
    for cut in range(begin, len(whole)):
        for rest in (b"", bytes(len(whole) - cut)):  # or the rest never reached the disk
            place.write_bytes(whole[:cut] + rest)
            assert said(kept, path) == b"one line\n" * 40, (cut, rest)


def test_one_that_was_written_anew_and_shorter_does_not_take_the_place_of_more(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for text in (b"all of it", b"less", b"something else and more of it"):
        write(path, text)
        assert kept.keep("a", str(path))
        assert said(kept, path) == text
    before = KeptFiles(str(tmp_path / "other"))
    longer = Path(kept.path_of("a", str(path)).removesuffix(".zst") + ".before")
    Path(before.path_of("a", str(path))).parent.mkdir(parents=True)
    longer.rename(before.path_of("a", str(path)))
    assert said(before, path) == b"all of it"


def test_what_is_damaged_is_told_and_not_put_back(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"some line\n" * 100)
    kept.keep("a", str(path))
    place = Path(kept.path_of("a", str(path)))
    data = bytearray(place.read_bytes())
    data[-6] ^= 1
    place.write_bytes(data)
    path.unlink()
    with pytest.raises(Corrupt, match="is not what was written"):
        kept.restore("a", str(path))
    assert not path.exists()


@settings(max_examples=300)
@given(st.data())
def test_a_bit_that_flips_anywhere_never_makes_a_session_shorter(tmp_path_factory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("kept")
    kept, path = KeptFiles(str(folder / "home")), folder / "s.jsonl"
    for number in range(3):
        write(path, (path.read_bytes() if number else b"") + b"one line\n" * 40)
        kept.keep("a", str(path))
    place = Path(kept.path_of("a", str(path)))
    damaged = bytearray(place.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    place.write_bytes(damaged)
    whole = path.read_bytes()
    try:
        assert said(kept, path) == whole
    except Corrupt as error:
        assert "is not what was written" in error.message
    write(path, whole + b"another line\n")
    assert kept.keep("a", str(path)), "keeping goes on"


def test_of_what_is_damaged_and_kept_anew_nothing_is_thrown_away(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"some line\n" * 100)
    kept.keep("a", str(path))
    place = Path(kept.path_of("a", str(path)))
    damaged = place.read_bytes().replace(b'"length"', b'"lengsh"')
    place.write_bytes(damaged)
    write(path, b"what its agent has now\n")
    assert kept.keep("a", str(path))
    assert said(kept, path) == path.read_bytes()
    assert place.with_name("s.jsonl.before").read_bytes() == damaged


def test_every_longer_state_of_a_file_stays_however_often_it_shrinks(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for text in (b"all of it, and more", b"all of it", b"less"):
        write(path, text)
        assert kept.keep("a", str(path))
    assert said(kept, path) == b"less"
    other = KeptFiles(str(tmp_path / "other"))
    place = Path(other.path_of("a", str(path)))
    place.parent.mkdir(parents=True)
    longer: list[bytes] = []
    for name in ("s.json.before", "s.json.before.2"):
        place.write_bytes(Path(kept.path_of("a", str(path))).with_name(name).read_bytes())
        longer.append(said(other, path))
    assert longer == [b"all of it, and more", b"all of it"]


def test_what_lies_beside_kept_files_is_none_of_the_session(kept: KeptFiles, tmp_path: Path) -> None:
    main, inner = tmp_path / "p/s.jsonl", tmp_path / "p/s/subagents/agent-1.jsonl"
    for path in (main, inner):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, b"all of it\n")
        kept.keep("a", str(path))
    write(inner, b"less\n")
    kept.keep("a", str(inner))
    stray = Path(f"{kept.path_of('a', str(inner))}.123.tmp")
    stray.write_bytes(b"half of")
    main.unlink()
    inner.unlink()
    with kept.unpacked("a", str(main)) as there:
        assert Path(there).read_bytes() == b"all of it\n"
    assert kept.restore("a", str(main)) == [str(main), str(inner)]
    assert [path.name for path in inner.parent.iterdir()] == ["agent-1.jsonl"]
    write(inner, b"an\n")
    kept.keep("a", str(inner))
    assert not stray.exists()


def test_a_session_comes_back_with_all_that_belongs_to_it_and_nothing_is_written_over(
    kept: KeptFiles, tmp_path: Path
) -> None:
    names = ["p/s.jsonl", "p/s/subagents/agent-1.jsonl", "p/s/subagents/agent-1.meta.json", "p/other.jsonl"]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
        kept.keep("a", str(tmp_path / name))
        (tmp_path / name).unlink()
    (tmp_path / names[1]).write_text("somebody's")
    assert kept.restore("a", str(tmp_path / names[0])) == [str(tmp_path / names[0]), str(tmp_path / names[2])]
    assert [(tmp_path / name).exists() for name in names] == [True, True, True, False]
    assert (tmp_path / names[1]).read_text() == "somebody's"
    (tmp_path / names[0]).unlink()
    with kept.unpacked("a", str(tmp_path / names[0])) as there:
        assert Path(there).read_text() == names[0]
        assert Path(there).with_suffix("").joinpath("subagents/agent-1.jsonl").read_text() == names[1]
    assert not os.path.exists(there)


def becomes(path: Path, data: bytes, monkeypatch: pytest.MonkeyPatch, *, at_look: int) -> None:
    """Its agent writes a file anew, in place, while it is kept: at one of the looks that are taken at its bytes."""
    looks, proof_of = [0], keptframe.proof_of

    def proof(file, size: int) -> bytes:
        looks[0] += 1
        if looks[0] == at_look:
            path.write_bytes(data)
        return proof_of(file, size)

    monkeypatch.setattr(keptframe, "_CHUNK", 50)
    monkeypatch.setattr(keptframe, "proof_of", proof)
    monkeypatch.setattr("turnlog.exchange.keeping.keptfile.proof_of", proof)


@pytest.mark.parametrize("at_look", [2, 3])
@pytest.mark.parametrize("data", [b"", b"b" * 30, b"b" * 60, b"b" * 100, b"b" * 150])
def test_one_that_is_written_anew_while_it_is_kept_is_kept_whole_or_not_yet(
    kept: KeptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, at_look: int
) -> None:
    path = tmp_path / "s.json"
    write(path, b"a" * 100)
    becomes(path, data, monkeypatch, at_look=at_look)
    with pytest.raises(OSError, match="wrote it anew"):
        kept.keep("a", str(path))
    assert not list(Path(kept.folder).rglob("*.*"))
    assert kept.keep("a", str(path))
    assert said(kept, path) == data


@pytest.mark.parametrize("at_look", [2, 3, 4])
def test_one_that_is_written_anew_while_more_of_it_is_kept_costs_nothing_that_was(
    kept: KeptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_look: int
) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"a" * 40)
    assert kept.keep("a", str(path))
    write(path, b"a" * 140)
    becomes(path, b"b" * 45, monkeypatch, at_look=at_look)
    with pytest.raises(OSError, match="wrote it anew"):
        kept.keep("a", str(path))
    assert said(kept, path) == b"a" * 40
    assert kept.keep("a", str(path))
    assert said(kept, path) == b"b" * 45


def test_all_that_a_file_grew_by_is_kept_however_much(
    kept: KeptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keptframe, "_CHUNK", 50)
    path = tmp_path / "s.jsonl"
    for size in (10, 300):
        write(path, b"a" * size)
        assert kept.keep("a", str(path))
        assert said(kept, path) == b"a" * size


def test_progress_is_written_down_now_and_then_and_not_after_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "person/.claude/projects/-work"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    recorded = min((RECORDED / "claude-code/recorded/projects").rglob("*.jsonl"), key=os.path.getsize).read_bytes()
    for name in ("a", "b"):
        (folder / f"{name}.jsonl").write_bytes(recorded)
    for number in range(30):
        (folder / f"other {number}.txt").write_text("nothing of a session")
    written: list[str] = []
    put_file = run.put_file

    def put(path: str, *given, **named) -> None:
        written.append(os.path.basename(path))
        put_file(path, *given, **named)

    monkeypatch.setattr(run, "put_file", put)
    monkeypatch.setattr(run, "_OFTEN", 2)
    home = str(tmp_path / "home")
    KeepState(home).choose(["claude-code"])
    assert Keeping(home).run().files == 2
    assert len(written) == 3, "after two files, at the end, and the report"


def test_what_its_agent_deletes_while_it_is_looked_at_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "person/.claude/projects/-work"
    folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    recorded = max((RECORDED / "claude-code/recorded/projects").rglob("*.jsonl"), key=os.path.getsize).read_bytes()
    for name in ("gone", "stays"):
        (folder / f"{name}.jsonl").write_bytes(recorded)
    (folder / "nowhere.jsonl").symlink_to(tmp_path / "nothing")
    stat = os.stat

    def looked(path, **more):
        status = stat(path, **more)
        if str(path).endswith("gone.jsonl"):
            os.unlink(path)
        return status

    monkeypatch.setattr(os, "stat", looked)
    home = str(tmp_path / "home")
    KeepState(home).choose(["claude-code"])
    report = Keeping(home).run()
    assert (report.files, report.problems) == (1, {})
    assert KeptFiles(home).has("claude-code", str(folder / "stays.jsonl"))


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("CLAUDE_CONFIG_DIR", "RHO_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    return tmp_path / "person"


def session_of(person: Path, name: str = "s") -> Path:
    path = person / f".claude/projects/-work/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    recorded = (RECORDED / "claude-code/recorded/projects").rglob("*.jsonl")
    path.write_bytes(min(recorded, key=os.path.getsize).read_bytes())
    os.utime(path, (1, 1))
    return path


def test_a_copy_that_is_gone_is_made_again(person: Path, kept: KeptFiles, tmp_path: Path) -> None:
    path = session_of(person)
    (path.parent / "other.txt").write_text("nothing of a session")
    home = str(tmp_path / "home")
    KeepState(home).choose(["claude-code"])
    assert Keeping(home).run().files == 1
    assert Keeping(home).run().files == 0
    os.unlink(kept.path_of("claude-code", str(path)))
    assert Keeping(home).run().files == 1
    assert kept.has("claude-code", str(path))


def test_what_is_kept_does_not_depend_on_the_current_folder(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = str(tmp_path / "home")
    with turnlog.open(home) as opened:
        for name in ("a", "b"):
            (person / name).mkdir(parents=True)
            with opened.create(id=name, workspace=person / name) as session:
                session.user("where is the needle?")
                session.assistant("in the haystack")
                hand_over(session, "rho")
    KeepState(home).choose(["rho"])
    monkeypatch.chdir(tmp_path)
    assert Keeping(home).run().files == 2


@pytest.mark.parametrize("agent", ["aider", "owlen", "sofos"])
def test_an_agent_with_sessions_in_every_workspace_is_refused(person: Path, agent: str) -> None:
    with pytest.raises(Unsupported, match="the folders that it works in"):
        run.check_keepable(agent)


def test_the_name_of_a_copy_is_durable_before_it_counts_as_kept(
    kept: KeptFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"one line\n")
    synced: list[tuple[int, bool]] = []
    target, fsync = Path(kept.path_of("a", str(path))), os.fsync

    def sync(fd: int) -> None:
        fsync(fd)
        synced.append((os.fstat(fd).st_ino, target.exists()))

    monkeypatch.setattr(os, "fsync", sync)
    assert kept.keep("a", str(path))
    assert synced[-1] == (target.parent.stat().st_ino, True)
    assert {folder.stat().st_ino for folder in target.parents if tmp_path in folder.parents} <= {
        ino for ino, _ in synced
    }


def test_a_file_without_a_suffix_has_no_family_in_a_folder_above_it(kept: KeptFiles, tmp_path: Path) -> None:
    notes, other = tmp_path / "john.doe/notes", tmp_path / "john/s.jsonl"
    for path in (notes, other):
        path.parent.mkdir()
        write(path, b"one line\n")
        kept.keep("a", str(path))
    assert kept.family("a", str(notes)) == [str(notes)]


def test_a_folder_that_cannot_be_read_is_reported(
    person: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, scandir = session_of(person), os.scandir
    closed = path.parent.with_name("closed")
    closed.mkdir()

    def scanned(folder: str):
        if str(folder) == str(closed):
            raise PermissionError(errno.EACCES, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", scanned)
    home = str(tmp_path / "home")
    KeepState(home).choose(["claude-code"])
    report = Keeping(home).run()
    assert (report.files, report.problems) == (1, {str(closed): "Permission denied"})
