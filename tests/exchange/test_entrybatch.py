"""Entries on their way into a session: no collection of another process costs what they refer to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import pytest

import turnlog
from turnlog.exchange.importing.sessionimport import import_source
from turnlog.formats import Jump, Reading, Record, SessionHeader, Source, Step
from turnlog.log.block import Image, Text, ToolResult
from turnlog.log.entry import Message
from turnlog.log.payload import digest
from turnlog.session.interior import interior

SOURCE = Source("test", "/nowhere")


def said(key: str) -> Record:
    return Record(entry=Message(role="user", blocks=[Text(key)]), key=key)


def drawn(key: str, data: bytes) -> Record:
    image = Image(media_type="image/png", blob=digest(data))
    return Record(entry=Message(role="user", blocks=[image]), key=key, blobs=[data])


def refused(key: str) -> Record:
    return Record(entry=Message(role="user", blocks=[ToolResult(call="c", content="not in a tool's message")]), key=key)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch):
    """A home where another process collects whenever nobody keeps it from that."""
    with turnlog.open("memory:") as home:
        store = interior(home).store
        keeping, depth = store.keeping, [0]

        @contextmanager
        def kept() -> Generator[None]:
            depth[0] += 1
            try:
                with keeping():
                    yield
            finally:
                depth[0] -= 1
            if not depth[0]:
                depth[0] += 1
                home.gc()
                depth[0] -= 1

        monkeypatch.setattr(store, "keeping", kept)
        yield home


@pytest.mark.parametrize(
    "steps",
    [
        [drawn("a", b"one"), refused("b"), drawn("c", b"two")],
        [said("a"), said("b"), Jump(to="a"), drawn("c", b"one"), said("d"), Jump(to="b"), drawn("e", b"two")],
        [said("a"), drawn("b", b"one"), Jump(to="a"), drawn("c", b"one"), refused("d"), drawn("e", b"two")],
    ],
)
def test_what_a_record_refers_to_is_there_whatever_is_collected_meanwhile(home, steps: list[Step]):
    reading = Reading(header=SessionHeader(id="one"), steps=iter(steps))
    done = import_source(interior(home).creator, SOURCE, reading)
    session = home.resume(done.id)
    messages = session.entries(kind=Message)
    images = [block for message in messages for block in message.blocks if isinstance(block, Image)]
    wanted = [step.blobs[0] for step in steps if isinstance(step, Record) and step.blobs]
    assert [session.blob(image.blob) for image in images] == wanted
