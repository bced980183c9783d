"""`turnlog compact` and `turnlog uncompact`."""

import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from turnlog.log.ids import handle_of


def seen(cli: Cli) -> list[str]:
    """What a model sees, as its first words."""
    messages = cli("show", "--context", "--json").json["messages"]
    return [message["blocks"][0].get("text", message["blocks"][0]["type"])[:12] for message in messages]


def test_a_preview_changes_nothing(process: Cli, session: str, log: Path):
    before = log.read_bytes()
    done = process("compact", "--keep", "1", "--dry-run")
    assert done.code == 0
    assert "The test is flaky, fix it" in done.out
    assert done.out.endswith(f"3 messages would be a summary and the last 1 message (session {handle_of(session)})\n")
    assert process("compact", "--keep", "1", "--dry-run", "--json").json == {
        "version": 1, "session": session, "dry_run": True, "entry": None, "removed": 3, "kept": 1,
        "summary": done.out.rpartition("\n\n")[0].replace("\n  ", "\n").removeprefix("  "),
    }  # fmt: skip
    assert log.read_bytes() == before


def test_there_and_back(process: Cli, session: str):
    before, handle = seen(process), handle_of(session)
    done = process("compact", "--keep", "1")
    [entry] = process("log", "--kind", "compaction", "--json").json["entries"]
    assert done.out == f"3 messages are now a summary and the last 1 message (session {handle}, entry {entry['seq']})\n"
    assert f"`turnlog uncompact {handle}` takes it back\n" in done.err
    assert len(seen(process)) == 2
    assert seen(process)[-1] == "And now?"
    assert process("show", "--json").json["messages"][0]["blocks"][0]["text"] == "The test is flaky, fix it"
    would = process("uncompact", "--dry-run")
    assert would.out.startswith(f"compaction {entry['seq']} would no longer apply: 3 messages would be seen again")
    assert len(seen(process)) == 2
    back = process("uncompact", handle)
    assert back.out == f"compaction {entry['seq']} no longer applies: a model sees 4 messages (session {handle})\n"
    assert back.err == f"it saw 2; `turnlog compact {handle}` makes another summary\n"
    assert seen(process) == before
    again = process("uncompact")
    assert (again.code, again.out) == (3, "")
    assert again.err.startswith(f"error: no compaction applies to session {handle}\n")


def test_a_summary_of_ones_own(process: Cli, session: str):
    assert process("compact", "--summary", "All about a race", "--keep", "0", "--json").json["removed"] == 4
    assert seen(process) == ["All about a "]
    call = [sys.executable, "-m", "turnlog", "compact", "--summary", "-", "--json"]
    done = subprocess.run(call, input="Größe\n".encode(), capture_output=True, check=True)
    assert done.stderr == b""
    assert seen(process) == ["Größe"]
    for text in (b"", b" \n"):
        assert subprocess.run(call, input=text, capture_output=True, check=False).returncode == 2


def test_where_everything_stays_nothing_is_done(process: Cli, session: str, log: Path):
    before = log.read_bytes()
    done = process("compact", "--keep", "50")
    assert (done.code, done.out) == (0, "nothing to do: a model sees 4 messages, and all of them stay\n")
    assert process("compact", "--keep", "50", "--json").json["entry"] is None
    assert log.read_bytes() == before


def test_a_chosen_compaction_is_taken_back(process: Cli, session: str):
    first = process("compact", "--keep", "3", "--json").json["entry"]
    second = process("compact", "--keep", "0", "--json").json["entry"]
    assert process("uncompact", "--entry", str(first), "--json").json["compaction"] == first
    assert len(seen(process)) == 1
    assert process("uncompact", "-e", str(first)).code == 3
    assert process("uncompact", "--json").json["compaction"] == second
    assert len(seen(process)) == 4


@pytest.mark.parametrize("word", ["compact", "uncompact"])
def test_not_while_an_agent_is_at_work(process: Cli, folder: Path, word: str):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="busy", workspace=".")
        with session.turn():
            session.user("one")
            session.assistant("two")
            done = process(word, "--json")
            assert done.code == 5
            assert "is in the middle of a turn in session busy" in done.err
            session.assistant("three")
    assert process("compact", "--json").code == 0


def test_one_of_another_folder_has_to_be_named(process: Cli, session: str, tmp_path: Path, monkeypatch):
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert process("compact").code == 3
    assert process("compact", session, "--dry-run").code == 0


def test_an_imported_compaction_may_say_nothing_of_itself(cli: Cli, folder: Path):
    recorded = Path(__file__).parents[1] / "formats/agents/codex/recorded/sessions"
    brought = cli("import", str(recorded), "--json").json["sessions"]
    with turnlog.open() as home:
        compacted = [row["id"] for row in brought if home.read(row["id"]).compactions()]
    assert compacted
    for session in compacted:
        assert cli("compact", session, "--keep", "1").code == 0
        assert cli("uncompact", session).code == 0


@pytest.mark.parametrize("summary", ["", " \n"])
def test_a_summary_that_says_nothing_replaces_no_conversation(cli: Cli, session: str, log: Path, summary: str):
    """What a script passes where its variable is not set."""
    before = log.read_bytes()
    for more in ([], ["--dry-run"]):
        done = cli("compact", "--summary", summary, *more)
        assert (done.code, done.out) == (2, "")
        assert done.err == "error: the summary of --summary is empty\nhint: without --summary, one is made\n"
    assert log.read_bytes() == before
