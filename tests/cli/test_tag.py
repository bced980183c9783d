"""`turnlog tag`."""

import pytest

import turnlog
from tests.cli.scene import Cli


def test_tags_are_added_listed_and_removed(cli: Cli, session: str):
    assert cli("tag").out == ""
    assert cli("tag", "@", "urgent", "#login").out == f"session {session[-8:]}: #urgent #login\n"
    assert cli("tag", "@", "urgent").out == f"session {session[-8:]}: #urgent #login\n"
    assert cli("tag").out == "urgent\nlogin\n"
    assert cli("tag", "@", "--remove", "urgent", "--json").json == {"version": 1, "session": session, "tags": ["login"]}
    with turnlog.open() as home:
        (row,) = home.sessions()
        assert row.tags == ["login"]


def test_what_changes_nothing_writes_nothing(cli: Cli, session: str):
    cli("tag", "@", "urgent")
    before = cli("log", "--json").json
    cli("tag", "@", "urgent")
    cli("tag", "@", "--remove", "other")
    assert cli("log", "--json").json == before


@pytest.mark.parametrize("tag", ["two words", "a,b", "", "#", "a\nb", 'a"b', "a\x1bb"])
def test_a_tag_is_one_plain_word(cli: Cli, session: str, tag: str):
    done = cli("tag", "@", tag)
    assert done.code == 2
    assert "one word" in done.err
    assert "\x1b" not in done.err
    assert cli("tag").out == ""


def test_remove_says_what(cli: Cli, session: str):
    assert cli("tag", "@", "--remove").code == 2


def test_a_tag_alone_is_no_session(cli: Cli, session: str):
    done = cli("tag", "urgent")
    assert done.code == 3
    assert "urgent" in done.err
    assert cli("tag").out == ""
