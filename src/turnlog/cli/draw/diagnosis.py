"""What `doctor` finds in a log, in plain words."""

from __future__ import annotations

import re

from turnlog.store.capability import Region

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
    count = last - first + 1 - len(region.inside)
    if count <= 0:
        return f"{saved}Nothing is lost: no number is missing between entries {region.older} and {region.newer}."
    if count == 1:
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
