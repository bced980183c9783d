"""Settings that every test shares."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.coming_from import watch
from tests.pgserver import Server
from turnlog.hooks import hooked_agent, names

# `make test` tries the same examples on every run and prints how to replay a failing one; the soak
# goes looking for new ones. Choose with `pytest --hypothesis-profile=soak`.
settings.register_profile(
    "turnlog",
    deadline=None,
    max_examples=60,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=2_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("turnlog"), max_examples=10)
settings.load_profile("turnlog")


MEMORY = Path("/dev/shm")


def pytest_configure(config: pytest.Config) -> None:
    watch(config)
    if os.access(MEMORY, os.W_OK):  # what a test proves of a disk, it proves with a recorded one
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    for name in names():  # who runs the tests may be an agent: they are to be as for people
        os.environ.pop(hooked_agent(name).shell_variable, None)
    # In the background of a script it is ignored, and so it would be by every program that a test interrupts. What
    # `nohup` ignores besides stays ignored: the tests are to go on when the terminal is closed.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL that many tests share, each with a tenant or a database of its own; in memory if it can be."""
    server = Server(inside=MEMORY if os.access(MEMORY, os.W_OK) else None)
    yield server
    server.remove()
