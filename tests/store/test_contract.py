"""Every store keeps every promise. The memory store is the reference, not a mock."""

import subprocess
import sys
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


def run(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_only_the_testing_room_needs_pytest():
    assert run("import sys, turnlog, turnlog.aio; print('pytest' in sys.modules)") == "False"
    program = """
import sys
sys.modules["pytest"] = None
try:
    import turnlog.testing
except Exception as error:
    print(error.code, error.hint)
"""
    assert run(program) == "unsupported pip install pytest"
