"""The README's first screen, run: its five commands typed into a terminal, its Python as it stands there.

The tests run it with this checkout; `make release` with what was built, installed where nothing else is.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.machine import claude_session, three_agents
from tests.cli.terminal import Terminal

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PITCH = "Find, price and take back anything your coding agents did."


def blocks(language: str, text: str = README) -> list[str]:
    """What stands between the fences of that language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands() -> list[str]:
    """What the first screen says one can type."""
    lines = [line for block in blocks("sh") for line in block.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["turnlog"] * 5
    return lines


def run(python: str, folder: Path) -> dict[str, str]:
    """Everything, on a machine where three agents have worked; what each command printed."""
    person, project, programs = folder / "person", folder / "person" / "shop", folder / "bin"
    project.mkdir(parents=True)
    programs.mkdir()
    (programs / "turnlog").write_text(f'#!/bin/sh\nexec "{python}" -P -m turnlog "$@"\n')
    (programs / "turnlog").chmod(0o755)
    three_agents(person, project)
    surroundings = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(person), "LC_ALL": "C.UTF-8"}
    newest = "460f4edf-0000-4000-8000-000000000000"
    claude_session(person, str(project), newest, "Fix the flaky test in the checkout", at="2026-11-15T18:00:00.000Z")
    printed: dict[str, str] = {}
    for line in commands():
        if line.startswith("turnlog rewind"):
            (project / "works.txt").write_text("as it was\n")
            words = ["sh", "-c", f"{programs}/turnlog run -- sh -c 'rm works.txt'"]
            subprocess.run(words, cwd=project, env=surroundings, check=True, capture_output=True)
            assert not (project / "works.txt").exists()
        with Terminal("-c", f"cd '{project}' && {line}", program="/bin/sh", **surroundings) as screen:
            if line.startswith("turnlog rewind"):
                screen.until("[y/N]")
                screen.type("y\n")
            assert screen.end() == 0, (line, screen.text)
            printed[line.partition("#")[0].strip()] = screen.plain
            assert screen.plain.strip(), line
    assert (project / "works.txt").read_text() == "as it was\n"
    _keep(programs / "turnlog", project, surroundings, f"claude-code:{newest}")
    [code] = blocks("python")
    made = subprocess.run([python, "-P", "-c", code], cwd=project, env=surroundings, capture_output=True, check=False)
    assert made.returncode == 0, made.stderr
    return printed


def _keep(program: Path, project: Path, surroundings: dict[str, str], name: str) -> None:
    """Everything has a price, and what is kept outlives its file: it takes nothing but the plain install."""

    def turnlog(*words: str) -> dict[str, Any]:
        words = (*words, "--json")
        done = subprocess.run([program, *words], cwd=project, env=surroundings, capture_output=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout or b"{}")

    before = turnlog("usage")["total"]
    assert before["cost_micros"] > 8_000_000
    assert before["unpriced"] == []
    turnlog("keep", "claude-code")
    turnlog("keep", "--now")
    path = Path(turnlog("path", name)["path"])
    path.unlink()
    assert turnlog("usage")["total"]["cost_micros"] == before["cost_micros"]
    assert turnlog("show", name)["messages"]
    assert name in {hit["resume"][-1] for hit in turnlog("search", "flaky")["hits"]}
    turnlog("resume", name)
    assert path.exists()


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
