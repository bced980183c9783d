"""Personal data: home folders, user names, e-mail addresses. Only on request. Pure, and linear."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from turnlog.view.secret.spot import Spot

KINDS = ("paths", "names", "emails")
"""What can be asked for: home folders, the names of their users wherever they stand, e-mail addresses."""
_HOME = re.compile(
    r"(?<![\w.])(?:/(?:var/|export/)?home|(?:/mnt/[a-z]|[A-Za-z]:)?/Users|[A-Za-z]:\\{1,4}Users)[/\\]{1,4}"
    r"([A-Za-z0-9._@-]{1,64}(?: [A-Z][A-Za-z0-9._-]{0,40})?)"
)
_EMAIL = re.compile(
    r"(?<![\w.%+/@:-])([\w.%+-]{1,64})@([A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.([A-Za-z]{2,24}))(?![\w-])"
)
_NOBODY = frozenset([
    "git", "noreply", "no-reply", "user", "users", "username", "you", "me", "name", "root", "admin", "runner", "ubuntu",
    "vscode", "node", "app", "home", "shared", "public", "default", "guest", "someone", "example", "test",
])  # fmt: skip
"""User names that identify nobody: accounts of a machine, placeholders, addresses of git."""
_FILES = frozenset([
    "png", "jpg", "jpeg", "gif", "svg", "webp", "js", "mjs", "ts", "tsx", "jsx", "css", "py", "go", "rs", "json", "md",
    "txt", "html", "xml", "yaml", "yml", "toml",
])  # fmt: skip
"""`icon@2x.png` is a file."""
_EXAMPLES = ("example.com", "example.org", "example.net", ".example", ".test", ".invalid", ".local")


def names_in(text: str) -> Iterator[str]:
    """The users whose home folders are named."""
    for match in _HOME.finditer(text):
        if _is_somebody(match[1]):
            yield match[1]


def personal(text: str, kinds: Collection[str], names: Collection[str]) -> Iterator[Spot]:
    """Where something of these kinds stands; `names` are those that are known."""
    if "paths" in kinds:
        yield from (Spot(*match.span(), "home folder") for match in _HOME.finditer(text) if _is_somebody(match[1]))
    if "names" in kinds:
        for name in names:
            at = text.find(name)
            while at >= 0:
                end = at + len(name)
                if not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum():
                    yield Spot(at, end, "user name")
                at = text.find(name, end)
    if "emails" in kinds and "@" in text:
        for match in _EMAIL.finditer(text):
            local, domain, last = match[1].lower(), match[2].lower(), match[3].lower()
            if local not in _NOBODY and last not in _FILES and not domain.endswith(_EXAMPLES):
                yield Spot(*match.span(), "e-mail address")


def _is_somebody(name: str) -> bool:
    return len(name) > 1 and name.lower() not in _NOBODY
