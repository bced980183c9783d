"""Durable appends of 2 KB beside the same bytes written and synced by hand."""

import fcntl
import os
import statistics
import time
import zlib
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import Any

import msgspec

import turnlog
from bench.ground import USAGE, Ground, log_of, prose
from bench.measures import Row
from turnlog import Session, Text, ToolCall

TITLE = "durable append, 2 KB entries"
ROUNDS = 80
BLOCK = 60
WARM = 6

Times = list[float]


def measure(ground: Ground) -> list[Row]:
    """Each round has a new session and new files: where a file lies on the disk changes what a sync costs."""
    folder = ground.folder / "append"
    blocks: dict[str, list[Times]] = {"turnlog": [], "raw": [], "protocol": []}
    lines: list[bytes] = []
    with turnlog.open(folder) as home:
        for number in range(-1, ROUNDS):
            with (
                home.create(id=f"s{number + 1}", workspace=folder) as session,
                open(folder / f"raw{number}", "ab", buffering=0) as raw,
                open(folder / f"protocol{number}", "ab", buffering=0) as bare,
            ):
                jobs = {"turnlog": _appends(session), "raw": _raw(raw, lines), "protocol": _protocol(bare)}
                turn = number % len(jobs)
                names = list(jobs)
                for name in names[turn:] + names[:turn]:
                    times = _time(jobs[name])
                    if number >= 0:
                        blocks[name].append(times)
                lines = _messages(log_of(folder, session.id))
    return [_row("one append, p50", blocks, statistics.median, lines), _row("in all", blocks, statistics.fmean, lines)]


def _row(name: str, blocks: dict[str, list[Times]], of: Callable[[Times], float], lines: list[bytes]) -> Row:
    each = {key: [of(times) for times in rounds] for key, rounds in blocks.items()}
    rounds = [theirs / ours for ours, theirs in zip(each["turnlog"], each["raw"], strict=True)]
    floor = statistics.median(theirs / bare for bare, theirs in zip(each["protocol"], each["raw"], strict=True))
    return Row(
        f"{TITLE}: {name}",
        f"turnlog: {statistics.median(each['turnlog']) * 1e6:.0f} µs",
        f"write + fdatasync: {statistics.median(each['raw']) * 1e6:.0f} µs",
        statistics.median(rounds),
        "x",
        0.8,
        at_least=True,
        rounds=rounds,
        facts={
            "line_bytes": round(statistics.fmean(len(line) for line in lines)),
            "protocol_ratio": floor,
            **{f"{key}_us": [round(value * 1e6, 1) for value in values] for key, values in each.items()},
        },
        note=f"a bare loop of Python that encodes, reads back, locks, checks the file, writes, unlocks and syncs, "
        f"and does nothing else, reaches {floor:.2f}x",
    )


def _appends(session: Session) -> list[Callable[[], Any]]:
    """Appends of all three roles, by the methods that people call; every line has about 2 KB."""
    ask, answer, result = prose(1_870), prose(1_600), prose(1_820)
    call = ToolCall(id="call_1", name="bash", input={"command": "pytest -x"})

    def assistant() -> None:
        session.assistant([Text(answer), call], model="claude-sonnet-4-5", usage=USAGE)

    kinds = (lambda: session.user(ask), assistant, lambda: session.tool_result("call_1", result))
    return [kinds[index % 3] for index in range(WARM + BLOCK)]


def _messages(log: Path) -> list[bytes]:
    lines = log.read_bytes().splitlines(keepends=True)
    return [line for line in lines if line.startswith(b'{"type":"message"')]


def _raw(file: FileIO, lines: list[bytes]) -> list[Callable[[], Any]]:
    """The reference: the lines are there, and nothing is asked of them."""
    fd = file.fileno()

    def append(line: bytes) -> None:
        os.write(fd, line)
        os.fdatasync(fd)

    return [lambda line=line: append(line) for line in lines]


def _protocol(file: FileIO) -> list[Callable[[], Any]]:
    """The steps of the protocol and no books: an orientation, not a limit, for it pushes nothing."""
    fd, name = file.fileno(), str(file.name)
    text = prose(1_820)
    encode = msgspec.json.encode
    decode = msgspec.json.Decoder(turnlog.Message).decode

    def append() -> None:
        body = encode(turnlog.Message(role="user", blocks=[Text(text)]))
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(name)
        stamped = b'%b,"seq":1234,"at":"2026-11-15T07:00:12.345Z","parent":1233%b' % (body[:17], body[17:-1])
        line = b'%b,"c":"%08x"}\n' % (stamped, zlib.crc32(stamped))
        decode(stamped + b"}")
        os.write(fd, line)
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.fdatasync(fd)

    return [append] * (WARM + BLOCK)


def _time(jobs: list[Callable[[], Any]]) -> Times:
    times: Times = []
    for job in jobs:
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return times[WARM:]
