"""Git's ignore rules from outside a tree: finding and reading them."""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from turnlog.log.path import path_bytes, path_text
from turnlog.workspace.git import git_folder_of, repository_place
from turnlog.workspace.ignore.gitconfig import GitConfig
from turnlog.workspace.ignore.rule import Outside
from turnlog.workspace.systemerror import raise_if_system_error

_SYSTEM = "/etc/gitconfig"
_decode = msgspec.json.Decoder(list[tuple[str, str]]).decode


def outside_rules(root: str, config: str, expand: Callable[[str], str]) -> Outside:
    """Ignore rules for a tree from outside it: global excludes, `info/exclude`, `.gitignore` files above it.

    Each comes with the path of the tree relative to those rules. Later rules have precedence, as in git. `config` is
    the folder with this person's settings; `expand` resolves `~` at the beginning of a path.
    """
    rules: Outside = []
    top = _worktree_top(root)
    if top is None:
        _add_rules(rules, b"", global_excludes(None, config, expand))
        return rules
    lead = b"" if top == root else os.fsencode(os.path.relpath(root, top)) + b"/"
    _add_rules(rules, lead, global_excludes(top, config, expand))
    repository = repository_place(top)  # for a worktree, that is in another folder
    if repository is not None:
        _add_rules(rules, lead, os.path.join(repository, "info", "exclude"))
    folder = top
    while lead:
        _add_rules(rules, lead, os.path.join(folder, ".gitignore"))
        name, _, lead = lead.partition(b"/")
        folder = os.path.join(folder, os.fsdecode(name))
    return rules


def dump_rules(outside: Outside) -> bytes:
    """Rules from outside a tree as bytes, to be stored beside it."""
    return msgspec.json.encode([(path_text(lead), path_text(text)) for lead, text in outside])


def load_rules(data: bytes) -> Outside:
    """The rules from the bytes of `dump_rules`."""
    return [(path_bytes(lead), path_bytes(text)) for lead, text in _decode(data)]


def global_excludes(top: str | None, config: str, expand: Callable[[str], str]) -> str:
    """The file with the rules for all repositories: git's `core.excludesFile` in a worktree, or its default."""
    git = GitConfig(expand, None if top is None else git_folder_of(top))
    paths = [_SYSTEM, os.path.join(config, "git", "config"), os.path.join(expand("~"), ".gitconfig")]
    repository = None if top is None else repository_place(top)
    if repository is not None:
        paths.append(os.path.join(repository, "config"))
    named = [value for path in paths for value in git.values(path, "core.excludesfile")]
    return os.path.join(top or "/", expand(named[-1])) if named else os.path.join(config, "git", "ignore")


def _worktree_top(root: str) -> str | None:
    """The nearest folder with a `.git`, from the root upwards. Raises if the system fails."""
    folder = root
    while not _is_there(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)
    return folder


def _is_there(path: str) -> bool:
    try:
        os.stat(path)
    except OSError as error:
        raise_if_system_error(error, os.fsencode(path))
        return False
    return True


def _add_rules(rules: Outside, lead: bytes, path: str) -> None:
    try:
        with open(path, "rb") as file:
            text = file.read(1 << 20)
    except OSError as error:
        raise_if_system_error(error, os.fsencode(path))
        return
    if text.strip():
        rules.append((lead, text))
