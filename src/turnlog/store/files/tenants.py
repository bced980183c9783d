"""Tenants of a home in a folder: each has a folder of its own below it, which is a home like any other."""

from __future__ import annotations

import os
from collections.abc import Callable

from turnlog.errors import Invalid
from turnlog.layout import TENANTS, TENANTS_LOCK
from turnlog.log.ids import word
from turnlog.store import Store
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.names import SUFFIX, file_name, session_id_of
from turnlog.store.refusal import tenant_missing
from turnlog.store.tenant import DroppedTenant, count_contents, refuse_guest

_DROPPED = ".dropped-"
_HINT = "use at most 180 of a-z, 0-9, _ and -; any other character takes the room of three or more"


class FileTenants:
    """The folders of all tenants of one home."""

    def __init__(self, home: HomeFolder) -> None:
        refuse_guest(home.tenant)
        self._home = home
        self._disk = home.disk
        self._folder = os.path.join(home.folder, TENANTS)

    def folder(self, name: str) -> str:
        """Return the folder of a tenant's home. Names are encoded as those of sessions, but never hashed."""
        try:
            folder = file_name(name).removesuffix(SUFFIX)
        except Invalid:  # it speaks of a session
            raise Invalid(f"no tenant can be called {name!r:.80}", hint=_HINT) from None
        if folder.startswith("~"):
            raise Invalid(f"the name of tenant {name!r:.60} is too long for a folder", hint=_HINT)
        return os.path.join(self._folder, folder)

    def opened(self, name: str, *, create: bool) -> str:
        """Return the folder of a tenant, which is created if necessary and `create`."""
        folder = self.folder(name)
        with disk_errors(f"opening {folder}"):
            if not self._disk.exists(folder):
                if not create:
                    raise tenant_missing(name)
                self._home.make_ready()
                self._home.make_folder(self._folder)
                self._home.make_folder(folder)
        return folder

    def names(self) -> list[str]:
        """Return the names of all tenants, sorted."""
        with disk_errors(f"listing {self._folder}"):
            names = self._disk.listdir(self._folder) if self._disk.exists(self._folder) else []
        return sorted(name for one in names if (name := session_id_of(one + SUFFIX)) is not None)

    def drop(self, name: str, open_home: Callable[[str], Store]) -> DroppedTenant:
        """Hide a tenant at once, then remove it, together with the rest of interrupted drops."""
        folder, hidden = self.folder(name), os.path.join(self._folder, _DROPPED + word(16))
        with disk_errors(f"dropping {folder}"):
            try:
                # Until this tenant is counted, another drop must not take it for the rest of an interrupted one.
                with self._disk.hold(os.path.join(self._home.folder, TENANTS_LOCK), create=True):
                    self._disk.rename(folder, hidden)
                    self._disk.sync_folder(self._folder)
                    dropped = count_contents(name, open_home(hidden))
                    rests = [entry for entry in self._disk.listdir(self._folder) if entry.startswith(_DROPPED)]
            except FileNotFoundError:
                raise tenant_missing(name) from None
            for rest in rests:
                self._disk.remove_tree(os.path.join(self._folder, rest))
        return dropped
