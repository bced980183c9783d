"""`turnlog prices`: what models cost, newer prices, and a person's own."""

import json
from pathlib import Path

from tests.cli.scene import Cli


def test_a_model_that_is_known_and_one_that_is_not(process: Cli):
    done = process("prices", "claude-haiku-4-5", "nobody-knows-it")
    assert done.code == 0, done.err
    head, known, unknown, *_ = done.out.splitlines()
    assert head.split()[:2] == ["MODEL", "INPUT"]
    assert known.split() == ["claude-haiku-4-5", "1.00", "0.10", "1.25", "2.00", "5.00"]
    assert unknown.split() == ["nobody-knows-it", *"?????"]
    assert "as of " in done.out


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
