"""The catalog follows the disk: whatever happened to files, it answers what a new one would answer."""

import json
import os
import random
import shutil
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine, answers, same
from turnlog.catalog.index.cards import CardMaker
from turnlog.catalog.index.ending import WAITING
from turnlog.catalog.index.sqlite.writer import SqliteWriter
from turnlog.catalog.read import indexer

KIMI_CODE = Path(__file__).parents[1] / "formats/agents/kimi/dot-kimi-code"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_it_knows_sessions_of_every_kind(machine: Machine):
    machine.claude("aaaa", 2)
    machine.codex("bbbb", 1)
    machine.ours("cccc", 3)
    with machine.catalog() as catalog:
        cards = {card.name: card for card in catalog.cards()}
        assert set(cards) == {"claude-code:aaaa", "codex:bbbb", "cccc"}
        claude = cards["claude-code:aaaa"]
        assert (claude.turns, claude.messages, claude.tool_calls, claude.model) == (2, 8, 2, "claude-sonnet-4-5")
        assert claude.preview == "please find needle1 in the haystack"
        assert claude.workspace == str(machine.work)
        assert (cards["cccc"].turns, cards["cccc"].messages, cards["cccc"].is_ours) == (3, 6, True)
        assert cards["codex:bbbb"].own.output_tokens == 10


def test_what_did_not_change_is_not_read_again(machine: Machine):
    machine.claude("aaaa")
    machine.ours("cccc")
    with machine.catalog() as catalog:
        assert catalog.sync().read == 2
    machine.settle()
    with machine.catalog() as catalog:
        catalog.sync()
    with machine.catalog() as catalog:
        done = catalog.sync()
    assert (done.read, done.sessions, done.is_rebuilt) == (0, 2, False)


@pytest.mark.parametrize("kind", ["claude", "codex", "ours"])
def test_only_a_session_that_grew_is_read(machine: Machine, kind: str):
    for other in ("claude", "codex", "ours"):
        getattr(machine, other)(f"x{other}", 2)
    machine.settle()
    with machine.catalog() as catalog:
        catalog.sync()
    getattr(machine, kind)(f"x{kind}", 1)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        done = catalog.sync()
        assert done.read == 1
        same(catalog, fresh)


def test_a_title_above_the_file_of_a_session_is_read_again(machine: Machine):
    shutil.copytree(KIMI_CODE, machine.user / ".kimi-code")
    state = next(machine.user.rglob("session_one/state.json"))
    machine.settle()
    with machine.catalog() as catalog:
        before = catalog.find("session_one").title
    state.write_text(json.dumps({**json.loads(state.read_text()), "title": "Pears"}))
    with machine.catalog() as catalog:
        assert before != catalog.find("session_one").title == "Pears"


def test_a_file_that_goes_away_leaves_the_catalog(machine: Machine):
    path = machine.claude("aaaa")
    machine.claude("bbbb")
    with machine.catalog() as catalog:
        assert len(catalog.cards()) == 2
    path.unlink()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [card.id for card in catalog.cards()] == ["bbbb"]
        same(catalog, fresh)


def test_deleted_sessions_of_ours_are_known_as_such(machine: Machine):
    machine.ours("cccc")
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == ["cccc"]
    with turnlog.open(str(machine.home)) as home:
        home.delete("cccc")
    with machine.catalog() as catalog:
        assert catalog.cards(everything=True) == []
        assert [card.id for card in catalog.cards(deleted=True)] == ["cccc"]
        assert catalog.cards(deleted=True)[0].deleted
    with turnlog.open(str(machine.home)) as home:
        home.restore("cccc")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert [card.id for card in catalog.cards()] == ["cccc"]
        same(catalog, fresh)


def test_a_file_that_was_cut_is_read_again_and_says_so(machine: Machine):
    machine.ours("cccc", 5)
    with machine.catalog() as catalog:
        assert catalog.cards()[0].messages == 10
    log = next((machine.home / "sessions").glob("*.jsonl"))
    with log.open("r+b") as file:
        lines = file.readlines()
        file.truncate(sum(map(len, lines[:4])))
    with machine.catalog() as catalog, machine.fresh() as fresh:
        [card] = catalog.cards()
        assert card.messages < 10
        assert card.problem.startswith("it was cut: ")
        assert fresh.cards() == [card._replace(problem="")]


