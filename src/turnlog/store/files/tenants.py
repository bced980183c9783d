"""Tenants of a home in a folder: each has a folder of its own below it, which is a home like any other."""

from __future__ import annotations

import os
import shutil

from turnlog.errors import Invalid
from turnlog.layout import TENANTS
from turnlog.log.ids import word
from turnlog.store import Store
from turnlog.store.files.disk import disk_errors
from turnlog.store.files.homefolder import HomeFolder
from turnlog.store.files.names import SUFFIX, file_name, session_id_of
from turnlog.store.refusal import tenant_missing
from turnlog.store.tenant import DroppedTenant, counted, refuse_guest

_DROPPED = ".dropped-"


class FileTenants:
    """The folders of all tenants of one home."""

    def __init__(self, home: HomeFolder) -> None:
        refuse_guest(home.tenant)
        self._home = home
        self._folder = os.path.join(home.folder, TENANTS)

    def folder(self, name: str) -> str:
        """Where a tenant's home is. Names are written as those of sessions are, but none of them is hashed."""
        folder = file_name(name).removesuffix(SUFFIX)
        if folder.startswith("~"):
            raise Invalid(f"the name of tenant {name!r:.60} is too long for a folder", hint="180 letters are not")
        return os.path.join(self._folder, folder)

    def opened(self, name: str, *, create: bool) -> str:
        """The folder of one that is there, or is now."""
        folder = self.folder(name)
        with disk_errors(f"opening {folder}"):
            if not os.path.isdir(folder):
                if not create:
                    raise tenant_missing(name)
                self._home.make_ready()
                self._home.make_folder(self._folder)
                self._home.make_folder(folder)
        return folder

    def names(self) -> list[str]:
        """All there are, in order."""
        with disk_errors(f"listing {self._folder}"):
            names = os.listdir(self._folder) if os.path.isdir(self._folder) else []
        return sorted(name for one in names if (name := session_id_of(one + SUFFIX)) is not None)

    def drop(self, name: str, store: Store) -> DroppedTenant:
        """Out of sight at once, then gone. What somebody left who was interrupted goes as well."""
        went = counted(name, store)
        folder, hidden = self.folder(name), os.path.join(self._folder, _DROPPED + word(16))
        with disk_errors(f"dropping {folder}"):
            try:
                os.rename(folder, hidden)
            except FileNotFoundError:
                raise tenant_missing(name) from None
            self._home.disk.sync_folder(self._folder)
            for one in os.listdir(self._folder):
                if one.startswith(_DROPPED):
                    shutil.rmtree(os.path.join(self._folder, one))
        return went
