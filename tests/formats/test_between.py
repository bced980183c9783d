"""Sessions from one agent to another and back: what both can say is kept, and the report names all that is gone."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats import checkers
from tests.formats.account import account, added, lost
from tests.formats.checkers import claude_code, codex, gemini_cli, opencode, pi
from tests.formats.composing import placed
from tests.public import public
from turnlog import Compaction, Custom, File, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.run import import_all
from turnlog.formats import Rendered, format_of
from turnlog.session.interior import interior

HERE = Path(__file__).parent
AGENTS = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
CHECKERS = {
    "claude-code": claude_code, "codex": codex, "gemini-cli": gemini_cli, "opencode": opencode, "pi": pi,
}  # fmt: skip
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000 1f15c4890000000d49444154789c6360f8ffff3f0005fe02fe"
    "a735810b0000000049454e44ae426082"
)
BEGAN = datetime(2026, 3, 1, 9, 30, 0, 123000, tzinfo=UTC)

# What no file of an agent can say. Anything else that is gone is a fault, whatever the report says of it.
ALWAYS = {
    "system", "tools", "note", "custom", "branch", "fact", "edit", "compaction", "agent", "details", "thinking",
    "seal", "run", "unknown", "file", "system role", "input", "checkpoint", "file in a result",
}  # fmt: skip
CANNOT = {
    "claude-code": {"cost", "reasoning count", "duration", "stop", "error", "spending", "display"},
    "codex": {"cost", "cache 1h", "duration", "stop", "error", "error flag", "display", "trigger", "tokens before"},
    "gemini-cli": {
        "cost", "cache write", "cache 1h", "duration", "stop", "error", "spending", "display", "trigger",
        "tokens before", "tool time",
    },
    "opencode": {"cache 1h", "error", "tokens before", "spending", "display", "time", "tool time"},
    "pi": {"stop", "error", "cache 1h", "reasoning count", "duration", "display", "trigger", "spending"},
}  # fmt: skip
EMPTY = "message without content"
ORPHAN = "tool result without its call"
REMOVED = "message that was taken out"
NAMES = {
    "system": ("system prompt",),
    "tools": ("tool definition",),
    "note": ("note",),
    "custom": ("custom entry",),
    "branch": ("message on another branch",),
    "fact": ("fact",),
    "edit": ("edit",),
    "compaction": ("earlier compaction",),
    "agent": ("agent of a message",),
    "details": ("details of a tool result",),
    "thinking": ("reasoning",),
    "seal": ("sealed reasoning",),
    "run": ("provider's tool call",),
    "unknown": ("unknown block",),
    "file": ("file",),
    "image": ("image",),
    "file in a result": ("file in a tool result",),
    "image in a result": ("image in a tool result", ORPHAN),
    "system role": ("role of a system message",),
    "input": ("tool input that is no object",),
    "checkpoint": ("checkpoint of files",),
    "cost": ("reported cost",),
    "cache 1h": ("cache write by duration",),
    "cache write": ("cache write count",),
    "reasoning count": ("reasoning count",),
    "duration": ("duration",),
    "stop": ("stop reason",),
    "error": ("error of an answer",),
    "error flag": ("error flag of a tool result",),
    "spending": ("spending apart from answers",),
    "display": ("how a message is shown",),
    "trigger": ("trigger of a compaction",),
    "tokens before": ("size before a compaction",),
    "time": ("time of a message",),
    "tool time": ("time of a tool result", ORPHAN),
    "text": ("bytes that are not Unicode",),
    "result": (ORPHAN,),
    "empty": (),
    "model": (),
    "usage": (),
    "cache read": (),
}
for notion in (
    "empty", "model", "time", "usage", "cache read", "cache write", "cache 1h", "reasoning count", "cost", "stop",
    "error", "duration", "agent", "display",
):  # fmt: skip
    NAMES[notion] += (EMPTY, REMOVED)


def began() -> int:
    return int(BEGAN.timestamp() * 1000)


def rich(home: Any) -> Any:
    """A session with everything that Turnlog knows and some agent might not."""
    clock = BEGAN

    def at() -> datetime:
        nonlocal clock
        clock += timedelta(seconds=7, milliseconds=251)
        return clock

    session = home.create(workspace="/home/anna/проект", title="Всичко 🚀", id="rich")
    session.set("system", "You are careful.")
    session.set("tools", [{"name": "bash", "description": "runs", "input_schema": {"type": "object"}}])
    session.set("mood", "calm")
    session.append(
        Message(role="user", blocks=[Text(text="първо: създай файл «naïve»\n\nline two\u2028still")], at=at())
    )
    spent = Usage(input_tokens=10, cache_read_tokens=200, cache_write_tokens=30, output_tokens=50)
    one, two = (
        ToolCall(id=f"toolu_{n}", name="write", input={"path": f"{n}.txt", "deep": [1, None, 2.5]}) for n in "ab"
    )
    session.append(
        Message(
            role="assistant",
            model="claude-sonnet-4-5",
            usage=spent,
            stop="tool_use",
            blocks=[Thinking(text="hm", provider="nobody", data={"x": 1}), Text(text="I write two."), one, two],
            at=at(),
        )
    )
    session.append(
        Message(role="tool", blocks=[ToolResult(call="toolu_a", name="write", content="done\t\x7f ok")], at=at()),
        Message(
            role="tool", blocks=[ToolResult(call="toolu_b", name="write", content="failed: ⚠", is_error=True)], at=at()
        ),
    )
    more = Usage(input_tokens=5, cache_write_1h_tokens=40, output_tokens=9, reasoning_tokens=4, cost_micros=1250)
    session.append(
        Message(role="assistant", model="gpt-5.2", usage=more, stop="length", blocks=[Text(text="One failed")], at=at())
    )
    session.append(
        Message(role="user", blocks=[Text(text="see"), Image(media_type="image/png", data=PNG, name="a.png")], at=at())
    )
    shot = ToolCall(id="call|odd id:1", name="screenshot", input={})
    session.append(Message(role="assistant", model="gpt-5.2", blocks=[shot], at=at(), duration_ms=1200))
    picture = Image(media_type="image/png", data=PNG + b"2")
    session.append(
        Message(
            role="tool",
            blocks=[
                ToolResult(call=shot.id, content=[Text(text="the screen"), picture], details={"w": 3}, duration_ms=90)
            ],
            at=at(),
        )
    )
    session.append(Message(role="assistant", model="gpt-5.2", blocks=[Text(text="I see a dot.")], at=at()))
    hidden = session.append(Message(role="user", blocks=[Text(text="before the summary")], at=at()))
    session.append(Message(role="assistant", model="gpt-5.2", blocks=[Text(text="noted")], at=at()))
    kept = session.append(Message(role="user", blocks=[Text(text="kept question")], at=at()))
    listing = ToolCall(id="toolu_k", name="ls", input={"path": "."})
    session.append(
        Message(role="assistant", model="gpt-5.2", blocks=[Text(text="I look."), listing], usage=spent, at=at())
    )
    session.append(Message(role="tool", blocks=[ToolResult(call="toolu_k", content="a.txt\nb.txt")], at=at()))
    assert hidden.seq < kept.seq
    session.append(
        Compaction(
            replacement=[Message(role="user", blocks=[Text(text="Резюме: two files were written.")])],
            keep=kept.seq,
            trigger="auto",
            tokens_before=4321,
            at=at(),
        )
    )
    wrong = session.append(Message(role="user", blocks=[Text(text="my password is hunter2")], at=at()))
    session.edit(wrong, [Text(text="my password is [removed]")])
    session.append(Message(role="assistant", model="gpt-5.2", blocks=[Text(text="ok")], stop="error", at=at()))
    session.append(Message(role="system", blocks=[Text(text="The user is away.")], at=at()))
    session.append(Message(role="user", blocks=[Text(text="quiet")], display=False, at=at()))
    session.append(
        Message(
            role="assistant",
            model="gpt-5.2",
            blocks=[
                Text(text="first"),
                ToolCall(id="search_1", name="web_search", input={"q": "x"}, by="provider"),
                Text(text="second"),
                ToolCall(id="toolu_text", name="patch", input="*** not JSON"),
            ],
            error={"message": "cut"},
            at=at(),
        )
    )
    session.append(Message(role="tool", blocks=[ToolResult(call="toolu_text", content="patched")], at=at()))
    session.append(Custom(kind="my.mark", data={"a": 1}, at=at()))
    session.append(Custom(kind="my.hint", blocks=[Text(text="a hint for the model")], at=at()))
    session.append(
        Message(
            role="user", blocks=[File(media_type="text/csv", data=b"a,b\n", name="t.csv"), Text(text="read")], at=at()
        )
    )
    session.note("for people")
    session.spend(Usage(input_tokens=3, output_tokens=1), model="gpt-5.2")
    left = session.append(Message(role="user", blocks=[Text(text="left behind")], at=at()))
    session.rewind(before=left)
    last = ToolCall(id="toolu_z", name="bash", input={"command": "sleep 100"})
    session.append(Message(role="assistant", model="gpt-5.2", blocks=[Text(text="running"), last], at=at()))
    return session


def long(home: Any) -> Any:
    """Three hundred turns, each with a call."""
    session = home.create(workspace="/home/anna/long", title="long", id="long")
    for turn in range(300):
        at = BEGAN + timedelta(minutes=turn)
        call = ToolCall(id=f"c{turn}", name="read", input={"n": turn})
        spent = Usage(input_tokens=turn + 1, output_tokens=7)
        session.append(
            Message(role="user", blocks=[Text(text=f"въпрос {turn}")], at=at),
            Message(role="assistant", blocks=[call], model="claude-4", usage=spent, at=at + timedelta(seconds=1)),
            Message(role="tool", blocks=[ToolResult(call=call.id, content=f"r{turn}")], at=at + timedelta(seconds=2)),
            Message(
                role="assistant", blocks=[Text(text=f"отговор {turn}")], model="claude-sonnet-4-5", usage=spent,
                at=at + timedelta(seconds=3),
            ),
        )  # fmt: skip
    return session


def check_strictly(agent: str, written: Rendered) -> None:
    for output in written.files if agent in CHECKERS else ():
        assert CHECKERS[agent].faults(output.path, output.data) == []


def convert(session: Any, agent: str, folder: Path) -> Any:
    """That session as the other agent has it, with every promise of the report held against what is there."""
    folder /= {"codex": "sessions", "gemini-cli": "tmp"}.get(agent, "files")
    written = render(session, agent)
    check_strictly(agent, written)
    placed(agent, written, str(folder))
    home = turnlog.open("memory:")
    found = list(import_all(interior(home).creator, list(format_of(agent).find(str(folder)))))
    assert [item.problems for item in found] == [[]]
    back = home.resume(found[0].id)
    before, after = account(session), account(back)
    gone = lost(before, after)
    told = {loss.what: loss.count for loss in written.lost}
    known = {name for names in NAMES.values() for name in names}
    assert told.keys() <= known, f"{agent}: words that nobody knows: {told.keys() - known}"
    silent = {
        notion: count for notion, count in gone.items() if not any(name in told for name in NAMES.get(notion, ()))
    }
    assert not silent, f"{agent}: gone without a word: {silent}"
    false = [what for what in told if not any(notion in gone for notion, names in NAMES.items() if what in names)]
    assert not false, f"{agent}: told as lost, but there: {false}"
    more = [atom for atom in added(before, after) if not _is_stand_in(atom, written)]
    assert not more, f"{agent}: nobody said {more[:3]}"
    for what in (EMPTY, ORPHAN, REMOVED):  # whatever went with what no provider would take
        if what in told:
            gone = {notion: count for notion, count in gone.items() if what not in NAMES[notion]}
    return back, gone


def _is_stand_in(atom: Any, written: Rendered) -> bool:
    instead = any(loss.instead for loss in written.lost)
    return atom.says in ("(no prompt)", "(no content)") or (instead and atom.kind in ("user", "assistant", "result"))


ALIKE = ("agentsessions-record-zoo.jsonl",)
"""Files in which all texts and ids were made the same: nothing tells one thing from another."""


def sources() -> list[tuple[str, Path]]:
    own = [(path.parent.name, path) for path in HERE.glob("agents/*/recorded*")]
    own += [(path.parent.name, path) for path in HERE.glob("agents/*/composed")]
    given = [(name, path) for name in AGENTS for path in public(f"{name}/*") if path.name not in ALIKE]
    return sorted((name, path) for name, path in own + given if name in AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("make", [rich, long])
def test_a_session_of_ours_keeps_all_that_the_agent_can_say(make: Any, agent: str, tmp_path: Path) -> None:
    with turnlog.open("memory:", clock=began) as home, make(home) as session:
        _, gone = convert(session, agent, tmp_path)
    assert gone.keys() <= ALWAYS | CANNOT[agent], f"{agent} can say {gone.keys() - ALWAYS - CANNOT[agent]}"


@pytest.mark.parametrize("there", AGENTS)
@pytest.mark.parametrize("here", AGENTS)
def test_from_one_agent_to_another_and_back(here: str, there: str, tmp_path: Path) -> None:
    with turnlog.open("memory:", clock=began) as home, rich(home) as session:
        first, _ = convert(session, here, tmp_path / "1")
    second, gone = convert(first, there, tmp_path / "2")
    assert gone.keys() <= ALWAYS | CANNOT[there]
    third, gone = convert(second, here, tmp_path / "3")
    assert gone.keys() <= ALWAYS | CANNOT[here]
    _, gone = convert(third, there, tmp_path / "4")
    assert gone.keys() <= ALWAYS | CANNOT[there]


@pytest.mark.parametrize("there", AGENTS)
@pytest.mark.parametrize(
    ("here", "place"), sources(), ids=lambda value: value.name if isinstance(value, Path) else value
)
def test_every_session_that_agents_wrote_goes_everywhere(here: str, place: Path, there: str, tmp_path: Path) -> None:
    with turnlog.open("memory:") as home:
        for number, item in enumerate(list(home.import_sessions(place, agent=here))):
            with home.resume(item.id) as session:
                if not any(message.role in ("user", "assistant") for message in session.context()):
                    continue
                other, gone = convert(session, there, tmp_path / f"{number}")
                assert gone.keys() <= ALWAYS | CANNOT[there], f"{item.id}: {gone.keys() - ALWAYS - CANNOT[there]}"
                convert(other, here, tmp_path / f"{number}-back")
            shutil.rmtree(tmp_path / f"{number}")


def test_checkers_know_a_bad_file_from_a_good_one() -> None:
    with turnlog.open("memory:", clock=began) as home, rich(home) as session:
        for agent, checker in CHECKERS.items():
            [output] = render(session, agent).files
            assert checker.faults(output.path, output.data) == []
            lines = output.data.splitlines(keepends=True)
            middle = next((n for n, line in enumerate(lines) if b'"toolu_k"' in line), 0)
            bad = [
                output.data[:-1],
                output.data[:-30],
                output.data.replace(b"toolu_a" if agent != "opencode" else b'"tool":"write"', b"", 1),
                output.data.replace(b'"role":"assistant"', b'"role":"robot"', 1).replace(b'"gemini"', b'"model"', 1),
                output.data.replace(b"2026-03-01T09:30:0", b"2026-03-01 09:30:0", 1).replace(b":1772", b":2", 1),
            ]
            if len(lines) > 1:
                bad.append(b"".join(lines[1:]))
            if middle and agent != "gemini-cli":  # whose lines do not know each other
                bad.append(b"".join(lines[:middle] + lines[middle + 1 :]))
            for data in bad:
                assert data != output.data
                assert checker.faults(output.path, data), (agent, data[:80])
            assert checker.faults("x/y.txt", output.data)


def test_half_a_character_is_no_record() -> None:
    found = checkers.Faults()
    assert checkers.records(b'{"a":"\xff"}\n', found) == []
    assert found
