"""Every store keeps every promise. The memory store is the reference, not a mock."""

from pathlib import Path

import pytest

from turnlog.store import Clock, files, memory
from turnlog.testing import StoreContract


class TestMemory(StoreContract):
    def connect(self, folder: Path, clock: Clock) -> memory.MemoryStore:
        return memory.connect(clock=clock)


class TestFiles(StoreContract):
    def connect(self, folder: Path, clock: Clock) -> files.FileStore:
        return files.connect(str(folder / "home"), clock=clock)


class TestFilesWithoutSyncs(StoreContract):
    """What survives the process, not a power cut, keeps every other promise."""

    def connect(self, folder: Path, clock: Clock) -> files.FileStore:
        return files.connect(str(folder / "home"), clock=clock, durability="flush")


def test_the_contract_says_what_it_needs(tmp_path: Path):
    with pytest.raises(NotImplementedError):
        StoreContract().connect(tmp_path, lambda: 0)
