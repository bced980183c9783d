"""Draws what `doctor` found, in plain words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from turnlog.log.ids import handle_of
from turnlog.reader.checkup import Checkup
from turnlog.store.capability import Region
from turnlog.view.number import count, size
from turnlog.view.visible import in_lines, one_line, quoted

_SHOWN = 20
_READABLE = 85
"""How many columns of text are easy to read."""
_NAMED = ("backend", "location", "ok")

_BEGINNING = re.compile(r'\{"type":"([a-z_]{1,40})","seq":(\d{1,18})[,}]')

_MEANING = {
    "torn": "The line breaks off in the middle: a write was cut short, or part of the line was lost later.",
    "garbled": "These bytes are not JSON: something other than Turnlog wrote them, or the disk gave back others.",
    "nul": "The line holds NUL bytes: a power cut leaves them where data never reached the disk.",
    "spliced": "Lines were glued together: one was cut off, and the next was written right after it.",
    "utf8": "The line holds bytes that are not UTF-8.",
    "surrogate": "The line holds half a character (a lone surrogate), which is not Unicode.",
    "number": "The line holds a number that JSON does not have: NaN, infinite, or too large.",
    "duplicate": "A field occurs twice in the line, so it can be read in two ways.",
    "deep": "The line is nested deeper than any reader should follow.",
    "oversize": "The line is longer than 16 MiB: no Turnlog wrote it.",
    "edited": "The line is well formed, but its checksum does not match: it was changed after it was written.",
    "shape": "The line is JSON, but not an entry: its type, seq or id is missing or impossible.",
    "order": "The number of this entry does not follow the one before it: the line was copied or moved here.",
    "unfinished": "The line belongs to a batch of which the rest is missing.",
}
_FIXED = {
    "utf8": "with � in place of the bad bytes",
    "surrogate": "with ? in its place",
    "number": "with null in its place",
    "duplicate": "with the last of the values",
}


def meaning(region: Region) -> str:
    """Return what kind of damage this is."""
    if region.is_last and region.is_used:
        return "The last line is whole and only lacks its line end: its writer was killed a moment too early."
    if region.is_last and region.sample.startswith("\0"):
        return f"The log ends in NUL bytes without a line end. {_MEANING['nul'].partition(': ')[2].capitalize()}"
    return _MEANING.get(region.kind, "These bytes are not what was written.")


def loss(region: Region) -> str:
    """Return what was lost by the damage."""
    if region.is_used:
        if region.is_last:
            return f"Nothing is lost: the next writer ends the line, and entry {region.seq} counts."
        fixed = f" {_FIXED[region.kind]}" if region.kind in _FIXED else ""
        return f"Nothing is left out: entry {region.seq} is used{fixed}, and marked as unverified."
    if region.kind == "order":
        if region.is_stray:
            return f"Entry {region.seq} is not read. It is nowhere else, so a repair leaves the line where it is."
        return f"Nothing is lost: entry {region.seq} counts in its own place."
    if region.kind == "unfinished":
        return "Nothing acknowledged is lost: a batch counts whole or not at all, and this one was never finished."
    if region.newer is None and region.is_last:
        was = _was(region)
        return (
            "Nothing acknowledged is lost if a crash left this: an entry is acknowledged when its whole line is on the "
            f"disk.{f' It was going to be {was}.' if was else ''}"
        )
    return _missing(region)


def _missing(region: Region) -> str:
    saved = ""
    if region.inside:
        several = len(region.inside) > 1
        names = " and ".join(map(str, region.inside)) if len(region.inside) < 4 else f"{len(region.inside)} of them"
        saved = f"{'Entries' if several else 'Entry'} {names} on that line {'are' if several else 'is'} whole. "
    if region.newer is None:
        return f"{saved}Whatever came after entry {max([region.older, *region.inside])} is lost."
    first, last = region.older + 1, region.newer - 1
    missing = last - first + 1 - len(region.inside)
    if missing <= 0:
        return f"{saved}Nothing is lost: no number is missing between entries {region.older} and {region.newer}."
    if missing == 1:
        seq = next(number for number in range(first, last + 1) if number not in region.inside)
        was = _was(region, seq)
        return f"{saved}Entry {seq}{f', {was},' if was else ''} is lost. Everything else can be read."
    return f"{saved}Entries {first} to {last} are lost, as far as these numbers were used."


def _was(region: Region, seq: int = 0) -> str:
    """What these bytes began as, if they still tell."""
    match = _BEGINNING.match(region.sample)
    if match is None or (seq and int(match[2]) != seq):
        return ""
    kind = f"{'an' if match[1][0] in 'aeiou' else 'a'} {match[1]}"
    return kind if seq else f"entry {match[2]}, {kind}"


def checkup_lines(checkups: list[Checkup], damaged: frozenset[str], *, can_repair: bool) -> Iterator[str]:
    """Yield what is wrong with each session, the damaged blobs, and a sum. `can_repair`: whether to offer a repair."""
    bad = [checkup for checkup in checkups if not checkup.is_sound]
    for checkup in bad:
        yield from _describe(checkup, can_repair=can_repair)
        yield ""
    for digest in sorted(damaged):
        yield f"blob {digest} is damaged: restore its pack from a backup"
    entries, total = sum(c.entries for c in checkups), sum(c.size_bytes for c in checkups)
    weight = f", {size(total)}" if total else ""
    examined = f"{count(len(checkups), 'session')}, {count(entries, 'entry', 'entries')}{weight} examined"
    newer = sum(checkup.is_newer for checkup in bad)
    wrong = sum(not checkup.is_well for checkup in bad) - newer
    repaired = sum(checkup.repaired is not None for checkup in bad)
    words = [
        f"{repaired} repaired" if repaired else "",
        f"{count(wrong, 'session')} with something wrong" if wrong else "",
        count(len(damaged), "damaged blob") if damaged else "",
        f"{count(newer, 'session')} of a newer Turnlog" if newer else "",
    ]
    yield f"{examined}: {', '.join(filter(None, words)) or 'nothing wrong'}"
    unknown = sum((Counter(checkup.unknown) for checkup in checkups), Counter[str]())
    if unknown:
        kinds = ", ".join(f"{kind} ({number:,})" for kind, number in unknown.most_common(_SHOWN))
        yield one_line(f"kept, and not shown: {count(unknown.total(), 'record')} of types that are not known: {kinds}")


def store_lines(store: dict[str, Any]) -> Iterator[str]:
    """Yield what a store that keeps no files says of itself."""
    if not store:
        return
    facts = [f"{name.replace('_', ' ')} {_word(value)}" for name, value in store.items() if name not in _NAMED]
    yield one_line(f"{store['location']}: {'works' if store['ok'] else 'SOMETHING IS WRONG WITH IT'}")
    yield from _wrapped(", ".join(facts), indent="  ")
    yield ""


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _describe(checkup: Checkup, *, can_repair: bool) -> Iterator[str]:
    name = handle_of(checkup.id)
    yield f"{one_line(name)}  {one_line(checkup.title or '')}".rstrip()
    if checkup.path:
        yield f"  {one_line(checkup.path)}"
    for number, region in enumerate(checkup.regions[:_SHOWN], start=1):
        yield ""
        yield from _describe_region(number, region)
    if len(checkup.regions) > _SHOWN:
        yield f"\n  … and {count(len(checkup.regions) - _SHOWN, 'more region')}; --json has them all"
    for finding in checkup.findings:
        yield f"\n  {finding.kind}"
        yield from _wrapped(finding.text)
    yield ""
    if checkup.repaired is not None:
        blanked = checkup.repaired.blanked_bytes
        what = f"{count(blanked, 'damaged byte')} left out" if blanked else "the missing line end put in"
        yield f"  repaired: {what}, every other line untouched"
        yield f"  original kept: {one_line(_short(checkup.repaired.original))}"
        yield f"  entry {checkup.repaired.note} of the log records it"
        if checkup.left:
            yield f"  left as it is: {count(checkup.left, 'thing')} that a repair does not touch"
    elif not checkup.is_repairable:
        yield "  a repair would change nothing here"
    elif can_repair:
        yield f"  turnlog doctor {quoted(name)} --repair   leaves it out, and keeps the original file"


def _short(path: str) -> str:
    """A path below the home folder, without the home folder."""
    return "/".join(path.rsplit("/", 2)[1:])


def _describe_region(number: int, region: Region) -> Iterator[str]:
    lines = f"lines {region.line} to {region.line + region.lines - 1}" if region.lines > 1 else f"line {region.line}"
    yield f"  {number}. {region.kind}: {count(region.length, 'byte')} at offset {region.offset:,}, {lines}"
    yield from _wrapped(meaning(region))
    yield from _wrapped(loss(region))


def _wrapped(text: str, indent: str = "     ") -> Iterator[str]:
    """Yield a text in lines of a readable length."""
    return (indent + line for line in in_lines(one_line(text), _READABLE) or [""])
