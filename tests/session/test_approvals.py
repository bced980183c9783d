"""Open calls, and whether they may be run: asked, answered, started; in forks, after rewinds, between processes."""

import random
import signal
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog import Conflict, LastTurn, Message, NotFound, PendingCall, Ref, Text, ToolCall, ToolResult
from turnlog.log.context.toolturn import unanswered
from turnlog.thread import history as reading
from turnlog.thread.appender import Appender
from turnlog.thread.reader import history_of


def call(id: str, **fields: Any) -> ToolCall:
    return ToolCall(id=id, name="bash", input={"command": id}, **fields)


def states(s: Any) -> dict[str, str]:
    return {one.id: one.state for one in s.pending()}


@pytest.fixture
def asked(s: Any) -> Any:
    s.user("clean up")
    s.assistant([call("ls"), call("rm")])
    return s


def test_a_call_is_asked_for_answered_started_and_done(asked: Any, place: Any):
    s = asked
    ask = s.ask(call("rm"), "it deletes files", data={"risk": "high"})
    assert (ask.type, ask.call, ask.text, ask.data) == ("ask", "rm", "it deletes files", {"risk": "high"})
    assert states(s) == {"ls": "open", "rm": "waiting"}
    assert [one.ask for one in s.pending()] == [0, ask.seq]
    s.tool_start("ls")
    s.tool_result("ls", "a b")
    answer = s.answer(ask, allow=True, by="ada", text="go on")
    assert (answer.ask, answer.allow, answer.by) == (ask.seq, True, "ada")
    assert states(s) == {"rm": "allowed"}
    s.tool_start("rm")
    again = place.open().resume(s.id)
    assert states(again) == states(s) == {"rm": "started"}, "whoever resumes after a crash knows that it may have run"
    assert again.pending()[0].is_started
    again.tool_result("rm", "gone")
    assert again.pending() == []


def test_what_is_denied_or_waits_is_not_started(asked: Any):
    s = asked
    ask = s.ask("rm")
    with pytest.raises(Conflict, match="waits for an answer"):
        s.tool_start("rm")
    s.answer(ask.seq, allow=False, by="ada")
    assert states(s)["rm"] == "denied"
    with pytest.raises(Conflict, match="was denied"):
        s.tool_start("rm")
    with pytest.raises(Conflict, match="was answered by ada before: denied") as lost:
        s.answer(ask, allow=True, by="bob")
    assert lost.value.by == "ada"
    again = s.ask("rm", "really not?")
    assert states(s)["rm"] == "waiting", "asked anew, it waits anew"
    s.answer(again, allow=True)
    s.tool_start("rm")
    s.ask("rm", "it was cut off: once more?")
    assert states(s)["rm"] == "waiting" and s.pending()[1].is_started


def test_only_open_calls_are_asked_for(asked: Any):
    s = asked
    ask = s.ask("rm")
    with pytest.raises(NotFound, match="no open tool call 'cp'"):
        s.ask("cp")
    with pytest.raises(NotFound, match="no open tool call 'cp'"):
        s.tool_start("cp")
    with pytest.raises(NotFound, match="is not an open question"):
        s.answer(1, allow=True)
    s.tool_result("rm", "interrupted", is_error=True)
    with pytest.raises(NotFound, match="is not an open question"):
        s.answer(ask, allow=True)


def test_another_process_answers(asked: Any, place: Any):
    s = asked
    ask = s.ask("rm")
    other = place.open().resume(s.id)
    other.answer(ask, allow=True, by="web")
    with pytest.raises(Conflict, match="answered by web before: allowed"):
        s.answer(ask, allow=False, by="cli")
    assert states(s)["rm"] == "allowed"
    s.tool_start("rm")
    s.tool_result("rm", "gone")
    assert len(list(s.entries(kind="answer"))) == 1, "an answer is no news that a message conflicts with"


def test_a_rewind_takes_back_what_was_said_about_a_call_and_undo_brings_it_back(asked: Any, place: Any):
    s = asked
    said = s.messages()[-1]
    s.answer(s.ask("rm"), allow=True)
    s.tool_start("rm")
    s.tool_result("rm", "gone")
    s.rewind(to=said, files=False)
    assert states(s) == {"ls": "open", "rm": "open"} == states(place.open().read(s.id))
    s.ask("rm")
    s.undo()
    assert states(s) == {"ls": "open"}
    s.redo()
    assert states(s) == {"ls": "open", "rm": "waiting"}, "as it was before the undo"


def test_a_fork_waits_for_its_own_answer(asked: Any):
    s = asked
    ask = s.ask("rm")
    fork = s.fork()
    assert states(fork) == states(s)
    fork.answer(ask.seq, allow=True)
    assert (states(fork)["rm"], states(s)["rm"]) == ("allowed", "waiting")


