"""Every command on a home that is a database."""

import os
from pathlib import Path

import psycopg
import pytest

import turnlog
from tests.cli.every import NAMES, looks_at_a_home, prepare
from tests.cli.scene import Cli, write_session
from tests.pgserver import Server


@pytest.fixture
def url(postgres: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with a session in it, of which the environment says that it is the home."""
    place = postgres.database(f"cli{os.urandom(6).hex()}")
    monkeypatch.setenv("TURNLOG_HOME", place)
    with turnlog.open(checkpoints=False) as home:
        write_session(home)
    return place


@pytest.mark.parametrize("name", [name for name in NAMES if looks_at_a_home(name) and name != "path"])
def test_every_command_works_there(name: str, url: str, cli: Cli):
    for more in ([], ["--json"]):
        words = prepare(cli, name)
        done = cli(words[0], *more, *words[1:])
        assert done.code == 0, done.err
        assert "Traceback" not in done.err
    assert done.json["version"] == (2 if name == "search" else 1)


def test_home_may_be_given_as_an_option(url: str, process: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "nothing"))
    assert process("--home", url, "log").out == process("log", "--home", url).out != ""


def test_the_one_before_is_not_the_newest_again(url: str, process: Cli):
    newest, before = process("fork", "--json").json["session"], process("log", "--json", "@-").json["session"]
    assert process("log", "--json", "@").json["session"] == newest != before


def test_there_is_no_path_and_it_says_what_there_is_instead(url: str, process: Cli):
    done = process("path")
    assert done.code == 7
    assert done.err.startswith("error: the postgres store keeps no files\nhint: `turnlog log ")
    name = done.err.split("`turnlog log ")[1].split(" ")[0]
    assert process("log", name, "--json").json["entries"]


def test_the_doctor_says_how_the_database_is(url: str, process: Cli):
    done = process("doctor")
    assert done.code == 0
    assert "1 session, " in done.out
    assert "nothing wrong" in done.out
    told = process("doctor", "--json").json
    assert told["ok"] is True
    assert told["store"]["backend"] == "postgres"
    assert [row["ok"] for row in told["sessions"]] == [True]
    refused = process("doctor", "--repair")
    assert refused.code == 7


def test_the_demo_is_there_and_leaves_nothing(url: str, process: Cli):
    done = process("demo", "--json")
    assert done.code == 0, done.out + done.err
    assert done.json["ok"] is True
    assert len(done.json["checks"]) > 12
    with psycopg.connect(url) as admin:
        query = "select count(*) from turnlog.session join turnlog.tenant t on t.num = tenant where name like %s"
        assert admin.execute(query, ("turnlog-demo-%",)).fetchall() == [(0,)]
        assert admin.execute("select name from turnlog.tenant where name like 'turnlog-demo-%'").fetchall() == []


def test_the_doctor_tells_of_a_database_that_is_broken(url: str, process: Cli):
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter table turnlog.entry rename to gone")
    done = process("doctor")
    assert (done.code, done.err) == (6, "")
    assert "SOMETHING IS WRONG WITH IT" in done.out
    assert 'relation "turnlog.entry" does not exist' in " ".join(done.out.split())
    assert done.out.endswith("\nno session could be examined\n")
    told = process("doctor", "--json")
    assert (told.code, told.json["ok"], told.json["sessions"]) == (6, False, [])
    assert told.json["store"]["reason"] == "unsupported"


def test_what_a_demo_leaves_on_purpose_can_be_looked_at(url: str, process: Cli):
    told = process("--home", url, "demo", "log", "--keep").out.splitlines()[-1]
    place = told.removeprefix("Look around: TURNLOG_HOME=").removesuffix(" turnlog ls").strip("'")
    with turnlog.open(place) as home:
        assert sorted(row.title for row in home.sessions()) == ["Fix the flaky test"] * 2
