"""A line longer than memory: named, stepped over in bounded memory, and writing goes on."""

import json
import subprocess
import sys

import pytest

import turnlog

PROGRAM = """
import json, resource, sys, time
import turnlog

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

folder = sys.argv[1]
with turnlog.open(folder, durability="flush") as home:
    home.create(id="warm").user("x" * 1000)
    home.resume("warm").context()
    base, begin = peak(), time.monotonic()
    [info] = [info for info in home.sessions() if info.id == "s"]
    session = home.resume("s")
    texts = [message.blocks[0].text for message in session.messages()]
    backwards = [entry.seq for entry in session.entries(reverse=True)]
    forwards = [entry.seq for entry in session.entries()]
    damage = [[item.offset, item.length, item.kind] for item in session.damage]
    new = session.user("after")
    context = [message.blocks[0].text for message in session.context()]
    found = session.find(new.id).seq
    later = [[item.offset, item.length, item.kind] for item in session.damage]
    print(json.dumps({
        "title": info.title, "texts": texts, "same": backwards[::-1] == forwards, "damage": damage, "later": later,
        "seq": new.seq, "found": found, "context": context, "mb": peak() - base, "s": time.monotonic() - begin,
    }))
"""


def look(folder):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def path(tmp_path):
    with turnlog.open(tmp_path / "home") as home:
        session = home.create(id="s", title="Big")
        session.user("one")
        session.user("two")
    return tmp_path / "home" / "sessions" / "s.jsonl"


def test_a_gigabyte_of_zeros_after_the_end(path, tmp_path):
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size + (1 << 30))
    seen = look(tmp_path / "home")
    assert seen["damage"] == [[size, 1 << 30, "torn"]]
    assert seen["later"] == [[size, 1 << 30, "oversize"]]
    assert (seen["title"], seen["texts"], seen["same"]) == ("Big", ["one", "two"], True)
    assert seen["seq"] == seen["found"] > 5
    assert seen["context"] == ["one", "two", "after"]
    assert seen["mb"] < 64


def test_a_line_of_300_megabytes_between_two_entries(path, tmp_path):
    lines = path.read_bytes().splitlines(keepends=True)
    head, tail = b"".join(lines[:-1]), lines[-1]
    start = b'{"type":"message","seq":4,"id":"big","role":"user","blocks":[{"type":"text","text":"'
    piece = b"}{ all work and no play makes jack a dull boy " * 20_000
    count = 300_000_000 // len(piece)
    with path.open("wb") as file:
        file.write(head + start)
        for _ in range(count):
            file.write(piece)
        file.write(b'"}]}\n' + tail)
    seen = look(tmp_path / "home")
    path.unlink()
    length = len(start) + count * len(piece) + 4
    assert seen["damage"] == seen["later"] == [[len(head), length, "oversize"]]
    assert (seen["texts"], seen["same"]) == (["one", "two"], True)
    assert seen["context"] == ["one", "two", "after"]
    assert seen["mb"] < 64


def test_a_line_as_long_as_a_line_may_be_is_read(tmp_path):
    with turnlog.open(tmp_path, durability="flush") as home:
        session = home.create()
        session.user("x", agent="a" * (15 << 20))
        session.user("after")
    with turnlog.open(tmp_path) as home:
        session = home.resume()
        assert [len(message.agent or "") for message in session.messages()] == [15 << 20, 0]
        assert session.damage == []
        assert list(session.entries(reverse=True)) == list(session.entries())[::-1]


@pytest.mark.parametrize("size", [(16 << 20) + 2000, 17 << 20, (17 << 20) + 1, 40 << 20])
def test_a_line_just_too_long_is_stepped_over_both_ways(path, tmp_path, size):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]) + b"x" * size + b"\n" + lines[-1])
    with turnlog.open(tmp_path / "home", durability="flush") as home:
        session = home.resume("s")
        assert [message.blocks[0].text for message in session.messages()] == ["one", "two"]
        [damage] = session.damage
        assert damage.length == size
        assert damage.kind in (["oversize"] if size > 20 << 20 else ["oversize", "garbled"])
        assert [entry.seq for entry in session.entries(reverse=True)] == [4, 3, 2, 1]
        assert [entry.seq for entry in session.entries(after=3)] == [4]
        session.user("after")
        assert session.messages()[-1].parent == 4
