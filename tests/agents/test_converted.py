"""Sessions of every agent, and of Turnlog, written for every other one: the real agent goes on with them.

What an agent sends with the next prompt is what it understood, and has to be what Turnlog's `context()` says, up to
what the report of the export names as lost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.agents.dialect import ANTHROPIC
from tests.agents.drive import AGENTS, Codex, Opencode
from tests.agents.provider import Provider
from tests.agents.record import RECORDED, workspace
from tests.agents.resumed import resume_and_capture
from tests.agents.script import Call, Conversation, Result, Text, Thinking, say
from tests.formats.agents.said import Said, alike, held
from tests.formats.test_between import began, long, rich
from turnlog.exchange.exporting.handover import hand_over
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.formats import Loss
from turnlog.log.prompt.promptmessage import preview

BARE: dict[str, Callable[[str, str], list[str]]] = {
    "claude-code": lambda id, prompt: ["-p", "--dangerously-skip-permissions", "--resume", id, prompt],
    "codex": lambda id, prompt: ["exec", "--skip-git-repo-check", "resume", id, prompt],
    "gemini-cli": lambda id, prompt: ["--yolo", "--resume", id, "-p", prompt],
    "opencode": lambda id, prompt: ["run", "-s", id, "--", *prompt.split(" ")],
    "pi": lambda id, prompt: ["--session", id, "-p", prompt],
}
"""How each goes on, without a word about a model or a provider."""
MADE: dict[str, Callable[[Any], Any]] = {"rich": rich, "long": long}
SCENES = ("work", "image", "compacted")
MORE = ("fork", "refused", "interrupted", "helped")
"""For those two that are quick."""
CASES = [
    *((there, here, scene) for there in AGENTS for here in AGENTS for scene in SCENES if here != there),
    *((there, "turnlog", scene) for there in AGENTS for scene in MADE),
    *((here, here, scene) for here in AGENTS for scene in ("work", "compacted")),
    *((there, here, scene) for there in ("claude-code", "codex") for here in AGENTS for scene in MORE),
]
CASES = [case for case in CASES if case[1:] not in (("gemini-cli", "fork"), ("pi", "helped"))]
ASKED = "And now?"


def expectations(agent: str) -> dict[str, Any]:
    return json.loads((RECORDED / agent / "recorded/expected.json").read_text())["sessions"]


@pytest.fixture(scope="module")
def recorded() -> Iterator[Callable[[str, str], Any]]:
    """Gives the session of an agent and a scene."""
    with turnlog.open("memory:") as home:
        known: dict[str, dict[str, str]] = {}

        def get(agent: str, scene: str) -> Any:
            if agent not in known:
                names = {name: one["scene"] for name, one in expectations(agent).items() if "scene" in one}
                folder, known[agent] = RECORDED / agent / "recorded", {}
                for item in home.import_sessions(folder, agent=agent):
                    name = item.source.key or Path(item.source.path).relative_to(folder).as_posix()
                    if name in names:
                        known[agent][names[name]] = item.id
            return home.resume(known[agent][scene])

        yield get


@dataclass
class Written:
    """A session where the agent looks for it, and all that the report says was lost or changed."""

    id: str
    path: str
    lost: list[Loss]
    notes: list[str]


@pytest.fixture
def convert(
    recorded: Callable[[str, str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str, str], tuple[Any, Written]]:
    """Hands a session of an agent and a scene over to another, whose home is set up; gives it and the report."""
    for name in [name for name in os.environ if name.startswith(("XDG_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(there: str, here: str, scene: str) -> tuple[Any, Written]:
        project = tmp_path / "project"
        workspace(project)
        with Provider() as provider:
            AGENTS[there].configure(tmp_path, provider)
        session = MADE[scene](turnlog.open("memory:", clock=began)) if here == "turnlog" else recorded(here, scene)
        session.set("workspace", str(project))
        done = hand_over(session, there)
        assert done.path is not None
        return session, Written(done.id, done.path, [*done.report.changed, *done.report.lost], done.report.notes)

    return run


def grouped(said: Said) -> list[tuple[str, Any]]:
    """Texts that one says in a row together; calls with numbers instead of ids, of which agents take different ones."""
    found: list[tuple[str, Any]] = []
    numbers: dict[str, int] = {}
    for role, block in said:
        match block:
            case Text(text=text) if found and found[-1][0] == role and isinstance(found[-1][1], list):
                found[-1][1].append(text)
            case Text(text=text):
                found.append((role, [text]))
            case Call(id=id, name=name, input=given):
                numbers[id] = len(numbers)
                found.append((role, (numbers[id], name, given)))
            case Result(call=call, text=text, error=error, images=images):
                found.append((role, (numbers.get(call), text, error, images)))
            case _:
                found.append((role, block))
    return found


def compare(sent: list[tuple[str, Any]], wanted: list[tuple[str, Any]]) -> None:
    """The same was said. Where one has joined texts and the other has not, what stands between them is nobody's."""
    for index, (one, other) in enumerate(zip(sent, wanted, strict=False)):
        both = one[1], other[1]
        if all(isinstance(texts, list) for texts in both) and len(both[0]) != len(both[1]):
            sent[index], wanted[index] = ((role, "".join("".join(texts).split())) for role, texts in (one, other))
    assert sent == wanted


