"""Sessions between the five systems that Turnlog was conceived from: what is gone is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats.account import account, lost
from tests.formats.composing import placed
from tests.formats.test_between import began, rich
from turnlog.exchange.exporting.transcript import transcript_of
from turnlog.exchange.exporting.writing import render
from turnlog.exchange.importing.run import import_all
from turnlog.formats import format_of
from turnlog.session.interior import interior

SEEDS = ("a3s", "claw", "owlen", "rho", "sofos")
HIDDEN = "message before the last compaction"
SEED_NAMES: dict[str, set[str]] = {
    "hidden": {HIDDEN}, "image": {"image", "image block", HIDDEN}, "file": {"file", "file block"},
    "image in a result": {"media in a tool result", "image", "image block", HIDDEN},
    "thinking": {"reasoning", "reasoning without its seal", "sealed reasoning", HIDDEN},
    "seal": {"sealed reasoning", "reasoning without its seal"},
    "run": {"provider's tool call", "place of a tool call"},
    "system role": {"system message", "system message within the conversation", "system prompt"},
    "note": {"note"}, "custom": {"custom entry"}, "branch": {"message on another branch"}, "fact": {"fact"},
    "title": {"title"}, "system": {"system prompt", "system message"}, "edit": {"edit"},
    "model": {"model of a message", HIDDEN},
    "usage": {"usage of a message", "usage", "usage of single messages", HIDDEN}, "workspace": {"workspace"},
    "time": {"time of a message"}, "compaction": {"compaction", "earlier compaction"},
    "error flag": {"error flag of a tool result"},
    "text": {"place of a tool call", "place of a message", "separate texts", "compaction"},
    "call": {"place of a tool call"}, "checkpoint": {"checkpoint of files"},
    "result": {"place of a tool call", "media in a tool result"},
    "cost": {"reported cost"}, "stop": {"stop reason"}, "error": {"error of an answer"}, "duration": {"duration"},
    "details": {"details of a tool result"}, "display": {"how a message is shown"}, "tools": {"tool definition"},
    "cache 1h": {"cache write by duration"}, "reasoning count": {"reasoning count"},
    "agent": {"agent of a message"}, "empty": {"message without content"},
    "trigger": {"trigger of a compaction"}, "tokens before": {"size before a compaction"},
}  # fmt: skip
"""By which words the reports of the five tell what is gone. Only owlen, which keeps calls in a list apart, may lose
where something was said; what else was said is never gone where a model still sees it."""
IN_TOTALS = {"cache read", "cache write", "spending", "tool time"}
"""What goes with the usage of a message, or its time."""


@pytest.mark.parametrize("there", SEEDS)
@pytest.mark.parametrize("here", SEEDS)
def test_from_one_seed_to_another_and_back(here: str, there: str, tmp_path: Path) -> None:
    with turnlog.open("memory:", clock=began) as home, rich(home) as session:
        for number, agent in enumerate((here, there, here)):
            written = render(session, agent)
            place = placed(agent, written, str(tmp_path / str(number)))
            other = turnlog.open("memory:")
            [item, *_] = import_all(interior(other).creator, list(format_of(agent).find(place)))
            assert item.problems == []
            back = other.resume(item.id)
            is_own = account_agent(session) == agent
            told = {loss.what for loss in written.lost}
            gone = lost(account(session), account(back)).keys() - IN_TOTALS
            silent = {notion for notion in gone if not SEED_NAMES.get(notion, set()) & told}
            assert is_own or not silent, f"{agent}: gone without a word: {silent}"
            if agent != "owlen":
                assert not gone & {"text", "call"}, agent
            session = back


def account_agent(session: Any) -> str | None:
    return transcript_of(session).agent
