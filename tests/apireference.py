"""docs/api.md, written from the docstrings of what is public: `python -m tests.apireference > docs/api.md`.

What a member raises and costs is in `RAISES` and `COSTS` below: whoever adds a member adds it there.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import turnlog
from turnlog import aio, compaction

HELD = (turnlog.Home, turnlog.Session, turnlog.ReadOnlySession, turnlog.Live, turnlog.Catalog, turnlog.Context)
FACES = {turnlog.Home: aio.Home, turnlog.Session: aio.Session, turnlog.ReadOnlySession: aio.ReadOnlySession}
FACES |= {turnlog.Catalog: aio.Catalog}

MEMORY = "waits for nothing"
WRITE = "one write and a sync, however long the session is; with PostgreSQL one round trip"
TAIL = "what a model sees: from the newest compaction on"
LOG = "reads the whole log"
FILES = "looks at the files of the workspace, and reads those that changed"
HOME = "goes through all sessions of the home"
NEWEST = "what it gives back: the newest come first, and nothing else is opened"
BLOB = "one blob"
INDEX = "reads what is new since the last question, then asks the index"
CATEGORIES: dict[str, str] = {
    MEMORY: """
        Home.backend Home.close Home.following Home.tenant_name Session.id Session.handle Session.head Session.seq
        Session.title Session.workspace Session.agent Session.labels Session.facts Session.get Session.stats
        Session.is_closed Session.pending Session.problems Session.incomplete Session.live Session.close
        Session.interrupted Live.feed Live.finish Live.close Live.id Context.count Context.index Context.edited
        Context.head Context.head_id Context.messages Context.plus Context.system Context.tools Context.is_stale
        Context.cache_key Context.root Context.stands_for
        Catalog.path Catalog.is_partial Catalog.is_behind Catalog.close
    """,
    WRITE: """
        Home.create Home.delete Home.restore Home.tenant Session.append Session.user Session.system Session.assistant
        Session.tool_result Session.tool_start Session.ask Session.answer Session.note Session.spend Session.set
        Session.unset Session.edit Session.uncompact Session.fork Session.spawn Session.track Session.changed
    """,
    TAIL: "Session.context Session.compact Session.messages Session.path Context.tokens",
    LOG: """
        Session.entries Session.branches Session.cost Session.damage Session.checkpoints Session.preview Session.export
        Session.erase Session.erasures Session.compactions Session.find Home.compare Home.import_sessions
    """,
    FILES: """
        Session.checkpoint Session.rewind Session.undo Session.redo Session.finish_rewind Session.diff Session.changes
        Session.plan_rewind Session.plan_undo Session.plan_redo Session.turn Home.blame Home.blame_commit
    """,
    HOME: """
        Home.find Home.gc Home.disk Home.push Home.pull Home.sync Home.expire Home.session_of Home.purge Home.forks
        Home.tenants Home.drop_tenant
    """,
    NEWEST: "Home.sessions Session.children Session.child Session.usage",
    BLOB: "Home.put_blob Home.get_blob Session.blob Context.get_blob",
    "the end of the log; the rest is read when it is needed": "Home.resume Home.read Home.exists Session.refresh",
    "waits for the next entry, for ever": "Session.follow",
    "one small write": "Home.health",
    "reads back to where the last turn ended": "Session.last_turn",
    "every blob that the context names, once": "Context.load",
    INDEX: """
        Catalog.ask Catalog.cards Catalog.complete Catalog.find Catalog.found Catalog.going Catalog.gone Catalog.ids
        Catalog.lines Catalog.refresh Catalog.search Catalog.standing Catalog.sync Catalog.usage aio.Home.search
        aio.Home.usage Catalog.forget_purged
    """,
    "reads everything again": "Catalog.rebuild",
}
COSTS = {name: cost for cost, names in CATEGORIES.items() for name in names.split()}
RAISES = {
    "Home.create": "`AlreadyExists` where the id is taken", "Home.resume": "`NotFound`", "Home.read": "`NotFound`",
    "Home.find": "`NotFound`, `Ambiguous`", "Home.delete": "`NotFound`, `AlreadyExists`, `Conflict` with `after`",
    "Home.restore": "`NotFound`, `AlreadyExists`", "Home.purge": "`NotFound`, `Ambiguous`, `Conflict` with `after`",
    "Home.push": "`NotFound`", "Home.pull": "`NotFound`", "Home.sync": "`NotFound`", "Home.compare": "`NotFound`",
    "Home.sessions": "`NotFound` where the session of `after` is gone", "Home.get_blob": "`NotFound`, `Corrupt`",
    "Home.blame": "`NotFound`", "Home.blame_commit": "`NotFound`",
    "Home.tenant": "`NotFound` without `create`, `Unsupported` in the home of a tenant",
    "Home.tenants": "`Unsupported` in the home of a tenant", "Home.forks": "`NotFound`",
    "Home.drop_tenant": "`NotFound`, `Unsupported` in the home of a tenant", "Home.import_sessions": "`NotFound`",
    "Session.append": "`Conflict` unless `rebase`, `AlreadyExists` with `once`, `Invalid`",
    "Session.user": "`Conflict` unless `rebase`", "Session.system": "`Conflict` unless `rebase`",
    "Session.assistant": "`Conflict` unless `rebase`", "Session.tool_result": "`Conflict` unless `rebase`",
    "Session.compact": "`Conflict`, `Invalid`", "Session.uncompact": "`NotFound`, `Conflict`",
    "Session.edit": "`NotFound`, `Conflict`", "Session.rewind": "`NotFound`, `Conflict`",
    "Session.undo": "`NotFound`, `Conflict`", "Session.redo": "`NotFound`, `Conflict`",
    "Session.fork": "`NotFound`, `AlreadyExists` where the id is taken",
    "Session.spawn": "`AlreadyExists` where the id is taken", "Session.ask": "`NotFound` where no such call is open",
    "Session.answer": "`NotFound` where nothing is asked, `Conflict` where somebody answered before",
    "Session.tool_start": "`NotFound` where no such call is open, `Conflict` where it waits or is denied",
    "Session.path": "`NotFound` with `to`", "Context.get_blob": "`NotFound`, `Corrupt`",
    "Session.checkpoint": "`Invalid` without a workspace",
    "Session.plan_rewind": "`NotFound`", "Session.plan_undo": "`NotFound`", "Session.plan_redo": "`NotFound`",
    "Session.diff": "`NotFound`", "Session.blob": "`NotFound`, `Corrupt`",
    "Session.follow": "`NotFound` once it is purged",
    "Session.set": "`Invalid`", "Session.export": "`NotFound`, `Unsupported`, `AlreadyExists` unless `force`",
    "Session.turn": "`Invalid` inside another turn", "Session.erase": "`NotFound`, `Unsupported`",
    "Session.context": "`NotFound` with `at`", "Catalog.find": "`NotFound`, `Ambiguous`", "Catalog.usage": "`Invalid`",
    "aio.Home.usage": "`Invalid`", "Live.feed": "what the stream raises", "Live.finish": "what the stream raises",
}  # fmt: skip

HEAD = """\
# The Python API