def expected(conversation: Conversation, lost: dict[str, int]) -> Conversation:
    """What the other agent can have understood: the conversation, without what the report names."""
    found: Conversation = []
    for role, blocks in conversation:
        if role == "system" and "role of a system message" in lost:
            role = "user"
        made = [block for block in blocks if not (isinstance(block, Thinking) and "reasoning" in lost)]
        if "tool input that is no object" in lost:
            made = [
                Call(block.id, block.name, {"input": block.input})
                if isinstance(block, Call) and not isinstance(block.input, dict)
                else block
                for block in made
            ]
        found.append((role, made))
    return found


@pytest.mark.parametrize(("there", "here", "scene"), CASES)
def test_the_agent_goes_on_with_what_was_written_for_it(
    convert: Callable[[str, str, str], tuple[Any, Written]], there: str, here: str, scene: str, tmp_path: Path
) -> None:
    session, written = convert(there, here, scene)
    sent = resume_and_capture(AGENTS[there], tmp_path, Path(written.path), tmp_path / "project", ASKED)
    lost = {loss.what: loss.count for loss in written.lost}
    wanted = [*expected(held(session, lost), lost), ("user", [Text(ASKED)])]
    compare(grouped(alike(there, sent)), grouped(alike(there, wanted)))


@pytest.mark.parametrize("there", AGENTS)
def test_it_goes_on_with_the_model_that_the_agent_is_set_to(
    convert: Callable[[str, str, str], tuple[Any, Written]], there: str, tmp_path: Path
) -> None:
    agent, project = AGENTS[there], tmp_path / "project"
    _, written = convert(there, "codex" if there != "codex" else "claude-code", "work")
    with Provider(say("Noted.")) as provider:
        known = agent.take_in(tmp_path, provider, project, Path(written.path))
        agent.invoke(tmp_path, provider, project, BARE[there](known, ASKED))
        [request] = provider.main
    named = str(request.body.get("model") or request.path)
    if there != "claude-code":  # which has one of its own without being set to any
        assert agent.model.rpartition("/")[2] in named
    assert not any(other.model.rpartition("/")[2] in named for other in (AGENTS["codex"],) if there != "codex")
    assert [note for note in written.notes if "fake/m" in note] == [
        note for note in written.notes if "the model that opencode is set to" in note
    ]
    assert (there == "opencode") == any("fake/m" in note for note in written.notes)


# ── what people see of it ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("here", "scene"), [("claude-code", "work"), ("pi", "compacted"), ("turnlog", "rich")])
def test_codex_lists_it_and_shows_every_prompt_and_answer(
    convert: Callable[[str, str, str], tuple[Any, Written]], here: str, scene: str, tmp_path: Path
) -> None:
    session, written = convert("codex", here, scene)
    agent, project = Codex(), tmp_path / "project"
    with Provider() as provider:
        listed = agent.ask(tmp_path, provider, project, "thread/list", {"limit": 10})
        about = {"threadId": written.id, "includeTurns": True}
        shown = agent.ask(tmp_path, provider, project, "thread/read", about)
    assert [(thread["id"], thread["path"]) for thread in listed["data"]] == [(written.id, written.path)]
    items = [item for turn in shown["thread"]["turns"] for item in turn["items"]]
    answers = [item["text"] for item in items if item["type"] == "agentMessage"]
    said = [
        block.text
        for role, blocks in held(session)
        if role == "assistant"
        for block in blocks
        if isinstance(block, Text)
    ]
    assert [text for text in said if text not in answers] == []
    assert any(item["type"] == "userMessage" for item in items)


@pytest.mark.parametrize(("here", "scene"), [("codex", "work"), ("turnlog", "rich")])
def test_gemini_cli_lists_it(
    convert: Callable[[str, str, str], tuple[Any, Written]], here: str, scene: str, tmp_path: Path
) -> None:
    _, written = convert("gemini-cli", here, scene)
    agent = AGENTS["gemini-cli"]
    with Provider() as provider:
        done = agent.invoke(tmp_path, provider, tmp_path / "project", agent.listing() or [])
    assert f"[{written.id}]" in done.out + done.err


