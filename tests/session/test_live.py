"""A message that others see while it arrives: in order, from its beginning, from any process, and kept nowhere."""

import asyncio
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import turnlog
from turnlog import Delta, aio
from turnlog.cli.program import run
from turnlog.session.interior import interior
from turnlog.store.files.disk import Disk
from turnlog.thread import stream as thread_stream
from turnlog.thread.reader import history_of
from turnlog.thread.stream import Listening
from turnlog.wire import anthropic

BEGIN = [
    {"type": "message_start", "message": {"id": "m", "model": "some-model", "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
]
END = [{"type": "content_block_stop", "index": 0}, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}]


def word(text, index=0):
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}


def feed(live, *events):
    for event in events:
        live.feed(event)


def text_until(source, wanted):
    """Deltas up to that much text, each continuing the one before."""
    said, found = "", []
    while len(said) < len(wanted):
        delta = next(source)
        assert (delta.type, delta.at, delta.is_over) == ("delta", len(said), False)
        said += delta.text
        found.append(delta)
    assert said == wanted
    return found


def test_text_comes_as_it_streams_and_then_the_entry(s, place):
    s.user("what is it?")
    source = place.open().read(s.id).follow(deltas=True)
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("It is "), word("a ü"))
        [first, *_] = text_until(source, "It is a ü")
        assert first == Delta(live.id, first.text)
        feed(live, word(" and more"))
        [more, *_] = [next(source)]
        assert (more.id, more.text, more.at) == (live.id, " and more", 9)
        feed(live, *END)
        answer = s.append(live.finish())
    assert answer.id == live.id
    assert next(source) == answer
    later = s.note("later")
    assert next(source) == later  # and nothing of what was over
    source.close()


@pytest.mark.parametrize("half", ["\ud83d", "so \udc00 far"], ids=["first", "second"])
def test_half_a_character_ends_nobodys_live_text(s, place, half):
    """A stream may be cut inside of a character; whoever speaks after that is heard as well."""
    other = s.fork()
    sources = [place.open().read(one.id).follow(deltas=True) for one in (s, other)]
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word(half))
        text_until(sources[0], half.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
        feed(live, word(" ends"))
        assert next(sources[0]).text == " ends"
        with other.live(anthropic.Stream()) as second:
            feed(second, *BEGIN, word("I am fine"))
            text_until(sources[1], "I am fine")
    for source in sources:
        source.close()


def test_a_character_that_comes_in_halves_is_one_in_the_end(s, place):
    source = place.open().read(s.id).follow(deltas=True)
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("ok \ud83d"))
        text_until(source, "ok \ufffd")
        feed(live, word("\ude00!"))
        again = next(source)
        assert (again.at, again.text) == (0, "ok 😀!")
    source.close()


def test_a_pipe_that_cannot_get_its_name_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with turnlog.open(tmp_path) as home:
        log = history_of(home.create()).log

        def full(*_: object) -> None:
            raise OSError(28, "no space left on device")

        monkeypatch.setattr(Disk, "rename", full)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            Listening(log, deltas=True).close()
        assert len(os.listdir("/proc/self/fd")) == before
        assert os.listdir(tmp_path / "listening") == []


def test_who_gives_up_before_it_began_to_follow_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    begun, make_pipe = threading.Event(), Disk.make_pipe

    def slow(self: Disk, path: str) -> None:
        begun.set()
        time.sleep(0.1)
        make_pipe(self, path)

    async def give_up() -> None:
        async with aio.open(tmp_path) as home:
            session = await home.create()
            task = asyncio.ensure_future(anext(session.follow(deltas=True)))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.sleep(0.3)
            assert os.listdir(tmp_path / "listening") == []

    monkeypatch.setattr(Disk, "make_pipe", slow)
    asyncio.run(give_up())


def test_who_comes_back_gets_what_was_missed_and_the_text_so_far(s, place):
    asked = s.user("one?")
    reader = place.open().read(s.id)
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("missed"))
        source = reader.follow(after=asked, deltas=True)
        text_until(source, "missed")
        source.close()
        answer = s.append(live.finish())
    again = s.user("two?")
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("so far"))
        source = reader.follow(after=asked, deltas=True)
        assert [next(source), next(source)] == [answer, again]
        assert text_until(source, "so far")[0].id == live.id
        source.close()


def test_what_never_became_an_entry_is_taken_back(s, place):
    s.user("one?")
    source = place.open().read(s.id).follow(deltas=True)
    with pytest.raises(RuntimeError), s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("half a sen"))
        text_until(source, "half a sen")
        raise RuntimeError("the connection broke")
    assert next(source) == Delta(live.id, is_over=True)
    source.close()


def test_who_does_not_ask_for_deltas_gets_entries_only(s, place):
    asked = s.user("one?")
    source = place.open().read(s.id).follow(after=asked)
    with s.live(anthropic.Stream()) as live:
        feed(live, *BEGIN, word("text"))
        answer = s.append(live.finish())
    assert next(source) == answer
    source.close()


# ── between processes ─────────────────────────────────────────────────────────────────────────────

WRITER = """
import sys, turnlog
from turnlog.wire import anthropic
from tests.session.test_live import BEGIN, word
s = turnlog.open(sys.argv[1]).resume(sys.argv[2])
live = s.live(anthropic.Stream())
for event in (*BEGIN, word("on its way")):
    live.feed(event)
print("fed", flush=True)
sys.stdin.read()
"""
READER = """
import sys, turnlog
for item in turnlog.open(sys.argv[1]).read(sys.argv[2]).follow(deltas=True):
    print(item.type, flush=True)
"""


