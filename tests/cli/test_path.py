"""`turnlog path`."""

from pathlib import Path

import turnlog
from tests.cli.scene import Cli


def test_the_path_of_the_file(cli: Cli, session: str, log: Path):
    assert cli("path").out == f"{log}\n"
    assert cli("path", session, "--json").json == {"version": 1, "session": session, "path": str(log)}


def test_a_deleted_session_is_in_the_trash(cli: Cli, session: str, folder: Path):
    with turnlog.open() as home:
        home.delete(session)
    assert cli("path", session).out == f"{folder / 'trash' / f'{session}.jsonl'}\n"


def test_odd_ids_have_plain_file_names(cli: Cli, folder: Path):
    with turnlog.open() as home:
        home.create(id="../../Etc/pässwd")
    path = cli("path", "../../Etc/pässwd").out.strip()
    assert Path(path).parent == folder / "sessions"
    assert Path(path).is_file()


def test_a_store_without_files_says_so(cli: Cli):
    done = cli("--home", "memory:", "path")
    assert done.code == 3  # there is no session in it either
    assert done.err.startswith("error: ")
