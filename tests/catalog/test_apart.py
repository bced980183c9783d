"""What is of this machine stays in its cache; a catalog answers what it is asked for; what is purged leaves it."""

import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine, run
from tests.pgserver import Server
from turnlog.catalog import Catalog
from turnlog.catalog.index.sqlite.database import Database
from turnlog.session.interior import interior

SECRET = "zyqqsecretwordxv"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def cache(machine: Machine) -> Path:
    return machine.user / ".cache" / "turnlog"


def bytes_below(*folders: Path) -> bytes:
    return b"".join(path.read_bytes() for top in folders for path in sorted(top.rglob("*")) if path.is_file())


# ── where things lie ──────────────────────────────────────────────────────────────────────────────


def test_nothing_of_other_agents_is_written_into_a_home(machine: Machine):
    path = machine.claude("aaaa")
    path.write_text(path.read_text().replace("haystack", SECRET))
    machine.ours("one")
    with machine.catalog() as catalog:
        assert catalog.search(SECRET)
    before = sorted(str(path) for path in machine.home.rglob("*"))
    done = run("import sys; from turnlog.cli.program import run; sys.exit(run(sys.argv[1:]))", "--home",
               str(machine.home), "search", SECRET)  # fmt: skip
    assert SECRET in done.stdout
    assert sorted(str(path) for path in machine.home.rglob("*")) == before
    assert SECRET.encode() not in bytes_below(machine.home)
    assert SECRET.encode() in bytes_below(cache(machine))


def test_a_catalog_answers_only_what_it_was_asked_for(machine: Machine):
    machine.claude("aaaa")
    machine.ours("one")

    def known(**more: bool) -> set[str]:
        with machine.catalog(**more) as catalog:
            named = {catalog.find(name).id for name in ("one",)}
            return {card.id for card in catalog.cards()} | named | {hit.card.id for hit in catalog.search("needle*")}

    assert known(agents=True) == {"aaaa", "one"}
    assert known(agents=False) == {"one"}
    assert known() == {"aaaa", "one"}
    with machine.catalog(agents=False) as catalog:
        assert catalog.ids() == ["one"]
        assert catalog.usage()[-1].sessions == 1
        with pytest.raises(turnlog.NotFound):
            catalog.find("aaaa")


def test_two_homes_do_not_mix(machine: Machine):
    machine.ours("one")
    other = machine.folder / "other"
    with turnlog.open(other, checkpoints=False) as home:
        home.create(id="two").user("hi")
    with machine.catalog() as first, Catalog(str(other)) as second:
        assert [card.id for card in first.cards()] == ["one"]
        assert [card.id for card in second.cards()] == ["two"]


def test_who_only_asks_makes_no_home(machine: Machine):
    machine.claude("aaaa")
    with machine.catalog() as catalog:
        assert len(catalog.cards()) == 1
    assert not machine.home.exists()
    script = (
        "from turnlog.cli.program import run\n"
        "for words in (['ls', '--all'], ['search', 'needle'], ['usage'], ['show', 'claude-code:aaaa'], ['doctor'],"
        " ['path', 'claude-code:aaaa'], ['checkpoints'], ['log', 'x'], ['tree', 'x'], ['formats'], []): run(words)\n"
    )
    os.environ["TURNLOG_HOME"] = str(machine.home)
    try:
        done = run(script)
    finally:
        del os.environ["TURNLOG_HOME"]
    assert "aaaa" in done.stdout
    assert not machine.home.exists()


def test_a_tenant_sees_nothing_of_whoever_runs_the_service(machine: Machine, postgres: Server):
    machine.claude("aaaa")
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location) as home:
        home.create(id="theirs").user("needle of the tenant")
    with Catalog(location) as catalog:
        assert [card.id for card in catalog.cards()] == ["theirs"]
        assert {hit.card.id for hit in catalog.search("needle*")} == {"theirs"}
    with Catalog(location, agents=True) as catalog:
        assert {card.id for card in catalog.cards()} == {"aaaa", "theirs"}
    with Catalog(location) as catalog:
        assert [card.id for card in catalog.cards()] == ["theirs"]


def test_a_tenant_in_a_folder_sees_nothing_of_its_machine_either(machine: Machine):
    machine.claude("aaaa")
    with turnlog.open(machine.home) as home:
        home.create(id="operators").user("needle of the operator")
        acme = home.tenant("acme")
        acme.create(id="theirs").user("needle of the tenant")
        with Catalog(acme) as catalog:
            assert [card.id for card in catalog.cards(everything=True)] == ["theirs"]
            assert {hit.card.id for hit in catalog.search("needle*")} == {"theirs"}


# ── what earlier versions left ────────────────────────────────────────────────────────────────────


def old_files(home: Path) -> list[Path]:
    paths = [home / f"catalog.{end}" for end in ("sqlite", "sqlite-wal", "sqlite-shm", "lock")]
    for path in paths:
        path.write_bytes(SECRET.encode())
    return paths


def test_the_index_of_before_is_removed_by_who_asks_and_by_who_writes(machine: Machine):
    machine.ours("one")
    for use in (lambda: machine.catalog().cards(), lambda: machine.ours("two")):
        paths = old_files(machine.home)
        use()
        assert not [path for path in paths if path.exists()]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_doctor_names_it_where_it_cannot_be_removed(machine: Machine):
    machine.ours("one")
    old_files(machine.home)
    machine.home.chmod(0o500)
    try:
        doctor_names(machine)
    finally:
        machine.home.chmod(0o700)


def test_doctor_names_what_is_no_file_and_stays(machine: Machine):
    machine.ours("one")
    (machine.home / "catalog.sqlite").mkdir()
    doctor_names(machine)


