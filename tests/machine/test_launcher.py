"""Which file hooks call: one that outlives an upgrade; and what happens when it does not."""

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from turnlog.errors import Unsupported
from turnlog.machine import launcher as module
from turnlog.machine.launcher import launcher, starts_this_installation

SRC = Path(module.__file__).parents[2]


class Tool:
    """An installation as `uv tool install` makes one: an environment of its own, and a link to its launcher."""

    def __init__(self, home: Path) -> None:
        self.environment = home / ".local/share/uv/tools/turnlog"
        self.launcher = home / ".local/bin/turnlog"
        self.program = self.environment / "bin/turnlog"

    def make(self) -> None:
        venv.create(self.environment, symlinks=True)
        [site] = self.environment.glob("lib/python*/site-packages")
        packages = [path for path in sys.path if path.endswith("site-packages")]
        (site / "turnlog.pth").write_text("\n".join([str(SRC), *packages]))
        code = "import sys\nfrom turnlog.cli import main\nsys.exit(main())\n"
        self.program.write_text(f"#!{self.environment}/bin/python\n{code}")
        self.program.chmod(0o755)
        self.launcher.parent.mkdir(parents=True, exist_ok=True)
        if not self.launcher.is_symlink():
            self.launcher.symlink_to(self.program)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    made = Tool(tmp_path)
    monkeypatch.setattr(module, "_TEMPORARY", ())
    monkeypatch.setattr(module, "gettempdir", lambda: "/nowhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(sys, "prefix", str(made.environment))
    monkeypatch.setattr(sys, "argv", ["-c"])
    made.program.parent.mkdir(parents=True)
    (made.environment / "pyvenv.cfg").touch()
    made.program.write_text("#!/bin/sh\n")
    made.program.chmod(0o755)
    return made


def test_the_link_to_an_installed_tool_is_taken(tool: Tool):
    tool.launcher.parent.mkdir(parents=True)
    tool.launcher.symlink_to(tool.program)
    assert launcher() == str(tool.launcher)
    assert starts_this_installation(str(tool.launcher))


def test_what_the_path_finds_is_taken_if_it_starts_this_one(tool: Tool, tmp_path: Path):
    found = tmp_path / "bin/turnlog"
    found.parent.mkdir()
    found.write_text(f"#!/bin/sh\n'''exec' '{tool.environment}/bin/python' \"$0\" \"$@\"\n' '''\n")
    found.chmod(0o755)
    assert launcher() == str(found)


def test_a_file_that_cannot_be_read_is_passed_over(tool: Tool, tmp_path: Path):
    (tmp_path / "away").mkdir()
    assert not starts_this_installation(str(tmp_path / "away"))


def test_an_environment_of_a_project_is_refused(tool: Tool):
    with pytest.raises(Unsupported, match="an environment of its own") as caught:
        launcher()
    assert "uv tool install turnlog" in (caught.value.hint or "")


def test_another_installation_is_named(tool: Tool):
    tool.launcher.parent.mkdir(parents=True)
    tool.launcher.write_text("#!/usr/bin/python3\n")
    tool.launcher.chmod(0o755)
    with pytest.raises(Unsupported) as caught:
        launcher()
    assert str(tool.launcher) in (caught.value.hint or "")


def test_a_temporary_folder_is_refused(tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool.launcher.parent.mkdir(parents=True)
    tool.launcher.symlink_to(tool.program)
    monkeypatch.setattr(module, "_TEMPORARY", (str(tmp_path),))
    with pytest.raises(Unsupported, match="is not permanent"):
        launcher()


def commands(home: Path) -> list[str]:
    settings = json.loads((home / ".claude/settings.json").read_text())
    return [group[0]["hooks"][0]["command"] for group in settings["hooks"].values()]


def test_hooks_go_on_working_or_are_silent_whatever_becomes_of_the_tool(tmp_path: Path):
    """Installed, upgraded, removed, half removed; with an empty environment, and in a folder that means harm."""
    tool, place = Tool(tmp_path), tmp_path / "place"
    tool.make()
    place.mkdir()
    (tmp_path / ".claude").mkdir()
    (place / "json.py").write_text("raise SystemExit(3)\n")
    (place / "turnlog.py").write_text("raise SystemExit(3)\n")
    person = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    install = [str(tool.launcher), "hooks", "install", "claude-code", "--anyway"]
    subprocess.run(install, env=person, check=True, capture_output=True)
    begin = next(one for one in commands(tmp_path) if "UserPromptSubmit" in one)
    assert str(tool.launcher) in begin
    assert str(tool.environment) not in begin
    told = tmp_path / ".turnlog/hooks.log"

    def tell(number: int, **more: str) -> int:
        """What the agent sees is nothing; gives how much the program was told by then."""
        said = {"session_id": f"s{number}", "cwd": str(place), "prompt_id": "p", "prompt": "x"}
        environ = {"HOME": str(tmp_path), **more}
        done = subprocess.run(
            ["/bin/sh", "-c", begin], input=json.dumps(said).encode(), env=environ, cwd=place, capture_output=True
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
        return len(told.read_text().splitlines()) if told.exists() else 0

    assert tell(1) == 1
    assert tell(2, PYTHONPATH=str(place), PYTHONHOME="/nowhere", PYTHONINSPECT="") == 2
    shutil.rmtree(tool.environment)
    assert tell(3) == 2  # the link leads nowhere
    tool.make()
    assert tell(4) == 3
    (tool.environment / "bin/python").unlink()
    assert tell(5) == 3
    tool.launcher.unlink()
    assert tell(6) == 3
    assert "error" not in told.read_text()
