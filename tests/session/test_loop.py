"""What `turnlog.aio` does on the event loop: never anything that waits for a disk or a server."""

import asyncio
import threading

import pytest

from tests.faces import location
from turnlog import Image, Text, ToolCall, Usage, aio
from turnlog.log.context import tokens
from turnlog.store.files.disk import Disk
from turnlog.store.postgres.connection import Connection
from turnlog.wire import anthropic, gemini, openai

PNG = b"\x89PNG\r\n\x1a\n" + bytes(3000)
DISK = ("open", "pread", "fstat", "stat", "rename", "unlink", "listdir", "write_once", "sync", "lock", "unlock", "link")
SERVER = ("wait", "call", "execute")


class Guard:
    """Every call to the disk or the server: on which thread it may be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loop = threading.current_thread()
        self.is_shut = False
        self.calls = 0
        self.wrong: list[str] = []
        for owner, names in ((Disk, DISK), (Connection, SERVER)):
            for name in names:
                monkeypatch.setattr(owner, name, self._guarded(name, owner.__dict__.get(name, getattr(owner, name))))

    def _guarded(self, name, original):
        plain = original.__func__ if isinstance(original, staticmethod) else original

        def call(*args, **kwargs):
            self.calls += 1
            if self.is_shut or threading.current_thread() is self.loop:
                self.wrong.append(name)
            return plain(*args, **kwargs)

        return staticmethod(call) if isinstance(original, staticmethod) else call


@pytest.fixture(params=["files", "postgres"])
def place(request, tmp_path):
    return location(request, tmp_path / "home")


def test_nothing_waits_on_the_loop(place, monkeypatch):
    counted = []

    async def main():
        guard = Guard(monkeypatch)
        async with aio.open(place) as home:
            s = await home.create(labels={"user": "u1"}, title="t")
            await s.user([Text("what is it?"), Image(media_type="image/png", data=PNG)])
            with s.live(anthropic.Stream()) as live:
                live.feed({"type": "message_start", "message": {"id": "m", "content": []}})
                await s.append(live.finish())
            await s.assistant(
                [ToolCall(id="c", name="look", input={"long": "x" * 40_000})], usage=Usage(input_tokens=1)
            )
            await s.tool_result("c", "found")
            fork = await s.fork()
            await fork.note("n")
            reader = await home.read(s.id)
            assert (reader.title, reader.labels, reader.head, s.seq) == ("t", {"user": "u1"}, 6, 6)
            assert "session" in [entry.type async for entry in reader.entries()]
            async for _ in reader.follow(after=0, deltas=True):
                break
            await s.pending()
            await s.usage()
            await home.sessions()
            context = await s.context()
            assert guard.calls > 20
            guard.is_shut = True  # from here on nobody may ask anybody
            for request in (
                anthropic.request(context, model="m", max_tokens=9), openai.request(context, model="m"),
                openai.request(context, model="m", api="chat"), gemini.request(context, model="m"),
            ):  # fmt: skip
                assert "iVBOR" in str(request)
            assert context.tokens > 0
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(tokens, "tokens_in", lambda text: counted.append(text) or 7)
                asked = context.plus("Sum it up")
                assert asked.tokens == context.tokens + 4 + 7
                assert counted == ["Sum it up"]  # the rest was counted on a thread
            guard.is_shut = False
        assert guard.wrong == []

    asyncio.run(main())
