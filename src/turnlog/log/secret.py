"""Secrets in facts: values under certain names are replaced with `[secret]` before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from turnlog.log.startup import pattern

MASK = "[secret]"
_NAMES = frozenset((
    "bearer", "authorization", "proxyauthorization", "passwd", "pwd", "secret", "credential", "credentials", "cookie",
    "setcookie", "accesskey", "signingkey", "encryptionkey",
))  # fmt: skip
_ENDINGS = ("token", "apikey", "secretkey", "secretaccesskey", "clientsecret", "password", "passphrase", "privatekey")


def is_secret_name(name: str) -> bool:
    """Whether a value under that name is a secret: `api_key`, `Authorization`, `OPENAI_API_KEY` …"""
    plain = _plain(name)
    return plain in _NAMES or plain.endswith(_ENDINGS)


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum())


def mask(key: str, value: Any) -> tuple[Any, list[str]]:
    """Return the value with its secrets masked, and the places of the secrets."""
    names: list[str] = []
    masked = _mask(key, value, key, names)
    return (masked, names) if names else (value, names)


def _mask(name: str, value: Any, where: str, masked: list[str]) -> Any:
    if is_secret_name(name) and value not in (None, "", MASK) and not isinstance(value, bool):
        masked.append(where)
        return MASK
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _mask(str(key), item, f"{where}.{key}", masked) for key, item in items}
    if isinstance(value, (list, tuple)):
        items = enumerate(cast("list[Any]", value))
        return [_mask("", item, f"{where}[{index}]", masked) for index, item in items]
    return value


# ── command lines ─────────────────────────────────────────────────────────────────────────────────

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'?"
_ASSIGNED = pattern(
    r"(?<![\w.-])(?P<dashes>-{0,2})(?P<name>[A-Za-z_][\w.-]*)\\?[\"']?\s*(?P<sign>[=:])\s*\\?"
    rf"(?P<value>{_QUOTED}|(?:(?:Bearer|Basic|Token)\s+)?[^\s\"';,&|}}]+)"
)
_FOLLOWED = pattern(rf"(?<![\w-])(?P<dashes>--?)(?P<name>[A-Za-z][\w-]*)(?P<sign>\s)\s*(?P<value>{_QUOTED}|[^\s-]\S*)")
_USERINFO = pattern(r"(://[^/\s:@]*:)[^/\s@]+(?=@)")
_LONG_HEADERS = ("authorization", "cookie")
"""What the names of headers end in whose value may have spaces and semicolons."""


def mask_words(words: Iterable[str]) -> list[str]:
    """Mask the secrets in a command line, by the names of its options, variables and headers."""
    masked: list[str] = []
    is_value_of_secret = False
    for word in words:
        if is_value_of_secret and not word.startswith("--"):
            masked.append(MASK)
        else:
            masked.append(_mask_text(word))
        is_value_of_secret = word.startswith("-") and "=" not in word and " " not in word and is_secret_name(word)
    return masked


def _mask_text(text: str) -> str:
    for named in (_ASSIGNED, _FOLLOWED):
        text = _mask_values(named, text)
    return _USERINFO.sub(rf"\1{MASK}", text)


def _mask_values(named: re.Pattern[str], text: str) -> str:
    """Mask the values of secret names. The value of another name may hold a header or a variable, so it is searched."""
    parts: list[str] = []
    at = 0
    while match := named.search(text, at):
        start = match.start("value")
        parts.append(text[at:start])
        at = start
        if _names_secret(match):
            at = _end_of_value(match)
            quote = text[start] if text[start] in "\"'" and at == match.end() else ""
            parts.append(f"{quote}{MASK}{quote}")
    return "".join(parts) + text[at:]


def _names_secret(match: re.Match[str]) -> bool:
    name = match["name"]
    # The value of a short option may follow at once: `-HAuthorization: …`, `-eSECRET=…`.
    return is_secret_name(name) or (match["dashes"] == "-" and is_secret_name(name[1:]))


def _end_of_value(match: re.Match[str]) -> int:
    """Where the value of a secret ends: at the latest where the word does, or the quotes around it."""
    text = match.string
    if match["sign"] == "=" and match["dashes"] and match.start() == 0:
        return len(text)
    is_long = match["sign"] == ":" and _plain(match["name"]).endswith(_LONG_HEADERS)
    if not is_long or match["value"][0] in "\"'":
        return match.end()
    quote = _open_quote(text[: match.start()])
    end = text.find(quote, match.end()) if quote else -1
    return len(text) if end < 0 else end


def _open_quote(text: str) -> str:
    """The quotation mark that is open at the end of a text; empty if none is."""
    quote = ""
    for mark in re.findall(r"\\.|[\"']", text, re.DOTALL):
        if mark == quote:
            quote = ""
        elif not quote and mark in "\"'":
            quote = mark
    return quote
