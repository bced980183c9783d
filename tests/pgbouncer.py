"""A real PgBouncer in transaction mode for tests: before a server of `pgserver`, ended by its pid."""

import shutil
import socket
import subprocess
import time
from pathlib import Path
from tempfile import mkdtemp

import psycopg

from tests.pgserver import Server

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin:/usr/bin:/usr/local/bin")
WHY_NOT = "pgbouncer is not installed (Debian: apt-get install pgbouncer)"


class Bouncer:
    """Transactions of any number of clients, on a few connections to the server."""

    def __init__(self, server: Server, *roles: str, size: int = 1) -> None:
        assert PROGRAM is not None, WHY_NOT
        self.folder = Path(mkdtemp(prefix="bouncer-", dir=server.folder))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (self.folder / "users").write_text("".join(f'"{role}" ""\n' for role in ("postgres", *roles)))
        (self.folder / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {self.folder}/users\n"
            f"pool_mode = transaction\ndefault_pool_size = {size}\nmax_client_conn = 500\nserver_login_retry = 0\n"
            f"logfile = {self.folder}/log\nadmin_users = postgres\n"
        )
        how = server.how()
        if "user" in how:
            for path in (self.folder, *self.folder.iterdir()):
                shutil.chown(path, how["user"], how["group"])
        self._how = how
        self.start()

    def start(self) -> None:
        assert PROGRAM is not None
        self.process = subprocess.Popen(
            [PROGRAM, "-q", str(self.folder / "ini")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self._how
        )
        while True:
            try:
                psycopg.connect(f"postgresql://postgres@127.0.0.1:{self.port}/pgbouncer", autocommit=True).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                time.sleep(0.02)

    def before(self, database: str) -> str:
        """The same database through this one."""
        head, _, rest = database.partition("@127.0.0.1:")
        return f"{head}@127.0.0.1:{self.port}/{rest.partition('/')[2]}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
