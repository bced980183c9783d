"""Parts of entries: where a session comes from, and what a checkpoint says of its folders and of git in them."""

# Without `from __future__ import annotations`, as in `entry`: msgspec reads types sooner than texts of them.
from msgspec import Struct

from turnlog.log.field import BlobRef, Number


class Fork(Struct, frozen=True, omit_defaults=True):
    """Which entry of which session a fork continues. `offset` is only a hint."""

    session: str
    seq: Number
    id: str
    name: str | None = None
    offset: Number | None = None
    first: str | None = None
    """The id of that session's first entry, if that is not the session's own: another one may be called so by now."""

    @property
    def base(self) -> str:
        """What tells the session that it continues from every other one."""
        return self.first or self.session


class Spawned(Struct, frozen=True, omit_defaults=True):
    """Which session started this one as a subagent, and with which tool call."""

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