def test_a_session_truncated_to_nothing_stays_listed(machine: Machine):
    machine.ours("cccc", 2)
    with machine.catalog() as catalog:
        catalog.sync()
    log = next((machine.home / "sessions").glob("*.jsonl"))
    log.write_bytes(b"")
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == ["cccc"]


def test_a_source_that_cannot_be_read_is_listed_with_its_reason(machine: Machine):
    path = machine.claude("aaaa")
    other = machine.claude("bbbb")
    with machine.catalog() as catalog:
        catalog.sync()
    path.unlink()
    path.mkdir()
    (other.parent / "cccc.jsonl").symlink_to("nowhere")
    with machine.catalog() as catalog:
        cards = {card.id: card for card in catalog.cards()}
        assert "cannot be read" in cards["aaaa"].problem
        assert "leads nowhere" in cards["cccc"].problem
        assert cards["bbbb"].problem == ""
    with machine.catalog() as catalog:
        assert {card.id for card in catalog.cards()} == {"aaaa", "bbbb", "cccc"}


def test_a_pipe_hangs_nobody(machine: Machine):
    path = machine.claude("aaaa")
    os.mkfifo(path.parent / "pipe.jsonl")
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == ["aaaa"]
    path.unlink()
    os.mkfifo(path)
    with machine.catalog() as catalog:
        assert "pipe" in catalog.cards()[0].problem


def test_odd_names_of_folders_and_files(machine: Machine):
    machine.claude("aaaa", project="-odd\udcff-näme \u202e")
    machine.claude("new\nline\tand\u2028more", project="-x")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert len(catalog.cards()) == 2
        assert any("\udcff" in card.path for card in catalog.cards())
        same(catalog, fresh)
        assert catalog.sync().sessions == 2


@pytest.mark.parametrize("folder", ["/a\0b", "relative/x", "C:\\Users\\x"])
def test_odd_workspaces(machine: Machine, folder: str):
    path = machine.claude("aaaa")
    text = path.read_text().replace(_json(str(machine.work)), _json(folder))
    path.write_text(text)
    with machine.catalog() as catalog:
        [card] = catalog.cards()
        assert card.workspace is not None
        assert catalog.cards(workspace=machine.work) == []


def _json(text: str) -> str:
    import json

    return json.dumps(text)


def test_a_home_that_cannot_be_written_has_its_catalog_elsewhere(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    machine.ours("cccc")
    before = sorted(os.listdir(machine.home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.folder / "cache"))
    may = os.access
    home = str(machine.home)
    # Permissions do not bind root.
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(home) and may(path, mode))
    with machine.catalog() as catalog:
        assert [card.id for card in catalog.cards()] == ["cccc"]
        assert catalog.path.startswith(str(machine.folder / "cache" / "turnlog"))
    assert sorted(os.listdir(machine.home)) == before


