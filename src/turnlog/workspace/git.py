"""The state of git in a folder, read from its files: the worktree, HEAD, the index.

Git is never run, and its files are not changed. They are untrusted input: sizes are bounded, special files are not
opened, and malformed files count as missing.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable

from turnlog.log.digest import sha256
from turnlog.log.part import Git
from turnlog.log.startup import pattern

_COMMIT = pattern(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = pattern(r"refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+")
_SMALL, _LARGE = 1 << 16, 256 << 20
_MOST_LINKS = 5
_LOG = os.path.join("logs", "HEAD")
_EXTENDED = 0x4000

Known = Callable[[str, bytes | None], bytes | None]
"""Returns the cached value of a key; if bytes are given, they are cached from now on."""


def worktree_of(folder: str) -> str | None:
    """The top of the worktree that contains a folder: the nearest folder with a `.git`, from itself upwards."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def git_folder_of(top: str) -> str | None:
    """The git folder of a worktree, given its top."""
    return _folder(os.path.join(top, ".git"))


def repository_place(top: str) -> str | None:
    """The folder that all worktrees of a repository share, given the top of one of them."""
    folder = git_folder_of(top)
    return None if folder is None else os.path.realpath(_common(folder) or folder)


def worktrees_of(top: str) -> list[str]:
    """The tops of all worktrees of a repository, given one of them; empty without git.

    Each worktree and its repository must refer to each other: one reference alone is no proof.
    """
    common = repository_place(top)
    if common is None:
        return []
    try:
        names = sorted(os.listdir(os.path.join(common, "worktrees")))
    except OSError:
        names = []
    linked = filter(None, (_linked(os.path.join(common, "worktrees", name)) for name in names))
    tops = [*([os.path.dirname(common)] if os.path.basename(common) == ".git" else []), *linked]
    return tops if any(os.path.realpath(linked_top) == os.path.realpath(top) for linked_top in tops) else []


def _linked(folder: str) -> str | None:
    """The top of a worktree that the repository lists, if its `.git` file refers back."""
    text = _read(os.path.join(folder, "gitdir"), _SMALL)
    git = None if text is None else _joined(folder, text)
    back = None if git is None else _folder(git)
    if git is None or back is None or os.path.realpath(back) != os.path.realpath(folder):
        return None
    return os.path.dirname(os.path.normpath(git))


def git_now(folder: str, known: Known = lambda key, value: None) -> Git | None:
    """The state of git in a folder; None without git, or in an unknown format."""
    top = worktree_of(folder)
    git_folder = None if top is None else git_folder_of(top)
    head = None if git_folder is None else _read(os.path.join(git_folder, "HEAD"), _SMALL)
    if git_folder is None or head is None:
        return None
    common = _common(git_folder)
    places = [git_folder] if common is None else [git_folder, common]
    branch = _ref(head)
    commit = _commit(places, branch) if branch is not None else _hash(head)
    staged = _staged(os.path.join(git_folder, "index"), known)
    return Git(branch, commit, staged, _stashed(places[-1]), _size(os.path.join(git_folder, _LOG)))


def _stashed(folder: str) -> str | None:
    """The newest stash, from the last line of its log, which exists only while there is one."""
    text = _read(os.path.join(folder, "logs", "refs", "stash"), _LARGE)
    words = text.rstrip(b"\n").rpartition(b"\n")[2].split(b" ", 2) if text else []
    return _hash(words[1]) if len(words) > 2 else None


def head_log(top: str) -> bytes:
    """Git's log of the moves of HEAD in a worktree; empty if there is none."""
    git_folder = git_folder_of(top)
    return (git_folder and _read(os.path.join(git_folder, _LOG), _LARGE)) or b""


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _folder(git: str) -> str | None:
    """The git folder for a `.git`: for a worktree or submodule, that is a file with the path."""
    if os.path.isdir(git):
        return git
    text = _read(git, _SMALL)
    if text is None or not text.startswith(b"gitdir:"):
        return None
    return _joined(os.path.dirname(git), text[7:])


def _common(folder: str) -> str | None:
    """The folder that a worktree shares with the others of its repository."""
    text = _read(os.path.join(folder, "commondir"), _SMALL)
    return None if text is None else _joined(folder, text)