Written from the docstrings by `python -m tests.apireference > docs/api.md`; a test keeps it so.
[Building](guide/building.md) tells the same as a story.

```python
import turnlog

with turnlog.open() as home:                    # a folder, "memory:" or "postgresql://…"
    s = home.create(agent="my-agent")
    s.user("Hello")
    request = s.context()                       # what a model should see
    s.assistant("Hi", model="some-model", usage=turnlog.Usage(input_tokens=9, output_tokens=2))
    s.usage().total
```

```python
import asyncio
from turnlog import aio

async def main():
    async with aio.open() as home:              # the same names, with await
        s = await home.create(agent="my-agent")
        await s.user("Hello")
        async for entry in s.entries():
            print(entry.to_json())

asyncio.run(main())
```

Of each member: what it does, what it **raises** and its **cost**. `await` stands before those that are awaited in
`turnlog.aio`, `async for` and `async with` where these are used there; the others are the same in both. Besides
what is said here, an argument that makes no sense is `Invalid`, and so is everything once its home or session is
closed; whatever asks the store raises `Unavailable` (and `OutOfSpace`) when the disk or the server does not answer, and
`Unsupported` for what a newer version wrote. What an append raised for is in the log or is not, never twice: the same
drafts can be appended again.

**Clock.** `turnlog.open(clock=…)` takes any callable without arguments that returns whole milliseconds since 1970,
as an `int`; what it says is the time of what is appended. It never decides about order or loss. Without one it is
the system's. Tests give `itertools.count(1_700_000_000_000).__next__`.

