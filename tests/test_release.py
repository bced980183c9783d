"""What `make release` refuses, and what a release says of itself. The rest of it takes minutes, and a network."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import turnlog
from tests import release
from turnlog.layout import LAYOUT
from turnlog.store.postgres import schema

PROJECT = tomllib.loads((release.ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "src/turnlog").mkdir(parents=True)
    (tmp_path / "src/turnlog/version.py").write_text('"""The version."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.3] - 2026-12-01\n\n## [1.2.2] - 2026-11-01\n")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    return tmp_path


def test_what_is_not_committed_is_named(checkout: Path):
    release.refuse_dirty(checkout)
    (checkout / "CHANGELOG.md").write_text("other\n")
    (checkout / "new.txt").write_text("new\n")
    with pytest.raises(release.Refused, match=r"^not committed: CHANGELOG\.md and 1 more; a release is"):
        release.refuse_dirty(checkout)


def test_a_version_that_the_changelog_does_not_tell_of_is_refused(checkout: Path):
    version = release.version_of(checkout)
    assert release.refuse_unwritten(checkout, version)
    with pytest.raises(release.Refused, match=r"no section for 1\.3\.0: its first is 1\.2\.3$"):
        release.refuse_unwritten(checkout, "1.3.0")
    (checkout / "CHANGELOG.md").write_text("## [1.2.3] - Unreleased\n")
    assert not release.refuse_unwritten(checkout, version)


def test_a_format_of_which_nothing_is_kept_is_refused(checkout: Path):
    (checkout / "tests").mkdir()
    for name in ("tests/store/homes", "src/turnlog/store/postgres/migrations"):
        shutil.copytree(release.ROOT / name, checkout / name)
    layout = checkout / "src/turnlog/layout.py"
    layout.write_text(f"LAYOUT = {json.dumps(LAYOUT)}\n")
    newest = schema.newest()
    shutil.copy(checkout / "tests/store/homes/level-1.tar.xz", checkout / f"tests/store/homes/level-{newest}.tar.xz")
    release.refuse_unkept(checkout)
    (checkout / f"tests/store/homes/level-{newest}.tar.xz").unlink()
    with pytest.raises(release.Refused, match=f"after migration {newest}: add one"):
        release.refuse_unkept(checkout)
    layout.write_text(f"LAYOUT = {json.dumps({**LAYOUT, 'packs': 99})}\n")
    with pytest.raises(release.Refused, match='"packs": 99'):
        release.refuse_unkept(checkout)


def test_a_refusal_is_one_line_and_builds_nothing(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys):
    (checkout / "new.txt").write_text("new\n")
    monkeypatch.setattr(release, "ROOT", checkout)
    assert release.main() == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n"), printed.err[:6]) == ("", 1, "error:")
    assert not (checkout / "dist").exists()


def test_the_version_stands_in_one_place():
    assert release.version_of(release.ROOT) == turnlog.__version__
    assert PROJECT["dynamic"] == ["version"]
    release.refuse_unwritten(release.ROOT, turnlog.__version__)


def test_the_python_that_runs_this_is_one_that_the_classifiers_name_or_newer():
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert PROJECT["requires-python"] == f">={named[0]}"
    minors = [int(name.rpartition(".")[2]) for name in named]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert sys.version_info.minor >= minors[0]