@pytest.mark.parametrize(("here", "scene"), [("codex", "work"), ("turnlog", "rich")])
def test_opencode_lists_it_and_gives_it_back(
    convert: Callable[[str, str, str], tuple[Any, Written]], here: str, scene: str, tmp_path: Path
) -> None:
    session, written = convert("opencode", here, scene)
    agent, project = Opencode(), tmp_path / "project"
    with Provider() as provider:
        assert agent.take_in(tmp_path, provider, project, Path(written.path)) == written.id
        listed = json.loads(agent.invoke(tmp_path, provider, project, agent.listing() or []).out)
        (tmp_path / "back.json").write_text(agent.invoke(tmp_path, provider, project, agent.export(written.id)).out)
    assert [(one["id"], one["title"]) for one in listed] == [(written.id, session.title or preview(session.context()))]
    lost = {loss.what: loss.count for loss in written.lost}
    with turnlog.open("memory:") as home:
        [item] = home.import_sessions(tmp_path / "back.json", agent="opencode")
        back = held(home.resume(item.id))
    compare(grouped(alike("opencode", back)), grouped(alike("opencode", expected(held(session, lost), lost))))


SDK = """
import dataclasses, json, sys
from claude_agent_sdk import get_session_messages, list_sessions
found = [dataclasses.asdict(one) for one in list_sessions(directory=sys.argv[1])]
said = {one["session_id"]: get_session_messages(one["session_id"], directory=sys.argv[1]) for one in found}
print(json.dumps([found, {id: [one.message for one in messages] for id, messages in said.items()}]))
"""


def with_sdk(home: Path, project: Path) -> Any:
    """What Claude Code's own library lists in a project, and what it reads there."""
    library = Path(__file__).with_name("node_modules") / ".python"
    environment = {"CLAUDE_CONFIG_DIR": str(home / ".claude"), "HOME": str(home), "PYTHONPATH": str(library)}
    environment["PATH"] = "/usr/bin:/bin"
    run = [sys.executable, "-c", SDK, str(project)]
    return json.loads(subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize(
    ("here", "scene"),
    [("turnlog", "rich"), ("turnlog", "long"), *((here, scene) for here in AGENTS for scene in ("work", "compacted"))],
)
def test_the_library_of_claude_code_lists_and_reads_it(
    convert: Callable[[str, str, str], tuple[Any, Written]], here: str, scene: str, tmp_path: Path
) -> None:
    session, written = convert("claude-code", here, scene)
    [about], said = with_sdk(tmp_path, tmp_path / "project")
    assert (about["session_id"], about["cwd"]) == (written.id, str(tmp_path / "project"))
    assert about["custom_title"] == session.title
    lost = {loss.what: loss.count for loss in written.lost}
    sent = alike("claude-code", ANTHROPIC.read({"messages": said[written.id]}))
    wanted = expected(held(session, lost), lost)
    # What people do not see it leaves out, unless a summary holds it.
    messages = transcript_of(session).context.messages
    shown = [pair for pair, one in zip(wanted, messages, strict=True) if one.display is not False or not one.seq]
    compare(grouped(sent), grouped(alike("claude-code", shown)))


@pytest.mark.parametrize("there", AGENTS)
def test_the_command_line_puts_it_where_the_agent_looks(there: str, tmp_path: Path) -> None:
    here = "pi" if there != "pi" else "codex"
    [name] = [name for name, one in expectations(here).items() if one.get("scene") == "work"]
    project = tmp_path / "project"
    workspace(project)
    places = {"CLAUDE_CONFIG_DIR": str(tmp_path / ".claude"), "CODEX_HOME": str(tmp_path / ".codex")}
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", **places}

    def run(*arguments: str) -> Any:
        line = [sys.executable, "-m", "turnlog", *arguments, "--json", "--home", str(tmp_path / "log")]
        done = subprocess.run(line, env=environment, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    run("import", str(RECORDED / here / "recorded" / name))
    with turnlog.open(tmp_path / "log") as home:
        [found] = home.sessions()
        with home.resume(found.id) as session:
            wanted = held(session)
    placed = run("resume", found.id, "--in", there, "-w", str(project))
    assert placed["cwd"] == str(project)
    sent = resume_and_capture(AGENTS[there], tmp_path, Path(placed["path"]), project, ASKED)
    lost = dict.fromkeys(["reasoning", "role of a system message", "tool input that is no object"], 1)
    compare(
        [pair for pair in grouped(alike(there, sent)) if not isinstance(pair[1], Thinking)],
        grouped(alike(there, [*expected(wanted, lost), ("user", [Text(ASKED)])])),
    )
