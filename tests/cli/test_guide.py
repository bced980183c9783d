"""What the guides show is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.machine import three_agents
from tests.cli.test_import import claude_file

ROOT = Path(__file__).resolve().parents[2]


def steps(guide: str) -> list[tuple[str, str]]:
    """Every command with what it prints."""
    found: list[tuple[str, str]] = []
    text = (ROOT / "docs/guide" / guide).read_text(encoding="utf-8")
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append((line, output))
    return found


@pytest.mark.parametrize("guide", ["rewind.md", "blame.md", "other-agents.md", "reading.md", "sessions.md"])
def test_the_guide_tells_the_truth(folder: Path, tmp_path: Path, guide: str):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "turnlog").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m turnlog "$@"\n')
    (programs / "turnlog").chmod(0o755)
    surroundings = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    if guide in ("other-agents.md", "reading.md"):
        claude_file(Path(os.environ["HOME"]) / ".claude/projects/-home-ada-webshop", 1, str(Path.cwd()))
    if guide == "sessions.md":
        three_agents(Path(os.environ["HOME"]), Path.cwd())
    assert len(steps(guide)) > 5
    for line, expected in steps(guide) + (steps("opentelemetry.md") if guide == "reading.md" else []):
        done = subprocess.run(
            ["sh", "-c", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=surroundings, encoding="utf-8"
        )
        pattern = ".*".join(map(re.escape, expected.strip("\n").split("…")))
        assert done.returncode == 0, (line, done.stdout)
        assert re.fullmatch(pattern, done.stdout.strip("\n"), re.DOTALL), (line, done.stdout)
