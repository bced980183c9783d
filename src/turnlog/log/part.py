"""Parts of entries: where a session comes from, and the folders and the state of git in a checkpoint."""

# Without `from __future__ import annotations`, as in `entry`: msgspec reads types faster than strings.
from msgspec import Struct

from turnlog.log.field import BlobRef, Number
from turnlog.log.path import path_text


class Fork(Struct, frozen=True, omit_defaults=True):
    """The session and the entry that a fork continues. `offset` is only a hint."""

    session: str
    seq: Number
    id: str
    name: str | None = None
    offset: Number | None = None
    first: str | None = None
    """The id of that session's first entry, if it is not `session`: by now another session may have that id."""

    @property
    def base(self) -> str:
        """The id that identifies the session that the fork continues."""
        return self.first or self.session


class Spawned(Struct, frozen=True, omit_defaults=True):
    """The session that started this one as a subagent, and the tool call that did it."""

    session: str
    call: str | None = None
    role: str | None = None


class Root(Struct, frozen=True, omit_defaults=True):
    """One folder that a checkpoint covers."""

    name: str
    path: str
    tree: BlobRef
    """The digest of its tree."""
    rules: BlobRef | None = None
    """The blob with the ignore rules that are not in the tree itself."""
    tracked: list[str] = []
    """Paths in the folder that are covered whatever the rules say."""
    is_partial: bool = False
    """Whether only tracked paths are covered."""
    mode: Number | None = None
    """The permission bits of the folder itself."""
    is_gone: bool = False
    """Whether the folder did not exist; its tree is empty then."""
    is_private: bool = False
    """Whether the folder holds ignored files: their contents stay in the home where the checkpoint was taken."""


class Git(Struct, frozen=True, omit_defaults=True):
    """The state of git: HEAD, a digest of what was staged, the length of HEAD's reflog. No rewind restores it."""

    branch: str | None = None
    """The ref that HEAD names; None where it names a commit."""
    commit: str | None = None
    index: str | None = None
    stash: str | None = None
    log_bytes: Number = 0


def same_root(roots: list[Root], root: Root) -> Root | None:
    """The same folder among the roots of another checkpoint. Its path may differ, because a project can move."""
    return next((other for other in roots if other.name == root.name and not other.is_private), None)


def covers(root: Root, path: bytes) -> bool:
    """Whether a checkpoint with this root covers a path in it, as far as no ignore rule says otherwise."""
    while root.is_partial and path_text(path) not in root.tracked:
        path = path.rpartition(b"/")[0]
        if not path:
            return False
    return True


def is_imported(root: Root) -> bool:
    """Whether a root comes from another agent's checkpoint, which has files and does not say what it covers."""
    return root.is_partial and not root.tracked


def private_root(roots: list[Root], root: Root) -> Root | None:
    """The root of the ignored files of that folder; all such roots have one name."""
    own = same_root(roots, root)
    path = None if own is None else own.path
    return next((other for other in roots if other.is_private and other.path == path), None)
