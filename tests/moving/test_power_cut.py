"""Every state a power cut may leave while lines are taken over: a beginning without a gap, and it goes on."""

import os
import random
import shutil
from collections.abc import Callable, Iterator

import pytest

import turnlog
from tests.moving.scene import lines
from tests.store.crashlab import HOME, Explorer, Timeline, Witness, fast_folder, home_at
from turnlog import Image, Message, Note
from turnlog.log.written import WrittenLine
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived

MODELS = ("posix", "ext4")


@pytest.fixture
def seed() -> int:
    return random.randrange(1 << 32)


@pytest.fixture
def explorer(seed: int) -> Iterator[Explorer]:
    with fast_folder() as folder:
        explorer = Explorer(folder, seed, limit=250)
        yield explorer
        print(f"seed {seed}")


@pytest.fixture
def source() -> Iterator[Home]:
    with turnlog.open("memory:") as home:
        with home.create(id="s") as session:
            session.user("one")
        yield home


def grow(home: Home) -> None:
    """Small lines, some across pages, batches, something with a blob."""
    with home.resume("s") as session:
        session.user("small")
        session.append(Note(text="a" * 300), Note(text="b" * 5000), Note(text="c"))
        session.user("d" * 9000)
        session.set("title", "later")
        session.append(Message(role="user", blocks=[Image("image/png", data=b"\x89PNG" * 40)]))
        session.user("last")


def after_every_cut(explorer: Explorer, model: str, before: Callable, scenario: Callable, source: Home) -> int:
    tape, since = explorer.record(scenario, before=before)
    wanted = lines(source, "s")
    seen: set[int] = set()
    for _, tree in explorer.sample(Timeline(tape, model, since=since), explorer.limit):
        folder = explorer.new_folder()
        tree.write_to(folder)
        with home_at(os.path.join(folder, HOME)) as home:
            found = []
            if "s" in set(derived.ids(interior(home).store)):
                found = [
                    item.line
                    for item in interior(home).store.open("s", read_only=True).lines()
                    if isinstance(item, WrittenLine)
                ]
            assert found == wanted[: len(found)], "a gap"
            seen.add(len(found))
            source.push(home)
            assert [
                item.line
                for item in interior(home).store.open("s", read_only=True).lines()
                if isinstance(item, WrittenLine)
            ] == wanted
            with home.resume("s") as session:
                assert session.title == "later"
            assert home.gc().blobs == 0
        shutil.rmtree(folder)
    return len(seen)


@pytest.mark.parametrize("model", MODELS)
def test_a_log_that_grows_by_lines_of_a_copy_never_has_a_gap(explorer: Explorer, model: str, source: Home):
    def begin(witness: Witness) -> None:
        source.push(witness.home)

    def go_on(witness: Witness) -> None:
        grow(source)
        source.push(witness.home)

    assert after_every_cut(explorer, model, begin, go_on, source) >= 4


@pytest.mark.parametrize("model", MODELS)
def test_a_new_log_is_there_whole_or_not_at_all(explorer: Explorer, model: str, source: Home):
    grow(source)

    def nothing(witness: Witness) -> None:
        witness.create("other")

    def push(witness: Witness) -> None:
        source.push(witness.home)

    assert after_every_cut(explorer, model, nothing, push, source) == 2
