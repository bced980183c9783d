"""`turnlog log`."""

import turnlog
from tests.cli.scene import Cli


def test_one_line_per_entry(cli: Cli, session: str):
    head, *rows = cli("log").out.splitlines()
    assert head.split() == ["SEQ", "TIME", "TYPE", "PARENT", "WHAT"]
    assert [int(row.split()[0]) for row in rows] == list(range(1, len(rows) + 1))
    assert "  message          0  user: The test is flaky, fix it" in rows[3]
    assert 'title = "The race in conftest"' in rows[7]


def test_kinds_order_and_limit(cli: Cli, session: str):
    assert [e["type"] for e in cli("log", "--kind", "note", "--json").json["entries"]] == ["note"] * 3
    newest = cli("log", "--reverse", "--limit", "2", "--json").json["entries"]
    assert [entry["seq"] for entry in newest] == [12, 11]


def test_json_is_the_whole_log(cli: Cli, session: str):
    data = cli("log", "--json").json
    assert (data["version"], data["session"]) == (1, session)
    with turnlog.open() as home:
        entries = list(home.resume(session).entries())
    assert [(e["seq"], e["id"]) for e in data["entries"]] == [(e.seq, e.id) for e in entries]
    assert cli("log", "--kind", "nothing", "--json").json["entries"] == []


def test_a_fork_shows_what_it_inherited(cli: Cli, session: str):
    with turnlog.open() as home:
        fork = home.resume(session).fork()
    assert [entry["seq"] for entry in cli("log", fork.id, "--json").json["entries"]][:12] == list(range(1, 13))


def test_every_type_of_entry_has_words(cli: Cli, session: str):
    with turnlog.open() as home:
        resumed = home.resume(session)
        ask = resumed.user("once more")
        resumed.compact("so far", keep=1)
        resumed.uncompact()
        resumed.edit(ask, None)
        resumed.append(turnlog.Custom(kind="x.y", data={"a": 1}))
        resumed.rewind(to=ask)
        resumed.undo()
        resumed.set("mode", "plan")
        resumed.unset("mode")
        resumed.spend(turnlog.Usage(input_tokens=5), why="title")
        resumed.spawn(agent="explorer")
    out = cli("log").out
    for words in (
        "compaction 14 no longer applies",
        "is not shown to the model",
        'x.y {"a":1}',
        "rewind: continues from entry 13",
        "undo: continues from entry",
        'mode = "plan"',
        "mode is unset",
        "5 tokens in, 0 out for title",
        "subagent explorer",
    ):
        assert words in out


def test_a_type_that_no_entry_has_is_told(cli: Cli, session: str):
    done = cli("log", "--kind", "mesage")
    assert done.code == 0
    assert done.err == "no entry of type 'mesage'; `turnlog log` shows the type of each\n"
    assert cli("log", "--kind", "message").err == ""
