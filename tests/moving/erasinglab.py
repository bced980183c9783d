"""Random programs over two homes, with kills in between, beside the same programs in memory that nobody kills.

Whatever was erased must be found nowhere afterwards, by a search of all bytes of all files and tables; everything else
is what the homes in memory have.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg
import zstandard
from msgspec import Struct

import turnlog
from turnlog import AlreadyExists, Catalog, Message, Text
from turnlog.log.entry import Entry
from turnlog.session import Home
from turnlog.session.interior import interior
from turnlog.store import derived
from turnlog.store.files.disk import Disk
from turnlog.store.files.packs import Packs
from turnlog.thread.reader import history_of

NOON = 1_795_000_000_000


class Step(Struct):
    """One thing that is done, in one of the homes, to one session."""

    what: str
    number: int
    home: str
    session: str = ""
    word: str = ""
    more: Any = None


def homes_at(folder: Path, url: str, step: int) -> dict[str, Home]:
    """A home in files and one in PostgreSQL."""
    clock = _clock(step)
    return {
        "files": turnlog.open(folder / "home", clock=clock, checkpoints=False),
        "postgres": turnlog.open(url, clock=clock, checkpoints=False),
    }


def _clock(step: int) -> Any:
    return lambda: NOON + step * 1000


def do(homes: dict[str, Home], step: Step) -> None:
    """Do it, or see that it is done: then somebody was killed just after."""
    here = homes[step.home]
    other = next(home for name, home in homes.items() if name != step.home)
    if step.what == "create":
        with contextlib.suppress(AlreadyExists):
            here.create(id=step.session).close()
    elif step.what in ("push", "pull", "sync"):
        getattr(here, step.what)(other)
    elif step.what == "erase":
        _erase(here, step)
    else:
        with here.resume(step.session) as session:
            _change(session, step)


def _change(session: turnlog.Session, step: Step) -> None:
    name = f"e{step.number}"
    if step.what == "say":
        session.append(Message(role="user", blocks=[Text(step.word + " x" * step.more)], id=name))
    elif step.what == "note":
        session.append(turnlog.Note(text=step.word, id=name))
    elif step.what == "set":
        if session.find(name) is None:
            session.append(turnlog.Set(key=step.more, value=step.word, id=name))
    elif step.what == "compact":
        if session.find(name) is None:
            session.compact(step.word, keep=step.more, id=name)
    elif step.what == "rewind":
        entry = session.find(step.more)
        if entry is not None:
            session.rewind(to=entry, files=False)
    elif step.what == "fork":
        with contextlib.suppress(AlreadyExists):
            session.fork(id=step.more).close()


def _erase(home: Home, step: Step) -> None:
    """In whatever session of that home has the entry in its own log."""
    for row in sorted(home.sessions(), key=lambda row: (row.id != step.session, row.id)):
        with home.resume(row.id) as session:
            found = derived.find(history_of(session).log, step.more)
            if found is not None:
                session.erase(found, reason="asked for")
                return


class Program:
    """One of them. `kills` is how often the process that does something dies of it."""

    def __init__(self, seed: int, folder: Path, url: str, *, steps: int = 24, kills: float = 0.3) -> None:
        self.rng = random.Random(seed)
        self._deaths = random.Random(seed)  # so that a program is the same, whoever dies in it
        self.folder = folder
        self.url = url
        self.steps = steps
        self.kills = kills
        self.killed = 0
        self.clock = 0
        now = lambda: NOON + self.clock * 1000  # noqa: E731
        self.model = {name: turnlog.open("memory:", clock=now, checkpoints=False) for name in ("files", "postgres")}
        self.entries: dict[str, str] = {}
        """The words that were said, and the entries that say them."""
        self.erased: set[str] = set()
        self.log: list[Step] = []

    def run(self) -> None:
        """All of it, and what has to be true afterwards."""
        for number in range(self.steps):
            self._do(self._next(number))
        for number in range(2):
            self._do(Step("sync", self.steps + number, "files"))
        self._check()

    # ── what is done ──────────────────────────────────────────────────────────────────────────────

    def _next(self, number: int) -> Step:
        rng, home = self.rng, self.rng.choice(["files", "postgres"])
        ours = sorted(row.id for row in self.model[home].sessions() if _is_named(row.id))
        if not ours:
            return Step("create", number, home, f"s{number}")
        session, word = rng.choice(ours), f"W{uuid.UUID(int=rng.getrandbits(128)).hex}"
        there = [one for one, entry in self.entries.items() if one not in self.erased and self._has(home, entry)]
        kinds = ["say"] * 6 + ["note", "set", "fork", "compact", "rewind"] + ["push", "pull", "sync"] + ["create"]
        what = rng.choice(kinds + ["erase"] * (5 if there else 0))
        if what == "create":
            return Step(what, number, home, f"s{number}")
        if what in ("push", "pull", "sync"):
            return Step(what, number, home)
        if what == "fork":
            return Step(what, number, home, session, more=f"s{number}")
        if what == "erase":
            gone = rng.choice(sorted(there))
            self.erased.add(gone)
            return Step(what, number, home, session, gone, self.entries[gone])
        if what == "rewind":
            said = [entry for entry in self.entries.values() if self._has(home, entry)]
            return Step(what, number, home, session, more=rng.choice(sorted(said)) if said else "")
        self.entries[word] = f"e{number}"
        more = {"say": rng.choice([0, 0, 0, 40_000]), "set": rng.choice(["pin", "mode"]), "compact": rng.randrange(3)}
        return Step(what, number, home, session, word, more.get(what))

    def _has(self, home: str, entry: str) -> bool:
        for log in derived.all_logs(interior(self.model[home]).store):
            found = derived.find(log, entry)
            if found is not None and any(row.id == log.id for row in self.model[home].sessions()):
                return True
        return False

    def _do(self, step: Step) -> None:
        self.log.append(step)
        self.clock = step.number
        do(self.model, step)
        while True:
            kill_s = self._deaths.uniform(0, 0.12) if self._deaths.random() < self.kills else None
            if self._in_a_child(step, kill_s):
                return

    def _in_a_child(self, step: Step, kill_s: float | None) -> bool:
        """Whether it was done; a child that is killed may have done it as well."""
        pid = os.fork()
        if not pid:
            code = 1
            try:
                homes = homes_at(self.folder, self.url, step.number)
                do(homes, step)
                for home in homes.values():
                    home.close()
                code = 0
            except BaseException as error:
                os.write(2, f"{step}: {type(error).__name__}: {error}\n".encode())
            finally:
                os._exit(code)
        if kill_s is not None:
            time.sleep(kill_s)
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            self.killed += 1
            return False
        assert os.WEXITSTATUS(status) == 0, f"{step} failed, after {self.log}"
        return True

    # ── what has to be true ───────────────────────────────────────────────────────────────────────

    def _check(self) -> None:
        homes = homes_at(self.folder, self.url, self.steps + 3)
        for name, home in homes.items():
            with Catalog(home, agents=False) as catalog:
                catalog.sync()
                catalog.forget_purged()
                for word in self.erased:
                    assert len(catalog.search(word)) == 0, f"{word} is found in {name}: {self.log}"
            home.gc()
            found, expected = _view(home), _view(self.model[name])
            assert found == expected, f"{name} has\n{found}\nand not\n{expected}\nafter {self.log}"
            for row in home.sessions():
                assert not home.read(row.id).damage
            home.close()
        found = [f"{word} in {place}" for place, data in self._bytes() for word in self.erased if word.encode() in data]
        assert not found, f"{found} after {self.log}"

    def _bytes(self) -> Any:
        """Every byte of every file and table, unpacked where it was packed."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                yield str(path), path.read_bytes()
        packs = Packs(Disk(), str(self.folder / "home" / "blobs"))
        for key in list(packs.learn()):
            yield key.hex(), packs.get("sha256:" + key.hex())
        yield from tables(self.url)


