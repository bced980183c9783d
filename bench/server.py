"""A PostgreSQL of the benchmarks' own, on the disk that is measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.pgserver import Server

# So that no checkpoint and no lack of memory falls on one of those who take turns.
SETTINGS = {"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "1h", "max_connections": "150"}


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    folder.chmod(0o711)  # the server runs as somebody else if we are root
    server = Server(inside=folder, **SETTINGS)  # pyright: ignore[reportArgumentType]
    try:
        yield server
    finally:
        server.remove()
