"""What a checkpoint says of the folders it covers, and of git in them."""

from msgspec import Struct

from turnlog.log.field import BlobRef, Number


class Root(Struct, frozen=True, omit_defaults=True):
    """One folder that a checkpoint covers."""

    name: str
    path: str
    tree: BlobRef
    """The digest of its tree."""
    rules: BlobRef | None = None
    """The blob with the ignore rules that are not in the tree itself."""
    tracked: list[str] = []
    """Paths in it that are covered whatever the rules say."""
    is_partial: bool = False
    """Whether nothing but what is tracked is covered."""
    mode: Number | None = None
    """The permission bits of the folder itself."""
    is_gone: bool = False
    """Whether there was no such folder; its tree is empty then."""
    is_private: bool = False
    """Whether it holds ignored files: their contents stay in the home that they were taken in."""


class Git(Struct, frozen=True, omit_defaults=True):
    """Where git stood, a digest of what was staged, how long its log of HEAD was. Nothing of it is put back."""

    branch: str | None = None
    """The ref that HEAD names; None where it names a commit."""
    commit: str | None = None
    index: str | None = None
    stash: str | None = None
    log_bytes: Number = 0
