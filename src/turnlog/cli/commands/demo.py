"""`turnlog demo`."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from turnlog.cli.demo.files import tell_files
from turnlog.cli.demo.log import tell_log
from turnlog.cli.demo.story import Story
from turnlog.cli.frame.command import Argument, Option, declare
from turnlog.cli.frame.document import shape
from turnlog.cli.frame.document.writer import print_json
from turnlog.cli.frame.exitcode import Exit
from turnlog.cli.frame.home import without_password
from turnlog.machine.environment import default_home
from turnlog.session import open_home

GROUP = "Care", 21
CHANGES = shape.NOTHING
FIELDS = {
    "ok": shape.flag("whether every check held"),
    "checks": shape.each("in order", {"text": shape.text(), "ok": shape.flag()}),
    "seconds": shape.real("how long it took"),
    "home": shape.text("the folder that --keep left", null=True),
}


@declare(
    Argument("part", choices=("log", "files")),
    Option("--keep", "Do not delete the home folder, so that you can inspect it."),
)
def command(part: str | None, keep: bool, as_json: bool) -> None:
    """Kill one agent, rewind another, and see that nothing is lost.

    It uses real processes and real files in a temporary folder, and checks every claim, files to the byte. The exit
    code is 1 if a check fails. If $TURNLOG_HOME is a database, the sessions are stored there until the end, under a
    tenant of their own.

    \b
    turnlog demo                      all of it
    turnlog demo files                only the part about files
    """
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix="turnlog-demo-")
    location = _home_location(folder)
    try:
        with _temporary_home(location):
            story = Story(Path(folder).resolve(), is_quiet=as_json)
            if part != "files":
                tell_log(story, has_files=location.startswith(folder))
            if part != "log":
                tell_files(story)
    finally:
        if not keep:
            shutil.rmtree(folder)
            if not location.startswith(folder):
                with open_home(default_home()) as home:
                    home.drop_tenant(Path(folder).name)
    seconds = time.monotonic() - began
    failed = [text for text, is_so in story.checks if not is_so]
    if as_json:
        checks = [{"text": text, "ok": is_so} for text, is_so in story.checks]
        print_json({"ok": not failed, "checks": checks, "seconds": round(seconds, 3), "home": folder if keep else None})
    else:
        _print_result(story, failed, seconds, without_password(location) if keep else None)
    if failed:
        raise Exit(1)


def _home_location(folder: str) -> str:
    """Return the location of a home in that folder, or in the database that is the home."""
    usual = default_home()
    if not usual.startswith(("postgresql://", "postgres://")):
        return str(Path(folder) / "home")
    return f"{usual}{'&' if '?' in usual else '?'}tenant={Path(folder).name}"


@contextmanager
def _temporary_home(location: str) -> Generator[None]:
    """Set `TURNLOG_HOME` for this process and those it starts."""
    before = os.environ.get("TURNLOG_HOME")
    os.environ["TURNLOG_HOME"] = location
    try:
        yield
    finally:
        if before is None:
            del os.environ["TURNLOG_HOME"]
        else:
            os.environ["TURNLOG_HOME"] = before


def _print_result(story: Story, failed: list[str], seconds: float, kept: str | None) -> None:
    print(f"\n\n{len(story.checks)} checks in {seconds:.1f} s: ", end="")
    if failed:
        print(f"{len(failed)} of them failed.")
        for text in failed:
            print(f"   ✗ {text}")
    else:
        print("all of them hold.")
    if kept:
        print(f"Look around: TURNLOG_HOME={shlex.quote(kept)} turnlog ls")
