"""What the agents are asked and what the model says to it, scene by scene; what an agent cannot do is left out."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.agents.drive import ClaudeCode, Codex, Gemini, Opencode, Pi
from tests.agents.script import Block, Conversation, Result, Text, Thinking, Turn, Usage, flat, say

if TYPE_CHECKING:
    from tests.agents.record import Stage

ASK = "Use a helper"
HELPER = "Count the lines"
"""What a subagent is asked: its answers are not its parent's."""
LONG = " ".join(f"Line {n * 7919 % 10007} says {n * n}." for n in range(400))
SUMMARY = "The user asked twice; the notes have three lines."


def work(stage: Stage) -> None:
    """Text, thinking, a tool, a tool that fails, an edit, two tools at once, more than ASCII; then a second prompt."""
    agent, notes = stage.agent, stage.workspace / "notes.txt"
    session = stage.step(
        "work",
        agent.run("Prüfe notes.txt 👩‍💻 und 日本語"),
        Turn(
            [
                Thinking("I look first.", "c2lnbmF0dXJl"),
                Text("Ich sehe nach."),
                stage.call(agent.shell("cat notes.txt")),
            ],
            Usage(input=100, cache_write=50, output=20, reasoning=5),
        ),
        Turn([stage.call(agent.shell("echo oops >&2; exit 3"))], Usage(input=10, cache_read=150, output=9)),
        Turn([stage.call(agent.read(notes))], Usage(input=11, cache_read=160, output=8)),
        Turn(
            [stage.call(agent.edit(notes, "two", "zwei ✓"))],
            Usage(input=12, cache_read=170, cache_write=5, output=11, reasoning=2),
        ),
        Turn(
            [Text("Beides zugleich."), stage.call(agent.shell("echo left")), stage.call(agent.shell("echo right"))],
            Usage(input=13, cache_read=180, output=12),
        ),
        say("Fertig: größer 🎉\n\u2028 bleibt in der Zeile", input=14, cache_read=190, output=13),
    )
    stage.step("work", agent.resume(session, "And now?"), say("Now we go on.", input=20, cache_read=200, output=5))


def fork(stage: Stage) -> None:
    """The session of the scene before goes on in a new one, and then in the old one."""
    old = stage.session
    arguments = stage.agent.fork(old, "Another way?")
    if arguments:
        stage.step("fork", arguments, say("Another way it is.", input=21, cache_read=210, output=6))
        stage.step("work", stage.agent.resume(old, "The old way?"), say("The old way.", input=22, output=7))


def image(stage: Stage) -> None:
    agent = stage.agent
    attached = agent.with_image("What is this?", "dot.png")
    answer = say("A dot.", input=23, output=3)
    if attached:
        session = stage.step("image", attached, answer)
    else:
        look = Turn([stage.call(agent.read(stage.workspace / "dot.png"))], Usage(input=24, output=4))
        session = stage.step("image", agent.run("What is dot.png?"), look, answer)
    stage.step("image", agent.resume(session, "Which colour?"), say("Blue.", input=25, output=2))


def refused(stage: Stage) -> None:
    """The provider refuses; the next prompt goes on."""
    session = stage.step("refused", stage.agent.run("First?"), say("First answer.", input=30, output=4))
    refusal = Turn([Text("that is not acceptable")], status=400, lasting=True)
    stage.step("refused", stage.agent.resume(session, "This will fail"), refusal)
    stage.step("refused", stage.agent.resume(session, "And this?"), say("This works.", input=31, output=5))


def interrupted(stage: Stage) -> None:
    """Ctrl-C in the middle of an answer; the next prompt goes on."""
    session = stage.step("interrupted", stage.agent.run("First?"), say("First answer.", input=32, output=4))
    held = Turn([Text("It begins"), Text(" and never ends")], hold=True)
    stage.step("interrupted", stage.agent.resume(session, "Take your time"), held, interrupt=True)
    stage.step("interrupted", stage.agent.resume(session, "Go on"), say("I go on.", input=33, output=5))


