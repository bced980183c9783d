"""Claude Code in git worktrees, each way that it goes into one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.desk import Desk
from tests.agents.drive import ClaudeCode
from tests.agents.provider import Provider
from tests.agents.script import Call, Text, Turn


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[Desk]:
    with Provider() as provider:
        desk = Desk(ClaudeCode(), tmp_path, provider)
        (desk.place / ".gitignore").write_text(".claude/\n")
        for words in (["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first"]):
            subprocess.run(["git", *words], cwd=desk.place, check=True)
        yield desk


def test_worktrees_and_the_root_beside_them_keep_to_themselves(claude: Desk):
    """`claude --worktree`, a subagent with a worktree of its own, and a session that goes into one."""
    desk, agent, worktrees = claude, claude.agent, claude.place / ".claude/worktrees"

    def inside(name: str) -> dict[str, bytes]:
        found = (worktrees / name).iterdir()
        return {path.name: path.read_bytes() for path in found if path.name not in (".git", ".gitignore")}

    clean = {name: (desk.place / name).read_bytes() for name in ("a.py", "b.txt", "c.txt")}
    *flags, prompt = agent.run("in a worktree")
    desk.ask([*flags, "--worktree", "feat", prompt], desk.shell("echo feat > a.py; echo feat > feat.txt"))
    desk.settled()
    asked = "do it on your own"
    helper = {"description": "d", "prompt": asked, "subagent_type": "general-purpose", "isolation": "worktree"}
    desk.ask(
        agent.run("at the root"),
        Turn([Call("call_agent", "Agent", helper)]),
        Turn([Call("call_sub1", *agent.shell("pwd"))], to=asked),
        Turn([Call("call_sub2", *agent.shell("echo sub > a.py; echo sub > sub.txt"))], to=asked),
        Turn([Text("sub done")], to=asked),
        desk.shell("echo root > a.py"),
    )
    desk.settled()
    desk.ask(
        agent.run("into a worktree"),
        Turn([Call("call_enter", "EnterWorktree", {"name": "other"})]),
        desk.shell("echo other > a.py"),
        Turn([Call("call_exit", "ExitWorktree", {"action": "keep"})]),
        desk.shell("echo entered > entered.txt"),
    )
    desk.settled()
    [helped] = [path.name for path in worktrees.iterdir() if path.name.startswith("agent-")]
    entered, rooted, apart = (row["id"] for row in desk.rows())
    assert "feat" in str(desk.json("show", apart)["workspace"])

    def changes(session: str) -> set[str]:
        return {item["path"] for item in desk.json("diff", "--turn", "1", "--session", session)["changes"]}

    lead = ".claude/worktrees"
    assert changes(apart) == {"a.py", "feat.txt"}
    assert changes(rooted) == {"a.py", f"{lead}/{helped}/a.py", f"{lead}/{helped}/sub.txt"}
    assert changes(entered) == {"entered.txt", f"{lead}/other/a.py"}

    desk.turnlog("rewind", "turn:1", "--session", rooted, "--yes")
    assert (desk.place / "a.py").read_bytes() == clean["a.py"]
    assert inside(helped) == clean
    assert inside("feat") == {**clean, "a.py": b"feat\n", "feat.txt": b"feat\n"}
    assert inside("other")["a.py"] == b"other\n"
    desk.turnlog("rewind", "turn:1", "--session", entered, "--yes")
    assert not (desk.place / "entered.txt").exists()
    assert inside("other") == clean
    desk.turnlog("rewind", "turn:1", "--session", apart, "--yes")
    assert inside("feat") == clean
    desk.turnlog("undo", "--session", rooted, "--yes")
    assert (inside(helped)["a.py"], (desk.place / "a.py").read_bytes()) == (b"sub\n", b"root\n")
