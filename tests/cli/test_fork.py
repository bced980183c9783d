"""`turnlog fork`."""

from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli
from turnlog.log.ids import handle_of


def conversation(cli: Cli, session: str) -> list[int]:
    return [message["seq"] for message in cli("show", session, "--json").json["messages"]]


def test_it_goes_on_from_the_end(process: Cli, session: str, log: Path):
    before = log.read_bytes()
    done = process("fork")
    handle = done.out.split()[1].rstrip(":")
    assert done.out == f"session {handle}: goes on from the end of session {handle_of(session)}, with 4 messages\n"
    assert done.err == f"`turnlog resume {handle} --in AGENT` resumes it, `turnlog rm {handle}` removes it\n"
    assert conversation(process, handle) == conversation(process, session)
    assert log.read_bytes() == before


def test_for_programs(process: Cli, session: str):
    done = process("fork", "latest", "--name", "plan b", "--at", "4", "--json")
    assert done.err == ""
    made = done.json
    row = next(r for r in process("ls", "--all", "--json").json["sessions"] if r["id"] == made["session"])
    assert made == {
        "version": 1, "session": made["session"], "handle": handle_of(made["session"]), "parent": session, "at": 4,
        "name": "plan b", "messages": 1,
    }  # fmt: skip
    assert row["id"] == made["session"]


def test_from_before_a_turn_and_from_a_checkpoint(process: Cli):
    Path("a.txt").write_text("a")
    for number in (1, 2):
        assert process("run", "-q", "--", "sh", "-c", f"echo {number} > a.txt").code == 0
    assert process("checkpoint", "lunch").code == 0
    assert process("run", "-q", "--", "true").code == 0
    session = process("path", "--json").json["session"]
    assert process("fork", session, "--at", "turn:2", "--json").json["messages"] == 2
    assert process("fork", session, "--at", "lunch", "--json").json["messages"] == 4
    assert process("fork", session, "--json").json["messages"] == 6


@pytest.mark.parametrize("place", ["99", "turn:7", "nowhere", "0"])
def test_a_place_that_is_not_there_makes_nothing(process: Cli, session: str, place: str, folder: Path):
    done = process("fork", "--at", place)
    assert (done.code, done.out) == (3, "")
    assert len(list((folder / "sessions").iterdir())) == 1


def test_a_fork_of_a_session_in_which_an_agent_is_at_work(process: Cli, folder: Path):
    with turnlog.open(checkpoints=False) as home:
        session = home.create(id="busy", workspace=".")
        with session.turn():
            session.user("hi")
            made = process("fork", "busy", "--json").json
            session.assistant("still here")
    assert conversation(process, made["session"]) == conversation(process, "busy")[:1]


def test_a_name_of_blanks_is_none(cli: Cli, session: str):
    assert cli("fork", session, "--name", "  ", "--json").json["name"] is None
    assert cli("fork", session, "--name", " plan b ", "--json").json["name"] == "plan b"


def test_without_a_session_only_one_of_this_folder_is_forked(cli: Cli, session: str, tmp_path: Path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cli("fork").code == 3
    with turnlog.open() as home:
        assert [row.id for row in home.sessions()] == [session]


def test_a_name_that_is_not_unicode_is_no_fault(cli: Cli, session: str, folder: Path):
    done = cli("fork", "--name", "caf\udce9")
    assert done.code == 2
    assert done.err == "error: text that is not Unicode: 'caf\\udce9'\n"
    assert len(list((folder / "sessions").iterdir())) == 1


def test_a_fork_of_an_archived_session_is_listed(cli: Cli, session: str):
    cli("archive", session)
    fork = cli("fork", session, "--json").json["session"]
    assert [row["id"] for row in cli("ls", "--json").json["sessions"]] == [fork]
    assert [row["id"] for row in cli("ls", "is:archived", "--json").json["sessions"]] == [session]
