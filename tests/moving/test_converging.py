"""Any sessions, forks and appends on three homes, moved about at random: in the end everything is everywhere."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import turnlog
from tests.moving.scene import everything, ids_in
from turnlog import Note
from turnlog.errors import NotFound
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived

HOMES = 3
homes = st.integers(0, HOMES - 1)
picks = st.integers(0, 10**6)
steps = st.one_of(
    st.tuples(st.just("create"), homes),
    st.tuples(st.just("say"), homes, picks),
    st.tuples(st.just("long"), homes, picks),
    st.tuples(st.just("batch"), homes, picks),
    st.tuples(st.just("note"), homes, picks),
    st.tuples(st.just("title"), homes, picks),
    st.tuples(st.just("fork"), homes, picks),
    st.tuples(st.just("rewind"), homes, picks),
    st.tuples(st.just("spawn"), homes, picks),
    st.tuples(st.just("push"), homes, homes),
    st.tuples(st.just("sync"), homes, homes),
    st.tuples(st.just("one"), homes, homes, picks),
    st.tuples(st.just("delete"), homes, picks),
)


def do(place: list[Home], made: set[str], step: tuple[Any, ...], number: int) -> None:
    """One step. What was acknowledged is added to `made`."""
    kind, home = step[0], place[step[1]]
    if kind in ("push", "sync"):
        if step[1] != step[2]:
            getattr(home, kind)(place[step[2]])
        return
    if kind == "create":
        home.create(id=f"s{number}", title="t").close()
        return
    names = sorted(derived.ids(interior(home).store))
    if not names:
        return
    name = names[step[-1] % len(names)]
    if kind == "one":
        if step[1] != step[2]:
            home.push(place[step[2]], [name])
        return
    if kind == "delete":
        home.delete(name)
        return
    with home.resume(name) as session:
        if kind == "say":
            made.add(session.user(f"said {number}").id)
        elif kind == "long":
            made.add(session.user(f"{number}" * 70_000).id)
        elif kind == "batch":
            made.update(
                entry.id for entry in session.append(Note(text="a"), turnlog.Custom(kind="a.b"), Note(text="b"))
            )
        elif kind == "note":
            made.add(session.append(Note(text=f"note {number}")).id)
        elif kind == "title":
            made.add(session.set("title", f"title {number}").id)
        elif kind == "spawn":
            session.spawn(agent="sub", id=f"sub{number}").close()
        elif kind == "fork":
            entries = list(session.entries())
            at = entries[step[-1] % len(entries)]
            with session.fork(at.seq, id=f"f{number}") as fork:
                made.add(fork.user(f"forked {number}").id)
        else:
            nodes = [entry.seq for entry in session.entries() if entry.parent is not None]
            if nodes:
                made.add(session.rewind(to=nodes[step[-1] % len(nodes)], files=False).id)


@given(st.lists(steps, min_size=10, max_size=40))
@settings(max_examples=40)
def test_everything_is_everywhere_in_the_end(todo: list[tuple[Any, ...]]):
    folder = Path(tempfile.mkdtemp(prefix="turnlog-moving-"))
    place = [turnlog.open("memory:"), turnlog.open("memory:"), turnlog.open(folder / "home", durability="flush")]
    made: set[str] = set()
    try:
        for home in range(1, HOMES):  # so that there is something to disagree about
            do(place, made, ("create", home), home)
            place[home].sync(place[0])
        for number, step in enumerate(todo, HOMES):
            do(place, made, step, number)
        for home in place:  # a session that was deleted stays where it is, and so does what only it has
            for found in list(interior(home).store.listing("deleted")):
                home.restore(found.id)
        for _ in range(8):
            sent = 0
            for a, b in ((0, 1), (1, 2), (0, 2)):
                pushed, pulled = place[a].sync(place[b])
                for row in (*pushed, *pulled):
                    assert row.error is None, row.error
                    assert not row.problems
                    sent += row.entries
            if not sent:
                break
        assert not sent, "still something to send after eight rounds"
        for home in place:
            missing = made - ids_in(home)
            assert not missing
            for name in derived.ids(interior(home).store):
                with home.resume(name) as session:
                    session.context()
        before = [everything(home) for home in place]
        shared = set(before[0]) & set(before[1]) & set(before[2])
        assert all(interior(place[0]).store.open(name, read_only=True) for name in shared)
    finally:
        for home in place:
            home.close()
        shutil.rmtree(folder, ignore_errors=True)


def test_a_session_that_nobody_has_is_not_found(tmp_path: Path):
    with turnlog.open(tmp_path / "a") as here, turnlog.open("memory:") as there:
        here.create(id="s").close()
        try:
            here.pull(there, ["s"])
        except NotFound:
            return
    raise AssertionError("there is no such session over there")
