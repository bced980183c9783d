"""`turnlog doctor`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.damage import DAMAGE
from tests.cli.machine import claude_session
from tests.cli.scene import Cli, write_session
from turnlog.cli.draw.diagnosis import loss, meaning
from turnlog.log.fold import RULES
from turnlog.session.interior import interior
from turnlog.store.files.survey import Region

KINDS = {
    "torn", "garbled", "nul", "spliced", "utf8", "surrogate", "number", "duplicate", "deep", "oversize", "edited",
    "shape", "order", "unfinished",
}  # fmt: skip


def ids_of(log: Path) -> list[tuple[int, str]]:
    """What a reader gets, without settling anything."""
    with turnlog.open() as home:
        items = interior(home).store.open(log.stem, read_only=True).read()
        return [(item.seq, item.id) for item in items if not isinstance(item, turnlog.Damage)]


def test_a_sound_home_is_told_so(cli: Cli, session: str):
    done = cli("doctor")
    assert done.code == 0
    assert done.out.startswith("1 session, 12 entries, ")
    assert done.out.endswith(" examined: nothing wrong\n")
    assert cli("doctor", "--json").json["ok"] is True
    assert cli("doctor", "--repair").out == done.out


def test_every_kind_has_been_thought_of():
    assert {kind for kind, *_ in DAMAGE.values()} == KINDS
    for kind in KINDS:
        assert meaning(Region(0, 1, kind, 1)) != meaning(Region(0, 1, "a kind to come", 1))


@pytest.mark.parametrize("name", DAMAGE)
def test_it_explains_each_damage(name: str, cli: Cli, log: Path):
    kind, hurt, is_used, lost = DAMAGE[name]
    before = log.read_bytes()
    log.write_bytes(hurt(before))
    done = cli("doctor")
    assert done.code == 6
    assert f"  1. {kind}: " in done.out
    assert done.err == ""
    data = cli("doctor", "--json").json
    (row,) = data["sessions"]
    assert data["ok"] is row["ok"] is False
    region = row["regions"][0]
    assert region["kind"] == kind
    assert region["is_used"] is is_used
    assert 0 <= region["offset"] < region["offset"] + region["length"] <= log.stat().st_size
    if len(lost) == 1 and name != "torn at the end":
        assert f"Entry {next(iter(lost))}" in region["loss"]
        assert "is lost" in region["loss"]
    elif name != "torn at the end":
        assert "Nothing" in region["loss"]


@pytest.mark.parametrize("name", DAMAGE)
def test_it_repairs_each_damage_and_moves_nothing(name: str, cli: Cli, log: Path, folder: Path):
    _, hurt, is_used, lost = DAMAGE[name]
    whole = ids_of(log)
    log.write_bytes(hurt(log.read_bytes()))
    broken = log.read_bytes()
    before = ids_of(log)
    assert {seq for seq, _ in whole} - {seq for seq, _ in before} <= lost | {12}
    done = cli("doctor", "--repair")
    if is_used and name != "without its line end":
        assert done.code == 6
        assert "a repair would change nothing here" in done.out
        assert log.read_bytes() == broken
        return
    assert done.code == 0, done.out
    assert cli("doctor").code == 0
    # what can be read is what could be read, and a note that says what happened
    *after, note = ids_of(log)
    assert [pair for pair in after if pair in before] == before
    assert note[0] > max(seq for seq, _ in [*whole, (0, "")])
    # every line that counts is where it was, to the byte (one byte further behind two whole lines that were glued)
    repaired = log.read_bytes()
    shift = 1 if name == "glued to a whole one" else 0
    offset = 0
    for line in repaired.split(b"\n")[:-2]:
        assert not line.strip() or line in (broken[offset:][: len(line)], broken[offset - shift :][: len(line)])
        offset += len(line) + 1
    assert len(broken) + shift <= offset <= len(broken) + shift + 1
    # the file as it was is kept
    (kept,) = (folder / "trash").iterdir()
    assert kept.read_bytes() == broken
    assert cli("ls", "--deleted", "--json").json["sessions"] == []
    # and the session goes on
    with turnlog.open() as home:
        session = home.resume(log.stem)
        assert [entry.text for entry in session.entries(kind="note")][-1].startswith("repaired: ")
        assert session.user("still there?").seq > note[0]
        assert session.damage == []
        assert (session.title, home.sessions()[0].title) == ("The race in conftest",) * 2


def test_a_repair_is_done_once(cli: Cli, log: Path, folder: Path):
    log.write_bytes(log.read_bytes()[:-30])
    assert cli("doctor", "--repair").code == 0
    repaired = log.read_bytes()
    assert cli("doctor", "--repair").code == 0
    assert log.read_bytes() == repaired
    assert len(list((folder / "trash").iterdir())) == 1


def test_a_writer_goes_on_with_the_repaired_file(cli: Cli, log: Path):
    with turnlog.open() as home:
        session = home.resume(log.stem)
        session.user("before")
        lines = log.read_bytes().split(b"\n")
        lines[5] = b"#" * len(lines[5])
        log.write_bytes(b"\n".join(lines))
        assert cli("doctor", "--repair").code == 0
        session.refresh()
        assert session.user("after").seq > session.find(session.messages()[-2].id).seq
        assert session.damage == []


def test_the_numbers_of_a_damaged_end_are_not_given_out_again(cli: Cli, log: Path):
    with turnlog.open() as home:
        session = home.resume(log.stem)
        last = [session.note(f"{n}").seq for n in range(20)][-1]
    cut = b"\n".join(log.read_bytes().split(b"\n")[:12]) + b"\n"
    log.write_bytes(cut + b"?" * (log.stat().st_size - len(cut)))
    assert cli("doctor", "--repair").code == 0
    assert ids_of(log)[-1][0] > last


def test_the_only_copy_of_an_entry_is_never_taken_away(cli: Cli, log: Path):
    lines = log.read_bytes().split(b"\n")
    lines.insert(3, lines.pop(7))
    log.write_bytes(b"\n".join(lines))
    done = cli("doctor", "--repair")
    assert done.code == 6
    assert "It is nowhere else, so a repair leaves the line where it is." in " ".join(done.out.split())
    assert log.read_bytes() == b"\n".join(lines)


def test_copies_of_several_lines_take_nothing_away(cli: Cli, log: Path):
    lines = log.read_bytes().split(b"\n")
    whole = ids_of(log)
    log.write_bytes(b"\n".join([*lines[:8], *lines[3:5], *lines[8:]]))
    cli("doctor", "--repair")
    kept = log.read_bytes()
    assert all(line in kept for line in lines)
    assert [pair for pair in ids_of(log) if pair in whole] == whole


def test_one_session_or_all(cli: Cli, log: Path, folder: Path):
    with turnlog.open() as home:
        other = write_session(home)
    log.write_bytes(log.read_bytes()[:-30])
    assert cli("doctor", other).code == 0
    assert cli("doctor", log.stem).code == 6
    rows = {row["id"]: row["ok"] for row in cli("doctor", "--json").json["sessions"]}
    assert rows == {other: True, log.stem: False}


def test_a_fork_whose_parent_is_gone(cli: Cli, session: str, log: Path):
    with turnlog.open() as home:
        fork = home.resume(session).fork()
        fork.user("go on")
    assert cli("doctor").code == 0
    log.unlink()
    done = cli("doctor", fork.id)
    assert done.code == 6
    assert f"Session {session}, which it continues, is gone" in " ".join(done.out.split())


def test_a_fork_whose_parent_is_another_one_now(cli: Cli, session: str, log: Path):
    with turnlog.open() as home:
        fork = home.resume(session).fork()
    log.write_bytes(b"\n".join(log.read_bytes().split(b"\n")[:10]) + b"\n")
    (finding, *_) = cli("doctor", fork.id, "--json").json["sessions"][0]["findings"]
    assert finding["kind"] == "fork"
    assert "cannot be read" in finding["text"]


def test_damage_before_a_fork_is_not_the_forks(cli: Cli, session: str, log: Path):
    with turnlog.open() as home:
        fork = home.resume(session).fork()
    log.write_bytes(DAMAGE["torn in the middle"][1](log.read_bytes()))
    rows = {row["id"]: row["ok"] for row in cli("doctor", "--json").json["sessions"]}
    assert rows == {fork.id: True, session: False}
    assert cli("doctor", fork.id).code == 6
    assert cli("doctor", "--repair").code == 0
    assert cli("doctor", fork.id).code == 0


def test_a_fork_of_a_purged_session_is_sound(cli: Cli, session: str):
    with turnlog.open() as home:
        fork = home.resume(session).fork()
        home.purge(session)
    assert cli("doctor", fork.id).code == 0


def test_folds_are_compared_with_the_log(cli: Cli, log: Path, session: str):
    with turnlog.open() as home:
        resumed = home.resume(session)
        for number in range(600):
            resumed.append(turnlog.Note(text=str(number)), turnlog.Message(role="user", blocks=[turnlog.Text("x")]))
        resumed.fork()
    assert b'"type":"fold"' in log.read_bytes()
    assert cli("doctor").code == 0


def test_a_fold_that_lies_is_found_and_left_out(cli: Cli, log: Path, session: str):
    with turnlog.open() as home:
        resumed = home.resume(session)
        state = {"seq": resumed.seq, "head": 4, "wide": {"title": "not mine"}}
    from tests.cli.damage import sealed

    said = f'"upto":12,"rules":{RULES},"state":{json.dumps(state)}'
    line = f'{{"type":"fold","seq":13,"at":"2026-11-15T07:00:00.000Z",{said},"id":"f-1"'
    log.write_bytes(log.read_bytes() + sealed(line.encode()) + b"\n")
    with turnlog.open() as home:
        assert home.resume(session).title == "not mine"
    done = cli("doctor", "--json")
    assert done.code == 6
    (finding,) = done.json["sessions"][0]["findings"]
    assert (finding["kind"], finding["seq"]) == ("fold", 13)
    assert cli("doctor", "--repair").code == 0
    assert cli("doctor").code == 0
    with turnlog.open() as home:
        assert home.resume(session).title == "The race in conftest"


def test_a_fold_may_know_more_than_a_damaged_log(cli: Cli, log: Path, session: str):
    with turnlog.open() as home:
        resumed = home.resume(session)
        resumed.append(*(turnlog.Note(text=str(number)) for number in range(300)))
        usage = resumed.usage().own
    assert b'"type":"fold"' in log.read_bytes()
    log.write_bytes(DAMAGE["torn in the middle"][1](log.read_bytes()).replace(b"pytest -x", b"pytest  "))
    assert [f["kind"] for f in cli("doctor", "--json").json["sessions"][0]["findings"]] == []
    cli("doctor", "--repair")
    assert [f["kind"] for f in cli("doctor", "--json").json["sessions"][0]["findings"]] == []
    with turnlog.open() as home:
        assert home.resume(session).usage().own == usage


def test_missing_blobs_are_found(cli: Cli, folder: Path, session: str):
    with turnlog.open() as home:
        seq = home.resume(session).user("long " * 20_000).seq
    assert cli("doctor").code == 0
    for pack in (folder / "blobs").iterdir():
        pack.unlink()
    done = cli("doctor", "--json")
    assert done.code == 6
    (finding,) = done.json["sessions"][0]["findings"]
    assert (finding["kind"], finding["seq"]) == ("blob", seq)
    assert "is missing" in finding["text"]
    (folder / "blobs").rmdir()
    assert cli("doctor").code == 6


def test_damaged_blobs_are_found_when_asked(cli: Cli, folder: Path, session: str):
    with turnlog.open() as home:
        home.resume(session).user("long " * 20_000)
    (pack,) = (folder / "blobs").iterdir()
    data = bytearray(pack.read_bytes())
    data[80] ^= 1
    pack.write_bytes(data)
    assert cli("doctor").code == 0
    assert cli("doctor", "--blobs").code == 6
    data = cli("doctor", "--blobs", "--json").json
    assert len(data["damaged_blobs"]) == 1
    assert "is damaged" in data["sessions"][0]["findings"][0]["text"]


def test_a_renamed_file_is_found(cli: Cli, log: Path, session: str):
    log.rename(log.with_name("another.jsonl"))
    done = cli("doctor", "--json")
    assert done.code == 6
    assert done.json["sessions"][0]["findings"][0]["kind"] == "name"


def test_an_empty_file_is_found(cli: Cli, log: Path):
    log.write_bytes(b"")
    done = cli("doctor")
    assert done.code == 6
    assert "The file is empty" in done.out


def test_a_log_of_a_newer_version_is_found(cli: Cli, log: Path):
    from tests.cli.damage import sealed

    line = b'{"type":"teleport","seq":13,"at":"2026-11-15T07:00:00.000Z","critical":true,"id":"t-1"'
    log.write_bytes(log.read_bytes() + sealed(line) + b"\n")
    (finding,) = cli("doctor", "--json").json["sessions"][0]["findings"]
    assert finding["kind"] == "newer"


def test_a_deleted_session_is_examined_but_not_repaired(cli: Cli, session: str, folder: Path):
    with turnlog.open() as home:
        home.delete(session)
    path = folder / "trash" / f"{session}.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert cli("doctor", session).code == 6
    done = cli("doctor", session, "--repair")
    assert done.code == 2
    assert "restore it first" in done.err


def test_many_regions_are_not_all_printed(cli: Cli, log: Path):
    lines = log.read_bytes().split(b"\n")
    log.write_bytes(b"\n".join([*lines[:-1], *(b"?" * n if n % 2 else b"\0" * n for n in range(1, 101)), b""]))
    done = cli("doctor")
    assert "more regions; --json has them all" in done.out
    assert len(cli("doctor", "--json").json["sessions"][0]["regions"]) == 100


def test_lines_of_the_same_damage_are_one_region(cli: Cli, log: Path):
    log.write_bytes(log.read_bytes() + b"garbage\n" * 1000)
    (region,) = cli("doctor", "--json").json["sessions"][0]["regions"]
    assert (region["lines"], region["length"]) == (1000, 8 * 1000 - 1)
    assert "lines 13 to 1012" in cli("doctor").out
    assert cli("doctor", "--repair").code == 0


def test_a_store_without_files_is_examined_but_not_repaired(cli: Cli):
    done = cli("--home", "memory:", "doctor")
    assert (done.code, done.out) == (
        0, "memory:: works\n  sessions 0\n\n0 sessions, 0 entries examined: nothing wrong\n",
    )  # fmt: skip
    for words in (["--repair"], ["--blobs"]):
        assert cli("--home", "memory:", "doctor", *words).code == 7


def test_a_repair_waits_for_the_writer(log: Path, folder: Path):
    log.write_bytes(log.read_bytes()[:-30])
    lock = f"f = open({str(log)!r}, 'rb'); fcntl.flock(f, fcntl.LOCK_EX)"
    program = f"import fcntl, time; {lock}; print(flush=True); time.sleep(1)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        before = log.read_bytes()
        doctor = [sys.executable, "-m", "turnlog", "doctor", "--repair"]
        with subprocess.Popen(doctor, stdout=subprocess.DEVNULL) as repairer:
            holder.wait()
            assert repairer.wait() == 0
    assert log.read_bytes() != before


def test_what_was_lost_is_said_for_each_place():
    middle = Region(10, 20, "torn", 2, older=4, newer=6, sample='{"type":"message","seq":5,"at"')
    assert loss(middle) == "Entry 5, a message, is lost. Everything else can be read."
    assert "neighbours" in loss(Region(10, 20, "garbled", 2, older=4, newer=5)) or "no number is missing" in loss(
        Region(10, 20, "garbled", 2, older=4, newer=5)
    )
    assert "Entries 5 to 8 are lost" in loss(Region(10, 20, "nul", 2, older=4, newer=9))
    assert "Whatever came after entry 4" in loss(Region(10, 20, "nul", 2, older=4))


def test_records_that_nobody_knows_are_counted_and_nothing_is_wrong(cli: Cli, tmp_path: Path):
    """What a newer version of an agent writes besides."""
    file = claude_session(tmp_path, "/p", "0a1b2c3d-0000-4000-8000-000000000001", "Why?", "And now?")
    talk = file.read_text().splitlines()
    file.write_text("\n".join(f'{line}\n{{"type":"from-tomorrow","n":{n}}}' for n, line in enumerate(talk)) + "\n")
    assert cli("import", str(file)).code == 0
    done = cli("doctor")
    assert done.code == 0
    *_, summary, unknown = done.out.splitlines()
    assert summary.endswith("examined: nothing wrong")
    assert unknown == "kept, and not shown: 4 records of types that are not known: from-tomorrow (4)"
    data = cli("doctor", "--json").json
    assert data["ok"] is True
    assert [row["unknown"] for row in data["sessions"]] == [{"from-tomorrow": 4}]
    for words in (["show"], ["export", "--to", "markdown", "-o", "-"], ["export", "--to", "html", "-o", "-"]):
        told = cli(*words, "latest")
        assert "And now?" in told.out
        assert "from-tomorrow" not in told.out
        assert "problem" not in told.out


def test_a_log_that_cannot_be_read_does_not_hide_the_others(cli: Cli, session: str, folder: Path):
    (folder / "sessions" / "afolder.jsonl").mkdir()
    (folder / "sessions" / "zlink.jsonl").symlink_to("nowhere")
    done = cli("doctor", "--json")
    assert done.code == 6
    rows = {row["id"]: row for row in done.json["sessions"]}
    assert rows[session]["ok"]
    assert [rows[id]["findings"][0]["kind"] for id in ("afolder", "zlink")] == ["unreadable"] * 2
    assert "a link or a special file where a file should be" in cli("doctor").out
    assert cli("doctor", "--repair").code == 6
    assert cli("doctor", "afolder").code == 8
