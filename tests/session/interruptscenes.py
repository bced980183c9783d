"""What may be interrupted anywhere, and what has to be true afterwards."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import turnlog
from tests.session.interruptlab import Expired, Interrupt, Interrupter, leftovers, locked_files, open_below, quiet, room
from turnlog import AlreadyExists, Image, Message, NotFound, Session, Text, ToolCall, Usage
from turnlog.catalog import Catalog
from turnlog.log.entry import Fold
from turnlog.log.fold import State, fold
from turnlog.thread import appender

ONE = "one"


class Stage:
    """A home with a session and a workspace, in the middle of some work."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "a.txt").write_text("a")
        self.home = turnlog.open(self.place)
        self.s = self.home.create(id=ONE, workspace=self.work, title="begun")
        self.s.user("hello")
        self.s.assistant("hi", model="m", usage=Usage(input_tokens=5, output_tokens=7))
        self.made: list[Session] = []
        self.has_company = False
        """Whether another object appends to the session."""

    def close(self) -> None:
        for session in self.made:
            session.close()
        self.home.close()


def _append(stage: Stage) -> None:
    stage.s.user("more")
    stage.s.assistant("yes", model="m", usage=Usage(input_tokens=1, output_tokens=2))


def _append_big(stage: Stage) -> None:
    picture = Image("image/png", data=b"\x89PNG" * 3_000)
    stage.s.append(Message(role="user", blocks=[picture, Text("x" * 9_000)]), turnlog.Note(text="two"))


def _picture(session: Session) -> bool:
    return any(session.blob(b.blob) for m in session.messages() for b in m.blocks if isinstance(b, Image))


def _set(stage: Stage) -> None:
    stage.s.set("title", "new")
    stage.s.set("mode", {"plan": True})
    stage.s.unset("mode")


def _create(stage: Stage) -> None:
    stage.made.append(stage.home.create(id="two", workspace=stage.work))


def _resume(stage: Stage) -> None:
    stage.has_company = True
    with turnlog.open(stage.place) as home, home.resume(ONE) as again:
        again.user("again")


def _fork(stage: Stage) -> None:
    stage.made.append(stage.s.fork(id="two"))
    stage.made[-1].user("forked")


def _compact(stage: Stage) -> None:
    stage.s.compact("so far", keep=1, usage=Usage(input_tokens=3), model="m")


def _turn(stage: Stage) -> None:
    with stage.s.turn():
        (stage.work / "b.txt").write_text("b")
        stage.s.assistant([ToolCall(id="c", name="bash")], model="m", usage=Usage(output_tokens=9))


def _checkpoint(stage: Stage) -> None:
    stage.s.checkpoint("now")


def _worked(stage: Stage) -> None:
    with stage.s.turn():
        (stage.work / "a.txt").write_text("changed")
        (stage.work / "b.txt").write_text("b")
        stage.s.assistant("done", model="m", usage=Usage(output_tokens=9))


def _rewind(stage: Stage) -> None:
    stage.s.rewind(turns=1)


def _rewound(stage: Stage) -> None:
    if stage.s.interrupted():
        stage.s.finish_rewind()
    if (stage.work / "a.txt").read_text() != "a":
        stage.s.rewind(turns=1)
    assert (stage.work / "a.txt").read_text() == "a"
    assert [path.name for path in stage.work.iterdir()] == ["a.txt"]


def _littered(stage: Stage) -> None:
    _append_big(stage)
    other = stage.home.create(id="other", workspace=stage.work)
    (stage.work / "big").write_bytes(bytes(range(256)) * 400)
    other.checkpoint()
    other.close()
    (stage.work / "big").unlink()
    stage.s.checkpoint()
    stage.home.purge("other")


def _gc(stage: Stage) -> None:
    stage.home.gc()


def _collected(stage: Stage) -> None:
    stage.home.gc()
    assert stage.home.gc().blobs == 0
    for point in stage.s.checkpoints():
        stage.s.diff(point)
    assert _picture(stage.s)


def _other(stage: Stage) -> None:
    stage.made.append(stage.home.create(id="two"))
    stage.made[0].user("to be deleted")


def _delete(stage: Stage) -> None:
    stage.home.delete("two")


def _deleted(stage: Stage) -> None:
    try:
        stage.home.delete("two")
    except NotFound:
        assert [info.id for info in stage.home.sessions(deleted=True)] == ["two"]
    stage.home.restore("two")
    assert len(stage.home.resume("two").messages()) == 1


def _purge(stage: Stage) -> None:
    stage.home.purge("two")


def _purged(stage: Stage) -> None:
    try:
        stage.home.purge("two")
    except NotFound:
        return


def _index(stage: Stage) -> None:
    with Catalog(str(stage.place), agents=False) as catalog:
        assert ONE in [card.id for card in catalog.cards(everything=True)]


def _push(stage: Stage) -> None:
    with turnlog.open(stage.folder / "there") as there:
        stage.home.push(there)


def _pushed(stage: Stage) -> None:
    with turnlog.open(stage.folder / "there") as there:
        stage.home.push(there)
        with there.resume(ONE) as copy:
            assert [e.id for e in copy.entries()] == [e.id for e in stage.s.entries()]
            assert _picture(copy)
        assert not leftovers(stage.folder / "there")


def _nothing(stage: Stage) -> None:
    del stage


