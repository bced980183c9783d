"""Patterns that are compiled when they are first used: to compile all of them takes longer than many a command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, AnyStr

if TYPE_CHECKING:

    def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
        """As `re.compile`."""
        ...

else:

    class pattern:
        """As `re.compile`. Only the first use of a method is slower: from then on the pattern's own stands here."""

        def __init__(self, text: AnyStr, flags: int = 0) -> None:
            self._said = text, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._said), name)
            setattr(self, name, value)
            return value