def test_of_two_who_answer_at_one_moment_the_second_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = turnlog.open(tmp_path)
    s = home.create()
    s.assistant([call("rm")])
    ask = s.ask("rm")
    append = Appender.append

    def later(appender: Appender, drafts: Any, **options: Any) -> Any:
        monkeypatch.setattr(Appender, "append", append)
        turnlog.open(tmp_path).resume(s.id).answer(ask, allow=False, by="bob")
        return append(appender, drafts, **options)

    monkeypatch.setattr(Appender, "append", later)
    with pytest.raises(Conflict, match="answered by bob before: denied"):
        s.answer(ask, allow=True, by="ada")
    assert states(s) == {"rm": "denied"} and len(list(s.entries(kind="answer"))) == 2


@pytest.fixture
def apart() -> tuple[Any, Any]:
    """One session in two homes, with a question."""
    clock = count(1_800_000_000_000).__next__
    here, there = turnlog.open("memory:", clock=clock), turnlog.open("memory:", clock=clock)
    s = here.create(id="s")
    s.user("clean up")
    s.assistant([call("ls"), call("rm")])
    s.ask("rm")
    here.push(there)
    return here, there


def together(here: Any, there: Any) -> dict[str, str]:
    """What both know after they were brought together, however often."""
    for _ in range(2):
        here.sync(there)
        assert [row.id for row in here.sessions()] == [row.id for row in there.sessions()] == ["s"]
        found = states(here.read("s"))
        assert states(there.read("s")) == found
    return found


@pytest.mark.parametrize("is_first", [True, False])
def test_two_homes_that_both_answered_agree_on_the_first_answer(apart: tuple[Any, Any], is_first: bool):
    homes = apart if is_first else apart[::-1]
    for home, allow, by in zip(homes, (True, False), ("ada", "bob"), strict=True):
        s = home.resume("s")
        s.note("numbers are not the same here and there")
        s.answer(s.pending()[1].ask, allow=allow, by=by)
    homes[1].resume("s").tool_start("ls")
    assert together(*apart) == {"ls": "started", "rm": "allowed"}
    for home in apart:
        assert {answer.by for answer in home.read("s").entries(kind="answer")} == {"ada", "bob"}


@pytest.mark.parametrize("is_first", [True, False])
def test_two_homes_that_both_asked_agree_on_the_last_question(apart: tuple[Any, Any], is_first: bool):
    homes = apart if is_first else apart[::-1]
    for home, allow in zip(homes, (True, False), strict=True):
        s = home.resume("s")
        s.answer(s.ask("ls"), allow=allow)
    assert together(*apart) == {"ls": "denied", "rm": "waiting"}


@pytest.mark.parametrize("is_first", [True, False])
def test_what_one_home_started_is_started_though_the_other_asks(apart: tuple[Any, Any], is_first: bool):
    homes = apart if is_first else apart[::-1]
    homes[0].resume("s").note("one more")
    homes[0].resume("s").tool_start("ls")
    s = homes[1].resume("s")
    s.answer(s.ask("ls"), allow=False)
    assert together(*apart) == {"ls": "started", "rm": "waiting"}