def _joined(base: str, path: bytes) -> str | None:
    path = path.strip()
    return None if not path or b"\0" in path else os.path.join(base, os.fsdecode(path))


def _ref(text: bytes) -> str | None:
    if not text.startswith(b"ref:"):
        return None
    name = text[4:].strip().decode("utf-8", "replace")
    return name if _REF.fullmatch(name) else None


def _hash(text: bytes) -> str | None:
    match = _COMMIT.fullmatch(text.strip())
    return match[0].decode() if match else None


def _commit(places: list[str], ref: str | None) -> str | None:
    for _ in range(_MOST_LINKS):
        if ref is None:
            return None
        loose = next(
            (text for folder in places if (text := _read(os.path.join(folder, ref), _SMALL)) is not None), None
        )
        if loose is None:
            return _packed(places[-1], ref)
        if not loose.startswith(b"ref:"):
            return _hash(loose)
        ref = _ref(loose)
    return None


def _packed(folder: str, ref: str) -> str | None:
    text = _read(os.path.join(folder, "packed-refs"), _LARGE)
    at = -1 if text is None else text.find(f" {ref}\n".encode())
    return None if text is None or at < 0 else _hash(text[text.rfind(b"\n", 0, at) + 1 : at])


# ── what is staged ────────────────────────────────────────────────────────────────────────────────


def _staged(path: str, known: Known) -> str | None:
    """A digest of the index without its times, which every `git status` changes."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    key = "git-" + sha256(os.fsencode(path)).hexdigest()[:32]
    mark = f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino} ".encode()
    before = known(key, None) or b""
    if before.startswith(mark) and len(before) == len(mark) + 64:
        return "sha256:" + before[len(mark) :].decode("ascii", "replace")
    data = _read(path, _LARGE)
    if data is None:
        return None
    digest = sha256(_without_times(data)).hexdigest()
    known(key, mark + digest.encode())
    return "sha256:" + digest


def _without_times(data: bytes) -> bytes:
    for size in (20, 32):  # the length of a hash, in both kinds of repositories
        try:
            return _entries(data, size)
        except (ValueError, IndexError, struct.error):
            continue
    return data


def _entries(data: bytes, size: int) -> bytes:
    mark, version, count = struct.unpack_from(">4sII", data)
    if mark != b"DIRC" or not 2 <= version <= 4:
        raise ValueError(version)
    parts: list[bytes] = []
    at, fixed = 12, 42 + size
    for _ in range(count):
        name = at + fixed + (2 if version > 2 and data[at + fixed - 2] << 8 & _EXTENDED else 0)
        if version == 4:  # first, how much of the previous name is removed
            while data[name] & 0x80:
                name += 1
            name += 1
        end = data.index(0, name)
        parts += (data[at + 24 : at + 28], data[at + 40 : end], b"\0")
        at = end + 1 if version == 4 else at + ((end - at) // 8 + 1) * 8
    while at + 8 <= len(data) - size:  # extensions: they must end where the checksum begins
        at += 8 + struct.unpack_from(">I", data, at + 4)[0]
    if at != len(data) - size:
        raise ValueError(at)
    return b"".join(parts)


def _read(path: str, most: int) -> bytes | None:
    """The content of a regular file of at most that size; else None."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        with os.fdopen(os.dup(fd), "rb") as file:
            data = file.read(most + 1)
        return data if len(data) <= most else None
    except OSError:
        return None
    finally:
        os.close(fd)


# ── in words ──────────────────────────────────────────────────────────────────────────────────────


def git_left(then: Git | None, now: Git | None) -> str:
    """What people have to know about git after a rewind, which leaves it unchanged.

    Empty if git did not change since.
    """
    if then is None:
        return ""
    if now is None:
        return "git's own folder is not there, and no checkpoint has it"
    parts: list[str] = []
    if (then.branch, then.commit) != (now.branch, now.commit):
        parts.append(f"HEAD was {_words(then)} then and is {_words(now)}")
    if then.index != now.index:
        parts.append("what is staged is not what it was then")
    return f"git is left as it is: {', '.join(parts)}" if parts else ""


def _words(git: Git) -> str:
    commit = git.commit[:9] if git.commit else "no commit"
    return commit if git.branch is None else f"{git.branch.removeprefix('refs/heads/')} at {commit}"