**The logger `turnlog`** says two things, each as a `WARNING`: that a `live` message cannot be shown while it arrives,
because its stream raised; and, once, that following asks again and again, because a pooler is before the server.
Everything else is an error that is raised, or in what a call gives back; warnings of the
category `TurnlogWarning` come through `warnings`. Nothing is ever printed.
"""


def members(cls: type) -> list[str]:
    """What is public, in the order of its name: methods, properties, and what each object gets when it is made."""
    return sorted({name for name in dir(cls) if not name.startswith("_")} | attributes(cls).keys())


def attributes(cls: type) -> dict[str, str]:
    """What the constructor sets for everybody to see, with what the source says below it."""
    found: dict[str, str] = {}
    for one in (one for one in cls.__mro__ if one.__module__.startswith("turnlog.")):
        for made in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(one)))):
            if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                for node, below in itertools.zip_longest(made.body, made.body[1:]):
                    targets = getattr(node, "targets", [getattr(node, "target", None)])
                    names = [target.attr for target in targets if isinstance(target, ast.Attribute)]
                    told = below.value if isinstance(below, ast.Expr) else None
                    text = inspect.cleandoc(str(told.value)) if isinstance(told, ast.Constant) else ""
                    found.update({name: text for name in names if name[0] != "_" and not hasattr(cls, name)})
    return found


def reference() -> str:
    """The whole page."""
    return re.sub(r"\n{3,}", "\n\n", "\n".join(_page())).rstrip() + "\n"


def _page() -> Iterator[str]:
    yield HEAD
    yield "## Opening\n"
    yield from _function("turnlog.open", turnlog.open, "async with ")
    yield from _function("turnlog.instructions", turnlog.instructions)
    yield from _function("turnlog.export", turnlog.export)
    for cls in HELD:
        yield from _class(cls)
    yield "## turnlog.aio.Home, besides\n"
    for name in ("search", "usage"):
        yield from _member("aio.Home", name, getattr(aio.Home, name), "await ")
    yield "## turnlog.compaction\n"
    yield (compaction.__doc__ or "").strip() + "\n"
    for name in ("CompactionPolicy", "CompactionStep", "compact", "compact_async"):
        value = getattr(compaction, name)
        yield from _value(name, value) if isinstance(value, type) else _function(f"compaction.{name}", value)
    yield "## Errors\n"
    yield (
        "```text\n"
        + textwrap.dedent((sys.modules["turnlog.errors"].__doc__ or "").partition("\n\n")[2]).strip()
        + "\n```\n"
    )
    yield "## Values\n"
    yield "What calls take and give, all of them importable from `turnlog`.\n"
    held = {cls.__name__ for cls in HELD}
    for name in turnlog.__all__:
        value = getattr(turnlog, name)
        if name not in held and name not in ("open", "instructions", "export", "__version__"):
            yield from _value(name, value)


def _class(cls: type) -> Iterator[str]:
    yield f"## {cls.__name__}\n"
    yield inspect.cleandoc(cls.__doc__ or "") + "\n"
    shared = set(members(turnlog.ReadOnlySession)) if cls is turnlog.Session else set()
    if shared:
        yield "It can do everything that `ReadOnlySession` below can, and:\n"
    for name in members(cls):
        if name not in shared or getattr(cls, name, 0) is not getattr(turnlog.ReadOnlySession, name, 1):
            if name in (set_there := attributes(cls)):
                yield f"### {cls.__name__}.{name}\n\n{set_there[name]}\n"
                yield from _notes(f"{cls.__name__}.{name}")
            else:
                yield from _member(cls.__name__, name, inspect.getattr_static(cls, name), _way(cls, name))
            if cls in FACES and not hasattr(FACES[cls], name):
                yield "Not in `turnlog.aio`.\n"


def _way(cls: type, name: str) -> str:
    """How it is called in `turnlog.aio`."""
    other = getattr(FACES.get(cls), name, None)
    if inspect.iscoroutinefunction(other):
        return "await "
    if inspect.isasyncgenfunction(other):
        return "async for "
    return "async with " if name == "turn" else ""


def _member(owner: str, name: str, value: Any, way: str) -> Iterator[str]:
    full = f"{owner}.{name}"
    if isinstance(value, (property, staticmethod)) or not callable(value):
        yield f"### {full}\n"
        yield _prose(value) + "\n"
    else:
        yield from _function(full, value, way)
        return
    yield from _notes(full)


def _function(full: str, value: Any, way: str = "") -> Iterator[str]:
    signature = str(inspect.signature(value)).replace("(self, ", "(").replace("(self)", "()")
    yield f"### {full}\n"
    yield f"```python\n{way}{full.rpartition('.')[2]}{signature.replace(chr(39), '')}\n```\n"
    yield _prose(value) + "\n"
    yield from _notes(full)


def _notes(full: str) -> Iterator[str]:
    for name in (full, full.replace("ReadOnlySession", "Session")):
        if name in COSTS:
            raises = f"**Raises** {RAISES[name]}. " if name in RAISES else ""
            yield f"{raises}**Cost:** {COSTS[name]}.\n"
            return


def _prose(value: Any) -> str:
    return inspect.cleandoc(getattr(value, "__doc__", None) or "")


def _value(name: str, value: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if value is str:  # words that a checker knows, and a later version may add to
        yield "`str`\n"
        return
    if not isinstance(value, type):
        yield f"`{re.sub(r'turnlog[.a-z_]*[.]', '', str(value)).replace('typing.', '')[:600]}`\n"
        return
    yield _prose(value) + "\n"
    fields = list(_fields(value))
    if fields:
        yield "| field | |\n| --- | --- |"
        yield from (f"| `{field}` | {told} |" for field, told in fields)
        yield ""


def _fields(cls: type) -> Iterator[tuple[str, str]]:
    """Its own fields, with what the source says below each."""
    try:
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError):
        return
    assert isinstance(tree, ast.ClassDef)
    for place, node in enumerate(tree.body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0] != "_":
            below = tree.body[place + 1] if place + 1 < len(tree.body) else None
            told = below.value.value if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) else ""
            kind = ast.unparse(node.annotation).replace("|", "\\|")
            yield f"{node.target.id}: {kind}", " ".join(str(told).split()).replace("|", "\\|")
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and ast.get_docstring(node):
            yield node.name, " ".join((ast.get_docstring(node) or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(reference())
