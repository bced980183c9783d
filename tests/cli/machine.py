"""A machine on which three agents have worked: what they really wrote, in the folders where they keep it."""

import json
import os
import shutil
import time
from pathlib import Path

from tests.cli.scene import Cli

RECORDED = Path(__file__).resolve().parents[1] / "formats" / "agents"
PLACES = {"claude-code": ".claude", "codex": ".codex", "gemini-cli": ".gemini"}
TOLD = "/home/anna/project"


def three_agents(person: Path, workspace: Path) -> None:
    """Their sessions, as if they had worked in that folder."""
    for agent, place in PLACES.items():
        shutil.copytree(RECORDED / agent / "recorded", person / place, dirs_exist_ok=True)
    for path in filter(Path.is_file, person.rglob("*")):
        data = path.read_bytes()
        if TOLD.encode() in data:
            path.write_bytes(data.replace(TOLD.encode(), str(workspace).encode()))


def long_ago(*folders: Path) -> None:
    """As if nothing had changed there for a minute: what is younger is looked at again, to be sure."""
    then = time.time() - 60
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            os.utime(path, (then, then))


def settle(process: Cli) -> None:
    """Nothing is left to be read, and so there is no progress to be told."""
    long_ago(*(Path(os.environ[name]) for name in ("TURNLOG_HOME", "HOME") if Path(os.environ[name]).exists()))
    done = process("ls", "--all")
    assert done.code == 0, done.err


def claude_session(person: Path, workspace: str, id: str, *texts: str, at: str = "2026-11-15T10:00:00.000Z") -> Path:
    """A session of Claude Code in which somebody says these texts, each answered."""
    folder = person / ".claude/projects" / workspace.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{id}.jsonl"
    parent: str | None = None
    with path.open("a") as file:
        for number, text in enumerate(texts):
            for role in ("user", "assistant"):
                uuid = f"{id[:8]}-0000-4000-8000-{number:06x}{'a' if role == 'user' else 'b'}{len(role):05x}"
                message: dict[str, object] = {"role": role, "content": text}
                if role == "assistant":
                    message = {
                        "id": f"msg_{id[:8]}_{number}", "type": "message", "role": role, "model": "claude-sonnet-4-5",
                        "content": [{"type": "text", "text": f"Answer to: {text}"}], "stop_reason": "end_turn",
                        "usage": {"input_tokens": 1_000_000, "output_tokens": 100_000},
                    }  # fmt: skip
                record = {
                    "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": workspace,
                    "sessionId": id, "version": "2.1.0", "type": role, "message": message, "uuid": uuid,
                    "timestamp": at, "requestId": f"req_{id[:8]}_{number}",
                }  # fmt: skip
                parent = uuid
                file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return path
