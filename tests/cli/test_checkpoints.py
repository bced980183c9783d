"""`turnlog checkpoint`, `checkpoints` and `diff`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.cli.scene import Cli


def test_a_checkpoint_works_in_any_folder_and_says_where_it_went(process: Cli, folder: Path):
    Path("a.txt").write_text("hello\n")
    done = process("checkpoint", "before lunch")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("checkpoint “before lunch”, entry 3: 1 file, 6 B (new session ")
    assert done.out.rstrip().endswith(f", {os.getcwd()})")
    again = process("checkpoint", "--json").json
    assert (again["is_new"], again["files"], again["size_bytes"], again["label"]) == (False, 1, 6, None)
    assert again["workspace"] == os.getcwd()
    [row] = process("ls", "--json").json["sessions"]
    assert (row["id"], row["agent"]) == (again["session"], "turnlog")


def test_it_goes_into_the_newest_session_of_the_folder_whoever_wrote_it(process: Cli):
    with turnlog.open() as home:
        agent = home.create(workspace=".", agent="my-agent").id
        home.create(workspace="/usr")
    assert process("checkpoint", "--json").json["session"] == agent


def test_what_is_not_covered_is_said(process: Cli):
    os.mkfifo("pipe")
    Path("a").write_text("a")
    done = process("checkpoint")
    assert done.code == 0
    assert done.err == "not covered: pipe: a special file\n"
    assert process("checkpoints", "--json").json["checkpoints"][0]["skipped"][0]["path"] == "pipe"
    assert "1 path not covered" in process("checkpoints").out


def test_a_repository_in_the_folder_is_named_once(process: Cli):
    Path("tree/.git").mkdir(parents=True)
    Path("tree/theirs.txt").write_text("theirs")
    told = "not covered: tree: a repository of its own: a session in that folder covers it\n"
    assert process("run", "--", "true").err.startswith(told)
    assert "not covered" not in process("run", "--", "sh", "-c", "echo more >> tree/theirs.txt").err
    assert process("checkpoint").err == ""
    Path("other/.git").mkdir(parents=True)
    assert process("checkpoint").err == told.replace("tree", "other")
    skipped = process("checkpoints", "--json").json["checkpoints"][-1]["skipped"]
    assert sorted(row["path"] for row in skipped) == ["other", "tree"]


def test_the_list_says_when_what_and_how_much(process: Cli):
    Path("a").write_text("a" * 1000)
    process("checkpoint", "start")
    process("run", "-q", "--", "sh", "-c", "echo b > b; echo more >> a; chmod 600 a; mkdir e")
    process("rewind", "--yes")
    told = process("checkpoints").out.splitlines()
    assert told[0].split() == ["ENTRY", "WHEN", "FILES", "SIZE", "CHANGED", "WHAT"]
    whats = [line.rpartition("  ")[2] for line in told[1:]]
    assert whats == ["start", "turn 1 begins", "turn 1 ends", "before a rewind", "after a rewind"]
    rows = process("checkpoints", "--json").json["checkpoints"]
    assert [row["changed"] for row in rows] == [
        None, {}, {"created": 2, "modified": 1}, {}, {"modified": 1, "deleted": 2},
    ]  # fmt: skip
    assert [row["files"] for row in rows] == [1, 1, 2, 2, 1]
    assert process("checkpoints", "--limit", "2").out.splitlines()[1:] == told[-2:]
    assert [row["entry"] for row in process("checkpoints", "-n", "2", "--json").json["checkpoints"]] == [
        row["entry"] for row in rows[-2:]
    ]


def test_a_session_without_any_says_so(process: Cli, session: str):
    done = process("checkpoints")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("no checkpoints in session ")


def test_a_checkpoint_whose_tree_is_damaged_says_so(process: Cli, folder: Path):
    Path("a").write_text("a")
    process("checkpoint", "mine")
    (pack,) = (folder / "blobs").iterdir()
    data = bytearray(pack.read_bytes())
    data[60] ^= 1
    pack.write_bytes(data)
    done = process("checkpoints")
    assert done.code == 0
    assert done.out.rstrip().endswith("?        mine (damaged)")


def test_a_checkpoint_whose_tree_is_gone_is_not_listed_and_counted(process: Cli, folder: Path):
    Path("a").write_text("a")
    process("checkpoint", "mine")
    for pack in (folder / "blobs").iterdir():
        pack.unlink()
    done = process("checkpoints")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("1 checkpoint without files")


# ── diff ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def turns(process: Cli) -> None:
    Path("text").write_text("one\ntwo\nthree\n")
    Path("dos").write_bytes(b"a\r\nb\r\n")
    Path("binary").write_bytes(b"\0\1\2")
    Path("tool").write_text("#!/bin/sh\n")
    Path("link").symlink_to("text")
    Path("gone").write_text("last words")
    script = (
        "sed -i.bak s/two/2/ text; rm text.bak gone; printf 'a\\r\\nc\\r\\n' > dos; printf '\\0\\1' > binary; "
        "chmod +x tool; ln -sfn dos link; mkdir empty; printf 'x\\033[31m\\n' > evil; rm -f kind; mkdir -p kind"
    )
    assert process("run", "-q", "--", "sh", "-c", script).code == 0
    assert process("run", "-q", "--", "sh", "-c", "echo four >> text").code == 0


def test_a_turn_is_told_line_by_line(process: Cli, turns: None):
    done = process("diff", "--turn", "1")
    assert (done.code, done.err) == (0, "")
    for part in (
        "modified text  (14 B → 12 B)\n--- a/text\n+++ b/text\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
        "modified dos  (6 B)\n--- a/dos\n+++ b/dos\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
        "modified binary  (binary or large, 3 B → 2 B)\n",
        "mode tool  (mode 644 → 755)\n",
        "modified link  (link text → dos)\n",
        "created empty/  (folder)\n",
        "+x\\x1b[31m\n",
        "-last words\n\\ No newline at end of file\n",
    ):
        assert part in done.out
    assert "\x1b" not in done.out


def test_the_last_turn_is_the_default_and_stat_is_short(process: Cli, turns: None):
    assert "+four" in process("diff").out
    assert process("diff", "--stat").out == "modified  text  +1 -0\n1 change: 1 modified\n"
    stat = process("diff", "--turn", "1", "--stat").out
    assert "modified  text    +1 -1\n" in stat
    assert "mode      tool    mode 644 → 755\n" in stat


def test_from_one_place_to_another_or_until_now(process: Cli, turns: None):
    process("checkpoint", "here")
    Path("text").write_text("all new\n")
    assert "+all new" in process("diff", "here").out
    assert "+four" in process("diff", "turn:2", "here").out
    back = process("diff", "here", "turn:2").out
    assert "-four" in back
    done = process("diff", "here", "here")
    assert (done.code, done.out, done.err) == (0, "", "nothing changed\n")


def test_json_has_both_sides(process: Cli, turns: None):
    told = process("diff", "--turn", "1", "--json").json
    changes = {change["path"]: change for change in told["changes"]}
    assert changes["link"]["before"]["target"] == "text"
    assert changes["tool"]["after"]["mode"] == 0o755
    assert changes["gone"]["after"] is None
    assert changes["binary"]["lines"] == ""
    assert "-two\n+2\n" in changes["text"]["lines"]
    assert told["counts"] == {"created": 3, "modified": 4, "deleted": 1, "mode": 1}


def test_the_target_of_a_link_is_in_json_as_it_is(process: Cli):
    targets = [b"a\x1b[31mb", rb"a\x1b[31mb", b"a\xff"]
    script = "import os; " + "; ".join(f"os.symlink({target!r}, 'link{at}')" for at, target in enumerate(targets))
    assert process("run", "-q", "--", sys.executable, "-c", script).code == 0
    changes = process("diff", "--json").json["changes"]
    assert [change["after"]["target"] for change in changes] == ["a\x1b[31mb", r"a\x1b[31mb", "bytes:a%FF"]


def test_a_name_cannot_pretend_to_be_lines(process: Cli):
    name = "a\n+++ b/innocent\n@@ -1 +1 @@\n+fine"
    Path(name.replace("/", "∕")).write_text("1\n")
    process("run", "-q", "--", "sh", "-c", 'for f in *; do echo 2 >> "$f"; done')
    lines = process("diff").out.splitlines()
    assert [line for line in lines if line.startswith("+") and not line.startswith("+++")] == ["+2"]


@pytest.mark.parametrize(
    ("words", "code"), [(["nowhere"], 3), (["--turn", "7"], 3), (["--turn", "1", "x"], 2), (["0"], 3)]
)
def test_what_is_not_there_is_a_clear_error(process: Cli, turns: None, words: list[str], code: int):
    done = process("diff", *words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ")


def test_a_closed_pipe_is_quiet(folder: Path, process: Cli):
    Path("big").write_text("")
    process("run", "-q", "--", "sh", "-c", "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done > big")
    done = subprocess.run(
        ["sh", "-c", f"({sys.executable} -m turnlog diff; echo $? >&2) | head -1"], capture_output=True, text=True
    )
    assert done.stdout.startswith("modified big")
    assert done.stderr == "141\n"


def test_what_is_not_covered_has_no_size(process: Cli):
    Path("a").write_text("a")
    with open("big", "wb") as file:
        file.truncate(300 << 20)
    done = process("checkpoint", "--json").json
    assert (done["files"], done["size_bytes"], done["skipped"][0]["path"]) == (1, 1, "big")
