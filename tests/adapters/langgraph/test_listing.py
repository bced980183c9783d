"""What is asked of many checkpoints at once: it makes no values that nobody asked for, and reads each thread once."""

import uuid
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import turnlog
from turnlog.adapters.langgraph import TurnlogSaver, thread

STEPS = 30


class Counting(JsonPlusSerializer):
    """A serializer that counts what it loads. It is not the plain one, so every value goes through it."""

    loads = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.loads += 1
        return super().loads_typed(data)


def put(saver: TurnlogSaver, thread_id: str, step: int, parent: str | None = None, **values: Any) -> str:
    """Put one checkpoint, with the run of its step; its id sorts by step."""
    checkpoint = empty_checkpoint()
    checkpoint["id"] = f"1f000000-0000-6000-8000-{step:012}"
    checkpoint["channel_values"] = values
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": parent}}
    saver.put(config, checkpoint, {"source": "loop", "step": step, "run_id": f"run{step // 10}"}, {})
    return checkpoint["id"]


@pytest.fixture
def saver(tmp_path):
    with TurnlogSaver(tmp_path / "home", serde=Counting()) as saver:
        parent = None
        for step in range(STEPS):
            parent = put(saver, "t1", step, parent, words=[f"word {n}" for n in range(step)], number=step)
        saver.serde.loads = 0
        yield saver


THREAD: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}


def steps(saver: TurnlogSaver, **asked: Any) -> list[int]:
    return [checkpoint.metadata["step"] for checkpoint in saver.list(THREAD, **asked)]


def test_checkpoints_of_runs_are_hidden_by_their_metadata_alone(saver):
    saver.delete_for_runs(["run1", uuid.uuid4()])
    assert saver.serde.loads == STEPS
    assert steps(saver) == [*range(29, 19, -1), *range(9, -1, -1)]


def test_a_filter_asks_the_metadata_alone(saver):
    assert steps(saver, filter={"step": 3}) == [3]
    assert saver.serde.loads <= STEPS + 1 + 3 + 1 + 1  # metadata; then one checkpoint: its fields, words and number


def test_the_history_of_a_channel_makes_no_other_values(saver):
    history = saver.get_delta_channel_history(config=THREAD, channels=["number", "unknown"])
    assert history == {"number": {"writes": [], "seed": STEPS - 2}, "unknown": {"writes": []}}
    assert saver.serde.loads <= STEPS


def test_a_history_does_not_make_a_list_of_the_next_checkpoint_new(tmp_path):
    with TurnlogSaver(tmp_path / "home") as saver:
        parent = put(saver, "t1", 0, words=["x" * 100], number=0)
        config: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": parent}}
        put(saver, "t1", 1, parent, words=["x" * 100], number=1)
    with TurnlogSaver(tmp_path / "home") as saver:
        saver.get_delta_channel_history(config=THREAD, channels=["number"])
        words = saver.get_tuple(config).checkpoint["channel_values"]["words"]
        put(saver, "t1", 2, parent, words=[*words, "y"], number=2)
    with turnlog.open(tmp_path / "home") as home, home.read("t1") as session:
        *_, last = session.entries(kind="custom")
        assert "xxx" not in repr(last.data)


@pytest.fixture
def read_threads(monkeypatch) -> list[str]:
    """Keep two threads in memory; the ids of those that are read, in their order."""
    read: list[str] = []

    class Noted(thread.KnownThread):
        def __init__(self, session: turnlog.Session) -> None:
            read.append(session.id)
            super().__init__(session)

    monkeypatch.setattr(thread, "_THREADS", 2)
    monkeypatch.setattr(thread, "KnownThread", Noted)
    return read


@pytest.fixture
def many(tmp_path):
    """Six threads of three steps, whose checkpoints come in turns."""
    with TurnlogSaver(tmp_path / "home") as saver:
        for step in range(18):
            put(saver, f"t{step % 6}", step, number=step)
    return tmp_path / "home"


def test_a_listing_of_many_threads_reads_each_once(many, read_threads):
    with TurnlogSaver(many) as saver:
        assert [checkpoint.metadata["step"] for checkpoint in saver.list(None)] == [*range(17, -1, -1)]
    assert sorted(read_threads) == [f"t{n}" for n in range(6)]


def test_a_listing_leaves_out_what_its_reader_erases(many, read_threads):
    with TurnlogSaver(many) as saver:
        listed = []
        for checkpoint in saver.list(None):
            listed.append(checkpoint.metadata["step"])
            saver.delete_thread(checkpoint.config["configurable"]["thread_id"])
        assert listed == [17, 16, 15, 14, 13, 12]


def test_a_listing_ends_with_its_saver(many):
    saver = TurnlogSaver(many)
    listing = saver.list(None)
    next(listing)
    saver.close()
    with pytest.raises(turnlog.Invalid, match="closed"):
        next(listing)
