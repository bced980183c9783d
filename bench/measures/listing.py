"""A listing of 1,000 sessions with facts that changed late, beside a bare look at both ends of each file."""

import os
from pathlib import Path

import turnlog
from bench.ground import Ground
from bench.measures import Row, ratio, take_turns

TITLE = "listing 1,000 sessions, title and workspace changed after 200 messages"
SESSIONS = 1_000
ROUNDS = 15
END = 16 << 10


def measure(ground: Ground) -> list[Row]:
    folder = ground.folder / "listing"
    with ground.building(folder) as home:
        for number in range(SESSIONS):
            session = home.create(workspace=folder, agent="bench", title="Before")
            ground.fill(session, 200, single=10)
            session.set("title", f"Session {number}")
            session.set("workspace", folder / "moved")
            session.close()
    rows = [_row(folder, TITLE)]
    with ground.building(folder) as home:
        for info in home.sessions():
            with home.resume(info.id) as session:
                ground.fill(session, 50, single=10)
    return [*rows, _row(folder, f"{TITLE}, 50 more since")]


def _row(folder: Path, title: str) -> Row:
    def listing() -> list[turnlog.Info]:
        with turnlog.open(folder) as home:
            return list(home.sessions())

    moved = str((folder / "moved").resolve())
    rows = listing()
    titles = {row.title for row in rows if row.workspace == moved}
    if titles != {f"Session {number}" for number in range(SESSIONS)}:
        raise SystemExit("the listing does not show what was set")
    jobs = {"home.sessions()": listing, "both ends": lambda: both_ends(folder / "sessions")}
    return ratio(title, take_turns(jobs, rounds=ROUNDS), "home.sessions()", "both ends", bar=4.0)


def both_ends(folder: Path) -> int:
    """Open each file and read its first line and its last 16 KB, by the shortest way there is; nothing is kept."""
    read = 0
    for name in os.listdir(folder):
        fd = os.open(os.path.join(folder, name), os.O_RDONLY)
        size = os.fstat(fd).st_size
        first = os.pread(fd, 4096, 0).partition(b"\n")[0]
        read += len(first) + len(os.pread(fd, END, max(0, size - END)))
        os.close(fd)
    return read
