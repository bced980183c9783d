"""What keeps start-up short does the same as what it stands for."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import typing
from typing import Any, Generic, TypeVar

import pytest

from turnlog.log.startup import NamedTuple, pattern

_T = TypeVar("_T")


def test_it_is_the_pattern_that_re_makes():
    made = pattern(r"(?P<word>[a-z]+) (\d+)", re.IGNORECASE)
    plain = re.compile(r"(?P<word>[a-z]+) (\d+)", re.IGNORECASE)
    for _ in range(2):  # the second time, its methods are there
        match = made.fullmatch("Room 12")
        assert match is not None
        assert match.groupdict() == {"word": "Room"}
        assert made.sub("x", "a 1 b 2") == plain.sub("x", "a 1 b 2")
        assert (made.pattern, made.flags, made.groups) == (plain.pattern, plain.flags, plain.groups)
    assert pattern(rb"\s+").split(b"a  b") == [b"a", b"b"]


def test_nothing_is_compiled_before_it_is_used():
    code = (
        "import re\nfrom turnlog.log.startup import pattern\n"
        "re.compile = lambda *said: print('compiled') or re._compile(*said)\n"
        "made = pattern('a+')\nprint('made')\nprint(made.match('aa')[0], made.match('a')[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["made", "compiled", "aa", "a"]


class Point(NamedTuple):
    """A point."""

    x: int
    y: int
    name: str | None = None

    @property
    def size(self) -> int:
        return self.x + self.y

    @classmethod
    def origin(cls) -> Point:
        return cls(0, 0)

    def moved(self, by: int) -> Point:
        return self._replace(x=self.x + by)


class Found(NamedTuple, Generic[_T]):
    """Rows, and how many."""

    rows: list[_T]
    count: int = 0


class Same(typing.NamedTuple):
    """A point."""

    x: int
    y: int
    name: str | None = None


def test_it_is_a_tuple_with_names():
    point = Point(1, y=2)
    assert point == (1, 2, None)
    assert (point.size, point.moved(3), Point.origin()) == (3, Point(4, 2), Point(0, 0))
    assert repr(point) == "Point(x=1, y=2, name=None)"
    assert pickle.loads(pickle.dumps(point)) == point
    assert not hasattr(point, "__dict__")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        Point(1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize(
    "name", ["_fields", "_field_defaults", "__slots__", "__match_args__", "__doc__", "__module__", "__bases__"]
)
def test_its_class_is_like_that_of_typing(name: str):
    assert getattr(Point, name) == getattr(Same, name)


def test_its_types_are_known():
    assert typing.get_type_hints(Point) == {"x": int, "y": int, "name": str | None}


def test_it_may_be_generic():
    found: Found[str] = Found[str](["one"])
    assert found == (["one"], 0)
    assert isinstance(found, Found)
    assert not hasattr(found, "__dict__")
    rows, count = found
    assert (rows, count) == (["one"], 0)


def test_no_annotation_is_compiled():
    odd = {"x": "no type ("}
    body: dict[str, Any] = {"__annotations__": odd, "__module__": __name__}
    assert type(NamedTuple)("Odd", (NamedTuple,), body)._fields == ("x",)
    with pytest.raises(SyntaxError):
        typing.NamedTuple("Odd", [*odd.items()])  # type: ignore[misc]