def test_a_home_in_a_database_has_other_agents_sessions_and_no_password_in_its_name(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    from turnlog.catalog import Catalog

    machine.claude("aaaa")
    monkeypatch.setenv("XDG_CACHE_HOME", str(machine.folder / "cache"))
    names = {Catalog(f"postgresql://ada{secret}@host/db").path for secret in ("", ":one", ":two")}
    assert len(names) == 1
    with Catalog("memory:") as catalog:
        assert [card.id for card in catalog.cards()] == ["aaaa"]
        assert catalog.path not in names


def test_sessions_in_the_workspace_are_found_there_and_remembered(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    seeds = Path(__file__).parents[1] / "formats" / "seeds" / "sofos"
    shutil.copytree(next(seeds.rglob(".sofos")), machine.work / ".sofos")
    with machine.catalog() as catalog:
        assert {card.agent for card in catalog.cards()} == {"sofos"}
    monkeypatch.chdir(machine.user)
    with machine.catalog() as catalog:
        assert {card.agent for card in catalog.cards()} == {"sofos"}


def test_another_environment_is_asked_again(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    machine.claude("aaaa")
    with machine.catalog() as catalog:
        assert len(catalog.cards()) == 1
    elsewhere = machine.folder / "config" / "projects" / "-x"
    elsewhere.mkdir(parents=True)
    path = machine.claude("bbbb")
    path.rename(elsewhere / path.name)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(machine.folder / "config"))
    with machine.catalog() as catalog:
        assert {card.id for card in catalog.cards()} == {"aaaa", "bbbb"}


def test_an_import_and_its_source_are_one_session(machine: Machine):
    path = machine.claude("aaaa", 3)
    machine.codex("bbbb", 2)
    with machine.catalog() as catalog:
        alone = catalog.usage(by="agent", timezone=None)[-1].tokens
    with turnlog.open(str(machine.home)) as home:
        home.import_sessions()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert {card.name for card in catalog.cards()} == {"claude-code-aaaa", "codex-bbbb"}
        assert {card.copy_of for card in catalog.cards()} == {"claude-code:aaaa", "codex:bbbb"}
        assert catalog.usage(by="agent", timezone=None)[-1].tokens == alone
        assert len(catalog.cards(everything=True)) == 4
        same(catalog, fresh)
    machine.claude("aaaa", 1)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        names = {card.name for card in catalog.cards()}
        assert names == {"claude-code-aaaa", "claude-code:aaaa", "codex-bbbb"}, "what the copy lacks is not hidden"
        more = catalog.usage(by="agent", timezone=None)[-1].tokens
        assert more.output_tokens == alone.output_tokens + 14
        same(catalog, fresh)
    path.unlink()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert catalog.usage(by="agent", timezone=None)[-1].tokens == more, "what was spent stays spent"
        same(catalog, fresh)


def test_a_resumed_session_that_repeats_another_counts_once(machine: Machine):
    path = machine.claude("aaaa", 2)
    copy = path.with_name("bbbb.jsonl")
    copy.write_text(path.read_text().replace('"sessionId": "aaaa"', '"sessionId": "bbbb"'))
    machine.claude("bbbb", 1)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        cards = {card.id: card for card in catalog.cards()}
        assert cards["aaaa"].own.output_tokens == 28
        assert (cards["bbbb"].own.output_tokens, cards["bbbb"].inherited.output_tokens) == (14, 28)
        assert catalog.usage(by="model", timezone=None)[-1].tokens.output_tokens == 42
        same(catalog, fresh)
    path.unlink()
    with machine.catalog() as catalog, machine.fresh() as fresh:
        [card] = catalog.cards()
        assert (card.own.output_tokens, card.inherited.output_tokens) == (42, 0)
        same(catalog, fresh)


def test_forks_and_subagents_of_ours(machine: Machine):
    machine.ours("cccc", 2)
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        with home.resume("cccc") as session, session.fork(id="forked") as fork:
            fork.append(turnlog.Message(role="user", blocks=[turnlog.Text(text="another way")]))
        with home.resume("cccc") as session, session.spawn(id="helper") as helper:
            helper.append(
                turnlog.Message(
                    role="assistant", model="claude-sonnet-4-5", usage=turnlog.Usage(input_tokens=5, output_tokens=50)
                )
            )
        bills = {}
        for name in ("cccc", "forked", "helper"):
            with home.resume(name) as session:
                bills[name] = (session.cost(), session.usage(), session.stats(), len(session.branches()))
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert {card.id for card in catalog.cards()} == {"cccc", "forked"}
        cards = {card.id: card for card in catalog.cards(everything=True)}
        assert (cards["forked"].fork, cards["helper"].parent) == ("cccc", "cccc")
        for name, (cost, usage, stats, branches) in bills.items():
            card = cards[name]
            assert card.own.cost_micros == cost.own.micros
            assert card.inherited.cost_micros == cost.inherited.micros
            assert card.subagents.cost_micros == cost.subagents.micros
            assert card.own.input_tokens == usage.own.input_tokens
            assert card.inherited.input_tokens == usage.inherited.input_tokens
            assert card.subagents.output_tokens == usage.subagents.output_tokens
            assert (card.messages, card.turns, card.branches) == (stats.messages, stats.turns, branches)
        same(catalog, fresh)


def test_branches_titles_tags_and_workspaces_follow_the_log(machine: Machine):
    machine.ours("cccc", 3)
    with machine.catalog() as catalog:
        catalog.sync()
    with turnlog.open(str(machine.home), checkpoints=False) as home, home.resume("cccc") as session:
        session.rewind(turns=1)
        session.append(turnlog.Message(role="user", blocks=[turnlog.Text(text="otherwise")]))
        session.set("title", "Needles")
        session.set("tags", ["urgent", "two words"])
        session.set("workspace", str(machine.user))
        branches = len(session.branches())
    assert branches == 2
    with machine.catalog() as catalog, machine.fresh() as fresh:
        [card] = catalog.cards(workspace=machine.user)
        assert (card.title, card.tags, card.branches) == ("Needles", ("urgent", "two words"), branches)
        same(catalog, fresh)


@pytest.mark.parametrize("kind", ["codex", "ours"])
def test_what_only_grew_is_not_read_from_its_beginning(machine: Machine, kind: str, monkeypatch: pytest.MonkeyPatch):
    from turnlog.catalog.read import own as ours
    from turnlog.formats import codex

    getattr(machine, kind)("xxxx", 3)
    with machine.catalog() as catalog:
        catalog.sync()

    def refuse(*_: object) -> None:
        raise AssertionError("it is read from its beginning")

    monkeypatch.setattr(codex, "read", refuse)
    monkeypatch.setattr(ours, "_inherit", refuse)
    for _ in range(3):
        getattr(machine, kind)("xxxx", 1)
        with machine.catalog() as catalog:
            [card] = catalog.cards()
            assert (card.problem, catalog.sync().sessions) == ("", 1)
    assert card.turns == 6
    monkeypatch.undo()
    monkeypatch.setenv("HOME", str(machine.user))
    monkeypatch.chdir(machine.work)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


def test_a_file_that_was_rewritten_is_read_from_its_beginning(machine: Machine):
    path = machine.codex("xxxx", 3)
    with machine.catalog() as catalog:
        assert catalog.cards()[0].preview == "codex, find needle1"
    path.write_text(path.read_text().replace("needle1", "a longer needle"))
    machine.codex("xxxx", 1)
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert catalog.cards()[0].preview == "codex, find a longer needle"
        same(catalog, fresh)


def test_without_agents_only_ours_are_looked_at(machine: Machine):
    machine.claude("aaaa")
    machine.ours("cccc")
    with machine.catalog(agents=False) as catalog:
        assert [card.id for card in catalog.cards()] == ["cccc"]
    with machine.catalog() as catalog:
        assert len(catalog.cards()) == 2
    machine.claude("aaaa")
    with machine.catalog(agents=False) as catalog:
        assert catalog.sync().read == 0
    with machine.catalog() as catalog, machine.fresh() as fresh:
        same(catalog, fresh)


def test_what_had_no_price_is_tried_again_with_other_prices(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    from turnlog.catalog.index import prices

    machine.claude("aaaa")
    machine.codex("bbbb")
    with monkeypatch.context() as without:
        without.setattr(prices, "terms_of", lambda *_: prices.Terms(None))
        without.setattr(prices, "stamp", lambda: "")
        with machine.catalog() as catalog:
            assert {card.own.cost_micros for card in catalog.cards()} == {0}
            assert {card.unpriced for card in catalog.cards()} == {("claude-sonnet-4-5",), ("gpt-5-codex",)}
    machine.claude("cccc")
    with machine.catalog() as catalog, machine.fresh() as fresh:
        assert all(card.own.cost_micros for card in catalog.cards())
        assert {card.unpriced for card in catalog.cards()} == {()}
        same(catalog, fresh)


def test_own_prices_count_for_what_was_counted_before(machine: Machine):
    own = machine.user / ".config/turnlog/prices.json"
    own.parent.mkdir(parents=True)
    machine.claude("aaaa")
    with machine.catalog() as catalog:
        before = catalog.usage()[-1].tokens
    assert before.cost_micros > 0
    own.write_text('{"claude-sonnet-4-5": {"input": 1000, "output": 1000}}')
    with machine.catalog() as catalog:
        after = catalog.usage()[-1].tokens
        assert after.cost_micros == 1000 * sum(before[:5])
        assert [card.own.cost_micros for card in catalog.cards()] == [after.cost_micros]


def test_prices_that_are_remembered_are_not_loaded_again(machine: Machine, monkeypatch: pytest.MonkeyPatch):
    from turnlog.catalog.index import prices

    machine.claude("aaaa")
    with machine.catalog() as catalog:
        catalog.sync()
    machine.claude("aaaa")
    monkeypatch.setattr(prices, "terms_of", lambda *_: pytest.fail("they are looked up again"))
    with machine.catalog() as catalog:
        [card] = catalog.cards()
        assert card.problem == ""
        assert card.own.cost_micros > 0


class Stopped(BaseException):
    """Somebody pressed Ctrl-C."""


@pytest.mark.parametrize("bulk", [indexer._BULK, 0], ids=["little", "much"])
def test_whatever_happens_it_answers_as_a_new_one_would(machine: Machine, monkeypatch: pytest.MonkeyPatch, bulk: int):
    """Appends, new files, deletions, rewritten and cut files, imports, and interruptions, in any order."""
    monkeypatch.setattr(SqliteWriter, "most", 700)
    monkeypatch.setattr(indexer, "_BULK", bulk)
    chance = random.Random(20261115)
    files: list[Path] = []
    ours: list[str] = []

    def step() -> None:
        kind = chance.randrange(12)
        if kind < 3 or not files:
            maker = chance.choice([machine.claude, machine.codex])
            files.append(maker(f"s{len(files):03}{chance.randrange(1000)}", chance.randrange(1, 4)))
        elif kind < 6:
            path = chance.choice(files)
            if path.exists():
                name = path.stem.rpartition("-")[2] if "rollout" in path.name else path.stem
                (machine.codex if "rollout" in path.name else machine.claude)(name, 1)
        elif kind == 6:
            chance.choice(files).unlink(missing_ok=True)
        elif kind == 7:
            path = chance.choice(files)
            if path.exists():
                rows = path.read_text().splitlines(keepends=True)
                path.write_text("".join(rows[: chance.randrange(3, len(rows) + 1)]))
        elif kind == 8:
            path = chance.choice(files)
            if path.exists():
                rows = path.read_text().splitlines(keepends=True)
                place = chance.randrange(len(rows))
                rows[place] = rows[place].replace("the", "another")
                path.write_text("".join(rows))
        elif kind == 9:
            ours.append(f"o{len(ours)}")
            machine.ours(ours[-1], 2)
        elif kind == 10 and ours:
            machine.ours(chance.choice(ours), 1)
        elif kind == 11:
            with turnlog.open(str(machine.home), durability="flush") as home:
                home.import_sessions()

    for _ in range(40):
        for _ in range(chance.randrange(1, 4)):
            step()
        if chance.random() < 0.3:
            machine.settle()
        left = chance.randrange(0, 6)

        def stop(what: str, done: int, total: int) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise Stopped

        with machine.catalog(progress=stop) as catalog:
            try:
                catalog.sync()
            except Stopped:
                continue
        with machine.catalog() as catalog, machine.fresh() as fresh:
            same(catalog, fresh)
    with machine.catalog() as catalog:
        assert len(answers(catalog)["docs"]) > 50


def test_a_session_that_asks_is_waiting_whoever_is_there(machine: Machine):
    with turnlog.open(machine.home) as home, home.create() as s:
        s.user("clean up")
        s.assistant([turnlog.ToolCall(id="rm", name="bash")])
        ask = s.ask("rm", "it deletes quokkas")
        with machine.catalog() as catalog:
            assert [card.state for card in catalog.cards("is:waiting")] == ["waiting"]
            assert [hit.seq for hit in catalog.search("quokkas")] == [ask.seq]
            s.answer(ask, allow=True)
        with machine.catalog() as catalog:
            assert [card.state for card in catalog.cards()] == ["running"]
        s.ask("rm")
    assert CardMaker().state(1, WAITING, "", 0) == "waiting", "also when its process is gone"
    with machine.catalog() as catalog:
        assert [line.state for line in catalog.lines()] == ["waiting"]
