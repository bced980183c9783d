"""Secrets do not belong in facts: values under these names become `[secret]` before anything is written."""

from __future__ import annotations

from typing import Any, cast

MASK = "[secret]"
_NAMES = frozenset(
    [
        "apikey",
        "token",
        "accesstoken",
        "authtoken",
        "refreshtoken",
        "idtoken",
        "sessiontoken",
        "bearertoken",
        "bearer",
        "authorization",
        "proxyauthorization",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "secret",
        "clientsecret",
        "secretkey",
        "secretaccesskey",
        "privatekey",
        "credential",
        "credentials",
        "cookie",
        "setcookie",
        "xapikey",
        "accesskey",
        "signingkey",
        "encryptionkey",
    ]
)
_ENDINGS = (
    "token",
    "apikey", "accesstoken", "authtoken", "sessiontoken", "refreshtoken", "secretkey", "secretaccesskey",
    "clientsecret", "password", "passphrase", "privatekey",
)  # fmt: skip


def is_secret_name(name: str) -> bool:
    """Whether a value under that name is a secret: `api_key`, `Authorization`, `OPENAI_API_KEY` …"""
    plain = "".join(c for c in name.lower() if c.isalnum())
    return plain in _NAMES or plain.endswith(_ENDINGS)


def mask(key: str, value: Any) -> tuple[Any, list[str]]:
    """The value with its secrets masked, and where they were."""
    found: list[str] = []
    masked = _mask(key, value, key, found)
    return (masked, found) if found else (value, found)


def _mask(name: str, value: Any, where: str, found: list[str]) -> Any:
    if is_secret_name(name) and value not in (None, "", MASK) and not isinstance(value, bool):
        found.append(where)
        return MASK
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _mask(str(key), item, f"{where}.{key}", found) for key, item in items}
    if isinstance(value, (list, tuple)):
        items = enumerate(cast("list[Any]", value))
        return [_mask("", item, f"{where}[{index}]", found) for index, item in items]
    return value
