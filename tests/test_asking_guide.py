"""The agent of the guide that asks first: its lines, with a scripted model."""

import re
from pathlib import Path
from typing import Any

import pytest

import turnlog
from turnlog import Conflict, Message, Text, ToolCall, Usage
from turnlog.log.context import text_of

GUIDE = (Path(__file__).parents[1] / "docs/guide/asking.md").read_text()
AGENT, ANSWER, USE, *THEIRS = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


class Died(BaseException):
    """The process was killed."""


class Scripted:
    """Asks for a tool, then says that it is done; counts what it was asked."""

    def __init__(self) -> None:
        self.seen: list[list[Message]] = []
        self.deleted: list[str] = []

    def model(self, context: turnlog.Context) -> Message:
        self.seen.append(list(context))
        if "Sum up" in text_of(context[-1].blocks):
            return Message(role="assistant", blocks=[Text("so far")], stop="end")
        if any(one.role == "tool" for one in context):
            return Message(role="assistant", blocks=[Text("done")], stop="end", usage=Usage(output_tokens=1))
        call = ToolCall(id="c1", name="delete", input={"name": "old.log"})
        return Message(role="assistant", blocks=[call], stop="tool_use", usage=Usage(output_tokens=1))

    def delete(self, name: str) -> str:
        self.deleted.append(name)
        return f"{name} is gone"

    def names(self) -> dict[str, Any]:
        found: dict[str, Any] = {"ask_model": self.model, "tools": {"delete": self.delete}}
        for code in (AGENT, ANSWER):
            exec(compile(code, "asking.md", "exec"), found)
        return found


def test_what_it_says_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path))
    scripted = Scripted()
    exec(compile(USE, "asking.md", "exec"), scripted.names())
    assert scripted.deleted == ["old.log"]
    with turnlog.open(tmp_path) as home:
        [row] = home.sessions()
        assert [one.role for one in home.resume(row.id).messages()] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("how", ["denied", "killed"])
def test_what_is_not_allowed_or_had_begun_is_not_run(how):
    scripted = Scripted()
    names = scripted.names()
    work, answer, model = names["work"], names["answer"], scripted.model
    with turnlog.open("memory:") as home:
        s = home.create()
        s.user("Remove the old logs")
        assert work(s, model, {}, {"delete"}) is False
        [waiting] = s.pending()
        answer(s, allow=how == "killed", by="ada")
        with pytest.raises(Conflict):
            s.answer(waiting.ask, allow=True, by="bob")

        def dies(name: str) -> str:
            scripted.deleted.append(name)
            raise Died

        if how == "killed":
            with pytest.raises(Died):
                work(s, model, {"delete": dies}, {"delete"})
        assert work(home.resume(s.id), model, {"delete": scripted.delete}, {"delete"}) is True
        assert scripted.deleted == ([] if how == "denied" else ["old.log"])
        [result] = [one for one in home.resume(s.id).messages() if one.role == "tool"]
        assert result.blocks[0].is_error


def test_a_long_conversation_is_compacted_before_the_model_is_asked():
    scripted = Scripted()
    names = scripted.names()
    with turnlog.open("memory:") as home:
        s = home.create()
        for number in range(6):
            s.user(f"{number} " + "many words " * 20_000)
            s.assistant("so", stop="end")
        s.user("Remove the old logs")
        assert names["work"](s, scripted.model, {"delete": scripted.delete}, set()) is True
        assert len(s.compactions()) == 1
        assert "so far" in text_of(scripted.seen[1][0].blocks)
        assert scripted.deleted == ["old.log"]


@pytest.mark.parametrize("name", ["openai", "langgraph", "pydantic_ai"])
def test_the_programs_beside_it_are_there(name):
    """They run where their frameworks are, in `make test-adapters`."""
    assert sum(f"_{name}(" in code for code in THEIRS) == 1
