"""`turnlog push`, `pull` and `sync`."""

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.cli.machine import claude_session
from tests.cli.scene import Cli, write_session
from tests.pgserver import Server
from turnlog.cli.frame.home import without_password
from turnlog.cli.transfer import PUSH, Direction, raise_outcome
from turnlog.errors import Unavailable
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files import FileStore
from turnlog.transfer.report import Transferred


@pytest.fixture
def copy(folder: Path) -> Path:
    return folder.parent / "copy"


def say(place: Path, session: str, text: str) -> None:
    with turnlog.open(place) as home, home.resume(session) as found:
        found.user(text)


def test_it_pushes_and_says_what(cli: Cli, session: str, copy: Path):
    done = cli("push", session[:20], str(copy))
    assert (done.code, done.err) == (0, f"note: there was no home, and one was made: {copy}\n")
    assert re.search(rf"{session} +new +12", done.out)
    assert "1 session pushed: 12 entries, 0 blobs; 0 had nothing new" in done.out
    done = cli("push", "--all", str(copy))
    assert done.out == "0 sessions pushed: 0 entries, 0 blobs; 1 had nothing new\n"
    assert cli("--home", str(copy), "show", session).out == cli("show", session).out


def test_marks_are_no_session_that_had_nothing_new(cli: Cli, session: str, folder: Path, copy: Path):
    claude_session(folder.parent / "person", str(Path.cwd()), "aaaaaaaa-1111-4222-8333-444444444444", "Fix it")
    assert cli("tag", "claude-code:aaaaaaaa", "urgent").code == 0
    assert cli("push", "--all", str(copy)).code == 0
    assert "; 1 had nothing new\n" in cli("push", "--all", str(copy)).out
    assert cli("push", "--all", str(copy), "--json").json["same"] == 1


def test_it_pulls_by_a_name_there(cli: Cli, session: str, folder: Path, copy: Path):
    cli("push", "--all", str(copy))
    with turnlog.open(copy) as home:
        other = write_session(home)
    done = cli("pull", "latest", str(copy), "--json")
    assert done.code == 0
    assert [(row["id"], row["outcome"]) for row in done.json["sessions"]] == [(other, "new")]
    with turnlog.open(folder) as home:
        assert other in set(derived.ids(interior(home).store))


def test_a_session_that_went_on_on_both_sides_is_told(cli: Cli, session: str, folder: Path, copy: Path):
    cli("push", "--all", str(copy))
    say(folder, session, "mine")
    say(copy, session, "theirs")
    told = cli("sync", str(copy), "--dry-run", "--json").json
    done = cli("sync", str(copy), "--json")
    assert done.code == 0
    for way in ("push", "pull"):
        [row] = done.json[way]["sessions"]
        assert (row["id"], row["outcome"], row["error"]) == (session, "forked", None)
        assert row["into"] == told[way]["sessions"][0]["into"]
    done = cli("sync", str(copy))
    assert (done.code, done.err) == (0, "")
    assert done.out.count("0 entries") == 2
    say(folder, session, "more")
    done = cli("sync", session, str(copy))
    assert "it continued there, too" in done.out


def test_a_dry_run_changes_nothing(cli: Cli, session: str, copy: Path):
    done = cli("push", "--all", "-n", str(copy))
    assert "1 session would be pushed: 12 entries" in done.out
    assert not list(copy.glob("sessions/*"))


