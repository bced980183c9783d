"""Let the real agents work through scripted turns, and keep the files they write.

    python -m tests.agents.record [AGENT ...]

Each agent works in a home of its own under the temporary folder, whose path is as long as `/home/anna`: that is what
stands in the files afterwards, and every byte offset in them still holds. What is kept is a copy of the agent's own
folder (`~/.claude`, `~/.codex`, …) with the sessions and whatever the agent needs to find them, and `expected.json`:
what an independent count finds in the files, checked against what the provider served.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.agents.agent import BIN, Agent
from tests.agents.drive import AGENTS
from tests.agents.provider import Provider
from tests.agents.resumed import heard
from tests.agents.scenes import HELPER, scenes
from tests.agents.script import Call, Turn, Usage, flat
from tests.formats.agents import count

RECORDED = Path(__file__).resolve().parents[1] / "formats" / "agents"
HOME = "/home/anna"
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DESCRIPTION = re.compile(r'(?<=")(- [A-Za-z-]+: )[^"\\]*(?:\\.[^"\\]*)*(?=")')
"""How Claude Code describes its subagents to the model: its own words, which need not be in our files."""
PROMPTS = frozenset(("attachment", "api-request", "api-request-blob", "api-request-shape"))
"""Records of what Claude Code tells the model besides the conversation: mostly its own words, too."""

KEPT = {
    "claude-code": (".claude", ["projects"]),
    "codex": (".codex", ["sessions"]),
    "gemini-cli": (".gemini", ["projects.json", "tmp"]),
    "opencode": (".local/share/opencode", ["opencode.db"]),
    "pi": (".pi/agent", ["sessions"]),
}


class Stage:
    """One agent at work. Every step is noted with the session that it ended in."""

    def __init__(self, agent: Agent, provider: Provider, home: Path) -> None:
        self.agent = agent
        self.provider = provider
        self.home = home
        self.workspace = home / "project"
        self.session = ""
        self.notes: dict[str, dict[str, Any]] = {}
        self._calls = 0

    @property
    def version(self) -> str:
        return version(self.agent)

    def call(self, tool: tuple[str, Any]) -> Call:
        self._calls += 1
        return Call(f"call_{self._calls:04}", *tool)

    def step(
        self,
        scene: str,
        arguments: list[str],
        *turns: Turn,
        prompts: int = 1,
        besides: tuple[Turn, ...] = (),
        forgotten: bool = False,
        interrupt: bool = False,
    ) -> str:
        """Run the agent once; gives the session it wrote, as `resume` takes it.

        `besides` are answers to what it asked on the side and still counts; with `forgotten` it counts nothing.
        """
        failing = any(turn.status != 200 for turn in turns)
        first = len(self.provider.requests)
        self.provider.play(*turns)
        done = self.agent.invoke(
            self.home, self.provider, self.workspace, arguments, check=not failing, interrupt=interrupt
        )
        asked = [request for request in self.provider.requests[first:] if not request.aside]
        # Whoever is refused may ask again, and is refused again.
        once = [request for n, request in enumerate(asked) if not (n and request.served is asked[n - 1].served)]
        if self.provider.left or len(once) != len(turns):
            raise SystemExit(f"{scene}: {len(once)} requests for {len(turns)} turns\n{done.out}\n{done.err}")
        self.session = self.agent.latest(self.home)
        note = self.notes.setdefault(self.session, {"scene": scene, "prompts": 0, "served": [], "last": None})
        note["prompts"] += prompts
        own = [request for request in asked if request.served.to != HELPER]
        if not forgotten:
            note["served"] += [*besides, *(request.served for request in own)]
        note["last"] = [
            [role, {"kind": type(block).__name__.lower(), **asdict(block)}]
            for role, block in flat(heard(self.agent, own[-1].conversation))
        ]
        print(f"  {scene}: {self.session}", file=sys.stderr)
        return self.session


def workspace(folder: Path) -> None:
    """A project whose one commit is always the same."""
    folder.mkdir()
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (folder / "dot.png").write_bytes(DOT)
    who = ["-c", "user.name=Anna", "-c", "user.email=anna@example.org", "-c", "commit.gpgsign=false"]
    when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", **when}
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True)


def scrubbed(text: str, home: Path) -> str:
    """The text with another home in it: as a path, as agents write paths into names, and as a hash of the workspace."""
    ours, theirs = str(home), HOME
    project = [hashlib.sha256(f"{one}/project".encode()).hexdigest() for one in (ours, theirs)]
    dashed = [one.replace("/", "-") for one in (ours, theirs)]
    for old, new in ((ours, theirs), dashed, (dashed[0][1:], dashed[1][1:]), project):
        text = text.replace(old, new)
    return text


def keep_database(source: Path, target: Path, home: Path) -> None:
    """The same rows in small pages, without the journal beside it."""
    shutil.copyfile(source, target)
    journal = source.with_name(source.name + "-wal")
    if journal.exists():
        shutil.copyfile(journal, target.with_name(target.name + "-wal"))
    with closing(sqlite3.connect(target)) as database:
        # The journal of its own changes, of which nothing is read and which is most of the file.
        database.execute("DELETE FROM event")
        names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{name}")')]
            rows = database.execute(f'SELECT rowid, * FROM "{name}"').fetchall()
            for row in rows:
                new = [scrubbed(value, home) if isinstance(value, str) else value for value in row[1:]]
                if new != list(row[1:]):
                    places = ", ".join(f'"{column}" = ?' for column in columns)
                    database.execute(f'UPDATE "{name}" SET {places} WHERE rowid = ?', [*new, row[0]])
        database.commit()
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA page_size = 1024")
        database.execute("VACUUM")


def shortened(line: str) -> str:
    """A line of Claude Code, without its prompts and the descriptions of its tools."""
    record = json.loads(line) if '"type":' in line else {}
    if record.get("type") not in PROMPTS:
        return line
    short = {key: _emptied(value) if key != "attachment" else value for key, value in record.items()}
    if "attachment" in short:
        short["attachment"] = {key: _emptied(value) for key, value in short["attachment"].items()}
    return json.dumps(short, ensure_ascii=False, separators=(",", ":"))


def undeclared(line: str) -> str:
    """A line of pi, without its prompt and the descriptions of its tools."""
    record = json.loads(line) if '"sections":' in line else {}
    for system in (record.get("message"), record.get("systemMessage")):
        if isinstance(system, dict):
            system.update({key: {name: "…" for name in value} for key, value in system.items() if key == "sections"})
            tools = [
                {"name": tool["name"], "description": "…", "parameters": {}} for tool in system.get("toolsAdded", [])
            ]
            system.update({"toolsAdded": tools} if tools else {})
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) if record else line


def _emptied(value: Any) -> Any:
    if isinstance(value, dict | list):
        return type(value)()
    return "…" if isinstance(value, str) and len(value) > 100 else value


def keep(stage: Stage, target: Path) -> None:
    """Copy what the agent wrote, with another home in it."""
    folder, names = KEPT[stage.agent.name]
    shutil.rmtree(target, ignore_errors=True)
    root = stage.home / folder
    files = [path for name in names for path in [root / name, *(root / name).rglob("*")] if path.is_file()]
    for path in files:
        new = target / scrubbed(path.relative_to(root).as_posix(), stage.home)
        new.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".db":
            keep_database(path, new, stage.home)
        else:
            text = DESCRIPTION.sub(r"\1…", path.read_bytes().decode())
            if stage.agent.name == "claude-code":
                text = "\n".join(map(shortened, text.split("\n")))
            if stage.agent.name == "pi":
                text = "\n".join(map(undeclared, text.split("\n")))
            new.write_bytes(scrubbed(text, stage.home).encode())


def reported(agent: str, turns: list[Turn]) -> dict[str, int]:
    """What the agent could know of the tokens that were served."""
    total = {name: sum(getattr(turn.usage, name) for turn in turns) for name in Usage.__dataclass_fields__}
    if agent == "opencode":
        # The chat dialect has no word for what went to a cache that its client would read.
        total["input"] += total["cache_write"]
    if agent in ("opencode", "gemini-cli"):
        total["cache_write"] = 0
    if agent in ("claude-code", "pi"):
        total["reasoning"] = 0
    return {f"{name}_tokens": value for name, value in total.items()}


def record(agent: Agent) -> None:
    print(agent.name, file=sys.stderr)
    home = Path("/tmp") / secrets.token_hex(8)[: len(HOME) - len("/tmp/")]
    home.mkdir()
    try:
        workspace(home / "project")
        with Provider() as provider:
            stage = Stage(agent, provider, home)
            scenes(stage)
            number = version(agent)
            target = RECORDED / agent.name / ("recorded" if number == pinned(agent) else f"recorded-{number}")
            keep(stage, target)
            for session in stage.notes if agent.name == "opencode" else ():
                done = agent.invoke(home, provider, stage.workspace, ["export", session])
                (target / f"{session}.json").write_text(scrubbed(done.out, home))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    sessions = count.sessions(agent.name, target)
    for session, note in stage.notes.items():
        name = scrubbed(session, home).rpartition("/")[2]
        # Gemini CLI puts only the beginning of an id into a file's name.
        ends = (name, name[:8]) if agent.name == "gemini-cli" else (name, name.removesuffix(".jsonl"))
        candidates = [found for path, found in sessions.items() if Path(path).stem.endswith(ends)]
        found = max(candidates, key=lambda counts: counts["assistant"])
        answers = [turn for turn in note["served"] if turn.status == 200 and not turn.hold]
        if found["own_usage"] != reported(agent.name, answers):
            raise SystemExit(f"{session} has {found['own_usage']}, was served {reported(agent.name, answers)}")
        found["scene"] = note["scene"]
        found["served"] = {
            "prompts": note["prompts"],
            "answers": len(answers),
            "tool_calls": sum(len(turn.calls) for turn in answers),
        }
        found["last_answer"] = answers[-1].text
        found["last_request"] = json.loads(scrubbed(json.dumps(note["last"], ensure_ascii=False), home))
    whole = {"agent": agent.name, "version": number, "sessions": sessions}
    (target / "expected.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n")


def version(agent: Agent) -> str:
    """That of the program that is run; empty where it is not installed."""
    about = BIN.parent / agent.package / "package.json"
    return json.loads(about.read_text())["version"] if about.exists() else ""


def pinned(agent: Agent) -> str:
    packages = json.loads((Path(__file__).with_name("package.json")).read_text())["dependencies"]
    return packages[agent.package]


if __name__ == "__main__":
    for name in sys.argv[1:] or AGENTS:
        record(AGENTS[name])
