"""The chapters of `turnlog demo` about a log: an agent is killed, and nothing is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from turnlog.cli.demo.story import Story
from turnlog.log.block import ToolCall, ToolResult
from turnlog.log.context import Context
from turnlog.view.number import size
from turnlog.view.visible import clip


def tell_log(story: Story, *, has_files: bool) -> None:
    """Tell the chapters about a log."""
    story.move_to("webshop")
    story.say("A session of an AI coding agent is a log. This is what happens to it on a bad day.")
    story.say(f"Everything below really runs, in {story.folder}.")
    acknowledged = _an_agent_is_killed(story)
    _it_is_resumed(story, acknowledged)
    _it_is_forked(story)
    _it_is_compacted(story)
    _it_is_rewound(story)
    if has_files:
        _a_line_is_torn(story)
    else:
        story.names["home"].close()


def _an_agent_is_killed(story: Story) -> dict[int, str]:
    story.chapter(
        "An agent works, and is killed in the middle of a tool call",
        "It prints a number when an entry is acknowledged: from then on it must survive.",
    )
    acknowledged: dict[int, str] = {}
    with story.agent() as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line == "calling\n":
                break
            seq, entry_id, what = line.rstrip("\n").split(" ", 2)
            acknowledged[int(seq)] = entry_id
            story.say(f"   {seq:>3}  {clip(what, 84)}")
        story.say(f"\n   $ kill -9 {process.pid}\n")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    story.check("the agent is dead, its tool call was never answered", process.returncode == -signal.SIGKILL)
    story.say()
    story.shell("ls")
    return acknowledged


def _it_is_resumed(story: Story, acknowledged: dict[int, str]) -> None:
    story.chapter("The session is resumed", "Every acknowledged entry is there, and the model gets a complete context.")
    story.python("import turnlog\nhome = turnlog.open()\ns = home.resume()")
    story.python("[call.name for call in s.pending()]")
    session = story.names["s"]
    there = {entry.seq: entry.id for entry in session.entries()}
    count = len(acknowledged)
    story.check(f"all {count} acknowledged entries are in the log", count > 0 and acknowledged.items() <= there.items())
    story.check("nothing in it is damaged", not session.damage)
    story.say()
    story.python("s.context()[-1].blocks[0].content")
    story.check("for the model, every tool call has exactly one result", _is_complete(session.context()))
    story.say("\n   The agent goes on where it was, and this time the tool comes back.\n")
    story.python(
        '_ = s.tool_result("c3", "200 passed")\n'
        '_ = s.assistant("The fixture now waits for the port. 200 runs, no failure.")'
    )
    story.say()
    story.shell("show", "--last", "2")
    story.check("no tool call is open any more", not session.pending())


def _it_is_forked(story: Story) -> None:
    story.chapter("It is forked, to try another idea", "A fork points at what it continues; nothing is copied.")
    story.python('_ = s.user("And the same for the client?")')
    story.python('other = s.fork(name="use a lock")\n_ = other.user("Use a lock instead")')
    story.python("[m.blocks[0].text for m in other.messages(last=2)]")
    other = story.names["other"]
    [row] = [row for row in story.names["home"].sessions() if row.id == other.id]
    story.check(f"the fork takes {size(row.size_bytes)}, whatever came before it", row.size_bytes < 8192)
    story.check("its history is the same up to there", _ids(story, "other")[:-1] == _ids(story, "s"))
    story.say()
    story.shell("ls")


def _it_is_compacted(story: Story) -> None:
    story.chapter("It is compacted", "The model sees a summary and the last messages; the log keeps everything.")
    before, messages = _weight(story.names["s"].context()), len(story.names["s"].messages())
    story.say(f"   the model sees {before}")
    story.python('_ = s.compact("The fixture did not wait for the port. Fixed: 200 runs pass.", keep=2)')
    after = _weight(story.names["s"].context())
    story.say(f"   the model sees {after}\n")
    story.check("the context got shorter", len(story.names["s"].context()) == 3)
    story.check("all messages are still in the log", len(story.names["s"].messages()) == messages)


def _it_is_rewound(story: Story) -> None:
    story.chapter(
        "It is rewound, and that is undone", "Moving is an entry like any other: what was left stays, as a branch."
    )
    session = story.names["s"]
    before = _ids(story, "s")
    story.python("_ = s.rewind(turns=1)\ns.messages()[-1].blocks[0].text")
    story.check("the last turn is gone from the conversation", _ids(story, "s") == before[:-1])
    story.say()
    story.python("_ = s.undo()\ns.messages()[-1].blocks[0].text")
    story.check("and back again", _ids(story, "s") == before and len(session.branches()) >= 1)
    story.say()
    story.shell("log", "--reverse", "--limit", "3")


def _a_line_is_torn(story: Story) -> None:
    story.chapter(
        "A line is torn by hand",
        "The second half of a line goes away, as after a bad crash. One entry is hurt, and no other.",
    )
    session = story.names["s"]
    before = [(entry.seq, entry.id) for entry in session.entries()]
    path = story.shell("path", session.handle).strip()
    story.names["path"] = Path(path)
    story.python(
        'lines = path.read_bytes().split(b"\\n")\nlines[6] = lines[6][:70]\n_ = path.write_bytes(b"\\n".join(lines))'
    )
    story.say()
    story.shell("doctor", expect=6)
    story.shell("doctor", "--repair")
    story.shell("doctor")
    story.python("s = home.resume(s.id)")
    after = [(entry.seq, entry.id) for entry in story.names["s"].entries()]
    story.check("every other entry can still be read", after[:-1] == [pair for pair in before if pair[0] != 7])
    story.check("the log says that it was repaired", after[-1][0] > before[-1][0])
    story.check("the context is still complete", _is_complete(story.names["s"].context()))
    trash = list((story.folder / "home" / "trash").iterdir())
    story.check("the file as it was is in the trash", len(trash) == 1 and trash[0].stat().st_size > 0)
    story.names["home"].close()


def _is_complete(context: Context) -> bool:
    """Whether every tool call is followed by exactly one result."""
    calls = [block.id for message in context for block in message.blocks if isinstance(block, ToolCall)]
    results = [block.call for message in context for block in message.blocks if isinstance(block, ToolResult)]
    return sorted(calls) == sorted(results)


def _ids(story: Story, name: str) -> list[str]:
    messages: list[Any] = story.names[name].messages()
    return [message.id for message in messages]


def _weight(context: Context) -> str:
    letters = sum(len(str(block)) for message in context for block in message.blocks)
    return f"{len(context)} messages, {letters:,} characters"
