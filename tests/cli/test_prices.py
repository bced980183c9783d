"""`turnlog prices`: what models cost, newer prices, and a person's own."""

import json
from pathlib import Path

import pytest

from tests.cli.machine import claude_session
from tests.cli.scene import Cli


def test_a_model_that_is_known_and_one_that_is_not(process: Cli):
    done = process("prices", "claude-haiku-4-5", "nobody-knows-it")
    assert done.code == 0, done.err
    head, known, unknown, *_ = done.out.splitlines()
    assert head.split()[:2] == ["MODEL", "INPUT"]
    assert known.split() == ["claude-haiku-4-5", "1.00", "0.10", "1.25", "2.00", "5.00"]
    assert unknown.split() == ["nobody-knows-it", *"?????"]
    assert "as of " in done.out


def test_a_part_of_a_name_means_the_models_here_that_have_it(process: Cli, tmp_path: Path):
    claude_session(tmp_path / "person", str(Path.cwd()), "aaaaaaaa-1111-4222-8333-444444444444", "one")
    assert [row["model"] for row in process("prices", "Sonnet", "--json").json["models"]] == ["claude-sonnet-4-5"]
    told = process("prices", "opus", "gpt-5", "sonnet", "--json").json["models"]
    assert [(row["model"], row["input"] is None) for row in told] == [
        ("opus", True), ("gpt-5", False), ("claude-sonnet-4-5", False),
    ]  # fmt: skip


def test_newer_ones_are_taken_from_the_library_and_own_ones_come_first(process: Cli, tmp_path: Path):
    own = (tmp_path / "person") / ".config/turnlog/prices.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"mine": {"input": 1, "output": 2.5}}')
    told = process("prices", "--json", "--update", "mine").json
    assert [told["models"][0][kind] for kind in ("input", "cache_read", "output")] == [1, 1, 2.5]
    assert told["own"] == {"path": str(own), "models": ["mine"]}
    kept = json.loads(((tmp_path / "person") / ".local/state/turnlog/prices.json").read_bytes())
    assert kept["date"] == told["date"]
    own.write_text("{")
    done = process("prices", "mine")
    assert (done.code, str(own) in done.err, "hint:" in done.err) == (2, True, True)


def test_the_size_from_which_it_costs_more_is_seen_on_a_narrow_screen(process: Cli, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    head, row, *_ = process("prices", "claude-sonnet-4-5").out.splitlines()
    assert head.endswith("MORE ABOVE")
    assert row.endswith(" 200k")
