"""The part of `turnlog demo` about files: an agent and a user work in one folder, and only the agent is rewound."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from turnlog.cli.demo.story import Story

_TURNS = (
    """\
sed -i.bak 's/parse/scan/g' src/parser.py && rm src/parser.py.bak
printf 'def helper(): ...\\n' > src/helper.py
printf 'added a helper\\n' > CHANGES.md
chmod +x tools/check.sh
""",
    """\
rm -rf build src/old
mv src/parser.py src/scanner.py
head -c 50000 /dev/urandom > model.bin
ln -sfn src/scanner.py latest
mkdir -p out/deep && printf 'one\\r\\ntwo\\r\\n' > out/deep/dos.txt
printf 'renamed the parser\\n' >> CHANGES.md
""",
)


def tell_files(story: Story) -> None:
    """Tell the chapters about files."""
    story.move_to("parser")
    expected = story.folder / "expected"
    _fill(story.workspace)
    shutil.copytree(story.workspace, expected, symlinks=True)
    _the_agent_works(story, expected)
    worked = digest(story.workspace)
    _it_is_rewound(story, expected, worked)
    _that_is_undone_and_redone(story, digest(expected), worked)


def _fill(folder: Path) -> None:
    for name in ("src/old", "build", "tools", "empty"):
        (folder / name).mkdir(parents=True)
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "README.md").write_text("# A parser\n")
    (folder / "src/parser.py").write_text("def parse(text):\n    return text.split()\n")
    (folder / "src/old/legacy.py").write_bytes(b"# written on Windows\r\nparse = None\r\n")
    (folder / "build/parser.o").write_bytes(bytes(range(256)) * 40)
    (folder / "tools/check.sh").write_text("#!/bin/sh\nexit 0\n")
    (folder / "debug.log").write_text("ignored by git, so never touched\n")
    (folder / "latest").symlink_to("src/parser.py")


def _the_agent_works(story: Story, expected: Path) -> None:
    story.chapter(
        "An agent changes files, mostly by the shell",
        "`turnlog run` brackets any command, here a script that plays the agent:",
        "a checkpoint before, one after, and what changed in between.",
    )
    story.say(f"   all files together:  {digest(story.workspace)}\n")
    _turn(story, 1)
    story.say("   Meanwhile the user edits README.md and begins notes.txt.\n")
    for folder in (story.workspace, expected):
        (folder / "README.md").write_text("# A parser\n\nBy the user, between two turns.\n")
        (folder / "notes.txt").write_text("the user's own\n")
    _turn(story, 2)
    story.say("   Then the user writes into debug.log, and into src/helper.py, a file of the agent's.\n")
    for folder in (story.workspace, expected):
        (folder / "debug.log").write_text("ignored by git, so never touched\nnot even now\n")
    (story.workspace / "src/helper.py").write_text("def helper():\n    return 'improved by the user'\n")
    shutil.copy2(story.workspace / "src/helper.py", expected / "src/helper.py")


def _turn(story: Story, number: int) -> None:
    script = story.folder / f"agent-{number}.sh"
    script.write_text(_TURNS[number - 1])
    for line in _TURNS[number - 1].splitlines():
        story.say(f"   │ {line}")
    story.shell("run", "--", "sh", f"../{script.name}")


def _it_is_rewound(story: Story, expected: Path, worked: str) -> None:
    story.chapter(
        "Both turns are taken back",
        "Only what the agent changed, where it still is what the agent left. The user's work stays.",
    )
    story.say(f"   all files together:  {worked}\n")
    story.shell("rewind", "turn:1", "--yes")
    now = digest(story.workspace)
    story.say(f"   all files together:  {now}")
    story.say(f"   as it has to be:     {digest(expected)}\n")
    story.check("every byte, mode and link is as before the agent, but for what the user did", now == digest(expected))
    kept = [(story.workspace / name).read_text().count("user") for name in ("README.md", "notes.txt", "src/helper.py")]
    story.check("what the user wrote is there, also in the file that the agent had made", kept == [1, 1, 1])


def _that_is_undone_and_redone(story: Story, rewound: str, worked: str) -> None:
    story.chapter("That is undone, and redone", "Before a rewind, everything is kept in a checkpoint: nothing is lost.")
    story.shell("undo", "--yes", show=3)
    now = digest(story.workspace)
    story.say(f"   all files together:  {now}\n")
    story.check("every byte is as the agent and the user had left it", now == worked)
    story.say()
    story.shell("redo", "--yes", show=3)
    story.check("and rewound again, every byte", digest(story.workspace) == rewound)
    story.say()
    story.shell("undo", "--yes", show=3)
    story.check("and back, every byte", digest(story.workspace) == worked)
    story.say()
    story.shell("checkpoints", "--limit", "4")
    story.shell("diff", "--turn", "2", "--stat")


def digest(folder: Path) -> str:
    """Everything below a folder in a few letters: names, kinds, modes, contents, where links lead."""
    hashed = hashlib.sha256()
    for line in _lines(folder, folder):
        hashed.update(line + b"\n")
    return hashed.hexdigest()[:16]


def _lines(folder: Path, top: Path) -> Iterator[bytes]:
    for path in sorted(folder.iterdir()):
        yield repr((os.fsencode(path.relative_to(top)), oct(path.lstat().st_mode))).encode()
        if path.is_symlink():
            yield os.fsencode(path.readlink())
        elif path.is_dir():
            yield from _lines(path, top)
        else:
            yield hashlib.sha256(path.read_bytes()).digest()
