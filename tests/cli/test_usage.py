"""`turnlog usage`."""

import csv
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

import turnlog
from tests.cli.machine import claude_session, settle, three_agents
from tests.cli.scene import Cli, write_session
from tests.cli.terminal import Terminal
from turnlog.catalog.ask import paging
from turnlog.catalog.ask.usage import GROUPS
from turnlog.cli.commands import search as search_command
from turnlog.cli.commands import usage as usage_command
from turnlog.cli.usageblocks import _limit_lines  # pyright: ignore[reportPrivateUsage]
from turnlog.mcp import offer
from turnlog.reader.agents.limit import AgentLimit

ID = "aaaaaaaa-1111-4222-8333-444444444444"
OTHER = "bbbbbbbb-1111-4222-8333-444444444444"
# claude-sonnet-4-5, in a request of over 200,000 tokens: $6 and $22.50 for a million of them.
MICROS = 6_000_000 + 2_250_000


@pytest.fixture
def two(folder: Path, tmp_path: Path) -> None:
    claude_session(tmp_path / "person", str(Path.cwd()), ID, "one", "two")
    claude_session(tmp_path / "person", "/home/ada/other", OTHER, "three", at="2026-11-01T12:00:00.000Z")


def test_by_day_in_micro_dollars(two: None, process: Cli):
    told = process("usage", "--json").json
    assert told["version"] == 1
    assert told["by"] == "day"
    days = {row["group"]: row for row in told["groups"]}
    assert list(days) == ["2026-11-01", "2026-11-15"]
    assert days["2026-11-15"]["cost_micros"] == 2 * MICROS
    assert days["2026-11-15"]["requests"] == 2
    assert days["2026-11-15"]["input_tokens"] == 2_000_000
    assert told["total"]["cost_micros"] == 3 * MICROS
    assert told["total"]["sessions"] == 2
    assert told["total"]["unpriced"] == []


@pytest.mark.parametrize("by", ["day", "week", "model,session", "workspace", "user", "block"])
def test_however_it_is_added_up_the_sum_is_the_same(two: None, process: Cli, by: str):
    told = process("usage", "--by", by, "--json").json
    assert sum(row["cost_micros"] for row in told["groups"]) == told["total"]["cost_micros"] == 3 * MICROS


def test_filters_and_folders(two: None, process: Cli):
    def spent(*words: str) -> int:
        return process("usage", "--json", *words).json["total"]["cost_micros"]

    assert spent("until:2026-11-02") == MICROS
    assert spent("--here") == 2 * MICROS
    assert spent("--workspace", "/home/ada") == MICROS
    assert spent("agent:codex") == 0


def test_a_table_with_a_sum(two: None, process: Cli):
    done = process("usage")
    head, *rows, total = done.out.splitlines()
    assert head.split() == ["DAY", "SESSIONS", "REQUESTS", "INPUT", "CACHE", "READ", "CACHE", "WRITE", "OUTPUT", "COST"]
    assert rows[-1].split() == ["2026-11-15", "1", "2", "2000000", "0", "0", "200000", "$16.50"]
    assert total.startswith("total, at API prices ")
    assert total.endswith("$24.75")
    assert done.err == ""


def test_only_some_rows_still_all_of_the_sum(two: None, process: Cli):
    lines = process("usage", "-n", "1").out.splitlines()
    assert lines[1].startswith("2026-11-15 ")
    assert lines[2].startswith("all of it, at API prices ")
    assert lines[2].endswith("$24.75")
    lines = process("usage", "--by", "session", "-n", "1").out.splitlines()
    assert "aaaaaaaa" in lines[1]


def test_a_model_without_a_price_is_named(folder: Path, process: Cli):
    with turnlog.open() as home:
        session = home.create(workspace=".")
        session.user("hello")
        session.assistant("hi", model="my-own-model", usage=turnlog.Usage(input_tokens=10, output_tokens=5))
    done = process("usage")
    assert done.out.splitlines()[-1].endswith("?")
    assert done.err.startswith("warning: no price is known for my-own-model")
    assert "hint: " in done.err
    assert process("usage", "--json").json["total"]["unpriced"] == ["my-own-model"]


def test_nothing_spent(process: Cli):
    done = process("usage", "agent:codex")
    assert (done.code, done.out) == (0, "")
    assert done.err == "no usage for agent:codex\n"
    assert process("usage", "--json").json["groups"] == []


