"""docs/api.md: every public member is in it, as its docstring says it now."""

import asyncio
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import turnlog
from tests.apireference import COSTS, HEAD, HELD, RAISES, attributes, members, reference
from turnlog import aio, errors
from turnlog.wire import anthropic

PAGE = (Path(__file__).resolve().parents[1] / "docs/api.md").read_text(encoding="utf-8")
HOW = "python -m tests.apireference > docs/api.md"
OWNERS = [cls for cls in HELD if cls is not turnlog.ReadOnlySession]
NAMES = {f"{cls.__name__}.{name}" for cls in OWNERS for name in members(cls)}


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="types are written in another way there")
def test_the_page_is_as_the_docstrings_are():
    assert reference() == PAGE, HOW


def test_every_public_member_is_on_the_page():
    inherited = {f"Session.{name}" for name in members(turnlog.ReadOnlySession)}
    values = set(turnlog.__all__) - {"__version__", "open", "instructions", "export", *(cls.__name__ for cls in HELD)}
    there = set(re.findall(r"^### (\S+)", PAGE, re.MULTILINE))
    assert len(there) > 250
    assert not ((NAMES - inherited) | values) - there, HOW
    assert not {name for name in members(aio.Home) if f"Home.{name}\n" not in PAGE}, HOW


def test_every_member_says_what_it_does_raises_and_costs():
    assert not [
        f"{cls.__name__}.{name}" for cls in OWNERS for name in members(cls)
        if not (attributes(cls).get(name) or inspect.getdoc(getattr(cls, name, None)))
    ]  # fmt: skip
    assert not NAMES - COSTS.keys(), "say in tests/apireference.py what it costs"
    known = NAMES | {"aio.Home.search", "aio.Home.usage"}
    assert not (COSTS.keys() | RAISES.keys()) - known, "these are gone: tests/apireference.py"
    assert all(hasattr(errors, name) for told in RAISES.values() for name in re.findall(r"`([A-Z]\w+)`", told))


def test_what_python_shows_of_an_object_is_on_the_page(tmp_path):
    """Nothing inner looks as if it were for everybody: each of these names is a member that is documented."""

    async def held():
        async with aio.open(tmp_path) as home, aio.Catalog(tmp_path) as catalog:
            s = await home.create()
            return home, s, await home.read(s.id), await home.tenant("acme"), catalog, await s.context()

    with turnlog.open(tmp_path) as home, turnlog.Catalog(home, agents=False) as catalog:
        s = home.create()
        plain = (home, s, home.read(s.id), home.tenant("acme"), catalog, s.context(), s.live(anthropic.Stream()))
        for one in (*plain, *asyncio.run(held())):
            owners = [cls for cls in one.__class__.__mro__ if f"\n## {cls.__name__}\n" in PAGE]
            there = {name for cls in owners for name in re.findall(rf"^### {cls.__name__}\.(\w+)", PAGE, re.MULTILINE)}
            there |= (
                set(re.findall(r"^### aio.Home\.(\w+)", PAGE, re.MULTILINE)) if isinstance(one, aio.Home) else set()
            )
            assert {name for name in dir(one) if not name.startswith("_")} <= there, type(one)


def _returns() -> Iterator[tuple[str, str]]:
    """What members give back, and what the fields of such values hold: where, and the type as it is written."""
    for cls in (*HELD, aio.Home, aio.Session, aio.ReadOnlySession, aio.Catalog):
        for name in members(cls):
            member = inspect.getattr_static(cls, name, None)
            made = member.fget if isinstance(member, property) else member
            yield f"{cls.__name__}.{name}", str(getattr(made, "__annotations__", {}).get("return", ""))
    for name in turnlog.__all__:
        for cls in getattr(getattr(turnlog, name), "__mro__", ()):
            if cls.__module__.startswith("turnlog.") and not issubclass(cls, (turnlog.Entry, *HELD)):
                yield from (
                    (f"{name}.{field}", str(kind)) for field, kind in vars(cls).get("__annotations__", {}).items()
                )


def test_every_type_that_is_returned_can_be_imported():
    inner = {"Extra", "Raw", "Settings", "RefersToBlob", "Lengthy", "AnyJson", "NamesNone", "NamesEntry"}
    python = {"Self", "Any", "None", "Literal", "Sequence", "Iterator", "Mapping", "Callable", "AsyncGenerator",
              "Coroutine", "Generator", "Annotated", "ClassVar", "Optional", "ForwardRef",
              "AbstractContextManager"}  # fmt: skip
    known = {*turnlog.__all__, *inner, *python}
    missing = {
        where: name for where, kind in _returns() for name in re.findall(r"\b[A-Z]\w+", kind) if name not in known
    }
    assert missing == {}


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
    for code in re.findall(r"```python\n(.*?)```", HEAD, re.DOTALL):
        exec(compile(code, "api.md", "exec"), {})
    assert '"type":"message"' in capsys.readouterr().out