KILLED = """
import os, signal, sys, turnlog
s = turnlog.open(sys.argv[1]).resume("s")
ask = s.ask("rm")
if "answered" in sys.argv: s.answer(ask, allow=True, by="ada")
if "started" in sys.argv: s.tool_start("rm")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("steps", "state"), [((), "waiting"), (("answered", "started"), "started")])
def test_after_a_kill_it_is_known_what_may_be_run(tmp_path: Path, steps: tuple[str, ...], state: str):
    home = turnlog.open(tmp_path / "home")
    s = home.create(id="s")
    s.user("clean up")
    s.assistant([call("ls"), call("rm")])
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "home"), *steps], check=False)
    assert done.returncode == -signal.SIGKILL
    again = home.resume("s")
    assert states(again) == {"ls": "open", "rm": state}
    fork = again.fork()
    assert states(fork) == states(again), "a fork knows what was begun before it"
    fork.tool_result("rm", "interrupted", is_error=True)
    assert (states(fork), states(home.read("s"))) == ({"ls": "open"}, {"ls": "open", "rm": state})


def test_a_compaction_hides_what_nobody_waits_for(asked: Any):
    s = asked
    s.ask("rm")
    s.compact("they talked", keep=1)
    assert states(s)["rm"] == "waiting", "calls of the newest message may still be answered"
    s.user("never mind")
    s.assistant("fine")
    s.compact("they talked", keep=1)
    assert s.pending() == []
    s.uncompact()
    assert states(s)["rm"] == "waiting"


def test_what_was_asked_can_be_erased(asked: Any, place: Any):
    s = asked
    ask = s.ask("rm", "the password is hunter2", data={"password": "hunter2"})
    answer = s.answer(ask, allow=False, text="hunter2!")
    s.erase(ask, answer)
    again = place.open().read(s.id)
    assert "hunter2" not in "".join(entry.to_json() for entry in again.entries())
    assert states(again)["rm"] == "denied"


def test_a_pending_call_is_the_call(asked: Any):
    s = asked
    found = s.pending()[0]
    assert isinstance(found, PendingCall) and found == call("ls")
    assert found != call("rm") and call("ls") == found
    s.ask("rm")
    fork = s.fork()
    fork.assistant([fork.pending()[1]])
    copied = fork.messages()[-1].blocks[0]
    assert type(copied) is ToolCall and copied == call("rm") and not copied.unknown


# ── cost ──────────────────────────────────────────────────────────────────────────────────────────


def test_pending_reads_nothing_however_long_the_session_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = turnlog.open(tmp_path)
    s = home.create()
    for turn in range(700):
        s.append(
            Message(role="user", blocks=[Text(f"{turn}")]),
            Message(role="assistant", blocks=[call(f"c{turn}")]),
            Message(role="tool", blocks=[ToolResult(call=f"c{turn}", content="x")]),
        )
    s.assistant([call("ls"), call("rm")])
    s.ask("rm")
    s.edit(3, [ToolResult(call="c0", content="[cleared]")])
    seen = [0]
    for name in ("_lines_back", "lines"):
        original = getattr(reading.History, name)

        def counted(self: Any, *args: Any, original: Any = original) -> Any:
            for entry in original(self, *args):
                seen[0] += 1
                yield entry

        monkeypatch.setattr(reading.History, name, counted)
    assert states(s) == {"ls": "open", "rm": "waiting"}
    again = home.resume(s.id)
    assert states(again) == {"ls": "open", "rm": "waiting"}
    assert seen == [0]
    s.rewind(to=s.head, files=False)
    assert states(s) == {"ls": "open", "rm": "waiting"}
    assert seen[0] > 1400, "the state does not tell after a rewind"
    seen[0] = 0
    assert states(s) == {"ls": "open", "rm": "waiting"}
    assert seen == [0], "but once it was looked up it does"


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_pending_is_what_the_context_lacks(seed: int):
    rng, ids = random.Random(seed), count()
    home = turnlog.open("memory:", clock=count(1_800_000_000_000).__next__)
    s = home.create()
    for _ in range(60):
        nodes = s.path()
        open_calls = [one.id for one in s.pending()]
        step = rng.randrange(12)
        if step < 3:
            s.assistant([call(f"c{next(ids) % 9}") for _ in range(rng.randrange(3))] + [Text("so")])
        elif step < 5 and open_calls:
            s.tool_result(rng.choice(open_calls), "done")
        elif step == 5:
            s.user("go on")
        elif step == 6 and len(nodes) > 2:
            s.rewind(to=rng.choice(nodes), files=False)
        elif step == 7 and len(nodes) > 2:
            kept = rng.choice([0, 1, 3])
            summary = [Message(role="user", blocks=[Text("so far")]), Ref(entry=nodes[0].seq)]
            s.compact(summary[: 1 + kept % 2], keep=kept)
        elif step == 8 and rng.random() < 0.5:
            with suppress(NotFound):
                s.uncompact()
        elif step == 9:
            said = [node for node in nodes if isinstance(node, Message)]
            if said:
                s.edit(rng.choice(said), rng.choice([None, [Text("shorter")], [call("e1")]]))
        elif open_calls:
            s.ask(rng.choice(open_calls))
        told = [(one.id, one.input) for one in s.pending()]
        assert told == [(one.id, one.input) for _, one in unanswered(s.context(repair=False))]
        again = home.read(s.id)
        history_of(again).state.calls = None
        assert states(again) == states(s) and again.pending() == s.pending()


# ── how the last turn ended ───────────────────────────────────────────────────────────────────────


def ended(s: Any) -> tuple[str, str | None]:
    return s.last_turn.state, s.last_turn.why


def test_how_the_last_turn_ended(s: Any):
    assert ended(s) == ("none", None)
    s.user("go")
    assert ended(s) == ("open", None)
    s.assistant([call("ls")], stop="tool_use")
    assert ended(s) == ("open", None)
    s.tool_result("ls", "a")
    s.assistant("done", stop="end")
    assert ended(s) == ("completed", None) and not s.last_turn.is_cut_off
    s.assistant("hal", stop="aborted")
    assert ended(s) == ("aborted", "the answer broke off") and s.last_turn.is_cut_off
    s.assistant("", stop="error", error={"type": "overloaded_error", "message": "Overloaded"})
    assert ended(s) == ("failed", "Overloaded")
    s.assistant("so lo", stop="length")
    assert ended(s) == ("cut off", "the answer came to its limit of tokens")
    with s.turn() as turn:
        s.user("again")
        assert s.last_turn == LastTurn("open", turn)
    assert s.last_turn == LastTurn("completed", turn)
    with pytest.raises(RuntimeError), s.turn() as failed:
        s.user("and again")
        raise RuntimeError("no network")
    assert s.last_turn == LastTurn("failed", failed, "RuntimeError: no network")


@pytest.mark.parametrize("is_turn", [True, False])
def test_a_turn_of_a_process_that_is_gone_was_cut_off(tmp_path: Path, is_turn: bool):
    home = turnlog.open(tmp_path)
    s = home.create()
    turn = s.turn()
    if is_turn:
        turn.__enter__()
    s.user("go")
    again = home.read(s.id)
    [who] = history_of(again).state.writers.values()
    who["started"] = "0"  # the process that had this number is gone
    assert again.last_turn.is_cut_off
    assert again.last_turn.why == f"process {who['pid']} on {who['host']} is gone"
    if is_turn:
        turn.__exit__(None, None, None)
