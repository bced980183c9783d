"""Problems with files of other programs: reported, up to a number."""

from __future__ import annotations

from msgspec import Struct

_MAX_PROBLEMS = 1000


class Problem(Struct, frozen=True, omit_defaults=True):
    """Something in a source that could not be read, or had to be read otherwise than it is written."""

    what: str
    where: str = ""
    """The file, if it is not the source's own; the line or record in it."""
    offset: int | None = None
    length: int | None = None
    is_news: bool = False
    """Records of types that this version does not know: all of them are kept, and nothing is wrong."""


Problems = list[Problem]


def tell(
    problems: list[Problem], problem: Problem, most: int = _MAX_PROBLEMS, rest: str = "more problems than are told here"
) -> None:
    """Add a problem that was found elsewhere. Beyond `most` there is only one more, with `rest` as its text."""
    if len(problems) < most:
        problems.append(problem)
    elif len(problems) == most:
        problems.append(Problem(rest))


def report(
    problems: list[Problem], what: str, *, where: str = "", offset: int | None = None, length: int | None = None
) -> None:
    """Add a problem of these words and this place."""
    tell(problems, Problem(what, where, offset, length))