def test_damage_is_told_and_the_rest_is_there(cli: Cli, session: str, log: Path, copy: Path):
    log.write_bytes(log.read_bytes().replace(b'"1 failed"', b'"1 \x07failed'))
    done = cli("push", "--all", str(copy))
    assert done.code == 6
    assert re.fullmatch(
        rf"note: there was no home, and one was made: .*\nwarning: session {session}: \w+ at byte \d+ of the log\n"
        r"error: damaged parts of 1 session were not transferred; the rest was\n"
        r"hint: look with `turnlog doctor .*`\n",
        done.err,
    )
    assert "1 session pushed" in done.out
    log.write_bytes(log.read_bytes()[30:])
    (copy / "sessions" / log.name).unlink()
    done = cli("push", "--all", str(copy))
    assert done.code == 6
    assert f"error: session {session} stays where it is: the first line" in done.err
    assert "failed" in done.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["push", "copy"], 2, "no sessions given"),
        (["push", "--all", "x", "copy"], 2, "not both"),
        (["push", "nobody", "copy"], 3, "nobody"),
        (["push", "--all", "memory:"], 2, "memory"),
        (["push", "--all", "ftp://host/x"], 7, "ftp"),
        (["push", "--all", "postgresql://127.0.0.1:1/x"], 8, "127.0.0.1:1/x"),
        (["pull", "--all", "nowhere"], 3, "no home at"),
        (["pull", "nobody", "copy"], 3, "no"),
        (["sync", "nobody", "copy"], 3, "nobody"),
        (["push", "--all", "full"], 2, "holds other things"),
    ],
)
def test_what_cannot_be_done_is_one_line(cli: Cli, session: str, words: list[str], code: int, said: str):
    Path("full").mkdir()
    Path("full/file").write_text("")
    done = cli(*words)
    assert done.code == code
    assert said in done.err
    assert re.fullmatch(r"error: [^\n]+\n(hint: [^\n]+\n)?", done.err)
    assert done.out == ""
    assert not Path("copy").exists() or not list(Path("copy").iterdir())


def test_a_home_is_not_moved_to_itself(cli: Cli, session: str, folder: Path):
    done = cli("sync", str(folder))
    assert done.code == 2
    assert "itself" in done.err


def test_a_server_that_goes_away_is_told_with_what_came_before(
    cli: Cli, session: str, copy: Path, monkeypatch: pytest.MonkeyPatch
):
    def gone(*args: object, **options: object) -> None:
        raise Unavailable("the server does not answer")

    monkeypatch.setattr(FileStore, "adopt", gone)
    done = cli("push", "--all", str(copy), "--json")
    assert done.code == 8
    told = json.loads(done.err)["error"]
    assert told["message"] == "the server does not answer; 0 sessions were done before that"
    assert told["hint"] == "run it again to continue"
    assert done.json["sessions"] == []


def test_a_database_and_back(cli: Cli, process: Cli, session: str, postgres: Server, folder: Path, copy: Path):
    url = f"{postgres.url}?tenant={folder.parent.name}"
    assert process("push", "--all", url).code == 0
    assert process("--home", url, "show", session).out == process("show", session).out
    assert process("--home", str(copy), "pull", session, url).code == 0
    assert process("--home", str(copy), "show", session).out == process("show", session).out
    done = process("sync", url, "--json").json
    assert (done["push"]["same"], done["pull"]["same"]) == (1, 1)


