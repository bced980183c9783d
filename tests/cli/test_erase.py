"""`turnlog erase`."""

from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from tests.cli.terminal import Terminal
from turnlog.formats import format_of, names

KEY = "hunter2-only-once"


@pytest.fixture
def told(session: str) -> int:
    """An entry with a key in it, in the newest session of this folder."""
    with turnlog.open() as home, home.resume(session) as found:
        found.set("key", KEY)
        return found.user(f"the key is {KEY}").seq


def test_by_its_number_or_by_its_text_and_only_when_it_is_meant(cli: Cli, told: int, folder: Path):
    assert KEY in cli("erase", str(told), "--dry-run").out
    done = cli("erase", str(told))
    assert done.code == 2 and "--yes" in done.err
    assert any(KEY in path.read_text(errors="replace") for path in folder.rglob("*.jsonl"))
    done = cli("erase", str(told), "--reason", "a key", "--yes")
    assert done.code == 0 and f": {told}\n" in done.out
    receipt = cli("erase", "--matching", KEY, "--yes", "--json").json
    assert [row["type"] for row in receipt["entries"]] == ["set"]
    assert not any(KEY.encode() in path.read_bytes() for path in folder.parent.rglob("*") if path.is_file())
    assert "[erased]" in cli("show").out
    listed = cli("log", "-n", "99").out
    assert "key [erased]" in listed
    assert ": a key\n" in listed, "who, when and why"
    assert cli("erase", "--matching", KEY, "--yes").code == 3
    assert cli("erase", "9999", "--yes").code == 3
    assert cli("erase", "1", "--matching", "x").code == cli("erase").code == 2
    assert "examined: nothing wrong" in cli("doctor").out


def test_a_text_that_is_only_where_nothing_can_be_erased_is_not_denied(cli: Cli, session: str, told: int):
    with turnlog.open() as home, home.resume(session) as found:
        path = found.track("token-4711.txt").seq
    for more in (["--yes"], ["--dry-run"]):
        done = cli("erase", "--matching", "token-4711", *more)
        assert done.code == 2
        assert f"it is in entries that cannot be erased: {path} (track)" in done.err
    with turnlog.open() as home, home.resume(session) as found:
        found.user("look into token-4711.txt")
    for more in (["--dry-run"], ["--dry-run", "--json"], ["--yes"]):
        done = cli("erase", "--matching", "token-4711", *more)
        assert done.code == 0, done.err
        assert f"note: it is also in entry {path}, a track, which cannot be erased" in done.err, more


def test_the_question_shows_what_and_no_is_no(told: int):
    with Terminal("-m", "turnlog", "erase", str(told)) as terminal:
        terminal.until("erase it for good? [y/N] ")
        assert KEY in terminal.plain
        terminal.type("n\n")
        assert terminal.end() == 1
    assert terminal.text.endswith("nothing was erased\n")
    with turnlog.open() as home:
        assert KEY in str(home.read().messages())


def test_an_agent_leaves_it_to_people(cli: Cli, told: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    done = cli("erase", str(told), "--yes")
    assert done.code == 2 and "not allowed in a shell of Claude Code" in done.err
    monkeypatch.setenv("TURNLOG_ALLOW_AGENT", "1")
    assert cli("erase", str(told), "--yes").code == 0


def test_whatever_it_is_exported_as_says_so(cli: Cli, told: int, tmp_path: Path):
    cli("erase", "--matching", KEY, "--yes")
    for form in ("markdown", "html", "json", "jsonl"):
        assert "erased" in cli("export", "--to", form, "-o", "-").out, form
    with turnlog.open() as home, home.read() as session:
        for agent in names():
            if format_of(agent).write is None:
                continue
            place = tmp_path / agent
            session.export(agent, place, force=True)
            files = [path for path in tmp_path.rglob("*") if path.is_file() and str(path).startswith(str(place))]
            assert any(b"[erased]" in path.read_bytes() for path in files), agent


def test_without_a_session_only_one_of_this_folder_is_meant(
    cli: Cli, told: int, session: str, tmp_path: Path, monkeypatch
):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = cli("erase", str(told), "--yes")
    assert (done.code, "no session of Turnlog's own for" in done.err) == (3, True)
    with turnlog.open() as home:
        assert KEY in str(home.read(session).messages())


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_text_is_not_every_entry(cli: Cli, told: int, log: Path, text: str):
    """What a script passes where its variable is not set."""
    before = log.read_bytes()
    for more in (["--yes"], ["--dry-run"]):
        done = cli("erase", "--matching", text, *more)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith("error: --matching '")
        assert "': there is no text to look for\n" in done.err
    assert log.read_bytes() == before


def test_an_entry_that_is_named_twice_is_one(cli: Cli, session: str):
    with turnlog.open() as home, home.read(session) as opened:
        id = next(entry.id for entry in opened.entries() if entry.seq == 4)
    assert [row["seq"] for row in cli("erase", "4", id, "4", "--dry-run", "--json").json["entries"]] == [4]
    assert cli("erase", "4", id, "4", "--dry-run").out.count("user: ") == 1
