"""Git's ignore rules from outside a tree: finding and reading them."""

from __future__ import annotations

import os

from turnlog.workspace.git import repository_place
from turnlog.workspace.systemerror import raise_if_system_error


def outside_rules(root: str, general: str) -> list[tuple[bytes, bytes]]:
    """Ignore rules for a tree from outside it: global excludes, `info/exclude`, `.gitignore` files above it.

    Each comes with the path of the tree relative to those rules. Later rules have precedence, as in git. `general` is
    the file with the rules for all repositories.
    """
    rules: list[tuple[bytes, bytes]] = []
    _add_rules(rules, b"", general)
    top = root
    while top != os.path.dirname(top) and not _mode_of(os.path.join(top, ".git")):
        top = os.path.dirname(top)
    if not _mode_of(os.path.join(top, ".git")):
        return rules
    lead = b"" if top == root else os.fsencode(os.path.relpath(root, top)) + b"/"
    repository = repository_place(top)  # for a worktree, that is in another folder
    if repository is not None:
        _add_rules(rules, lead, os.path.join(repository, "info", "exclude"))
    folder = top
    while lead:
        _add_rules(rules, lead, os.path.join(folder, ".gitignore"))
        name, _, lead = lead.partition(b"/")
        folder = os.path.join(folder, os.fsdecode(name))
    return rules


def _mode_of(path: str) -> int:
    """The `st_mode` of a path; 0 if there is nothing. Raises if the system fails."""
    try:
        return os.stat(path).st_mode
    except OSError as error:
        raise_if_system_error(error, os.fsencode(path))
        return 0


def _add_rules(rules: list[tuple[bytes, bytes]], lead: bytes, path: str) -> None:
    try:
        with open(path, "rb") as file:
            text = file.read(1 << 20)
    except OSError as error:
        raise_if_system_error(error, os.fsencode(path))
        return
    if text.strip():
        rules.append((lead, text))


def global_excludes(home: str, config: str) -> str:
    """The file with the rules for all repositories: `core.excludesFile`, which may begin with `~`, or its default."""
    for path in (os.path.join(home, ".gitconfig"), os.path.join(config, "git", "config")):
        section = ""
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    text = line.strip()
                    if text.startswith("["):
                        section = text.strip("[]").strip().lower()
                    key, equals, value = text.partition("=")
                    if section == "core" and equals and key.strip().lower() == "excludesfile":
                        return value.strip().strip('"')
        except OSError as error:
            raise_if_system_error(error, os.fsencode(path))
    return os.path.join(config, "git", "ignore")
