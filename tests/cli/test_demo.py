"""`turnlog demo`."""

import os
from pathlib import Path

import pytest

from tests.cli.scene import Cli
from turnlog.cli.demo.story import Story
from turnlog.view.visible import width


def test_the_demo_tells_its_story(process: Cli, folder: Path):
    done = process("demo")
    assert done.code == 0, done.out + done.err
    assert done.err == ""
    for step in (
        "kill -9", "resume", "fork", "compact", "rewind", "undo", "torn", "repaired", "nothing wrong",
        "sed -i", "rm -rf build src/old", "mv src/parser.py", "ln -sfn", "conflict  src/helper.py", "rewind turn:1",
    ):  # fmt: skip
        assert step in done.out
    assert "✗ NOT SO" not in done.out
    assert done.out.rstrip().endswith("all of them hold.")
    assert max(map(width, done.out.splitlines())) <= 100
    assert not folder.exists()


def test_what_it_claims_is_checked(cli: Cli, monkeypatch):
    before = dict(os.environ)
    monkeypatch.setattr("turnlog.cli.demo.log._is_complete", lambda context: False)
    done = cli("demo", "log", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    failed = [check["text"] for check in done.json["checks"] if not check["ok"]]
    assert failed == ["for the model, every tool call has exactly one result", "the context is still complete"]
    assert dict(os.environ) == before


def test_its_home_can_be_kept(cli: Cli, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = Path(cli("demo", "--keep", "--json").json["home"])
    assert kept.parent == tmp_path
    assert len(cli("--home", str(kept / "home"), "ls", "--all", "--json").json["sessions"]) == 3


@pytest.mark.parametrize("what", ["a byte", "a mode", "a link", "a name"])
def test_one_byte_off_is_noticed(cli: Cli, monkeypatch, what: str):
    shell = Story.shell

    def spoil(story: Story, *words: str, **more: int) -> str:
        told = shell(story, *words, **more)
        if words[0] == "rewind":
            if what == "a byte":
                path = story.workspace / "build/parser.o"
                path.write_bytes(path.read_bytes()[:-1] + b"!")
            elif what == "a mode":
                (story.workspace / "src/old").chmod(0o700)
            elif what == "a link":
                (story.workspace / "latest").unlink()
                (story.workspace / "latest").symlink_to("src/parser.pyc")
            else:
                (story.workspace / "notes.txt").rename(story.workspace / "notes.tx")
                (story.workspace / "notes.txt").write_text("the user's own")
        return told

    monkeypatch.setattr(Story, "shell", spoil)
    done = cli("demo", "files", "--json")
    assert done.code == 1
    failed = [check["text"] for check in done.json["checks"] if not check["ok"]]
    assert failed[0].startswith("every byte, mode and link is as before the agent")


def test_the_part_about_files_alone(cli: Cli):
    done = cli("demo", "files", "--json")
    assert done.code == 0
    assert len(done.json["checks"]) == 5
    assert all(check["ok"] for check in done.json["checks"])
