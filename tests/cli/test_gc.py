"""`turnlog gc`."""

import os
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from turnlog.session.interior import interior


@pytest.fixture
def full(process: Cli) -> str:
    """A session with a checkpoint of its own and some automatic ones, each with 200 kB of noise."""
    for number in range(3):
        Path("noise").write_bytes(os.urandom(200_000))
        process("run", "-q", "--", "touch", f"file-{number}")
    Path("noise").write_bytes(b"kept" + os.urandom(200_000))
    return process("checkpoint", "mine", "--json").json["session"]


def blobs(process: Cli) -> int:
    return process("gc", "--dry-run", "--json").json["disk"]["blobs"]


def test_what_is_needed_stays(full: str, process: Cli):
    before = process("checkpoints", "--json").json
    done = process("gc")
    assert done.code == 0
    assert "0 blobs removed" in done.out
    assert process("checkpoints", "--json").json == before


def test_a_dry_run_says_what_would_go_and_removes_nothing(full: str, process: Cli):
    with turnlog.open() as home:
        interior(home).store.purge(full)  # as one who was killed before its contents went as well
    size = blobs(process)
    told = process("gc", "--dry-run", "--json").json
    assert told["freed_bytes"] > 700_000
    assert blobs(process) == size > 700_000
    assert "would be removed" in process("gc", "--dry-run").out
    done = process("gc", "--json").json
    assert done["blobs"] == told["blobs"]
    assert blobs(process) < 1000


def test_a_quota_gives_up_automatic_checkpoints_and_never_those_asked_for(full: str, process: Cli):
    told = process("gc", "--quota", "300kB", "--dry-run", "--json").json
    assert len(process("checkpoints", "--json").json["checkpoints"]) == 7
    done = process("gc", "--quota", "300 KB", "--json").json
    assert done["dropped"] == told["dropped"] > 0
    assert done["disk"]["blobs"] < 300_000
    labels = [row["label"] for row in process("checkpoints", "--json").json["checkpoints"]]
    assert "mine" in labels
    over = process("gc", "--quota", "1k")
    assert over.code == 0
    assert "still over the quota by" in over.out
    assert process("rewind", "mine", "--files", "--yes").code == 0
    assert Path("noise").read_bytes().startswith(b"kept")
    assert process("doctor").code == 0, "what was given up is no damage"


@pytest.mark.parametrize(("text", "number"), [("1500", 1500), ("2KB", 2000), ("1.5m", 1_500_000), ("3 GB", 3 * 10**9)])
def test_sizes_as_people_write_them(process: Cli, text: str, number: int):
    assert process("gc", "--quota", text, "--json").json["quota_bytes"] == number


@pytest.mark.parametrize("text", ["lots", "-1", "", "2 GBB", "1e3"])
def test_what_is_no_size_is_refused(process: Cli, text: str):
    done = process("gc", "--quota", text)
    assert done.code == 2
    assert "is not a size" in done.err


def _age(home_folder: Path, name: str) -> None:
    """As if that session had been used long ago."""
    with turnlog.open(home_folder, clock=lambda: 1_600_000_000_000) as home, home.create(id=name) as session:
        session.user("long ago")


def test_old_sessions_go_when_it_is_meant(cli: Cli, session: str, folder: Path):
    _age(folder, "old")
    _age(folder, "older")
    told = cli("gc", "--older-than", "90d", "--keep", "older", "--dry-run", "--json").json
    assert [row["id"] for row in told["removed"]] == ["old"]
    done = cli("gc", "--older-than", "90d")
    assert done.code == 2 and "--yes" in done.err
    done = cli("gc", "--older-than", "12w", "--keep", "older", "--yes")
    assert "1 session were removed" not in done.out
    assert done.out.startswith("1 session was removed for good\n")
    with turnlog.open() as home:
        assert {row.id for row in home.sessions()} == {session, "older"}
    assert cli("gc", "--older-than", "soon").code == cli("gc", "--keep", "older").code == 2