def doctor_names(machine: Machine) -> None:
    words = ["--home", str(machine.home), "doctor"]
    done = subprocess.run([sys.executable, "-m", "turnlog", *words], capture_output=True, encoding="utf-8", check=True)
    assert f"{machine.home}/catalog.sqlite is an index of an earlier version" in done.stdout


# ── what is gone for good ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def said(machine: Machine) -> Machine:
    """A session with a word that is nowhere else, among others; in both catalogs."""
    machine.claude("aaaa", 3)
    machine.ours("one", 5)
    with turnlog.open(str(machine.home), checkpoints=False) as home:
        session = home.create(id="secret", workspace=machine.work, title=f"title{SECRET}", agent=f"agent{SECRET}")
        session.user(f"{SECRET} is the word")
        blocks = [turnlog.ToolCall(id="c", name=f"tool{SECRET}", input={"file_path": f"/there/{SECRET}.txt"})]
        session.append(turnlog.Message(role="assistant", blocks=blocks, model=f"model{SECRET}"))
        session.tool_result("c", f"found {SECRET} " * 500)
    for agents in (True, False):
        with machine.catalog(agents=agents) as catalog:
            assert catalog.search(SECRET)
    machine.ours("two", 2)
    assert SECRET.encode() in bytes_below(cache(machine))
    return machine


def is_gone(machine: Machine) -> None:
    assert SECRET.encode() not in bytes_below(cache(machine))
    for path in cache(machine).glob("*.sqlite"):
        db = sqlite3.connect(path)
        assert not [row for row in db.execute("SELECT id FROM sessions WHERE native = 'secret'")]
        assert db.execute("SELECT count(*) FROM meta WHERE key = 'unscrubbed'").fetchone() == (0,)
        db.close()


def test_the_words_are_gone_from_the_files_when_the_command_returns(said: Machine):
    words = ["--home", str(said.home), "rm", "--purge", "--yes", "secret"]
    done = subprocess.run([sys.executable, "-m", "turnlog", *words], capture_output=True, encoding="utf-8", check=True)
    assert "removed for good" in done.stdout
    is_gone(said)
    with said.catalog() as catalog, said.fresh() as fresh:
        assert [card.id for card in catalog.cards()] == [card.id for card in fresh.cards()]
        assert len(catalog.search("needle*", limit=100)) == len(fresh.search("needle*", limit=100)) > 0


def test_a_program_that_purges_has_them_gone_with_the_next_use(said: Machine):
    with turnlog.open(str(said.home)) as home:
        home.purge("secret")
    for agents in (True, False):
        with said.catalog(agents=agents) as catalog:
            catalog.sync()
    is_gone(said)


def test_who_is_killed_before_they_are_gone_leaves_it_to_the_next(said: Machine):
    with turnlog.open(str(said.home)) as home:
        home.purge("secret")
    script = (
        "import os, signal, sys\nfrom turnlog.catalog import Catalog\n"
        "from turnlog.catalog.index.sqlite.database import Database\n"
        "Database.scrub = lambda self: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Catalog(sys.argv[1], agents=sys.argv[2] == 'True').sync()\n"
    )
    for agents in (True, False):
        assert run(script, str(said.home), str(agents)).returncode == -signal.SIGKILL
        with said.catalog(agents=agents) as catalog:
            catalog.sync()
    is_gone(said)


def test_who_reads_meanwhile_is_waited_for_and_named(said: Machine, monkeypatch: pytest.MonkeyPatch):
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **{**more, "timeout": 0.1}))
    reader = connect(said.index, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM texts").fetchone()
    with turnlog.open(str(said.home)) as home:
        home.purge("secret")
    with said.catalog() as catalog, pytest.raises(turnlog.Unavailable, match="is being read"):
        catalog.sync()
    reader.close()
    for agents in (True, False):
        with said.catalog(agents=agents) as catalog:
            catalog.sync()
    is_gone(said)


def test_a_catalog_that_cannot_be_read_is_thrown_away_with_them(said: Machine):
    with turnlog.open(str(said.home)) as home:
        home.purge("secret")
    with said.catalog(agents=False) as catalog:
        catalog.forget_purged()
    said.index.write_bytes(b"no database " + SECRET.encode() * 100)
    with said.catalog() as catalog:
        catalog.forget_purged()
    is_gone(said)


def test_of_a_database_only_what_is_said_is_in_its_tables(machine: Machine, postgres: Server):
    location = f"{postgres.url}?tenant={uuid.uuid4()}"
    with turnlog.open(location) as home:
        for name, word in (("one", "needle"), ("secret", SECRET)):
            session = home.create(id=name)
            session.user(f"{word} is the word")
            call = turnlog.ToolCall(id="c", name="Read", input={"file_path": f"/there/{word}.txt"})
            session.append(turnlog.Message(role="assistant", blocks=[call]))
    with Catalog(location) as catalog:
        assert catalog.search(SECRET)
        home = catalog._open_home()
        home.purge("secret")
        catalog.forget_purged()
        tables = interior(home).store.dedicated("test")  # type: ignore[attr-defined]
        try:
            for what in ("words::text from turnlog.own_words", "path from turnlog.own_paths"):
                found = [str(row[0]) for row in tables.rows(f"select {what}", ())]
                assert any("needle" in text for text in found)
                assert not any(SECRET in text for text in found)
        finally:
            tables.close()


def test_scrubbing_leaves_everything_else(said: Machine):
    database = Database(str(said.index))
    tables = ("docs", "texts", "touched", "spent", "sessions", "words WHERE words MATCH 'needle'")
    counts = [database.connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]
    with database.lock():
        database.scrub()
    assert counts == [database.connection.execute(f"SELECT count(*) FROM {table}").fetchone() for table in tables]
    database.connection.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    database.close()
