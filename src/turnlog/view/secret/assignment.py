"""Secrets recognised by the name they are assigned to, `password = …`. Pure, and linear."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from turnlog.log.secret import is_secret_name
from turnlog.view.secret.placeholder import is_placeholder
from turnlog.view.secret.spot import Spot

SHORTEST = 4
"""The minimum number of characters of a secret that has a name."""


_NAMES = ("pass", "secret", "token", "key", "credential", "_auth", "signature", "pwd")
"""What names of secrets have in them."""
_ENDINGS = (
    "secret", "credential", "credentials", "accesskey", "accountkey", "signingkey", "encryptionkey", "authkey",
    "passwd", "password", "passphrase", "passcode", "pgpass", "xamzsignature", "sharedaccesskey",
)  # fmt: skip
_HARMLESS = ("pagetoken", "nexttoken", "continuationtoken", "cancellationtoken", "prompttoken", "eostoken", "bostoken")
_NAME = re.compile(r"[A-Za-z0-9_.-]{0,40}")
_ASSIGNED = re.compile(
    r"(?P<close>\\{0,3}[\"'`]?)"
    r"(?P<sign>\s{0,8}(?::=|=>|[:=])\s{0,8})"
    r"(?P<open>\\{0,3}(?:[bru]?[\"'`])?)"
)
_QUOTED = re.compile(r"[^\"'`\\\r\n]{4,4096}")
_BARE = re.compile(r"[^\s\"'`\\,;&|<>(){}\[\]]{6,4096}")
_OPTION = re.compile(r" {1,4}[\"']?(?P<secret>[^\s\"'`$<>{(-][^\s\"'`]{3,200})")
_STATED = re.compile(  # password is …, password for the shop was: …, password `…`
    r"(?: {1,2}(?:for|of|to|on|in) (?:[\w.@/-]{1,30} ){1,3}?)?"
    r"(?: {0,2}(?:is|was|will be)(?: now)?:? {1,2}| {0,2}: {1,2}| (?=[\"'`]))"
    r"(?P<open>[\"'`]?)(?P<secret>[^\s\"'`\\,;<>(){}\[\]]{5,200})(?P<close>[\"'`]?)",
    re.IGNORECASE,
)
_STATED_AFTER = (" is ", " is:", " was", " wil", " for", " of ", " to ", " on ", " in ", ' "', " '", " `")
_BEFORE_KEY = ("api ", "access ", "secret ", "auth ", "signing ", "encryption ")
_COOKIE = re.compile(r"[\w.-]{1,100}=[^\r\n]{6,4096}")
_TRIES = 4
_SIGNS = frozenset(":=\"'`\\\t\n")


def named_secret(name: str, value: str) -> str:
    """The kind of secret that a JSON value is because of its name; empty if it is none."""
    if not _is_name(name):
        return ""
    plain = _plain(name)
    if plain.endswith("authorization"):
        credential = value.rpartition(" ")[2]
        return "authorization header" if len(credential) >= 6 and not is_placeholder(credential) else ""
    value = value.strip()
    if plain in ("cookie", "setcookie") and _COOKIE.match(value):
        return "cookie"
    if len(value) < SHORTEST or value.startswith(("/", "~", "http")) or any(c.isspace() for c in value):
        return ""
    return "" if is_placeholder(value) else _kind(name)


def is_strong(value: str, kind: str) -> bool:
    """Whether a secret may be looked for elsewhere: it is no word that stands there for other reasons."""
    return kind not in ("password", "named secret", "token", "password in a URL") or _looks_random(value)


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c.isalnum()).rstrip("0123456789")


@lru_cache(maxsize=4096)
def _is_name(name: str) -> bool:
    plain = _plain(name)
    return (is_secret_name(plain) or plain.endswith(_ENDINGS)) and not plain.endswith(_HARMLESS)


def _kind(name: str) -> str:
    plain = _plain(name)
    return "password" if "pass" in plain or plain == "pwd" else "token" if "token" in plain else "named secret"


def assigned(text: str, lower: str) -> Iterator[Spot]:
    """Every secret that is given to a name; `lower` is the text in lower case, letter for letter.

    `at` is where a part of a name was found, `after` where that name ends. `seen` is how far values were looked at:
    of names that lie in such a value, only a few (`tries`) are looked at, or the work would grow with the square.
    """
    for part in _NAMES:
        at = lower.find(part)
        seen, tries = 0, 0
        while at >= 0:
            after = _NAME.match(text, at).end()  # pyright: ignore[reportOptionalMemberAccess]
            name = text[_begin(text, at) : after] if _may_follow(text, lower, at, after) else ""
            if name and _is_name(name.rpartition(".")[2]):
                tries = tries + 1 if after < seen else 0
                spot, end = _assigned_value(text, name, after)
                spot = spot or _stated_value(text, name, after)
                if spot is not None:
                    yield spot
                    after = max(after, spot.end)
                # `token:token:token:…`: values that are no secrets, each the rest of the one before
                seen = max(seen, end)
                after = seen if tries > _TRIES else after
            at = lower.find(part, after)


def _may_follow(text: str, lower: str, at: int, after: int) -> bool:
    """Whether a value may stand behind a name: a quick look, for most words are no names."""
    following = text[after : after + 1]
    if following == " ":
        if lower.startswith(_STATED_AFTER, after):
            return True
        return text[after : after + 10].lstrip()[:1] in (":", "=") or text.find("--", max(0, at - 40), at) >= 0
    return following in _SIGNS


def _begin(text: str, at: int) -> int:
    """Where the name begins that goes on there."""
    first = max(0, at - 40)
    while at > first and (text[at - 1].isalnum() or text[at - 1] in "_-"):
        at -= 1
    words = text[max(0, at - 11) : at].lower()
    return at - next((len(word) for word in _BEFORE_KEY if words.endswith(word)), 0)


def _assigned_value(text: str, name: str, after: int) -> tuple[Spot | None, int]:
    """The value that a name is given, `name = "…"`, `name: …`, `NAME=…`, `--name …`, and how far was looked."""
    match = _ASSIGNED.match(text, after)
    if match is None:
        option = _OPTION.match(text, after) if name.startswith("--") else None
        if option is None or is_placeholder(option["secret"]) or not _looks_random(option["secret"], least=6):
            return None, after
        return Spot(*option.span("secret"), _kind(name)), after
    start = match.end()
    is_quoted = bool(match["open"].strip("\\"))
    value_match = (_QUOTED if is_quoted else _BARE).match(text, start)
    if value_match is None:
        return None, start
    value = value_match.group()
    if is_placeholder(value):
        is_secret = False
    elif is_quoted:
        is_secret = _is_value(value) and not (" " in value.strip() and ":" in match["sign"])
    else:
        value = value.rstrip(".:!?")
        # `DB_PASSWORD=…` is a variable of the shell, `password=…` perhaps an argument of a function.
        is_variable = match["sign"] == "=" and name.lstrip("-").isupper()
        is_secret = _looks_random(value) or (is_variable and len(value) >= 6 and not _is_code(value))
        is_secret = is_secret and text[value_match.end() : value_match.end() + 1] not in ("(", "[")
    return (Spot(start, start + len(value), _kind(name)) if is_secret else None), value_match.end()


def _stated_value(text: str, name: str, after: int) -> Spot | None:
    """What a sentence says that a password or a key is."""
    value_match = _STATED.match(text, after)
    if value_match is None:
        return None
    value = value_match["secret"].rstrip(".:!?")
    is_quoted = value_match["open"] != "" and value_match["open"] == value_match["close"]
    if is_placeholder(value) or text[value_match.end() : value_match.end() + 1] in ("(", "["):
        return None
    kind = _kind(name)
    if kind == "password":
        is_secret = _looks_random(value, least=6) or _has_sign(value)
    else:
        is_secret = _looks_random(value, least=8 if is_quoted else 12) and not _is_dashed(value)
    start = value_match.start("secret")
    return Spot(start, start + len(value), kind) if is_secret else None


def _has_sign(value: str) -> bool:
    """`Sommer!Wind`: a sign between letters that no word has there."""
    is_address = "@" in value and "." in value.partition("@")[2]
    signs = re.search(r"[A-Za-z][!#$%^&*+?@~]{1,3}[A-Za-z]", value)
    return signs is not None and not is_address and not _is_code(value) and "/" not in value


def _is_dashed(value: str) -> bool:
    """`rs256-signed`: words with dashes, none of them long."""
    return max(map(len, value.split("-"))) < 12 and value.lower() == value


def _is_value(value: str) -> bool:
    return len(value.strip()) >= 4 and not value.strip().startswith(("http://", "https://", "/", "./"))


def _is_code(value: str) -> bool:
    is_named = value.lower().endswith(("key", "token", "secret", "password", "credentials"))
    is_name = is_named and value.replace(".", "").isidentifier()  # module.X25519PrivateKey
    return is_name or any(c in value for c in "$({[") or value.startswith(("http", "/"))


def _looks_random(value: str, *, least: int = 8) -> bool:
    """Letters and digits, as chosen by a machine or a careful person; not `uint256`, not a path, not `a.b1`."""
    has_letter, has_digit = any(c.isalpha() for c in value), any(c.isdigit() for c in value)
    is_plain = value.startswith(("http", "/", "./", "~")) or "::" in value or "->" in value
    return len(value) >= least and has_letter and has_digit and not is_plain and not _is_code(value)