def _made(stage: Stage) -> None:
    try:
        stage.made.append(stage.home.create(id="two"))
    except AlreadyExists:
        stage.made.append(stage.home.resume("two"))


Act = Callable[[Stage], None]
SCENES: dict[str, tuple[Act, Act, Act]] = {
    "append": (_nothing, _append, _nothing),
    "append with blobs": (_nothing, _append_big, _nothing),
    "set": (_nothing, _set, _nothing),
    "create": (_nothing, _create, _made),
    "resume": (_nothing, _resume, _nothing),
    "fork": (_nothing, _fork, _made),
    "compact": (_nothing, _compact, _nothing),
    "turn": (_nothing, _turn, _nothing),
    "checkpoint": (_nothing, _checkpoint, _nothing),
    "rewind": (_worked, _rewind, _rewound),
    "gc": (_littered, _gc, _collected),
    "delete": (_other, _delete, _deleted),
    "purge": (_other, _purge, _purged),
    "index": (_nothing, _index, _index),
    "push": (_append_big, _push, _pushed),
}
"""What comes before, what is interrupted, and what has to work afterwards."""


def errors_for(name: str) -> tuple[type[BaseException], ...]:
    """What may come up. A rewind takes an error of the disk for that of a file, which is left alone then, and named."""
    return (Interrupt,) if name == "rewind" else (Interrupt, Expired)


def known(session: Session) -> dict[str, Any]:
    """All that a session says of itself."""
    return {
        "head": session.head,
        "facts": session.facts,
        "usage": session.usage(),
        "stats": session.stats(),
        "context": list(session.context()),
        "pending": session.pending(),
    }


def folded(session: Session) -> dict[str, Any]:
    """What the entries of a log come to, one by one; what folds say is not believed."""
    state = State()
    for entry in session.entries():
        if not isinstance(entry, Fold):
            fold(state, entry)
    return {"head": state.head, "facts": {**state.facts, **state.wide}, "own": state.own, "models": state.models}


def check(stage: Stage) -> None:
    """The object, its log and a fresh reader agree; nobody is kept out; nothing is left over."""
    assert not locked_files(stage.folder), f"locked: {locked_files(stage.folder)}"
    assert not leftovers(stage.folder), f"left over: {leftovers(stage.folder)}"
    if stage.has_company:
        stage.s.refresh()
    with turnlog.open(stage.place) as home, home.resume(ONE) as fresh:
        assert known(stage.s) == known(fresh), "the object is not what its log says"
        counted = folded(fresh)
        told = {"head": fresh.head, "facts": fresh.facts, "own": fresh.usage().own, "models": fresh.usage().models}
        assert told == counted, "the state is not what the entries come to"
        assert not fresh.damage


def go_on(stage: Stage) -> None:
    """Another process can append at once, and so can we."""
    with turnlog.open(stage.place) as home, home.resume(ONE) as fresh:
        fresh.note("another process goes on")
    stage.s.user("and so do we")
    assert stage.s.messages()[-1].blocks == [Text("and so do we")]
    with stage.s.turn():
        pass


def live(name: str, at: int, error: type[BaseException]) -> int:
    """One scene, interrupted at that point. Returns how many points there are, or were until then."""
    interrupter = Interrupter(at, error)
    _live(name, interrupter.run, lambda: interrupter.where, error)
    return interrupter.count


def live_through_signal(name: str, after_s: float) -> tuple[bool, float]:
    """One scene, with a real signal after so long (0: none). Whether it came in time, and how long the scene took."""
    hit: list[str] = []
    is_on, took = False, 0.0

    def interrupt(number: int, frame: object) -> None:
        del number, frame
        if is_on:
            hit.append(f"{after_s * 1e6:.0f} µs after it began")
            raise Interrupt(hit[0])

    def run(act: Callable[[], object]) -> None:
        nonlocal is_on, took
        begin = time.perf_counter()
        try:
            is_on = True
            signal.setitimer(signal.ITIMER_REAL, after_s)
            act()
        finally:
            is_on = False
            took = time.perf_counter() - begin

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        _live(name, run, lambda: "".join(hit), Interrupt)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return bool(hit), took


def _live(
    name: str, run: Callable[[Callable[[], object]], None], where: Callable[[], str], error: type[BaseException]
) -> None:
    before, act, after = SCENES[name]
    appender._FOLD_ENTRIES, folds = 2, appender._FOLD_ENTRIES
    try:
        with room() as folder, quiet() as dropped:
            stage = Stage(folder)
            before(stage)
            told = _run(stage, act, run, where)
            # Who expects errors of the disk may take one for such; Python drops what comes up in a finaliser.
            assert told or not where() or dropped or issubclass(error, OSError), f"{name}, {where()}: nobody was told"
            try:
                check(stage)
                after(stage)
                go_on(stage)
                check(stage)
                stage.close()
                del stage
                gc.collect(0)
                left = open_below(folder)
                assert len(left) <= 1, f"left open: {left}"
                assert not locked_files(folder)
            except Exception as problem:
                raise AssertionError(f"{name}, {where()}: {problem!r}") from problem
    finally:
        appender._FOLD_ENTRIES = folds


def _run(stage: Stage, act: Act, run: Callable[[Callable[[], object]], None], where: Callable[[], str]) -> bool:
    """Whether the caller was told of the interrupt, as it is or as an error of ours made of it."""
    try:
        run(lambda: act(stage))
    except BaseException as error:
        if not where():
            raise
        del error
        return True
    return False
