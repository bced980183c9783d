"""How `turnlog web` and the terminal's `w` open pages in the browser of the person."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason="`make venv` installs what `turnlog web` needs")

from turnlog.cli.frame.webpage import PageServer, redirect
from turnlog.errors import Unavailable


@pytest.fixture
def opened(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a browser is started with is written to this file: a line for each word."""
    told = tmp_path / "arguments"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return told


def wait_for(path: Path) -> str:
    for _ in range(400):
        if path.exists():
            return path.read_text().strip()
        time.sleep(0.05)
    raise AssertionError(f"{path} was not written")


def test_the_token_is_in_no_argument_but_in_a_file_of_its_owner(opened: Path):
    with started("open_in_browser('http://127.0.0.1:7475/s/talk?token=hunter2'); input()"):
        place = wait_for(opened)
    assert place.startswith("file:///")
    assert "hunter2" not in place
    file = Path(urlsplit(place).path)
    assert file.stat().st_mode & 0o777 == 0o600
    assert 'content="0; url=http://127.0.0.1:7475/s/talk?token=hunter2"' in file.read_text()


def test_two_pages_that_are_opened_at_once_are_two_pages(opened: Path):
    with started("open_in_browser('http://h/one'); open_in_browser('http://h/two'); input()"):
        wait_for(opened)
    folder = Path(urlsplit(wait_for(opened)).path).parent
    pages = sorted(file.read_text().rpartition("http://h/")[2][:3] for file in folder.glob("web-open*"))
    assert pages == ["one", "two"]


def test_the_file_of_a_page_is_removed_with_a_later_one_and_where_it_cannot_be_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = redirect("http://h/one?token=a")
    fresh = redirect("http://h/two?token=b")
    os.utime(first, (time.time() - 3600,) * 2)
    (first.parent / "web-open-gone.html").symlink_to("nowhere")  # as one that another process is just removing
    redirect("http://h/three?token=c")
    assert (first.exists(), fresh.exists()) == (False, True)
    left = set(fresh.parent.iterdir())
    monkeypatch.setattr("tempfile._TemporaryFileWrapper.write", full_disk, raising=False)
    with pytest.raises(Unavailable, match="No space left"):
        redirect("http://h/four?token=d")
    assert set(fresh.parent.iterdir()) == left


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def started(script: str) -> Iterator[subprocess.Popen[str]]:
    """A process that runs this and then waits for a line: which browser there is, Python asks once for a process."""
    names = "from turnlog.cli.frame.home import choose_home\nfrom turnlog.cli.frame.webpage import *\n"
    command = [sys.executable, "-P", "-c", names + script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.communicate(None if process.poll() is not None else "\n", timeout=30)


def servers() -> list[list[bytes]]:
    """The arguments of the servers that run, of which this process or one that it started is the parent."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--until-stdin-ends" in words:
            found.append([place.parent.name.encode(), *words])
    return found


needs_proc = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="reads /proc")


@needs_proc
def test_the_server_of_the_terminal_runs_no_code_of_this_folder_and_names_no_home(
    opened: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    Path("turnlog.py").write_text("open('ran', 'w')")
    monkeypatch.setenv("TURNLOG_HOME", "elsewhere")
    before = {words[0] for words in servers()}
    home = str(tmp_path / "home")
    show = f"choose_home({home!r})\nwith PageServer() as pages:\n  print(pages.show('talk'), flush=True)\n  input()"
    with started(show) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("in the browser: http://127.0.0.1:")
        [words] = [words for words in servers() if words[0] not in before]
        assert b"-P" in words
        assert not any(home.encode() in word for word in words[1:])
        assert f"TURNLOG_HOME={home}".encode() in Path(f"/proc/{int(words[0])}/environ").read_bytes().split(b"\0")
        wait_for(opened)
    assert not Path("ran").exists()
    assert not any(words[0] == left[0] for left in servers())


def test_a_server_that_is_begun_while_the_terminal_ends_ends_too(opened: Path):
    pages, failed = PageServer(), []

    def show() -> None:
        try:
            pages.show("talk")
        except Unavailable as error:
            failed.append(error)

    with pages:
        thread = threading.Thread(target=show)
        thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert failed
    with pytest.raises(Unavailable):
        pages.show("talk")


@needs_proc
def test_the_server_ends_with_the_process_that_began_it_however_that_ends(opened: Path):
    before = {words[0] for words in servers()}
    with started("PageServer().show('talk'); input()") as process:
        wait_for(opened)
        begun = [words[0] for words in servers() if words[0] not in before]
        assert len(begun) == 1
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    for _ in range(200):
        if not any(words[0] in begun for words in servers()):
            break
        time.sleep(0.05)
    assert not any(words[0] in begun for words in servers())
