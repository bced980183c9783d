"""A file that somebody else may read: it costs what lies in it, and nothing beside it."""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import turnlog
from tests.formats import test_contract
from tests.formats.composing import bring, lines, placed, talk
from tests.formats.test_contract import HERE
from turnlog.errors import Unavailable
from turnlog.exchange.exporting.writing import render
from turnlog.formats import OutputFile, Rendered, Source, format_of
from turnlog.formats.seeds.a3s.layout import WAL
from turnlog.formats.seeds.a3s.layout import place as a3s_place
from turnlog.formats.seeds.owlen import place as owlen_place
from turnlog.formats.seeds.rho.layout import JOURNAL
from turnlog.interop.place import Taken
from turnlog.testing import FormatContract

ONE = "01990000-0000-7000-8000-000000000001"
CONTRACTS = [one for one in vars(test_contract).values() if isinstance(one, type) and one is not FormatContract]
SAMPLES = [
    *((one.name, sample) for one in CONTRACTS if issubclass(one, FormatContract) for sample in one.samples),
    *((agent, HERE / "seeds" / agent) for agent in ("owlen", "sofos")),
    *(("rho", sample) for sample in sorted(HERE.glob("seeds/rho/*/home/.rho/sessions"))),
]
MOST = 12
"""So many files of each sample."""


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Whoever runs the tests may be root, for whom a mode forbids nothing."""
    here = os.path.realpath(path)

    def guard(call: Any) -> Any:
        def guarded(file: Any, *args: Any, **named: Any) -> Any:
            if isinstance(file, (str, os.PathLike)) and os.path.realpath(file) == here:
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(file))
            return call(file, *args, **named)

        return guarded

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((builtins, "open"), (io, "open"), (os, "open")):
            patch.setattr(module, name, guard(getattr(module, name)))
        yield


def read_each(agent: str, sources: list[Source], but: Path) -> None:
    form = format_of(agent)
    for source in sources:
        try:
            list(form.read(source).steps)
        except OSError:
            assert Path(source.path) == but, f"{source} for {but}"
        if form.watch.sidecars is not None:
            form.watch.sidecars(source)
        if form.watch.stamps is not None:
            try:
                form.watch.stamps(source.path)
            except OSError:
                assert Path(source.path) == but, f"{source} for {but}"


@pytest.mark.parametrize(("agent", "sample"), SAMPLES, ids=lambda given: getattr(given, "name", given))
def test_it_costs_only_the_session_in_it(agent: str, sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / sample.name
    shutil.copytree(sample, copy) if sample.is_dir() else shutil.copy(sample, copy)
    files = [path for path in copy.rglob("*") if path.is_file()] if copy.is_dir() else [copy]
    sources = list(format_of(agent).find(str(copy)))
    assert sources
    for path in sorted(files, key=lambda path: path.stat().st_size)[:MOST]:
        with unreadable(path):
            list(format_of(agent).find(str(copy)))
            read_each(agent, sources, path)


class Blocked(Exception):
    """A pipe was waited for."""


def give_up(number: int, frame: object) -> None:
    raise Blocked


@pytest.mark.parametrize(("agent", "sample"), SAMPLES, ids=lambda given: getattr(given, "name", given))
def test_nobody_waits_for_a_pipe_in_its_place(agent: str, sample: Path, tmp_path: Path) -> None:
    copy = tmp_path / sample.name
    shutil.copytree(sample, copy) if sample.is_dir() else shutil.copy(sample, copy)
    files = [path for path in copy.rglob("*") if path.is_file()] if copy.is_dir() else [copy]
    before = signal.signal(signal.SIGALRM, give_up)
    try:
        for path in sorted(files, key=lambda path: path.stat().st_size)[:MOST]:
            sources = list(format_of(agent).find(str(copy)))
            path.unlink()
            os.mkfifo(path)
            signal.alarm(5)
            list(format_of(agent).find(str(copy)))
            for source in sources:
                with suppress(OSError):
                    list(format_of(agent).read(source).steps)
            signal.alarm(0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_names_of_codex_sessions_that_cannot_be_read_cost_the_names(tmp_path: Path) -> None:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    when = {"timestamp": "2026-01-01T00:00:00.000Z"}
    records = [
        {**when, "type": "session_meta", "payload": {"id": ONE, "cwd": "/p"}},
        {**when, "type": "response_item", "payload": said},
    ]
    path = lines(tmp_path / "sessions" / "2026" / "01" / "01" / f"rollout-{ONE}.jsonl", records)
    index = lines(tmp_path / "session_index.jsonl", [{"id": ONE, "thread_name": "a talk"}])
    assert format_of("codex").read(Source("codex", str(path))).header.title == "a talk"
    with unreadable(index):
        [(item, session)] = bring("codex", path)
    assert (item.problems, session.title, talk(session.context())) == ([], None, ["user: hi"])


def test_checkpoints_of_rho_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    session = next(HERE.glob("seeds/rho/v4*/**/session.jsonl"))
    shutil.copytree(session.parent, tmp_path / session.parent.name)
    source = Source("rho", str(tmp_path / session.parent.name / "session.jsonl"))
    journal = lines(Path(source.path).parent / JOURNAL, [{"checkpoint": {}}])
    with unreadable(journal):
        reading = format_of("rho").read(source)
        assert list(reading.steps)
    assert [problem.where for problem in reading.problems] == ["checkpoints.jsonl"]


@pytest.mark.parametrize("agent", ["crush", "opencode"])
def test_stamps_of_a_database_that_is_gone_are_none(agent: str, tmp_path: Path) -> None:
    stamps = format_of(agent).watch.stamps
    assert stamps is not None
    assert stamps(str(tmp_path / "gone.db")) == {}


def test_a_list_of_names_that_cannot_be_written_refuses_the_codex_session_too(tmp_path: Path) -> None:
    """Trying again is not told that the session is there already."""
    index = tmp_path / "session_index.jsonl"
    index.mkdir()
    with turnlog.open("memory:") as home, home.create(title="a talk") as session:
        session.user("hi")
        written = render(session, "codex")
    with pytest.raises(Unavailable, match="session_index"):
        placed("codex", written, str(tmp_path / "sessions"))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    index.rmdir()
    assert Path(placed("codex", written, str(tmp_path / "sessions"))).is_file()
    assert json.loads(index.read_text())["thread_name"] == "a talk"


def test_a_log_of_a3s_that_cannot_be_written_refuses_the_session_too(tmp_path: Path) -> None:
    wal = tmp_path / WAL
    wal.mkdir(parents=True)
    written = Rendered(id="s", files=[OutputFile("v1/sessions/s.json", b"{}")], about={"tree": True})
    with pytest.raises(Unavailable, match="session-store"):
        a3s_place(written, str(tmp_path))
    assert not (tmp_path / "v1" / "sessions").exists()


def test_what_is_there_and_cannot_be_read_is_not_overwritten(tmp_path: Path) -> None:
    for name, place in (("s.json", a3s_place), ("checkpoint-1.json", owlen_place)):
        (tmp_path / name).write_text("{}")
        with unreadable(tmp_path / name), pytest.raises(Taken):
            place(Rendered(id="s", files=[OutputFile(name, b"{}")]), str(tmp_path))
