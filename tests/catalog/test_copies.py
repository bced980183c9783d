"""A session that was handed over, exported, imported, forked or moved counts once, and is shown once.

What was spent is counted here by a parser of its own, from the raw lines of the session where it was spent and of what
agents added to their copies; it imports nothing of Turnlog.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.catalog.machine import Machine
from turnlog.catalog import Card, Catalog
from turnlog.exchange.exporting.exportcopy import copied_from
from turnlog.exchange.exporting.handover import hand_over
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import render
from turnlog.formats import format_of, names
from turnlog.formats.claude_code.mirror import drafted
from turnlog.log.usage import Usage
from turnlog.session.interior import interior
from turnlog.thread.home.handedover import HandedOver

IDS = ("0191a000-0000-7000-8000-00000000000a", "0191a000-0000-7000-8000-00000000000b")
KEEPING = ("claude-code", "codex", "gemini-cli", "opencode", "pi")
"""Those in whose files a copy can say that it is one."""
AGENTS = sorted(name for name in names() if format_of(name).write is not None and format_of(name).resume is not None)
NOW = datetime(2027, 5, 5, tzinfo=UTC)


def spent_in(path: Path) -> tuple[int, int, int]:
    """Input, cached input and output in a file of Claude Code, each API message once; from its raw lines."""
    seen: dict[str, dict[str, int]] = {}
    for line in path.read_text().splitlines():
        message = json.loads(line).get("message") or {}
        if message.get("role") == "assistant":
            seen[message["id"]] = message["usage"]
    numbers = ("input_tokens", "cache_read_input_tokens", "output_tokens")
    return tuple(sum(usage.get(name, 0) for usage in seen.values()) for name in numbers)  # type: ignore[return-value]


def plus(*all: tuple[int, int, int]) -> tuple[int, int, int]:
    return tuple(sum(numbers) for numbers in zip(*all, strict=True))  # type: ignore[return-value]


class Copies(Machine):
    """A machine with one session of Claude Code, which is ours as well."""

    def begin(self, turns: int = 3) -> tuple[Path, Any]:
        path = self.claude(IDS[0], turns)
        self.held = turnlog.open(self.home)
        [item] = self.held.import_sessions(path)
        return path, self.held.resume(item.id)

    def total(self, by: str = "agent", **more: Any) -> tuple[int, int, int]:
        with self.catalog(**more) as catalog:
            tokens = catalog.usage(by=by)[-1].tokens
        return tokens.input_tokens, tokens.cache_read_tokens, tokens.output_tokens

    def cards(self, *, everything: bool = False) -> dict[str, Card]:
        with self.catalog() as catalog:
            listed = catalog.cards(everything=everything)
        return {card.id if card.is_ours or card.agent in KEEPING else card.name: card for card in listed}

    def found(self, words: str) -> set[str]:
        with self.catalog() as catalog:
            hits = catalog.search(words, limit=200)
        return {hit.card.id if hit.card.is_ours or hit.card.agent in KEEPING else hit.card.name for hit in hits}

    def add(self, agent: str, path: Path) -> tuple[int, int, int]:
        """What that agent appends to its session when it goes on, and what that cost."""
        at, tokens = NOW.isoformat().replace("+00:00", "Z"), (1000, 20, 300)
        ms = int(NOW.timestamp() * 1000)
        if agent == "opencode":
            whole = json.loads(path.read_text())
            tip = {"sessionID": whole["info"]["id"], "time": {"created": ms, "completed": ms}}
            said = {"type": "text", "text": "badger"}
            counts = {"input": 1000, "output": 300, "reasoning": 0, "cache": {"read": 20, "write": 0}}
            whole["messages"] += [
                {"info": {"id": "msg_z1", "role": "user", **tip}, "parts": [{"id": "prt_z1", **said}]},
                {"info": {"id": "msg_z2", "role": "assistant", "modelID": "m", "cost": 0, "tokens": counts,
                          "finish": "stop", **tip}, "parts": [{"id": "prt_z2", **said}]},
            ]  # fmt: skip
            path.write_text(json.dumps(whole))
            return tokens
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        with path.open("a") as file:
            for row in getattr(self, f"_{agent.replace('-', '_')}")(lines, at, ms):
                file.write(json.dumps(row, separators=(",", ":")) + "\n")
        return tokens

    def _claude_code(self, lines: list[Any], at: str, ms: int) -> list[Any]:
        last = [line for line in lines if "uuid" in line][-1]
        about = {**{key: last[key] for key in ("cwd", "sessionId", "version", "isSidechain")}, "timestamp": at}
        usage = {"input_tokens": 1000, "cache_read_input_tokens": 20, "output_tokens": 300}
        answer = {"role": "assistant", "id": "msg_new", "model": "claude-sonnet-4-5", "usage": usage,
                  "stop_reason": "end_turn", "content": [{"type": "text", "text": "badger"}]}  # fmt: skip
        asked = {"role": "user", "content": "badger"}
        return [
            {"type": "user", "uuid": "new-1", "parentUuid": last["uuid"], "message": asked, **about},
            {"type": "assistant", "uuid": "new-2", "parentUuid": "new-1", "message": answer, **about},
        ]

    def _codex(self, lines: list[Any], at: str, ms: int) -> list[Any]:
        counts = {"input_tokens": 1020, "cached_input_tokens": 20, "output_tokens": 300, "total_tokens": 1320}
        old = [line["payload"]["info"]["total_token_usage"] for line in lines if "info" in line["payload"]][-1]
        total = {name: old.get(name, 0) + value for name, value in counts.items()}
        info = {"last_token_usage": counts, "total_token_usage": total}

        def said(role: str, kind: str) -> dict[str, Any]:
            return {"type": "message", "role": role, "content": [{"type": kind, "text": "badger"}]}

        rows = [("response_item", said("user", "input_text")), ("response_item", said("assistant", "output_text")),
                ("event_msg", {"type": "token_count", "info": info})]  # fmt: skip
        return [{"timestamp": at, "type": kind, "payload": payload} for kind, payload in rows]

    def _gemini_cli(self, lines: list[Any], at: str, ms: int) -> list[Any]:
        tokens = {"input": 1020, "output": 300, "cached": 20, "thoughts": 0, "tool": 0, "total": 1320}
        answer = {"id": "g2", "timestamp": at, "type": "gemini", "content": "badger", "tokens": tokens, "model": "m"}
        return [{"id": "g1", "timestamp": at, "type": "user", "content": [{"text": "badger"}]}, answer]

    def _pi(self, lines: list[Any], at: str, ms: int) -> list[Any]:
        said, last = [{"type": "text", "text": "badger"}], lines[-1]["id"]
        usage = {"input": 1000, "output": 300, "cacheRead": 20, "cacheWrite": 0, "cost": {"total": 0}}
        answer = {"role": "assistant", "content": said, "provider": "p", "model": "m", "usage": usage,
                  "stopReason": "stop"}  # fmt: skip
        asked = {"role": "user", "content": said}
        return [
            {"type": "message", "id": "p1", "parentId": last, "timestamp": at, "message": asked},
            {"type": "message", "id": "p2", "parentId": "p1", "timestamp": at, "message": answer},
        ]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copies:
    return Copies(tmp_path, monkeypatch)


def test_handed_over_to_every_agent_it_counts_once_and_is_shown_once(machine: Copies) -> None:
    source, session = machine.begin()
    paid = spent_in(source)
    assert machine.total() == paid
    for agent in AGENTS:
        done = hand_over(session, agent, handed=HandedOver(str(machine.home)))
        assert machine.total() == paid, agent
        spending = [loss for loss in done.report.changed if loss.what == "spending"]
        assert agent == "claude-code" or [loss.count for loss in spending] == [6], agent
        assert set(machine.cards()) == machine.found("needle") == {session.id}, agent
    with machine.catalog() as catalog:
        copies = {card.agent: card.copy_of for card in catalog.cards(everything=True) if not card.is_ours}
    assert copies == dict.fromkeys(AGENTS, session.id)
    done = machine.held.import_sessions()
    assert {item.id for item in done} == {session.id}
    assert [info.id for info in machine.held.sessions()] == [session.id]
    assert machine.total() == paid


@pytest.mark.parametrize("agent", [agent for agent in KEEPING if agent != "claude-code"])
def test_what_the_agent_adds_counts_is_found_and_shows(agent: str, machine: Copies) -> None:
    source, session = machine.begin()
    session.set("title", "Zebra crossing")
    done = hand_over(session, agent)
    assert done.path is not None
    machine.total()
    paid = plus(spent_in(source), machine.add(agent, Path(done.path)))
    assert machine.total() == paid == machine.total(by="day")
    assert machine.found("needle") == {session.id}
    assert machine.found("badger") == {done.id}
    assert machine.found("crossing") == {session.id}  # the copy has that title, too
    card = machine.cards()[done.id]
    assert (len(machine.cards()), card.copy_of, card.own.input_tokens) == (2, session.id, 1000)
    with machine.fresh() as fresh:  # read at once, and not bit by bit
        assert {card.id: card for card in fresh.cards()} == machine.cards()


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_a_copy_stands_for_a_session_that_is_gone(agent: str, machine: Copies) -> None:
    source, session = machine.begin()
    paid = spent_in(source)
    done, other = hand_over(session, agent), hand_over(session, "pi" if agent != "pi" else "codex")
    machine.total()
    machine.held.delete(session.id)
    assert (machine.total(), set(machine.cards())) == (paid, {IDS[0]})  # Claude Code still has it
    source.unlink()
    assert machine.total() == paid  # it is in the trash
    assert set(machine.cards()) == {done.id, other.id}
    assert machine.found("needle") == {done.id, other.id}
    machine.held.purge(session.id)
    assert machine.total() == paid == machine.total(by="day")  # one of the two copies counts it
    with machine.fresh() as fresh:
        assert fresh.usage()[-1].tokens.input_tokens == paid[0]
    assert done.path is not None
    Path(done.path).unlink()
    assert (machine.total(), set(machine.cards())) == (paid, {other.id})


def test_copies_of_copies_count_once(machine: Copies) -> None:
    source, session = machine.begin()
    second = hand_over(session, "codex")
    assert second.path is not None
    paid = plus(spent_in(source), machine.add("codex", Path(second.path)))
    [item] = machine.held.import_sessions(second.path)
    assert (item.copy_of, item.id) == (None, f"codex-{second.id}")
    assert machine.total() == paid
    third = hand_over(machine.held.resume(item.id), "gemini-cli")
    assert third.path is not None
    assert (machine.total(), set(machine.cards())) == (paid, {session.id, item.id})
    paid = plus(paid, machine.add("gemini-cli", Path(third.path)))
    assert (machine.total(), set(machine.cards())) == (paid, {session.id, item.id, third.id})
    assert machine.cards()[third.id].copy_of == item.id
    assert machine.cards()[item.id].copy_of == session.id
    for gone in (item.id, session.id):  # the middle of the chain, then its beginning
        machine.held.delete(gone)
        machine.held.purge(gone)
        if gone == item.id:
            Path(second.path).unlink()
            assert machine.total() == paid
    source.unlink()
    assert (machine.total(), set(machine.cards())) == (paid, {third.id})


def test_a_copy_that_only_repeats_is_not_imported_again(machine: Copies) -> None:
    source, session = machine.begin()
    done = hand_over(session, "codex")
    assert done.path is not None
    [item] = machine.held.import_sessions(done.path)
    assert (item.id, item.added, item.copy_of) == (session.id, 0, session.id)
    assert [info.id for info in machine.held.sessions()] == [session.id]
    paid = plus(spent_in(source), machine.add("codex", Path(done.path)))
    [item] = machine.held.import_sessions(done.path)
    with machine.held.resume(item.id) as brought:
        assert brought.usage().own.input_tokens == 1000
    assert machine.total() == paid
    assert machine.found("needle") == {session.id}
    assert machine.found("badger") == {item.id}


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent not in KEEPING])
def test_what_an_agent_said_is_still_its_own_when_the_session_is_handed_over_again(
    agent: str, machine: Copies, tmp_path: Path
) -> None:
    handed = HandedOver(str(machine.home))
    with turnlog.open(machine.home) as home, turnlog.open(tmp_path / "elsewhere") as elsewhere:
        with home.create(id="one", workspace=str(tmp_path)) as session:
            session.user("where is the needle?")
            session.assistant("in the haystack")
            first = hand_over(session, agent, handed=handed)
            assert first.path is not None
            home.push(elsewhere, ["one"])
            with elsewhere.resume("one") as theirs:  # the agent goes on with it
                theirs.user("badger")
                file = Path(first.path) if Path(first.path).is_file() else max(Path(first.path).rglob("*.json*"))
                file.write_bytes(render(theirs, agent).files[0].data)
            for number in range(9):
                session.user(f"and here {number}")
            second = hand_over(session, agent, handed=handed)
            assert second.path not in (None, first.path)
        [item] = home.import_sessions(first.path)
        assert (item.copy_of, item.added > 0) == (None, True)
        with home.read(item.id) as brought:
            assert any("badger" in str(message.blocks) for message in brought.messages())
        [item] = home.import_sessions(second.path)
        assert item.copy_of == "one"


def test_forked_and_moved_it_counts_as_before(machine: Copies) -> None:
    source, session = machine.begin()
    paid = spent_in(source)
    fork = session.fork()
    assert machine.total() == paid
    done = hand_over(fork, "codex")
    assert done.path is not None
    assert machine.total() == paid
    fork.close()
    machine.held.delete(fork.id)
    machine.held.purge(fork.id)
    assert machine.total() == paid  # what the fork inherited is still with its parent
    paid = plus(paid, machine.add("codex", Path(done.path)))
    machine.held.import_sessions()
    with turnlog.open(machine.folder / "other") as other:
        for name in [info.id for info in machine.held.sessions()]:
            machine.held.push(other, [name])
            assert machine.total() == paid
        with Catalog(other, agents=False) as there:
            tokens = there.usage()[-1].tokens
            assert (tokens.input_tokens, tokens.cache_read_tokens, tokens.output_tokens) == paid
            assert len(there.search("badger")) == 2
        for meet in (machine.held.pull, machine.held.sync):
            meet(other)
            assert machine.total() == paid
    with turnlog.open(machine.folder / "third") as third:
        third.sync(machine.held)
        with Catalog(third, agents=False) as there:
            tokens = there.usage()[-1].tokens
            assert (tokens.input_tokens, tokens.cache_read_tokens, tokens.output_tokens) == paid
    assert machine.total() == paid


def test_an_export_has_what_it_cost_and_still_counts_once(machine: Copies) -> None:
    source, session = machine.begin(1)
    paid = spent_in(source)
    done = session.export("pi", machine.folder / "out.jsonl")
    assert '"input":' in Path(done.path).read_text()
    place = machine.user / ".pi/agent/sessions/--elsewhere--"
    place.mkdir(parents=True)
    (place / "copy.jsonl").write_bytes(Path(done.path).read_bytes())
    assert (machine.total(), set(machine.cards())) == (paid, {session.id})
    with turnlog.open(machine.folder / "other") as other:  # where nothing else knows of it
        [item] = other.import_sessions(done.path)
        assert other.resume(item.id).usage().own.input_tokens == paid[0]
        with Catalog(other, agents=False) as there:
            assert there.usage()[-1].tokens.input_tokens == paid[0]
    placed = session.export("codex", machine.user / ".codex/sessions/copy.jsonl")
    assert [loss.what for loss in placed.lost if loss.instead] == ["spending"]
    assert machine.total() == paid


def test_an_export_into_the_current_folder_costs_nothing_again_if_that_is_the_agents(
    machine: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, session = machine.begin(1)
    for folder, is_free in ((machine.folder / "out", False), (machine.user / ".codex/sessions", True)):
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        done = session.export("codex")
        assert Path(done.path).parent == folder
        assert ([loss.what for loss in done.lost if loss.instead] == ["spending"]) is is_free


def test_a_request_that_became_several_entries_is_in_the_sums_of_a_copy_once() -> None:
    """Also where they fall into several spans of time."""
    moments = iter(range(1_700_000_000_000, 1_800_000_000_000, 450_000))
    with turnlog.open("memory:", clock=moments.__next__) as home:
        session = home.create()
        session.user("go")
        for number in range(6):
            usage = {"usage": Usage(input_tokens=10), "request": f"r{number // 2}"}
            session.assistant("look", model="m", **usage)
        sums = copied_from(transcript_of(session)).spent
        assert sum(one.input_tokens for one in sums) == session.usage().own.input_tokens == 30


def test_what_a_header_says_of_copies_is_not_believed_blindly(machine: Copies) -> None:
    source, session = machine.begin()
    done = hand_over(session, "pi")
    assert done.path is not None
    path = Path(done.path)
    first, _, rest = path.read_text().partition("\n")
    for bad in (17, {}, {"of": []}, {"of": [["x"]], "messages": -1}, {"of": [["x"]], "spent": [[0, 1 << 60, "m"]]}):
        path.write_text(json.dumps({**json.loads(first), "turnlog": bad}) + "\n" + rest)
        assert set(machine.cards()) == {session.id, done.id}
        assert machine.total() == spent_in(source)


@pytest.mark.parametrize("is_there", [True, False])
def test_what_was_said_here_counts_here_wherever_it_is_written(is_there: bool, machine: Copies) -> None:
    source, session = machine.begin(1)
    paid = plus(spent_in(source), (500, 0, 5))
    session.user("and here")
    session.assistant("yes", model="claude-sonnet-4-5", usage=turnlog.Usage(input_tokens=500, output_tokens=5))
    if not is_there:
        source.unlink()
    done = hand_over(session)
    assert done.path is not None
    assert (Path(done.path).stem == source.stem, machine.total()) == (not is_there, paid)
    assert [loss.what for loss in done.report.changed if loss.what == "spending"] == ["spending"]
    machine.held.import_sessions(done.path)
    assert (machine.total(), set(machine.cards())) == (paid, {session.id})
    again = plus(paid, machine.add("claude-code", Path(done.path)))
    assert machine.total() == again


def test_lines_that_were_handed_over_are_one_session_with_the_file_that_has_them(machine: Copies) -> None:
    """Also where the agent noted something beside that it did not hand over."""
    path = machine.claude(IDS[0], 3)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    answer = lines[-1]
    for number, said in enumerate(("one part", "another")):  # an answer of the API may take several lines
        message = {**answer["message"], "id": "msg_several", "content": [{"type": "text", "text": said}]}
        lines.append({**answer, "uuid": f"part-{number}", "parentUuid": lines[-1]["uuid"], "message": message})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    origin = {"agent": "claude-code", "id": IDS[0], "identity": IDS[0]}
    machine.held = turnlog.open(machine.home)
    drafts = [entry for line in lines for entry in drafted(line, is_side=False)]
    interior(machine.held).creator.create(drafts, id="project/session", workspace=str(machine.work), origin=origin)
    noted = {"type": "system", "subtype": "turn_duration", "content": "a note", "uuid": "n", "parentUuid": None}
    with path.open("a") as file:
        file.write(json.dumps(noted) + "\n")
    assert list(machine.cards()) == ["project/session"]
    assert machine.total() == spent_in(path)
