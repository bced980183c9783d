"""Writers that are killed with -9 while they append, and what they had been told by then.

`python -m tests.store.killlab FOLDER SEED KILLS WRITERS DURABILITY` keeps so many writers going, kills one after the
other, and prints every acknowledgement that reached it: writer, number, and the seqs of the batch.
"""

from __future__ import annotations

import hashlib
import os
import random
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import turnlog
from turnlog import Home, Note, Text
from turnlog.log.entry import AnyEntry, Message
from turnlog.store.files import connect
from turnlog.store.files.disk import Disk

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = ("one", "two")
_LENGTHS = (10, 300, 3_000, 6_000, 40_000)


class Ack(NamedTuple):
    """A writer was told that a batch of its is in the log."""

    session: str
    batch: str
    seqs: list[int]


def text_of(entry_id: str, length: int) -> str:
    """A text that belongs to one entry and no other."""
    return (hashlib.sha256(entry_id.encode()).hexdigest() * (length // 64 + 1))[:length]


def _drafts(name: str, rng: random.Random) -> list[AnyEntry]:
    count = rng.choice([1, 1, 1, 2, 3, 12])
    drafts: list[AnyEntry] = []
    for index in range(count):
        entry_id, length = f"{name}/{index}/{count}", rng.choice(_LENGTHS)
        text = text_of(entry_id, length)
        if rng.random() < 0.3:
            drafts.append(Message(id=entry_id, role="user", blocks=[Text(text)]))
        else:
            drafts.append(Note(id=entry_id, text=text))
    return drafts


class SlowDisk(Disk):
    """Writes a few bytes at a time, as a slow or busy disk may, so that a kill often comes in the middle."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def write_once(self, fd: int, data: bytes | memoryview) -> int:
        piece = data[: self._rng.randrange(1, 3_000)]
        if len(piece) < len(data):
            time.sleep(0.0003)
        return os.write(fd, piece)


def write_for_ever(folder: str, name: str, seed: int, durability: str, out: int) -> None:
    """Append batches until somebody kills this process; tell `out` of each one that was acknowledged."""
    rng = random.Random(seed)
    disk = SlowDisk(rng) if rng.random() < 0.5 else Disk()
    home = Home(connect(folder, durability=durability, disk=disk))
    session = home.resume(rng.choice(SESSIONS))
    number = 0
    while True:
        number += 1
        batch = f"{name}.{number}"
        done = session.append(*_drafts(batch, rng), rebase=True)
        entries = done if isinstance(done, list) else [done]
        seqs = ",".join(str(entry.seq) for entry in entries)
        os.write(out, f"{session.id} {batch} {seqs}\n".encode())


class Nursery:
    """Keeps writers alive and kills them."""

    def __init__(self, folder: str, seed: int, durability: str) -> None:
        self._folder = folder
        self._durability = durability
        self._rng = random.Random(seed)
        self._out, self._in = os.pipe()
        self._alive: list[int] = []
        self._born = 0
        self._heard = b""

    def run(self, kills: int, writers: int) -> bytes:
        for _ in range(kills):
            while len(self._alive) < writers:
                self._bear()
            self._listen(self._rng.uniform(0.005, 0.07))
            self._kill(self._rng.choice(self._alive))
        while self._alive:
            self._kill(self._alive[0])
        os.close(self._in)
        while chunk := os.read(self._out, 1 << 16):
            self._heard += chunk
        return self._heard

    def _bear(self) -> None:
        self._born += 1
        seed = self._rng.getrandbits(32)
        child = os.fork()
        if child == 0:
            os.close(self._out)
            try:
                write_for_ever(self._folder, f"w{self._born}", seed, self._durability, self._in)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        self._alive.append(child)

    def _kill(self, child: int) -> None:
        self._alive.remove(child)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            while self._alive:
                os.kill(self._alive.pop(), signal.SIGKILL)
            sys.exit(f"writer {child} ended by itself")

    def _listen(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._out], [], [], left)[0]:
                self._heard += os.read(self._out, 1 << 16)


def kill_loop(folder: str, seed: int, *, kills: int, writers: int, durability: str) -> Iterator[Ack]:
    """Run the loop in a process of its own."""
    arguments = [folder, str(seed), str(kills), str(writers), durability]
    done = subprocess.run(
        [sys.executable, "-m", "tests.store.killlab", *arguments],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, check=False, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise AssertionError(f"seed {seed}: {done.stderr}")
    for line in done.stdout.splitlines():
        session, batch, seqs = line.split()
        yield Ack(session, batch, [int(seq) for seq in seqs.split(",")])


def check_kills(folder: str, acks: list[Ack]) -> dict[str, int]:
    """Hold what is in the logs against what was acknowledged. Returns what there is to count."""
    counts = {"acknowledged": len(acks), "entries": 0, "damaged": 0}
    home = turnlog.open(folder)
    for session_id in SESSIONS:
        session = home.resume(session_id)
        entries = list(session.entries())
        seqs = [entry.seq for entry in entries]
        assert seqs == sorted(set(seqs)), f"{session_id}: seqs do not increase"
        found: dict[str, dict[str, int]] = {}
        for entry in entries:
            text = entry.text if isinstance(entry, Note) else ""
            if isinstance(entry, Message):
                text = entry.blocks[0].text
            if text:
                assert text == text_of(entry.id, len(text)), f"{session_id}: entry {entry.seq} is not what was appended"
                batch = found.setdefault(entry.id.partition("/")[0], {})
                assert entry.id not in batch, f"{session_id}: {entry.id} is there twice"
                batch[entry.id] = entry.seq
        for batch, members in found.items():
            count = int(next(iter(members)).rpartition("/")[2])
            assert len(members) == count, f"{session_id}: {len(members)} of the {count} entries of batch {batch}"
        for ack in acks:
            if ack.session == session_id:
                assert ack.batch in found, f"{session_id}: the acknowledged batch {ack.batch} is lost"
                assert list(found[ack.batch].values()) == ack.seqs, f"{session_id}: batch {ack.batch} has other seqs"
        nodes = {entry.seq for entry in entries if entry.parent is not None}
        assert len(session.messages()) == len(nodes), f"{session_id}: the conversation is not one path"
        session.note("after all that")
        assert [entry.id for entry in home.resume(session_id).entries()][: len(entries)] == [e.id for e in entries]
        counts["entries"] += len(entries)
        counts["damaged"] += len(session.damage)
    home.close()
    return counts


def main() -> None:
    folder, seed, kills, writers, durability = sys.argv[1:]
    heard = Nursery(folder, int(seed), durability).run(int(kills), int(writers))
    sys.stdout.write(heard.rpartition(b"\n")[0].decode())


if __name__ == "__main__":
    main()
