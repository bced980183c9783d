"""Documents from a program: what `turnlog export` writes, without the command line."""

import asyncio

import msgspec
import pytest

import turnlog
from turnlog import aio
from turnlog.cli.program import run

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with turnlog.open() as home:
        s = home.create(id="s", title="A title")
        s.user(f"the token is {SECRET}")
        s.assistant("**Noted.**", model="some-model")
        yield home


@pytest.mark.parametrize("form", ["html", "markdown", "json", "jsonl"])
def test_a_program_gets_what_the_command_writes(home, form, tmp_path):
    made = turnlog.export(home, "s", form)
    assert run(["export", "s", "--to", form, "-o", str(tmp_path / "out")]) == 0
    assert made.data == (tmp_path / "out").read_bytes()
    assert SECRET.encode() not in made.data
    assert sum(made.redacted.values()) == 1
    assert SECRET.encode() in turnlog.export(home, "s", form, redact=False).data


@pytest.mark.parametrize("form", ["html", "markdown", "json", "jsonl"])
def test_a_session_gives_the_same(home, form, tmp_path):
    made = turnlog.export(home, "s", form)
    assert home.read("s").export(form) == made
    assert home.resume("s").export(form) == made
    assert SECRET.encode() in home.read("s").export(form, redact=False).data

    async def main():
        async with aio.open(tmp_path / "home") as other:
            return await (await other.read("s")).export(form), await (await other.resume("s")).export(form)

    assert asyncio.run(main()) == (made, made)


def test_a_session_tells_what_it_has_seen(home):
    reader, writer = home.read("s"), home.resume("s")
    writer.user("one more")
    assert b"one more" not in reader.export("markdown").data
    assert b"one more" in writer.export("markdown").data


def test_a_home_for_an_event_loop_will_do(home, tmp_path):
    async def main():
        async with aio.open(tmp_path / "home") as other:
            return await asyncio.to_thread(turnlog.export, other, "s", "json")

    assert msgspec.json.decode(asyncio.run(main()).data)["session"] == "s"


def test_what_is_no_document_is_told(home):
    with pytest.raises(turnlog.Unsupported, match="no document 'pdf'") as told:
        turnlog.export(home, "s", "pdf")
    assert "html" in told.value.hint
    with pytest.raises(turnlog.NotFound):
        turnlog.export(home, "nobody", "html")
    with pytest.raises(turnlog.NotFound):
        home.read("s").export("pdf")


def test_a_document_is_given_and_what_is_for_an_agent_is_written(home, tmp_path):
    session = home.read("s")
    with pytest.raises(turnlog.Invalid, match=r"export\('html'\) returns a document") as told:
        session.export("html", tmp_path / "talk.html")
    assert 'write_bytes(session.export("html").data)' in told.value.hint
    with pytest.raises(turnlog.Invalid, match="'pi' is the name of an agent"):
        session.export("pi", redact=True)
    assert not list(tmp_path.glob("*.html"))
