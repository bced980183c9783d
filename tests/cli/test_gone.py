"""The project's folder is deleted, with the shell in it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.every import NAMES, words_for
from tests.cli.scene import Cli, Done
from turnlog.cli.demo.files import digest


@pytest.fixture
def project(folder: Path) -> Path:
    place = Path.cwd()
    (place / "src").mkdir()
    (place / "src/a.py").write_text("a\n")
    (place / "b.txt").write_text("b\n")
    (place / "b.txt").chmod(0o600)
    (place / "link").symlink_to("src")
    return place


def shell(script: str, cwd: Path) -> Done:
    """A shell in that folder, wherever it leads."""
    turnlog = f'"{sys.executable}" -m turnlog'
    done = subprocess.run(
        ["sh", "-c", f'turnlog() {{ {turnlog} "$@"; }}; {script}'], cwd=cwd, capture_output=True, encoding="utf-8"
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_run_says_that_the_folder_is_gone_and_keeps_the_exit_code(project: Path):
    done = shell(f"turnlog run -- sh -c 'rm -rf {project}; exit 7'", project)
    assert done.code == 7
    assert "deleted  b.txt" in done.err
    assert "`turnlog rewind` takes it back" in done.err
    assert done.err.endswith(f"warning: the folder {project} is gone\n")


def test_from_a_shell_whose_folder_is_gone_it_all_comes_back_and_goes_again(project: Path):
    before = digest(project)
    steps = "turnlog diff --stat && turnlog rewind --yes && cd . && turnlog undo --yes && turnlog redo --yes"
    done = shell(f"turnlog run -q -- rm -rf {project}; {steps}", project)
    assert done.code == 0, done.err
    assert "what was done" not in done.err
    assert "only the conversation" not in done.out
    assert re.search(r"create  \S+webshop/ and 4 more in it  the folder is gone", done.out)
    assert f"note: this shell is still in the folder that was deleted: `cd {project}`\n" in done.err
    assert done.err.count("note:") == 1
    assert digest(project) == before


def test_also_where_somebody_made_an_empty_folder_meanwhile(project: Path):
    before = digest(project)
    done = shell(f"turnlog run -q -- rm -rf {project}; mkdir {project}; turnlog rewind --yes", project)
    assert done.code == 0, done.err
    assert "conflict" not in done.out
    assert digest(project) == before


def test_also_from_a_folder_in_it_and_only_a_part(project: Path):
    begin = f"(cd .. && turnlog run -q -- rm -rf {project})"
    done = shell(f"{begin}; turnlog rewind --yes --only a.py", project / "src")
    assert done.code == 0, done.err
    assert [str(path.relative_to(project)) for path in sorted(project.rglob("*"))] == ["src", "src/a.py"]


def test_what_cannot_be_made_is_refused_with_a_way_out(project: Path):
    above = project.parent / "above"
    above.mkdir()
    shutil.move(project, above / "inner")
    inner = above / "inner"
    done = shell(f"turnlog run -- rm -rf {above}; turnlog rewind --yes", inner)
    assert done.code == 3
    assert f"error: the folder {inner} is gone: the folder above it is gone, too: {above}\n" in done.err
    assert f"`mkdir -p {above}`" in done.err
    done = shell(f"mkdir {above} && cd {above} && turnlog rewind --yes -s latest", project.parent)
    assert done.code == 0, done.err
    assert (inner / "src/a.py").read_text() == "a\n"


def test_every_command_in_a_folder_that_is_gone_works_or_says_so(cli: Cli, session: str, tmp_path: Path):
    cli("checkpoint")
    shutil.rmtree(tmp_path / "webshop")
    for name in NAMES:
        if name == "demo":  # works elsewhere, and takes its time
            continue
        done = cli(name, *words_for(name))
        assert "fault in turnlog" not in done.err, name
        assert "cannot be written" not in done.err, name
        assert done.code in (0, 2, 3), (name, done.err)
        assert done.code == 0 or re.search(r"error: [^\n]+\n(hint: [^\n]+\n)?$", done.err), (name, done.err)
    assert not (tmp_path / "webshop").exists()
