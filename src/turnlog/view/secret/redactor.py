"""Secrets taken out of what is to be shown to others: keys, tokens, authorization headers, private keys, passwords.

A text is looked through for words that secrets begin with or stand behind, and a pattern is tried only there. Every
repetition in a pattern has an upper limit, so the work grows with the text and not with its square.

What was found once is taken out wherever else it stands, also where nothing around it would tell: so a session is read
twice, `learn` first and `entry` or `text` then. `pattern` knows what secrets look like, `assignment`
under which names they stand.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from turnlog.log.codec import body_text, decode_body
from turnlog.log.entry import AnyEntry, Unknown
from turnlog.view.secret.assignment import SHORTEST, is_strong, named_secret
from turnlog.view.secret.pattern import spots
from turnlog.view.secret.personal import names_in, personal
from turnlog.view.secret.spot import Spot

_LEAST = 8
"""A shorter value is not looked for elsewhere: it would be found in other words."""
_LONGEST = 4096
_MOST = 1000
_PAYLOADS = frozenset(["data", "signature", "thoughtSignature", "thought_signature", "encrypted_content"])
"""Fields with base64 in them, of pictures and of providers: long, and nobody's secret."""
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]*")


class Redactor:
    """Takes secrets out, and personal data of the kinds in `also`; counts what it took out, by kind."""

    def __init__(self, also: Collection[str] = ()) -> None:
        self.counts: Counter[str] = Counter()
        self._known: dict[str, str] = {}
        self._also = also
        self._names: set[str] = set()

    def replacement(self, kind: str) -> str:
        """What stands in the place of a secret."""
        return f"[redacted: {kind}]"

    # ── looking ───────────────────────────────────────────────────────────────────────────────────

    def learn(self, entry: AnyEntry) -> None:
        """Remember the secrets of an entry, so that they are found elsewhere, too."""
        self.learn_value(msgspec.json.decode(body_text(entry)))

    def learn_value(self, value: Any, name: str = "") -> None:
        """Remember the secrets of any JSON; `name` is the field that it stands in."""
        if isinstance(value, str):
            self._learn_text(value, name)
        elif isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            for key, item in fields.items():
                self._learn_text(key, "")
                self.learn_value(item, _name_of(key, fields))
        elif isinstance(value, list):
            for run in _runs(cast("list[Any]", value)):
                if len(run) > 1:
                    self._learn_text("".join(item["text"] for item in run), "")
                for item in run:
                    self.learn_value(item, name)

    def _learn_text(self, text: str, name: str) -> None:
        if _is_no_secret(text, name):
            return
        kind = named_secret(name, text)
        if kind:  # a credential may stand elsewhere without the scheme before it
            self._remember(text.rpartition(" ")[2] if kind == "authorization header" else text, kind)
        for start, end, kind in spots(text):
            self._remember(text[start:end], kind)
        if self._also:
            self._names.update(names_in(text))

    def _remember(self, secret: str, kind: str) -> None:
        if _LEAST <= len(secret) <= _LONGEST and len(self._known) < _MOST and is_strong(secret, kind):
            self._known.setdefault(secret, kind)

    def _spots(self, text: str) -> list[Spot]:
        found_spots = list(spots(text))
        if self._also:
            found_spots += personal(text, self._also, self._names)
        for secret, kind in self._known.items():
            start = text.find(secret)
            while start >= 0:
                found_spots.append(Spot(start, start + len(secret), kind))
                start = text.find(secret, start + len(secret))
        return _apart(found_spots)

    # ── taking out ────────────────────────────────────────────────────────────────────────────────

    def text(self, text: str) -> str:
        """A text without its secrets."""
        found_spots = self._spots(text)
        if not found_spots:
            return text
        parts: list[str] = []
        at = 0
        for start, end, kind in found_spots:
            parts += [text[at:start], self.replacement(kind)]
            self.counts[kind] += 1
            at = end
        return "".join([*parts, text[at:]])

    def texts(self, pieces: list[str]) -> list[str]:
        """Pieces that follow on each other without their secrets, also those that a boundary cuts in two."""
        if len(pieces) < 2:
            return [self.text(piece) for piece in pieces]
        whole = "".join(pieces)
        found_spots: list[Spot] = list(self._spots(whole))
        starts: list[int] = []
        at = 0
        for piece in pieces:
            starts.append(at)
            found_spots += [Spot(at + start, at + end, kind) for start, end, kind in self._spots(piece)]
            at += len(piece)
        results: list[str] = []
        counted_starts: set[int] = set()
        for begin, piece in zip(starts, pieces, strict=True):
            parts: list[str] = []
            at = begin
            for start, end, kind in _within(_apart(found_spots), begin, begin + len(piece)):
                parts.append(whole[at : max(at, start)])
                if start not in counted_starts:
                    counted_starts.add(start)
                    self.counts[kind] += 1
                    parts.append(self.replacement(kind))
                at = min(end, begin + len(piece))
            results.append("".join([*parts, whole[at : begin + len(piece)]]))
        return results

    def entry(self, entry: AnyEntry) -> AnyEntry:
        """An entry without its secrets, in whatever field they were."""
        plain = msgspec.json.decode(body_text(entry))
        clean = self.value(plain)
        if clean is plain:
            return entry
        data = msgspec.json.encode(clean)
        return replace(entry, json=data.decode()) if isinstance(entry, Unknown) else decode_body(data, entry)

    def value(self, value: Any, name: str = "") -> Any:
        """Any JSON without its secrets; the same object if there were none. `name` is the field that it stands in."""
        if isinstance(value, str):
            return self._string(value, name)
        if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            clean: dict[str, Any] = {}
            for key, item in fields.items():
                clean[_unused(self._string(key, ""), clean)] = self.value(item, _name_of(key, fields))
            return fields if clean == fields else clean
        if isinstance(value, list):
            items = cast("list[Any]", value)
            clean_items: list[Any] = []
            for run in _runs(items):
                if len(run) == 1:
                    clean_items.append(self.value(run[0], name))
                else:
                    rest = [self.value({**item, "text": ""}, name) for item in run]
                    texts = self.texts([item["text"] for item in run])
                    clean_items += [{**item, "text": text} for item, text in zip(rest, texts, strict=True)]
            return items if clean_items == items else clean_items
        return value

    def _string(self, text: str, name: str) -> str:
        if _is_no_secret(text, name):
            return text
        kind = named_secret(name, text)
        if not kind:
            return self.text(text)
        self.counts[kind] += 1
        return self.replacement(kind)

    # ── saying so ─────────────────────────────────────────────────────────────────────────────────

    @property
    def summary(self) -> str:
        """What was taken out: `2 × API key, 1 × private key`; empty where nothing was."""
        return in_words(self.counts)


