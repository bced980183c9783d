"""A store that can do what the contract says and nothing else, in a folder: `toy:///somewhere`."""

from __future__ import annotations

from typing import Any

from turnlog.store.files import FileStore
from turnlog.store.files import connect as connect_folder

CONTRACT = (
    "create", "adopt", "open", "listing", "delete", "restore", "purge", "close",
    "add", "get", "has", "stream", "keeping", "collect",
)  # fmt: skip


class ToyStore:
    """See `turnlog.store.Store`."""

    backend = "toy"

    def __init__(self, kept: FileStore) -> None:
        for name in CONTRACT:
            setattr(self, name, getattr(kept, name))


def connect(location: str, **options: Any) -> ToyStore:
    return ToyStore(connect_folder(location.removeprefix("toy://"), **options))
