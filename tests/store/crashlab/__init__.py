"""Power cuts, thought through: what a run changes is recorded, and every state a crash may leave is built and opened.

The store runs for real on a real folder, through a `Recorder`. A tape holds what it did, as the smallest steps
that a disk can do or not do: the bytes of one page, the length of a file, one name. Only a sync orders them:

posix   nothing else does. The weakest system that keeps its word, and our bar.
ext4    names change in the order they were changed, every sync brings all earlier names with it, and a file never
        grows on the disk before its bytes are there.
"""

from tests.store.crashlab.explorer import Explorer, Findings, Scenario, fast_folder, go_on
from tests.store.crashlab.life import random_life
from tests.store.crashlab.promise import HOME, Counter, Violation, check, home_at
from tests.store.crashlab.recorder import Recorder
from tests.store.crashlab.tape import GONE, PAGE, SESSIONS, TRASH, Book, Tape, Tree
from tests.store.crashlab.timeline import Timeline
from tests.store.crashlab.witness import Witness

__all__ = [
    "Book",
    "Counter",
    "Explorer",
    "Findings",
    "GONE",
    "HOME",
    "PAGE",
    "Recorder",
    "SESSIONS",
    "Scenario",
    "TRASH",
    "Tape",
    "Timeline",
    "Tree",
    "Violation",
    "Witness",
    "check",
    "fast_folder",
    "go_on",
    "home_at",
    "random_life",
]