def tables(url: str) -> Any:
    """Every value of every table of the schema."""
    with psycopg.connect(url.partition("?")[0], autocommit=True) as connection:
        connection.execute("select set_config('turnlog.tenant', %s, false)", (url.partition("tenant=")[2],))
        names = connection.execute(
            "select relname from pg_class where relnamespace = 'turnlog'::regnamespace and relkind in ('r', 'p') "
            "and relname not in ('lease', 'migration')"  # which hold names and times
        ).fetchall()
        for (name,) in names:
            for row in connection.execute(f"select * from turnlog.{name}").fetchall():  # type: ignore[arg-type]
                for value in row:
                    data = bytes(value) if isinstance(value, (bytes, memoryview)) else str(value).encode()
                    yield name, data
                    for packed in (data, data[1:]):
                        with contextlib.suppress(zstandard.ZstdError):
                            yield name, zstandard.ZstdDecompressor().decompress(packed, max_output_size=1 << 24)


def _view(home: Home) -> list[Any]:
    """What the sessions of a home say, whatever those are called, and their entries, that a transfer made."""
    found = []
    for row in home.sessions():
        with home.read(row.id) as session:
            notes = sorted(e.text for e in session.entries() if isinstance(e, turnlog.Note))
            said = [[_text(message) for message in some] for some in (session.messages(), session.context())]
            voids = [e.id for e in session.entries() if isinstance(e, Entry) and e.void]
            erased = sorted(id if _is_named(id) else "" for id in voids)
            name = row.id if _is_named(row.id) else ""
            found.append((name, said, notes, sorted(session.facts.items()), erased))
    return sorted(found, key=str)


def _is_named(id: str) -> bool:
    """Whether the program made that session or entry, and not a transfer."""
    return id[1:].isdecimal()


def _text(message: Message) -> str:
    return "".join(block.text[:40] for block in message.blocks if isinstance(block, Text))
