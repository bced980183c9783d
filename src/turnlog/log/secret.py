"""Secrets in facts: values under certain names are replaced with `[secret]` before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

MASK = "[secret]"
_NAMES = frozenset((
    "bearer", "authorization", "proxyauthorization", "passwd", "pwd", "secret", "credential", "credentials", "cookie",
    "setcookie", "accesskey", "signingkey", "encryptionkey",
))  # fmt: skip
_ENDINGS = ("token", "apikey", "secretkey", "secretaccesskey", "clientsecret", "password", "passphrase", "privatekey")


def is_secret_name(name: str) -> bool:
    """Whether a value under that name is a secret: `api_key`, `Authorization`, `OPENAI_API_KEY` …"""
    plain = "".join(c for c in name.lower() if c.isalnum())
    return plain in _NAMES or plain.endswith(_ENDINGS)


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

_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
_ASSIGNED = (
    r"(?<![\w.-])-{0,2}([A-Za-z_][\w.-]*)[\"']?\s*[=:]\s*"
    rf"({_QUOTED}|(?:(?:Bearer|Basic|Token)\s+)?[^\s\"';,&|}}]+)"
)
_FOLLOWED = rf"(?<![\w-])--?([A-Za-z][\w-]*)\s+({_QUOTED}|[^\s-]\S*)"
_USERINFO = r"(://[^/\s:@]*:)[^/\s@]+(?=@)"


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
    for pattern in (_ASSIGNED, _FOLLOWED):
        text = re.sub(pattern, _masked, text)
    return re.sub(_USERINFO, rf"\1{MASK}", text)


def _masked(match: re.Match[str]) -> str:
    name, value = match.groups()
    if not is_secret_name(name):
        return match.group()
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match.group()[: -len(value)]}{quote}{MASK}{quote}"
