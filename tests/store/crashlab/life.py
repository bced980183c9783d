"""What somebody may do with a home, chosen by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.store.crashlab.explorer import Scenario
from tests.store.crashlab.tape import (
    SESSIONS,
    TRASH,
)
from tests.store.crashlab.witness import Witness
from turnlog import Image, Text
from turnlog.log.entry import AnyEntry, Message, Note


def random_life(seed: int) -> Scenario:
    """A few things that somebody may do, chosen by the seed: the same ones each time it is lived."""

    def live(witness: Witness) -> None:
        rng = random.Random(seed)
        for number in range(rng.randrange(2, 7)):
            _ACTS[rng.choice(list(_ACTS))](witness, rng, f"{seed:x}-{number}")

    return live


def _in(witness: Witness, place: str) -> list[str]:
    return [session_id for session_id, places in witness.tape.book.places.items() if places == {place}]


def _some_text(rng: random.Random) -> str:
    return chr(rng.randrange(97, 123)) * rng.choice([1, 200, 1_500, 4_000, 9_000])


def _act_create(witness: Witness, rng: random.Random, name: str) -> None:
    witness.create(name, title=_some_text(rng)[:500])


def _act_append(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:2]:
        session = witness.resume(session_id)
        for _ in range(rng.randrange(1, 4)):
            drafts: list[AnyEntry] = []
            for _ in range(rng.choice([1, 1, 2, 4])):
                if rng.random() < 0.5:
                    drafts.append(Message(role="user", blocks=[Text(_some_text(rng))]))
                else:
                    drafts.append(Note(text=_some_text(rng)))
            witness.append(session, *drafts)


def _act_show(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:1]:
        image = Image("image/png", data=rng.choice([b"one", b"two", rng.randbytes(6_000)]))
        witness.append(witness.resume(session_id), Message(role="user", blocks=[image]))


def _act_fork(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[-1:]:
        witness.fork(witness.resume(session_id), name)


def _act_delete(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, SESSIONS):
        witness.delete(rng.choice(there))


def _act_restore(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, TRASH):
        witness.restore(rng.choice(there))


def _act_purge(witness: Witness, rng: random.Random, name: str) -> None:
    if there := _in(witness, TRASH):
        witness.purge(rng.choice(there))


def _act_beside(witness: Witness, rng: random.Random, name: str) -> None:
    for session_id in _in(witness, SESSIONS)[:1]:
        syncs = [
            writer.begin_to_append(session_id, *(Note(text=_some_text(rng)) for _ in range(rng.randrange(1, 4))))
            for writer in (witness, witness.beside(), witness)
        ]
        rng.shuffle(syncs)
        for sync in syncs:
            sync()


_ACTS: dict[str, Callable[[Witness, random.Random, str], None]] = {
    "create": _act_create,
    "append": _act_append,
    "more": _act_append,
    "show": _act_show,
    "fork": _act_fork,
    "delete": _act_delete,
    "restore": _act_restore,
    "purge": _act_purge,
    "beside": _act_beside,
}
