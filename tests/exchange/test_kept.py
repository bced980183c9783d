"""Files of other agents that are kept: to the byte, in a sixth of the room, whatever interrupts it."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnlog.errors import Corrupt
from turnlog.exchange import kept as module
from turnlog.exchange.keeping import Keeping
from turnlog.exchange.kept import KeptFiles
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
    assert os.path.getsize(kept.place("a", str(path))) < len(whole) / 2
    assert Path(kept.place("a", str(path))).stat().st_mode & 0o777 == 0o600


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
    place = Path(kept.place("a", str(path)))
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


def test_one_that_was_written_anew_and_shorter_does_not_take_the_place_of_more(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    for text in (b"all of it", b"less", b"something else and more of it"):
        write(path, text)
        assert kept.keep("a", str(path))
        assert said(kept, path) == text
    before = KeptFiles(str(tmp_path / "other"))
    longer = Path(kept.place("a", str(path)).removesuffix(".zst") + ".before")
    Path(before.place("a", str(path))).parent.mkdir(parents=True)
    longer.rename(before.place("a", str(path)))
    assert said(before, path) == b"all of it"


def test_what_is_damaged_is_told_and_not_put_back(kept: KeptFiles, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    write(path, b"some line\n" * 100)
    kept.keep("a", str(path))
    place = Path(kept.place("a", str(path)))
    data = bytearray(place.read_bytes())
    data[-6] ^= 1
    place.write_bytes(data)
    path.unlink()
    with pytest.raises(Corrupt, match="is not what was written"):
        kept.restore("a", str(path))
    assert not path.exists()


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
    looks, proof_of = [0], module.proof_of

    def proof(file, size: int) -> bytes:
        looks[0] += 1
        if looks[0] == at_look:
            path.write_bytes(data)
        return proof_of(file, size)

    monkeypatch.setattr(module, "_CHUNK", 50)
    monkeypatch.setattr(module, "proof_of", proof)


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
    monkeypatch.setattr(module, "_CHUNK", 50)
    path = tmp_path / "s.jsonl"
    for size in (10, 300):
        write(path, b"a" * size)
        assert kept.keep("a", str(path))
        assert said(kept, path) == b"a" * size


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
