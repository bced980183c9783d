"""A fault to plant."""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One fault: in which file below src/turnlog, what becomes of which text, and which tests must notice."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
