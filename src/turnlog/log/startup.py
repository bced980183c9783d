"""What keeps start-up short: patterns compiled at their first use, named tuples whose annotations are not compiled."""

from __future__ import annotations

import re
from collections import namedtuple
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple

    def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """As `re.compile`."""
        ...

else:

    class pattern:
        """As `re.compile`, but compiled at the first use: compiling all of them takes longer than many commands.

        Only the first use of a method is slower: after that, the pattern's own method is an attribute here.
        """

        def __init__(self, text: AnyStr, flags: int = 0) -> None:
            self._arguments = text, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._arguments), name)
            setattr(self, name, value)
            return value

    class _Creation(type):
        """Makes a tuple with named fields of the body of a class."""

        def __new__(cls, name, bases, body):
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body["__annotations__"]
            defaults = [body.pop(field) for field in fields if field in body]
            created = namedtuple(name, fields, defaults=defaults, module=body["__module__"])
            if len(bases) > 1:  # it is generic as well
                return type(name, (created, *bases[1:]), {**body, "__slots__": ()})
            for attribute, value in body.items():
                setattr(created, attribute, value)
            return created

    class NamedTuple(metaclass=_Creation):
        """As `typing.NamedTuple`, which compiles the text of every annotation: the first such class takes 700 µs."""
