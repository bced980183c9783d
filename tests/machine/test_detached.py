"""Work behind the user's back: one process, whose parent waits for nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from turnlog.catalog import background
from turnlog.machine import deferred
from turnlog.machine.deferred import run_deferred
from turnlog.machine.detached import alone, begin, is_taken

HOLD = """
import os, sys, time
from turnlog.machine.detached import alone
with alone(sys.argv[1]) as is_ours:
    print(is_ours, os.nice(0), flush=True)
    sys.stdin.read()
"""


def held(lock: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_one_of_several_goes_on_and_a_killed_one_leaves_nothing_behind(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "it.lock"
    with held(lock) as first:
        try:
            assert first.stdout is not None
            assert first.stdout.readline() == "True 10\n"
            assert is_taken(str(lock))
            assert not begin(str(lock), ["--version"])
            with alone(str(lock)) as is_ours:
                assert not is_ours
        finally:
            first.kill()
    assert not is_taken(str(lock))
    with held(lock) as second:
        said, _ = second.communicate("")
    assert said == "True 10\n"


def test_what_is_begun_has_no_terminal_no_output_and_a_session_of_its_own(tmp_path: Path, monkeypatch, capfd) -> None:
    told = tmp_path / "told"
    script = f"import os; print('loud'); open({str(told)!r}, 'w').write(f'{{os.getsid(0) == os.getpid()}}')"
    (tmp_path / "turnlog").mkdir()
    (tmp_path / "turnlog" / "__init__.py").touch()
    (tmp_path / "turnlog" / "__main__.py").write_text(script)
    monkeypatch.chdir(tmp_path)  # where something lies that is called like ours, and is not run
    first = begin(str(tmp_path / "it.lock"), ["--version"])
    assert os.waitpid(first, 0) == (first, 0)
    assert not told.exists()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    second = begin(str(tmp_path / "it.lock"), [])
    assert os.waitpid(second, 0) == (second, 0)
    assert told.read_text() == "True"
    assert capfd.readouterr() == ("", "")


def test_what_is_begun_holds_no_pipe_of_whoever_began_us(tmp_path: Path) -> None:
    """An agent reads its pipe to the end: as long as anybody has the other one, it waits."""
    lock, go = tmp_path / "it.lock", tmp_path / "go"
    os.mkfifo(go)
    (tmp_path / "turnlog").mkdir()
    (tmp_path / "turnlog" / "__init__.py").touch()
    (tmp_path / "turnlog" / "__main__.py").write_text(f"open({str(go)!r}).read()")
    reading, writing = os.pipe()
    starts = f"from turnlog.machine.detached import begin; import os; os.environ['PYTHONPATH'] = {str(tmp_path)!r}\n"
    starts += f"assert begin({str(lock)!r}, [])"
    subprocess.run([sys.executable, "-c", starts], pass_fds=[writing], check=True)
    os.close(writing)
    try:
        os.set_blocking(reading, False)
        assert os.read(reading, 1) == b""
    finally:
        os.close(reading)
        go.write_text("end")


def test_the_home_of_the_index_is_in_no_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may contain a password, and everybody on the machine can list the arguments of a process."""
    location, begun = "postgresql://u:secret@127.0.0.1:1/x", list[tuple[list[str], dict[str, str]]]()

    def spawn(program: str, command: list[str], variables: dict[str, str], **more: object) -> int:
        begun.append((command, variables))
        return 1

    monkeypatch.setattr(os, "posix_spawn", spawn)
    monkeypatch.setattr(deferred, "_waiting", [])  # not what commands of other tests left
    path = str(tmp_path / "index.sqlite")
    assert background.start(path, location)
    assert background.start(path, location, at_end=True)
    run_deferred()
    assert len(begun) == 2
    for command, variables in begun:
        assert not [word for word in command if "secret" in word]
        assert variables["TURNLOG_HOME"] == location
