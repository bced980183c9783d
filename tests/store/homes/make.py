"""Homes and databases as earlier versions left them: `python -m tests.store.homes.make [NAME …]` made the files here.

Each is the same life (`life.py`), lived with the code of one commit in a worktree of its own. A version that changes
what lies on the disk or in the database gets a line here, and its home is kept for good; `make release` asks for it.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import psycopg

from tests.pgserver import Server

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PROJECT = Path("/srv/turnlog-life")
"""Where the life is lived: the logs name it."""
NOW = ""
"""For a format that is not committed yet."""


class Made(NamedTuple):
    commit: str
    what: str


FILES = {
    "first": Made("93b5d0a", "no checkpoints; a session's first entry is called like the session"),
    "objects": Made("6ea5600", "checkpoints, in packs of objects"),
    "blocks": Made("0180d99", "packs with blocks, which home.json does not tell; sessions of other agents"),
    "ignored": Made("2067270", "ignored files of the workspace in trees of their own; what was made here"),
    "ids": Made("1c3ecce", "ids 1: a session is told from others by its first entry"),
    "packs": Made("b6cc569", "packs 2: there may be blocks in them"),
    "erased": Made("812872e", "erasures 1: something was erased"),
}
POSTGRES = {
    "level-1": Made("6a4e472", "the first tables"),
    "level-3": Made("0180d99", "an index for listings"),
    "level-4": Made("2067270", "rights of tenants, leases"),
    "level-5": Made("1c3ecce", "sessions by their first entry"),
    "level-6": Made("f246667", "whether a session is a conversation, in the catalog"),
    "level-7": Made("8cc8681", "copies for other agents, in the catalog"),
    "level-8": Made("812872e", "what was erased, and when something was deleted"),
    "level-9": Made("264a0f1", "tenants are listed and dropped"),
    "level-10": Made(NOW, "branches of git, in the catalog"),
}


def main(names: list[str]) -> None:
    for name, made in {**FILES, **POSTGRES}.items():
        if name in (names or FILES | POSTGRES):
            with tempfile.TemporaryDirectory() as folder:
                _make(name, made, Path(folder))


def _make(name: str, made: Made, folder: Path) -> None:
    tree = folder / "tree" if made.commit else ROOT
    if made.commit:
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, made.commit], cwd=ROOT, check=True)
    try:
        if name in FILES:
            _live(tree, folder, str(folder / "home"))
            _keep(name, folder, "home")
        else:
            server = Server()
            try:
                _live(tree, folder, server.url)
                _dump(server.url, folder / "tables")
            finally:
                server.remove()
            _keep(name, folder, "tables")
    finally:
        if made.commit:
            subprocess.run(["git", "worktree", "remove", "--force", tree], cwd=ROOT, check=True)


def _live(tree: Path, folder: Path, place: str) -> None:
    PROJECT.mkdir(parents=True)
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(folder / "person"), "PYTHONPATH": str(tree / "src")}
    try:
        words = [sys.executable, "-P", HERE / "life.py", place, PROJECT]
        subprocess.run(words, env=surroundings, check=True)
    finally:
        subprocess.run(["rm", "-rf", PROJECT], check=True)


def _dump(url: str, folder: Path) -> None:
    """Every table as COPY writes it: the tables themselves are made by the migrations, which never change."""
    folder.mkdir()
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "select relname from pg_class where relnamespace = 'turnlog'::regnamespace and relkind in ('r', 'p') "
            "and not relispartition and relname <> 'migration'"
        ).fetchall()
        for (table,) in tables:
            with connection.cursor().copy(f"copy (select * from turnlog.{table}) to stdout".encode()) as rows:
                text = b"".join(bytes(part) for part in rows)
            if text:
                (folder / table).write_bytes(text)


def _keep(name: str, folder: Path, inside: str) -> None:
    def anyones(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        item.uid = item.gid = 0
        item.uname = item.gname = ""
        return None if re.search(r"derived/|\.lock$", item.name) else item

    with tarfile.open(HERE / f"{name}.tar.xz", "w:xz") as file:
        file.add(folder / inside, inside, filter=anyones)
    print(f"{name}: {(HERE / f'{name}.tar.xz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
