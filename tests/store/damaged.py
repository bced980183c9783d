"""A log to be damaged, and everything that must hold of it afterwards."""

import itertools
from pathlib import Path

import turnlog
from turnlog import Damage, Entry, Message, Note, Set, Text, ToolCall
from turnlog.store import files
from turnlog.store.files.names import file_name
from turnlog.testing import ManualClock, message_draft


class Victim:
    """A session in a file, its lines and entries as they were, and the file to be damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.id = "victim"
        self.path = folder / "sessions" / file_name(self.id)
        with turnlog.open(folder, clock=self.clock, durability="flush") as home:
            self.write(home.create(id=self.id, title="Victim"))
        self.learn()

    def write(self, session) -> None:
        """A little of everything, ending in a batch."""
        session.user("one")
        session.set("mood", "good")
        session.assistant([Text(text="two"), ToolCall(id="c1", name="bash", input={"command": "ls"})])
        session.tool_result("c1", "three ☃\u2028")
        session.append(Note(text="b1"), Message(role="user", blocks=[Text(text="b2")]), Set(key="k", value=[1]))
        session.assistant("four")
        session.set("title", "Renamed")
        session.user("five")
        session.append(Note(text="last1"), Message(role="user", blocks=[Text(text="last2")]), Note(text="last3"))

    def learn(self) -> None:
        """What is in the file now is what was there before any damage."""
        self.bytes = self.path.read_bytes()
        lines = self.bytes.splitlines(keepends=True) if b"\r" not in self.bytes else self.bytes.split(b"\n")
        ends = list(itertools.accumulate(len(line) for line in lines))
        self.lines = [(end - len(line), line) for end, line in zip(ends, lines, strict=True)]
        self.entries = self.read()
        assert len(self.entries) == len(self.lines)

    def store(self):
        return files.connect(str(self.folder), clock=self.clock, durability="flush")

    def home(self):
        return turnlog.open(self.folder, clock=self.clock, durability="flush")

    def items(self, **options):
        """What a reader gets, who changes nothing."""
        log = self.store().open(self.id, read_only=True)
        try:
            return list(log.read(**options))
        finally:
            log.close()

    def read(self, **options) -> list[Entry]:
        return [item for item in self.items(**options) if isinstance(item, Entry)]

    def damage(self) -> list[Damage]:
        return [item for item in self.items() if isinstance(item, Damage)]

    def line(self, index: int) -> tuple[int, bytes]:
        """Where a line begins, and the line with its newline."""
        return self.lines[index]

    def put(self, data: bytes) -> None:
        self.path.write_bytes(data)

    def replace(self, index: int, new: bytes) -> None:
        """Put these bytes in the place of a line, newline and all."""
        offset, line = self.lines[index]
        self.put(self.bytes[:offset] + new + self.bytes[offset + len(line) :])

    def all_but(self, *indexes: int) -> list[Entry]:
        gone = {self.entries[index].seq for index in indexes}
        return [entry for entry in self.entries if entry.seq not in gone]

    def check(self, expected: list[Entry] | None = None) -> list[Damage]:
        """Everything that must hold of a damaged log. Returns the damage as it was before anything was appended."""
        before = self.path.read_bytes()
        forwards = self.read()
        damage = self.damage()
        self.check_both_ways(forwards)
        if expected is not None:
            assert [entry.seq for entry in forwards] == [entry.seq for entry in expected]
            for entry, wanted in zip(forwards, expected, strict=True):
                assert entry.unverified or entry == wanted
        for item in damage:
            assert 0 <= item.offset <= len(before)
            assert 0 < item.length <= len(before) - item.offset
        added = self.check_append(forwards)
        after = self.path.read_bytes()
        assert after.startswith(before), "a log is never rewritten or shortened"
        self.check_both_ways(self.read())
        assert [entry for entry in self.read() if entry.type != "fold"][-len(added) :] == added
        return damage

    def check_quickly(self, expected: list[Entry]) -> None:
        """The same at the level of the store, for tests that try every byte."""
        before = self.read()
        assert [entry.id for entry in before if entry not in expected] == []
        self.check_both_ways(before, 1)
        log = self.store().open(self.id)
        added = log.append([message_draft("after")], after=1 << 60, head=1)
        added += log.append([message_draft("x"), message_draft("y")], after=1 << 60, head=1)
        log.close()
        after = self.read()
        assert after == expected + added
        self.check_both_ways(after, 1)

    def check_both_ways(self, forwards: list[Entry], samples: int = 7) -> None:
        assert self.read(reverse=True) == forwards[::-1]
        seqs = [entry.seq for entry in forwards]
        assert seqs == sorted(set(seqs))
        for seq in (*seqs[:: max(1, len(seqs) // samples)], seqs[-1] + 1 if seqs else 1):
            assert self.read(after=seq) == [entry for entry in forwards if entry.seq > seq]
            assert self.read(before=seq, reverse=True) == [entry for entry in forwards[::-1] if entry.seq < seq]
            assert self.read(before=seq) == [entry for entry in forwards if entry.seq < seq]

    def check_append(self, forwards: list[Entry]) -> list[Entry]:
        """The session is listed, resumed, read, and goes on; numbers are never used twice."""
        size = self.path.stat().st_size
        used = [e.seq for e, (o, line) in zip(self.entries, self.lines, strict=False) if o + len(line) <= size]
        with self.home() as home:
            assert self.id in [info.id for info in home.sessions()]
            session = home.resume(self.id)
            session.messages()
            session.context()
            session.usage()
            session.stats()
            session.branches()
            added = [session.user("after"), *session.append(Note(text="x"), Note(text="y"))]
            assert added[0].seq > max(used, default=0)
            assert session.messages()[-1] == added[0]
            assert session.context()[-1].blocks == [Text(text="after")]
        with self.home() as home:
            again = home.resume(self.id)
            assert again.messages()[-1] == added[0]
            assert again.user("again").parent == added[0].seq
            added.append(again.messages()[-1])
        kept = self.read()
        seqs = {entry.seq for entry in kept}
        assert {entry.seq for entry in forwards} <= seqs
        return added
