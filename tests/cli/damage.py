"""Every kind of damage, done to a log."""

import zlib
from collections.abc import Callable

Change = Callable[[bytes], bytes]
HURT = 5
"""The line that is hurt: entry 6, a tool's result."""


def sealed(text: bytes) -> bytes:
    """A line with a checksum that holds, whatever it says."""
    return b'%b,"c":"%08x"}' % (text, zlib.crc32(text))


def to_line(change: Callable[[bytes], bytes], number: int = HURT) -> Change:
    def apply(log: bytes) -> bytes:
        lines = log.split(b"\n")
        lines[number] = change(lines[number])
        return b"\n".join(lines)

    return apply


def glue(log: bytes, *, keep: int | None) -> bytes:
    lines = log.split(b"\n")
    lines[HURT : HURT + 2] = [lines[HURT][:keep] + lines[HURT + 1]]
    return b"\n".join(lines)


def resealed(old: bytes, new: bytes) -> Change:
    return to_line(lambda line: sealed(line[:-16].replace(old, new)))


# kind, what is done, whether the entry is still used (so that a repair leaves its line alone), entries that are lost
DAMAGE: dict[str, tuple[str, Change, bool, set[int]]] = {
    "torn in the middle": ("torn", to_line(lambda line: line[:70]), False, {6}),
    "garbage": ("garbled", to_line(lambda line: b"\xde\xad\xbe\xef" * 20), False, {6}),
    "NUL bytes": ("nul", to_line(lambda line: b"\0" * len(line)), False, {6}),
    "glued to a torn one": ("spliced", lambda log: glue(log, keep=70), False, {6}),
    "glued to a whole one": ("spliced", lambda log: glue(log, keep=None), False, set()),
    "bad UTF-8": ("utf8", to_line(lambda line: line.replace(b"1 failed", b"\xff failed")), True, set()),
    "half a character": ("surrogate", resealed(b"1 failed", b"\\ud800 failed"), True, set()),
    "NaN": ("number", resealed(b'"1 failed"', b'"1 failed","duration_ms":NaN'), True, set()),
    "a field twice": ("duplicate", to_line(lambda line: b'{"role":"tool",' + line[1:]), True, set()),
    "100,000 levels": ("deep", to_line(lambda line: line[:-1] + b',"x":' + b"[" * 100_000), False, {6}),
    "17 MiB": ("oversize", to_line(lambda line: line + b"x" * (17 << 20)), False, {6}),
    "edited": ("edited", to_line(lambda line: line.replace(b"1 failed", b"0 failed")), True, set()),
    "no entry": ("shape", to_line(lambda line: b'{"hello":"world"}'), False, {6}),
    "copied": ("order", lambda log: b"\n".join([*log.split(b"\n")[:8], *log.split(b"\n")[3:]]), False, set()),
    "the first line torn": ("torn", to_line(lambda line: line[:50], 0), False, {1}),
    "torn at the end": ("torn", lambda log: log[:-30], False, {12}),
    "without its line end": ("torn", lambda log: log[:-1], True, set()),
    "NUL bytes at the end": ("torn", lambda log: log + b"\0" * 4096, False, set()),
    "a batch cut short": ("unfinished", lambda log: b"\n".join(log.split(b"\n")[:10]) + b"\n", False, {9, 10, 11, 12}),
    "a batch torn later": ("torn", to_line(lambda line: line[:40], 9), False, {10}),
    "an unknown line of blanks": ("garbled", to_line(lambda line: b"  x  "), False, {6}),
}