@pytest.fixture
def started():
    running = []

    def start(code, *args):
        root = Path(__file__).parents[2]
        process = subprocess.Popen(
            [sys.executable, "-c", code, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture(params=["files", "postgres"])
def location(request, tmp_path):
    if request.param == "files":
        return str(tmp_path / "home")
    return f"{request.getfixturevalue('postgres').url}?tenant={tmp_path.name}-{os.getpid()}"


def test_a_writer_that_is_killed_leaves_nothing_behind(location, started, monkeypatch):
    with turnlog.open(location) as home:
        s = home.create()
        s.user("one?")
        before = sorted(Path(location).rglob("*"))
        source = home.read(s.id).follow(deltas=True)
        writer = started(WRITER, location, s.id)
        text_until(source, "on its way")
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        monkeypatch.setattr(thread_stream, "SILENT_S", 0.1)
        assert next(source).is_over
        source.close()
        listening = Path(location) / "listening"
        assert sorted(Path(location).rglob("*")) == sorted([*before, *([listening] if before else [])])
        # And nobody who comes now is shown anything of it.
        source = home.read(s.id).follow(after=s.seq, deltas=True)
        later = s.note("later")
        assert next(source) == later
        source.close()


def test_the_pipe_of_a_reader_that_was_killed_is_removed_by_who_speaks_next(tmp_path, started):
    with turnlog.open(tmp_path) as home:
        s = home.create()
        with s.live(anthropic.Stream()) as live:
            feed(live, *BEGIN, word("text"))
            reader = started(READER, str(tmp_path), s.id)
            assert reader.stdout.readline() == b"delta\n"
            [pipe] = (tmp_path / "listening").iterdir()
            assert pipe.is_fifo()
            assert s.id not in pipe.name
            os.kill(reader.pid, signal.SIGKILL)
            reader.wait()
            feed(live, word(" more"))
            while pipe.exists():
                time.sleep(0.01)


def test_a_reader_that_does_not_read_keeps_nobody_waiting_and_misses_nothing(tmp_path):
    with turnlog.open(tmp_path) as home:
        s = home.create()
        source = home.read(s.id).follow(deltas=True)
        with s.live(anthropic.Stream()) as live:
            feed(live, *BEGIN, word("first"))
            text_until(source, "first")
            [pipe] = (tmp_path / "listening").iterdir()
            for _ in range(50):
                feed(live, word("0123456789" * 500))  # four times what a pipe takes
            assert pipe.is_fifo()
            said = "first"
            while len(said) < 250_005:
                delta = next(source)
                assert delta.at == len(said)
                said += delta.text
        assert said == "first" + "0123456789" * 25_000
        source.close()


def test_a_home_with_a_listener_is_collected_copied_checked_and_purged(tmp_path, monkeypatch):
    with turnlog.open(tmp_path / "home") as home, turnlog.open(tmp_path / "other") as other:
        s = home.create()
        s.user("one?")
        source = home.read(s.id).follow(deltas=True)
        with s.live(anthropic.Stream()) as live:
            feed(live, *BEGIN, word("private"))
            text_until(source, "private")
            home.gc()
            home.sync(other)
            assert sorted(path.name for path in (tmp_path / "other").iterdir()).count("listening") == 0
            monkeypatch.setenv("TURNLOG_HOME", str(tmp_path / "home"))
            assert run(["doctor"]) == 0
            for path in (tmp_path / "home").rglob("*"):
                assert not path.is_file() or b"private" not in path.read_bytes()
        assert next(source).is_over
        source.close()
        home.purge(s.id)
        assert list((tmp_path / "home" / "listening").iterdir()) == []


def test_a_disk_without_pipes_has_entries_only(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "no pipes here")

    monkeypatch.setattr(os, "mkfifo", refuse)
    with turnlog.open(tmp_path) as home:
        s = home.create()
        asked = s.user("one?")
        source = home.read(s.id).follow(after=asked, deltas=True)
        with s.live(anthropic.Stream()) as live:
            feed(live, *BEGIN, word("text"))
            answer = s.append(live.finish())
        assert next(source) == answer
        source.close()


def test_a_stream_that_cannot_be_asked_meanwhile_is_not_shown_and_still_appended(tmp_path, caplog):
    class Once:
        asked = 0

        def feed(self, event):
            pass

        def finish(self):
            self.asked += 1
            if self.asked == 1:
                raise ValueError("not yet")
            return turnlog.Message(role="assistant", blocks=[turnlog.Text("whole")])

    with turnlog.open("memory:") as home:
        s = home.create()
        source = home.resume(s.id).follow(deltas=True)
        with s.live(Once()) as live:
            live.feed("event")
            s.note("here")
            next(source)
            next(source)
            answer = s.append(live.finish())
        assert next(source) == answer
        assert "cannot be shown while it arrives: ValueError('not yet')" in caplog.text
        source.close()


def test_a_frame_fits_into_one_write():
    from turnlog.store.broadcast import LiveText

    for most, id in (
        (select.PIPE_BUF, "x" * 20),
        (512, "x" * 20),
        (select.PIPE_BUF, "x" * 1024),
        (7_860, "\x01" * 1024),
    ):
        live = LiveText(id, lambda: [("thinking", "\x01" * 5_000), ("text", "😀" * 5_000)])
        live.refresh()
        frames = list(live.frames_for("one", most))
        assert max(map(len, frames)) < most
        assert list(live.frames_for("one", most)) == []


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_whoever_listens_may_stop_twice(tmp_path: Path, kind: str):
    with turnlog.open("memory:" if kind == "memory" else tmp_path) as home:
        home.create(id="s")
        inbox = interior(home).store.open("s").open_inbox()
        inbox.close()
        inbox.close()
