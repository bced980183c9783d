"""A framework's own tests, from its source distribution, with our store in the place of its own."""

import json
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def snippet(title: str) -> str:
    """The Python of a section of the guide."""
    guide = (ROOT / "docs/guide/frameworks.md").read_text()
    return guide.partition(f"\n## {title}\n")[2].partition("```python\n")[2].partition("```")[0]


def program(guide: str, function: str) -> str:
    """The Python of a guide that has that function in it."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guide" / guide).read_text(), re.DOTALL)
    [found] = [block for block in blocks if f"async def {function}(" in block]
    return found


def run(framework: str, folder: Path, tests: list[str], *options: str, **settings: str) -> dict[str, str]:
    """Unpack, run them with the plugin `swap` of that framework, and say of each test whether it passed.

    `settings` are for their environment.
    """
    [archive] = (ROOT / "build/adapters/sdist" / framework).glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [tree] = folder.iterdir()
    report = folder / "report.xml"
    plugins = ROOT / "tests/adapters" / framework.replace("-", "_")
    path = os.pathsep.join(filter(None, [str(plugins), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "pytest", "-p", "swap", "-p", "no:cacheprovider", "-q", f"--junitxml={report}"]
    subprocess.run(
        [*command, *options, *tests],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, "OPENAI_AGENTS_DISABLE_TRACING": "1", **settings},
        check=False,
        stdout=subprocess.DEVNULL,
    )
    cases = ET.parse(report).getroot().iter("testcase")
    return {case.attrib["name"]: "passed" if not len(case) else case[0].tag for case in cases}


def commands_see(home: Path, session: str, text: str, output_tokens: int) -> None:
    """`ls`, `search`, `show` and `usage` know a session that a framework wrote."""
    user = home.parent / "nobody"
    user.mkdir(exist_ok=True)
    env = {**os.environ, "HOME": str(user), "TURNLOG_HOME": str(home)}

    def says(*words: str) -> Any:
        command = [sys.executable, "-m", "turnlog", *words, "--json"]
        done = subprocess.run(command, env=env, cwd=user, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    assert session in [row["id"] for row in says("ls", "--all")["sessions"]]
    assert session in [hit["session"] for hit in says("search", f'"{text}"')["hits"]]
    assert text in json.dumps(says("show", session))
    assert says("usage")["total"]["output_tokens"] == output_tokens
