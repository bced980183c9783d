"""`branch:`: the branches of git that sessions worked on, as agents write them down and as checkpoints saw them."""

import json
import subprocess
import uuid
from pathlib import Path

import pytest

import turnlog
from tests.catalog.machine import Machine
from tests.pgserver import Server
from turnlog.catalog import Catalog


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def on(branch: str, path: Path, first: int) -> None:
    """As if the records of a transcript from there on were of that branch."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    marked = [row | ({"gitBranch": branch} if number >= first else {}) for number, row in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in marked))


def branches(catalog: Catalog) -> list[tuple[str, ...]]:
    return [card.git_branches for card in catalog.cards()]


def test_every_branch_of_a_session_is_known_also_when_it_grows(machine: Machine):
    path = machine.claude("one", turns=2)
    count = len(path.read_text().splitlines())
    on("main", path, 0)
    on("feature/login", path, count // 2)
    with machine.catalog() as catalog:
        assert branches(catalog) == [("main", "feature/login")]
    machine.claude("one", turns=1)
    on("HEAD", path, count)
    with machine.catalog() as catalog:
        assert branches(catalog) == [("main", "feature/login")], "what stands there without a branch is none"
        for query in ("branch:main", "branch:login", "branch:feature/login", "branch:feature/*", "branch:LOGIN"):
            assert len(catalog.cards(query)) == 1, query
        for query in ("branch:mai", "branch:feature", "branch:in", "-branch:main", "branch:other,another"):
            assert not catalog.cards(query), query
        assert catalog.search("needle* branch:login")
        assert not catalog.search("needle* branch:other")


@pytest.mark.parametrize("place", ["files", "postgres"])
def test_checkpoints_of_our_own_sessions_saw_where_git_stood(machine: Machine, place: str, postgres: Server):
    location = str(machine.home) if place == "files" else f"{postgres.url}?tenant={uuid.uuid4()}"
    subprocess.run(["git", "init", "-q", "-b", "feature/shop", str(machine.work)], check=True)
    with turnlog.open(location) as home, home.create(id="ours", workspace=machine.work) as session, session.turn():
        session.user("go")
        (machine.work / "a.txt").write_text("one")
    with Catalog(location) as catalog:
        assert branches(catalog) == [("feature/shop",)]
        assert [card.id for card in catalog.cards("branch:shop")] == ["ours"]
