"""A session whose entries can be erased, with the copies that an erasure does not reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from turnlog.errors import Invalid
from turnlog.interop.value import fields
from turnlog.machine.process import this_person
from turnlog.session.interior import interior
from turnlog.session.readonly import ReadOnlySession
from turnlog.thread.target import Target, seq_of

if TYPE_CHECKING:
    from turnlog.thread.removal.erasing import ErasureReceipt


class ErasableSession(ReadOnlySession):
    """A session whose entries can be erased."""

    def erase(self, *entries: Target, reason: str = "", by: str | None = None) -> ErasureReceipt:
        """Erase the content of these entries for good. Their seqs, times and ids stay, with who erased it and why.

        Readers of this session and of its forks see that something was erased. Nothing restores it: neither another
        home that still has it, nor the file of an agent that it was imported from. `by` is the current user by
        default. The receipt says what was removed, and what is out of reach.
        """
        from turnlog.thread.removal.erasing import erase

        if not entries:
            raise Invalid("nothing to erase", hint="give entries, or their numbers")
        with self._history.mutex:
            seqs = [seq_of(entry) for entry in entries]
            at, who = interior(self._home).now(), this_person() if by is None else by
            receipt = erase(self._store, self._history, seqs, at=at, by=who, why=reason)
            self._history.renew()
            return replace(receipt, copies=self._copies())

    def _copies(self) -> list[str]:
        """Other places that may have the content: files written for other agents, or files it was imported from."""
        from turnlog.thread.home.handedover import HandedOver

        copies = {path for path in self._state.aliases.values() if path}
        for (agent, id), copied in HandedOver(interior(self._home).created_here.location).all().items():
            if any(part.session == self.id for part in copied.of):
                copies.add(f"{agent}:{id}")
        for entry in self.entries():
            agent = fields(entry.origin).get("agent")
            if agent:
                copies.add(f"the files of {agent}, from which it was imported")
        return sorted(copies)
