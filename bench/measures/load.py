"""The whole conversation of 2,000 messages, beside a plain loop over the same file."""

import zlib
from pathlib import Path

import msgspec

import turnlog
from bench.ground import Ground, log_of
from bench.measures import Row, ratio, take_turns
from turnlog.log.entry import AnyEntry

TITLE = "full load of 2,000 messages"
MESSAGES = 2_000
ROUNDS = 40


def measure(ground: Ground) -> list[Row]:
    folder = ground.folder / "load"
    with turnlog.open(folder, durability="flush") as home:
        session = home.create(id="load", workspace=folder)
        ground.fill(session, MESSAGES, single=MESSAGES)

    def load() -> list[turnlog.Message]:
        with turnlog.open(folder) as home:
            return home.resume("load").messages()

    log = log_of(folder, "load")
    messages = [entry for entry in plain(log) if isinstance(entry, turnlog.Message)]
    if load() != messages or len(messages) != MESSAGES:
        raise SystemExit("the load and the plain loop do not agree")
    times = take_turns({"resume().messages()": load, "plain loop": lambda: plain(log)}, rounds=ROUNDS, warm=2)
    return [ratio(TITLE, times, "resume().messages()", "plain loop", bar=1.5, bytes=log.stat().st_size)]


_decode = msgspec.json.Decoder(AnyEntry).decode


def plain(path: Path) -> list[AnyEntry]:
    """Read the file, split it, check the CRC, decode typed."""
    entries: list[AnyEntry] = []
    for line in path.read_bytes().split(b"\n"):
        if line:
            text = line[:-16]
            if zlib.crc32(text) != int(line[-10:-2], 16):
                raise ValueError("checksum")
            entries.append(_decode(text + b"}"))
    return entries
