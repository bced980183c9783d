"""Ignored files on the command line: taken back, named where they are not covered, and left at home."""

from pathlib import Path

from tests.cli.scene import Cli


def scene() -> Path:
    here = Path.cwd()
    (here / ".gitignore").write_text(".env\nnode_modules/\n*.iso\n")
    (here / ".env").write_text("KEY=correct-horse\n")
    (here / "node_modules").mkdir()
    (here / "big.iso").write_bytes(b"x" * (17 << 20))
    return here


def test_a_command_that_deletes_them_can_be_taken_back(cli: Cli, folder: Path):
    here = scene()
    done = cli("run", "--", "rm", ".env")
    assert "deleted  .env" in done.err
    assert cli("rewind", "--yes").code == 0
    assert (here / ".env").read_text() == "KEY=correct-horse\n"


def test_what_is_not_covered_and_changed_is_named(cli: Cli, folder: Path):
    scene()
    done = cli("run", "--", "sh", "-c", "echo more >> big.iso; mkdir node_modules/lib; rm .env")
    assert "turnlog: not covered, a rewind leaves it: big.iso, node_modules\n" in done.err
    assert "`turnlog rewind` takes it back" in done.err
    done = cli("run", "--", "sh", "-c", "rmdir node_modules/lib")
    assert "turnlog: not covered, a rewind leaves it: node_modules\n" in done.err
    assert "takes it back" not in done.err


def test_pushing_leaves_them_here_and_says_so(cli: Cli, folder: Path):
    scene()
    cli("run", "--", "sh", "-c", "echo KEY=other > .env")
    copy = str(folder.parent / "copy")
    done = cli("push", "--all", copy)
    line = "what is in ignored files stays here: 2 checkpoints without it; --include-ignored sends it"
    assert line in done.out
    assert cli("--home", copy, "doctor").code == 0, "what stays elsewhere is no damage"
    assert cli("push", "--all", copy, "--json").json["sessions"] == []
    done = cli("push", "--all", "--include-ignored", "--json", copy)
    (row,) = done.json["sessions"]
    assert (row["outcome"], row["without_ignored"], row["entries"]) == ("grown", 0, 0)
    assert line not in cli("push", "--all", "--include-ignored", copy).out
    assert cli("--home", copy, "checkpoints").code == 0
