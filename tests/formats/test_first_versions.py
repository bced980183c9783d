"""What is written for the five systems that Turnlog was conceived from opens in the first version of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.account import account, lost
from tests.formats.checkers import a3s, claw, owlen, rho, sofos
from tests.formats.composing import placed
from tests.formats.test_between import began, rich
from tests.formats.test_between_seeds import IN_TOTALS, SEED_NAMES
from turnlog import Image, Text, Thinking, ToolCall
from turnlog.errors import Unsupported
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.run import import_all
from turnlog.formats import format_of
from turnlog.session.interior import interior

HERE = Path(__file__).parent
CHECKERS = {"a3s": a3s, "claw": claw, "owlen": owlen, "rho": rho, "sofos": sofos}
RECORDED = sorted(HERE.glob("agents/*/recorded*"))
SEEDS = HERE / "seeds"


def faults(agent: str, written: Any) -> list[str]:
    return [fault for output in written.files for fault in CHECKERS[agent].faults(output.path, output.data)]


@pytest.mark.parametrize("agent", CHECKERS)
@pytest.mark.parametrize("place", RECORDED, ids=lambda path: path.parent.name)
def test_every_session_that_agents_wrote_opens_in_the_first_version(place: Path, agent: str, tmp_path: Path) -> None:
    with turnlog.open("memory:") as home:
        found = list(home.import_sessions(place, agent=place.parent.name))
        assert found
        for number, item in enumerate(found):
            with home.resume(item.id) as session:
                written = render(session, agent)
                assert faults(agent, written) == []
                assert silent(session, agent, written, tmp_path / str(number)) == set()


@pytest.mark.parametrize("agent", CHECKERS)
def test_a_session_with_everything_opens_in_the_first_version(agent: str, tmp_path: Path) -> None:
    with turnlog.open("memory:", clock=began) as home, rich(home) as session:
        written = render(session, agent)
        assert faults(agent, written) == []
        assert silent(session, agent, written, tmp_path) == set()


def silent(session: Any, agent: str, written: Any, folder: Path) -> set[str]:
    """What is gone when it is read back and the report does not tell."""
    place = placed(agent, written, str(folder))
    with turnlog.open("memory:") as other:
        [item, *_] = import_all(interior(other).creator, list(format_of(agent).find(place)))
        assert item.problems == []
        with other.resume(item.id) as back:
            gone = lost(account(session), account(back)).keys() - IN_TOTALS
    told = {loss.what for loss in written.lost}
    if agent != "owlen":  # which keeps prompts, answers and calls in three lists
        assert not gone & {"text", "call"}
    return {notion for notion in gone if not SEED_NAMES.get(notion, set()) & told}


OWN = [
    ("a3s", "a3s/v1_flat/sessions/s-1.json"),
    ("claw", "claw/seed_12c364da/workspace/.claw/sessions/session-1775128446000-0.jsonl"),
    ("owlen", "owlen/workspace/.owlen/checkpoints"),
    ("rho", "rho/v1_1af5a5fb/home/.rho/sessions"),
    ("sofos", "sofos/v0.2.8"),
]


@pytest.mark.parametrize(("agent", "place"), OWN, ids=[agent for agent, _ in OWN])
def test_a_session_of_the_first_version_stays_in_it_whatever_is_said_here(agent: str, place: str) -> None:
    with turnlog.open("memory:") as home:
        for item in list(home.import_sessions(SEEDS / place, agent=agent)):
            with home.resume(item.id) as session:
                session.set("model", "m-1")
                session.user([Text(text="виж"), Image(media_type="image/png", data=b"png")])
                given = {"n": 1 << 70, "deep": [1.5, -(1 << 64)], "small": (1 << 64) - 1}
                session.assistant([Thinking(text="hm"), ToolCall(id="big", name="sum", input=given)], model="m-1")
                several = [Text(text="one"), Text(text="two"), Image(media_type="image/png", data=b"png")]
                session.tool_result("big", several)
                session.assistant([Thinking(text="only a thought")])
                session.compact("short", keep=3)
                changed = session.user("to be changed")
                session.edit(changed, [Text(text="changed")])
                left = session.user("left behind")
                session.rewind(before=left)
                written = render(session, agent)
                assert faults(agent, written) == []
                assert written.opens == ""
                told = {loss.what: loss.count for loss in written.lost}
                assert told["message on another branch"] == 1
                assert told.get("separate texts", 0) >= 1 or agent == "a3s"
                assert told.get("media in a tool result", 0) == 1 or agent == "a3s"
                if agent not in ("owlen", "claw"):  # those keep input as a text
                    assert told["integer beyond 64 bits"] == 2


@pytest.mark.parametrize(
    ("agent", "version", "told"),
    [("rho", 2, "one of 1 (every rho), 4"), ("owlen", 2, "one of 1"), ("codex", 1, "leave it out")],
)
def test_a_version_that_is_not_written_is_refused(agent: str, version: int, told: str) -> None:
    with turnlog.open("memory:") as home, home.create() as session:
        session.user("hi")
        with pytest.raises(Unsupported, match=f"no format version {version} of {agent}") as error:
            session.export(agent, format_version=version)
        assert str(error.value.hint).startswith(told)


DAMAGE: dict[str, list[tuple[bytes, bytes]]] = {
    "a3s": [
        (b'"role": "user"', b'"role": "tool"'),
        (b'"tasks": []', b'"tasks": [],\n  "more": 1'),
        (b"\n  ", b"\n   "),
    ],
    "claw": [(b'"type":"text"', b'"type":"thinking"'), (b'"version":1', b'"version":1.0'), (b"{", b"{ ")],
    "owlen": [(b'"secs": ', b'"secs": -'), (b'"file_diffs"', b'"diffs"'), (b'"success": false', b'"success": null')],
    "rho": [(b'"Assistant"', b'"EnrichedAssistant"'), (b'"type":"message"', b'"type":"node"'), (b'"ok":', b'"no":')],
    "sofos": [(b'"type": "text"', b'"type": "document"'), (b'"updated_at"', b'"changed_at"'), (b"\n}", b"\n}\n")],
}


@pytest.mark.parametrize("agent", CHECKERS)
def test_checkers_know_a_bad_file_from_a_good_one(agent: str) -> None:
    with turnlog.open("memory:", clock=began) as home, rich(home) as session:
        output = render(session, agent).files[0]
    for good, bad in DAMAGE[agent]:
        assert good in output.data
        assert CHECKERS[agent].faults(output.path, output.data.replace(good, bad)) != [], bad
