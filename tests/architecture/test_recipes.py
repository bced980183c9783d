"""The recipes of docs/recipes.md, each done step by step from what the page says, and used."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import turnlog
from tests.architecture.map import ROOT, SRC
from turnlog.log.entry import Unknown

PAGE = (ROOT / "docs" / "recipes.md").read_text()


def blocks(title: str) -> list[tuple[str, str, str]]:
    """The code of a recipe: language, the file that its first line names ("" for none), text."""
    section = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert section, f"there is no recipe for {title}"
    found: list[tuple[str, str, str]] = []
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", section[1], re.DOTALL | re.MULTILINE):
        named = re.match(r"# (\S+)\n", text)
        found.append((language, named[1] if named else "", text[named.end() :] if named else text))
    return found


class Kitchen:
    """A copy of what a recipe changes, and its steps done there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {
            **os.environ,
            "HOME": str(folder / "user"),
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        (folder / "user").mkdir(parents=True)

    def with_package(self) -> None:
        """Let the steps change Turnlog itself."""
        shutil.copytree(SRC, self.folder / "src" / "turnlog")  # with bytecode: nothing is compiled again
        shutil.copytree(ROOT / "tests", self.folder / "tests", ignore=shutil.ignore_patterns("node_modules"))
        shutil.copytree(ROOT / "docs", self.folder / "docs")
        for name in ("pyproject.toml", "README.md", "CONTRIBUTING.md"):
            shutil.copy(ROOT / name, self.folder / name)
        self.env["PYTHONPATH"] = f"{self.folder / 'src'}:{self.folder}"

    def follow(self, title: str) -> None:
        """Do what the page says: write its files, and make its changes."""
        for language, name, text in blocks(title):
            path = self.folder / name
            if name and language == "diff":
                lines = text.splitlines(keepends=True)
                before = "".join(line[1:] for line in lines if line[:1] != "+")
                assert path.read_text().count(before) == 1, f"{name} has not just one place for the change"
                path.write_text(path.read_text().replace(before, "".join(line[1:] for line in lines)))
            elif name:
                path.write_text(text)

    def run(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    def check(self, *tests: str) -> None:
        """Let tests run there."""
        self.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-n", "0", *tests)

    def install(self) -> None:
        """Install the package that the recipe made, where Python finds it."""
        options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
        self.run("-m", "pip", "install", *options, "--target", str(self.folder / "site"), str(self.folder))
        self.env["PYTHONPATH"] = str(self.folder / "site")


@pytest.fixture
def kitchen(tmp_path: Path) -> Kitchen:
    return Kitchen(tmp_path / "kitchen")


MARK_PROVES = """
import turnlog
from turnlog.log.entry import Review

def refused(**fields):
    try:
        session.append(Review(about=1, **fields))
    except turnlog.Invalid:
        return True

with turnlog.open("here") as here, turnlog.open("there") as there:
    with here.create() as session:
        name = session.id
        said = session.user("is this right?")
    here.push(there)
    with there.resume(name) as theirs:
        theirs.user("said there")
    with here.resume(name) as session:
        said = session.user("said here")
        kept = here.put_blob(b"all of it")
        long = {"text": "long " * 40_000}
        session.append(Review(about=said.seq, verdict={"ok": True}, report=kept))
        session.append(Review(about=said.seq, verdict=long))
        assert refused(verdict=float("nan")) and refused(verdict={1: 2}) and refused(score=float("inf"))
        assert refused(verdict=[{"deep": {3: 4}}]) and refused(verdict=object())
        short, whole = [entry for entry in session.entries() if isinstance(entry, Review)]
        assert (short.about, whole.verdict) == (said.seq, long)
    here.push(there)
    [fork] = [row for row in there.sessions() if row.id != name]
    with there.resume(fork.id) as session:
        reviews = [entry for entry in session.entries() if isinstance(entry, Review)]
        said_at = {message.seq: message.blocks[0].text for message in session.messages()}
        assert [said_at[entry.about] for entry in reviews] == ["said here", "said here"], (said_at, reviews)
        assert reviews[0].about != said.seq, "it was renumbered"
        assert reviews[1].verdict == long
    there.gc()
    assert there.get_blob(kept) == b"all of it"
    print(name)
"""


def test_an_agent_with_hooks(kitchen: Kitchen):
    kitchen.with_package()
    kitchen.follow("An agent with hooks")
    kitchen.check("tests/hooks", "-k", "my-agent")
    kitchen.run("-m", "tests.architecture.map")
    assert "My agent" in (kitchen.folder / "docs/guide/live.md").read_text()
    (kitchen.folder / "user/.my-agent").mkdir()
    kitchen.run("-m", "turnlog", "hooks", "install", "--all", "--anyway")
    [row] = [row for row in json.loads(kitchen.run("-m", "turnlog", "hooks", "--json"))["agents"] if row["is_here"]]
    assert (row["agent"], row["installed"]) == ("my-agent", True)
    settings = json.loads((kitchen.folder / "user/.my-agent/settings.json").read_text())
    assert settings["hooks"]["ToolEnded"][0]["hooks"][0]["timeout"] == 7000
    kitchen.run("-m", "turnlog", "hooks", "uninstall", "my-agent")
    assert list((kitchen.folder / "user/.my-agent").iterdir()) == []


def test_a_mark(kitchen: Kitchen):
    kitchen.with_package()
    kitchen.follow("A mark")
    kitchen.check(
        "tests/log/test_fields.py",
        "tests/log/test_codec.py",
        "tests/cli/test_documents.py",
        "-k",
        "documented or sample",
    )
    [example] = [text for language, name, text in blocks("A mark") if language == "python" and not name]
    kitchen.run("-c", example)
    name = kitchen.run("-c", MARK_PROVES).strip()
    shown = kitchen.run("-m", "turnlog", "--home", "here", "show", name)
    assert "review" in shown and '{"ok":true}' in shown
    assert '{"ok":true}' in kitchen.run("-m", "turnlog", "--home", "here", "log", name)
    with turnlog.open(kitchen.folder / "here") as home, home.resume(name) as session:
        found = [entry for entry in session.entries() if isinstance(entry, Unknown)]
        assert [json.loads(entry.json)["type"] for entry in found] == ["review", "review"]
        session.user("an older Turnlog goes on")
    kitchen.run("-m", "turnlog", "--home", "here", "doctor", name)


def test_a_dialect(kitchen: Kitchen):
    kitchen.with_package()
    kitchen.follow("A dialect")
    kitchen.check("tests/wire/test_plain.py")
    kitchen.run("-c", "from turnlog.wire import dialect, names; assert 'plain' in names(); dialect('plain').Stream()")


def test_a_format(kitchen: Kitchen):
    kitchen.follow("A format")
    kitchen.check("test_my_agent.py")
    kitchen.install()
    (kitchen.folder / "user" / ".my-agent").mkdir()
    shutil.copy(kitchen.folder / "sample.jsonl", kitchen.folder / "user" / ".my-agent" / "one.jsonl")
    assert "my-agent" in kitchen.run("-m", "turnlog", "formats")
    assert "my-agent" in kitchen.run("-m", "turnlog", "ls", "--all")
    assert "bicycle" in kitchen.run("-m", "turnlog", "search", "bicycle")
    kitchen.run("-m", "turnlog", "import", "--agent", "my-agent")
    assert "in the cellar" in kitchen.run("-m", "turnlog", "show")


def test_a_store(kitchen: Kitchen):
    kitchen.follow("A store")
    kitchen.check("test_my_store.py")
    kitchen.install()
    [example] = [text for language, name, text in blocks("A store") if language == "python" and not name]
    kitchen.run("-c", example)
    kitchen.run("-m", "turnlog", "--home", "named://cli", "ls")


def test_an_adapter(kitchen: Kitchen):
    shutil.copytree(SRC, kitchen.folder / "src/turnlog")
    kitchen.env["PYTHONPATH"] = str(kitchen.folder / "src")
    kitchen.follow("An adapter")
    [example] = [text for language, name, text in blocks("An adapter") if language == "python" and not name]
    kitchen.run("-c", example)


def test_a_command(kitchen: Kitchen):
    kitchen.with_package()
    kitchen.follow("A command")
    [regenerate] = [text for language, _, text in blocks("A command") if language == "sh"]
    words, _, page = regenerate.strip().partition(" > ")
    (kitchen.folder / page).write_text(kitchen.run(*words.split()[1:]))
    kitchen.check("tests/cli/test_every_command.py", "-k", "count or reference or current")
    with turnlog.open(kitchen.folder / "here") as home, home.create() as session:
        session.user("one")
        session.user("two")
    assert kitchen.run("-m", "turnlog", "--home", "here", "count", session.id) == "2 messages\n"
    told = json.loads(kitchen.run("-m", "turnlog", "--home", "here", "count", "--json", session.id))
    assert (told["session"], told["messages"]) == (session.id, 2)


TOOL_PROVES = """
import json, subprocess, sys
import turnlog

with turnlog.open("home") as home:
    for title, tags in (("one", ["urgent"]), ("two", ["urgent", "later"])):
        with home.create(title=title, workspace=".") as session:
            session.user("hello")
            session.set("tags", tags)
asked = [
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}),
    ("tools/list", {}),
    ("tools/call", {"name": "list_tags", "arguments": {}}),
    ("tools/call", {"name": "list_tags", "arguments": {"query": "title:two"}}),
    ("tools/call", {"name": "list_tags", "arguments": {"limit": 3}}),
]
lines = [json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
         for id, (method, params) in enumerate(asked)]
done = subprocess.run([sys.executable, "-m", "turnlog", "--home", "home", "mcp"], input="\\n".join(lines) + "\\n",
                      capture_output=True, text=True, timeout=60)
_, offered, every, some, wrong = [json.loads(line)["result"] for line in done.stdout.splitlines()]
assert "list_tags" in [tool["name"] for tool in offered["tools"]]
assert every["structuredContent"]["tags"] == [{"tag": "urgent", "sessions": 2}, {"tag": "later", "sessions": 1}], every
assert [row["sessions"] for row in some["structuredContent"]["tags"]] == [1, 1], some
assert "there is no argument 'limit'" in wrong["content"][0]["text"], wrong
"""


def test_a_tool_for_agents(kitchen: Kitchen):
    kitchen.with_package()
    kitchen.follow("A tool for agents")
    kitchen.check("tests/mcp/test_tools.py", "-k", "descriptions")
    kitchen.run("-c", TOOL_PROVES)


PAGE_PROVES = """
import subprocess, sys, urllib.request
import turnlog

with turnlog.open("home") as home, home.create(id="one", title="<b>One</b>") as session:
    session.user("hello")
    session.set("tags", ["urgent & new"])
words = ["--home", "home", "web", "--no-open", "--print-url", "--port", "0"]
server = subprocess.Popen([sys.executable, "-m", "turnlog", *words], stdout=subprocess.PIPE, text=True)
try:
    address, _, token = server.stdout.readline().strip().partition("/?token=")
    cookie = f"turnlog-{address.rpartition(':')[2]}={token}"
    asked = urllib.request.Request(address + "/tags", headers={"Cookie": cookie})
    text = urllib.request.urlopen(asked, timeout=60).read().decode()
finally:
    server.terminate()
    server.wait()
assert "urgent &amp; new" in text and "&lt;b&gt;One&lt;/b&gt;</a>" in text, text
"""


def test_a_page_of_the_web(kitchen: Kitchen):
    pytest.importorskip("starlette")
    pytest.importorskip("uvicorn")
    kitchen.with_package()
    kitchen.follow("A page of the web")
    kitchen.check("tests/web/test_files.py", "-k", "whole and tags")
    kitchen.run("-c", PAGE_PROVES)


KEY_PROVES = """
import asyncio
import turnlog
from turnlog.catalog import Catalog
from turnlog.reader.viewing.desk import Desk
from turnlog.tui.browser import Browser

STEPS = ("", "1 session"), ("enter", "at the end"), ("t", "this is one"), ("?", "it is called")

async def main():
    with turnlog.open("home") as home, home.create(id="one") as session:
        session.user("hello")
        with Catalog("home", agents=False) as catalog:
            desk = Desk(home, catalog, "home")
            browser = Browser(catalog, lambda: desk)
            async with browser.run_test(size=(80, 24)) as pilot:
                seen = lambda: "\\n".join(line.text for line in browser.screen._compositor.render_strips())
                for key, wanted in STEPS:
                    if key:
                        await pilot.press(key)
                    for _ in range(1000):
                        if wanted in seen():
                            break
                        await pilot.pause(0.01)
                    assert wanted in seen(), seen()
asyncio.run(main())
"""


def test_a_key_of_the_terminal(kitchen: Kitchen):
    pytest.importorskip("textual")
    shutil.copytree(SRC, kitchen.folder / "src/turnlog", ignore=shutil.ignore_patterns("__pycache__"))
    kitchen.env["PYTHONPATH"] = str(kitchen.folder / "src")
    kitchen.follow("A key of the terminal")
    kitchen.run("-c", KEY_PROVES)
