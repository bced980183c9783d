"""What git knows of a folder, read from its files: which worktree it is in, where HEAD is, what is staged.

Git is never run, and nothing of it is written. Whatever stands in these files is somebody else's: files are bounded,
special ones are not opened, and malformed files count as absent.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable

from turnlog.log.digest import sha256
from turnlog.log.entry import Git
from turnlog.log.text import pattern

_COMMIT = pattern(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = pattern(r"refs(?:/(?!\.)[^\x00-\x20\x7f~^:?*\[\\/]+)+")
_SMALL, _LARGE = 1 << 16, 256 << 20
_MOST_LINKS = 5
_LOG = os.path.join("logs", "HEAD")
_EXTENDED = 0x4000

Known = Callable[[str, bytes | None], bytes | None]
"""What is remembered under a key; with bytes, that is to be remembered from now on."""


def worktree_of(folder: str) -> str | None:
    """The top of the worktree that a folder is in: the nearest one, from itself upwards, that has a `.git`."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    return folder


def repository_place(top: str) -> str | None:
    """The folder that all worktrees of a repository share, from the top of one of them."""
    folder = _folder(os.path.join(top, ".git"))
    return None if folder is None else os.path.realpath([folder, *_common(folder)][-1])


def worktrees_of(top: str) -> list[str]:
    """The tops of all worktrees of the repository that one is of, itself among them; none where there is no git.

    Each has to say so itself, and the repository of each: what one folder says of another is no proof.
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
    return tops if any(os.path.realpath(one) == os.path.realpath(top) for one in tops) else []


def _linked(folder: str) -> str | None:
    """The top of the worktree that a repository knows there, if its `.git` file points back here."""
    text = _read(os.path.join(folder, "gitdir"), _SMALL)
    git = None if text is None else _joined(folder, text)
    back = None if git is None else _folder(git)
    if git is None or back is None or os.path.realpath(back) != os.path.realpath(folder):
        return None
    return os.path.dirname(os.path.normpath(git))


def git_now(folder: str, known: Known = lambda key, value: None) -> Git | None:
    """Where git stands in that folder; None where there is no git, or none that we know."""
    top = worktree_of(folder)
    git_folder = None if top is None else _folder(os.path.join(top, ".git"))
    head = None if git_folder is None else _read(os.path.join(git_folder, "HEAD"), _SMALL)
    if git_folder is None or head is None:
        return None
    places = [git_folder, *_common(git_folder)]
    branch = _ref(head)
    commit = _commit(places, branch) if branch is not None else _hash(head)
    staged = _staged(os.path.join(git_folder, "index"), known)
    return Git(branch, commit, staged, _stashed(places[-1]), _size(os.path.join(git_folder, _LOG)))


def _stashed(folder: str) -> str | None:
    """The newest stash: the last line of its log says it, and the log is there only while there is one."""
    text = _read(os.path.join(folder, "logs", "refs", "stash"), _LARGE)
    words = text.rstrip(b"\n").rpartition(b"\n")[2].split(b" ", 2) if text else []
    return _hash(words[1]) if len(words) > 2 else None


def head_log(top: str) -> bytes:
    """What git wrote down of how HEAD moved in that worktree; nothing where it does not."""
    git_folder = _folder(os.path.join(top, ".git"))
    return (git_folder and _read(os.path.join(git_folder, _LOG), _LARGE)) or b""


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _folder(git: str) -> str | None:
    """The folder behind `.git`: that of a worktree or a submodule is elsewhere, and a file says where."""
    if os.path.isdir(git):
        return git
    text = _read(git, _SMALL)
    if text is None or not text.startswith(b"gitdir:"):
        return None
    return _joined(os.path.dirname(git), text[7:])


def _common(folder: str) -> list[str]:
    """Where a worktree keeps what it shares with others of its repository."""
    text = _read(os.path.join(folder, "commondir"), _SMALL)
    shared = None if text is None else _joined(folder, text)
    return [] if shared is None else [shared]


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
    """A digest of what the index says: not of the times in it, which every `git status` writes anew."""
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
    for size in (20, 32):  # of a hash, in repositories of either kind
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
        if version == 4:  # first, how much of the name before goes
            while data[name] & 0x80:
                name += 1
            name += 1
        end = data.index(0, name)
        parts += (data[at + 24 : at + 28], data[at + 40 : end], b"\0")
        at = end + 1 if version == 4 else at + ((end - at) // 8 + 1) * 8
    while at + 8 <= len(data) - size:  # extensions: they have to end where the checksum begins
        at += 8 + struct.unpack_from(">I", data, at + 4)[0]
    if at != len(data) - size:
        raise ValueError(at)
    return b"".join(parts)


def _read(path: str, most: int) -> bytes | None:
    """What is in a file, if it is one and not larger than that."""
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
    """What a person has to know of git when files go back: it stays as it is. Empty if nothing changed in it."""
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
