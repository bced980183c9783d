"""Many threads on one session: parallel tools answer at once."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import turnlog
from tests.store.crashlab import fast_folder, home_at
from tests.store.faultlab import ForgetfulDisk, said
from turnlog import Note, ToolCall, ToolResult, TurnlogError
from turnlog.store.files.disk import Disk


def in_threads(count: int, act: Callable[[int], Any]) -> list[Any]:
    """What came of it, when so many threads begin together."""
    together = threading.Barrier(count)

    def run(number: int) -> Any:
        together.wait()
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_tools_that_run_in_parallel_answer_on_one_session(tmp_path: Path):
    session = turnlog.open(tmp_path).create()
    calls = [ToolCall(id=f"call-{n}", name="bash", input={"n": n}) for n in range(16)]
    session.assistant(calls)
    results = in_threads(16, lambda n: session.tool_result(calls[n], f"result {n} " + "x" * (n * 1_000)))
    assert len({result.seq for result in results}) == 16
    assert not session.pending()
    again = turnlog.open(tmp_path).resume(session.id)
    for view in (session, again):
        answers = [message.blocks[0] for message in view.messages()[1:]]
        assert {a.call: a.content.split("x")[0] for a in answers if isinstance(a, ToolResult)} == {
            f"call-{n}": f"result {n} " for n in range(16)
        }
        assert [node.parent for node in view.messages()][1:] == [node.seq for node in view.messages()][:-1]


def test_threads_with_objects_of_their_own_lose_nothing(tmp_path: Path):
    home = turnlog.open(tmp_path)
    home.create(id="one")
    done = in_threads(8, lambda n: [home.resume("one").note(f"{n} {k}").id for k in range(10)])
    found = [entry.id for entry in home.resume("one").entries(kind="note")]
    assert sorted(found) == sorted(entry_id for ids in done for entry_id in ids)


def test_threads_make_sessions_in_one_home(tmp_path: Path):
    home = turnlog.open(tmp_path / "new")
    made = in_threads(8, lambda n: [home.create(id=f"{n}-{k}").user("hello").seq for k in range(5)])
    assert len(made) == 8
    assert {info.id for info in home.sessions()} == {f"{n}-{k}" for n in range(8) for k in range(5)}


class PatientDisk(Disk):
    """Its next sync takes until so many writes have been made."""

    def __init__(self) -> None:
        self.syncs = 0
        self.awaited = 0
        self._written = threading.Semaphore(0)

    def write_once(self, fd: int, data: Any) -> int:
        done = super().write_once(fd, data)
        self._written.release()
        return done

    def sync(self, fd: int) -> None:
        self.syncs += 1
        while self.awaited and self._written.acquire(timeout=20):
            self.awaited -= 1
        super().sync(fd)


def test_one_sync_serves_every_thread_that_waits_for_it(tmp_path: Path):
    disk = PatientDisk()
    session = home_at(str(tmp_path), disk).create()
    session.note("first")
    before = disk.syncs
    while disk._written.acquire(blocking=False):
        pass
    disk.awaited = 16
    in_threads(16, lambda n: session.note(f"{n}"))
    assert disk.syncs - before == 2


def test_of_what_threads_were_told_nothing_is_lost_when_syncs_fail():
    seed = random.randrange(1 << 32)
    rng = random.Random(seed)
    with fast_folder() as folder:
        disk = ForgetfulDisk(fails=lambda sync: sync > 4 and rng.random() < 0.15)
        session = home_at(folder, disk).create(id="one")
        told: dict[str, str] = {}

        def append(number: int) -> None:
            for count in range(12):
                text = f"{number} {count} " + "x" * (count * 700)
                drafts = [[said(text)], [Note(text=text)], [Note(text=text), said(text), Note(text=text)]][count % 3]
                for _ in range(50):
                    try:
                        session.append(*drafts, rebase=True)
                    except TurnlogError:
                        continue
                    told.update((draft.id, text) for draft in drafts)
                    break

        in_threads(8, append)
        assert len(told) == 8 * 12 + 8 * 4 * 2, f"seed {seed}"
        disk.reboot(folder)
        entries = list(home_at(folder).resume("one").entries())
        ids = [entry.id for entry in entries]
        assert len(ids) == len(set(ids)), f"seed {seed}"
        found = {entry.id: entry for entry in entries}
        assert found.keys() >= told.keys(), f"seed {seed}"
        for entry_id, text in told.items():
            entry = found[entry_id]
            assert (entry.text if isinstance(entry, Note) else entry.blocks[0].text) == text, f"seed {seed}"


def test_a_session_can_be_closed_while_threads_use_it(tmp_path: Path):
    home = turnlog.open(tmp_path)
    session = home.create(id="one")
    told: list[str] = []

    def act(number: int) -> None:
        for count in range(20):
            if number == 0:
                session.close()
            else:
                try:
                    told.append(session.note(f"{number} {count}").id)
                except TurnlogError:
                    continue

    in_threads(4, act)
    found = {entry.id for entry in home.resume("one").entries()}
    assert set(told) <= found