def test_ctrl_c_stops_after_a_session(
    cli: Cli, folder: Path, copy: Path, session: str, monkeypatch: pytest.MonkeyPatch
):
    with turnlog.open(folder) as home:
        for _ in range(3):
            write_session(home)
    adopt = FileStore.adopt

    def interrupted(self: FileStore, *args: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        adopt(self, *args, **options)

    monkeypatch.setattr(FileStore, "adopt", interrupted)
    done = cli("push", "--all", str(copy))
    assert done.code == 130
    assert done.err.endswith("interrupted: run it again to continue\n")
    with turnlog.open(copy) as home:
        assert len(list(derived.ids(interior(home).store))) == 1
    monkeypatch.undo()
    assert cli("--home", str(folder), "push", "--all", str(copy)).code == 0
    with turnlog.open(copy) as home:
        assert len(list(derived.ids(interior(home).store))) == 4


@pytest.mark.parametrize("by", ["url", "folder"])
def test_files_go_back_on_the_other_side(process: Cli, folder: Path, copy: Path, postgres: Server, by: str):
    url = f"{postgres.url}?tenant={folder.parent.name}-{by}"
    Path("file").write_bytes(b"one\n" * 1000)
    assert process("run", "-q", "--", "sh", "-c", "echo two > file; echo new > new").code == 0
    assert process("push", "--all", url).code == 0
    if by == "folder":
        assert process("--home", str(copy), "pull", "--all", url).code == 0
    other = url if by == "url" else str(copy)
    done = process("--home", other, "rewind", "--yes")
    assert done.code == 0, done.err
    assert Path("file").read_bytes() == b"one\n" * 1000
    assert not Path("new").exists()
    assert process("--home", other, "undo", "--yes").code == 0
    assert Path("file").read_bytes() == b"two\n"
    # What was done there is known here afterwards.
    assert process("sync", url if by == "url" else str(copy)).code == 0
    assert "undo" in process("log").out


def test_all_are_ours_and_it_is_said_how_many_are_not(cli: Cli, session: str, folder: Path, copy: Path):
    for number in (1, 2):
        claude_session(folder.parent / "person", "/home/ada/a", f"{number:08x}-1111-4222-8333-444444444444", "hello")
    cli("import", "claude-code:00000001")
    told = "1 session of other agents stays here, not imported: `turnlog import --all` makes them ours\n"
    for command in (["push", "--all", str(copy)], ["sync", str(copy)]):
        assert told in cli(*command).out
        assert cli(*command, "--json").json["not_ours"] == 1
    assert "other agents" not in cli("push", session, str(copy)).out


def test_sync_takes_the_words_that_push_takes(cli: Cli, session: str, folder: Path, copy: Path):
    claude_session(folder.parent / "person", "/home/ada/a", "00000001-1111-4222-8333-444444444444", "hello")
    cli("import", "--all")
    for word in ("@", "claude-code:00000001"):
        done = cli("sync", word, str(copy), "--json")
        assert (done.code, [row["outcome"] for row in done.json["push"]["sessions"]]) == (0, ["new"]), done.err
    assert cli("sync", "@-7", str(copy)).code == 3


@pytest.mark.parametrize("words", [["sync"], ["push", "--all"]])
def test_a_home_that_is_made_is_said(cli: Cli, session: str, tmp_path: Path, words: list[str]):
    place = tmp_path / "mistyped"
    assert f"one would be made: {place}\n" in cli(*words, "--dry-run", str(place)).err
    assert not place.exists()
    assert f"note: there was no home, and one was made: {place}\n" in cli(*words, str(place)).err
    assert cli(*words, str(place)).err == ""


def test_a_pull_says_in_which_home_it_is_in_the_trash_and_which_has_the_fork(
    cli: Cli, session: str, folder: Path, copy: Path
):
    cli("push", "--all", str(copy))
    say(folder, session, "mine")
    say(copy, session, "theirs")
    assert "it continued here, too" in cli("pull", "--all", str(copy)).out
    cli("rm", session)
    assert "in the trash here; left alone" in cli("pull", session, str(copy)).out
    assert "in the trash there; left alone" in cli("--home", str(copy), "push", session, str(folder)).out


def test_damage_in_the_other_home_is_to_be_looked_at_there(cli: Cli, session: str, log: Path, folder: Path, copy: Path):
    cli("push", "--all", str(copy))
    there = copy / "sessions" / log.name
    there.write_bytes(there.read_bytes().replace(b'"1 failed"', b'"1 \x07failed'))
    other = folder.parent / "third"
    done = cli("--home", str(other), "pull", "--all", str(copy))
    assert done.err.endswith(f"hint: look with `turnlog --home {copy} doctor {session}`\n")
    done = cli("--home", str(folder.parent / "fourth"), "sync", str(copy))
    assert done.err.endswith(f"hint: look with `turnlog --home {copy} doctor {session}`\n")


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("postgresql://u:secret@h:5/x?tenant=a", "postgresql://u@h:5/x?tenant=a"),
        ("postgresql://h/x?user=u&password=secret&tenant=a", "postgresql://h/x?user=u&tenant=a"),
        ("postgresql://u:sec%40ret@h/x", "postgresql://u@h/x"),
        ("/home/ada/it: is?a@b", "/home/ada/it: is?a@b"),
        ("memory:", "memory:"),
    ],
)
def test_a_location_is_told_without_its_password(location: str, told: str):
    assert without_password(location) == told


def test_one_session_was_done_before_it_stopped():
    direction = Direction(PUSH, url="/x", dry_run=False, include_ignored=False)
    direction.error = Unavailable("gone")
    direction.rows = [Transferred(id="a", outcome="new")]
    with pytest.raises(Unavailable) as raised:
        raise_outcome([direction])
    assert raised.value.message == "gone; 1 session was done before that"