def test_a_trash_that_empties_itself(cli: Cli, session: str, folder: Path):
    _age(folder, "old")
    cli("rm", "old")
    assert cli("gc", "--trash", "30d").code == 0
    assert cli("ls", "--deleted", "--json").json["sessions"], "it was deleted only just now"
    assert cli("gc", "--trash", "0d").code == 0
    assert cli("ls", "--deleted", "--json").json["sessions"] == []
    assert cli("gc", "--trash", "never").code == 0
    cli("rm", session)
    assert cli("gc").code == 0
    assert cli("ls", "--deleted", "--json").json["sessions"]
    assert cli("gc", "--trash", "later").code == 2


REFUSED = {
    "a trash that is no time": ["--trash", "nonsense"],
    "a session to keep that there is not": ["--older-than", "90d", "--keep", "nosuch", "--yes"],
    "a question without a terminal": ["--older-than", "0d"],
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_a_refused_gc_has_set_nothing(cli: Cli, folder: Path, session: str, words: list[str]):
    assert cli("gc", "--limit", "5GB", *words).code != 0
    assert not (folder / "limit").exists()
    assert not (folder / "trash-for").exists()


@pytest.mark.parametrize("words", [["--older-than", "90d"], ["--trash", "30d"], ["--quota", "1GB"], []])
def test_what_an_agent_may_not_ask_for_sets_nothing(
    cli: Cli, folder: Path, session: str, monkeypatch: pytest.MonkeyPatch, words: list[str]
):
    monkeypatch.setenv("CLAUDECODE", "1")
    done = cli("gc", "--limit", "7GB", *words)
    assert f"`gc {words[0] if words else '--limit'}` is not allowed" in done.err
    assert not (folder / "limit").exists()


def test_a_dry_run_looks_at_its_options_too(cli: Cli, session: str):
    done = cli("gc", "--dry-run", "--trash", "nonsense")
    assert (done.code, done.err.partition("\n")[0]) == (
        2,
        "error: invalid value for '--trash': 'nonsense' is not how long: 90d, 12w, 36h, 2y, or a number of days",
    )


def test_a_limit_and_a_trash_are_set_together(cli: Cli, folder: Path, session: str):
    assert cli("gc", "--limit", "5GB", "--trash", "30d").code == 0
    assert ((folder / "limit").read_text(), (folder / "trash-for").read_text()) == ("5000000000\n", "30d\n")
    assert cli("gc", "--trash", "never").code == 0
    assert (folder / "trash-for").read_text() == ""


def test_what_becomes_old_while_the_question_stands_stays(session: str, folder: Path):
    _age(folder, "old")
    with Terminal("-m", "turnlog", "gc", "--older-than", "90d") as terminal:
        terminal.until("remove 1 session for good? [y/N] ")
        _age(folder, "late")
        terminal.type("y\n")
        assert terminal.end() == 0
    assert "1 session was removed for good" in terminal.plain
    with turnlog.open() as home:
        assert {row.id for row in home.sessions()} == {session, "late"}


def test_what_holds_from_now_on_is_told(cli: Cli, session: str):
    words = ["gc", "--limit", "5GB", "--trash", "30d"]
    would = cli(*words, "--dry-run").out.splitlines()
    assert would[:2] == ["hooks would fill this home up to 5.0 GB", "deleted sessions would stay in the trash for 30d"]
    will = cli(*words).out.splitlines()
    assert will[:2] == ["hooks will fill this home up to 5.0 GB", "deleted sessions will stay in the trash for 30d"]
    assert "stay in the trash until they are removed" in cli("gc", "--trash", "never").out


@pytest.mark.parametrize("word", ["@", "latest", "old", "gone"])
def test_a_session_to_keep_is_named_as_everywhere(cli: Cli, folder: Path, word: str):
    with turnlog.open(folder, clock=lambda: 1_600_000_000_000) as home:
        for name, workspace in (("old", "."), ("other", "/elsewhere"), ("gone", "/elsewhere")):
            home.create(id=name, workspace=workspace).user("long ago")
    cli("rm", "gone")
    done = cli("gc", "--older-than", "0d", "--keep", word, "--dry-run", "--json")
    assert done.code == 0, done.err
    kept = {"old", "other", "gone"} - {row["id"] for row in done.json["removed"]}
    assert kept == {word if word == "gone" else cli("log", word, "--json").json["session"]}