def test_the_agents_costs_equal_what_importing_them_tells(folder: Path, tmp_path: Path, process: Cli):
    three_agents(tmp_path / "person", Path.cwd())
    before = process("usage", "--json").json["total"]
    with turnlog.open() as home:
        home.import_sessions()
    after = process("usage", "--json").json["total"]
    same = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_micros", "requests")
    assert {name: before[name] for name in same} == {name: after[name] for name in same}
    assert before["output_tokens"] > 0


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_it_fits_a_terminal(two: None, process: Cli, columns: int):
    with turnlog.open() as home:
        write_session(home)
    settle(process)
    with Terminal("-m", "turnlog", "usage", "--by", "workspace", columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.plain.splitlines()
    assert max(map(len, lines)) <= columns
    assert "COST" in lines[0]
    assert "total" in terminal.plain


def test_what_to_add_up_by_may_be_the_first_word(two: None, cli: Cli):
    assert cli("usage", "month", "--all", "--json").json == cli("usage", "--by", "month", "--json").json
    assert cli("usage", "month", "agent:codex", "--json").json["groups"] == []
    assert "`turnlog usage month`" in cli("usage", "--by", "day", "month").err
    assert "leave one of them out" in cli("usage", "--all", "--here").err


@pytest.mark.parametrize(
    ("word", "by"),
    [("monthly", "month"), ("weekly", "week"), ("daily", "day"), ("sessions", "session"), ("project", "workspace"),
     ("month,model", "month,model"), ("users,machines", "user,machine")],
)  # fmt: skip
def test_words_of_other_programs(two: None, cli: Cli, word: str, by: str):
    assert cli("usage", word, "--json").json == cli("usage", "--by", by, "--json").json
    assert cli("usage", word, "--json").json["by"] == by


def test_what_to_add_up_by_may_stand_anywhere_among_the_filters(two: None, cli: Cli):
    asked = cli("usage", "agent:claude", "since:2026-11-10", "monthly", "--json").json
    assert asked == cli("usage", "monthly", "agent:claude", "since:2026-11-10", "--json").json
    assert (asked["by"], asked["total"]["requests"]) == ("month", 2)
    assert "'weekly' is none" in cli("usage", "monthly", "weekly").err


def test_the_models_of_each_day_stand_below_it(two: None, cli: Cli):
    lines = cli("usage", "daily", "--breakdown").out.splitlines()
    assert [line.split()[0] for line in lines[1:-1]] == [
        "2026-11-01", "claude-sonnet-4-5", "2026-11-15", "claude-sonnet-4-5",
    ]  # fmt: skip
    assert lines[2].startswith("  claude")
    [day, _] = cli("usage", "daily", "--breakdown", "--json").json["groups"]
    assert [(part["names"], part["cost_micros"]) for part in day["models"]] == [
        (["2026-11-01", "claude-sonnet-4-5"], MICROS)
    ]
    assert cli("usage", "models", "--breakdown", "--json").json == cli("usage", "models", "--json").json


def test_csv_adds_up_and_runs_nothing(two: None, folder: Path, cli: Cli):
    with turnlog.open() as home, home.create(workspace=".", title='=1+1, "x"') as session:
        session.user("hello")
        session.assistant("hi", model="@home", usage=turnlog.Usage(input_tokens=10, output_tokens=5))
    rows = list(csv.DictReader(cli("usage", "--by", "month,model", "--csv").out.splitlines()))
    assert {row["month"] for row in rows} >= {"2026-11"}
    assert sum(int(row["cost_micros"]) for row in rows) == 3 * MICROS
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal("24.75")
    assert "'@home" in {row["model"] for row in rows}
    titles = {row["title"] for row in csv.DictReader(cli("usage", "sessions", "--csv").out.splitlines())}
    assert '\'=1+1, "x"' in titles
    for formula in ("\n=1+1", " @x", "\u3000-1", "＝1+1"):
        with turnlog.open() as home, home.create(workspace=".", title=formula) as session:
            session.user("hello")
            session.assistant("hi", model="m", usage=turnlog.Usage(input_tokens=10))
        rows = csv.DictReader(cli("usage", "sessions", "--csv", f"session:{session.id}").out.splitlines())
        assert [row["title"][0] for row in rows] == ["'"]
    assert cli("usage", "daily", "--breakdown", "--csv").out.startswith("day,model,sessions,requests,")
    assert "leave one of them out" in cli("usage", "--csv", "--json").err


@pytest.mark.parametrize(
    ("word", "form"),
    [("codex", "agent:codex"), ("opus", "model:opus"), ("2026-11", "since:2026-11"), ("montly", "usage monthly"),
     ("login", "title:login"), (ID[:5], f"session:{ID[:5]}"), ("by", "usage --by WHAT"),
     ("7d", "since:7d"), ("today", "since:today"), ("src/api", "workspace:src/api")],
)  # fmt: skip
def test_a_word_that_is_no_filter_is_told_its_form(two: None, cli: Cli, word: str, form: str):
    done = cli("usage", word)
    assert done.code != 0
    assert repr(word) in done.err
    assert f"{form}`" in done.err


def test_a_suggested_command_can_be_typed(two: None, cli: Cli):
    hint = cli("usage", '"login; page"').err.splitlines()[1]
    assert hint == "hint: `turnlog usage 'title:login; page'`? `turnlog search 'login; page'` finds what was said"


def test_windows_of_five_hours(two: None, cli: Cli):
    head, *rows = cli("usage", "blocks").out.splitlines()
    assert head.split()[:2] == ["BLOCK", "AGENT"]
    assert len(rows) == 2
    assert rows[-1].startswith("2026-11-15 10:00-15:00")
    told = cli("usage", "blocks", "--json").json["groups"][-1]["block"]
    assert (told["start"], told["is_active"]) == ("2026-11-15T10:00:00.000Z", False)
    assert cli("usage", "--by", "block,model").code == 2
    assert cli("usage", "blocks", "--csv").out.startswith("start,agent,sessions,")


def test_the_rate_of_what_has_no_price_is_not_known(
    folder: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
):
    for id, time in ((ID, "10:00"), (OTHER, "11:00")):
        path = claude_session(tmp_path / "person", "/home/ada", id, "one", at=f"2026-11-15T{time}:00.000Z")
        path.write_text(path.read_text().replace("claude-sonnet-4-5", "nobody-knows-1"))
    monkeypatch.setenv("COLUMNS", "80")
    [_, row] = cli("usage", "blocks").out.splitlines()
    assert row.split()[-2:] == ["?", "?"]


def test_what_the_sessions_behind_commits_cost(folder: Path, process: Cli):
    def git(*words: str) -> None:
        who = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], check=True, capture_output=True)

    git("init", "-qb", "main")
    Path("f").write_text("one\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    with turnlog.open() as home:
        for micros, line in ((1_000_000, "two\n"), (20_000_000, "")):
            session = home.create(workspace=".", agent="me")
            with session.turn():
                child = session.spawn(agent="helper")
                child.assistant("x", model="m", usage=turnlog.Usage(1, 1, cost_micros=micros * 2))
                Path("f").write_text(Path("f").read_text() + line)
                session.assistant("done", model="m", usage=turnlog.Usage(1, 1, cost_micros=micros))
    git("commit", "-qam", "second")
    told = process("usage", "commit:HEAD~1..HEAD", "--json").json["total"]
    assert (told["cost_micros"], told["sessions"]) == (3_000_000, 2)
    assert len(process("ls", "commit:HEAD", "--json").json["sessions"]) == 1
    done = process("usage", "commit:nowhere")
    assert (done.code, "no commit 'nowhere'" in done.err) == (3, True)


def test_every_face_groups_and_sorts_by_what_the_catalog_can():
    assert (*GROUPS, "block") == usage_command.BY
    assert set(offer.BY) < set(GROUPS)
    assert search_command.SORTS == paging.SORTS


def test_two_groups_are_asked_for_with_a_comma(cli: Cli, session: str):
    done = cli("usage", "--by", "model", "--by", "month")
    assert (done.code, done.err) == (2, "error: option '--by' is given twice\nhint: `--by A,B` adds up by both\n")


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(10_080, "7 days"), (1440, "1 day"), (300, "5 hours"), (299, "5 hours"), (60, "1 hour"), (45, "45 minutes")],
)
def test_a_limit_says_how_long_its_window_is(minutes: int, words: str):
    [_, line] = _limit_lines([AgentLimit("codex", minutes, 10.0, 0.0, None)], 60.0)
    assert line == f"codex said 1m ago: 90% of {words} left"
