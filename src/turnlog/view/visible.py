"""Untrusted text made safe to look at: nothing in it may move a cursor or deceive the eye. And how wide text is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

UNSEEN = (
    "\x7f-\x9f"  # DEL and C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u2028\u2029"  # line and paragraph separators
    "\u00ad\u034f\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # what takes no room
    "\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\uffa0"  # letters that are blank
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # the same, tags among them
)
"""What is not seen, or makes the eye see something else: for a class of a regular expression."""
_JOINERS = "\u200c\u200d"
"""Persian and families of emoji need them. Beside a letter of ASCII they only hide."""
# Patterns are compiled where something is not plain ASCII: most listings are, and wait for none of it.
_UNSAFE = (
    f"[\x00-\x08\x0b-\x1f{UNSEEN}\ud800-\udfff]"  # C0 but for tab and newline; surrogates
    f"|(?<![^\x00-\x7f])[{_JOINERS}]|[{_JOINERS}](?![^\x00-\x7f])"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]"  # one chooses how a character looks, more are a message
)
_BLANKED = bytes(32 if byte in b"\t\n" or 32 <= byte < 127 else 1 if byte < 128 else byte for byte in range(256))
_SHELL = r"[\x00-\x1f]"
_COLOUR = r"\x1b\[[0-9;:]{0,40}m"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def safe(text: str) -> str:
    """The text with everything escaped that is not plainly visible. Lines and tabs stay."""
    return text if is_safe(text) else re.sub(_UNSAFE, _escaped, text)


def is_safe(text: str) -> bool:
    """Whether everything in a text is plainly visible."""
    if text.isascii() and text.isprintable():
        return True
    return not any(map(re.compile(_UNSAFE).search, odd_parts(text.encode("utf-8", "surrogatepass"))))


def odd_parts(text: bytes) -> set[str]:
    """What there is in a text beside plain ASCII, each stretch once; what drives a terminal stands there as `\\x01`.

    That is little, and mostly the same over and over: a look at it takes a fraction of the time. Which letters of ASCII
    stand beside a stretch makes no difference to what is unsafe in it.
    """
    return {part.decode("utf-8", "surrogatepass") for part in set(text.translate(_BLANKED).split())}


def one_line(text: str) -> str:
    """The text on one line, made safe."""
    return safe(" ".join(text.split()) if "\n" in text or "\t" in text or "  " in text else text)


def quoted(word: str) -> str:
    """A word for a shell, exactly; what a terminal would not show as it is stands as `$'\\033'`."""
    import shlex  # takes longer to import than many a command to answer

    if safe(word) == word and not re.search(_SHELL, word):
        return shlex.quote(word)
    escaped = (chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\{byte:03o}" for byte in os.fsencode(word))
    return f"$'{''.join(escaped)}'"


def readable(text: str) -> str:
    """What a program printed, made safe: line ends as here, and without the colours it had."""
    if "\x1b" in text:
        text = re.sub(_COLOUR, "", text)
    return safe(text.replace("\r\n", "\n") if "\r" in text else text)


# ── width ─────────────────────────────────────────────────────────────────────────────────────────


_NARROW = "[ -~\xa0-\xac\xae-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u2190-\u21ff\u2500-\u259f]*"
"""Letters and signs of one column each: most texts have nothing else, and need no table, which takes 25 ms to load."""


def width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    if text.isascii() or re.fullmatch(_NARROW, text):
        return len(text)
    from wcwidth import width as measured

    return measured(text)


def characters(text: str) -> Iterable[str]:
    """What a person calls a character: a letter with its accents, a whole family of emoji."""
    if text.isascii() or re.fullmatch(_NARROW, text):
        return text
    from wcwidth import iter_graphemes

    return iter_graphemes(text)


def beginning(text: str, room: int) -> str:
    """As many whole characters of a text as fit into this many columns."""
    return text[: _fitting(characters(text), room)]


def ending(text: str, room: int) -> str:
    """The same of its end."""
    return text[len(text) - _fitting(reversed(list(characters(text))), room) :]


def _fitting(some: Iterable[str], room: int) -> int:
    length = 0
    for character in some:
        room -= width(character)
        if room < 0:
            break
        length += len(character)
    return length


def path_line(text: str) -> str:
    """The text on one line, made safe. In a path blanks count: they stay as they are."""
    return safe(text).replace("\n", "\\x0a").replace("\t", "\\x09")


def in_lines(text: str, room: int) -> list[str]:
    """A text in lines of at most this many columns. A word is never broken: it may be something to copy."""
    lines: list[str] = []
    used = 0
    for word in text.split():
        size = width(word)
        if lines and used + 1 + size <= room:
            lines[-1] += f" {word}"
            used += 1 + size
        else:
            lines.append(word)
            used = size
    return lines


def clip(text: str, room: int) -> str:
    """A text truncated to this many columns, with an ellipsis if something was left out."""
    if width(text) <= room:
        return text
    return beginning(text, room - 1).rstrip() + "…"