def without_last_word(text: str) -> str:
    """A text that was cut off, without its last word: of a secret that begins there, too little is left to see it."""
    kept = text.rpartition(" ")[0] if text.endswith("…") else ""
    return f"{kept} …" if kept else text


def in_words(counts: Counter[str]) -> str:
    """Kinds and how many of each, the most frequent first."""
    rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    return ", ".join(f"{number:,} × {kind}" for kind, number in rows if number)


def _is_no_secret(text: str, name: str) -> bool:
    """Whether that is too short for a secret, or a picture."""
    return len(text) < SHORTEST or (name in _PAYLOADS and len(text) > 256 and _BASE64.fullmatch(text) is not None)


def _name_of(key: str, fields: dict[str, Any]) -> str:
    """The name that a value has: its key, or, as the headers of an HTTP archive have it, the `name` beside `value`."""
    name = fields.get("name") if key == "value" else None
    return name if isinstance(name, str) else key


def _unused(key: str, names: Collection[str]) -> str:
    """The key, with a number if another field has the same one by now."""
    number, unused = 1, key
    while unused in names:
        number += 1
        unused = f"{key} {number}"
    return unused


def _runs(items: list[Any]) -> Iterator[list[Any]]:
    """Each item by itself, but neighbouring blocks of text together: a secret may go on in the next one."""
    run: list[Any] = []
    for item in items:
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        is_text = fields.get("type") == "text" and isinstance(fields.get("text"), str)
        if run and not is_text:
            yield run
            run = []
        if is_text:
            run.append(item)
        else:
            yield [item]
    if run:
        yield run


def _apart(spots: Iterable[Spot]) -> list[Spot]:
    """The spots in order, those that overlap as one, under the name of the first."""
    result: list[Spot] = []
    for spot in sorted(spots, key=lambda spot: (spot.start, -spot.end)):
        if result and spot.start < result[-1].end:
            last = result[-1]
            result[-1] = Spot(last.start, max(last.end, spot.end), last.kind)
        else:
            result.append(spot)
    return result


def _within(spots: list[Spot], begin: int, end: int) -> list[Spot]:
    """The spots that reach into a stretch."""
    return [spot for spot in spots if spot.start < end and spot.end > begin]
