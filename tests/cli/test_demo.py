"""`turnlog demo`."""

import os
import time
from pathlib import Path

from tests.cli.scene import Cli
from turnlog.cli.text import width


def test_the_demo_tells_its_story(process: Cli, folder: Path):
    began = time.monotonic()
    done = process("demo")
    assert done.code == 0, done.out + done.err
    assert done.err == ""
    assert time.monotonic() - began < 15
    for step in ("kill -9", "resume", "fork", "compact", "rewind", "undo", "torn", "repaired", "nothing wrong"):
        assert step in done.out
    assert "✗ NOT SO" not in done.out
    assert done.out.rstrip().endswith("all of them hold.")
    assert max(map(width, done.out.splitlines())) <= 100
    assert not folder.exists()


def test_what_it_claims_is_checked(cli: Cli, monkeypatch):
    before = dict(os.environ)
    monkeypatch.setattr("turnlog.cli.commands.demo._is_complete", lambda context: False)
    done = cli("demo", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    failed = [check["text"] for check in done.json["checks"] if not check["ok"]]
    assert failed == ["for the model, every tool call has exactly one result", "the context is still complete"]
    assert dict(os.environ) == before


def test_its_home_can_be_kept(cli: Cli, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = Path(cli("demo", "--keep", "--json").json["home"])
    assert kept.parent == tmp_path
    assert len(cli("--home", str(kept / "home"), "ls", "--json").json["sessions"]) == 2