def _wrong(home: turnlog.Home, other: turnlog.Home) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls that cannot be meant, by the member that is called."""
    s = home.create(id="s")
    s.user("a")
    s.assistant([turnlog.ToolCall(id="c", name="x", input={})])
    ask, context, catalog, digest = s.ask("c"), s.context(), turnlog.Catalog(home, agents=False), "sha256:" + "0" * 64
    yield "Session.tool_start", lambda: s.tool_start("c")
    s.answer(ask, allow=True)
    yield "Session.answer", lambda: s.answer(ask, allow=False)
    yield "Session.answer", lambda: s.answer(9999, allow=True)
    yield "Session.ask", lambda: s.ask("nobody")
    yield "Session.tool_start", lambda: s.tool_start("nobody")
    yield "Session.spawn", lambda: s.spawn(id="s")
    yield "Session.fork", lambda: s.fork(id="s")
    yield "Session.fork", lambda: s.fork(9999)
    yield "Session.checkpoint", lambda: s.checkpoint()
    yield "Session.diff", lambda: s.diff()
    yield "Session.path", lambda: s.path(to=9999)
    yield "Session.context", lambda: s.context(at=9999)
    yield "Session.edit", lambda: s.edit(9999, "x")
    yield "Session.compact", lambda: s.compact("x", keep=-1)
    yield "Session.uncompact", lambda: s.uncompact()
    yield "Session.erase", lambda: s.erase(9999)
    yield "Session.export", lambda: s.export("nothing")
    yield "Session.blob", lambda: s.blob(digest)
    yield "Session.undo", lambda: s.undo()
    yield "Session.redo", lambda: s.redo()
    yield "Session.rewind", lambda: s.rewind(to=9999)
    yield "Session.plan_rewind", lambda: s.plan_rewind(to=9999)
    yield "Session.plan_undo", lambda: s.plan_undo()
    yield "Session.plan_redo", lambda: s.plan_redo()
    yield "Session.note", lambda: s.note(3)  # type: ignore[arg-type]
    yield "Session.set", lambda: s.set("id", 3)
    yield "Session.user", lambda: s.user(3)  # type: ignore[arg-type]
    yield "Home.create", lambda: home.create(id="s")
    yield "Home.find", lambda: home.find("nobody")
    yield "Home.resume", lambda: home.resume("nobody")
    yield "Home.read", lambda: home.read("nobody")
    yield "Home.forks", lambda: home.forks("nobody")
    yield "Home.delete", lambda: home.delete("nobody")
    yield "Home.delete", lambda: home.delete("s", after=1)
    yield "Home.restore", lambda: home.restore("nobody")
    yield "Home.purge", lambda: home.purge("nobody")
    yield "Home.expire", lambda: home.expire(timedelta(days=-1))
    yield "Home.import_sessions", lambda: home.import_sessions("/nothing/here")
    yield "Home.tenant", lambda: home.tenant("")
    yield "Home.tenant", lambda: home.tenant("nobody", create=False)
    yield "Home.tenant", lambda: home.tenant("acme").tenant("within")
    yield "Home.tenants", lambda: home.tenant("acme").tenants()
    yield "Home.drop_tenant", lambda: home.drop_tenant("nobody")
    yield "Home.drop_tenant", lambda: home.tenant("acme").drop_tenant("within")
    yield "Home.put_blob", lambda: home.put_blob("text")  # type: ignore[arg-type]
    yield "Home.get_blob", lambda: home.get_blob(digest)
    yield "Home.push", lambda: home.push(other, ["nobody"])
    yield "Home.pull", lambda: home.pull(other, ["nobody"])
    yield "Home.sync", lambda: home.sync(other, ["nobody"])
    yield "Home.compare", lambda: home.compare("s", "nobody")
    yield "Home.blame", lambda: home.blame("/nothing/here")
    yield "Home.blame_commit", lambda: home.blame_commit("HEAD", "/nothing/here")
    yield "Home.sessions", lambda: home.sessions(after="nobody")
    yield "Home.sessions", lambda: home.sessions(limit=-1)
    yield "Catalog.search", lambda: catalog.search("since:nonsense")
    yield "Catalog.usage", lambda: catalog.usage(by="nothing")
    yield "Catalog.find", lambda: catalog.find("nobody")
    yield "Catalog.cards", lambda: catalog.cards("is:nothing")
    yield "Context.get_blob", lambda: context.get_blob(digest)
    yield "Context.plus", lambda: context.plus(3)  # type: ignore[arg-type]
    catalog.close()


def test_what_a_member_raises_is_said(tmp_path):
    """Each by running it: `Invalid` is said for all of them at the top, everything else with the member."""
    with turnlog.open(tmp_path / "home") as home, turnlog.open(tmp_path / "other") as other:
        for name, call in _wrong(home, other):
            with pytest.raises(turnlog.TurnlogError) as raised:
                call()
            kind = type(raised.value)
            said = {getattr(turnlog, one) for one in re.findall(r"`([A-Z]\w+)`", RAISES.get(name, ""))}
            assert kind is turnlog.Invalid or any(issubclass(kind, one) for one in said), (name, raised.value)