def compacted(stage: Stage) -> None:
    agent, provider = stage.agent, stage.provider
    size = 199_000 if isinstance(agent, Opencode | Pi) else 5_000
    first = say(LONG if isinstance(agent, Gemini) else "First answer.", input=40, output=900)
    session = stage.step("compacted", agent.run("First?"), first)
    tag = "state_snapshot" if isinstance(agent, Gemini) else "summary" if isinstance(agent, ClaudeCode) else ""
    summary = f"<{tag}>\n{SUMMARY}\n</{tag}>" if tag else SUMMARY
    aside, provider.aside = provider.aside, say(summary, input=41, output=42)
    second = say("Second answer.", input=size, output=44)
    # These two compact at once after an answer that fills the context; opencode then tells itself to continue.
    more = [say("Nothing left to do.", input=45, output=46)] if isinstance(agent, Opencode) else []
    besides = (provider.aside,) if more else ()
    if isinstance(agent, Pi) and tuple(map(int, stage.version.split("."))) >= (0, 81):
        besides = (provider.aside,) * 2  # one for the turn that it cuts, and counted since then
    stage.step("compacted", agent.resume(session, "Second?"), second, *more, besides=besides)
    third = say("Third answer.", input=47, output=48)
    if isinstance(agent, ClaudeCode):
        stage.step("compacted", agent.compact(session), provider.aside, prompts=0, forgotten=True)
    if isinstance(agent, Codex):
        stage.step("compacted", agent.compacting(session, "Third?", 4_000), third, besides=(provider.aside,))
    elif isinstance(agent, Gemini):
        agent.compression_threshold = 0.001
        stage.step("compacted", agent.resume(session, "Third?"), third)
        agent.compression_threshold = Gemini.compression_threshold
    else:
        stage.step("compacted", agent.resume(session, "Third?"), third)
    provider.aside = aside
    stage.step("compacted", agent.resume(session, "Fourth?"), say("Fourth answer.", input=49, output=50))


def later(stage: Stage) -> None:
    """Gemini CLI, resumed in another minute than it began in, makes a second and empty file for the session."""
    if not isinstance(stage.agent, Gemini):
        return
    session = stage.step("later", stage.agent.run("First?"), say("First answer.", input=54, output=4))
    for n, prompt in enumerate(("Second?", "Third?")):
        time.sleep(61 - time.time() % 60)
        stage.step("later", stage.agent.resume(session, prompt), say(f"{prompt} Yes.", input=55 + n, output=5))


def branched(stage: Stage) -> None:
    """A second conversation in the same session: only Claude Code can, without a terminal."""
    agent = stage.agent
    if not isinstance(agent, ClaudeCode):
        return
    session = stage.step("branched", agent.run("First?"), say("First answer.", input=50, output=4))
    first = agent.answers(agent.find(stage.home, session))[0]
    stage.step("branched", agent.resume(session, "Second?"), say("Second answer.", input=51, output=5))
    stage.step("branched", agent.branch(session, first, "Instead?"), say("Instead.", input=52, output=6))
    stage.step("branched", agent.resume(session, "And so?"), say("And so on.", input=53, output=7))


def helped(stage: Stage) -> None:
    """A subagent."""
    agent = stage.agent
    if isinstance(agent, Pi):
        return
    looks = Turn([stage.call(agent.shell("wc -l notes.txt"))], Usage(input=61, output=3), to=HELPER)
    says = replace(say("Three lines.", input=62, output=4), to=HELPER)
    ends = replace(say("Three.", input=63, output=5), to=ASK)
    start = Usage(input=60, output=6)
    about = {"description": "Look", "prompt": HELPER}
    if isinstance(agent, ClaudeCode):
        asked = {**about, "subagent_type": "general-purpose", "run_in_background": False}
        begin = Turn([stage.call(("Agent", asked))], start, to=ASK)
    elif isinstance(agent, Opencode):
        begin = Turn([stage.call(("task", {**about, "subagent_type": "general"}))], start, to=ASK)
    elif isinstance(agent, Gemini):
        named = {"agent_name": "codebase_investigator", "prompt": HELPER}
        begin = Turn([stage.call(("invoke_agent", named))], start, to=ASK)
        looks = replace(looks, blocks=[stage.call(("list_directory", {"dir_path": str(stage.workspace)}))])
        report = {"SummaryOfFindings": "Three lines.", "ExplorationTrace": [], "RelevantLocations": []}
        says = replace(says, blocks=[stage.call(("complete_task", {"report": report}))])
    else:
        begin = Turn([stage.call(("multi_agent_v1/spawn_agent", {"message": HELPER}))], start, to=ASK)

        def wait(conversation: Conversation) -> list[Block]:
            [told] = [block for _, block in flat(conversation) if isinstance(block, Result)]
            return [stage.call(("multi_agent_v1/wait_agent", {"targets": [agent.spawned(told.text)]}))]

        waits = Turn([], Usage(input=64, output=7), to=ASK, make=wait)
        stage.step("helped", agent.run_with_helpers(ASK), begin, waits, looks, says, ends)
        return
    stage.step("helped", agent.run(ASK), begin, looks, says, ends)


def scenes(stage: Stage) -> None:
    for scene in (work, fork, image, refused, interrupted, compacted, later, branched, helped):
        scene(stage)
