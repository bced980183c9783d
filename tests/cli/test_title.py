"""`turnlog title`."""

import turnlog
from tests.cli.scene import Cli, write_session


def test_it_prints_and_changes_the_title(cli: Cli, session: str):
    assert cli("title").out == "The race in conftest\n"
    done = cli("title", "@", "Fix", "the login page")
    assert (done.code, done.out) == (0, f"session {session[-8:]} is now “Fix the login page”\n")
    assert cli("title", "--json").json == {"version": 1, "session": session, "title": "Fix the login page"}
    with turnlog.open() as home:
        assert home.resume(session).title == "Fix the login page"


def test_another_session_has_to_be_named(cli: Cli, session: str, tmp_path):
    with turnlog.open() as home:
        other = write_session(home, workspace=tmp_path)
    assert cli("title", other, "Elsewhere").code == 0
    assert cli("title").out == "The race in conftest\n"
    assert cli("title", other).out == "Elsewhere\n"


def test_the_same_title_again_writes_nothing(cli: Cli, session: str):
    cli("title", "@", "Once")
    before = cli("log", "--json").json
    assert cli("title", "@", "Once").code == 0
    assert cli("log", "--json").json == before


def test_a_title_without_a_word_is_refused(cli: Cli, session: str):
    done = cli("title", "@", " ")
    assert done.code == 2
    assert done.err.startswith("error: a title without a word\n")
    assert cli("title").out == "The race in conftest\n"


def test_a_title_cannot_drive_the_terminal(cli: Cli, session: str):
    done = cli("title", "@", "\x1b[2Jgone")
    assert "\x1b" not in done.out
    assert "\\x1b[2Jgone" in done.out


def test_a_title_is_either_given_or_removed(cli: Cli, session: str):
    done = cli("title", "@", "foo", "--remove")
    assert (done.code, done.err.splitlines()[0]) == (2, "error: either TEXT or --remove")


def test_a_title_is_removed_only_in_this_folder_unless_a_session_is_named(
    cli: Cli, session: str, tmp_path, monkeypatch
):
    cli("title", "@", "Mine")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert cli("title").out == "Mine\n"
    assert cli("title", "--remove").code == 3
    assert cli("title").out == "Mine\n"
    assert cli("title", session, "--remove").code == 0
