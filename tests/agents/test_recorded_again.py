"""What was recorded, the agents still take for their own: nothing was broken by giving it another home."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.agents.drive import AGENTS
from tests.agents.record import RECORDED, version, workspace
from tests.agents.resumed import resume_and_capture
from tests.agents.script import Result, flat

RECORDINGS: dict[Path, dict[str, Any]] = {
    path.parent: json.loads(path.read_text()) for path in sorted(RECORDED.glob("*/recorded*/expected.json"))
}
SCENES = [
    pytest.param(folder, scene, id=f"{folder.parent.name}-{folder.name}-{scene}")
    for folder, whole in RECORDINGS.items()
    for scene in ("work", "fork", "compacted", "branched")
    if scene in {session.get("scene") for session in whole["sessions"].values()}
]


def lay(agent: str, recorded: Path, home: Path, name: str) -> Path:
    """The recorded sessions in a new home, where the agent looks for those of its `project`; gives the one named."""
    project = home / "project"
    if agent == "claude-code":
        folder = home / ".claude/projects" / re.sub("[^a-zA-Z0-9]", "-", str(project))
        shutil.copytree(recorded / "projects/-home-anna-project", folder)
        return folder / Path(name).name
    if agent == "codex":
        shutil.copytree(recorded / "sessions", home / ".codex/sessions")
        return home / ".codex" / name
    if agent == "gemini-cli":
        shutil.copytree(recorded / "tmp", home / ".gemini/tmp")
        (home / ".gemini/projects.json").write_text(json.dumps({"projects": {str(project): "project"}}))
        (home / ".gemini/tmp/project/.project_root").write_text(str(project))
        return home / ".gemini" / name
    if agent == "opencode":
        return recorded / f"{name}.json"
    # Its working directory has to exist.
    text = (recorded / name).read_text().replace('"cwd":"/home/anna/project"', f'"cwd":"{project}"')
    path = home / "session.jsonl"
    path.write_text(text)
    return path


def plain(role: str, block: Any) -> list[Any]:
    return [role, json.loads(json.dumps({"kind": type(block).__name__.lower(), **asdict(block)}))]


@pytest.mark.parametrize(("recorded", "scene"), SCENES)
def test_a_recorded_session_goes_on_as_it_was(recorded: Path, scene: str, tmp_path: Path):
    agent, whole = recorded.parent.name, RECORDINGS[recorded]
    if recorded.name != "recorded" and whole["version"] != version(AGENTS[agent]):
        pytest.skip(f"{agent} {whole['version']} is not the one that is installed")
    [(name, session)] = [(name, one) for name, one in whole["sessions"].items() if one.get("scene") == scene]
    workspace(tmp_path / "project")
    path = lay(agent, recorded, tmp_path, name)
    sent = resume_and_capture(AGENTS[agent], tmp_path, path, tmp_path / "project", "And then?")
    seen: list[Any] = []
    for role, block in flat(sent):
        # Gemini CLI sends every result twice after resuming a session of its own.
        if not isinstance(block, Result) or plain(role, block) not in seen:
            seen.append(plain(role, block))
    before: list[Any] = []
    for pair in session["last_request"]:
        if pair[1]["kind"] != "result" or pair not in before:
            before.append(pair)
    answer = ["assistant", {"kind": "text", "text": session["last_answer"]}]
    assert seen == [*before, answer, ["user", {"kind": "text", "text": "And then?"}]]
