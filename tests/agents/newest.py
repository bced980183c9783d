"""The newest of each agent that can be installed, beside the pinned ones: `make test-agents NEWEST=1`.

    python -m tests.agents.newest [ARGUMENT of pytest ...]

Only those that differ from the pinned ones are installed, into `build/newest`; one that cannot be installed
goes back to the release before it. Then the tests run with them, and skip the others.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "newest"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}
NODE = f"node-{sys.platform}-{_MACHINES.get(os.uname().machine, os.uname().machine)}"
"""Some need a newer one than what is usual: as a package it is theirs alone."""
BUILT = ("@anthropic-ai/claude-code", "opencode-ai")
"""What brings its program along in a script."""
GUESTS = ("@moonshot-ai/kimi-code", "cline")
"""Not pinned: nothing of theirs is recorded, and one of them needs a newer node than is usual."""
TRIES = 8


def npm(*words: str, is_bare: bool = False) -> subprocess.CompletedProcess[str]:
    """npm in that folder; bare, with nothing of the person who runs the tests: it runs what others wrote."""
    bare = {"PATH": os.environ["PATH"], "HOME": str(FOLDER / ".home"), "TMPDIR": str(FOLDER)}
    return subprocess.run(
        ["npm", words[0], "--prefix", str(FOLDER), *words[1:]],
        env=bare if is_bare else None,
        capture_output=True,
        text=True,
    )


def installed(package: str, version: str) -> bool:
    """Whether it is there now."""
    done = npm("install", "--ignore-scripts", "--no-audit", "--no-fund", f"{package}@{version}")
    if done.returncode:
        why = [line for line in done.stderr.splitlines() if line.startswith("npm error")]
        print(f"{package} {version} cannot be installed: {' '.join(why[:2])[:200]}", file=sys.stderr)
    return done.returncode == 0


def releases(package: str) -> list[str]:
    """The newest first; the one that npm would take comes before any other."""
    found = json.loads(npm("view", package, "versions", "dist-tags.latest", "--json").stdout)
    latest = found["dist-tags.latest"]
    versions = [found["versions"]] if isinstance(found["versions"], str) else found["versions"]
    before = versions[: versions.index(latest)]
    return [latest, *(version for version in reversed(before) if "-" not in version)][:TRIES]


def main() -> int:
    (FOLDER / ".home").mkdir(parents=True, exist_ok=True)
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"]
    newer: list[str] = []
    for package, version in {**pinned, **dict.fromkeys(GUESTS, "")}.items():
        found = next((one for one in releases(package) if one == version or installed(package, one)), version)
        beside = "as pinned" if found == version else f"pinned is {version or 'none'}"
        print(f"{package}: {found}, {beside}", file=sys.stderr)
        newer += [package] if found != version else []
    if not newer:
        return 0
    if not installed(NODE, "22"):
        return 1
    built = npm("rebuild", *(package for package in BUILT if package in newer), is_bare=True)
    if built.returncode:
        print(built.stderr, file=sys.stderr)
        return 1
    words = [sys.executable, "-m", "pytest", str(HERE), *sys.argv[1:]]
    return subprocess.run(words, env={**os.environ, "AGENTS_BIN": str(FOLDER / "node_modules/.bin")}).returncode


if __name__ == "__main__":
    sys.exit(main())
